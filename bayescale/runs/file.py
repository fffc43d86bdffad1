"""From a file or a DataFrame to cells: text stays as it was written, and every row knows its place.

Cells of a text file are not interpreted here: a run called ``1e5``, a group called ``NA`` and a
size written ``70B`` all arrive as the file has them.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Cells:
    """The cells of a table as they came.

    Attributes
    ----------
    frame : DataFrame
        One row a row of the source, under its headers (unique text); a plain 0, 1, … index.
    lines : list
        Where each row stands: the line of a text file, counted from 1, or the label of the row.
    source : str
        The path as given, or ``DataFrame``.
    word : str
        What ``lines`` holds: ``line`` or ``row``.
    """

    frame: pd.DataFrame
    lines: list[Any]
    source: str
    word: str

    def take(self, positions: np.ndarray) -> Cells:
        """Only the rows at these positions (int, shape (rows,))."""
        frame = self.frame.iloc[positions].reset_index(drop=True)
        return replace(self, frame=frame, lines=[self.lines[k] for k in positions.tolist()])


def load(source: str | Path | pd.DataFrame) -> Cells:
    """The cells of a CSV or Parquet file, or of a DataFrame (which is not changed).

    Raises
    ------
    OSError
        If the file is not there or cannot be read.
    ValueError
        If it is not such a table: kind of file, encoding, header, ragged rows, no rows.
    ImportError
        If a Parquet file is given and pyarrow is not installed.
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, "DataFrame")
    if not isinstance(source, str | Path):
        raise TypeError(f"A table of runs is a path or a pandas DataFrame, not a {type(source).__name__}.")
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(source)!r} (working folder: {Path.cwd()}).")
    if path.is_dir():
        raise IsADirectoryError(f"{str(source)!r} is a folder; a table of runs is one file.")
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return _from_frame(_read_parquet(path, str(source)), str(source))
    if suffix in TEXT:
        return _from_text(path.read_bytes(), str(source))
    raise ValueError(
        f"{str(source)!r}: the kind of file {path.suffix!r} is not read; a table of runs is "
        f"{', '.join(TEXT + PARQUET)}, or a pandas DataFrame."
    )


def _read_parquet(path: Path, source: str) -> pd.DataFrame:
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"{source!r} is a Parquet file, which is read with pyarrow: pip install 'bayescale[parquet]'."
        )
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ValueError as error:  # pyarrow's errors about the content are ValueErrors
        raise ValueError(f"{source!r} cannot be read as Parquet: {error}") from error


def _from_frame(frame: pd.DataFrame, source: str) -> Cells:
    if frame.columns.nlevels > 1:
        raise ValueError(f"{source}: the columns have {frame.columns.nlevels} levels; a table of runs has one header.")
    labels = frame.index if frame.index.is_unique else pd.RangeIndex(len(frame))
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()  # a named index is a column like any other
    headers = _headers([str(name) for name in frame.columns], source)
    if not len(frame):
        raise ValueError(f"{source} has headers and no rows.")
    lines = [label if isinstance(label, int) else str(label) for label in labels.tolist()]
    return Cells(frame.set_axis(headers, axis=1).reset_index(drop=True), lines, source, "row")


def _from_text(content: bytes, source: str) -> Cells:
    text = _decode(content, source)
    rows, lines, end = [], [], 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                lines.append(end + 1)
            end = reader.line_num
    except csv.Error as error:
        raise ValueError(f"{source}, from line {end + 1}: not a readable row ({error}).") from error
    if not rows:
        raise ValueError(f"{source} is empty.")
    headers = _headers(rows.pop(0), source)
    lines.pop(0)
    if not rows:
        raise ValueError(f"{source} has a header and no rows.")
    ragged = [f"line {at} has {len(row)}" for at, row in zip(lines, rows, strict=True) if len(row) != len(headers)]
    if ragged:
        raise ValueError(
            f"{source}: the header has {len(headers)} columns, but {listed(ragged)}. "
            "Quote cells that hold the separator, and give every row all its cells."
        )
    return Cells(pd.DataFrame(rows, columns=headers, dtype=str), lines, source, "line")


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{source}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the file as UTF-8 "
            "(a spreadsheet calls it 'CSV UTF-8')."
        ) from error


def _delimiter(text: str) -> str:
    """The separator that cuts the header into most columns: comma, semicolon or tab."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=lambda mark: len(next(csv.reader([header], delimiter=mark))))


def _headers(names: Sequence[str], source: str) -> list[str]:
    """Headers without blanks at their ends; a column without a header is called by its place."""
    headers = [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]
    twice = [f"{name!r} ({n} times)" for name, n in Counter(headers).items() if n > 1]
    if twice:
        raise ValueError(f"{source}: headers must differ from each other, but there is {listed(twice)}.")
    return headers


def listed(items: Sequence[Any], most: int = 10) -> str:
    """The items with commas, at most so many, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
