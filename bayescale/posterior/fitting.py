"""From runs and a law to a posterior."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import logging
import os
import platform as machine
import time
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import jax
import numpy as np
import xarray as xr

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference._progress import bar
from bayescale.inference.nuts import NUTS
from bayescale.laws._law import Law
from bayescale.model import simulate, table
from bayescale.model.drift import Center, Drift
from bayescale.model.joint import Joint, Model, describe, unpack
from bayescale.model.noise import Noise
from bayescale.model.path import PATH
from bayescale.model.pooling import Pooling
from bayescale.parameter import Fixed, Prior
from bayescale.posterior import _arviz, diagnostics
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.store import check_metadata
from bayescale.runs.design import design_findings
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)
CHUNK = 1000  # draws described at once: bounds memory, and one compiled program serves any number
# Draws x runs whose mean and likelihood are kept of each: 1.3 GB while they are put together.
MOST_KEPT = 40_000_000
PREDICTIVE = 1000  # draws of the posterior predictive that are kept
PACKAGES = ("bayescale", "numpyro", "jax", "arviz-base", "arviz-stats", "xarray", "numpy")


def fit(
    runs: Runs,
    law: Law | Model,
    *,
    pooling: Pooling | None = None,
    noise: Noise | None = None,
    priors: Mapping[str, Prior | Fixed] | None = None,
    drift: Drift | None = None,
    engine: Engine | None = None,
    seed: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Posterior:
    """Fit a law to a table of runs.

    Parameters
    ----------
    runs : Runs
        A validated table, from `read_runs`.
    law : Law or Model
        The law; or a complete `Model`, in which case pooling, noise and priors are its own.
    pooling : Pooling, optional
        ``Complete()`` (default), ``Partial(column)`` or ``Separate(column)``.
    noise : Noise, optional
        ``StudentT()`` (default) or ``Gaussian()``, on log loss.
    priors : mapping of str to Prior or Fixed, optional
        Changes to the default priors, by name; ``print(Model(law))`` lists them.
    drift : Drift, optional
        How the law fails beyond its runs, told by other tables: forecasts and plans that are wider, and
        say more at scale. None: the law alone, as published fits are. With complete pooling only.
    engine : Engine, optional
        ``NUTS(...)`` (default), ``Laplace(...)``, ``FromPrior(...)`` or ``Huber(...)``, with its settings.
    seed : int, optional
        Seed of everything random; drawn, logged and stored when not given. The same seed, table and
        settings give the same draws bit for bit on one machine.
    metadata : mapping, optional
        Notes to keep with the fit, JSON values.
    progress : callable, optional
        Told ``(done, total)`` while sampling; a bar in terminals and notebooks unless given.

    Returns
    -------
    Posterior
        Also when its diagnostics fail: `Posterior.status` says so, and all that shows it.

    Raises
    ------
    ValueError
        For an unknown column, parameter or setting, priors that the engine does not read, or more rows with
        so many draws than memory holds; before
        anything is sampled.
    """
    model = _model(law, pooling, noise, priors, drift)
    check_metadata(metadata or {})
    label, groups = _groups(model, runs)
    engine = engine or NUTS()
    _check_size(len(runs), engine)
    joint, data = arrays_of(model, runs)
    data |= _clusters(engine, model, runs)
    warnings = design_findings(runs, by=model.pooling.by, n_unknowns=len(model.law.parameters))
    for w in warnings:
        log.warning("%s", w)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else _seed(seed)
    log.info("seed %d; %d runs%s", seed, len(runs), f" in {len(groups)} groups" if model.pooling.by else "")
    began = time.perf_counter()
    with bar() if progress is None else contextlib.nullcontext(progress) as told:
        draws = engine.draw(joint, data, seed, told)
    tree = _label(joint, runs, draws, groups, seed)
    info = {
        **draws.info,
        "seed": seed,
        "reference": {k: float(v) for k, v in data["reference"].items()},
        "center": dataclasses.asdict(center_of(runs)),
        "loss_center": float(np.median(runs.table["loss"])),
        "largest": dict(runs.largest),
        "loss_unit": runs.loss_unit,
        "table_hash": runs.table_hash,
        "n_runs": len(runs),
        "runs_per_group": {str(g): int((label == g).sum()) for g in groups} if model.pooling.by else {},
        "design": [w.to_dict() for w in warnings],
        "versions": _versions(),
        "machine": f"{machine.system()} {machine.machine()}, {os.cpu_count()} cores",
    }
    info["seconds"] = {**info["seconds"], "total": round(time.perf_counter() - began, 4)}
    checks = _checks(joint, tree, engine, info)
    posterior = Posterior(tree, model, runs, runs.rule, checks, info, dict(metadata or {}))
    _report(posterior)
    return posterior


def _check_size(rows: int, engine: Engine) -> None:
    """ValueError where memory would not do: many rows are mostly many checkpoints of few runs."""
    draws = getattr(engine, "chains", 1) * getattr(engine, "draws", 1)
    if rows * draws > MOST_KEPT:
        raise ValueError(
            f"{rows:,} rows with {draws:,} draws need {4 * 8 * rows * draws / 1e9:.1f} GB, and sampling takes as many "
            "times longer as there are more rows. If rows are checkpoints, read the last of each run "
            "(leave_out='intermediate checkpoints') or some of each (leave_out=Thinned(20)); if all are finished runs, "
            f"ask for fewer draws (draws={max(MOST_KEPT // rows // getattr(engine, 'chains', 1), 1):,} would do)."
        )


def _model(law: Law | Model, pooling: Any, noise: Any, priors: Any, drift: Any) -> Model:
    named = {"pooling": pooling, "noise": noise, "priors": priors, "drift": drift}
    given = {k: v for k, v in named.items() if v is not None}
    if isinstance(law, Model):
        if given:
            raise ValueError(f"A Model carries its own {', '.join(given)}; give them to Model(...) instead.")
        return law
    if not isinstance(law, Law):
        raise TypeError(f"fit(runs, law): a law is a value such as Chinchilla(), not {law!r}.")
    return Model(law, **given)


def _clusters(engine: Engine, model: Model, runs: Runs) -> dict[str, Any]:
    """Labels that the engine reads beside the model's data; priors that it would not read are refused."""
    unread = [f"{k}={v!r}" for k, v in model.priors.items() if not isinstance(v, Fixed)]
    if unread and not engine.reads_priors:
        raise ValueError(
            f"{type(engine).__name__}(...) reads no priors: {', '.join(unread)} would change nothing. "
            "Leave them out, hold a parameter with Fixed(value), or fit with NUTS."
        )
    if engine.cluster is None:
        return {}
    label, names = runs.labels(engine.cluster)
    return {"cluster": np.searchsorted(names, label)}


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise ValueError(f"A seed is an integer from 0 to 2**63 - 1, not {seed!r}.")
    return int(seed)


def arrays_of(model: Model, runs: Runs) -> tuple[Joint, dict[str, Any]]:
    """The shape of a model on a table of runs, and the arrays that it reads.

    Raises
    ------
    ValueError
        If the grouping column is not there, or a run has no label in it.
    """
    label, groups = _groups(model, runs)
    t = runs.table
    columns = {k: t[k].to_numpy(float) for k in model.law.inputs}
    reference = {k: float(np.exp(np.log(v).mean())) for k, v in columns.items()}
    path = center_of(runs).columns(*_spent(runs), model.drift.tilt) if model.drift else None
    loss, se = t["loss"].to_numpy(float), t["loss_se"].to_numpy(float)
    at, n = np.searchsorted(groups, label), len(groups)
    return model.joint(n), table.arrays(model, columns, loss, se, at, n, reference, float(np.median(loss)), path)


def _spent(runs: Runs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute, by the table's own rule whatever was logged, parameters and tokens of each run."""
    n, d = (runs.table[k].to_numpy(float) for k in ("n_params", "n_tokens"))
    return np.asarray(runs.rule.flop(n, d), float), n, d


def center_of(runs: Runs) -> Center:
    """The centre of a table of runs."""
    flop, n, d = _spent(runs)
    return Center(float(np.log(flop).mean()), float(np.log(d / n).mean()))


def _groups(model: Model, runs: Runs) -> tuple[np.ndarray, tuple[str, ...]]:
    return runs.labels(model.pooling.by) if model.pooling.by else (np.full(len(runs), ""), ("",))


def _described(joint: Joint, z: np.ndarray, data: Mapping[str, Any]) -> dict[str, Any]:
    """`joint.describe` in chunks of one size, back on the host: leaves (len(z), ...)."""
    with jax.enable_x64(True):
        on_device, whole = jax.device_put(dict(data)), []
        for at in range(0, len(z), CHUNK):
            part = z[at : at + CHUNK]
            filled = np.concatenate([part, np.repeat(part[-1:], CHUNK - len(part), axis=0)])
            whole.append(jax.tree.map(np.asarray, describe(joint)(filled, on_device)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(z)], *whole)


def _label(joint: Joint, runs: Runs, draws: Draws, groups: tuple[str, ...], seed: int) -> xr.DataTree:
    """The one crossing from arrays to labels."""
    n, (chains, length, d) = len(runs), draws.z.shape
    grouped = any(kind != "complete" for _, kind in joint.kinds)
    rng = np.random.default_rng([seed, 0])
    found = _described(joint, draws.z.reshape(-1, d), draws.data)
    prior_z = simulate.prior(joint, draws.data, rng, CHUNK)
    prior = _described(joint, prior_z, table.without_pilot(joint, draws.data))
    t = runs.table
    coords = {"run": t["run"].to_numpy(str), "group": np.array(groups, dtype=str)}

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
    population = {k: v for k, v in found["x"].items() if k.endswith(("_mean", "_sd"))}
    return {**letters, **values, **population, **found["paths"]}


def _dims(name: str, n: int, last: str) -> list[str]:
    """Dimensions after chain and draw of a variable that has ``n`` of them."""
    return [*([last] if n > 1 else []), "weight"] if name.startswith((PATH.name, PATH.site)) else [last][:n]


def _checks(joint: Joint, tree: xr.DataTree, engine: Engine, info: Mapping[str, Any]) -> tuple[Any, ...]:
    if engine.approximate:
        return diagnostics.approximate(engine.name, info)
    coordinates = tree["unconstrained_posterior"].to_dataset()
    draws = coordinates[[k for k in coordinates if not str(k).endswith("_offset")]]
    found = tree["posterior"].to_dataset()
    partial = found[[k for p in joint.partial for k in (p.name, f"{p.site}_mean")]]
    return diagnostics.sampler(draws.merge(partial), tree["sample_stats"].to_dataset(), info)


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def _report(posterior: Posterior) -> None:
    if posterior.status == "PASS":
        log.info("diagnostics PASS; %s s", posterior.info["seconds"]["total"])
        return
    worst = [c for c in posterior.checks if c.status != "PASS"]
    log.warning("diagnostics %s: %s", posterior.status, "; ".join(f"{c.name} {c.advice}" for c in worst))
