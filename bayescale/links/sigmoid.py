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
        # From a task that no run has learnt to one that most have, within one table.
        Parameter(
            "gain", "$g$", "share of the way from floor to 1, at the table's centre", "1", LogitNormal(0.2, 1.5), 1.5
        ),
        # The fall is k itself where little has been gained, and less on the way to the ceiling.
        Parameter("fall", "$m$", "fall of log gain per unit of loss, there", "1 / loss", LogNormal(1.2, 0.7), 0.5),
        # Labels are wrong and questions unclear: no model reaches 1 at most tasks, but most come near.
        Parameter(
            "ever_gained",
            "$s$",
            "share of the rest of that way that is ever gained",
            "1",
            LogitNormal(0.85, 1),
            1,
        ),
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
        left = (1 - v["gain"]) * v["ever_gained"]  # at the centre, of the way from floor to 1
        way = v["gain"] + left
        k = v["fall"] * way / left
        return {
            "a": -(1 - floor) * way,
            "b": floor + (1 - floor) * way,
            "k": k,
            "L0": reference["loss"] + (jnp.log(v["gain"]) - jnp.log(left)) / k,
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        floor = c["a"] + c["b"]
        way = -c["a"] / (1 - floor)
        gone = 1 / (1 + jnp.exp(-c["k"] * (c["L0"] - reference["loss"])))  # of that way, at the centre
        return {
            "floor_shift": shift_of(floor, reference["chance"]),
            "gain": way * gone,
            "fall": c["k"] * (1 - gone),
            "ever_gained": way * (1 - gone) / (1 - way * gone),
        }
