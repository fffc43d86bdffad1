"""What all figures share: axes, colours, a title with a warning, a caption, labels in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from bayescale.report.words import number, printable

# Okabe & Ito 2008, "Color universal design": told apart with any colour vision; yellow left out, too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
WARNING = "#a33b00"
INK, GREY = "#222222", "#666666"
# Without its yellow end, which is too pale on white.
SHADES = ListedColormap(mpl.colormaps["viridis"](range(232)), name="viridis-dark")
SMALL = 8.5


def axes(ax: Axes | None, size: tuple[float, float] = (7.2, 4.6)) -> Axes:
    """The axes given, or those of a new figure."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def colours(names: Sequence[Any]) -> dict[Any, Any]:
    """A colour for each name; shades of one map where there are more names than colours."""
    if len(names) <= len(COLOURS):
        return dict(zip(names, COLOURS, strict=False))
    return {name: SHADES(i / (len(names) - 1)) for i, name in enumerate(names)}


def title(ax: Axes, text: str, caption: str, status: str, warning: str | None = None) -> None:
    """A title, under it a caption in small; above both a warning where the fit's diagnostics did not pass.

    ``warning`` is of intervals beyond the data.
    """
    diagnosed = None if status == "PASS" else f"{status}: do not decide on this fit"
    first = [line for line in (warning, diagnosed) if line]
    ax.set_title("\n".join([*first, safe(text)]), loc="left", fontsize=11, pad=20, color=WARNING if first else INK)
    ax.annotate(safe(caption), (0, 1), (0, 5), "axes fraction", "offset points", fontsize=SMALL, color=GREY)


def safe(text: str) -> str:
    """Text of a user's as it stands: without control characters, and without mathtext."""
    return printable(text).replace("\\", "\\\\").replace("$", r"\$")


def flop_axis(ax: Axes, label: str = "training compute (FLOP)") -> None:
    """Compute along x, in powers of ten."""
    ax.set_xscale("log")
    ax.set_xlabel(label)


def log_axis(axis: Any, label: str, write: Callable[[float], str] = number) -> None:
    """A log axis in plain numbers, over a fraction of a decade or several; with ``count``, as 100 M, 1 B."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(_Round())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(write(value))))
    axis.set_minor_locator(NullLocator())
    axis.set_label_text(label)


def short(text: str) -> str:
    """A tick's number without zeros at its end: ``2.00 B`` is ``2 B``."""
    digits, space, magnitude = text.partition(" ")
    return (digits.rstrip("0").rstrip(".") if "." in digits and "e" not in digits else digits) + space + magnitude


class _Round(MaxNLocator):
    """Round numbers on a log axis: 1, 2, 5 over decades, evenly spaced ones over less than one."""

    def __init__(self) -> None:
        MaxNLocator.__init__(self, nbins=7, steps=[1, 2, 5, 10])

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = sorted((vmin, vmax))
        if low <= 0 or high / low < 5:
            return super().tick_values(vmin, vmax)
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = (1, 2, 5) if last - first < 4 else (1,)
        return [m * 10.0**k for k in range(first, last + 1) for m in steps if low <= m * 10.0**k <= high]
