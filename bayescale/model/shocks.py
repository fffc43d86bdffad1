r"""What runs share beside the law: a shock of log loss for every label of a column.

Checkpoints of one run, runs of one budget or of one seed err together, so that many of them tell little more
than one. All rows of a label are shifted by one Normal shock, and, where it tilts with size, by

    b_1 + b_2 log(N / N_0),    b_1 ~ Normal(0, shock),    b_2 ~ Normal(0, tilt),

N_0 the centre of the table. Within groups of runs a label is a group's own: the same label in two groups is two.

Shocks and the weights of a path (`model.path`) are Normal and linear in log loss, and few rows of one label
or many settle them given the law. The sampler moves standard coordinates u, in which they are what they would be
given the law, if noise were Normal with a fixed precision for each row: with T their scales, Q = X' P X what
rows of design X and precision P tell, h = X' P (residuals from the law), and K K' = I + T Q T,

    w = K'^-1 [K^-1 T h + u],    shocks = T w.

Any P gives the same posterior, as in `pooling.draw_groups`, whose form this is; near the right one u is standard
Normal whatever the law, and Student's t is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular

from bayescale.model import path
from bayescale.model.drift import DEPARTURE, WEIGHTS
from bayescale.model.pooling import Kind, Pooling
from bayescale.parameter import LogNormal, Parameter

SITE = "raw_effects"
Blocks = tuple[tuple[Parameter, int], ...]


@final
@dataclass(frozen=True)
class Shocks:
    """Shocks of log loss that the rows of one label share.

    Attributes
    ----------
    by : str
        Column of the table: of runs (where rows are checkpoints), of budgets, of seeds.
    tilt : bool
        Whether a shock also tilts with the log of the number of parameters.
    """

    by: str
    tilt: bool = False

    @property
    def name(self) -> str:
        """The column's name as part of others."""
        return re.sub(r"\W+", "_", self.by).strip("_")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Scale of the shocks, and of their tilt."""
        meaning = f"sd of the shock of log loss that rows of one {self.by} share"
        # Run to run, log losses of one setting differ by a few tenths of a percent to a percent.
        out = [Parameter(f"{self.name}_shock", r"$\sigma_b$", meaning, "1", LogNormal(0.005, 1.0), 0.0)]
        if self.tilt:
            meaning = f"sd of the tilt of that shock, per e-fold of size, of one {self.by}"
            out.append(Parameter(f"{self.name}_tilt", r"$\sigma_t$", meaning, "1", LogNormal(0.003, 1.0), 0.0))
        return tuple(out)


@final
@dataclass(frozen=True)
class Levels:
    """The labels of one column of shocks.

    Attributes
    ----------
    names : tuple of str
        Of the labels; with their group where there are several.
    code : int array (runs,)
        Which of them each row has.
    group : int array (names,)
        The group that each belongs to.
    """

    names: tuple[str, ...]
    code: np.ndarray
    group: np.ndarray


def checked(shocks: Sequence[Shocks], pooling: Pooling) -> tuple[Shocks, ...]:
    """The shocks of a model.

    Raises
    ------
    TypeError
        For what is none, as a column's name alone.
    ValueError
        If two name one column, or the scale of one is to be pooled partially.
    """
    if isinstance(shocks, Shocks | str) or not all(isinstance(s, Shocks) for s in shocks):
        raise TypeError(f"shocks is a list of Shocks(column), not {shocks!r}.")
    names = [s.name for s in shocks]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ValueError(f"Shocks are given once for each column; {', '.join(twice)} is there twice.")
    partial = [p.name for s in shocks for p in s.parameters if pooling.per_parameter.get(p.name) == "partial"]
    if partial:
        raise ValueError(f"{', '.join(partial)}: the scale of shocks is one for all groups, or separate; not partial.")
    return tuple(shocks)


def levels(shocks: Shocks, label: np.ndarray, group: np.ndarray, groups: Sequence[str]) -> Levels:
    """The labels of one column, each within its group.

    Raises
    ------
    ValueError
        If all rows have one label, or each its own.
    """
    pairs, code = np.unique(np.column_stack([label, group.astype(str)]), axis=0, return_inverse=True)
    if not 1 < len(pairs) < len(label):
        found = "one label for all rows" if len(pairs) == 1 else "a label of its own for every row"
        raise ValueError(
            f"Shocks({shocks.by!r}): the column has {found}; a shock is what several rows share and others do not. "
            "Name a column that says which rows those are."
        )
    own = pairs[:, 1].astype(int)
    names = [
        f"{text} ({groups[g]})" if len(groups) > 1 else str(text) for text, g in zip(pairs[:, 0], own, strict=True)
    ]
    return Levels(tuple(names), code.ravel(), own)


def blocks(shocks: Sequence[Shocks], counts: Sequence[int]) -> Blocks:
    """Every scale with the number of shocks that it is of."""
    return tuple((p, n) for s, n in zip(shocks, counts, strict=True) for p in s.parameters)


def columns(shocks: Sequence[Shocks], found: Sequence[Levels], log_size: np.ndarray) -> dict[str, np.ndarray]:
    """What shocks add to log loss: ``design`` (rows, all shocks), and ``group`` (all shocks,) of each.

    ``log_size`` is the log of the number of parameters, from its centre.
    """
    design, group = [], []
    for s, each in zip(shocks, found, strict=True):
        member = (each.code[:, None] == np.arange(len(each.names))).astype(float)
        design += [member, member * log_size[:, None]][: len(s.parameters)]
        group += [each.group] * len(s.parameters)
    return {"design": np.concatenate(design, 1), "group": np.concatenate(group).astype(np.int32)}


def pilot(
    kind: Kind | None,
    shocks: Blocks,
    n_groups: int,
    data: Mapping[str, Any],
    precision: np.ndarray | None = None,
    variance: np.ndarray | float = 1.0,
) -> dict[str, np.ndarray]:
    """What rows of a ``precision`` (rows,) tell of paths and shocks, as `path.pilot`, which it is without shocks."""
    if not shocks:
        assert kind
        return path.pilot(kind, n_groups, data, precision, variance)
    away = [path.design(kind, n_groups, data)] if kind else []
    design = np.concatenate([*away, data["shocks"]["design"]], 1)
    told = np.where(data["mask"], 0.0 if precision is None else precision, 0.0)
    return {
        "precision": told,
        "design": design,
        "told": design.T @ (told[:, None] * design),
        "variance": np.broadcast_to(np.asarray(variance, float), (n_groups,)),
    }


def blank(kind: Kind | None, shocks: Blocks, n_groups: int, rows: int) -> dict[str, Any]:
    """Data and pilot of the right shapes, for tracing only."""
    if not shocks:
        return {"pilot": path.blank(kind, n_groups, rows)} if kind else {}
    n = sum(count for _, count in shocks)
    d = n + (path.count(kind, n_groups) * WEIGHTS if kind else 0)
    told = {"precision": np.zeros(rows), "design": np.zeros((rows, d)), "told": np.zeros((d, d))}
    seen = {"design": np.zeros((rows, n)), "group": np.zeros(n, np.int32)}
    return {"shocks": seen, "pilot": {**told, "variance": np.ones(n_groups)}}


def scales(shocks: Blocks, values: Mapping[str, Any], group: Any) -> Any:
    """The scale of every shock, (all shocks,)."""
    out, at = [], 0
    for p, n in shocks:
        own = values[p.name]
        out.append(own[group[at : at + n]] if jnp.ndim(own) else jnp.broadcast_to(own, (n,)))
        at += n
    return jnp.concatenate(out)


def draw(told: Mapping[str, Any], residual: Any, scale: Any, sharper: Any, *, held: bool) -> Any:
    """Sample standard Normal weights of paths and shocks (d,), or hold u at 0.

    Parameters
    ----------
    told : mapping
        From `pilot`, of a model with shocks.
    residual : array (rows,)
        Log loss less the law's.
    scale : array (d,)
        What a weight of 1 is worth.
    sharper : array ()
        How much more precise rows are than in the pilot.
    """
    d = len(told["told"])
    u: Any = jnp.zeros(d) if held else numpyro.sample(SITE, dist.Normal(0.0, 1.0).expand((d,)).to_event(1))
    pull = scale * (told["design"].T @ (sharper * told["precision"] * residual))
    k = jnp.linalg.cholesky(jnp.eye(d) + sharper * scale[:, None] * told["told"] * scale)
    w = solve_triangular(k.T, solve_triangular(k, pull, lower=True) + u, lower=False)
    # w has the density of its prior; u was given one, which is taken back.
    numpyro.factor("effects", 0.5 * (u**2).sum() - 0.5 * (w**2).sum() - jnp.log(jnp.diagonal(k)).sum())
    return w


def effects(
    kind: Kind | None,
    shocks: Blocks,
    n_groups: int,
    values: Mapping[str, Any],
    data: Mapping[str, Any],
    residual: Any,
    departure: Any,
    sharper: Any,
    *,
    held: bool,
) -> tuple[dict[str, Any], Any]:
    """Shocks by name, with paths as `path.named` where there are any, and what both add to log loss (rows,).

    ``departure`` is the scale s of each row's path; the others as in `draw`.
    """
    told = data["pilot"]["path"]
    own = scales(shocks, values, data["shocks"]["group"])
    n = path.count(kind, n_groups) * WEIGHTS if kind else 0
    common = jnp.full(n, jnp.exp(jnp.log(values[DEPARTURE.name]).mean())) if kind else jnp.zeros(0)
    w = draw(told, residual, jnp.concatenate([common, own]), sharper, held=held)
    found, away = named(shocks, own * w[n:]), told["design"][:, n:] @ (own * w[n:])
    if kind:
        found |= path.named(w[:n].reshape(-1, WEIGHTS), kind, data["shared"])
        away = away + departure * (told["design"][:, :n] @ w[:n])
    return found, away


def named(shocks: Blocks, values: Any) -> dict[str, Any]:
    """Shocks (..., all shocks) by the name of their scale: ``budget_shocks``, ``budget_tilts``."""
    out, at = {}, 0
    for p, n in shocks:
        out[f"{p.name}s"] = values[..., at : at + n]
        at += n
    return out
