"""Rolling origin: what forecasts from the smaller runs of a table would have been worth on its larger ones.

For each group and each factor r, the law is fitted to the runs with C <= C_max / r, and every larger run is
forecast. Nested splits forecast the same largest runs, and runs of one budget err together: one table shows
what went wrong on it, and hardly that nothing will.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayescale.inference._engine import Engine
from bayescale.inference.huber import Huber
from bayescale.inference.many import spread
from bayescale.inference.nuts import NUTS
from bayescale.laws._law import Law
from bayescale.model.drift import Drift
from bayescale.posterior.fitting import chosen, fit
from bayescale.posterior.inputs import of_runs
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import simulated
from bayescale.posterior.scorecard import ALONE, BOOTSTRAP, DRIFTS, ROUNDING, Backtest, score
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)
Split = tuple[str | None, float, Runs, Runs]  # group, factor, runs to train on, runs to forecast
FACTORS = (3.0, 10.0, 30.0, 100.0, 300.0)
DRIFT, BASELINE = Drift(), Huber(resamples=200)


def backtest(
    runs: Runs,
    law: Law,
    *,
    factors: Sequence[float] = FACTORS,
    group_by: str | None = None,
    drift: Drift | None = DRIFT,
    engine: Engine | None = None,
    bootstrap: Huber | None = BASELINE,
    least: int = 10,
    level: float = 0.9,
    seed: int | None = None,
    client: Any = None,
) -> Backtest:
    """Forecast a table's larger runs from its smaller ones: with drift, by the law alone, and by Huber's bootstrap.

    Parameters
    ----------
    runs : Runs
        A validated table, from `read_runs`; finished runs of one recipe.
    law : Law
        The law.
    factors : sequence of float
        Each r trains on the runs with C <= C_max / r of their group; splits that would train on the same
        runs count once.
    group_by : str, optional
        Column of recipes; each group is backtested by itself, without the others' runs.
    drift : Drift or None
        None: the law alone, and no gate.
    engine : Engine, optional
        Of the fits with drift and of the law alone; ``NUTS()`` unless given.
    bootstrap : Huber or None
        The baseline; None leaves it out.
    least : int
        Runs that a split must have to train on.
    level : float
        Probability in the intervals that are scored.
    seed : int, optional
        Of everything random; drawn and logged when not given.
    client : dask.distributed.Client, optional
        A cluster to fit the splits on (``bayescale[distributed]``); here unless given.

    Returns
    -------
    Backtest

    Raises
    ------
    ValueError
        For an unknown column, a factor of 1 or less, a table without a split, or a split too small for the
        bootstrap; before anything is sampled.
    """
    _check(factors, least, level)
    planned = _planned(runs, len(law.parameters), factors, group_by, least)
    if bootstrap is not None:
        for _, _, train, _ in planned:
            _check_bootstrap(bootstrap, train, len(law.parameters))
    engine = engine or NUTS()
    seed = chosen(seed)
    work = functools.partial(_split, law, drift, engine, bootstrap, level, seed)
    found = dict(spread(work, planned, client))
    scored = pd.concat([found[place][0] for place in sorted(found)], ignore_index=True)
    splits = pd.DataFrame([found[place][1] for place in sorted(found)])
    return Backtest(scored, splits, level, least, seed, runs.source, runs.loss_unit)


def origins(flop: Any, factors: Sequence[float] = FACTORS, least: int = 10) -> Iterator[tuple[float, np.ndarray]]:
    """Splits of one group's compute: each factor that makes a new one, and which runs it trains on.

    A split has at least ``least`` runs to train on and one to forecast.
    """
    flop = np.asarray(flop, float)
    sizes = set()
    for factor in sorted(factors):
        train = flop <= flop.max() / factor * (1 + ROUNDING)
        n = int(train.sum())
        if least <= n < len(flop) and n not in sizes:
            sizes.add(n)
            yield float(factor), train


def _check(factors: Sequence[float], least: int, level: float) -> None:
    bad = [f for f in factors if not (np.isfinite(f) and f > 1)]
    if bad or not len(factors):
        raise ValueError(f"factors are numbers above 1, as (3, 10, 30), not {bad or factors!r}.")
    if least < 1:
        raise ValueError(f"least is a number of runs, 1 or more, not {least!r}.")
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, as 0.9, not {level!r}.")


def _planned(runs: Runs, unknowns: int, factors: Sequence[float], group_by: str | None, least: int) -> list[Split]:
    """Every split."""
    label, names = runs.labels(group_by) if group_by else (np.full(len(runs), ""), ("",))
    planned = []
    for name in names:
        own = _some(runs, label == name)
        for factor, train in origins(own.table["flop"], factors, least):
            planned.append((name or None, factor, _some(own, train), _some(own, ~train)))
    if not planned:
        raise ValueError(_without_split(runs, unknowns, label, names, factors, least))
    return planned


def _check_bootstrap(bootstrap: Huber, train: Runs, unknowns: int) -> None:
    """ValueError for what a later split's bootstrap would refuse after hours of sampling the earlier ones."""
    units = len(train.labels(bootstrap.cluster)[1]) if bootstrap.cluster else None
    try:
        bootstrap.check(len(train), unknowns, units)
    except ValueError as problem:
        way = f"leave the bootstrap out, bootstrap=None, or train on more runs, as with least={unknowns + 1}"
        raise ValueError(f"A split trains on {len(train)} runs. {problem} Or {way}.") from None


def _without_split(
    runs: Runs, unknowns: int, label: np.ndarray, names: Sequence[str], factors: Sequence[float], least: int
) -> str:
    """What a table lacks, and what would do."""
    factor, flop, most = min(factors), runs.table["flop"].to_numpy(float), (0, 0, "")
    for name in names:
        own = flop[label == name]
        most = max(most, (int((own <= own.max() / factor * (1 + ROUNDING)).sum()), len(own), name))
    small, of, name = most
    where = f", in {name!r}, which has most of {len(names)} groups" if len(names) > 1 else ""
    way = f"Allow fewer, least={small}" if small > unknowns else f"Add {least - small} smaller runs, or larger ones"
    return (
        f"A backtest trains on at least {least} runs with at most 1 / {factor:g} of the largest run's compute, and "
        f"{small} of {of} runs have so little{where}. {way}, or split at a smaller factor."
    )


def _some(runs: Runs, keep: Any) -> Runs:
    return dataclasses.replace(runs, table=runs.table[np.asarray(keep)])


def _split(
    law: Law, drift: Drift | None, engine: Engine, bootstrap: Huber | None, level: float, seed: int, planned: Split
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Every forecaster's scored forecasts of one split, and what is said of it."""
    group, factor, train, test = planned
    log.info("%s%d runs, of which %d are forecast", f"{group}: " if group else "", len(train) + len(test), len(test))
    where: dict[str, Any] = {"group": group, "factor": factor}
    fits = _fits(train, law, drift, engine, bootstrap, seed)
    parts = [_scored(own, test, level, seed).assign(forecaster=name, **where) for name, own in fits.items()]
    scored, first = pd.concat(parts, ignore_index=True), ["forecaster", "group", "factor"]
    return scored.reindex(columns=[*first, *scored.columns.drop(first)]), where | _about(train, test, fits)


def _fits(
    train: Runs, law: Law, drift: Drift | None, engine: Engine, bootstrap: Huber | None, seed: int
) -> dict[str, Posterior]:
    found = fit(train, law, drift=drift, engine=engine, seed=seed)
    fits = {DRIFTS if found.model.drift else ALONE: found}
    if found.law_alone is not None:  # not of a fit that was interrupted
        fits[ALONE] = found.law_alone
    if bootstrap is not None:
        fits[BOOTSTRAP] = fit(train, law, drift=None, engine=bootstrap, seed=seed)
    return fits


def _scored(posterior: Posterior, test: Runs, level: float, seed: int) -> pd.DataFrame:
    """One fit's forecasts of the runs held out, with their scores."""
    table = test.table
    inputs = of_runs(posterior.law, test)
    blocks = [new for _, _, new in simulated(posterior, None, inputs, np.random.default_rng(seed)) if new is not None]
    return score(np.concatenate(blocks, 1), table, posterior.largest["flop"], level)


def _about(train: Runs, test: Runs, fits: dict[str, Posterior]) -> dict[str, Any]:
    gate = fits[DRIFTS].gate if DRIFTS in fits else ()
    status = {name: fits[name].status if name in fits else None for name in (DRIFTS, ALONE, BOOTSTRAP)}
    return {
        "trained_on": len(train),
        "forecast": len(test),
        "largest_flop": train.largest["flop"],
        "gate": fits[DRIFTS].beyond if DRIFTS in fits else None,
        "gate_failed": ", ".join(c.name for c in gate if c.status != "PASS"),
        "diagnostics_drift": status[DRIFTS],
        "diagnostics_alone": status[ALONE],
        "diagnostics_bootstrap": status[BOOTSTRAP],
    }
