"""What a result says, laid out once and written twice: as plain text and as HTML.

Text is at most 80 columns wide wherever its names allow it, in a terminal of any width, and has no
colour. In HTML every word is escaped: names of groups and runs come from users' files.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from bayescale.report.words import NONE, printable

WIDTH = 80
GAP = "  "
BREAK = 32  # letters of a word on one line of a narrow window
LONG = re.compile(r"\S+")
STATUS_STYLE = "font-weight:bold;color:#a33b00"  # vermillion, told from green and black in any colour vision


@final
@dataclass(frozen=True)
class Table:
    """Cells of text under a caption; a cell may stand on several lines."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """Columns of numbers aligned to the right, the first and those of words to the left."""
        lines = [[cell.split("\n") for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(line) for row in lines for line in row[i]) for i in range(len(self.header))]
        out = [*_wrapped(self.caption), *_aligned(lines[0], widths, self._left), GAP.join("-" * w for w in widths)]
        return "\n".join([*out, *(line for row in lines[1:] for line in _aligned(row, widths, self._left))])

    @property
    def _left(self) -> list[bool]:
        """Which columns are aligned to the left."""
        return [i == 0 or not all(_numeric(row[i]) for row in self.rows) for i in range(len(self.header))]

    def html(self) -> str:
        """A table element with its caption."""
        side = ['style="text-align:left"' if left else 'style="text-align:right"' for left in self._left]
        head = "".join(f'<th scope="col" {s}>{_escaped(c)}</th>' for s, c in zip(side, self.header, strict=True))
        cells = ("".join(f"<td {s}>{_escaped(c)}</td>" for s, c in zip(side, row, strict=True)) for row in self.rows)
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        caption = f'<caption style="text-align:left">{_escaped(self.caption)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


@final
@dataclass(frozen=True)
class Notes:
    """Sentences under a heading."""

    heading: str
    lines: tuple[str, ...]

    def text(self) -> str:
        """A list, one item a sentence."""
        items = (_wrapped(line, "  - ", "    ") for line in self.lines)
        return "\n".join([*_wrapped(self.heading), *(part for item in items for part in item)])

    def html(self) -> str:
        """A heading and a list."""
        items = "".join(f"<li>{_escaped(line)}</li>" for line in self.lines)
        return f"<p><b>{_escaped(self.heading)}</b></p><ul>{items}</ul>"


@final
@dataclass(frozen=True)
class Page:
    """A result in words: a warning first if there is one, a title, lines about it, then its parts."""

    warning: str | None
    title: str
    lines: tuple[str, ...]
    parts: Sequence[Table | Notes]

    def text(self) -> str:
        """The page in plain text."""
        head = [*(_wrapped(self.warning) if self.warning else []), *_wrapped(self.title)]
        head += [part for line in self.lines for part in _wrapped(line, "  ", "    ")]
        return "\n\n".join(["\n".join(head), *(part.text() for part in self.parts)])

    def html(self) -> str:
        """The page as an HTML fragment."""
        warning = f'<p style="{STATUS_STYLE}">{_escaped(self.warning)}</p>' if self.warning else ""
        lines = "".join(f"<br>{_escaped(line)}" for line in self.lines)
        return f"<div>{warning}<p><b>{_escaped(self.title)}</b>{lines}</p>{''.join(p.html() for p in self.parts)}</div>"


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _aligned(cells: Sequence[Sequence[str]], widths: Sequence[int], left: Sequence[bool]) -> list[str]:
    """The lines of one row."""
    height = max(len(cell) for cell in cells)
    filled = [[*map(printable, cell), *[""] * (height - len(cell))] for cell in cells]
    return [
        GAP.join(
            line.ljust(w) if to_left else line.rjust(w) for line, w, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in zip(*filled, strict=True)
    ]


def _numeric(cell: str) -> bool:
    return cell == NONE or cell.lstrip("-")[:1].isdigit()


def _escaped(text: str) -> str:
    return "<br>".join(map(escaped, text.split("\n")))


def escaped(text: str) -> str:
    """Text on one line as HTML shows it; words too long for a window may break."""
    return LONG.sub(lambda word: "<wbr>".join(map(html.escape, _pieces(word[0]))), printable(text))


def _pieces(word: str) -> list[str]:
    return [word[i : i + BREAK] for i in range(0, len(word), BREAK)]
