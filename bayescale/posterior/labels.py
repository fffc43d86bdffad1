"""The one crossing from arrays to labels: draws as an `xarray.DataTree` in arviz' form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from bayescale.inference._engine import Draws
from bayescale.model import simulate, table
from bayescale.model.joint import Joint, describe, unpack
from bayescale.model.path import PATH
from bayescale.model.shocks import SITE
from bayescale.posterior import _arviz
from bayescale.runs.table import Runs

CHUNK = 1000  # draws described at once: bounds memory, and one compiled program serves any number
Labels = Mapping[str, tuple[str, ...]]
PREDICTIVE = 1000  # draws of the posterior predictive that are kept


def described(joint: Joint, z: np.ndarray, data: Mapping[str, Any]) -> dict[str, Any]:
    """`joint.describe` in chunks of one size, back on the host: leaves (len(z), ...)."""
    with jax.enable_x64(True):
        on_device, whole = jax.device_put(dict(data)), []
        for at in range(0, len(z), CHUNK):
            part = z[at : at + CHUNK]
            filled = np.concatenate([part, np.repeat(part[-1:], CHUNK - len(part), axis=0)])
            whole.append(jax.tree.map(np.asarray, describe(joint)(filled, on_device)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(z)], *whole)


def labelled(joint: Joint, runs: Runs, draws: Draws, groups: tuple[str, ...], seed: int, labels: Labels) -> xr.DataTree:
    """Everything that was drawn, of the parameters and of new runs, by name.

    ``labels`` are those of shocks, by dimension.
    """
    n, (chains, length, d) = len(runs), draws.z.shape
    grouped = any(kind != "complete" for _, kind in joint.kinds)
    rng = np.random.default_rng([seed, 0])
    found = described(joint, draws.z.reshape(-1, d), draws.data)
    prior_z = simulate.prior(joint, draws.data, rng, CHUNK)
    prior = described(joint, prior_z, table.without_pilot(joint, draws.data))
    t = runs.table
    shared = {dim: np.array(names, dtype=str) for dim, names in labels.items()}
    coords = {"run": t["run"].to_numpy(str), "group": np.array(groups, dtype=str), **shared}

    def sampled(leaves: Mapping[str, np.ndarray], shape: tuple[int, int], last: str = "group") -> xr.Dataset:
        arrays = {k: v.reshape(*shape, *v.shape[1:]) for k, v in leaves.items()}
        dims = {k: _dims(k, v.ndim - 2, last) for k, v in arrays.items()}
        return _arviz.dataset(arrays, coords, dims)

    keep = np.unique(np.linspace(0, length - 1, max(1, PREDICTIVE // chains)).astype(int))
    at = (np.arange(chains)[:, None] * length + keep).ravel()
    values = {k: v[at] for k, v in found["values"].items()}
    se = draws.data["se"][:n]
    group = draws.data["group"][:n]
    with np.errstate(over="ignore"):  # heavy-tailed scatter of a prior draw may exceed any float: inf says so
        new_runs = np.exp(simulate.runs(joint, rng, found["mean"][at, :n], values, se, group))
    predictive = sampled({"loss": new_runs}, (chains, len(keep)), "run").assign_coords(draw=keep)
    unconstrained = unpack(joint, draws.z.reshape(-1, d), len(draws.data["mask"]))
    columns = {k: t[k].to_numpy(float) for k in ("n_params", "n_tokens", "flop", "loss_se")}
    by_run = {k: ["run"] for k in (*columns, "run_group", "loss")}
    constant = {**columns, "run_group": coords["group"][group]} if grouped else columns
    return xr.DataTree.from_dict(
        {
            "posterior": sampled(_variables(joint, found, len(groups), grouped), (chains, length)),
            "unconstrained_posterior": sampled(unconstrained, (chains, length)),
            "sample_stats": sampled({k: v.reshape(-1) for k, v in draws.stats.items()}, (chains, length)),
            "log_likelihood": sampled({"log_loss": found["log_likelihood"][:, :n]}, (chains, length), "run"),
            "log_prior": sampled(found["log_prior"], (chains, length)),
            "posterior_predictive": predictive,
            "prior": sampled(_variables(joint, prior, len(groups), grouped), (1, CHUNK)),
            "observed_data": _arviz.dataset({"loss": t["loss"].to_numpy(float)}, coords, by_run, sampled=False),
            "constant_data": _arviz.dataset(constant, coords, by_run, sampled=False),
        }
    )


def _variables(joint: Joint, found: Mapping[str, Any], n_groups: int, grouped: bool) -> dict[str, np.ndarray]:
    """Letters, parameters, and means and sds of populations; letters differ by group where any parameter does."""
    size = len(found["mean"])
    letters = {
        k: np.broadcast_to(v[:, None] if v.ndim == 1 and grouped else v, (size, n_groups) if grouped else (size,))
        for k, v in found["letters"].items()
    }
    values = {k: v for k, v in found["values"].items() if k not in letters}
    population = {k: v for k, v in found["x"].items() if k.endswith(("_mean", "_sd")) and k not in values}
    return {**letters, **values, **population, **found["paths"]}


def _dims(name: str, n: int, last: str) -> list[str]:
    """Dimensions after chain and draw of a variable that has ``n`` of them."""
    if name == SITE:
        return ["effect"]
    if name.endswith(("_shocks", "_tilts")):
        return [f"{name.rpartition('_')[0]}_label"]
    return [*([last] if n > 1 else []), "weight"] if name.startswith((PATH.name, PATH.site)) else [last][:n]
