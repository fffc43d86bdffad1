"""The rules of a valid table of runs, all checked at once; nothing is corrected and nothing guessed."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescale.runs.cells import listed
from bayescale.runs.number import Column, Form, is_ambiguous, shown
from bayescale.runs.units import UNITS, loss_unit_of

AMBIGUOUS = 'may be two numbers, since nothing in the table tells which mark is the decimal one: decimal="." or ","'
MISSING = "is missing"
INFINITE = "is not finite"
POSITIVE = "is not positive"
TWICE = "is not unique"
UNWRITABLE = "holds a character that files and terminals cannot show (a control character, half a pair)"

# No language model has fewer parameters; a smaller number beside plain counts is one in millions or billions.
LEAST_PARAMS = 1e3
# Largest values of a table, below which it is not in plain counts: ten thousand parameters, a million
# tokens, and what training those would cost are all far below any published sweep (public tables
# reach down to 3e5 parameters, 5e6 tokens, 1e16 FLOPs).
LARGEST_AT_LEAST = {"n_params": 1e4, "n_tokens": 1e6, "flop": 1e12}
# A model that guesses evenly among a vocabulary of 400,000 tokens loses log(400,000) = 12.9 nats; a run may
# have diverged beyond that, half of a table has not.
MEDIAN_LOSS_AT_MOST = 13.0
HIGH_LOSS = 6.0  # a median that few tables of finished runs exceed, and that a perplexity may have
LOSS_AT_MOST = 50.0
MEDIAN_LOSS_OF_BYTES_AT_MOST = 5.6  # log(256) = 5.55


@dataclass(frozen=True)
class Problem:
    """One broken rule: the row's position and line, header, cell as shown, rule.

    The position is -1 for a whole column, and -2 for a row of the source that holds no cells.
    """

    position: int
    line: Any
    column: str
    value: str
    rule: str


class InvalidRuns(ValueError):
    """A table of runs that breaks rules.

    Attributes
    ----------
    problems : DataFrame
        One row a broken rule: ``line`` (None where it is the whole column), ``column``, ``value``
        (text) and ``rule``.
    """

    def __init__(self, problems: Sequence[Problem], source: str = "the table", word: str = "row") -> None:
        rows = [(problem.line, problem.column, problem.value, problem.rule) for problem in problems]
        self.problems = pd.DataFrame(rows, columns=["line", "column", "value", "rule"], dtype=object)
        super().__init__(_message(problems, source, word))


def _message(problems: Sequence[Problem], source: str, word: str) -> str:
    rows = len({(p.position, p.line) for p in problems if p.position != -1})
    by_rule: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        by_rule.setdefault((problem.column, problem.rule), []).append(problem)
    sentences = []
    for (header, rule), broken in by_rule.items():
        places = listed([f"{word} {p.line}: {p.value}" for p in broken if p.position != -1])
        count = f" in {len(broken)} {word}s" if len(broken) > 1 else ""
        sentences.append(f"{header} {rule}{count} ({places})".lstrip() if places else f"{header} {rule}")
    way_out = 'Correct them, or leave those rows out with on_invalid="drop".' if rows else "Correct the table."
    head = f"{source}: {rows} {word if rows == 1 else word + 's'} cannot be used." if rows else f"{source}:"
    return "\n  ".join([head, *sentences, way_out])


def row_problems(
    columns: Mapping[str, Column],
    run: Sequence[str],
    lines: Sequence[Any],
    loss_unit: str,
    run_header: str = "run",
) -> list[Problem]:
    """Every cell that breaks a rule, in the order of the rows; each cell is named once, for its first rule."""
    found = []
    for name, col in columns.items():
        free = np.ones(len(col.values), dtype=bool)
        for rule, broken in _rules(name, col, loss_unit):
            rows = np.flatnonzero(broken & free).tolist()
            found += [Problem(row, lines[row], col.header, shown(col.cells[row]), rule) for row in rows]
            free &= ~broken
    times = Counter(run)
    for row, name in enumerate(run):
        rule = MISSING if not name else TWICE if times[name] > 1 else "" if is_writable(name) else UNWRITABLE
        if rule:
            found.append(Problem(row, lines[row], run_header, ascii(name) if rule == UNWRITABLE else repr(name), rule))
    return sorted(found, key=lambda problem: problem.position)


def is_writable(name: str) -> bool:
    """Whether a label can be written to any file: no control characters, and no halves of surrogate pairs."""
    return name.isprintable() or not any(unicodedata.category(character) in ("Cc", "Cs") for character in name)


def _rules(name: str, col: Column, loss_unit: str) -> list[tuple[str, np.ndarray]]:
    values = col.values
    either = np.array([is_ambiguous(cell, col.form) for cell in col.cells]) if col.form.decimal is None else False
    rules = [
        (AMBIGUOUS, col.is_text & either),
        (not_plain(col.form), col.is_text),
        (MISSING, col.is_blank & col.needed),
        (INFINITE, np.isinf(values)),
        (POSITIVE, values <= 0),
    ]
    if name == "n_params":
        rules.append((f"is below {LEAST_PARAMS:,.0f} parameters: in millions or billions?", values < LEAST_PARAMS))
    if name == "n_tokens":
        rules.append(("is below one token", values < 1))
    if name == "loss":
        most = _limits(loss_unit)[1]
        rules.append((f"is above {most:.3g} {loss_unit}: perplexity, or a diverged run?", values > most))
    return rules


def not_plain(form: Form) -> str:
    """The rule that a cell in this form breaks when it is no number, with examples of what is read."""
    mark, group = (",", ".") if form.decimal == "," else (".", ",")
    size = f"70B, 70e9 or 70{group}000{group}000{group}000" if form.suffixes else "3e21"
    return f"is not a plain number (such as {size}, with the decimal mark of 3{mark}21)"


def unit_problems(columns: Mapping[str, Column], loss_unit: str) -> list[Problem]:
    """Columns whose every value is too small, or too large, for the unit that they are read in."""
    found = []
    for name, least in LARGEST_AT_LEAST.items():
        values = columns[name].values[columns[name].is_usable] if name in columns else np.array([])
        if len(values) and values.max() < least:
            multiple = "GFLOP, PF-days" if name == "flop" else "millions, billions"
            ways = ("GFLOP", "PF-days") if name == "flop" else ("M", "B")
            rule = (
                f"runs from {values.min():g} to {values.max():g}, read as {UNITS[name]}: it looks as if it were in "
                f"{multiple} or another multiple. Give it in {UNITS[name]}, or say its unit: "
                f"units={{{name!r}: {ways[0]!r}}} or units={{{name!r}: {ways[1]!r}}}."
            )
            if columns[name].header == f"{name} (derived)":
                rule = (
                    f"runs from {values.min():g} to {values.max():g} {UNITS[name]}, which no run has: a column that it "
                    "is derived from is in another unit. Say which, as in units={'flop': 'GFLOP'}."
                )
            found.append(Problem(-1, None, columns[name].header, f"{values.max():g}", rule))
    losses = columns["loss"].values[columns["loss"].is_usable]
    limit = _limits(loss_unit)[0]
    if len(losses) and np.median(losses) > limit:
        rule = (
            f"has the median {np.median(losses):g}, read as {loss_unit}: guessing evenly loses at most {limit:.3g}, "
            'so it looks as if it were a perplexity (loss_unit="perplexity" takes its log) or in another unit (name it '
            "with loss_unit=)."
        )
        found.append(Problem(-1, None, columns["loss"].header, f"{np.median(losses):g}", rule))
    return found


def _limits(loss_unit: str) -> tuple[float, float]:
    """What the median loss and any loss of a table are at most, in its unit; infinite for a unit that is unknown."""
    unit = loss_unit_of(loss_unit)
    if unit is None:
        return np.inf, np.inf
    median = MEDIAN_LOSS_AT_MOST if unit.per == "token" else MEDIAN_LOSS_OF_BYTES_AT_MOST
    return float(unit.from_nats(median)), float(unit.from_nats(LOSS_AT_MOST))
