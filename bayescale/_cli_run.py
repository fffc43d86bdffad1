"""How a command runs: its exit code, its errors, its logs, its output.

Standard output holds the result and nothing else; logs, warnings, errors and progress go to standard
error. Exit codes: 0 done, 1 an error that the message tells how to mend, 2 usage, 3 the result was
given but rests on diagnostics or a gate that are FAIL or UNKNOWN, 130 interrupted.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from bayescale._files import put

log = logging.getLogger("bayescale")
USER_ERROR, NOT_PASSED, INTERRUPTED = 1, 3, 130


def command[**P](body: Callable[P, str | None]) -> Callable[P, None]:
    """Run a command whose body returns the diagnostics of what it showed, or None where there are none."""

    @functools.wraps(body)
    def run(*args: P.args, **options: P.kwargs) -> None:
        try:
            status = body(*args, **options)
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: nothing to flush
            raise typer.Exit(USER_ERROR) from None
        except (ValueError, OSError, ImportError) as problem:
            log.debug("The error below arose here:", exc_info=True)
            typer.echo(f"error: {problem}", err=True)
            raise typer.Exit(USER_ERROR) from None
        if status not in (None, "PASS"):
            raise typer.Exit(NOT_PASSED)

    return run


def start_logging(level: int) -> None:
    """Send the package's records of this level and above to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("{levelname}: {message}", style="{"))
    log.handlers = [handler]
    log.setLevel(level)


def show(result: Any, parts: Sequence[object], as_json: bool) -> None:
    """Print a result: its JSON values, or its parts for a person."""
    as_text = (
        json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) if as_json else "\n\n".join(map(str, parts))
    )
    typer.echo(as_text)


def write(path: Path, writer: Callable[[Path], object]) -> None:
    """Write a file, whole or not at all."""
    to_write(path)
    with put(path) as part:
        writer(part)


def to_write(path: Path) -> Path:
    """The path, if a file can be put there; known before long work and not after it."""
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; make it, or name another for {path.name}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file to write in it.")
    return path
