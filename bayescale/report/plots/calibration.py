"""Forecasts of a backtest against what came."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.scorecard import ALL, LEVELS, Backtest
from bayescale.report.plots import canvas
from bayescale.report.words import amount

MARKS = ("o", "s", "^")


def plot_calibration_data(backtest: Backtest) -> pd.DataFrame:
    """Coverage against nominal level: see `plot_calibration`.

    Returns
    -------
    DataFrame
        One row a forecaster and level: ``forecaster``, ``level``, ``coverage`` (means within group, split and
        extrapolation factor, then over those), ``lowest`` and ``highest`` (of the splits' own means).
    """
    summary: Any = backtest.summary()
    splits: Any = backtest.cells().groupby(["forecaster", "group", "factor"], sort=False, dropna=False)
    rows = []
    for row in summary[summary["bin"] == ALL].to_dict("records"):
        for level in LEVELS:
            name = f"coverage_{100 * level:g}"
            own = splits[name].mean().xs(row["forecaster"], level="forecaster")
            head = {"forecaster": row["forecaster"], "level": level, "coverage": row[name]}
            rows.append({**head, "lowest": own.min(), "highest": own.max()})
    return pd.DataFrame(rows)


def plot_calibration(backtest: Backtest, *, ax: Axes | None = None) -> Axes:
    """Share of the held-out runs inside intervals of 50, 80, 90 and 95 %, for each forecaster.

    On the diagonal an interval holds what it says; below it forecasts are too sure of themselves. Bars span
    the backtest's splits, from that which was forecast worst to the best.
    """
    ax = canvas.axes(ax, (5.6, 4.8))
    table: Any = plot_calibration_data(backtest)
    forecasters = list(dict.fromkeys(table["forecaster"]))
    ax.plot([0, 1], [0, 1], color=canvas.GREY, linewidth=0.8, linestyle=":")
    for i, (name, colour) in enumerate(canvas.colours(forecasters).items()):
        own = table[table["forecaster"] == name]
        at = own["level"] + 0.008 * (i - (len(forecasters) - 1) / 2)  # side by side, so that bars do not hide
        ax.vlines(at, own["lowest"], own["highest"], color=colour, linewidth=1.2, alpha=0.45)
        ax.plot(at, own["coverage"], color=colour, marker=MARKS[i % len(MARKS)], markersize=5, label=name)
    ax.set(xlim=(0.45, 1), ylim=(-0.03, 1.03))
    ax.set_xticks(list(LEVELS), [f"{100 * level:g} %" for level in LEVELS])
    ax.set_xlabel("level of the equal-tailed interval of a new run")
    ax.set_ylabel("share of larger runs inside it")
    ax.legend(fontsize=canvas.SMALL, frameon=False, loc="lower right" if table["coverage"].min() > 0.4 else "best")
    made: Any = backtest.splits
    splits = len(made)
    held = amount(int(made["forecast"].sum()), "forecast")
    canvas.title(ax, "Calibration of forecasts", f"{amount(splits, 'split')}, {held}; bars: over splits", "PASS")
    failed = int((made["gate"].notna() & (made["gate"] != "PASS")).sum())
    if failed:
        note = f"gate: {HOLLOW} for {failed} of {splits} splits"
        ax.annotate(note, (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=canvas.SMALL, color=canvas.WARNING)
    return ax
