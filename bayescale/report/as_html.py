"""A report as one HTML file, which needs no network: styles, script, figures and numbers are in it.

Nothing from a table is ever markup: words are escaped where they are written, and the page's own policy lets
the one script that it came with run, by its hash, and no other.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files

from bayescale.report.document import Document, Section
from bayescale.report.tables import escaped
from bayescale.report.words import printable

TEMPLATE = files("bayescale.report") / "template"


def write(document: Document) -> str:
    """The page."""
    style, script = _template("report.css"), _template("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<li><a href="#{s.name}">{escaped(s.heading)}</a></li>' for s in document.sections)
    first = f'<p class="status" role="alert">{escaped(document.warning)}</p>' if document.warning else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(printable(document.title))}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{first}"
        f"<h1>{escaped(document.title)}</h1>\n"
        f'<div class="answer">{"".join(f"<p>{escaped(line)}</p>" for line in document.answer)}</div>\n'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n{"".join(map(_section, document.sections))}</main>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = "\n".join(_held(part.html()) for part in section.parts)
    heading = f'<h2 id="{section.name}-heading">{escaped(section.heading)}</h2>'
    return f'<section id="{section.name}" aria-labelledby="{section.name}-heading">{heading}\n{parts}</section>\n'


def _held(part: str) -> str:
    """A table in a box of its own, which scrolls where the window is narrower than it."""
    return f'<div class="wide" tabindex="0" role="group">{part}</div>' if part.startswith("<table") else part


def _template(name: str) -> str:
    return (TEMPLATE / name).read_text("utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
