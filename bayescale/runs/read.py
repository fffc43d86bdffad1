"""From a table as people keep it to `Runs`: columns recognised, units checked, nothing done silently."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from bayescale.runs.choice import Choice, chosen
from bayescale.runs.columns import SIZES, recognise
from bayescale.runs.file import Cells, listed, load
from bayescale.runs.flops import SIX_ND, ComputeRule
from bayescale.runs.rules import NATS, Column, InvalidRuns, column, row_problems, text, unit_problems
from bayescale.runs.settle import Note, settle
from bayescale.runs.table import CANONICAL, Runs

log = logging.getLogger("bayescale")

OnInvalid = Literal["error", "drop"]


def read_runs(
    source: str | Path | pd.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    rule: ComputeRule = SIX_ND,
    exclude: Choice | None = None,
    on_invalid: OnInvalid = "error",
    loss_unit: str = NATS,
) -> Runs:
    """Read and check a table of finished training runs, one a row.

    Parameters
    ----------
    source : path or DataFrame
        A text table in UTF-8 (comma, semicolon or tab, told from the header), a Parquet file (needs
        ``bayescale[parquet]``), or a DataFrame, which is not changed; its named index is a column.
    columns : mapping of str to str, optional
        Header by meaning, for headers that are not recognised: ``run``, ``n_params`` (parameters),
        ``n_tokens`` (tokens), ``flop`` (FLOPs), ``loss``, ``loss_se`` (standard error of the loss).
    rule : ComputeRule
        Settles the third of size, tokens and compute from the other two; ``FlopsRule(6.0)`` as in
        Kaplan et al. 2020 (arXiv 2001.08361) and Hoffmann et al. 2022 (arXiv 2203.15556).
    exclude : mapping, or sequence of str and int, optional
        Rows to leave out, whatever is in them: ``{column: value or values}``, or names of runs and lines.
    on_invalid : 'error' or 'drop'
        Stop at rows that break a rule, or leave exactly those out with a warning.
    loss_unit : str
        Unit of the loss and its standard error.

    Returns
    -------
    Runs
        With every derivation in ``notes`` and every row that is not used in ``left_out``; both are
        logged too.

    Raises
    ------
    InvalidRuns
        If rows break rules (``on_invalid="error"``), or a column cannot be in the unit that it is
        read in. One message names every row, column, value and rule; ``problems`` has them as a table.
    ValueError
        If the file is no such table, a column is lacking or could be either of two, or ``columns`` or
        ``exclude`` name what is not there.
    OSError, ImportError
        If the file cannot be read, or pyarrow is not installed.
    """
    if on_invalid not in get_args(OnInvalid):
        raise ValueError(f"on_invalid is 'error' or 'drop', not {on_invalid!r}.")
    cells = load(source)
    found = recognise(cells.frame, columns or {}, cells.source)
    run = _names(cells.frame, found)
    reason = _excluded(cells, found, run, exclude)
    kept = np.flatnonzero(reason == "")
    for position, why in _invalid(cells.take(kept), found, run[kept], rule, on_invalid, loss_unit).items():
        reason[kept[position]] = why
    used, out = np.flatnonzero(reason == ""), np.flatnonzero(reason != "")
    if not len(used):
        raise ValueError(f"{cells.source}: no run is left; all {len(reason)} are left out or invalid.")
    cells_used = cells.take(used)
    numbers, notes = _numbers(cells_used, found, rule)
    table, renamed = _table(cells_used, found, run[used], numbers)
    notes = [*_reading(found, run, loss_unit), *renamed, *notes, *_repeated(cells_used), *_left_out(reason, cells)]
    for level, sentence in notes:
        log.log(level, "%s: %s", cells.source, sentence)
    return Runs(
        table=table,
        rule=rule,
        source=cells.source,
        columns=found,
        left_out=pd.DataFrame({"line": cells.take(out).lines, "run": run[out], "reason": reason[out]}, dtype=object),
        notes=tuple(sentence for _, sentence in notes),
        loss_unit=loss_unit,
    )


def _names(frame: pd.DataFrame, found: Mapping[str, str]) -> np.ndarray:
    """Names of the runs; by their place among all rows of the source where no column names them."""
    if "run" in found:
        return np.array([text(cell) for cell in frame[found["run"]].astype(object)], dtype=object)
    return np.array([f"run-{place}" for place in range(1, len(frame) + 1)], dtype=object)


def _excluded(cells: Cells, found: Mapping[str, str], run: np.ndarray, exclude: Choice | None) -> np.ndarray:
    """Why each row is left out by choice; empty where it is used."""
    reason = np.full(len(run), "", dtype=object)
    if exclude is None:
        return reason
    by_name = {header: cells.frame[header].tolist() for header in cells.frame}
    by_name |= {name: by_name[header] for name, header in found.items() if name not in by_name}
    for mask, why in chosen(exclude, by_name, run.tolist(), cells.lines):
        reason[mask & (reason == "")] = why
    return reason


def _invalid(
    cells: Cells, found: Mapping[str, str], run: np.ndarray, rule: ComputeRule, on_invalid: OnInvalid, loss_unit: str
) -> dict[int, str]:
    """What is wrong with each row that breaks a rule, by its position; InvalidRuns where that stops the reading."""
    numbers, _ = _numbers(cells, found, rule)
    slips = unit_problems({name: col for name, col in numbers.items() if name in found}, loss_unit)
    problems = row_problems(numbers, run.tolist(), cells.lines, loss_unit, found.get("run", "run"))
    slipped = {slip.column for slip in slips}  # a wrong unit is named once, not in every row
    problems = [problem for problem in problems if problem.column not in slipped]
    if slips or (problems and on_invalid == "error"):
        raise InvalidRuns([*slips, *problems], cells.source, cells.word)
    faults: dict[int, list[str]] = {}
    for problem in problems:
        faults.setdefault(problem.position, []).append(f"{problem.column} {problem.rule}: {problem.value}")
    return {position: f"invalid: {'; '.join(broken)}" for position, broken in faults.items()}


def _numbers(cells: Cells, found: Mapping[str, str], rule: ComputeRule) -> tuple[dict[str, Column], list[Note]]:
    given = {
        name: column(header, cells.frame[header], needed=name != "loss_se")
        for name, header in found.items()
        if name != "run"
    }
    sizes, notes = settle({name: given[name] for name in SIZES if name in given}, rule, cells.word, cells.lines)
    return {**given, **sizes}, notes


def _table(
    cells: Cells, found: Mapping[str, str], run: np.ndarray, numbers: Mapping[str, Column]
) -> tuple[pd.DataFrame, list[Note]]:
    """Canonical columns, then the others; one that bears a canonical name without its meaning is renamed."""
    first = {"run": run, **{name: col.values for name, col in numbers.items()}, "line": cells.lines}
    others: dict[str, Any] = {}
    notes = []
    for header in cells.frame.columns.difference(list(found.values()), sort=False):
        name = header
        while name in CANONICAL or (name != header and name in cells.frame):
            name += "_in_source"
        if name != header:
            notes.append((logging.INFO, f"The column {header!r} has another meaning here and is kept as {name!r}."))
        others[name] = cells.frame[header]
    return pd.DataFrame(first | others), notes


def _reading(found: Mapping[str, str], run: np.ndarray, loss_unit: str) -> list[Note]:
    read = ", ".join(f"{name} from {header!r}" for name, header in found.items())
    units = f"n_params in parameters, n_tokens in tokens, flop in FLOPs, loss in {loss_unit}"
    return [
        (logging.INFO, f"Columns read: {read}."),
        (logging.INFO, f"Units: {units}."),
        *([] if "run" in found else [(logging.INFO, f"Runs are named by their place in the table, {run[0]} first.")]),
    ]


def _repeated(cells: Cells) -> list[Note]:
    again = np.flatnonzero(cells.frame.astype(str).duplicated())
    if not len(again):
        return []
    rows = listed([cells.lines[k] for k in again])
    return [
        (
            logging.WARNING,
            f"{len(again)} of {len(cells.lines)} rows repeat an earlier row exactly ({cells.word}s {rows}). They are "
            "kept, and each counts as new evidence: leave copies of one run out (exclude=).",
        )
    ]


def _left_out(reason: np.ndarray, cells: Cells) -> list[Note]:
    notes = []
    for kind, level in (("left out by choice", logging.INFO), ("invalid", logging.WARNING)):
        out = np.flatnonzero([why.startswith(kind) for why in reason])
        if len(out):
            rows = listed([cells.lines[k] for k in out])
            notes.append((level, f"{len(out)} of {len(reason)} rows are not used, {kind} ({cells.word}s {rows})."))
    return notes
