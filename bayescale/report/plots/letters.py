"""The posterior of the law's letters, in pairs."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import gaussian_filter

from bayescale.parameter import Quantity
from bayescale.posterior.posterior import Posterior
from bayescale.report.plots import canvas
from bayescale.report.words import drawn_from, kind, law_name

BINS, SMOOTH = 60, 2.5  # cells along an axis, and the kernel's width in cells
INNER = 0.5
WIDE = 3.0  # a letter whose interval spans more than this factor is drawn on a log axis
LABEL = 16  # characters of a unit on one line
MARGIN = 0.12  # of the range, for the kernel's tails
EDGE = 0.001  # share of the draws left outside the axes at either end


def plot_posterior_data(posterior: Posterior) -> pd.DataFrame:
    """Draws of the letters: see `plot_posterior`. One row a chain, draw and group."""
    names = [q.name for q in posterior.law.coefficients]
    table: Any = posterior.to_dataframe()
    return table[[c for c in ("chain", "draw", "group") if c in table] + names]


def plot_posterior(posterior: Posterior, *, level: float = 0.9, ax: Any = None) -> np.ndarray:
    """Pair plot of the law's letters, a colour for each group.

    On the diagonal the density of each letter, with median and equal-tailed interval; below it, for
    each pair, the smallest regions that hold 50 % of the draws and ``level`` of them.

    Parameters
    ----------
    level : float
        Probability inside the intervals and the outer regions.
    ax : array of Axes (letters, letters), optional
        Where to draw; a new figure unless given.

    Returns
    -------
    array of Axes (letters, letters)
        Those above the diagonal are off.

    Raises
    ------
    ValueError
        For a fit of a single draw, which has no density; or axes of another shape.
    """
    table: Any = plot_posterior_data(posterior)
    letters = posterior.law.coefficients
    if len(table) // max(1, len(posterior.groups)) < 4:
        raise ValueError("A pair plot needs draws; this posterior is one point. Its letters are in summary().")
    grid = _grid(len(letters), ax)
    colour = canvas.colours(posterior.groups or (None,))
    scale = {q.name: _Scale(table[q.name].to_numpy(float)) for q in letters}
    for group in colour:
        own = table if group is None else table[table["group"] == group]
        cells = {name: _Cells(own[name].to_numpy(float), scale[name].log) for name in scale}
        for i, row in enumerate(letters):
            _density(grid[i, i], cells[row.name], level, colour[group])
            for j, column in enumerate(letters[:i]):
                _regions(grid[i, j], cells[column.name], cells[row.name], level, colour[group])
    _label(grid, letters, scale, posterior)
    _head(grid, posterior, level, colour)
    return grid


class _Scale:
    """The range of one letter over all groups, on a linear or a log axis."""

    def __init__(self, values: np.ndarray) -> None:
        low, high = np.quantile(values, [0.05, 0.95])
        self.log = bool(low > 0 and high / low > WIDE)
        self.limits = tuple(_Cells(values, self.log).centers[[0, -1]])


class _Cells:
    """One group's draws of one letter, and the cells that they are counted in, even on the axis' own scale."""

    def __init__(self, values: np.ndarray, log: bool) -> None:
        self.values, self.own = values, np.log(values) if log else values
        low, high = np.quantile(self.own, [EDGE, 1 - EDGE])
        margin = MARGIN * (high - low) or 0.01 * abs(low) or 1.0
        self.edges = np.linspace(low - margin, high + margin, BINS + 1)
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        self.centers = np.exp(middle) if log else middle


def _grid(n: int, ax: Any) -> np.ndarray:
    if ax is None:
        return plt.subplots(n, n, figsize=(1.9 * n, 1.75 * n), layout="constrained", squeeze=False)[1]
    given = np.asarray(ax, dtype=object)
    if given.shape != (n, n):
        raise ValueError(f"A pair plot of {n} letters takes an array of axes of shape ({n}, {n}), not {given.shape}.")
    return given


def _density(ax: Axes, cells: _Cells, level: float, colour: Any) -> None:
    height = gaussian_filter(np.histogram(cells.own, cells.edges)[0].astype(float), SMOOTH)
    height /= height.max()
    lower, median, upper = np.quantile(cells.values, [(1 - level) / 2, 0.5, (1 + level) / 2])
    at = cells.centers
    ax.plot(at, height, color=colour, linewidth=1.3)
    ax.fill_between(at, height, where=((at >= lower) & (at <= upper)).tolist(), color=colour, alpha=0.2, linewidth=0)
    ax.vlines(median, 0, np.interp(median, at, height), color=colour, linewidth=1)


def _regions(ax: Axes, x: _Cells, y: _Cells, level: float, colour: Any) -> None:
    """Contours of the smallest regions that hold 50 % and ``level`` of the draws."""
    height = gaussian_filter(np.histogram2d(x.own, y.own, [x.edges, y.edges])[0], SMOOTH).T
    ordered = np.sort(height.ravel())[::-1]
    inside = np.cumsum(ordered) / ordered.sum()
    outer, inner = sorted(float(ordered[np.searchsorted(inside, p)]) for p in (level, INNER))
    if not 0 < outer < inner < height.max():
        ax.plot(x.values, y.values, ".", color=colour, markersize=1, alpha=0.3)
        return
    ax.contourf(x.centers, y.centers, height, [outer, inner, height.max()], colors=[colour, colour], alpha=0.25)
    ax.contour(x.centers, y.centers, height, [outer, inner], colors=[colour], linewidths=[0.7, 1.1])


def _label(grid: Any, letters: tuple[Quantity, ...], scale: dict[str, _Scale], posterior: Posterior) -> None:
    last = len(letters) - 1
    for i, j in np.ndindex(grid.shape):
        ax, row, column = grid[i, j], letters[i], letters[j]
        if j > i:
            ax.axis("off")
            continue
        _axis(ax.xaxis, column, scale[column.name], posterior if i == last else None)
        if j < i:
            _axis(ax.yaxis, row, scale[row.name], posterior if j == 0 else None)
        else:
            ax.set_yticks([])
            ax.set_ylim(bottom=0)
        ax.tick_params(labelsize=canvas.SMALL - 1.5, labelbottom=i == last, labelleft=0 == j < i)
        for label in ax.get_xticklabels():
            label.set_rotation(40)
            label.set_ha("right")


def _axis(axis: Any, letter: Quantity, scale: _Scale, posterior: Posterior | None) -> None:
    """Scale and ticks; a label with the unit where ``posterior`` is given (the outer axes)."""
    unit = "" if letter.unit == "1" or posterior is None else f"\n({_unit(letter, posterior)})"
    label = "" if posterior is None else f"{letter.symbol}{unit}"
    if scale.log:
        canvas.log_axis(axis, label)
    else:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_label_text(label)
    axis.label.set_fontsize(canvas.SMALL)
    axis.axes.set(**{f"{axis.axis_name}lim": scale.limits})


def _unit(letter: Quantity, posterior: Posterior) -> str:
    """The unit on lines short enough for one of the axes."""
    return "\n".join(map(canvas.safe, textwrap.wrap(letter.unit.replace("loss", posterior.loss_unit), LABEL)))


def _head(grid: np.ndarray, posterior: Posterior, level: float, colour: dict[Any, Any]) -> None:
    """Title, caption and groups, in the empty corner; the layout leaves no room for them elsewhere."""
    corner = grid[0, min(1, len(grid) - 1)]
    passed = posterior.status == "PASS"
    warning = "" if passed else f"{posterior.status}: do not decide on this fit\n"
    name = law_name(posterior.law, posterior.model.drift is not None)
    text = (
        (
            0.95,
            f"{warning}{drawn_from(posterior).capitalize()} of {name}",
            11,
            canvas.INK if passed else canvas.WARNING,
        ),
        (
            0.82 if passed else 0.68,
            f"diagonal: median and {kind(level)} interval\n"
            f"below: smallest regions with {100 * INNER:g} % and {100 * level:g} % of the draws",
            canvas.SMALL,
            canvas.GREY,
        ),
    )
    for y, words, size, ink in text:
        corner.text(0.15, y, words, fontsize=size, color=ink, transform=corner.transAxes, va="top").set_in_layout(False)
    if len(colour) > 1:
        keys = [Line2D([], [], color=c, label=canvas.safe(str(group))) for group, c in colour.items()]
        below = grid[min(1, len(grid) - 1), -1]
        below.legend(handles=keys, fontsize=canvas.SMALL, frameon=False, loc="upper right").set_in_layout(False)
