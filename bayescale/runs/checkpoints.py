"""Which rows are finished runs: rules that name the rows that may be none, and that leave them out only when asked.

A rule is a value. `ROW_RULES` lists the rules that every table is held against; `Thinned` and rules with
other settings are given by value. A blank cell never makes a row suspicious.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd

from bayescale.runs.cells import listed
from bayescale.runs.columns import near
from bayescale.runs.rows import UNTRUE, Rows

CRASHED = ("crashed", "failed", "killed", "preempted", "running", "error", "aborted", "interrupted", "cancelled")
MANY = 3000  # rows beyond which runs are not compared with one another in pairs


class RowRule(ABC):
    """A reason to doubt that a row is a finished run of its own.

    To write one, add a frozen dataclass with a ``name``, the ``meaning`` that completes "rows that
    are …", ``needs`` (columns by meaning, of which one must be there; empty where any table will do),
    and ``find``.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def find(self, rows: Rows) -> np.ndarray:
        """Which rows the rule doubts: bool, shape (rows,)."""

    def applies(self, rows: Rows) -> bool:
        """Whether the table has what the rule needs."""
        return not self.needs or any(name in rows.hints or name in rows.words for name in self.needs)


@final
@dataclass(frozen=True)
class Duplicates(RowRule):
    """Rows whose cells, but for the run's name, are those of an earlier row."""

    name: ClassVar[str] = "duplicates"
    meaning: ClassVar[str] = "copies of an earlier row, each of which would count as new evidence"

    def find(self, rows: Rows) -> np.ndarray:
        return np.zeros(len(rows), dtype=bool) if rows.repeats is None else rows.repeats


@final
@dataclass(frozen=True)
class Intermediate(RowRule):
    """Checkpoints before the last of their run, or said not to be final."""

    name: ClassVar[str] = "intermediate checkpoints"
    meaning: ClassVar[str] = "checkpoints before the end of a run, which are no runs of their own"

    def find(self, rows: Rows) -> np.ndarray:
        said = np.isin(rows.words["is_final"], UNTRUE) if "is_final" in rows.words else False
        return (rows.is_checkpoint & ~rows.is_last) | said


@final
@dataclass(frozen=True)
class Thinned(RowRule):
    """All but ``most`` checkpoints of each run, evenly spaced in the logarithm of the tokens; the last is kept."""

    most: int = 20
    name: ClassVar[str] = "thinned"
    meaning: ClassVar[str] = "checkpoints between those that are kept of each run"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"Thinned(most): at least one checkpoint of a run is kept, not {self.most}.")

    def find(self, rows: Rows) -> np.ndarray:
        out = rows.is_checkpoint.copy()
        progress = rows.progress
        for members in pd.Series(np.arange(len(rows))).groupby(rows.trajectory).indices.values():
            usable = members[np.nan_to_num(progress[members]) > 0]
            if not len(usable):
                continue
            order = usable[np.argsort(progress[usable], kind="stable")]
            log = np.log(progress[order])
            wanted = np.linspace(log[0], log[-1], self.most) if self.most > 1 else log[-1:]
            out[order[np.searchsorted(log, wanted - 1e-12).clip(0, len(order) - 1)]] = False
            out[order[-1]] = False
        return out


@final
@dataclass(frozen=True)
class WarmUp(RowRule):
    """Checkpoints within the first ``share`` of their run's tokens, or the first ``tokens``, and rows at step 0.

    The loss still falls from guessing there. Choshen et al. 2024 (arXiv 2410.11840) leave out the first 10e9 tokens.
    """

    share: float = 0.01
    tokens: float = 0.0
    name: ClassVar[str] = "warm-up"
    meaning: ClassVar[str] = "from the warm-up of a run (before 1 % of its tokens)"

    def find(self, rows: Rows) -> np.ndarray:
        early = np.maximum(self.share * rows.n_tokens[rows.of_last], self.tokens)
        start = rows.is_checkpoint & (rows.n_tokens <= early)
        return start | (rows.hints["step"] <= 0 if "step" in rows.hints else False)


@final
@dataclass(frozen=True)
class Diverged(RowRule):
    """Losses ``rise`` above that of a run of the same family with no more parameters and no more tokens.

    Or above that of an earlier checkpoint of the same run, or twice the middle of the family.
    """

    rise: float = 0.15
    name: ClassVar[str] = "diverged"
    meaning: ClassVar[str] = "diverged: far worse than runs that spent no more on size and tokens"

    def find(self, rows: Rows) -> np.ndarray:
        ends = np.flatnonzero(rows.is_last & (rows.loss > 0) & (rows.n_params > 0) & (rows.n_tokens > 0))
        bad = np.zeros(len(rows), dtype=bool)
        family = np.full(len(rows), "") if rows.family is None else rows.family
        for members in pd.Series(ends).groupby(family[ends]).indices.values():
            own = ends[members]
            bad[own] = (rows.loss[own] > 2 * np.median(rows.loss[own])) & (len(own) > 4)
            if len(own) <= MANY:
                n, d, loss = rows.n_params[own], rows.n_tokens[own], rows.loss[own]
                cheaper = (n[None] <= n[:, None]) & (d[None] <= d[:, None])
                bad[own] |= loss > (1 + self.rise) * np.where(cheaper, loss[None], np.inf).min(axis=1, initial=np.inf)
        order = np.lexsort((rows.progress, rows.trajectory))
        lowest = pd.Series(rows.loss[order]).groupby(rows.trajectory[order]).cummin().to_numpy()
        bad[order] |= rows.loss[order] > (1 + self.rise) * lowest
        return bad


@final
@dataclass(frozen=True)
class Crashed(RowRule):
    """Runs whose status is not that of a finished one."""

    name: ClassVar[str] = "crashed"
    meaning: ClassVar[str] = "of runs that did not finish, by their status"
    needs: ClassVar[tuple[str, ...]] = ("status",)

    def find(self, rows: Rows) -> np.ndarray:
        return np.isin(rows.words["status"], CRASHED)


@final
@dataclass(frozen=True)
class Unfinished(RowRule):
    """Runs that end before ``reached`` of what was planned, or with more than ``decayed`` of their learning rate.

    Cosine schedules end at a tenth of the peak (Hoffmann et al. 2022); stopped at a third of a cosine,
    runs of 25M to 400M lose .04 to .06 nats more than with a cosine of their own length.
    """

    reached: float = 0.98
    decayed: float = 0.2
    name: ClassVar[str] = "unfinished decay"
    meaning: ClassVar[str] = "of runs that ended before their learning rate had decayed"
    needs: ClassVar[tuple[str, ...]] = ("planned_steps", "planned_tokens", "final_lr")

    def find(self, rows: Rows) -> np.ndarray:
        hints = rows.hints
        short = rows.n_tokens < self.reached * hints.get("planned_tokens", 0.0)
        short |= hints.get("step", np.inf) < self.reached * hints.get("planned_steps", 0.0)
        return short | (hints.get("final_lr", 0.0) > self.decayed * hints.get("lr", np.inf))


@final
@dataclass(frozen=True)
class Repeated(RowRule):
    """Runs that saw tokens more than once."""

    name: ClassVar[str] = "repeated data"
    meaning: ClassVar[str] = "of runs that saw tokens again, which are worth less than new ones"
    needs: ClassVar[tuple[str, ...]] = ("unique_tokens", "epochs")

    def find(self, rows: Rows) -> np.ndarray:
        once = 1.001  # the last batch may run over the end of the data
        seen = rows.n_tokens > once * rows.hints.get("unique_tokens", np.inf)
        return seen | (rows.hints.get("epochs", 0.0) > once)


@final
@dataclass(frozen=True)
class NotBest(RowRule):
    """Runs of one size and token count, at several learning rates or batch sizes, that are not the best of them."""

    name: ClassVar[str] = "not the best setting"
    meaning: ClassVar[str] = "not the best learning rate or batch size of their size and tokens"
    needs: ClassVar[tuple[str, ...]] = ("lr", "batch_size")

    def find(self, rows: Rows) -> np.ndarray:
        frame = pd.DataFrame({"n": rows.n_params, "d": rows.n_tokens, "loss": rows.loss})
        cells = frame.groupby(["n", "d"], sort=False)
        several = np.zeros(len(rows), dtype=bool)
        for name in self.needs:
            if name in rows.hints:
                setting = pd.Series(rows.hints[name])
                several |= setting.groupby([frame["n"], frame["d"]], sort=False).transform("nunique").to_numpy() > 1
        return several & (frame["loss"] > cells["loss"].transform("min")).to_numpy()


@final
@dataclass(frozen=True)
class OtherScale(RowRule):
    """Rows whose tokens per parameter are further than ``factor`` from the table's median."""

    factor: float = 1e4
    name: ClassVar[str] = "other scale"
    meaning: ClassVar[str] = "ten thousand times off the others in tokens per parameter, as cells in another unit are"

    def find(self, rows: Rows) -> np.ndarray:
        usable = (rows.n_params > 0) & (rows.n_tokens > 0) & np.isfinite(rows.n_params) & np.isfinite(rows.n_tokens)
        if usable.sum() < 3:
            return np.zeros(len(rows), dtype=bool)
        ratio = np.log(np.where(usable, rows.n_tokens, 1) / np.where(usable, rows.n_params, 1))
        return usable & (np.abs(ratio - np.median(ratio[usable])) > np.log(self.factor))


ROW_RULES: tuple[RowRule, ...] = (
    *(Duplicates(), Intermediate(), WarmUp(), Diverged(), Crashed()),
    *(Unfinished(), Repeated(), NotBest(), OtherScale()),
)
LeaveOut = str | RowRule | Sequence[str | RowRule]


def row_rules(chosen: LeaveOut) -> tuple[RowRule, ...]:
    """The rules that a choice names, by their names or by value, in the order of the choice.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    known = {rule.name: rule for rule in ROW_RULES}
    rules: list[Any] = [chosen] if isinstance(chosen, str | RowRule) else list(chosen)
    wrong = [rule for rule in rules if not isinstance(rule, RowRule) and rule not in known]
    if wrong:
        raise ValueError(
            f"leave_out: there is no rule {wrong[0]!r}; the rules are {listed(list(known))}.{near(wrong[0], known)}"
        )
    return tuple(rule if isinstance(rule, RowRule) else known[rule] for rule in rules)
