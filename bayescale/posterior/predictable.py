"""Whether a task follows the loss at all: checked before a link is fitted to it.

About six in ten tasks do not (Lourie et al. 2025, arXiv 2507.00885). A link fitted to one would give it an interval
nonetheless, so it is left out, by name and with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from scipy.stats import rankdata

from bayescale.inference import mode
from bayescale.model.joint import Joint, describe
from bayescale.model.table import of_group

FEWEST = 6  # scores: fewer do not tell four unknowns from chance
RANK = 0.5  # Spearman's correlation of score and minus loss, at least
EXPLAINED = 0.5  # share of the scatter of log odds that the link accounts for, at least
HELD = 0.25  # share of the runs, those of lowest loss, that the link has to forecast from the others
SKILL = 0.5  # share of the squared distance of those from the others' mean that the forecast accounts for, at least
LIMITS = {"rank": RANK, "explained": EXPLAINED, "held_out": SKILL}


@final
@dataclass(frozen=True)
class Verdict:
    """Whether a task can be predicted from the loss; all figures are on log odds, and 1 is the best.

    Attributes
    ----------
    task : str
    n_scores : int
    rank : float
        Spearman's correlation of the score with minus the loss.
    explained : float
        Share of the scores' scatter that the task's own link accounts for, against one score for all.
    held_out : float
        The same of the quarter of the runs with the lowest loss, forecast by the link of the others, against the
        mean of the others.
    reason : str
        Why it is unpredictable; empty where it is not.
    """

    task: str
    n_scores: int
    rank: float | None
    explained: float | None
    held_out: float | None
    reason: str

    @property
    def predictable(self) -> bool:
        """Whether a link is fitted to it."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**asdict(self), "predictable": self.predictable, "limits": LIMITS | {"n_scores": FEWEST}}


def judge(joint: Joint, data: Mapping[str, Any], tasks: Sequence[str], seed: int) -> list[Verdict]:
    """The verdict on each task, from a link of its own; ``joint`` and ``data`` are those of all tasks together."""
    alone = Joint(joint.law, joint.noise, tuple((n, "complete") for n, _ in joint.kinds), joint.fixed, 1)
    return [_one(alone, of_group(data, g, alone), task, seed) for g, task in enumerate(tasks)]


def _one(joint: Joint, data: dict[str, Any], task: str, seed: int) -> Verdict:
    mask, loss, y = data["mask"], data["run"]["loss"], data["log_loss"]
    n = int(mask.sum())
    if n < FEWEST:
        return Verdict(task, n, None, None, None, f"{n} scores, where {FEWEST} are the fewest that tell")
    if np.ptp(y[mask]) == 0 or np.ptp(loss[mask]) == 0:
        return Verdict(task, n, None, 0.0, None, "all its scores, or their losses, are the same")
    rank = float(np.corrcoef(rankdata(y[mask]), rankdata(-loss[mask]))[0, 1])
    explained = _skill(y, _fitted(joint, data, seed), mask, y[mask].mean())
    few = np.sort(loss[mask])[max(1, int(np.ceil(HELD * n))) - 1]
    others = mask & (loss > few)
    held = mask & ~others
    held_out = None
    if others.sum() >= 2:
        held_out = _skill(y, _fitted(joint, {**data, "mask": others}, seed), held, y[others].mean())
    return Verdict(task, n, rank, explained, held_out, _reason(rank, explained, held_out))


def _fitted(joint: Joint, data: Mapping[str, Any], seed: int) -> np.ndarray:
    """Log odds of every row by the link that fits those in the mask best."""
    best = mode.find(joint, data, np.random.default_rng(seed), starts=2)
    return np.asarray(describe(joint)(best.center[None], data)["mean"][0])


def _skill(y: np.ndarray, fitted: np.ndarray, at: np.ndarray, constant: float) -> float:
    return float(1 - ((y - fitted)[at] ** 2).sum() / max(((y[at] - constant) ** 2).sum(), 1e-12))


def _reason(rank: float, explained: float, held_out: float | None) -> str:
    if rank <= -RANK:
        return "its score falls as the loss does: is it an error?"
    if rank < RANK:
        return f"its score does not rise as the loss falls (rank correlation {rank:.2f}, limit {RANK})"
    if explained < EXPLAINED:
        return f"the link explains {explained:.2f} of its scatter (limit {EXPLAINED})"
    if held_out is not None and held_out < SKILL:
        return f"forecast from the other runs, those of lowest loss are off (skill {held_out:.2f}, limit {SKILL})"
    return ""
