"""What a run scores downstream: as what is to be as large as possible, and as what has to be reached.

Every draw of the law's loss goes through a draw of the link beside it. An outcome is a loss, so an objective here is
minus a score.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from bayescale.decision.constraint import MINUTE, Constraint
from bayescale.decision.crossing import crossing
from bayescale.decision.number import probability
from bayescale.decision.objective import Objective, Regret, Weighted
from bayescale.decision.outlook import Choices, Outlook
from bayescale.posterior.link_store import load_link
from bayescale.posterior.linked import Linked
from bayescale.posterior.score_forecast import MEAN, Scatter, scatter

BLOCK = 64  # choices evaluated at a time: one compiled program serves any number


@final
@dataclass(frozen=True)
class Score(Objective):
    """The mean score of a run at a task, or its mean over all tasks that have a link.

    Attributes
    ----------
    linked : Linked or str
        From `fit_link`; or the path of a saved one.
    task : str or None
        The task; None: the mean over tasks.

    Raises
    ------
    ValueError
        If the task has no link, because it is unpredictable or was not read.
    """

    linked: Linked | str
    task: str | None = None
    tokens: ClassVar[str] = "better"

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def unit(self) -> str:
        return "minus a share of 1"

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        return -reached(self.linked, self.task, outlook, np.log(outlook.loss(choices)))

    def __str__(self) -> str:
        return f"minus the score, {self.task or MEAN}"


@final
@dataclass(frozen=True)
class ScoreTarget(Constraint):
    """A score that the run has to reach.

    Attributes
    ----------
    linked : Linked or str
        From `fit_link`; or the path of a saved one.
    score : float
        A share of 1.
    task : str or None
        The task; None: the mean over tasks.
    probability : float
        With which the run that is made is measured to have that score or more, its scatter included.

    Raises
    ------
    ValueError
        If ``score`` or ``probability`` is not between 0 and 1, or the task has no link.
    """

    linked: Linked | str
    score: float
    task: str | None = None
    probability: float = 0.9
    limit: ClassVar[str] = "score"
    reaches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        probability("ScoreTarget(score)", self.score)
        probability("ScoreTarget(probability)", self.probability)
        _settle(self)

    def fewest(self, outlook: Outlook, size: np.ndarray) -> np.ndarray:
        return crossing(self.excess, outlook, size)

    def kept(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return self.excess(outlook, size, tokens) <= MINUTE

    def excess(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The score less that which is reached with the probability: (M,)."""
        return self.score - np.quantile(self.draws(outlook, size, tokens), 1 - self.probability, axis=0)

    def draws(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The score of the run that is made, (S, M)."""
        log_loss = np.log(outlook.loss(outlook.choices(size, tokens))) + outlook.scatter
        return reached(self.linked, self.task, outlook, log_loss, scattered=True)

    def relaxed(self, factor: float) -> Constraint:
        return replace(self, score=self.score / factor)

    def __str__(self) -> str:
        return f"a score ({self.task or MEAN}) of at least {self.score:g} with probability {self.probability:g}"


def reached(
    linked: Linked | str, task: str | None, outlook: Outlook, log_loss: np.ndarray, *, scattered: bool = False
) -> np.ndarray:
    """Scores at log losses (S, M), draw by draw: (S, M)."""
    assert isinstance(linked, Linked)
    values = {k: outlook.kept(v) for k, v in linked.values(outlook.total, outlook.seed).items()}
    away = _scatter(linked, outlook.total, outlook.seed).kept(outlook.kept) if scattered else None
    at = slice(None) if task is None else slice(linked.tasks.index(task), linked.tasks.index(task) + 1)
    out = []
    for first in range(0, log_loss.shape[1], BLOCK):
        part = log_loss[:, first : first + BLOCK]
        filled = np.concatenate([part, np.repeat(part[:, -1:], BLOCK - part.shape[1], axis=1)], axis=1)
        share = linked.shares(values, np.exp(filled), at)
        share = share if away is None else away.on(linked, share, at)
        out.append(share[:, : part.shape[1]].mean(axis=-1))
    return np.concatenate(out, axis=1)


@functools.cache
def _scatter(linked: Linked, size: int, seed: int) -> Scatter:
    """The same for every choice, so that choices differ by what was chosen and not by chance."""
    return scatter(linked, linked.values(size, seed), (size, 1), np.random.default_rng([seed, 5]))


def asked(objective: Objective, constraints: Sequence[Constraint]) -> list[tuple[Linked, str | None]]:
    """The links, and tasks, that an objective and constraints read; each once."""
    found: list[Any] = [objective, *constraints]
    if isinstance(objective, Regret):
        found.append(objective.of)
    if isinstance(objective, Weighted):
        found += [each for _, each in objective.terms]
    return list(dict.fromkeys((n.linked, n.task) for n in found if isinstance(n, Score | ScoreTarget)))  # type: ignore[misc]


def scores(outlook: Outlook, choice: Choices, linked: Linked, task: str | None) -> dict[str, np.ndarray]:
    """Draws (S,) of the mean score at a choice, and of the measured score of the run that is made."""
    loss = np.log(replace(outlook, held=None).loss(choice))
    mean = reached(linked, task, outlook, loss)
    run = reached(linked, task, outlook, loss + outlook.scatter, scattered=True)
    return {"mean": mean[:, 0], "new_run": run[:, 0]}


def _settle(noun: Score | ScoreTarget) -> None:
    """A link from its file, and a task that has one."""
    if isinstance(noun.linked, str):
        object.__setattr__(noun, "linked", load_link(noun.linked))
    if noun.task is not None:
        noun.linked.named(noun.task)  # type: ignore[union-attr]
