"""A report: the answer, then sections, each with tables, notes and figures; written by the files ``as_*``.

What is in it is decided here and in the files that make its sections, how it looks in the templates.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

from bayescale.report.words import printable

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "path",  # letters as outlines: the same on a machine that lacks the font
    "svg.hashsalt": "bayescale",  # the same figure gives the same bytes
    "figure.facecolor": "white",
}


class Part(Protocol):
    """What a section is made of."""

    def html(self) -> str:
        """As an HTML fragment, all that it names escaped."""
        ...


@final
@dataclass(frozen=True)
class Figure:
    """A figure, drawn when it is written; ``alt`` says in words what it shows.

    It is put into a page as a picture, in which no script runs.
    """

    draw: Callable[[], Any]
    alt: str

    def html(self) -> str:
        """The picture, with its text."""
        data = base64.b64encode(self.svg()).decode()
        return f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{html.escape(printable(self.alt))}"></figure>'

    def svg(self) -> bytes:
        """The drawing, its letters as outlines."""
        import matplotlib as mpl
        import matplotlib.pyplot as plt
        import numpy as np
        from matplotlib.axes import Axes

        with mpl.rc_context(SETTINGS):
            found = self.draw()
            axes = found if isinstance(found, Axes) else np.ravel(found)[0]
            figure: Any = axes.get_figure(root=True)
            held = io.BytesIO()
            figure.savefig(held, format="svg", metadata={"Date": None})
            plt.close(figure)
        return held.getvalue()


@final
@dataclass(frozen=True)
class Section:
    """A heading, the ``name`` by which a link finds it, and what stands below."""

    name: str
    heading: str
    parts: Sequence[Part]


@final
@dataclass(frozen=True)
class Document:
    """A report.

    Attributes
    ----------
    title : str
        Of what.
    warning : str or None
        The first line, of a result that is not to be relied on.
    answer : sequence of str
        The answer, a sentence each.
    sections : sequence of Section
        What it rests on, the most wanted first.
    """

    title: str
    warning: str | None
    answer: Sequence[str]
    sections: Sequence[Section]


def sections(*given: Section | None) -> Iterator[Section]:
    """Those that have something in them."""
    return (each for each in given if each is not None and each.parts)
