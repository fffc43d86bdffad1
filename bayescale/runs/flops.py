"""FLOP rules: what a run of N parameters on D tokens costs to train, in FLOPs.

A rule is a value. A law does not know it: the compute-optimal size is a property of the law and
the rule together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np


class ComputeRule(ABC):
    """Training compute C(N, D), in FLOPs, rising in both and by no less than a power of D.

    To write one, add a frozen dataclass with ``flop`` written in ``xp``'s functions only
    (``numpy`` or ``jax.numpy``, the module that the arguments belong to). ``tokens`` may stay as it
    is: it inverts ``flop`` in D numerically.
    """

    @abstractmethod
    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        """FLOPs to train ``n_params`` parameters on ``n_tokens`` tokens; arrays broadcast."""

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        """Tokens that ``flop`` FLOPs buy for a model of ``n_params`` parameters.

        Secant steps in log D: exact in one where the rule is a power of D, and 12 of them reach
        machine precision for any smooth rule.
        """
        goal = xp.log(flop)
        x0 = xp.log(flop / (6 * n_params))
        x1 = x0 + 0.1
        y0 = xp.log(self.flop(n_params, xp.exp(x0), xp)) - goal
        for _ in range(12):
            y1 = xp.log(self.flop(n_params, xp.exp(x1), xp)) - goal
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
        if not (math.isfinite(self.k) and self.k > 0):
            raise ValueError(f"FlopsRule(k): k is FLOPs per parameter and token, a positive number, not {self.k!r}.")

    def __str__(self) -> str:
        return f"C = {self.k:g} N D"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return self.k * n_params * n_tokens

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return flop / (self.k * n_params)
