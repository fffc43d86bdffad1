"""How spread is weighed: from draws of an outcome to the one figure that is minimised.

An outcome is a loss: larger is worse. A risk measure reads the outcomes of all draws and says how bad a
choice is; the mean is neutral, the others count bad draws for more. What a measure reads stands in its
fields, so that a level is never guessed: ``CVaR(0.1)`` is the mean of the worst tenth.

Minimax regret is `Worst` of the objective `Regret`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bayescale.decision.number import positive, probability

LEAST = 30  # effective draws in a tail: its mean is then known to a fifth of the tail's own spread


class Risk(ABC):
    """A measure of the outcomes of one choice.

    To write one, add a frozen dataclass with ``of``. It has to rise where every outcome rises, and
    to be the outcome itself where all are alike. ``is_convex`` says that of a mixture of two outcomes it is
    no more than the mixture of their risks: where outcomes are smooth in size, it then has kinks but is not rough.
    """

    is_convex: ClassVar[bool] = True

    @abstractmethod
    def of(self, outcomes: np.ndarray) -> np.ndarray:
        """The measure of each choice, in the unit of the outcomes.

        Parameters
        ----------
        outcomes : array (S, M)
            One row a draw, one column a choice.

        Returns
        -------
        array (M,)
        """

    @abstractmethod
    def __str__(self) -> str:
        """What it is, with its level and side: ``mean of the worst 10 %``."""

    @property
    def tail_share(self) -> float | None:
        """Share of the draws on which it rests, where that is a tail."""
        return None


@final
@dataclass(frozen=True)
class Mean(Risk):
    """Risk neutral: the expected outcome."""

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        return outcomes.mean(axis=0)

    def __str__(self) -> str:
        return "mean"


@final
@dataclass(frozen=True)
class Quantile(Risk):
    """The outcome that is not exceeded with probability ``level``.

    Raises
    ------
    ValueError
        If ``level`` is not between 0 and 1.
    """

    is_convex: ClassVar[bool] = False
    level: float

    def __post_init__(self) -> None:
        probability("Quantile(level)", self.level, "the probability that the outcome is no worse")

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        return np.quantile(outcomes, self.level, axis=0)

    def __str__(self) -> str:
        return f"{100 * self.level:g} % quantile, exceeded with probability {1 - self.level:.3g}"

    @property
    def tail_share(self) -> float | None:
        return min(self.level, 1 - self.level)


@final
@dataclass(frozen=True)
class CVaR(Risk):
    """Conditional value at risk: the mean outcome of the worst ``tail`` of the draws; ``CVaR(1)`` is the mean.

    Rockafellar & Uryasev 2000: with q the 1 - tail quantile, q + E[max(x - q, 0)] / tail, which counts the
    draw on the quantile by the part of it that lies in the tail.

    Raises
    ------
    ValueError
        If ``tail`` is not above 0 and at most 1.
    """

    tail: float

    def __post_init__(self) -> None:
        probability("CVaR(tail)", self.tail, "the share of the draws that are the worst", one=True)

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        draws = len(outcomes)
        worst = self.tail * draws
        whole = min(math.floor(worst + 1e-9), draws)
        if whole == draws:
            return outcomes.mean(axis=0)
        place = draws - whole - 1
        ordered = np.partition(outcomes, place, axis=0)
        return (ordered[place + 1 :].sum(axis=0) + (worst - whole) * ordered[place]) / worst

    def __str__(self) -> str:
        return "mean" if self.tail == 1 else f"mean of the worst {100 * self.tail:g} %"

    @property
    def tail_share(self) -> float | None:
        return self.tail


@final
@dataclass(frozen=True)
class Worst(Risk):
    """The worst draw; it rises with the number of draws, and of an outcome without a bound has no limit."""

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        return outcomes.max(axis=0)

    def __str__(self) -> str:
        return "worst of the draws"


@final
@dataclass(frozen=True)
class Entropic(Risk):
    """log E[e^(a x)] / a: near the mean for small a, near the worst for large.

    Attributes
    ----------
    aversion : float
        a, above 0, in 1 / unit of the outcome: for a Normal outcome of variance v, it adds a v / 2 to the mean.

    Raises
    ------
    ValueError
        If ``aversion`` is not positive and finite.
    """

    aversion: float

    def __post_init__(self) -> None:
        positive("Entropic(aversion)", self.aversion)

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        worst = outcomes.max(axis=0)
        return worst + np.log(np.exp(self.aversion * (outcomes - worst)).mean(axis=0)) / self.aversion

    def __str__(self) -> str:
        return f"entropic, aversion {self.aversion:g} per unit"


@final
@dataclass(frozen=True)
class MeanDeviation(Risk):
    """The mean plus ``weight`` standard deviations.

    Raises
    ------
    ValueError
        If ``weight`` is not positive and finite.
    """

    weight: float

    def __post_init__(self) -> None:
        positive("MeanDeviation(weight)", self.weight)

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        return outcomes.mean(axis=0) + self.weight * outcomes.std(axis=0)

    def __str__(self) -> str:
        return f"mean plus {self.weight:g} standard deviations"


@final
@dataclass(frozen=True)
class Custom(Risk):
    """A function from the outcomes of one choice, array (S,), to its risk."""

    is_convex: ClassVar[bool] = False
    function: Callable[[np.ndarray], float]

    def of(self, outcomes: np.ndarray) -> np.ndarray:
        return np.array([float(self.function(column)) for column in outcomes.T])

    def __str__(self) -> str:
        return f"{getattr(self.function, '__name__', 'function')} of the outcomes"


def read_risk(risk: Any) -> Risk:
    """A risk measure, or a function wrapped as one; TypeError for anything else."""
    if isinstance(risk, Risk):
        return risk
    if callable(risk) and not isinstance(risk, type):
        return Custom(risk)  # pyright: ignore[reportArgumentType]
    raise TypeError(f"risk is a measure such as Mean() or CVaR(0.1), or a function of an array of draws, not {risk!r}.")


def check_draws(risk: Risk, effective: float) -> None:
    """Refuse a tail that too few draws stand in.

    Parameters
    ----------
    effective : float
        Independent draws that the posterior's are worth.

    Raises
    ------
    ValueError
        If fewer than ``LEAST`` effective draws lie in the tail.
    """
    if risk.tail_share is None or risk.tail_share * effective >= LEAST:
        return
    raise ValueError(
        f"The {risk} rests on {risk.tail_share * effective:.1f} effective draws ({effective:,.0f} in all), and "
        f"{LEAST} are needed. Sample {math.ceil(LEAST / risk.tail_share):,} effective draws (NUTS(draws=...)), or "
        f"take a wider tail: {LEAST / effective:.2g} or more."
    )
