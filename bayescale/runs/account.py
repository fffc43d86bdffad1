"""What a reading recognised, in a table and in sentences: shown before a fit, and stored with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayescale.runs.cells import listed
from bayescale.runs.checkpoints import Duplicates, Intermediate
from bayescale.runs.columns import THINGS
from bayescale.runs.number import shown
from bayescale.runs.reading import Reading, Suspicion
from bayescale.runs.rules import HIGH_LOSS
from bayescale.runs.settings import Settings
from bayescale.runs.settle import Note
from bayescale.runs.units import UNITS, is_bytes, loss_unit_of

KEPT = "column of the source, kept as it is"


def recognised(reading: Reading) -> pd.DataFrame:
    """One row a column: ``column``, ``meaning``, ``unit``, rows ``used`` and ``refused``, and ``why``."""
    by_header = {head.header: head for head in reading.heads.values()}
    used = int((reading.reason == "").sum()) if not reading.slips else 0
    rows = []
    for header in reading.cells.frame:
        head = by_header.get(header)
        why = _refusals(reading, header)
        meaning = f"{head.name}: {THINGS[head.name]}" if head else KEPT
        unit = "" if head is None else _unit(reading, head.name)
        rows.append((header, meaning, unit, used, sum(why.values()), _reasons(why)))
    for name in UNITS:
        if name not in reading.heads:
            why = _refusals(reading, f"{name} (derived)")
            rows.append(("(derived)", f"{name}: {THINGS[name]}", UNITS[name], used, sum(why.values()), _reasons(why)))
    return pd.DataFrame(rows, columns=["column", "meaning", "unit", "used", "refused", "why"], dtype=object)


def _refusals(reading: Reading, header: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for problem in [*reading.slips, *reading.problems]:
        if problem.column == header:
            rows = 1 if problem.position >= 0 else len(reading.reason)  # a column in a wrong unit is so in every row
            counts[problem.rule] = counts.get(problem.rule, 0) + rows
    return counts


def _reasons(why: dict[str, int]) -> str:
    return "; ".join(f"{rule} ({count})" for rule, count in why.items())


def _unit(reading: Reading, name: str) -> str:
    head = reading.heads[name]
    if name in ("loss", "loss_se"):
        said = loss_unit_of(reading.heads["loss"].unit)
        source = str(said) if said and head.declared else ""
        return f"{reading.loss_unit}, from {source}" if source and source != reading.loss_unit else reading.loss_unit
    counts = f" ({head.counts})" if head.counts else ""
    return f"{head.unit}{counts}"


def reading_notes(reading: Reading, settings: Settings) -> list[Note]:
    """How the columns were read: headers, units, conventions, the form of numbers."""
    read = ", ".join(f"{name} from {header!r}" for name, header in reading.found.items())
    hints = [f"{name} from {head.header!r}" for name, head in reading.heads.items() if name not in reading.found]
    units = f"n_params in parameters, n_tokens in tokens, flop in FLOPs, loss in {reading.loss_unit}"
    notes = [f"Columns read: {read}.", f"Units: {units}."]
    notes += [f"Also recognised: {', '.join(hints)}."] if hints else []
    notes += [] if "run" in reading.heads else [_unnamed(reading)]
    for name, head in reading.heads.items():
        if name in UNITS and (head.scale != 1 or is_bytes(head.unit)):
            by = "as declared" if name in settings.units else f"by its header {head.header!r}"
            notes.append(f"{name} is read in {head.unit} ({by}){', as tokens' if is_bytes(head.unit) else ''}.")
    return [(logging.INFO, note) for note in [*notes, *_loss_notes(reading, settings), *_form_notes(reading)]]


def _unnamed(reading: Reading) -> str:
    first = int(np.flatnonzero(reading.reason == "")[0]) if (reading.reason == "").any() else 0
    return f"Runs are named by their place in the table, {reading.run[first]} first."


def _loss_notes(reading: Reading, settings: Settings) -> list[str]:
    head = reading.heads["loss"]
    word = settings.loss_unit or head.unit
    written = loss_unit_of(word)
    notes = []
    if written is not None and str(written) != reading.loss_unit:
        by = "as declared" if settings.loss_unit else f"by its header {head.header!r}"
        notes.append(f"loss is converted from {written} ({by}) to {reading.loss_unit}.")
    if settings.bytes_per_token is not None:
        said = settings.bytes_per_token
        notes.append(f"Bytes per token: {f'column {said!r}' if isinstance(said, str) else f'{said:g}'}.")
    counts = reading.heads["n_params"].counts if "n_params" in reading.heads else ""
    if counts:
        by = "as declared" if settings.counts else f"by the header {reading.heads['n_params'].header!r}"
        notes.append(f"Sizes count {counts} parameters ({by}).")
    return notes


def _form_notes(reading: Reading) -> list[str]:
    notes = [f"The source is {reading.cells.dialect}."] if reading.cells.dialect else []
    if reading.form.decimal == ",":
        notes.append("Numbers are read with a decimal comma, for which the cells speak or which was declared.")
    used = np.flatnonzero(reading.reason == "")
    lines = reading.cells.lines
    for col in reading.numbers.values():
        odd = [
            k
            for k, cell in enumerate(col.cells)
            if isinstance(cell, str) and not col.is_text[k] and cell[-1:].lower() in ("k", "m", "b", "t")
        ]
        if odd:
            k = odd[0]
            notes.append(
                f"{col.header}: {len(odd)} of {len(used)} cells are written with a suffix, as {shown(col.cells[k])} "
                f"({reading.cells.word} {lines[used[k]]}), read as {col.values[k]:.15g}."
            )
    return notes


def suspicion_notes(reading: Reading) -> list[Note]:
    """What each rule doubts, and how the rows are left out; nothing about rows that a rule of cells refuses."""
    notes = []
    for suspicion in reading.suspicions:
        kept = suspicion.positions[reading.reason[suspicion.positions] == ""]
        if not suspicion.left_out and len(kept):
            notes.append((logging.WARNING, _doubt(reading, suspicion, kept)))
    return notes


def high_loss_notes(reading: Reading, settings: Settings) -> list[Note]:
    """A loss that nobody said the unit of, and that few finished runs have."""
    loss = reading.numbers["loss"]
    unsaid = settings.loss_unit is None and not reading.heads["loss"].declared
    usual = unsaid and reading.loss_unit == "nats per token"
    median = float(np.median(loss.values)) if usual and len(loss.values) else 0.0
    if median <= HIGH_LOSS:
        return []
    say = (
        f"{loss.header} has the median {median:.3g}, read as nats per token, which only very small or barely trained "
        'models lose. If these are perplexities, say so: loss_unit="perplexity" takes their log.'
    )
    return [(logging.WARNING, say)]


def _doubt(reading: Reading, suspicion: Suspicion, kept: np.ndarray) -> str:
    rule, cells = suspicion.rule, reading.cells
    rows = f"{cells.word}{'s' if len(kept) > 1 else ''} {listed([cells.lines[k] for k in kept])}"
    n = int((reading.reason == "").sum())
    out = f"leave_out={[rule.name]!r} leaves them out"
    if isinstance(rule, Duplicates):
        return (
            f"{len(kept)} of {n} rows repeat an earlier row exactly ({rows}). They are kept, and each counts as new "
            f"evidence: leave copies of one run out ({out})."
        )
    if isinstance(rule, Intermediate):
        out = f"{out}, leave_out=Thinned(20) keeps 20 of each run"
        trajectory = reading.rows.trajectory[np.flatnonzero((reading.reason == "") & reading.rows.is_checkpoint)]
        runs = len(np.unique(trajectory))
        belong = f": {len(trajectory)} rows belong to {runs} runs" if runs else ""
        return (
            f"{len(kept)} of {n} rows are {rule.meaning} ({rows}){belong}. They are kept: sampling takes as many times "
            f"longer as there are more rows, and intervals come out too narrow; {out}, and "
            "fit(..., shocks=[Shocks('trajectory')]) gives the rows of a run one shock."
        )
    return f"{len(kept)} of {n} rows may be {rule.meaning} ({rows}). They are kept; {out}."


def left_out_notes(reason: Sequence[str] | np.ndarray, lines: Sequence[object], word: str) -> list[Note]:
    """How many rows are not used, by kind of reason."""
    notes = []
    kinds = dict.fromkeys(_kind(why) for why in reason if why)
    for kind in kinds:
        out = [k for k, why in enumerate(reason) if why and _kind(why) == kind]
        level = logging.WARNING if kind == "invalid" else logging.INFO
        rows = listed([lines[k] for k in out])
        notes.append((level, f"{len(out)} of {len(reason)} rows are not used, {kind} ({word}s {rows})."))
    return notes


def _kind(why: str) -> str:
    if why.startswith("left out by choice"):
        return "left out by choice"
    return "invalid" if why.startswith("invalid") else why


def broken_notes(reading: Reading) -> list[Note]:
    """Rows of the source that hold no cells."""
    broken = reading.cells.broken
    if not broken:
        return []
    places = listed([f"{reading.cells.word} {line}: {why}" for line, _, why in broken])
    return [(logging.WARNING, f"Rows that could not be read and are not used: {len(broken)} ({places}).")]
