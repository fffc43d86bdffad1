"""What is unknown: a name, a symbol, a meaning with its unit, and a prior.

A prior is a distribution over a quantity that planners know (a loss, a share, an exponent),
and it is Normal on the quantity's natural scale: the log of a positive quantity, the log odds
of a share, a real number itself. Sampling, pooling over groups and starting points all work on
that unconstrained scale, so a prior is two numbers there, whatever the quantity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

Z90 = 1.6448536269514722  # standard normal quantile of .95: an interval of +-Z90 sd holds 90 %


@dataclass(frozen=True)
class Prior(ABC):
    """A distribution that is Normal on the quantity's unconstrained scale.

    To write one, give ``site_prefix`` (it names the sampled site) and the two maps between the
    quantity and its unconstrained scale; ``center`` is the prior's median, in the quantity's unit,
    or None where it is the table's own (the median loss of the runs), and ``spread`` the standard
    deviation on the unconstrained scale.

    Raises
    ------
    ValueError
        If the median lies outside the quantity's range, or the spread is not positive and finite.
    """

    site_prefix: ClassVar[str]

    center: float | None
    spread: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.spread) and self.spread > 0):
            raise ValueError(f"{self!r}: the spread must be positive and finite, not {self.spread!r}.")
        if self.center is not None:
            self.unconstrain(self.center)

    @abstractmethod
    def unconstrain(self, value: Any) -> Any:
        """Map a float in the quantity's range to the real line; ValueError outside the range."""

    @abstractmethod
    def constrain(self, x: Any, xp: Any = math) -> Any:
        """Map reals to the quantity's range; ``xp`` is the array module that ``x`` belongs to."""

    @property
    def loc(self) -> float:
        """Median on the unconstrained scale."""
        if self.center is None:
            raise ValueError(f"{self!r} takes its median from a table of runs; settle it with `at`.")
        return self.unconstrain(self.center)

    def at(self, center: float) -> Prior:
        """Return this prior with the median filled in, where it was left to the table."""
        return self if self.center is not None else replace(self, center=center)

    def interval(self) -> tuple[float, float, float]:
        """Median and equal-tailed 90 % interval in the quantity's unit: (lower, median, upper)."""
        return (
            self.constrain(self.loc - Z90 * self.spread),
            self.constrain(self.loc),
            self.constrain(self.loc + Z90 * self.spread),
        )


@final
@dataclass(frozen=True)
class Normal(Prior):
    """A real quantity: mean ``center``, standard deviation ``spread``."""

    site_prefix: ClassVar[str] = "raw"

    def unconstrain(self, value: Any) -> Any:
        if not math.isfinite(value):
            raise ValueError(f"A Normal prior is centred on a finite number, not {value!r}.")
        return float(value)

    def constrain(self, x: Any, xp: Any = math) -> Any:
        return x


@final
@dataclass(frozen=True)
class LogNormal(Prior):
    """A positive quantity: median ``center``, standard deviation ``spread`` of its natural log."""

    site_prefix: ClassVar[str] = "log"

    def unconstrain(self, value: Any) -> Any:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"A LogNormal quantity is positive, not {value!r}.")
        return math.log(value)

    def constrain(self, x: Any, xp: Any = math) -> Any:
        return xp.exp(x)


@final
@dataclass(frozen=True)
class LogitNormal(Prior):
    """A share between 0 and 1: median ``center``, standard deviation ``spread`` of its log odds."""

    site_prefix: ClassVar[str] = "logit"

    def unconstrain(self, value: Any) -> Any:
        if not 0 < value < 1:
            raise ValueError(f"A LogitNormal quantity lies between 0 and 1, not {value!r}.")
        return math.log(value / (1 - value))

    def constrain(self, x: Any, xp: Any = math) -> Any:
        return 1 / (1 + xp.exp(-x))


@final
@dataclass(frozen=True)
class Fixed:
    """A quantity that is not inferred but held at ``value`` (in its own unit)."""

    value: float


@final
@dataclass(frozen=True)
class Parameter:
    """One unknown, declared once: priors, pooling, labels, tables and docs all read it from here.

    Attributes
    ----------
    name : str
        Plain-word name, by which a prior is changed (``floor_share``).
    symbol : str
        Symbol for figures, in mathtext (``$s_E$``).
    meaning : str
        What it is, in a phrase a planner understands.
    unit : str
        Its unit (``nats per token``), or ``1`` for a number without one.
    prior : Prior
        The default prior, weakly informative.
    between_groups : float
        Scale of the half-normal prior of the standard deviation between groups, on the
        unconstrained scale, under partial pooling.
    """

    name: str
    symbol: str
    meaning: str
    unit: str
    prior: Prior
    between_groups: float = 0.3

    @property
    def site(self) -> str:
        """Name of the sampled site: the unconstrained scale's prefix and the name."""
        return f"{self.prior.site_prefix}_{self.name}"


@final
@dataclass(frozen=True)
class Quantity:
    """A published coefficient or result: name, symbol, meaning with unit, but no prior."""

    name: str
    symbol: str
    meaning: str
    unit: str
