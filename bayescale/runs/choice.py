"""Which rows a person chose to leave out: by a column's value, or by name or line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayescale.runs.cells import listed
from bayescale.runs.columns import near
from bayescale.runs.number import number, text

Choice = Mapping[str, Any] | Iterable[Any] | str | int


def chosen(
    choice: Choice, columns: Mapping[str, Sequence[Any]], run: Sequence[str], lines: Sequence[Any]
) -> list[tuple[np.ndarray, str]]:
    """Rows that a choice names, with the reason as it is stored.

    Parameters
    ----------
    choice : mapping, or sequence of str and int
        ``{column: value or values}``, compared as text without regard to case, where ``True`` and
        ``1`` are the same and so are ``1e9`` and ``1000000000``; or names of runs, and lines (row labels).
    columns : mapping of str to sequence
        Cells by every name that a column may be called.
    run, lines : sequence, shape (runs,)

    Returns
    -------
    list of (array of bool, shape (runs,), str)

    Raises
    ------
    ValueError
        If a column, value, name or line is not in the table; one message with all of them.
    """
    found, wrong = [], []
    if isinstance(choice, Mapping):
        for name, wanted in choice.items():
            if name not in columns:
                wrong.append(f"there is no column {name!r}; the columns are {', '.join(columns)}.{near(name, columns)}")
                continue
            have = [_key(cell) for cell in columns[name]]
            for value in _several(wanted):
                mask = np.array([key == _key(value) for key in have], dtype=bool)
                found.append((mask, f"left out by choice: {name} = {text(value)}"))
                if not mask.any():
                    values = sorted({text(cell) for cell in columns[name]})
                    wrong.append(f"no run has {name} = {text(value)!r}; its values are {listed(values)}.")
    else:
        for value in _several(choice):
            mask = _named(value, run, lines)
            found.append((mask, "left out by choice: named"))
            if not mask.any():
                wrong.append(f"there is no run or line {value!r}.{near(str(value), run)}")
    if wrong:
        raise ValueError("\n  ".join(["Rows to leave out:", *wrong]))
    return found


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _named(value: Any, run: Sequence[str], lines: Sequence[Any]) -> np.ndarray:
    """Text names a run before it names a line; a number names a line."""
    by_run = np.array([isinstance(value, str) and name == value.strip() for name in run], dtype=bool)
    return by_run if by_run.any() else np.array([str(line) == text(value) for line in lines], dtype=bool)


def _key(cell: Any) -> str:
    """What is compared: numbers by value, truth as 1 and 0, other text without regard to case."""
    key = text(cell).casefold()
    value = number({"true": "1", "false": "0"}.get(key, key))
    return key if value is None or math.isnan(value) else repr(value)
