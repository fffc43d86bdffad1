"""Forecasts of runs that were held out, as a value: each with its scores, and their means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.posterior import scores

LEVELS = (0.5, 0.8, 0.9, 0.95)
# Compute of a forecast run over that of the largest run that the fit has seen.
INSIDE = "inside"  # no larger than that run
BINS = ("1 to 3", "3 to 10", "10 to 30", "over 30")
EDGES = np.array([3.0, 10.0, 30.0])
ALL = "all"
DRIFTS, ALONE, BOOTSTRAP = "with drift", "law alone", "Huber bootstrap"
ROUNDING = 1e-9  # two products that are one budget differ by this share at most
MEANS = ("interval_score", "crps", "width_percent")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Forecasts of a table's larger runs from its smaller ones, scored.

    Attributes
    ----------
    predictions : DataFrame
        One row a forecaster, group, split and run: ``forecaster``, ``group``, ``factor`` (the split's),
        ``run``, ``n_params``, ``n_tokens``, ``flop``, ``extrapolation_factor`` (compute over the largest run
        of the training table), ``bin`` (of it), ``loss`` (what came), ``median``, ``lower``, ``upper`` (of a
        new run, in the loss's unit); on log loss x 100: ``error_percent`` (median less what came),
        ``width_percent``, ``interval_score``, ``crps``; and ``covered_50`` to ``covered_95`` and ``covered``
        (at the level): whether the interval held what came.
    splits : DataFrame
        One row a group and factor: ``group``, ``factor``, ``trained_on`` and ``forecast`` (runs),
        ``largest_flop`` (of the training runs), ``gate`` (PASS, FAIL or UNKNOWN; None without a drift),
        ``gate_failed`` (names of its conditions), and the diagnostics of each fit, ``diagnostics_`` and
        ``drift``, ``alone``, ``bootstrap``.
    level : float
        Probability in the equal-tailed intervals that are scored.
    least : int
        Runs that a split trains on at least.
    seed : int
        Of everything random.
    source : str
        Where the runs were read.
    loss_unit : str
        Unit of the losses.
    """

    predictions: pd.DataFrame
    splits: pd.DataFrame
    level: float
    least: int
    seed: int
    source: str
    loss_unit: str

    def summary(self) -> pd.DataFrame:
        """Scores of each forecaster: means within (group, split, bin), then over those.

        One row a forecaster and bin, the last of a forecaster over all bins: ``cells`` (how many were
        averaged), ``runs`` (forecasts), ``coverage_50`` to ``coverage_95``, ``coverage`` (at the level),
        ``width_percent``, ``interval_score``, ``crps``, ``bias_percent`` (the mean of the cells' median
        errors), the last four on log loss x 100.
        """
        return averaged(self.cells())

    def cells(self) -> pd.DataFrame:
        """Scores within each forecaster, group, split and bin of extrapolation: means, and the median error."""
        keys = ["forecaster", "group", "factor", "bin"]
        covered = [c for c in self.predictions if c.startswith("covered")]
        grouped: Any = self.predictions.groupby(keys, sort=False, dropna=False)
        out = grouped[[*covered, *MEANS]].mean()
        out = out.rename(columns={c: c.replace("covered", "coverage") for c in covered})
        return out.assign(bias_percent=grouped["error_percent"].median(), runs=grouped.size()).reset_index()

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of ``predictions``."""
        return self.predictions.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: settings, ``splits``, ``summary`` and ``predictions``, one object a row."""
        return {
            "level": self.level,
            "kind": "eti",
            "least": self.least,
            "seed": self.seed,
            "source": self.source,
            "loss_unit": self.loss_unit,
            "splits": records(self.splits),
            "summary": records(self.summary()),
            "predictions": records(self.predictions),
        }

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def averaged(cells: pd.DataFrame) -> pd.DataFrame:
    """Means over cells: one row a forecaster and bin, the last of a forecaster over all bins."""
    rows = []
    for forecaster, own in cells.groupby("forecaster", sort=False):
        present = [b for b in (INSIDE, *BINS) if b in set(own["bin"])]
        rows += [_averaged(own if b == ALL else own[own["bin"] == b], forecaster, b) for b in (*present, ALL)]
    return pd.DataFrame(rows)


def _averaged(some: Any, forecaster: Any, b: str) -> dict[str, Any]:
    scored = [c for c in some if c.startswith("coverage") or c in (*MEANS, "bias_percent")]
    head = {"forecaster": forecaster, "bin": b, "cells": len(some), "runs": int(some["runs"].sum())}
    return head | {c: float(some[c].mean()) for c in scored}


def score(draws: np.ndarray, table: pd.DataFrame, largest: float, level: float) -> pd.DataFrame:
    """Scores of forecasts that are given as draws of log loss (draws, runs), against what the runs reached.

    ``largest`` is the compute of the largest training run, FLOPs.
    """
    y = np.log(table["loss"].to_numpy(float))
    ends = {p: np.quantile(draws, [(1 - p) / 2, (1 + p) / 2], axis=0) for p in {*LEVELS, level}}
    factor = table["flop"].to_numpy(float) / largest
    return pd.DataFrame(
        {
            **{k: table[k].to_numpy() for k in ("run", "n_params", "n_tokens", "flop")},
            "extrapolation_factor": factor,
            "bin": bins(factor),
            **judged(y, np.median(draws, axis=0), ends, level, scores.crps(draws, y)),
        }
    )


def bins(factor: np.ndarray) -> list[str]:
    """How far forecasts reach, in words, from compute over that of the largest run of the fit."""
    at = np.searchsorted(EDGES * (1 + ROUNDING), factor)
    return [INSIDE if f <= 1 else BINS[i] for f, i in zip(factor, at, strict=True)]


def judged(y: np.ndarray, median: np.ndarray, ends: Any, level: float, crps: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of scores, from what came, ``y``, and forecasts of it, all log losses (runs,).

    ``ends`` has the lower and upper ends of the equal-tailed interval of each of `LEVELS` and of ``level``.
    """
    lower, upper = ends[level]
    with np.errstate(over="ignore"):  # the tails of a forecast's scatter may exceed any float
        ends_of = {k: np.exp(v) for k, v in (("median", median), ("lower", lower), ("upper", upper))}
    return {
        "loss": np.exp(y),
        **ends_of,
        "error_percent": 100 * (median - y),
        "width_percent": 100 * (upper - lower),
        "interval_score": 100 * scores.interval_score(lower, upper, y, level),
        "crps": 100 * crps,
        **{f"covered_{100 * p:g}": (ends[p][0] <= y) & (y <= ends[p][1]) for p in LEVELS},
        "covered": (lower <= y) & (y <= upper),
    }


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON values: null where there is none, or none that a float holds."""
    return [{k: _plain(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
