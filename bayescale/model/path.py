"""The path along which losses depart from a law: how groups share it, and how it is sampled.

A path is a sum of fixed columns with standard Normal weights (`drift.basis`). Groups that are pooled
completely share one path, those that are separate have one each, and under partial pooling a share of
its variance is common,

    path_g = sqrt(shared) w_0 + sqrt(1 - shared) w_g.

Given the law, log losses are linear in the weights, so that the runs all but settle those within
their range: sampled as they are, weights and law would have to move together along a narrow ridge. The
sampler moves standard coordinates u instead, from which the weights are what they would be given the
law, the noise and the scale s of the departure, if noise were Normal with a fixed precision for each run,

    w = V [s V' h / (1 + s^2 l) + u / sqrt(1 + s^2 l)],    h = columns' (precision x residuals from the law),

with V l V' the precision that the runs tell of the weights. Any precisions give the same posterior (as
in `pooling.draw_groups`), and near the right ones u is standard Normal whatever the law: what is left
is as hard to sample as the law alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from bayescale.model.drift import WEIGHTS
from bayescale.model.pooling import Kind
from bayescale.parameter import Normal, Parameter

PATH = Parameter("path", "$w$", "weights of the path away from the law", "1", Normal(0.0, 1.0), 1.0)


def count(kind: Kind, n_groups: int) -> int:
    """How many paths are drawn."""
    return {"complete": 1, "partial": 1 + n_groups, "separate": n_groups}[kind]


def of_groups(weights: Any, kind: Kind, shared: Any) -> Any:
    """The path of every group, array (groups or 1, WEIGHTS), of weights drawn (count, WEIGHTS)."""
    if kind != "partial":
        return weights
    return shared**0.5 * weights[:1] + (1 - shared) ** 0.5 * weights[1:]


def design(kind: Kind, n_groups: int, data: Mapping[str, Any]) -> np.ndarray:
    """What each weight drawn adds to each run's log loss, for s = 1: array (rows, count x WEIGHTS)."""
    identity = np.eye(count(kind, n_groups)).reshape(-1, count(kind, n_groups), 1)
    share = np.stack([of_groups(one, kind, data["shared"])[:, 0] for one in identity], -1)  # (groups or 1, count)
    own = share[data["group"] if len(share) > 1 else np.zeros_like(data["group"])]
    return (own[:, :, None] * data["columns"][:, None, :]).reshape(len(own), -1)


def pilot(
    kind: Kind,
    n_groups: int,
    data: Mapping[str, Any],
    precision: np.ndarray | None = None,
    variance: np.ndarray | float = 1.0,
) -> dict[str, np.ndarray]:
    """What runs of a ``precision`` (rows,) of log loss tell of the weights; None: nothing, u is the weights rotated.

    ``variance`` is that of the scatter of each group's runs (groups,) at which they are as precise.

    Returns
    -------
    dict
        ``precision`` (rows,); ``vectors`` V (n, n), those that matter to the runs first; ``seen``, design x V
        (rows, at most rows or n); ``values`` l of those; ``variance``.
    """
    by_weight, mask = design(kind, n_groups, data), data["mask"]
    told = np.where(mask, 0.0 if precision is None else precision, 0.0)
    root = np.sqrt(np.where(mask, 1.0 if precision is None else precision, 0.0))
    _, values, vectors = np.linalg.svd(root[:, None] * by_weight)
    seen = by_weight @ vectors[: len(values)].T
    return {
        "precision": told,
        "vectors": vectors.T,
        "seen": seen,
        "values": np.zeros_like(values) if precision is None else values**2,
        "variance": np.broadcast_to(np.asarray(variance, float), (n_groups,)),
    }


def blank(kind: Kind, n_groups: int, rows: int) -> dict[str, np.ndarray]:
    """A pilot of the right shapes, for tracing only."""
    n = count(kind, n_groups) * WEIGHTS
    seen = min(rows, n)
    return {
        "precision": np.zeros(rows),
        "vectors": np.eye(n),
        "seen": np.zeros((rows, seen)),
        "values": np.zeros(seen),
        "variance": np.ones(n_groups),
    }


def draw(n: int, told: Mapping[str, Any], residual: Any, scale: Any, sharper: Any, *, held: bool) -> tuple[Any, Any]:
    """Sample the weights of ``n`` paths, or hold u at 0, the middle of what the runs tell given all else.

    Parameters
    ----------
    told : mapping
        From `pilot`.
    residual : array (rows,)
        Log loss less the law's.
    scale, sharper : array ()
        s; and how much more precise runs are than in the pilot, for the scatter that is now sampled.

    Returns
    -------
    weights : array (n, WEIGHTS)
    away : array (rows,)
        What they add to each run's log loss, for s = 1.
    """
    d, r = n * WEIGHTS, len(told["values"])
    u: Any = jnp.zeros(d) if held else numpyro.sample(PATH.site, dist.Normal(0.0, 1.0).expand((d,)).to_event(1))
    pull = told["seen"].T @ (sharper * told["precision"] * residual)
    wide = 1 + scale**2 * sharper * told["values"]
    w = scale * pull / wide + u[:r] / jnp.sqrt(wide)
    # w has the density of its prior; u was given one, which is taken back.
    numpyro.factor("path", 0.5 * (u[:r] ** 2).sum() - 0.5 * (w**2).sum() - 0.5 * jnp.log(wide).sum())
    weights = told["vectors"] @ jnp.concatenate([w, u[r:]])
    return weights.reshape(n, WEIGHTS), told["seen"] @ w


def named(weights: Any, kind: Kind, shared: Any) -> dict[str, Any]:
    """The groups' paths (groups, WEIGHTS), or the one path of all (WEIGHTS,); under partial pooling what they share."""
    if kind == "complete":
        return {PATH.name: weights[0]}
    common = {f"{PATH.name}_mean": shared**0.5 * weights[0]} if kind == "partial" else {}
    return {PATH.name: of_groups(weights, kind, shared), **common}


def _by_group(member: Any, by_row: Any) -> Any:
    return by_row.sum(0, keepdims=True) if member.shape[1] == 1 else member.T @ by_row
