"""Gadre et al. 2024, *Language models scale reliably with over-training and on downstream tasks* (arXiv 2403.08540).

Their error, averaged over tasks, is eps - k exp(-gamma L); the score is one less that. The form knows no best
score: where it promises one above 1, at losses far below those of the paper's runs, the score is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.links._link import FLOOR_SHIFT, Link, Values, floor_at, shift_of
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity


@final
@dataclass(frozen=True)
class Exponential(Link):
    r"""S(L) = 1 - (eps - k exp(-gamma L)), at most 1."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        FLOOR_SHIFT,
        # From a task that no run has learnt to one that most have, within one table.
        Parameter(
            "gain", "$g$", "share of the way from floor to 1, at the table's centre", "1", LogitNormal(0.2, 1.5), 1.5
        ),
        # .71 to .89 for averages over 17 and 46 tasks in the paper; single tasks differ more.
        Parameter("gamma", r"$\gamma$", "fall of log gain per unit of loss", "1 / loss", LogNormal(0.8, 0.5), 0.5),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("epsilon", r"$\epsilon$", "error of a model that knows nothing", "1"),
        Quantity("k", "$k$", "error that a loss of zero would remove", "1"),
        Quantity("gamma", r"$\gamma$", "fall of log gain per unit of loss", "1 / loss"),
    )

    def score(self, letters: Values, loss: Any) -> Any:
        c = letters
        return jnp.minimum(1 - c["epsilon"] + jnp.exp(jnp.log(c["k"]) - c["gamma"] * loss), 1.0)

    def floor(self, letters: Values) -> Any:
        return 1 - letters["epsilon"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        epsilon = 1 - floor_at(v["floor_shift"], reference["chance"])
        k = epsilon * v["gain"] * jnp.exp(v["gamma"] * reference["loss"])
        return {"epsilon": epsilon, "k": k, "gamma": v["gamma"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        gain = c["k"] * jnp.exp(-c["gamma"] * reference["loss"]) / c["epsilon"]
        return {
            "floor_shift": shift_of(1 - c["epsilon"], reference["chance"]),
            "gain": gain,
            "gamma": c["gamma"],
        }
