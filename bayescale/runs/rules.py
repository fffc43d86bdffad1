"""The rules of a valid table of runs, all checked at once; nothing is corrected and nothing guessed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from bayescale.runs.file import listed

NATS = "nats per token"
UNITS = {"n_params": "parameters", "n_tokens": "tokens", "flop": "FLOPs"}

PLAIN = "is not a plain number (write 70e9, not 70B; 1500000000, not 1,500,000,000; 3.21, not 3,21)"
MISSING = "is missing"
INFINITE = "is not finite"
POSITIVE = "is not positive"
TWICE = "is not unique"
UNWRITABLE = "holds a character that files and terminals cannot show (a control character, half a pair)"

# No language model has fewer parameters; a smaller number beside plain counts is one in millions or billions.
LEAST_PARAMS = 1e3
# Largest values of a table, below which it is not in plain counts: ten thousand parameters, a million
# tokens, and what training those would cost are all far below any published sweep (public tables
# reach down to 3e5 parameters, 5e6 tokens, 1e16 FLOPs).
LARGEST_AT_LEAST = {"n_params": 1e4, "n_tokens": 1e6, "flop": 1e12}
# A model that guesses evenly among a vocabulary of 400,000 tokens loses log(400,000) = 12.9 nats; a run may
# have diverged beyond that, half of a table has not.
MEDIAN_LOSS_AT_MOST = 13.0
LOSS_AT_MOST = 50.0

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_BLANK = frozenset({"", "nan", "na", "n/a", "<na>", "none", "null"})


@dataclass(frozen=True)
class Column:
    """One column of numbers as read.

    Attributes
    ----------
    header : str
        Its header in the source.
    cells : sequence, shape (runs,)
        The cells as they came.
    values : array of float, shape (runs,)
        Their values; NaN where a cell is blank or no number.
    is_text : array of bool, shape (runs,)
        Where a cell holds something that is not a number.
    needed : array of bool, shape (runs,)
        Where a blank cell breaks a rule.
    """

    header: str
    cells: Sequence[Any]
    values: np.ndarray
    is_text: np.ndarray
    needed: np.ndarray

    @property
    def is_blank(self) -> np.ndarray:
        return np.isnan(self.values) & ~self.is_text

    @property
    def is_usable(self) -> np.ndarray:
        return np.isfinite(self.values) & (self.values > 0)


def column(header: str, cells: Any, needed: bool = True) -> Column:
    """Read one column (a Series) as numbers in float64; integers of any size, text of plain numbers."""
    dtype = cells.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not (
        pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype)
    ):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        is_text = np.zeros(len(cells), dtype=bool)
    else:
        read = [number(cell) for cell in cells.astype(object)]
        is_text = np.array([value is None for value in read], dtype=bool)
        values = np.array([math.nan if value is None else value for value in read], dtype=np.float64)
    return Column(header, cells.tolist(), values, is_text, np.full(len(cells), needed))


def number(cell: Any) -> float | None:
    """The cell's value: NaN where it is blank, None where it is no number."""
    if isinstance(cell, str):
        cell = cell.strip()
        if _NUMBER.fullmatch(cell) or _INFINITY.fullmatch(cell):
            return float(cell)
        return math.nan if cell.casefold() in _BLANK else None
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, Real | Decimal):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    return math.nan if text(cell) == "" else None


def text(cell: Any) -> str:
    """A cell as a label: ``''`` where blank, whole numbers without ``.0``, text without outer spaces."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, Real | Decimal) and math.isnan(cell)):
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 2**53:
        return str(int(float(cell)))
    return str(cell)


@dataclass(frozen=True)
class Problem:
    """One broken rule: the row's position (-1 for a whole column) and line, header, cell as shown, rule."""

    position: int
    line: Any
    column: str
    value: str
    rule: str


class InvalidRuns(ValueError):
    """A table of runs that breaks rules.

    Attributes
    ----------
    problems : DataFrame
        One row a broken rule: ``line`` (None where it is the whole column), ``column``, ``value``
        (text) and ``rule``.
    """

    def __init__(self, problems: Sequence[Problem], source: str = "the table", word: str = "row") -> None:
        rows = [(problem.line, problem.column, problem.value, problem.rule) for problem in problems]
        self.problems = pd.DataFrame(rows, columns=["line", "column", "value", "rule"], dtype=object)
        super().__init__(_message(problems, source, word))


def _message(problems: Sequence[Problem], source: str, word: str) -> str:
    rows = len({problem.position for problem in problems} - {-1})
    by_rule: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        by_rule.setdefault((problem.column, problem.rule), []).append(problem)
    sentences = []
    for (header, rule), broken in by_rule.items():
        places = listed([f"{word} {p.line}: {p.value}" for p in broken if p.position >= 0])
        count = f" in {len(broken)} {word}s" if len(broken) > 1 else ""
        sentences.append(f"{header} {rule}{count} ({places})" if places else f"{header} {rule}")
    way_out = 'Correct them, or leave those rows out with on_invalid="drop".' if rows else "Correct the table."
    head = f"{source}: {rows} {word if rows == 1 else word + 's'} cannot be used." if rows else f"{source}:"
    return "\n  ".join([head, *sentences, way_out])


def row_problems(
    columns: Mapping[str, Column],
    run: Sequence[str],
    lines: Sequence[Any],
    loss_unit: str,
    run_header: str = "run",
) -> list[Problem]:
    """Every cell that breaks a rule, in the order of the rows; each cell is named once, for its first rule."""
    found = []
    for name, col in columns.items():
        free = np.ones(len(col.values), dtype=bool)
        for rule, broken in _rules(name, col, loss_unit):
            rows = np.flatnonzero(broken & free).tolist()
            found += [Problem(row, lines[row], col.header, shown(col.cells[row]), rule) for row in rows]
            free &= ~broken
    times = Counter(run)
    for row, name in enumerate(run):
        rule = MISSING if not name else TWICE if times[name] > 1 else "" if is_writable(name) else UNWRITABLE
        if rule:
            found.append(Problem(row, lines[row], run_header, ascii(name) if rule == UNWRITABLE else repr(name), rule))
    return sorted(found, key=lambda problem: problem.position)


def is_writable(name: str) -> bool:
    """Whether a label can be written to any file: no control characters, and no halves of surrogate pairs."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in name)


def shown(cell: Any) -> str:
    """A cell in a message: text in quotes, so that a blank is seen."""
    return repr(cell) if isinstance(cell, str) else str(cell)


def _rules(name: str, col: Column, loss_unit: str) -> list[tuple[str, np.ndarray]]:
    values = col.values
    rules = [
        (PLAIN, col.is_text),
        (MISSING, col.is_blank & col.needed),
        (INFINITE, np.isinf(values)),
        (POSITIVE, values <= 0),
    ]
    if name == "n_params":
        rules.append((f"is below {LEAST_PARAMS:,.0f} parameters: in millions or billions?", values < LEAST_PARAMS))
    if name == "n_tokens":
        rules.append(("is below one token", values < 1))
    if name == "loss" and loss_unit == NATS:
        rules.append((f"is above {LOSS_AT_MOST:g} {NATS}: perplexity, or a diverged run?", values > LOSS_AT_MOST))
    return rules


def unit_problems(columns: Mapping[str, Column], loss_unit: str) -> list[Problem]:
    """Columns whose every value is too small, or too large, for the unit that they are read in."""
    found = []
    for name, least in LARGEST_AT_LEAST.items():
        values = columns[name].values[columns[name].is_usable] if name in columns else np.array([])
        if len(values) and values.max() < least:
            rule = (
                f"runs from {values.min():g} to {values.max():g}, read as {UNITS[name]}: it looks as if it were in "
                f"millions, billions or another multiple. Give it in {UNITS[name]}."
            )
            found.append(Problem(-1, None, columns[name].header, f"{values.max():g}", rule))
    losses = columns["loss"].values[columns["loss"].is_usable]
    if loss_unit == NATS and len(losses) and np.median(losses) > MEDIAN_LOSS_AT_MOST:
        rule = (
            f"has the median {np.median(losses):g}, read as {NATS}: guessing evenly among 400,000 tokens loses 12.9, "
            "so it looks as if it were a perplexity (take its log) or in another unit (name it with loss_unit=)."
        )
        found.append(Problem(-1, None, columns["loss"].header, f"{np.median(losses):g}", rule))
    return found
