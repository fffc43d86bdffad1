"""A table as it would be read, without fitting it and without stopping at bad rows."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, final

import pandas as pd

from bayescale.runs.account import recognised
from bayescale.runs.cells import listed
from bayescale.runs.read import notes_and_table
from bayescale.runs.reading import Reading, read
from bayescale.runs.rules import InvalidRuns
from bayescale.runs.settings import Settings


@final
@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """What `read_runs` would make of a table.

    Attributes
    ----------
    source : str
    n_rows, n_used : int
        Rows of the source, and those that a fit would use if bad rows were left out.
    recognised : DataFrame
        One row a column: ``column``, ``meaning``, ``unit``, rows ``used``, ``refused`` and ``why``.
    problems : DataFrame
        One row a broken rule: ``line`` (None for a whole column), ``column``, ``value``, ``rule``.
    doubts : DataFrame
        One row a rule about rows that found some: ``rule``, ``meaning``, ``rows`` (how many), ``left_out``, ``lines``.
    message : str
        What `read_runs` would raise; empty where it would read the table.
    notes : tuple of str
    """

    source: str
    n_rows: int
    n_used: int
    recognised: pd.DataFrame
    problems: pd.DataFrame
    doubts: pd.DataFrame
    message: str
    notes: tuple[str, ...]

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of ``recognised``."""
        return self.recognised.copy()

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "source": self.source,
            "n_rows": self.n_rows,
            "n_used": self.n_used,
            "is_readable": not self.message,
            "columns": self.recognised.to_dict("records"),
            "problems": [_plain(row) for row in self.problems.to_dict("records")],
            "doubts": [_plain(row) for row in self.doubts.to_dict("records")],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        head = f"{self.source}: {self.n_used} of {self.n_rows} rows can be used"
        said = self.message.splitlines()[1:] if self.message else []
        parts = [head, "", _aligned(self.recognised)]
        parts += ["", "Refused:", *said] if said else []
        if len(self.doubts):
            parts += ["", "Rows that may be no finished runs of their own:"]
            parts += [_doubt(row) for row in self.doubts.to_dict("records")]
        return "\n".join([*parts, "", "Notes:", *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        table = self.recognised.to_html(index=False, escape=True, border=0)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*self.message.splitlines(), *self.notes))
        head = f"{html.escape(self.source)}: {self.n_used} of {self.n_rows} rows can be used"
        return f"<p><b>{head}</b></p>{table}<ul>{notes}</ul>"


def inspect_runs(source: Any, **settings: Any) -> Inspection:
    """Inspect a table, with the settings of `read_runs` but for ``on_invalid``.

    Raises
    ------
    ValueError, OSError, ImportError
        If the file is no table, or its columns are not settled.
    """
    chosen = Settings(**settings)
    reading = read(source, chosen)
    problems = [*reading.slips, *reading.problems]
    refused = InvalidRuns(problems, reading.cells.source, reading.cells.word)
    notes, _ = notes_and_table(reading, chosen)
    return Inspection(
        source=reading.cells.source,
        n_rows=len(reading.reason) + len(reading.cells.broken),
        n_used=int((reading.reason == "").sum()) if not reading.slips else 0,
        recognised=recognised(reading),
        problems=refused.problems,
        doubts=_doubts(reading),
        message=str(refused) if problems else "",
        notes=tuple(sentence for _, sentence in notes),
    )


def _doubts(reading: Reading) -> pd.DataFrame:
    rows = []
    for doubt in reading.suspicions:
        at = doubt.positions if doubt.left_out else doubt.positions[reading.reason[doubt.positions] == ""]
        if len(at):
            lines = [reading.cells.lines[k] for k in at]
            rows.append((doubt.rule.name, doubt.rule.meaning, len(at), doubt.left_out, lines))
    return pd.DataFrame(rows, columns=["rule", "meaning", "rows", "left_out", "lines"], dtype=object)


def _doubt(row: dict[Any, Any]) -> str:
    return f"  {row['rule']}: {row['rows']} {'left out' if row['left_out'] else 'kept'} (at {listed(row['lines'])})"


def _aligned(table: pd.DataFrame) -> str:
    """The table in columns of one width each; the reasons stand last and may be long."""
    cells = [list(table.columns), *([str(cell) for cell in row] for row in table.itertuples(index=False))]
    widths = [max(len(row[k]) for row in cells) for k in range(len(table.columns) - 1)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in cells)


def _plain(row: dict[Any, Any]) -> dict[Any, Any]:
    return {key: cell.item() if hasattr(cell, "item") else cell for key, cell in row.items()}
