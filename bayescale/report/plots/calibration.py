"""Forecasts of a backtest, or of a ledger, against what came."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.ledger import Ledger, hollow
from bayescale.posterior.scorecard import ALL, LEVELS, Backtest
from bayescale.posterior.scores import chance
from bayescale.report.plots import canvas
from bayescale.report.words import amount

MARKS = ("o", "s", "^")


def plot_calibration_data(found: Backtest | Ledger) -> pd.DataFrame:
    """Coverage against nominal level: see `plot_calibration`.

    Returns
    -------
    DataFrame
        One row a forecaster and level: ``forecaster``, ``level``, ``coverage``, ``lowest`` and ``highest``. Of
        a backtest, means within group, split and extrapolation factor, then over those, and the lowest and
        highest of the splits' own means; of a ledger, the share of runs, and the ends of what so many
        independent runs leave open, with 90 % (`scores.chance`).
    """
    return _of_ledger(found) if isinstance(found, Ledger) else _of_backtest(found)


def _of_ledger(ledger: Ledger) -> pd.DataFrame:
    summary: Any = ledger.summary()
    rows = []
    for row in summary[summary["bin"] == ALL].to_dict("records") if len(summary) else []:
        for level in LEVELS:
            coverage, runs = row[f"coverage_{100 * level:g}"], row["runs"]
            ends = dict(zip(("lowest", "highest"), chance(round(coverage * runs), runs), strict=True))
            rows.append({"forecaster": row["forecaster"], "level": level, "coverage": coverage, **ends})
    return pd.DataFrame(rows, columns=["forecaster", "level", "coverage", "lowest", "highest"])


def _of_backtest(backtest: Backtest) -> pd.DataFrame:
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


def plot_calibration(found: Backtest | Ledger, *, ax: Axes | None = None) -> Axes:
    """Share of the runs that were forecast inside intervals of 50, 80, 90 and 95 %, for each forecaster.

    On the diagonal an interval holds what it says; below it forecasts are too sure of themselves. Bars span
    a backtest's splits, from that which was forecast worst to the best; of a ledger, the coverages that its
    runs leave open, were they independent.

    Raises
    ------
    ValueError
        For a ledger in which no forecast has landed.
    """
    table: Any = plot_calibration_data(found)
    if not len(table):
        raise ValueError("No forecast of this ledger has landed: there is nothing to draw yet.")
    ax = canvas.axes(ax, (5.6, 4.8))
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
    ax.set_ylabel("share of runs inside it")
    ax.legend(fontsize=canvas.SMALL, frameon=False, loc="lower right" if table["coverage"].min() > 0.4 else "best")
    caption, failed, of = _from_ledger(found) if isinstance(found, Ledger) else _from_backtest(found)
    canvas.title(ax, "Calibration of forecasts", caption, "PASS")
    if failed:
        note = f"gate: {HOLLOW} for {failed} of {of}"
        ax.annotate(note, (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=canvas.SMALL, color=canvas.WARNING)
    return ax


def _from_backtest(backtest: Backtest) -> tuple[str, int, str]:
    """What the figure rests on, and how much of that failed the gate."""
    made: Any = backtest.splits
    splits = amount(len(made), "split")
    held = amount(int(made["forecast"].sum()), "forecast")
    return f"{splits}, {held}; bars: over splits", int((made["gate"].notna() & (made["gate"] != "PASS")).sum()), splits


def _from_ledger(ledger: Ledger) -> tuple[str, int, str]:
    landed = [e for e in ledger.entries() if e["landing"]]
    runs = amount(len(landed), "run")
    return f"{runs} that landed; bars: 90 %, were runs independent", sum(map(hollow, landed)), runs
