"""A report as Markdown: its words and tables, without figures and planner."""

from __future__ import annotations

import re

from bayescale.report.document import Document, Section
from bayescale.report.tables import Notes, Table
from bayescale.report.words import printable

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")  # what Markdown, or the HTML in it, would read as markup


def write(document: Document) -> str:
    """The text."""
    first = [f"**{_escaped(document.warning)}**"] if document.warning else []
    head = [*first, f"# {_escaped(document.title)}", *map(_escaped, document.answer)]
    return "\n\n".join([*head, *map(_section, document.sections)]) + "\n"


def _section(section: Section) -> str:
    parts = [_part(part) for part in section.parts if isinstance(part, Table | Notes)]
    return "\n\n".join([f"## {_escaped(section.heading)}", *parts]) if parts else ""


def _part(part: Table | Notes) -> str:
    if isinstance(part, Notes):
        return "\n".join([f"**{_escaped(part.heading)}**", "", *(f"- {_escaped(line)}" for line in part.lines)])
    rows = [part.header, ("---",) * len(part.header), *part.rows]
    lines = [f"| {' | '.join(cell if cell == '---' else _cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([*([f"**{_escaped(part.caption)}**", ""] if part.caption else []), *lines])


def _cell(text: str) -> str:
    return "<br>".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", printable(text))
