"""What runs scored at downstream tasks: columns of their own table, or a table of one score a row.

A score is a share of 1, of which more is better: an accuracy, a BLEU over 100. Whether a column holds shares or
percent is never guessed: what exceeds 1 is refused until its unit is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale.runs.cells import Cells, listed
from bayescale.runs.columns import near
from bayescale.runs.file import load
from bayescale.runs.number import Form, column, decimal_mark, number, text
from bayescale.runs.table import Runs

SHARE, PERCENT = "share", "percent"
SETTINGS = ("column", "chance", "questions", "unit")
KEYS = ("run", "task", "score")  # headers of a table of one score a row; ``questions`` may stand beside them
SAYS_PERCENT = re.compile(r"%|(?<![a-z])(percent|pct)(?![a-z])", re.IGNORECASE)


@final
@dataclass(frozen=True)
class Task:
    """What is known of a task beside its scores.

    Attributes
    ----------
    chance : float
        Score of guessing, a share: one over the number of choices, 0 where an answer is written.
    questions : float or None
        Number of questions behind each score, which bounds how sure it is; None where it is not known.
    column : str
        Header that its scores were read from.
    unit : str
        ``share`` or ``percent``, as they were written.
    """

    chance: float
    questions: float | None = None
    column: str = ""
    unit: str = SHARE


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of runs at tasks, checked.

    Attributes
    ----------
    table : DataFrame
        One row a score: ``run``, ``task``, ``loss`` of the run, ``score`` (a share), ``questions`` (NaN: not known).
    tasks : mapping of str to Task
        What is known of each, in the order given.
    notes : tuple of str
        What was assumed, and which runs have no score.
    loss_unit : str
        Unit of ``loss``.
    """

    table: pd.DataFrame
    tasks: Mapping[str, Task]
    notes: tuple[str, ...]
    loss_unit: str

    def to_dict(self) -> dict[str, Any]:
        """All but the rows, as JSON values."""
        return {
            "tasks": {name: vars(task) for name, task in self.tasks.items()},
            "notes": list(self.notes),
            "loss_unit": self.loss_unit,
        }


def read_scores(runs: Runs, tasks: Mapping[str, Any], *, table: str | Path | pd.DataFrame | None = None) -> Scores:
    """Scores of runs at downstream tasks.

    Parameters
    ----------
    runs : Runs
        The runs that were scored.
    tasks : mapping of str to mapping or number
        By the task's name: ``chance``, the score of guessing as a share (one over the number of choices, 0 where an
        answer is written); and optionally ``column`` (its header, unless that is the name), ``questions`` (how many
        there are) and ``unit`` (``share`` or ``percent``). A number alone is the chance.
    table : path or DataFrame, optional
        Scores one a row, with columns ``run``, ``task``, ``score`` and perhaps ``questions``; the columns of the
        runs' own table unless given.

    Returns
    -------
    Scores

    Raises
    ------
    ValueError
        If a task, a column or a cell breaks a rule; one message names all of them.
    """
    faults: list[str] = []
    known = {name: _task(str(name), said, faults) for name, said in tasks.items()}
    if not known:
        raise ValueError("Name at least one task: scores={'hellaswag': {'column': 'acc_hellaswag', 'chance': 0.25}}.")
    usable = {str(name): task for name, task in known.items() if task}
    cells = _columns(runs, usable, faults) if table is None else _rows(runs, usable, load(table), faults)
    parts, notes = [], []
    settled: dict[str, Task] = {}
    for name, part in cells.items():
        settled[name], share = _shares(name, usable[name], part, faults, notes)
        parts.append(part.assign(score=share))
    if faults:
        raise ValueError("\n  ".join([f"Scores of {runs.source}:", *faults]))
    found = pd.concat(parts, ignore_index=True)
    found = found.loc[np.isfinite(found["score"].to_numpy())].reset_index(drop=True)
    return Scores(found[["run", "task", "loss", "score", "questions"]], settled, tuple(notes), runs.loss_unit)


def _task(name: str, said: Any, faults: list[str]) -> Task | None:
    """A task's settings, or None where they break a rule."""
    given = dict(said) if isinstance(said, Mapping) else {"chance": said}
    before = len(faults)
    unknown = [key for key in given if key not in SETTINGS]
    faults += [f"{name}: no setting {key!r}; there are {', '.join(SETTINGS)}.{near(key, SETTINGS)}" for key in unknown]
    chance, questions, unit = given.get("chance"), given.get("questions"), given.get("unit", "")
    if "chance" not in given:
        faults.append(f"{name}: chance is missing: one over the number of choices, 0 where an answer is written.")
    elif not _is_number(chance) or not 0 <= float(chance) < 1:  # type: ignore[arg-type]
        faults.append(f"{name}: chance is a share, 0 or more and below 1 (0.25 of four choices), not {chance!r}.")
    if questions is not None and (not _is_number(questions) or questions < 1):
        faults.append(f"{name}: questions is how many there are, 1 or more, not {questions!r}.")
    if unit not in ("", SHARE, PERCENT):
        faults.append(f"{name}: unit is {SHARE!r} or {PERCENT!r}, not {unit!r}.")
    if len(faults) > before:
        return None
    asked = float(questions) if questions is not None else None
    return Task(float(chance), asked, str(given.get("column", name)), unit)  # type: ignore[arg-type]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _columns(runs: Runs, tasks: Mapping[str, Task], faults: list[str]) -> dict[str, pd.DataFrame]:
    """By task, the cells of its column of the runs' own table."""
    own = runs.table
    for name, task in tasks.items():
        if task.column not in own:
            faults.append(f"{name}: there is no column {task.column!r}.{near(task.column, own)}")
    out = {}
    for name, task in tasks.items():
        if task.column in own:
            part = own[["run", "loss", "line"]].assign(task=name, cell=own[task.column])
            out[name] = part.assign(questions=np.nan if task.questions is None else task.questions)
    return out


def _rows(runs: Runs, tasks: Mapping[str, Task], cells: Cells, faults: list[str]) -> dict[str, pd.DataFrame]:
    """By task, the cells of a table of one score a row."""
    frame = cells.frame.assign(line=cells.lines)
    lacking = [key for key in KEYS if key not in frame]
    if lacking:
        faults.append(f"{cells.source}: no column {', '.join(lacking)}; one score a row needs {', '.join(KEYS)}.")
        return {}
    frame = frame.assign(run=[text(c) for c in frame["run"]], task=[text(c) for c in frame["task"]])
    loss = dict(zip(runs.table["run"], runs.table["loss"], strict=True))
    strangers = sorted({run for run in frame["run"] if run not in loss})
    if strangers:
        faults.append(f"{cells.source}: no such runs in {runs.source}: {listed(strangers)}. Correct or remove them.")
    twice = frame.loc[frame.duplicated(["run", "task"]), ["line", "run", "task"]]
    if len(twice):
        said = listed([f"{cells.word} {line}: {run}, {task}" for line, run, task in twice.itertuples(index=False)])
        faults.append(f"{cells.source}: a run's score at a task stands twice ({said}). Remove one of each.")
    frame = frame.assign(loss=[loss.get(run, math.nan) for run in frame["run"]], cell=frame["score"])
    out = {}
    for name, task in tasks.items():
        part = frame.loc[frame["task"] == name]
        if not len(part):
            faults.append(f"{name}: no row has this task.{near(name, set(frame['task']))}")
            continue
        given = [number(c) for c in part["questions"]] if "questions" in part else [task.questions] * len(part)
        asked = np.array([math.nan if q is None else q for q in given], float)
        if (asked < 1).any():
            faults.append(f"{name}: questions are 1 or more, not {np.nanmin(asked):g}.")
        out[name] = part.assign(questions=asked)
    return out


def _shares(name: str, task: Task, part: pd.DataFrame, faults: list[str], notes: list[str]) -> tuple[Task, np.ndarray]:
    """A task with its unit settled, and its scores as shares, NaN where a cell is blank."""
    read = column(task.column, part["cell"], needed=False, form=Form(decimal_mark([part["cell"]])))
    values, lines = read.values, part["line"].tolist()

    def fault(broken: np.ndarray, rule: str) -> None:
        if broken.any():
            said = listed([f"row {lines[i]}: {read.cells[i]!r}" for i in np.flatnonzero(broken).tolist()])
            faults.append(f"{name}: {task.column} {rule} ({said}).")

    fault(read.is_text, "holds what is no number")
    fault(values < 0, "is below 0, which no score is")
    unit = task.unit or (PERCENT if SAYS_PERCENT.search(task.column) else "")
    if not unit:
        way_out = f"percent? Say {{'unit': '{PERCENT}'}}, or divide by what is the best there is"
        fault(values > 1, f"exceeds 1, read as a share: {way_out}")
    else:
        fault(values > (1 if unit == SHARE else 100), f"exceeds the most that a {unit} can be")
    if not np.isfinite(values).any() and not read.is_text.any():
        faults.append(f"{name}: {task.column} holds no score.")
    how = "given" if task.unit else "told by the header" if unit else "assumed: none exceeds 1"
    unit = unit or SHARE
    notes.append(f"{name}: {task.column} read as {unit}s of 1 ({how})" if unit == SHARE else
                 f"{name}: {task.column} read as {unit} ({how})")  # fmt: skip
    blank = part.loc[np.isnan(values) & ~read.is_text, "run"].tolist()
    if blank:
        notes.append(f"{name}: no score of {listed(blank)}")
    return Task(task.chance, task.questions, task.column, unit), values / (1 if unit == SHARE else 100)
