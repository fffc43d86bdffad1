"""From a file or a DataFrame to cells: text stays as it was written, and every row knows its place.

Cells of a text file are not interpreted here: a run called ``1e5``, a group called ``NA`` and a
size written ``70B`` all arrive as the file has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from bayescale.runs.cells import Cells
from bayescale.runs.dialect import read_text
from bayescale.runs.frames import exchanges, read_exchanged, read_frame, read_parquet, read_workbook
from bayescale.runs.records import read_records

TEXT = (".csv", ".tsv", ".txt")
RECORDS = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")


def load(source: Any, encoding: str | None = None, sheet: str | None = None) -> Cells:
    """The cells of a file, or of a DataFrame (which is not changed).

    Raises
    ------
    OSError
        If the file is not there or cannot be read.
    ValueError
        If it is not such a table: kind of file, encoding, header, ragged rows, no rows.
    ImportError
        If a Parquet or Excel file is given and the library that reads it is not installed.
    """
    if isinstance(source, pd.DataFrame):
        return read_frame(source, "DataFrame")
    if not isinstance(source, str | Path):
        if exchanges(source):
            return read_exchanged(source)
        raise TypeError(
            f"A table of runs is a path or a pandas DataFrame (or another library's), not a {type(source).__name__}."
        )
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(source)!r} (working folder: {Path.cwd()}).")
    if path.is_dir():
        raise IsADirectoryError(f"{str(source)!r} is a folder; a table of runs is one file.")
    return _of_kind(path.suffix.lower(), path.read_bytes(), str(source), encoding, sheet)


def _of_kind(kind: str, content: bytes, source: str, encoding: str | None, sheet: str | None) -> Cells:
    if kind in TEXT:
        return read_text(content, source, encoding)
    if kind in RECORDS:
        return read_records(content, source, encoding)
    if kind in PARQUET:
        return read_parquet(content, source)
    if kind in EXCEL:
        return read_workbook(content, source, sheet)
    raise ValueError(
        f"{source!r}: the kind of file {kind!r} is not read; a table of runs is "
        f"{', '.join(TEXT + RECORDS + PARQUET + EXCEL)}, or a DataFrame. Save it as one of these."
    )
