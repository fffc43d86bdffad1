"""Bhagia et al. 2024, *Establishing Task Scaling Laws via Compute-Efficient Model Ladders* (arXiv 2412.04403), step 2.

Their L is the loss on a task's right answers, in bits per byte; here it is the loss of the table, whatever that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.links._link import FLOOR_SHIFT, Link, Values, floor_at, shift_of
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity


@final
@dataclass(frozen=True)
class Sigmoid(Link):
    r"""S(L) = b + a / (1 + exp(-k (L - L0))), with -1 <= a <= 0 < k and b <= 1."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        FLOOR_SHIFT,
        # Labels are wrong and questions unclear: no model reaches 1 at most tasks, but most come near.
        Parameter(
            "ceiling_share", "$s$", "share of the way from floor to 1 that is ever gained", "1", LogitNormal(0.9, 1), 1
        ),
        Parameter("midpoint", "$L_0$", "loss at which half of that is gained", "loss", LogNormal(None, 0.3), 0.2),
        Parameter("k", "$k$", "steepness of the log odds per unit of loss", "1 / loss", LogNormal(2.0, 0.7), 0.5),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("a", "$a$", "floor less ceiling", "1"),
        Quantity("b", "$b$", "ceiling", "1"),
        Quantity("k", "$k$", "steepness of the log odds per unit of loss", "1 / loss"),
        Quantity("L0", "$L_0$", "loss at which half is gained", "loss"),
    )

    def score(self, letters: Values, loss: Any) -> Any:
        c = letters
        # By tanh, which neither end of the loss overflows.
        return c["b"] + c["a"] * 0.5 * (1 + jnp.tanh(0.5 * c["k"] * (loss - c["L0"])))

    def floor(self, letters: Values) -> Any:
        return letters["a"] + letters["b"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        floor = floor_at(v["floor_shift"], reference["chance"])
        gain = (1 - floor) * v["ceiling_share"]
        return {"a": -gain, "b": floor + gain, "k": v["k"], "L0": v["midpoint"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        floor = c["a"] + c["b"]
        return {
            "floor_shift": shift_of(floor, reference["chance"]),
            "ceiling_share": -c["a"] / (1 - floor),
            "midpoint": c["L0"],
            "k": c["k"],
        }
