"""Tables that know their columns: DataFrames of any library, Parquet, sheets of a workbook."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from typing import Any

import pandas as pd

from bayescale.runs.cells import Cells, listed, unique_headers


def read_frame(frame: pd.DataFrame, source: str) -> Cells:
    """The cells of a DataFrame, which is not changed; a named index is a column like any other."""
    if frame.columns.nlevels > 1:
        raise ValueError(f"{source}: the columns have {frame.columns.nlevels} levels; a table of runs has one header.")
    labels = frame.index if frame.index.is_unique else pd.RangeIndex(len(frame))
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    headers = unique_headers([str(name) for name in frame.columns], source)
    if not len(frame):
        raise ValueError(f"{source} has headers and no rows.")
    lines = [label if isinstance(label, int) else str(label) for label in labels.tolist()]
    return Cells(frame.set_axis(headers, axis=1).reset_index(drop=True), lines, source, "row")


def exchanges(source: Any) -> bool:
    """Whether an object hands its columns over by the Arrow or the DataFrame interchange protocol."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__")


def read_exchanged(source: Any) -> Cells:
    """The cells of a table of another library (polars, DuckDB, pyarrow, …), handed over through Arrow.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If the object cannot hand its columns over.
    """
    name = f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"
    need("pyarrow", f"A {name} is read with pyarrow", "parquet")
    import pyarrow as pa
    import pyarrow.interchange

    try:
        table = (
            pa.table(source) if hasattr(source, "__arrow_c_stream__") else pyarrow.interchange.from_dataframe(source)
        )
        frame = table.to_pandas()
    except Exception as error:  # whatever the other library raises
        raise ValueError(f"A {name} that hands over no table of columns: {error}") from error
    return read_frame(frame, name)


def read_parquet(content: bytes, source: str) -> Cells:
    """The cells of a Parquet file."""
    need("pyarrow", f"{source!r} is a Parquet file, which is read with pyarrow", "parquet")
    try:
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except Exception as error:  # damaged metadata raises of many kinds: Arrow, keys, JSON
        raise ValueError(f"{source!r} cannot be read as Parquet: {error}") from error
    return read_frame(frame, source)


def read_workbook(content: bytes, source: str, sheet: str | None = None) -> Cells:
    """The cells of a sheet of an Excel workbook, formulas by the values that were saved with them.

    Raises
    ------
    ImportError
        If openpyxl is not installed.
    ValueError
        If it is no workbook, several sheets hold cells and none is named, or the sheet is no table.
    """
    need("openpyxl", f"{source!r} is an Excel workbook, which is read with openpyxl", "excel")
    sheets = _sheets(content, source)
    filled = {name: rows for name, rows in sheets.items() if rows}
    if sheet is not None and sheet not in filled:
        there = listed(list(filled)) or "none"
        raise ValueError(f"{source} has no sheet {sheet!r} with cells in it; there is {there}.")
    if sheet is None and len(filled) != 1:
        raise ValueError(
            f"{source} has {len(filled)} sheets with cells in them ({listed(list(filled))}): say which is meant, "
            f"sheet={next(iter(filled))!r}."
            if filled
            else f"{source} is empty."
        )
    name = sheet or next(iter(filled))
    return _of_sheet(filled[name], f"sheet {name!r}", source)


def _sheets(content: bytes, source: str) -> dict[str, list[tuple[int, tuple[Any, ...]]]]:
    """Rows that are not blank, each with its number, by sheet."""
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which hold no cells
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            return {
                ws.title: [
                    (at, row)
                    for at, row in enumerate(ws.iter_rows(values_only=True), 1)
                    if any(cell is not None and str(cell).strip() for cell in row)
                ]
                for ws in book.worksheets
            }
    except Exception as error:  # a damaged archive raises of many kinds: zip, XML, keys
        raise ValueError(
            f"{source!r} cannot be read as an Excel workbook ({type(error).__name__}: {error})."
        ) from error


def _of_sheet(rows: list[tuple[int, tuple[Any, ...]]], sheet: str, source: str) -> Cells:
    (_, head), *body = rows
    if not body:
        raise ValueError(f"{source} has a header and no rows.")
    width = max(len(row) for _, row in rows)
    wide = [[*row, *[None] * (width - len(row))] for _, row in body]
    names = ["" if cell is None else str(cell) for cell in [*head, *[None] * (width - len(head))]]
    kept = [k for k in range(width) if names[k].strip() or any(row[k] is not None for row in wide)]
    headers = unique_headers([names[k] for k in kept], source)
    columns = {h: pd.Series([row[k] for row in wide], dtype=object) for h, k in zip(headers, kept, strict=True)}
    return Cells(pd.DataFrame(columns), [at for at, _ in body], source, "row", dialect=f"Excel workbook, {sheet}")


def need(library: str, why: str, extra: str) -> None:
    """Refuse, with the way out, what an optional library would read."""
    if find_spec(library) is None:
        raise ImportError(f"{why}: pip install 'bayescale[{extra}]'.")
