"""What pilots are worth against what they cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bayescale.decision.pilots import Pilots
from bayescale.report.plots import canvas
from bayescale.report.words import count, number

LEAST = 1e-3  # of the highest gain: lower ones are drawn there


def plot_pilots_data(pilots: Pilots) -> pd.DataFrame:
    """Cost and gain of every candidate: see `plot_pilots`.

    Returns
    -------
    DataFrame
        One row a candidate, as `Pilots.to_dataframe`.
    """
    return pilots.to_dataframe()


def plot_pilots(pilots: Pilots, *, ax: Axes | None = None) -> Axes:
    """What each pilot is worth against what it costs, both in FLOPs, coloured by tokens per parameter.

    Above the line a pilot is worth more than it costs; bars are two Monte Carlo standard errors, where they are told.
    """
    ax, table = canvas.axes(ax), plot_pilots_data(pilots)
    cost, gain = table["cost_flop"], table["gain_flop"]
    floor = max(gain.max() * LEAST, 1.0)
    ratio = np.log10(table["n_tokens"] / table[pilots.plan.posterior.law.size])
    error = 2 * (table["gain_error"].astype(float) * pilots.exchange.flop).fillna(0.0)
    shown = gain.clip(lower=floor)
    below = np.minimum(error, shown - floor)
    ax.errorbar(cost, shown, yerr=[below, error], fmt="none", ecolor=canvas.GREY, elinewidth=0.8, zorder=1)
    dots = ax.scatter(cost, shown, c=ratio, cmap=canvas.SHADES, s=28, zorder=2)
    canvas.flop_axis(ax, "cost of the pilot (FLOP)")
    canvas.log_axis(ax.yaxis, "expected gain (FLOP)")
    ends = np.array([cost.min() / 1.5, cost.max() * 1.5])
    ax.plot(ends, ends, color=canvas.INK, linewidth=1, linestyle="--")
    ax.set(xlim=ends, ylim=(floor / 1.5, 2 * max((shown + error).max(), floor)))
    said = {"fontsize": canvas.SMALL, "color": canvas.GREY, "transform": ax.transAxes}
    ax.text(0.02, 0.95, "above the line: worth more than it costs", **said)
    bar = ax.figure.colorbar(dots, ax=ax)
    bar.set_label("tokens per parameter")
    bar.ax.yaxis.set_major_formatter(lambda value, _: canvas.short(number(10**value)))
    plan = pilots.plan
    caption = f"plan: {count(plan.n_params)} parameters, {number(plan.flop)} FLOP; by its {plan.problem.risk}"
    canvas.title(ax, "What a pilot is worth", caption, pilots.diagnostics, pilots.warning)
    return ax
