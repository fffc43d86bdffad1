"""The cells of a table as they came: every row knows its place, and what could not be read is kept with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Cells:
    """The cells of a table as they came.

    Attributes
    ----------
    frame : DataFrame
        One row a row of the source, under its headers (unique text); a plain 0, 1, … index.
    lines : list
        Where each row stands: the line of a text file, counted from 1, the row of a sheet, or the row's label.
    source : str
        The path as given, or ``DataFrame``.
    word : str
        What ``lines`` holds: ``line`` or ``row``.
    broken : tuple of (line, str, str)
        Rows of the source that hold no cells, each with its line, a piece of it, and what is wrong.
    dialect : str
        How the source is written, in words; empty where there is nothing to say.
    """

    frame: pd.DataFrame
    lines: list[Any]
    source: str
    word: str
    broken: tuple[tuple[Any, str, str], ...] = ()
    dialect: str = ""

    def take(self, positions: np.ndarray) -> Cells:
        """Only the rows at these positions (int, shape (rows,))."""
        if len(positions) == len(self.lines):
            return self
        frame = self.frame.iloc[positions].reset_index(drop=True)
        return replace(self, frame=frame, lines=[self.lines[k] for k in positions.tolist()])


def unique_headers(names: Sequence[str], source: str) -> list[str]:
    """Headers without blanks at their ends; a column without a header is called by its place."""
    headers = [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]
    twice = [f"{name!r} ({n} times)" for name, n in Counter(headers).items() if n > 1]
    if twice:
        raise ValueError(
            f"{source}: headers must differ from each other, but there is {listed(twice)}. "
            "Rename or delete all but one."
        )
    return headers


def listed(items: Sequence[Any], most: int = 10) -> str:
    """The items with commas, at most so many, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
