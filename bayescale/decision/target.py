"""Constraints on what a run reaches, and on what it costs: each with a probability over the joint draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bayescale.decision.constraint import MINUTE, Constraint
from bayescale.decision.crossing import crossing
from bayescale.decision.number import positive, probability
from bayescale.decision.objective import Objective
from bayescale.decision.outlook import Outlook


@final
@dataclass(frozen=True)
class Target(Constraint):
    """A loss that the run has to reach.

    Attributes
    ----------
    loss : float
        In the unit of the fit's loss.
    probability : float
        With which the run that is made, its scatter included, ends at that loss or below.

    Raises
    ------
    ValueError
        If ``loss`` is not positive, or ``probability`` not between 0 and 1.
    """

    loss: float
    probability: float = 0.9
    limit: ClassVar[str] = "loss"
    reaches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("Target(loss)", self.loss, "a loss")
        probability("Target(probability)", self.probability)

    def fewest(self, outlook: Outlook, size: np.ndarray) -> Any:
        return crossing(self.excess, outlook, size)

    def kept(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return self.excess(outlook, size, tokens) <= MINUTE

    def excess(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Log of the loss that is reached with the probability, over the target: (M,)."""
        reached = np.log(outlook.loss(outlook.choices(size, tokens))) + outlook.scatter
        return np.quantile(reached, self.probability, axis=0) - math.log(self.loss)

    def __str__(self) -> str:
        return f"a loss of at most {self.loss:g} with probability {self.probability:g}"


@final
@dataclass(frozen=True)
class AtMost(Constraint):
    """An objective of at most ``amount``, in its unit, with a probability.

    Attributes
    ----------
    objective : Objective
        A cost: one that rises with the tokens.
    amount : float
        Its limit.
    certainty : float
        Probability with which it is kept.

    Raises
    ------
    ValueError
        If the objective does not rise with the tokens, ``amount`` is not positive, or ``certainty`` is not
        between 0 and 1.
    """

    objective: Objective
    amount: float
    certainty: float = 0.9
    limit: ClassVar[str] = "amount"

    def __post_init__(self) -> None:
        if self.objective.tokens != "worse":
            raise ValueError(f"AtMost(objective) limits a cost, which rises with the tokens, not the {self.objective}.")
        positive("AtMost(amount)", self.amount, f"a limit in {self.objective.unit}")
        probability("AtMost(certainty)", self.certainty)

    def most(self, outlook: Outlook, size: np.ndarray) -> Any:
        first_above = crossing(lambda *choice: -self.excess(*choice), outlook, size)
        return np.where(first_above <= outlook.law.domain["n_tokens"][0], 0.0, first_above)

    def kept(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return self.excess(outlook, size, tokens) <= MINUTE

    def excess(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Log of the cost that is not exceeded with the probability, over the limit: (M,)."""
        cost = self.objective.outcomes(outlook, outlook.choices(size, tokens))
        return np.log(np.quantile(cost, self.certainty, axis=0)) - math.log(self.amount)

    def __str__(self) -> str:
        return f"{self.objective} of at most {self.amount:.4g} {self.objective.unit}, probability {self.certainty:g}"
