"""The rows of a table as rules look at them: which are checkpoints of one run, and which of them is the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

UNTRUE = ("false", "0", "no")


@dataclass(frozen=True)
class Rows:
    """What the rules look at, each an array of shape (rows,).

    Attributes
    ----------
    n_params, n_tokens, loss : array of float
        NaN where there is no number.
    run : array of str
        Names as the source has them, which may repeat.
    is_named : bool
        Whether a column names the runs.
    hints : mapping of str to array of float
        Further columns by meaning (``step``, ``unique_tokens``, …).
    words : mapping of str to array of str
        The same for columns of text (``status``, ``is_final``).
    label, family : array of str
        What else tells runs apart, and which runs are of one kind (corpus, group); '' where nothing does.
    repeats : array of bool
        Where all cells are those of an earlier row.
    """

    n_params: np.ndarray
    n_tokens: np.ndarray
    loss: np.ndarray
    run: np.ndarray
    is_named: bool = False
    hints: Mapping[str, np.ndarray] = field(default_factory=dict)
    words: Mapping[str, np.ndarray] = field(default_factory=dict)
    label: np.ndarray | None = None
    family: np.ndarray | None = None
    repeats: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.run)

    @cached_property
    def trajectory(self) -> np.ndarray:
        """Number of the run that each row is a checkpoint of (int, shape (rows,)); own numbers for single rows."""
        keys = self._by_name() if self.is_named and len(set(self.run.tolist())) < len(self) else self._by_step()
        own = np.arange(len(self)) + (keys.max(initial=-1) + 1)
        return pd.factorize(np.where(keys < 0, own, keys))[0]

    @property
    def is_checkpoint(self) -> np.ndarray:
        """Whether a row is one of several of its run (bool, shape (rows,))."""
        return np.bincount(self.trajectory)[self.trajectory] > 1

    @property
    def is_last(self) -> np.ndarray:
        """Whether a row is the last of its run: most tokens, and of those the latest row."""
        frame = pd.DataFrame({"t": self.trajectory, "d": self.progress, "k": np.arange(len(self))})
        last = frame.sort_values(["d", "k"], na_position="first").drop_duplicates("t", keep="last")["k"]
        return np.isin(np.arange(len(self)), last.to_numpy())

    @property
    def of_last(self) -> np.ndarray:
        """Position of the last row of each row's run (int, shape (rows,))."""
        last = np.flatnonzero(self.is_last)
        place = np.zeros(self.trajectory.max(initial=0) + 1, dtype=int)
        place[self.trajectory[last]] = last
        return place[self.trajectory]

    @cached_property
    def progress(self) -> np.ndarray:
        """How far each row is: its tokens, or its step where it has none."""
        return np.where(np.isnan(self.n_tokens), self.hints.get("step", self.n_tokens), self.n_tokens)

    def _by_name(self) -> np.ndarray:
        """Rows of one name and one size at different tokens; -1 where a name is used for other things."""
        frame = pd.DataFrame({"run": self.run, "n": self.n_params, "d": self.progress})
        grouped: Any = frame.groupby("run", sort=False)
        one_size = grouped["n"].transform("nunique") <= 1
        moves = grouped["d"].transform("nunique") > 1
        return np.where(one_size & moves & (frame["run"] != ""), pd.factorize(frame["run"])[0], -1)

    def _by_step(self) -> np.ndarray:
        """Rows of one size whose tokens grow with their step, as in a log without names; -1 elsewhere.

        Where every row has its own name, only if the table itself says that some are not final.
        """
        step, none = self.hints.get("step"), np.full(len(self), -1)
        some_are_not = np.isin(self.words.get("is_final", np.array([])), UNTRUE).any()
        if step is None or self.label is None or (self.is_named and not some_are_not):
            return none
        frame = pd.DataFrame({"n": self.n_params, "label": self.label, "step": step})
        per_step = np.divide(self.n_tokens, step, out=np.full(len(self), np.nan), where=step > 0)
        frame["rate"] = np.log(np.where(per_step > 0, per_step, np.nan))
        groups: Any = frame.groupby(["n", "label"], sort=False)
        even = groups["rate"].transform("max") - groups["rate"].transform("min") < np.log(1.02)
        moves = groups["step"].transform("nunique") == groups["step"].transform("size")
        key = groups.ngroup().to_numpy()
        return np.where(even & moves & (groups["step"].transform("size") > 1), key, -1)
