"""How a result shows itself in a terminal and in a notebook."""

from __future__ import annotations

import importlib
from typing import Any

# Results live below the room that words them, and a floor imports only from floors below its own.
# So the room is looked up by its name, at the first time that anything is shown.
ROOM = "bayescale.report.show"


def text(result: Any) -> str:
    """The result in plain text, at most 80 columns wide."""
    return importlib.import_module(ROOM).page(result).text()


def html(result: Any) -> str:
    """The result as an HTML fragment, all that it names escaped."""
    return importlib.import_module(ROOM).page(result).html()
