"""The command line in this process."""

import json
from typing import Any

from typer.testing import CliRunner

from bayescale.cli import app

DONE, ERROR, USAGE, NOT_PASSED, INTERRUPTED = 0, 1, 2, 3, 130


def bayescale(*words: object) -> Any:
    """Run a command: exit_code, stdout, stderr."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def strict(text: str | bytes) -> Any:
    """JSON as any parser reads it: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)
