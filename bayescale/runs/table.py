"""The table of runs: what was measured, in one unit a column, with everything that was settled on the way."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale.runs.cells import listed
from bayescale.runs.choice import Choice, chosen
from bayescale.runs.columns import near
from bayescale.runs.costs import SIX_ND, ComputeRule  # the rules beside k N D, so that a saved table finds its own
from bayescale.runs.number import column, text
from bayescale.runs.rules import InvalidRuns, row_problems
from bayescale.runs.units import CONVENTIONS, NATS, UNITS

NUMBERS = ("n_params", "n_tokens", "flop", "loss", "loss_se")
RECOGNISED = ("column", "meaning", "unit", "used", "refused", "why")
CANONICAL = ("run", *NUMBERS, "line")


def _nothing_left_out() -> pd.DataFrame:
    return pd.DataFrame({"line": [], "run": [], "reason": []}, dtype=object)


def _nothing_recognised() -> pd.DataFrame:
    return pd.DataFrame({name: [] for name in RECOGNISED}, dtype=object)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """Finished training runs, one a row, checked.

    Usually made by `read_runs`; the constructor takes a table under the canonical names and fills
    in what may be left out (``run``, ``flop`` by the rule, ``loss_se``, ``line``).

    Attributes
    ----------
    table : DataFrame
        ``run`` (unique name), ``n_params`` (parameters), ``n_tokens`` (tokens), ``flop`` (FLOPs),
        ``loss`` and ``loss_se`` (its standard error, NaN where none is given; both in ``loss_unit``),
        ``line`` (where the row stands in the source: the line of a text file counted from 1, the row
        label of a DataFrame), then all other columns of the source under their own names, text as text.
    rule : ComputeRule
        By which two of size, tokens and compute settle the third.
    source : str
        Path as given, or ``DataFrame``.
    columns : mapping of str to str
        The header that each meaning was read from.
    left_out : DataFrame
        Rows of the source that are not used: ``line``, ``run``, ``reason``.
    notes : tuple of str
        Everything that was derived, assumed or looks doubtful, in sentences.
    loss_unit : str
        Unit of ``loss``.
    recognised : DataFrame
        One row a column of the source: ``column``, ``meaning``, ``unit``, rows ``used``, rows ``refused``
        and ``why``; empty where the runs were not read from a table.

    Raises
    ------
    InvalidRuns
        If a row breaks a rule of a valid table; one message names every row.
    ValueError
        If the table has no rows, or lacks ``n_params``, ``n_tokens`` or ``loss``.
    """

    table: pd.DataFrame
    rule: ComputeRule = SIX_ND
    source: str = "DataFrame"
    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: pd.DataFrame = field(default_factory=_nothing_left_out)
    notes: tuple[str, ...] = ()
    loss_unit: str = NATS
    recognised: pd.DataFrame = field(default_factory=_nothing_recognised)

    def __post_init__(self) -> None:
        if not (isinstance(self.loss_unit, str) and self.loss_unit.strip()):
            raise ValueError(f"loss_unit is the unit of the loss in words ({NATS!r}), not {self.loss_unit!r}.")
        table = _canonical(self.table, self.rule)
        numbers = {name: column(name, table[name], needed=name != "loss_se") for name in NUMBERS}
        problems = row_problems(numbers, table["run"].tolist(), table["line"].tolist(), self.loss_unit)
        if problems:
            raise InvalidRuns(problems, self.source)
        object.__setattr__(self, "table", table.assign(**{name: col.values for name, col in numbers.items()}))
        object.__setattr__(self, "notes", tuple(self.notes))

    def __len__(self) -> int:
        return len(self.table)

    @property
    def largest(self) -> dict[str, float]:
        """The largest ``n_params``, ``n_tokens`` and ``flop`` of the table (not always one run)."""
        return {name: float(np.max(self.table[name].to_numpy())) for name in UNITS}

    @property
    def center(self) -> dict[str, float]:
        """Geometric means of ``n_params`` and ``n_tokens``: the table's centre in logs."""
        return {name: float(np.exp(np.mean(np.log(self.table[name].to_numpy())))) for name in ("n_params", "n_tokens")}

    @property
    def counts(self) -> str:
        """What sizes count (``active``, ``total``, ...), where the source or its reader says; else empty."""
        rows = zip(self.recognised["meaning"].astype(str), self.recognised["unit"].astype(str), strict=True)
        units = [unit for meaning, unit in rows if meaning.startswith("n_params:")]
        return next((c for c in CONVENTIONS for unit in units if f" ({c})" in unit), "")

    @property
    def table_hash(self) -> str:
        """SHA-256 of the numbers in order, the run names where the source gives them, the rule and the unit.

        Types, row labels, order of columns and columns that are not canonical leave it alone.
        """
        digest = hashlib.sha256(json.dumps([self.rule.to_dict(), self.loss_unit], sort_keys=True).encode())
        if "run" in self.columns:
            digest.update(json.dumps(self.table["run"].tolist()).encode())
        for name in NUMBERS:
            values = self.table[name].to_numpy(dtype="<f8", copy=True)
            values[np.isnan(values)] = np.nan  # one bit pattern for all that is not given
            digest.update(values.tobytes())
        return digest.hexdigest()

    def labels(self, by: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """Group of each run, by one column.

        Parameters
        ----------
        by : str
            Name of a column of ``table``, or its header in the source.

        Returns
        -------
        label : array of str, shape (runs,)
        names : tuple of str
            The groups that have runs, sorted.

        Raises
        ------
        ValueError
            If there is no such column, or a run has no label in it.
        """
        name = by if by in self.table else {header: m for m, header in self.columns.items()}.get(by)
        if name == "run" and "trajectory" in self.table:  # names of checkpoints are unique, of their runs are not
            name = "trajectory"
        if name is None:
            raise ValueError(
                f"There is no column {by!r} to group by; the columns are {', '.join(self.table)}.{near(by, self.table)}"
            )
        label = np.array([text(cell) for cell in self.table[name]], dtype=np.str_)
        blank = self.table.loc[label == "", ["run", "line"]]
        if len(blank):
            rows = listed([f"{run} (at {line})" for run, line in blank.itertuples(index=False)])
            raise ValueError(
                f"{len(blank)} of {len(self)} runs have no label in {by!r}: {rows}. "
                "Give them one, or leave them out (exclude=)."
            )
        return label, tuple(sorted(set(label.tolist())))

    def without(self, rows: Choice) -> Runs:
        """These runs without some, which are kept in ``left_out`` with the reason.

        ``rows`` are names of runs and lines, or ``{column: value or values}``.

        Raises
        ------
        ValueError
            If a name, line, column or value is not in the table, or no run is left.
        """
        cells = {name: self.table[name].tolist() for name in self.table}
        cells |= {header: cells[name] for name, header in self.columns.items() if header not in cells}
        out = np.zeros(len(self), dtype=bool)
        reasons = np.full(len(self), "", dtype=object)
        for mask, reason in chosen(rows, cells, cells["run"], cells["line"]):
            reasons[mask & ~out] = reason
            out |= mask
        if out.all():
            raise ValueError(f"All {len(self)} runs are left out; none remains.")
        gone = self.table.loc[out, ["line", "run"]].assign(reason=reasons[out]).astype(object)
        left_out = pd.concat([self.left_out, gone], ignore_index=True) if len(self.left_out) else gone
        return replace(self, table=self.table.loc[~out], left_out=left_out.reset_index(drop=True))

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of ``table``."""
        return self.table.copy()

    def to_dict(self) -> dict[str, Any]:
        """All but the rows, as JSON values: what a saved fit keeps beside the columns."""
        return {
            "source": self.source,
            "n_runs": len(self),
            "columns": dict(self.columns),
            "rule": self.rule.to_dict(),
            "loss_unit": self.loss_unit,
            "notes": list(self.notes),
            "left_out": [
                {name: _plain(cell) for name, cell in row.items()} for row in self.left_out.to_dict("records")
            ],
            "recognised": [{k: _plain(v) for k, v in row.items()} for row in self.recognised.to_dict("records")],
            "largest": self.largest,
            "center": self.center,
            "table_hash": self.table_hash,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], table: pd.DataFrame) -> Runs:
        """The runs that ``to_dict`` described, from the saved columns (canonical names).

        Raises
        ------
        ValueError
            If the columns are not those that were saved (their hash differs), or the rule is unknown.
        """
        left_out = pd.DataFrame(saved["left_out"], columns=["line", "run", "reason"], dtype=object)
        rule = ComputeRule.from_dict(saved["rule"])
        recognised = pd.DataFrame(saved.get("recognised", []), columns=list(RECOGNISED), dtype=object)
        notes = tuple(saved["notes"])
        runs = cls(table, rule, saved["source"], saved["columns"], left_out, notes, saved["loss_unit"], recognised)
        if runs.table_hash != saved["table_hash"]:
            raise ValueError(
                f"The table of {saved['source']!r} is not the one that was saved: its hash is "
                f"{runs.table_hash[:12]}…, saved was {saved['table_hash'][:12]}…."
            )
        return runs

    def __repr__(self) -> str:
        return "\n  ".join([f"Runs: {len(self)} from {self.source}", *self._summary()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self._summary())
        rows = self.table.head(10).to_html(index=False, escape=True, border=0)
        more = f"<p>… and {len(self) - 10} more runs</p>" if len(self) > 10 else ""
        return f"<p><b>Runs</b>: {len(self)} from {html.escape(self.source)}</p><ul>{lines}</ul>{rows}{more}"

    def _summary(self) -> list[str]:
        units = {**UNITS, "loss": self.loss_unit}
        ranges = [
            f"{name}: {self.table[name].min():.4g} to {self.table[name].max():.4g} {units[name]}" for name in units
        ]
        n_se = int(np.isfinite(self.table["loss_se"].to_numpy()).sum())
        n_out = len(self.left_out)
        return [
            *ranges,
            *([f"loss_se: given for {n_se} of {len(self)} runs"] if n_se else []),
            f"rule: {self.rule}",
            *([f"left out: {n_out} of {n_out + len(self)} rows of the source"] if n_out else []),
            *self.notes,
        ]


def _canonical(table: pd.DataFrame, rule: ComputeRule) -> pd.DataFrame:
    """The table under the canonical names first, with those filled in that may be left out."""
    lacking = [name for name in ("n_params", "n_tokens", "loss") if name not in table]
    if lacking:
        raise ValueError(f"A table of runs has the columns n_params, n_tokens and loss; {', '.join(lacking)} lacks.")
    if not len(table):
        raise ValueError("A table of runs has at least one run; this one has no rows.")
    table = table.reset_index(drop=True)
    place = np.arange(1, len(table) + 1)
    run = table["run"] if "run" in table else [f"run-{k}" for k in place]
    first = {
        "run": [text(cell) for cell in run],
        "n_params": table["n_params"],
        "n_tokens": table["n_tokens"],
        "flop": table["flop"] if "flop" in table else _flop(table, rule),
        "loss": table["loss"],
        "loss_se": table["loss_se"] if "loss_se" in table else np.full(len(table), np.nan),
        "line": table.get("line", place),
    }
    return pd.DataFrame(first | {name: _column(table[name]) for name in table if name not in CANONICAL})


def _flop(table: pd.DataFrame, rule: ComputeRule) -> np.ndarray:
    return rule.flop(*(column(name, table[name]).values for name in ("n_params", "n_tokens")))


def _column(cells: Any) -> Any:
    """Numbers and truth values of numpy's types as they are; nullable numbers as floats; all else as text."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biuf":
        return cells
    if pd.api.types.is_numeric_dtype(cells.dtype) and cells.dtype.kind in "iuf":
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return [text(cell) for cell in cells.astype(object)]


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell
