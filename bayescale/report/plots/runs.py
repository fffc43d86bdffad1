"""Runs against the law that was fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from bayescale.posterior.checks import outliers
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.report.plots import canvas
from bayescale.report.words import amount, count, drawn_from, kind, law_name

CURVES, POINTS = 6, 50  # model sizes drawn at most, and points of each curve
SAME_SIZE = 1.05  # sizes within 5 % are drawn as one
NAMED = 6  # flagged runs whose names are written
AGAINST = {
    "flop": "training compute (FLOP)",
    "n_params": "model size $N$ (parameters)",
    "n_tokens": "tokens seen $D$",
}


def plot_fit_data(posterior: Posterior, *, group: str | None = None, level: float = 0.9) -> pd.DataFrame:
    """Runs and curves of the law: see `plot_fit`.

    Returns
    -------
    DataFrame
        ``part`` is ``run`` or ``law``; ``n_params`` (parameters), ``n_tokens`` (tokens), ``flop``,
        ``loss`` (of the run, or posterior median of the mean), ``lower``, ``upper`` (equal-tailed
        interval of the mean; NaN for runs), ``run`` and ``flagged`` (of a run).

    Raises
    ------
    ValueError
        If the fit has groups and none is named, or no runs.
    """
    runs: Any = _runs(posterior)
    if posterior.named(group) is not None:
        runs = runs[runs["group"] == group]
    grid = _curves(runs, posterior)
    law: Any = predict(posterior, grid, group=group, level=level).to_dataframe()
    law = law.rename(
        columns={f"loss_mean_{a}": b for a, b in (("median", "loss"), ("lower", "lower"), ("upper", "upper"))}
    )
    numbers = ["n_params", "n_tokens", "flop", "loss"]
    both = [runs[["run", *numbers, "flagged"]].assign(part="run"), law[[*numbers, "lower", "upper"]].assign(part="law")]
    return pd.concat(both, ignore_index=True).astype({"flagged": "boolean"})


def plot_fit(posterior: Posterior, *, group: str | None = None, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Loss against compute: the runs, coloured by size, and the law along some of their sizes.

    Each curve is the posterior median of the mean loss at one size, with its equal-tailed band, over
    the compute that runs of about that size span. Runs flagged as outliers are ringed.

    Parameters
    ----------
    group : str, optional
        The group that is drawn; needed where the fit has groups.
    level : float
        Probability inside the band.
    """
    table: Any = plot_fit_data(posterior, group=group, level=level)
    ax = canvas.axes(ax)
    runs, law = (table[table["part"] == part] for part in ("run", "law"))
    shade = LogNorm(*_limits(runs["n_params"]))
    for size, curve in law.groupby("n_params"):
        colour = canvas.SHADES(shade(size))
        ax.fill_between(curve["flop"], curve["lower"], curve["upper"], color=colour, alpha=0.25, linewidth=0)
        ax.plot(curve["flop"], curve["loss"], color=colour, linewidth=1.3)
    points = ax.scatter(runs["flop"], runs["loss"], c=runs["n_params"], cmap=canvas.SHADES, norm=shade, s=16, zorder=3)
    _ring(ax, runs, "flop", "loss")
    canvas.flop_axis(ax)
    canvas.log_axis(ax.yaxis, f"loss ({posterior.loss_unit})")
    low, high = runs["loss"].min(), runs["loss"].max()
    ax.set_ylim(low * (low / high) ** 0.08, high * (high / low) ** 0.08 if high > low else high * 1.01)
    canvas.log_axis(ax.figure.colorbar(points, ax=ax, pad=0.01).ax.yaxis, AGAINST["n_params"], count)
    who = f", {group}" if group is not None else ""
    canvas.title(
        ax,
        f"{_law(posterior)} against {amount(len(runs), 'run')}{who}",
        f"curves: {drawn_from(posterior)} median of the mean loss at one size, {kind(level)} band",
        posterior.status,
    )
    return ax


def plot_residuals_data(posterior: Posterior, *, level: float = 0.9) -> pd.DataFrame:
    """Residuals of the runs: see `plot_residuals`.

    Returns
    -------
    DataFrame
        One row a run: ``run``, ``group``, ``n_params``, ``n_tokens``, ``flop``, ``residual_percent``
        (100 times the posterior median residual of log loss), ``lower``, ``upper`` (equal-tailed
        interval of that of a new run like it, percent), ``flagged``.
    """
    runs = _runs(posterior)
    new = posterior.tree["posterior_predictive"].dataset["loss"].values
    spread = np.log(np.quantile(new.reshape(-1, new.shape[-1]), [(1 - level) / 2, (1 + level) / 2], axis=0))
    lower, upper = 100 * (spread - np.log(runs["loss_expected"].to_numpy()))
    table = runs[["run", "group", "n_params", "n_tokens", "flop"]]
    return table.assign(residual_percent=100 * runs["residual"], lower=lower, upper=upper, flagged=runs["flagged"])


def plot_residuals(posterior: Posterior, *, against: str = "flop", level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Residuals of log loss against compute, size or tokens: a trend is what the law's form misses.

    Parameters
    ----------
    against : {"flop", "n_params", "n_tokens"}
        What is along x.
    level : float
        Probability inside the grey interval of a new run at each run's inputs.
    """
    if against not in AGAINST:
        raise ValueError(f"against is one of {', '.join(AGAINST)}, not {against!r}.")
    table: Any = plot_residuals_data(posterior, level=level)
    ax = canvas.axes(ax)
    ax.vlines(table[against], table["lower"], table["upper"], color=canvas.GREY, alpha=0.25, linewidth=1.2)
    ax.axhline(0, color=canvas.INK, linewidth=0.8)
    for group, colour in canvas.colours(posterior.groups or (None,)).items():
        own = table if group is None else table[table["group"] == group]
        label = None if group is None else canvas.safe(group)
        ax.plot(own[against], own["residual_percent"], "o", color=colour, markersize=3.5, label=label)
    _ring(ax, table, against, "residual_percent")
    width = float((table["upper"] - table["lower"]).median())
    if table["residual_percent"].abs().max() > 10 * width:  # a few runs that went wrong would flatten the rest
        ax.set_yscale("symlog", linthresh=width)
        ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=width, subs=[1, 3]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    canvas.flop_axis(ax) if against == "flop" else canvas.log_axis(ax.xaxis, AGAINST[against], count)
    ax.set_ylabel("log loss minus the law's, x 100 (%)")
    if posterior.groups:
        ax.legend(fontsize=canvas.SMALL, frameon=False)
    caption = f"{drawn_from(posterior)} medians; grey: {kind(level)} interval of a new run at the same inputs"
    canvas.title(ax, f"Residuals of {amount(len(table), 'run')} from {_law(posterior)}", caption, posterior.status)
    return ax


def _law(posterior: Posterior) -> str:
    return law_name(posterior.law, posterior.model.drift is not None)


def _runs(posterior: Posterior) -> pd.DataFrame:
    """The runs, with what is expected of them and whether they are flagged."""
    found = outliers(posterior)
    assert posterior.runs is not None  # `outliers` has refused a fit without runs
    t = posterior.runs.table
    by = posterior.model.pooling.by
    group = posterior.runs.labels(by)[0] if posterior.groups and by else None
    return found.assign(group=group, **{k: t[k].to_numpy(float) for k in ("n_params", "n_tokens", "flop")})


def _curves(runs: Any, posterior: Posterior) -> dict[str, np.ndarray]:
    """Inputs along some of the sizes, each over the tokens that runs of about that size span."""
    logs = np.log(runs["n_params"].to_numpy())
    order = np.sort(logs)
    sizes = np.array([part.mean() for part in np.split(order, np.flatnonzero(np.diff(order) > np.log(SAME_SIZE)) + 1)])
    if len(sizes) > CURVES:
        sizes = np.linspace(np.quantile(logs, 0.02), np.quantile(logs, 0.98), CURVES)
    nearest = np.abs(logs[:, None] - sizes).argmin(axis=1)
    curves = []
    for i, size in enumerate(sizes):
        own = runs[nearest == i]
        if len(own):
            low, high = own["flop"].min(), own["flop"].max()
            low, high = (low / 2, high * 2) if low == high else (low, high)
            flop = np.geomspace(low, high, POINTS)
            curves.append((np.full(POINTS, np.exp(size)), posterior.rule.tokens(flop, np.exp(size))))
    n_params, n_tokens = (np.concatenate(c) for c in zip(*curves, strict=True))
    return {"n_params": n_params, "n_tokens": n_tokens}


def _limits(sizes: Any) -> tuple[float, float]:
    low, high = float(sizes.min()), float(sizes.max())
    return (low, high) if high > low else (low / 2, high * 2)


def _ring(ax: Axes, table: Any, x: str, y: str) -> None:
    """Ring the flagged runs, and name the first few."""
    flagged = table[table["flagged"].fillna(False).astype(bool)]
    if not len(flagged):
        return
    label = f"flagged as outlier ({len(flagged)})"
    style = {"facecolors": "none", "edgecolors": canvas.WARNING, "linewidths": 1.2, "s": 60, "zorder": 4}
    ax.scatter(flagged[x], flagged[y], label=label, **style)
    ax.legend(fontsize=canvas.SMALL, frameon=False, loc="best")
    if len(flagged) <= NAMED:
        for run, at_x, at_y in zip(flagged["run"], flagged[x], flagged[y], strict=True):
            place = {"textcoords": "offset points", "fontsize": canvas.SMALL - 1.5, "color": canvas.WARNING}
            ax.annotate(canvas.safe(run), (at_x, at_y), (6, 3), **place)
