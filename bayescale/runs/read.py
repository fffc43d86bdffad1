"""From a table as people keep it to `Runs`: columns recognised, units checked, nothing done silently."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from bayescale.runs.account import (
    broken_notes,
    high_loss_notes,
    left_out_notes,
    reading_notes,
    recognised,
    suspicion_notes,
)
from bayescale.runs.cells import Cells
from bayescale.runs.checkpoints import LeaveOut
from bayescale.runs.choice import Choice
from bayescale.runs.columns import NAMES
from bayescale.runs.flops import SIX_ND, ComputeRule
from bayescale.runs.number import Column
from bayescale.runs.reading import Reading, read
from bayescale.runs.rules import InvalidRuns
from bayescale.runs.settings import Settings
from bayescale.runs.settle import Note
from bayescale.runs.table import CANONICAL, Runs

log = logging.getLogger("bayescale")

OnInvalid = Literal["error", "drop"]


def read_runs(
    source: str | Path | pd.DataFrame | Any,
    *,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    rule: ComputeRule = SIX_ND,
    exclude: Choice | None = None,
    leave_out: LeaveOut = (),
    on_invalid: OnInvalid = "error",
    loss_unit: str | None = None,
    bytes_per_token: float | str | None = None,
    counts: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Runs:
    """Read and check a table of finished training runs, one a row.

    Parameters
    ----------
    source : path or DataFrame
        A text table (separated by commas, semicolons, tabs or bars, told from the header), JSON lines,
        Parquet (needs ``bayescale[parquet]``), Excel (``bayescale[excel]``), a DataFrame, which is not
        changed, or a table of another library that speaks the Arrow or DataFrame interchange protocol.
        A named index is a column.
    columns : mapping of str to str, optional
        Header by meaning, for headers that are not recognised: ``run``, ``n_params``, ``n_tokens``,
        ``flop``, ``loss``, ``loss_se`` (standard error of the loss); and, for the rules about rows,
        ``step``, ``planned_steps``, ``planned_tokens``, ``unique_tokens``, ``epochs``, ``lr``,
        ``final_lr``, ``batch_size``, ``status``, ``is_final``.
    units : mapping of str to str, optional
        Unit of ``n_params``, ``n_tokens`` or ``flop`` where it is not plain: ``M``, ``billions``,
        ``1e9``, ``TFLOP``, ``PF-days``. Goes before what a header says.
    rule : ComputeRule
        Settles the third of size, tokens and compute from the other two; ``FlopsRule(6.0)`` as in
        Kaplan et al. 2020 (arXiv 2001.08361) and Hoffmann et al. 2022 (arXiv 2203.15556).
    exclude : mapping, or sequence of str and int, optional
        Rows to leave out, whatever is in them: ``{column: value or values}``, or names of runs and lines.
    leave_out : str, RowRule or sequence of them
        Rules whose rows are left out (``"intermediate checkpoints"``, ``Thinned(20)``); the rules of
        `bayescale.runs.checkpoints.ROW_RULES` are reported in any case.
    on_invalid : 'error' or 'drop'
        Stop at rows that break a rule, or leave exactly those out with a warning.
    loss_unit : str, optional
        Unit that the loss and its standard error are in; nats per token unless the header says another.
        A perplexity is converted to nats per token; any other unit is kept.
    bytes_per_token : float or str, optional
        Bytes of a token, or the column that has them for each run: the loss becomes bits per byte, so
        that runs with different tokenizers can stand in one table.
    counts : str, optional
        What sizes count, one of `bayescale.runs.units.CONVENTIONS`; recorded, and no size is changed.
    decimal : '.' or ',', optional
        Decimal mark; told from the cells unless given.
    encoding : str, optional
        Of a text file; by its byte-order mark, or UTF-8, unless given.
    sheet : str, optional
        Of an Excel workbook with several.

    Returns
    -------
    Runs
        With every derivation in ``notes``, every column in ``recognised``, and every row that is not used
        in ``left_out``; notes are logged too.

    Raises
    ------
    InvalidRuns
        If rows break rules (``on_invalid="error"``), or a column cannot be in the unit that it is
        read in. One message names every row, column, value and rule; ``problems`` has them as a table.
    ValueError
        If the file is no such table, a column is lacking or could be either of two, or ``columns``,
        ``exclude`` or ``leave_out`` name what is not there.
    OSError, ImportError
        If the file cannot be read, or the library that reads it is not installed.
    """
    if on_invalid not in get_args(OnInvalid):
        raise ValueError(f"on_invalid is 'error' or 'drop', not {on_invalid!r}.")
    settings = Settings(
        *(columns or {}, units or {}, rule, exclude, leave_out, loss_unit),
        *(counts, bytes_per_token, decimal, encoding, sheet),
    )
    reading = read(source, settings)
    if reading.slips or (reading.problems and on_invalid == "error"):
        raise InvalidRuns([*reading.slips, *reading.problems], reading.cells.source, reading.cells.word)
    if not (reading.reason == "").any():
        n = len(reading.reason)
        raise ValueError(f"{reading.cells.source}: no run is left; all {n} are left out or invalid.")
    notes, table = notes_and_table(reading, settings)
    for level, sentence in notes:
        log.log(level, "%s: %s", reading.cells.source, sentence)
    return Runs(
        table=table,
        rule=rule,
        source=reading.cells.source,
        columns=reading.found,
        left_out=_left_out(reading),
        notes=tuple(sentence for _, sentence in notes),
        loss_unit=reading.loss_unit,
        recognised=recognised(reading),
    )


def notes_and_table(reading: Reading, settings: Settings) -> tuple[list[Note], pd.DataFrame]:
    """Everything that was derived, assumed or looks doubtful, and the rows that are used."""
    used = reading.cells.take((reading.reason == "").nonzero()[0])
    run = reading.run[reading.reason == ""]
    table, renamed = _table(used, reading.found, run, reading.numbers)
    if (run != reading.rows.run[reading.reason == ""]).any():
        table["trajectory"] = reading.rows.run[reading.reason == ""]
    notes = [*reading_notes(reading, settings), *renamed, *reading.notes, *suspicion_notes(reading)]
    notes += high_loss_notes(reading, settings)
    return [*notes, *broken_notes(reading), *left_out_notes(reading.reason, reading.cells.lines, used.word)], table


def _left_out(reading: Reading) -> pd.DataFrame:
    """Rows of the source that are not used, those that could not be read last."""
    out = (reading.reason != "").nonzero()[0]
    broken = reading.cells.broken
    return pd.DataFrame(
        {
            "line": [*(reading.cells.lines[k] for k in out), *(line for line, *_ in broken)],
            "run": [*reading.rows.run[out], *("" for _ in broken)],
            "reason": [*reading.reason[out], *(f"invalid: {why}" for *_, why in broken)],
        },
        dtype=object,
    )


def _table(
    cells: Cells, found: Mapping[str, str], run: Any, numbers: Mapping[str, Column]
) -> tuple[pd.DataFrame, list[Note]]:
    """Canonical columns, then the others; one that bears a canonical name without its meaning is renamed."""
    first = {"run": run, **{name: numbers[name].values for name in NAMES if name in numbers}, "line": cells.lines}
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
