"""Text tables: which encoding and which separator, told from the file itself or refused."""

from __future__ import annotations

import codecs
import csv
import io
import re

import pandas as pd

from bayescale.runs.cells import Cells, listed, unique_headers

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# The marks that a file may begin with; UTF-32 first, since the mark of UTF-16 begins its own.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # the first line that a spreadsheet writes for itself


def decode(content: bytes, source: str, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file and its encoding: as given, by its byte-order mark, or else UTF-8.

    Raises
    ------
    ValueError
        If the bytes are not of the encoding. No other encoding is tried: most bytes are letters in several.
    """
    name = encoding or next((name for mark, name in MARKS if content.startswith(mark)), "utf-8")
    if encoding is None and name == "utf-8" and b"\x00" in content[:400]:
        raise ValueError(
            f"{source}: holds zero bytes, as UTF-16 without its mark does. Save the file as UTF-8, or name its "
            "encoding: encoding='utf-16-le'."
        )
    try:
        text = content.decode(name)
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is no encoding; write 'utf-8', 'cp1252' or 'utf-16'.") from None
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content.count(b"\n", 0, start) + 1
        raise ValueError(
            f"{source}, line {line}: byte 0x{content[start]:02x} is not {_called(name)}. Save the file as UTF-8 (a "
            "spreadsheet calls it 'CSV UTF-8'), or name its encoding: encoding='cp1252' for a file of Windows, "
            "'mac-roman' of an old Mac."
        ) from error
    return text.removeprefix("\ufeff"), _called(name)


def _called(encoding: str) -> str:
    return encoding.upper().removesuffix("-SIG")


def read_text(content: bytes, source: str, encoding: str | None = None) -> Cells:
    """The cells of a table as text, one row a row, trimmed of blanks; rows of blank cells are skipped.

    Raises
    ------
    ValueError
        If it is no table: encoding, quotes, header, ragged rows, no rows.
    """
    text, encoding = decode(content, source, encoding)
    separator, skipped = _separator(text)
    rows, lines, end = [], [], 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row) and end >= skipped:
                rows.append([cell.strip() for cell in row])
                lines.append(end + 1)
            end = reader.line_num
    except csv.Error as error:
        raise ValueError(f"{source}, from line {end + 1}: not a readable row ({error}).") from error
    if not rows:
        raise ValueError(f"{source} is empty.")
    headers = unique_headers(rows.pop(0), source)
    lines.pop(0)
    if not rows:
        raise ValueError(f"{source} has a header and no rows.")
    _refuse_ragged(rows, lines, headers, separator, source)
    frame = pd.DataFrame(rows, columns=headers, dtype=str)
    return Cells(frame, lines, source, "line", dialect=f"text in {encoding}, separated by {SEPARATORS[separator]}")


def _separator(text: str) -> tuple[str, int]:
    """The separator, and how many lines declare it: the one that cuts the header into most columns."""
    declared = _DECLARED.match(text)
    if declared and declared[1] in SEPARATORS:
        return declared[1], 1
    header = next((line for line in text.split("\n", 1000) if line.strip()), "")[:100_000]
    try:
        return max(SEPARATORS, key=lambda mark: len(next(csv.reader([header], delimiter=mark), ""))), 0
    except csv.Error:
        return ",", 0


def _refuse_ragged(rows: list[list[str]], lines: list[int], headers: list[str], separator: str, source: str) -> None:
    ragged = [f"line {at} has {len(row)}" for at, row in zip(lines, rows, strict=True) if len(row) != len(headers)]
    if ragged and len(headers) == 1 and len({len(row) for row in rows}) == 1:
        raise ValueError(
            f"{source}: the first line is {headers[0]!r}, one cell, and all other lines have {len(rows[0])}: the "
            "header must be the first line. Delete what stands above it."
        )
    if ragged:
        raise ValueError(
            f"{source}: the header has {len(headers)} columns, separated by {SEPARATORS[separator]}, but "
            f"{listed(ragged)}. Quote cells that hold the separator, as numbers with commas do, and give every row "
            "all its cells."
        )
