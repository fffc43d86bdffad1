"""One reading of a table, with everything that was recognised, settled, doubted and refused on the way.

Nothing is raised here for a bad row: what reads a table stops at it, what inspects a table shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescale.runs.cells import Cells
from bayescale.runs.checkpoints import ROW_RULES, LeaveOut, RowRule, row_rules
from bayescale.runs.choice import Choice, chosen
from bayescale.runs.columns import HINT_NAMES, NAMES, SIZES, recognise
from bayescale.runs.file import load
from bayescale.runs.flops import ComputeRule
from bayescale.runs.headers import Head
from bayescale.runs.number import Column, Form, column, decimal_mark, text
from bayescale.runs.rows import Rows
from bayescale.runs.rules import Problem, row_problems, unit_problems
from bayescale.runs.settings import Settings
from bayescale.runs.settle import Note, scale_slip, settle
from bayescale.runs.units import LOSS_UNITS, NATS, LossUnit, error_of_conversion, is_bytes, loss_unit_of

WORDS = ("status", "is_final")
# Headers of columns that tell kinds of runs apart, whose losses are not compared with one another.
FAMILIES = ("group", "family", "corpus", "dataset", "data", "tokenizer", "architecture", "router_type", "schedule")
NUMERIC = tuple(name for name in HINT_NAMES if name not in WORDS)


@dataclass(frozen=True)
class Suspicion:
    """Rows that a rule doubts: its positions (int), the rule, and whether they are left out."""

    rule: RowRule
    positions: np.ndarray
    left_out: bool


@dataclass(frozen=True)
class Reading:
    """A table as read.

    Attributes
    ----------
    cells : Cells
        All rows of the source.
    heads : dict of str to Head
        Columns by meaning.
    run : array of str, shape (rows,)
        Names of the runs, made unique where rows are checkpoints.
    numbers : dict of str to Column
        Columns of the used rows (canonical names), in the units of a table of runs.
    reason : array of str, shape (rows,)
        Why a row is not used; '' where it is.
    slips, problems : list of Problem
        Columns in a wrong unit, and cells that break a rule (positions among all rows).
    suspicions : list of Suspicion
    notes : list of (int, str)
    loss_unit : str
        Of the numbers.
    form : Form
        How numbers are written.
    rows : Rows
    """

    cells: Cells
    heads: dict[str, Head]
    run: np.ndarray
    numbers: dict[str, Column]
    reason: np.ndarray
    slips: list[Problem]
    problems: list[Problem]
    suspicions: list[Suspicion]
    notes: list[Note]
    loss_unit: str
    form: Form
    rows: Rows

    @property
    def found(self) -> dict[str, str]:
        """The headers by canonical meaning."""
        return {name: head.header for name, head in self.heads.items() if name in NAMES}


def read(source: Any, settings: Settings) -> Reading:
    """Read a table; ValueError where it is no table, or its columns or the choice of rows are not settled."""
    cells = load(source, settings.encoding, settings.sheet)
    heads = recognise(cells.frame, settings.columns, cells.source, settings.units)
    if settings.counts and "n_params" in heads:
        heads["n_params"] = replace(heads["n_params"], counts=settings.counts)
    form = Form(settings.decimal or decimal_mark(cells.frame[header] for header in cells.frame))
    names = _names(cells.frame, heads)
    loss = _loss_units(heads, settings)
    given = _given(cells, heads, form, loss, settings)
    rows = _rows(cells, heads, names, given, form)
    reason = _excluded(cells, heads, names, settings.exclude)
    suspicions = _suspicions(rows, settings.leave_out, reason)
    run = _checkpoint_names(rows, reason)
    start = np.flatnonzero(reason == "")
    slips, problems = _problems(cells.take(start), _take(given, start), run[start], heads, settings.rule, loss[1])
    problems = [replace(p, position=int(start[p.position])) for p in problems]
    _refuse(problems, reason)
    used = np.flatnonzero(reason == "")
    sizes = {name: col for name, col in _take(given, used).items() if name in SIZES}
    kept = cells.take(used)
    settled, notes = settle(sizes, settings.rule, cells.word, kept.lines)
    numbers = {**_take(given, used), **settled}
    problems += [Problem(-2, line, "", repr(piece), why) for line, piece, why in cells.broken]
    return Reading(cells, heads, run, numbers, reason, slips, problems, suspicions, notes, loss[1], form, rows)


def _names(frame: pd.DataFrame, heads: Mapping[str, Head]) -> np.ndarray:
    """Names of the runs; by their place among all rows of the source where no column names them."""
    if "run" in heads:
        return np.array([text(cell) for cell in frame[heads["run"].header].astype(object)], dtype=object)
    return np.array([f"run-{place}" for place in range(1, len(frame) + 1)], dtype=object)


def _loss_units(heads: Mapping[str, Head], settings: Settings) -> tuple[LossUnit | None, str]:
    """The unit that losses are written in, where it is known, and the unit that they get."""
    word = settings.loss_unit or (heads["loss"].unit if "loss" in heads else NATS)
    written = loss_unit_of(word)
    if settings.bytes_per_token is not None:
        if written is None:
            raise ValueError(f"From {word!r} no bits per byte can be had; loss_unit is one of {', '.join(LOSS_UNITS)}.")
        return written, "bits per byte"
    if written is not None and written.kind == "perplexity":
        return written, NATS
    return written, word if written is None or settings.loss_unit else str(written)


def _given(
    cells: Cells, heads: Mapping[str, Head], form: Form, loss: tuple[LossUnit | None, str], settings: Settings
) -> dict[str, Column]:
    """The columns of numbers that the source has, in the units of a table of runs."""
    given = {}
    for name in NAMES:
        if name in heads and name != "run":
            head = heads[name]
            own = Form(form.decimal, name in ("n_params", "n_tokens") and head.scale == 1)
            col = column(head.header, cells.frame[head.header], name != "loss_se", own)
            given[name] = col if head.scale == 1 else replace(col, values=col.values * head.scale)
    written, unit = loss
    ratio = _bytes(cells, settings.bytes_per_token, form)
    if "n_tokens" in given and is_bytes(heads["n_tokens"].unit):
        if ratio is None:
            raise ValueError(
                f"{cells.source}: {heads['n_tokens'].header!r} is in {heads['n_tokens'].unit}. How many tokens that is "
                "needs the bytes per token of the tokenizer (bytes_per_token=, --bytes-per-token)."
            )
        given["n_tokens"] = replace(given["n_tokens"], values=given["n_tokens"].values / ratio)
    if written is None or str(written) == unit or "loss" not in given:
        return given
    values = given["loss"].values
    if "loss_se" in given:
        se = error_of_conversion(values, given["loss_se"].values, written, LOSS_UNITS[unit], ratio)
        given["loss_se"] = replace(given["loss_se"], values=se)
    given["loss"] = replace(given["loss"], values=written.convert(values, LOSS_UNITS[unit], ratio))
    return given


def _bytes(cells: Cells, said: float | str | None, form: Form) -> Any:
    if not isinstance(said, str):
        return said
    if said not in cells.frame:
        raise ValueError(f"bytes_per_token: there is no column {said!r}; the columns are {', '.join(cells.frame)}.")
    return column(said, cells.frame[said], form=Form(form.decimal)).values


def _take(columns: Mapping[str, Column], positions: np.ndarray) -> dict[str, Column]:
    return {name: _rows_of(col, positions) for name, col in columns.items()}


def _rows_of(col: Column, at: np.ndarray) -> Column:
    cells = [col.cells[k] for k in at.tolist()]
    return replace(col, cells=cells, values=col.values[at], is_text=col.is_text[at], needed=col.needed[at])


def _rows(cells: Cells, heads: Mapping[str, Head], run: np.ndarray, given: Mapping[str, Column], form: Form) -> Rows:
    nothing = np.full(len(run), np.nan)
    hints = {
        n: column(h.header, cells.frame[h.header], False, Form(form.decimal, True)).values * h.scale
        for n, h in heads.items()
        if n in NUMERIC
    }
    words = {n: np.array([text(c).casefold() for c in cells.frame[h.header]]) for n, h in heads.items() if n in WORDS}
    other = cells.frame.drop(columns=[h.header for h in heads.values()])
    families = [header for header in other if header.casefold() in FAMILIES]
    apart = [header for header in other if header.casefold() in ("model", "name", "seed")]
    apart += [heads[n].header for n in ("lr", "batch_size") if n in heads]
    without_name = cells.frame.drop(columns=[heads["run"].header] if "run" in heads else [])
    return Rows(
        **{name: given[name].values if name in given else nothing for name in ("n_params", "n_tokens", "loss")},
        run=run,
        is_named="run" in heads,
        hints=hints,
        words=words,
        label=_joined(cells.frame, [*families, *apart]),
        family=_joined(cells.frame, families),
        repeats=without_name.astype(str).duplicated().to_numpy(),
    )


def _joined(frame: pd.DataFrame, headers: Sequence[str]) -> np.ndarray:
    """The cells of several columns as one label."""
    label = np.full(len(frame), "", dtype=object)
    for header in headers:
        label = label + frame[header].astype(str).to_numpy(dtype=object) + "|"
    return label


def _excluded(cells: Cells, heads: Mapping[str, Head], run: np.ndarray, exclude: Choice | None) -> np.ndarray:
    """Why each row is left out by choice; empty where it is used."""
    reason = np.full(len(run), "", dtype=object)
    if exclude is None:
        return reason
    by_name = {header: cells.frame[header].tolist() for header in cells.frame}
    by_name |= {name: by_name[head.header] for name, head in heads.items() if name not in by_name}
    for mask, why in chosen(exclude, by_name, run.tolist(), cells.lines):
        reason[mask & (reason == "")] = why
    return reason


def _suspicions(rows: Rows, leave_out: LeaveOut, reason: np.ndarray) -> list[Suspicion]:
    """What the rules doubt; the rows of those that are left out by choice get their reason."""
    chosen_rules = row_rules(leave_out)
    for rule in chosen_rules:
        if not rule.applies(rows):
            raise ValueError(
                f"leave_out: {rule.name!r} needs a column of {' or '.join(rule.needs)}, and none was recognised; say "
                f"which it is: columns={{{rule.needs[0]!r}: 'HEADER'}}."
            )
    found = []
    for rule in dict.fromkeys((*chosen_rules, *ROW_RULES)):
        if rule.applies(rows):
            doubted = np.flatnonzero(rule.find(rows) & (reason == ""))
            if len(doubted):
                found.append(Suspicion(rule, doubted, rule in chosen_rules))
    for suspicion in found:
        if suspicion.left_out:
            free = suspicion.positions[reason[suspicion.positions] == ""]
            reason[free] = f"left out by rule: {suspicion.rule.name}"
    return found


def _checkpoint_names(rows: Rows, reason: np.ndarray) -> np.ndarray:
    """Names with their step or tokens, where several checkpoints of a run are used; others as they are."""
    run = rows.run.copy()
    used = np.flatnonzero(reason == "")
    several = used[(np.bincount(rows.trajectory[used])[rows.trajectory[used]] > 1) & rows.is_checkpoint[used]]
    if not rows.is_named:
        return run
    step = rows.hints.get("step", np.full(len(run), np.nan))
    for k in several.tolist():
        place = f"step {step[k]:.15g}" if np.isfinite(step[k]) else f"{rows.progress[k]:.15g} tokens"
        run[k] = f"{run[k]} @ {place}"
    return run


def _problems(
    cells: Cells, given: Mapping[str, Column], run: np.ndarray, heads: Mapping[str, Head], rule: ComputeRule, unit: str
) -> tuple[list[Problem], list[Problem]]:
    """Columns in a wrong unit, and the cells that break a rule otherwise."""
    sizes, _ = settle({name: given[name] for name in SIZES if name in given}, rule, cells.word, cells.lines)
    slips = unit_problems(given, unit) or ([] if "flop" not in given else unit_problems({**given, **sizes}, unit))
    others = [slip for slip in slips if "flop" not in given or slip.column != given["flop"].header]
    off = None if others else scale_slip(given, rule)
    if off and (off[1] or not slips):  # size and tokens tell more of the unit of compute than its own range
        ratio, probable = off
        looks = f"it looks as if it were in {probable}" if probable else "one of the three is in another unit"
        say = f"units={{'flop': {probable!r}}}" if probable else "units="
        why = f"is {ratio:.3g} times what the rule {rule} gives of size and tokens: {looks}. Say so: {say}."
        slips = [Problem(-1, None, given["flop"].header, f"{ratio:.3g}", why)]
    header = heads["run"].header if "run" in heads else "run"
    problems = row_problems({**given, **sizes}, run.tolist(), cells.lines, unit, header)
    slipped = {slip.column for slip in slips}  # a wrong unit is named once, not in every row
    return slips, [problem for problem in problems if problem.column not in slipped]


def _refuse(problems: Sequence[Problem], reason: np.ndarray) -> None:
    faults: dict[int, list[str]] = {}
    for problem in problems:
        faults.setdefault(problem.position, []).append(f"{problem.column} {problem.rule}: {problem.value}")
    for position, broken in faults.items():
        reason[position] = f"invalid: {'; '.join(broken)}"
