"""A progress bar where somebody is watching: in a terminal and in a notebook, silent elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from bayescale.inference._engine import Progress

LABEL = "sampling"


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Give a function that is told ``(done, total)``, and clear the bar at the end.

    A terminal's bar is drawn on standard error, so that standard output holds results only; where
    that is redirected, nothing is written.
    """
    show = _notebook if _in_notebook() else _terminal if sys.stderr.isatty() else _silent
    with show() as progress:
        yield progress


def _in_notebook() -> bool:
    """Whether this runs in a kernel that displays HTML; IPython in a terminal is a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def _silent() -> Iterator[Progress]:
    yield lambda done, total: None


@contextlib.contextmanager
def _terminal() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(LABEL, total=None)
        yield lambda done, total: drawn.update(task, completed=done, total=total)


@contextlib.contextmanager
def _notebook() -> Iterator[Progress]:
    from IPython.display import HTML, display

    handle: Any = display(HTML(f"<progress></progress> {LABEL}"), display_id=True)
    last: tuple[int, int] | None = None

    def progress(done: int, total: int) -> None:
        nonlocal last
        if (done, total) != last:  # every message travels to the browser
            last = done, total
            handle.update(HTML(f"<progress value='{int(done)}' max='{int(total)}'></progress> {LABEL}"))

    try:
        yield progress
    finally:
        handle.update(HTML(""))
