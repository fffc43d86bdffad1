"""FLOP rules: what a run of N parameters on D tokens costs to train, in FLOPs.

A rule is a value. A law does not know it: the compute-optimal size is a property of the law and
the rule together.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np


class ComputeRule(ABC):
    """Training compute C(N, D), in FLOPs, rising in both and by no less than a power of each.

    To write one, add a frozen dataclass with ``flop`` written in ``xp``'s functions only
    (``numpy`` or ``jax.numpy``, the module that the arguments belong to); its fields are JSON
    values, by which a saved table knows it. ``tokens`` and ``params`` may stay as they are: they
    invert ``flop`` numerically.
    """

    @abstractmethod
    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        """FLOPs to train ``n_params`` parameters on ``n_tokens`` tokens; arrays broadcast."""

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        """Tokens that ``flop`` FLOPs buy for a model of ``n_params`` parameters."""
        return _invert(lambda tokens: self.flop(n_params, tokens, xp), flop, flop / (6 * n_params), xp)

    def params(self, flop: Any, n_tokens: Any, xp: Any = np) -> Any:
        """Parameters of the model that ``flop`` FLOPs train on ``n_tokens`` tokens."""
        return _invert(lambda params: self.flop(params, n_tokens, xp), flop, flop / (6 * n_tokens), xp)

    def to_dict(self) -> dict[str, Any]:
        """The rule's class name under ``rule``, and its fields: JSON-safe."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        nested = {name: v.to_dict() if isinstance(v, ComputeRule) else v for name, v in fields.items()}
        return {"rule": type(self).__name__, **nested}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> ComputeRule:
        """The rule that ``to_dict`` wrote; ValueError where no class of that name is loaded."""
        known = {c.__name__: c for c in ComputeRule.__subclasses__()}
        settings = dict(saved)
        name = settings.pop("rule", None)
        if name not in known:
            raise ValueError(
                f"The FLOP rule {name!r} is not known here; known: {', '.join(sorted(known))}. "
                "Import the module that defines it first."
            )
        own = {k: ComputeRule.from_dict(v) if isinstance(v, Mapping) else v for k, v in settings.items()}
        return known[name](**own)


def _invert(cost: Callable[[Any], Any], goal: Any, guess: Any, xp: Any) -> Any:
    """Solve ``cost(x) = goal`` by secant steps in log x, elementwise.

    Exact in one step where the cost is a power of x, and 12 of them reach machine precision for
    any smooth rule.
    """
    log_goal = xp.log(goal)
    x0 = xp.log(guess)
    x1 = x0 + 0.1
    y0 = xp.log(cost(xp.exp(x0))) - log_goal
    for _ in range(12):
        y1 = xp.log(cost(xp.exp(x1))) - log_goal
        slope = xp.where(x1 == x0, 1.0, (y1 - y0) / xp.where(x1 == x0, 1.0, x1 - x0))
        x0, y0, x1 = x1, y1, x1 - y1 / xp.where(slope == 0, 1.0, slope)
    return xp.exp(x1)


@final
@dataclass(frozen=True)
class FlopsRule(ComputeRule):
    """C = k N D. Kaplan et al. 2020 (arXiv 2001.08361) and Hoffmann et al. 2022 use k = 6.

    Raises
    ------
    ValueError
        If ``k`` is not a positive finite number.
    """

    k: float = 6.0

    def __post_init__(self) -> None:
        if not (isinstance(self.k, Real) and math.isfinite(self.k) and self.k > 0):
            raise ValueError(f"FlopsRule(k): k is FLOPs per parameter and token, a positive number, not {self.k!r}.")
        object.__setattr__(self, "k", float(self.k))  # an integer k would let integer counts overflow

    def __str__(self) -> str:
        return f"C = {self.k:g} N D"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return self.k * n_params * n_tokens

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return flop / (self.k * n_params)

    def params(self, flop: Any, n_tokens: Any, xp: Any = np) -> Any:
        return flop / (self.k * n_tokens)


SIX_ND = FlopsRule(6.0)
