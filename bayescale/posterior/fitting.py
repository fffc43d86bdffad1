"""From runs and a law to a posterior."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import logging
import os
import platform as machine
import time
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import xarray as xr

from bayescale.inference._engine import Engine, Progress
from bayescale.inference._progress import bar
from bayescale.inference.nuts import NUTS
from bayescale.laws._law import Law
from bayescale.model import table
from bayescale.model.drift import Center, Drift
from bayescale.model.joint import Joint, Model
from bayescale.model.noise import Noise
from bayescale.model.pooling import Complete, Pooling
from bayescale.model.shocks import Shocks
from bayescale.parameter import Fixed, Prior
from bayescale.posterior import diagnostics, inputs
from bayescale.posterior.gate import gate
from bayescale.posterior.labels import labelled
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.shared import shared_by, warn_of_checkpoints
from bayescale.posterior.store import check_metadata
from bayescale.runs.design import design_findings
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)
# Draws x runs whose mean and likelihood are kept of each: 1.3 GB while they are put together.
MOST_KEPT = 40_000_000
DRIFT = Drift()
PACKAGES = ("bayescale", "numpyro", "jax", "arviz-base", "arviz-stats", "xarray", "numpy")


def fit(
    runs: Runs,
    law: Law | Model,
    *,
    pooling: Pooling | None = None,
    noise: Noise | None = None,
    priors: Mapping[str, Prior | Fixed] | None = None,
    drift: Drift | None = DRIFT,
    shocks: Sequence[Shocks] | None = None,
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
        The law; or a complete `Model`, in which case pooling, noise, priors, drift and shocks are its own.
    pooling : Pooling, optional
        ``Complete()`` (default), ``Partial(column)`` or ``Separate(column)``.
    noise : Noise, optional
        ``StudentT()`` (default) or ``Gaussian()``, on log loss.
    priors : mapping of str to Prior or Fixed, optional
        Changes to the default priors, by name; ``print(Model(law))`` lists them.
    drift : Drift or None
        How the law fails beyond its runs, told by other tables (default `Drift()`); the law alone is then
        fitted too, and shown beside, unless sampling was interrupted. None: the law alone, as published
        fits are, and as an engine that reads no drift fits it.
    shocks : sequence of Shocks, optional
        What rows share beside the law, by columns: ``[Shocks("run"), Shocks("budget", tilt=True)]``. Where rows
        are checkpoints, a shock for each run keeps 1,000 of them from counting as 1,000 runs.
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
        For an unknown column, parameter or setting, runs for which the law does not hold, priors that the
        engine does not read, or more rows with so many draws than memory holds; before anything is sampled.
    """
    engine = engine or NUTS()
    model = _readable(_model(law, pooling, noise, priors, drift, shocks), engine)
    check_metadata(metadata or {})
    check_size(len(runs), engine)
    _, groups = _groups(model, runs)
    warnings = design_findings(runs, by=model.pooling.by, n_unknowns=len(model.law.parameters))
    for w in warnings:
        log.warning("%s", w)
    warn_of_checkpoints(runs, model.shocks)
    seed = chosen(seed)
    log.info("seed %d; %d runs%s", seed, len(runs), f" in {len(groups)} groups" if model.pooling.by else "")
    about = {"design": [w.to_dict() for w in warnings], "seed": seed, **_about(model, runs)}
    found = _drawn(runs, model, engine, about, progress)
    if model.drift and not found.info.get("interrupted"):
        log.info("the law alone, beside it")
        found = dataclasses.replace(found, law_alone=_drawn(runs, _without_drift(model), engine, about, progress))
    return dataclasses.replace(found, metadata=dict(metadata or {}))


def _drawn(runs: Runs, model: Model, engine: Engine, about: Mapping[str, Any], progress: Progress | None) -> Posterior:
    """One model's draws, checked."""
    joint, data = arrays_of(model, runs)
    data |= _clusters(engine, runs)
    began = time.perf_counter()
    with bar() if progress is None else contextlib.nullcontext(progress) as told:
        draws = engine.draw(joint, data, about["seed"], told)
    coords = {f"{s.name}_label": each.names for s, each in zip(model.shocks, shared_by(model, runs), strict=True)}
    tree = labelled(joint, runs, draws, _groups(model, runs)[1], about["seed"], coords)
    seconds = {**draws.info["seconds"], "total": round(time.perf_counter() - began, 4)}
    info = {**draws.info, **about, "reference": {k: float(v) for k, v in data["reference"].items()}, "seconds": seconds}
    posterior = Posterior(tree, model, runs, runs.rule, checks_of(joint, tree, engine, info), info)
    if model.drift:
        posterior = dataclasses.replace(posterior, gate=gate(posterior))
    _report(posterior)
    return posterior


def _about(model: Model, runs: Runs) -> dict[str, Any]:
    """What is recorded of a fit's table and machine."""
    label, groups = _groups(model, runs)
    return {
        "center": dataclasses.asdict(center_of(runs)),
        "loss_center": float(np.median(runs.table["loss"])),
        "largest": dict(runs.largest),
        "loss_unit": runs.loss_unit,
        "table_hash": runs.table_hash,
        "n_runs": len(runs),
        "runs_per_group": {str(g): int((label == g).sum()) for g in groups} if model.pooling.by else {},
        "versions": versions(),
        "machine": f"{machine.system()} {machine.machine()}, {os.cpu_count()} cores",
    }


def _without_drift(model: Model) -> Model:
    """The law alone, as it would be fitted without a drift."""
    plain = dataclasses.replace(model, drift=None, priors={}, pooling=Complete())
    known = {p.name for p in plain.parameters}
    priors = {k: v for k, v in model.priors.items() if k in known}
    kept = {k: v for k, v in model.pooling.per_parameter.items() if k in known}
    pooling = dataclasses.replace(model.pooling, per_parameter=kept) if model.pooling.by else model.pooling
    return dataclasses.replace(plain, priors=priors, pooling=pooling)


def check_size(rows: int, engine: Engine) -> None:
    """ValueError where memory would not do: many rows are mostly many checkpoints of few runs."""
    draws = getattr(engine, "chains", 1) * getattr(engine, "draws", 1)
    if rows * draws > MOST_KEPT:
        raise ValueError(
            f"{rows:,} rows with {draws:,} draws need {4 * 8 * rows * draws / 1e9:.1f} GB, and sampling takes as many "
            "times longer as there are more rows. If rows are checkpoints, read the last of each run "
            "(leave_out='intermediate checkpoints') or some of each (leave_out=Thinned(20)); if all are finished runs, "
            f"ask for fewer draws (draws={max(MOST_KEPT // rows // getattr(engine, 'chains', 1), 1):,} would do)."
        )


def _model(law: Law | Model, pooling: Any, noise: Any, priors: Any, drift: Any, shocks: Any) -> Model:
    named = {"pooling": pooling, "noise": noise, "priors": priors, "shocks": shocks}
    given = {k: v for k, v in named.items() if v is not None}
    given |= {} if drift is DRIFT else {"drift": drift}
    if isinstance(law, Model):
        if given:
            raise ValueError(f"A Model carries its own {', '.join(given)}; give them to Model(...) instead.")
        return law
    if not isinstance(law, Law):
        raise TypeError(f"fit(runs, law): a law is a value such as Chinchilla(), not {law!r}.")
    return Model(law, **given)


def _readable(model: Model, engine: Engine) -> Model:
    """The model as the engine reads it: without the default's drift, where it reads none.

    What would change nothing is refused.
    """
    name, unread = type(engine).__name__, [f"{k}={v!r}" for k, v in model.priors.items() if not isinstance(v, Fixed)]
    if unread and not engine.reads_priors:
        raise ValueError(
            f"{name}(...) reads no priors: {', '.join(unread)} would change nothing. "
            "Leave them out, hold a parameter with Fixed(value), or fit with NUTS."
        )
    if model.shocks and not engine.reads_drift:
        raise ValueError(f"{name}(...) reads no shocks: leave them out, or fit with NUTS.")
    if model.drift is None or engine.reads_drift:
        return model
    if model.drift != DRIFT:
        raise ValueError(f"{name}(...) reads no drift: give it drift=None, or fit with NUTS.")
    log.info("%s(...) fits the law alone, without a drift", name)
    return _without_drift(model)


def _clusters(engine: Engine, runs: Runs) -> dict[str, Any]:
    """Labels that the engine reads beside the model's data."""
    if engine.cluster is None:
        return {}
    label, names = runs.labels(engine.cluster)
    return {"cluster": np.searchsorted(names, label)}


def chosen(seed: int | None) -> int:
    """The seed given, or one drawn; ValueError for what is none."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
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
    columns = inputs.of_runs(model.law, runs)
    reference = inputs.reference(model.law, columns)
    path = center_of(runs).columns(*_spent(runs), model.drift.tilt) if model.drift else None
    loss, se = t["loss"].to_numpy(float), t["loss_se"].to_numpy(float)
    at, n = np.searchsorted(groups, label), len(groups)
    shared = shared_by(model, runs)
    data = table.arrays(model, columns, loss, se, at, n, reference, float(np.median(loss)), path, shared)
    return model.joint(n, [len(each.names) for each in shared]), data


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


def checks_of(joint: Joint, tree: xr.DataTree, engine: Engine, info: Mapping[str, Any]) -> tuple[Any, ...]:
    if engine.approximate:
        return diagnostics.approximate(engine.name, info)
    coordinates = tree["unconstrained_posterior"].to_dataset()
    draws = coordinates[[k for k in coordinates if not str(k).endswith("_offset")]]
    found = tree["posterior"].to_dataset()
    partial = found[[k for p in joint.partial for k in (p.name, f"{p.site}_mean")]]
    return diagnostics.sampler(draws.merge(partial), tree["sample_stats"].to_dataset(), info)


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def _report(posterior: Posterior) -> None:
    if posterior.status == "PASS":
        log.info("diagnostics PASS; %s s", posterior.info["seconds"]["total"])
        return
    worst = [c for c in posterior.checks if c.status != "PASS"]
    log.warning("diagnostics %s: %s", posterior.status, "; ".join(f"{c.name} {c.advice}" for c in worst))
