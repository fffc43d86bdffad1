"""What a choice may not do.

Every constraint is an interval: of sizes, and of tokens at each size. What is allowed is what lies in
all of them, so a search has to look at sizes only, and a conflict is an interval that is empty.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, final

import numpy as np

from bayescale.decision import uncertain
from bayescale.decision.number import positive, probability
from bayescale.decision.outlook import Outlook
from bayescale.decision.uncertain import Distribution, Uncertain
from bayescale.parameter import Prior

Ends = tuple[Any, Any]
FREE: Ends = (0.0, math.inf)
MINUTE = 1e-9  # share by which a limit may be passed: rounding


class Constraint(ABC):
    """A rule that choices have to keep.

    To write one, add a frozen dataclass that gives ``sizes``, ``fewest`` or ``most``, ``__str__``, and the
    name of the field that holds its limit as ``limit``, of which a larger one allows more. ``reaches`` says
    that it is about what the run has to reach, not about what it may cost.
    """

    limit: ClassVar[str]
    reaches: ClassVar[bool] = False

    def sizes(self, outlook: Outlook) -> Ends:
        """Least and largest size allowed, parameters."""
        return FREE

    def fewest(self, outlook: Outlook, size: np.ndarray) -> Any:
        """Fewest tokens allowed at each size (M,), parameters: array (M,) or a number."""
        return 0.0

    def most(self, outlook: Outlook, size: np.ndarray) -> Any:
        """Most tokens allowed at each size."""
        return math.inf

    def kept(self, outlook: Outlook, size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Whether runs keep it, sizes aside: bool array (M,)."""
        enough = self.fewest(outlook, size) <= tokens * (1 + MINUTE)
        return enough & (tokens <= self.most(outlook, size) * (1 + MINUTE))

    def settles(self, outlook: Outlook) -> Mapping[str, Any]:
        """Conditions of the law that it says something about."""
        return {}

    @abstractmethod
    def __str__(self) -> str:
        """What is allowed, with its limit and unit."""

    def relaxed(self, factor: float) -> Constraint:
        """The same with its limit ``factor`` (above 1) times as loose."""
        value = getattr(self, self.limit)
        return dataclasses.replace(self, **{self.limit: value * factor})  # type: ignore[type-var]


@final
@dataclass(frozen=True)
class Spend(Constraint):
    """Training compute of at most ``flop`` FLOPs: what a `Budget` comes to."""

    flop: float
    limit: ClassVar[str] = "flop"

    def most(self, outlook: Outlook, size: np.ndarray) -> Any:
        return outlook.rule.tokens(self.flop, size)

    def __str__(self) -> str:
        return f"training compute of at most {self.flop:.4g} FLOP"


@final
@dataclass(frozen=True)
class Sizes(Constraint):
    """Sizes of ``at_least`` to ``at_most`` parameters.

    Raises
    ------
    ValueError
        If the two are not positive, or the first exceeds the second.
    """

    at_most: float = math.inf
    at_least: float = 0.0
    limit: ClassVar[str] = "at_most"

    def __post_init__(self) -> None:
        _ordered(self, "parameters")

    def sizes(self, outlook: Outlook) -> Ends:
        return self.at_least, self.at_most

    def relaxed(self, factor: float) -> Constraint:
        return dataclasses.replace(self, at_most=self.at_most * factor, at_least=self.at_least / factor)

    def __str__(self) -> str:
        return _between(self, "parameters")


@final
@dataclass(frozen=True)
class Ratio(Constraint):
    """From ``at_least`` to ``at_most`` tokens per parameter.

    Raises
    ------
    ValueError
        If the two are not positive, or the first exceeds the second.
    """

    at_most: float = math.inf
    at_least: float = 0.0
    limit: ClassVar[str] = "at_most"

    def __post_init__(self) -> None:
        _ordered(self, "tokens per parameter")

    def fewest(self, outlook: Outlook, size: np.ndarray) -> Any:
        return self.at_least * size

    def most(self, outlook: Outlook, size: np.ndarray) -> Any:
        return self.at_most * size

    def relaxed(self, factor: float) -> Constraint:
        return dataclasses.replace(self, at_most=self.at_most * factor, at_least=self.at_least / factor)

    def __str__(self) -> str:
        return _between(self, "tokens per parameter")


@final
@dataclass(frozen=True)
class Tokens(Constraint):
    """Text that exists.

    Attributes
    ----------
    available : number, Prior or distribution
        Distinct tokens.
    epochs : float
        How often each may be seen. More than once needs a law that knows what a repetition is worth
        (`DataConstrained`).
    certainty : float
        Probability with which the tokens are there, where they are uncertain.

    Raises
    ------
    ValueError
        If ``available`` or ``epochs`` is not positive, or ``certainty`` not between 0 and 1.
    """

    available: Uncertain
    epochs: float = 1.0
    certainty: float = 0.9
    limit: ClassVar[str] = "available"

    def __post_init__(self) -> None:
        if not isinstance(self.available, Prior | Distribution):
            positive("Tokens(available)", self.available, "distinct tokens")
        positive("Tokens(epochs)", self.epochs, "how often each token may be seen")
        probability("Tokens(certainty)", self.certainty)

    def most(self, outlook: Outlook, size: np.ndarray) -> Any:
        if self.epochs > 1 and "n_unique_tokens" not in outlook.law.conditions:
            raise ValueError(
                f"Tokens(epochs={self.epochs:g}) repeats text, and to {type(outlook.law).__name__} a token seen again "
                "is as good as new. Fit the law DataConstrained, or leave epochs at 1."
            )
        return self.epochs * self._there(outlook)

    def settles(self, outlook: Outlook) -> Mapping[str, Any]:
        return {"n_unique_tokens": self.available} if "n_unique_tokens" in outlook.law.conditions else {}

    def _there(self, outlook: Outlook) -> float:
        return float(np.quantile(outlook.draws("n_unique_tokens", self.available), 1 - self.certainty))

    def relaxed(self, factor: float) -> Constraint:
        if isinstance(self.available, Real):
            return dataclasses.replace(self, available=float(self.available) * factor)
        return dataclasses.replace(self, epochs=self.epochs * factor)

    def __str__(self) -> str:
        seen = "each seen once" if self.epochs == 1 else f"each seen at most {self.epochs:g} times"
        sure = "" if isinstance(self.available, Real) else f", there with probability {self.certainty:g}"
        return f"{uncertain.describe(self.available, 'distinct tokens')}, {seen}{sure}"


def _ordered(limits: Any, unit: str) -> None:
    ends = limits.at_least, limits.at_most
    sound = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    if not (sound and 0 <= ends[0] <= ends[1] and ends[1] > 0):
        name = type(limits).__name__
        raise ValueError(
            f"{name}(at_most, at_least) are {unit}, positive and the second no larger than the first, not {ends!r}."
        )


def _between(limits: Any, unit: str) -> str:
    low, high = (f"at least {limits.at_least:.4g}" if limits.at_least else "", f"at most {limits.at_most:.4g}")
    return " and ".join(filter(None, [low, high if math.isfinite(limits.at_most) else ""])) + f" {unit}"
