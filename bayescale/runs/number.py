"""From cells to numbers: as people write them, and only where there is one way to read them.

The decimal mark belongs to a table, not to a cell. What both marks could explain (``1,234`` in a table
without another hint) is no number here until the mark is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

POWERS = {"k": 3, "m": 6, "b": 9, "t": 12}  # 70B is 70e9 and 1.4T is 1.4e12, as model cards write sizes

_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?")
_GROUP = r"[+-]?[1-9][0-9]{0,2}(?P<g>[%s])[0-9]{3}(?:(?P=g)[0-9]{3})*(?:%s[0-9]+)?"
_SPACES = "_ '’\u00a0\u202f"
_GROUPED = {".": re.compile(_GROUP % ("," + _SPACES, r"\.")), ",": re.compile(_GROUP % ("." + _SPACES, ","))}
_SUFFIXED = re.compile(r"(.*[0-9.,])[ \u00a0]?([kKmMbBtT])")
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_BLANK = frozenset({"", "nan", "na", "n/a", "<na>", "none", "null"})
_EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,])[0-9]{3}")
_FAST = re.compile(r"[0-9.eE+\-\n]*")
_SIGNS = re.compile(r"[0-9][.,][0-9]|[.,][0-9]{3}")


@dataclass(frozen=True)
class Form:
    """How numbers are written in a column: the decimal mark (None where unknown), and whether 70B is one."""

    decimal: str | None = "."
    suffixes: bool = False


FORM = Form()


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
    form : Form
        How its numbers are written.
    """

    header: str
    cells: Sequence[Any]
    values: np.ndarray
    is_text: np.ndarray
    needed: np.ndarray
    form: Form = FORM

    @property
    def is_blank(self) -> np.ndarray:
        return np.isnan(self.values) & ~self.is_text

    @property
    def is_usable(self) -> np.ndarray:
        return np.isfinite(self.values) & (self.values > 0)


def column(header: str, cells: Any, needed: bool = True, form: Form = FORM) -> Column:
    """Read one column (a Series) as numbers in float64; integers of any size, text in the given form."""
    values, is_text = _values(cells, form)
    return Column(header, cells.tolist(), values, is_text, np.full(len(cells), needed), form)


def _values(cells: Any, form: Form) -> tuple[np.ndarray, np.ndarray]:
    dtype = cells.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not (
        pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype)
    ):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(cells), dtype=bool)
    listed = cells.tolist()
    plain = _all_plain(listed, form)
    if plain is not None:
        return plain, np.zeros(len(cells), dtype=bool)
    read = [number(cell, form) for cell in cells.astype(object)]
    is_text = np.array([value is None for value in read], dtype=bool)
    return np.array([math.nan if value is None else value for value in read], dtype=np.float64), is_text


def _all_plain(cells: list[Any], form: Form) -> np.ndarray | None:
    """All values at once where every cell is a plain number: a log of 100,000 rows is read this way."""
    if form.decimal == "," or not all(type(cell) is str for cell in cells) or not _FAST.fullmatch("\n".join(cells)):
        return None
    try:
        return np.array([float(cell) for cell in cells], dtype=np.float64)
    except ValueError:
        return None


def number(cell: Any, form: Form = FORM) -> float | None:
    """The cell's value: NaN where it is blank, None where it is no number."""
    if isinstance(cell, str):
        cell = cell.strip()
        if cell.casefold() in _BLANK:
            return math.nan
        written = _written(cell, form)
        return None if written is None else float(written)
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, Real | Decimal):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    return math.nan if text(cell) == "" else None


def _written(cell: str, form: Form) -> str | None:
    """The cell in the one form that ``float`` reads, or None."""
    if _INFINITY.fullmatch(cell):
        return cell
    suffixed = _SUFFIXED.fullmatch(cell) if form.suffixes else None
    if suffixed:
        mantissa = _written(suffixed[1], Form(form.decimal))
        has_power = mantissa is None or "e" in mantissa.lower() or "inf" in mantissa.lower()
        return None if has_power else f"{mantissa}e{POWERS[suffixed[2].lower()]}"
    if form.decimal is None and _EITHER.fullmatch(cell) and "," in cell:
        return None
    mark = form.decimal or "."
    if (_PLAIN if mark == "." else _COMMA).fullmatch(cell):
        return cell.replace(",", ".")
    grouped = _GROUPED[mark].fullmatch(cell)
    return cell.replace(grouped["g"], "").replace(",", ".") if grouped else None


def is_ambiguous(cell: Any, form: Form) -> bool:
    """Whether the cell is a number either way, and a different one, by which mark is the decimal mark."""
    if form.decimal is not None or not isinstance(cell, str):
        return False
    bare = _SUFFIXED.sub(r"\1", cell.strip()) if form.suffixes else cell.strip()
    return "," in bare and _EITHER.fullmatch(bare) is not None


def decimal_mark(columns: Iterable[Any]) -> str | None:
    """The decimal mark that cells (Series) speak for; None where nothing does and it would matter.

    A cell that only one mark explains speaks for it (``3.21``, ``1.234,5``, ``1.234.567``). Cells such as
    ``1.234`` are read as they stand unless as many cells speak for the comma.
    """
    point, comma, weak = 0, 0, {".": 0, ",": 0, "": 0}
    columns = list(columns)
    if not any(
        isinstance(cell, str) and "," in cell for cells in columns if _is_text(cells) for cell in cells.tolist()
    ):
        return "."
    for cells in columns:
        if pd.api.types.is_float_dtype(cells.dtype):
            point += int((cells.dropna() % 1 != 0).sum())
            continue
        if pd.api.types.is_numeric_dtype(cells.dtype):
            continue
        for cell in _enough(cells.tolist()):
            if isinstance(cell, float):
                point += math.isfinite(cell) and not cell.is_integer()
            elif isinstance(cell, str) and _SIGNS.search(cell):
                mark, sure = _speaks_for(cell.strip())
                point += sure and mark == "."
                comma += sure and mark == ","
                weak[mark] += not sure
    if comma > point and comma >= weak["."]:
        return ","
    return "." if point or comma or weak["."] or not weak[","] else None


def _is_text(cells: Any) -> bool:
    return not pd.api.types.is_numeric_dtype(cells.dtype)


def _enough(cells: list[Any], most: int = 2000) -> list[Any]:
    """Cells from all over a column, so many at most that have a mark: a log need not be asked row by row."""
    marked = [cell for cell in cells if not isinstance(cell, str) or _SIGNS.search(cell)]
    return marked[:: max(1, len(marked) // most)]


def _speaks_for(cell: str) -> tuple[str, bool]:
    """The decimal mark that a cell speaks for, and whether for certain; ('', False) where for none."""
    bare = _SUFFIXED.sub(r"\1", cell)
    either = _EITHER.fullmatch(bare)
    if either:
        return either[1], False
    can = [mark for mark in (".", ",") if _written(bare, Form(mark)) is not None]
    return (can[0], True) if len(can) == 1 else ("", False)


def text(cell: Any) -> str:
    """A cell as a label: ``''`` where blank, whole numbers without ``.0``, text without outer spaces."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, Real | Decimal) and math.isnan(cell)):
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 2**53:
        return str(int(float(cell)))
    return str(cell)


def shown(cell: Any) -> str:
    """A cell in a message: text in quotes, so that a blank is seen."""
    return repr(cell) if isinstance(cell, str) else str(cell)
