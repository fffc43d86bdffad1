"""Inputs of a decision that are known only roughly: each is a number or a distribution.

An input is drawn by its name. The same name, seed and number of draws give the same draws wherever they
are asked for, and two names are independent, so that a price in a budget and in an objective is one price.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from scipy.special import ndtri

from bayescale.parameter import Prior

# Quantiles further out are not drawn, so that a distribution which passed its check never leaves its range.
OUTERMOST = 1e-6
_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", re.ASCII)


@runtime_checkable
class Distribution(Protocol):
    """Anything with quantiles, such as a frozen distribution of ``scipy.stats``."""

    def ppf(self, q: Any, /) -> Any:
        """Quantiles at the probabilities ``q``, an array of its shape."""
        ...


Uncertain = float | Prior | Distribution


@final
@dataclass(frozen=True)
class Input:
    """What an input is, and the values that it may have.

    Attributes
    ----------
    meaning : str
        What it is, in words.
    unit : str
        Its unit, in words; empty for a number without one.
    low, high : float
        The range; ``low`` itself belongs to it where ``has_low``.
    has_low : bool
    is_share : bool
        Whether a text such as ``'40%'`` says it too.
    advice : str
        What to write instead of a value out of range.
    """

    meaning: str
    unit: str = ""
    low: float = 0.0
    high: float = math.inf
    has_low: bool = False
    is_share: bool = False
    advice: str = ""

    @property
    def rule(self) -> str:
        """Meaning, unit and range in words."""
        named = f"{self.meaning} in {self.unit}" if self.unit else self.meaning
        words = f"{'at least' if self.has_low else 'above'} {self.low:g}"
        return f"{named}, {words}{'' if self.high == math.inf else f' and at most {self.high:g}'}"

    def read(self, value: Any) -> Uncertain:
        """The value, a number as float; ValueError, with the rule and the value, where it is none of these."""
        percent = _PERCENT.fullmatch(value) if self.is_share and isinstance(value, str) else None
        if percent:
            value = float(percent[1]) / 100
        fault = self._fault(value)
        if fault:
            raise ValueError(f"{self.rule}, {fault}.{self.advice and ' ' + self.advice}")
        return value if isinstance(value, Prior | Distribution) else float(value)

    def _fault(self, value: Any) -> str | None:
        if isinstance(value, Prior | Distribution):
            return self._fault_of_draws(value)
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return f"as a number or a distribution (a prior, or frozen of scipy.stats), not {value!r}"
        return None if self._holds(_float(value)) else f"not {value!r}"

    def _fault_of_draws(self, value: Prior | Distribution) -> str | None:
        ends = quantiles(value, np.array([OUTERMOST, 0.5, 1 - OUTERMOST]))
        out = [end for end in ends if not self._holds(end)]
        if not out:
            return None
        return (
            f"but of a {describe(value)}, one draw in a million is {out[0]:.3g}; truncate it, or take a prior that "
            "stays in the range (LogitNormal of a share, LogNormal of a positive number)"
        )

    def _holds(self, value: float) -> bool:
        above = value >= self.low if self.has_low else value > self.low
        return bool(above and value <= self.high and math.isfinite(value))


def read_inputs(owner: str, inputs: Mapping[str, Input], values: Mapping[str, Any]) -> dict[str, Uncertain]:
    """Read every value by the rule of its name.

    Raises
    ------
    ValueError
        If any breaks its rule; all are named, with the rule, the value and the way out.
    """
    read, faults = {}, []
    for name, value in values.items():
        try:
            read[name] = inputs[name].read(value)
        except ValueError as fault:
            faults.append(f"{owner}({name}): {fault}")
    if faults:
        raise ValueError("\n".join(faults))
    return read


def quantiles(value: Uncertain, q: np.ndarray) -> np.ndarray:
    """Quantiles of an input at the probabilities ``q``, in its unit: an array of the shape of ``q``.

    Raises
    ------
    ValueError
        If a distribution is of more than one quantity.
    """
    if isinstance(value, Prior):
        return np.asarray(value.constrain(value.loc + value.spread * ndtri(q), np), float)
    if not isinstance(value, Distribution):
        return np.full(np.shape(q), float(value))
    if np.ndim(value.ppf(0.5)):
        raise ValueError("a distribution of one number, not of an array; give one distribution for each input.")
    return np.asarray(value.ppf(q), float)


def draws(name: str, value: Uncertain, n: int, seed: int) -> np.ndarray:
    """Draw one input, stratified: one draw in each of ``n`` equally likely strata, in an order of its own.

    So the mean of the draws is near the input's mean by far more than independent draws would be (a Latin
    hypercube over all names; McKay, Beckman and Conover 1979, Technometrics 21).

    Parameters
    ----------
    name : str
        The input's name; it decides the order of the strata, together with ``seed`` and ``n``.
    value : number, Prior or Distribution
    n : int
        Number of draws, at least 1.
    seed : int
        Not negative.

    Returns
    -------
    array (n,), float64
        In the input's unit; a number is repeated.
    """
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
    rng = np.random.default_rng([seed, key])
    strata = (rng.permutation(n) + rng.random(n)) / n
    return quantiles(value, np.clip(strata, OUTERMOST, 1 - OUTERMOST))


def draw_all(values: Mapping[str, Uncertain], n: int, seed: int) -> dict[str, np.ndarray]:
    """Draws of every input by its name: arrays (n,)."""
    return {name: draws(name, value, n, seed) for name, value in values.items()}


def median(value: Uncertain) -> float:
    """Median of an input, in its unit."""
    return float(quantiles(value, np.array(0.5)))


def is_certain(value: Uncertain) -> bool:
    """Whether an input is a number."""
    return not isinstance(value, Prior | Distribution)


def describe(value: Uncertain, unit: str = "") -> str:
    """An input in words: ``2 dollars per hour``, or ``lognormal, median 2, 90 % 1.6 to 2.5 dollars per hour``."""
    unit = unit and f" {unit}"
    if is_certain(value):
        return f"{median(value):.6g}{unit}"
    lower, middle, upper = quantiles(value, np.array([0.05, 0.5, 0.95]))
    kind = type(value).__name__.lower() if isinstance(value, Prior) else _kind(value)
    return f"{kind}, median {middle:.4g}, 90 % {lower:.4g} to {upper:.4g}{unit}"


def _kind(value: Any) -> str:
    """Name of a distribution: that of the family, of a frozen one of ``scipy.stats``."""
    return getattr(getattr(value, "dist", None), "name", type(value).__name__)


def _float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond float64
        return math.inf
