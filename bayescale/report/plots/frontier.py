"""Where the optimum is, against compute: size, and tokens per parameter."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bayescale.frontier.frontier import Frontier
from bayescale.report.plots import canvas
from bayescale.report.words import count, kind, problem

INNER = 0.5  # level of the inner band
MARKED = 12  # budgets up to which each is marked


def plot_frontier_data(frontier: Frontier) -> pd.DataFrame:
    """N_opt in parameters: see `plot_frontier`.

    Returns
    -------
    DataFrame
        One row a group and budget, budgets rising: ``budget_flop``, ``group``, ``median``, ``lower``,
        ``upper`` (at the frontier's level), ``inner_lower``, ``inner_upper`` (at 50 %; both
        equal-tailed), ``no_optimum_share``. NaN where there is no interval.
    """
    return _bands(frontier, "n_opt_params")


def plot_tokens_per_parameter_data(frontier: Frontier) -> pd.DataFrame:
    """D_opt / N_opt in tokens per parameter, as `plot_frontier_data`."""
    return _bands(frontier, "tokens_per_parameter")


def plot_frontier(frontier: Frontier, *, ax: Axes | None = None) -> Axes:
    """Compute-optimal model size against compute: median, 50 % band, and band at the frontier's level.

    The range of compute that the fitted runs reach is shaded; beyond it the law is extrapolated.
    """
    ax = canvas.axes(ax)
    canvas.log_axis(ax.yaxis, "compute-optimal size $N_{opt}$ (parameters)", count)
    return _draw(ax, frontier, plot_frontier_data(frontier), "Compute-optimal model size")


def plot_tokens_per_parameter(frontier: Frontier, *, ax: Axes | None = None) -> Axes:
    """Compute-optimal tokens per parameter against compute, drawn as `plot_frontier`."""
    ax = canvas.axes(ax)
    canvas.log_axis(ax.yaxis, "$D_{opt} / N_{opt}$ (tokens per parameter)")
    return _draw(ax, frontier, plot_tokens_per_parameter_data(frontier), "Compute-optimal tokens per parameter")


def _bands(frontier: Frontier, quantity: str) -> pd.DataFrame:
    columns = {f"{quantity}_{end}": end for end in ("median", "lower", "upper")}
    outer = frontier.to_dataframe().rename(columns=columns)
    inner = dataclasses.replace(frontier, level=INNER).to_dataframe()
    table = outer[["budget_flop", "group", *columns.values(), "no_optimum_share"]].assign(
        inner_lower=inner[f"{quantity}_lower"], inner_upper=inner[f"{quantity}_upper"]
    )
    return table.sort_values("budget_flop", kind="stable").reset_index(drop=True)


def _draw(ax: Axes, frontier: Frontier, table: pd.DataFrame, what: str) -> Axes:
    canvas.flop_axis(ax)
    colour = canvas.colours(frontier.groups)
    for group in frontier.groups:
        own = table[table["group"].isna() if group is None else table["group"] == group]
        _band(ax, own, colour[group], None if group is None else canvas.safe(group))
    if len(frontier.groups) > 1:
        ax.legend(fontsize=canvas.SMALL, loc="upper left", frameon=False)
    _reach(ax, frontier)
    name = "" if len(frontier.groups) > 1 or next(iter(frontier.groups)) is None else f", {next(iter(frontier.groups))}"
    caption = f"{problem(frontier)}; median, {100 * INNER:g} % and {kind(frontier.level)} bands"
    canvas.title(ax, f"{what}{name}", caption, frontier.diagnostics, frontier.warning)
    return ax


def _band(ax: Axes, own: Any, colour: Any, label: str | None) -> None:
    flop, marker = own["budget_flop"], "o" if len(own) <= MARKED else ""
    if len(own) == 1:  # a band over one budget has no width
        for lower, upper, width in (("lower", "upper", 2), ("inner_lower", "inner_upper", 5)):
            ax.vlines(flop, own[lower], own[upper], color=colour, linewidth=width, alpha=0.5)
    else:
        ax.fill_between(flop, own["lower"], own["upper"], color=colour, alpha=0.18, linewidth=0)
        ax.fill_between(flop, own["inner_lower"], own["inner_upper"], color=colour, alpha=0.3, linewidth=0)
    ax.plot(flop, own["median"], color=colour, marker=marker, markersize=4, linewidth=1.6, label=label)


def _reach(ax: Axes, frontier: Frontier) -> None:
    """Shade what the runs reach, and say what lies beyond."""
    low, high = ax.get_xlim() if len(frontier.budgets) > 1 else (frontier.budgets[0] / 10, frontier.budgets[0] * 10)
    ax.set_xlim(low, high)
    edge = frontier.largest["flop"]
    if edge < low:
        ax.text(
            0.99,
            0.02,
            "all of it extrapolation",
            transform=ax.transAxes,
            ha="right",
            fontsize=canvas.SMALL,
            color=canvas.GREY,
        )
        return
    ax.axvspan(low, min(edge, high), color=canvas.GREY, alpha=0.1, linewidth=0)
    if edge < high:
        ax.axvline(edge, color=canvas.GREY, linewidth=0.8, linestyle=":")
        at = {
            "xycoords": ax.get_xaxis_transform(),
            "textcoords": "offset points",
            "fontsize": canvas.SMALL,
            "color": canvas.GREY,
        }
        ax.annotate("fitted runs", (edge, 0.02), (-5, 0), ha="right", **at)
        ax.annotate("extrapolation", (edge, 0.02), (5, 0), ha="left", **at)
