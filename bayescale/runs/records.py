"""JSON lines: one record a line, as training programs log; a line that is none is kept with its number."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from bayescale.runs.cells import Cells, listed, unique_headers
from bayescale.runs.dialect import decode

CUT = "is no JSON record: the line may be cut"


def read_records(content: bytes, source: str, encoding: str | None = None) -> Cells:
    """The cells of JSON lines: columns by key in order of appearance, nested records as ``outer.inner``.

    ``NaN`` and ``Infinity``, which Python writes and JSON does not know, are numbers that break a rule.

    Raises
    ------
    ValueError
        If no line is a record.
    """
    text, encoding = decode(content, source, encoding)
    records, lines, broken = [], [], []
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        record = _record(written)
        if isinstance(record, str):
            broken.append((line, written.strip()[:40], record))
        else:
            records.append(record)
            lines.append(line)
    if not records:
        raise ValueError(
            f'{source}: no line is a JSON record such as {{"params": 7e9, "tokens": 1.4e11, "loss": 2.1}}'
            + (f"; line {listed([line for line, *_ in broken])} {broken[0][2]}." if broken else ".")
        )
    keys = list(dict.fromkeys(key for record in records for key in record))
    headers = unique_headers(keys, source)
    columns = {h: pd.Series([r.get(k) for r in records], dtype=object) for h, k in zip(headers, keys, strict=True)}
    frame = pd.DataFrame(columns)
    return Cells(frame, lines, source, "line", tuple(broken), f"JSON lines in {encoding}")


def _record(line: str) -> dict[str, Any] | str:
    """The flat record of a line, or what is wrong with it."""
    try:
        record = json.loads(line, object_pairs_hook=_pairs)
    except RecursionError:
        return "is nested too deep"
    except ValueError as error:
        return str(error) if "twice" in str(error) else CUT
    if not isinstance(record, dict):
        return "is JSON, but no record"
    return _flat(record, "")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("has a key twice")
    return record


def _flat(record: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
