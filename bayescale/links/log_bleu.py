"""Isik et al. 2024, *Scaling Laws for Downstream Task Performance in Machine Translation* (arXiv 2402.04177).

They give two laws of the pre-training tokens D of a model that is then fine-tuned: its translation score,
BLEU = (log(A D^alpha))^beta, and its loss, L = E + B / D^delta. Eliminating D leaves a link from loss to score,

    BLEU = (c log(K / (L - E)))^beta,      c = alpha / delta,      K = B A^(1 / c).

BLEU is a share of 100 here. Where the bracket is negative the score is 0, where it promises more than 1 it is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.links._link import Link, Values
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity


@final
@dataclass(frozen=True)
class LogBleu(Link):
    r"""S(L) = (c log(K / (L - E)))^beta, from 0 to 1."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("score_center", "$S_0$", "score at the table's centre", "1", LogitNormal(0.25, 1.0), 0.7),
        Parameter("floor_share", "$s_E$", "share of that loss that is irreducible", "1", LogitNormal(0.5, 1.0), 0.3),
        # 2.3 is a factor of ten: the reducible loss at which a translation is worth nothing, over that of the centre.
        Parameter(
            "reach", "$r$", "log of the reducible loss that scores 0, over that here", "1", LogNormal(2.3, 0.5), 0.3
        ),
        Parameter("beta", r"$\beta$", "exponent of the logarithm", "1", LogNormal(1.0, 0.5), 0.3),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("c", "$c$", "exponent of the tokens in the score over that in the loss, scaled", "1"),
        Quantity("K", "$K$", "reducible loss at which the score is 0", "loss"),
        Quantity("E", "$E$", "irreducible loss", "loss"),
        Quantity("beta", r"$\beta$", "exponent of the logarithm", "1"),
    )

    def score(self, letters: Values, loss: Any) -> Any:
        c = letters
        above = loss > c["E"]
        inner = c["c"] * (jnp.log(c["K"]) - jnp.log(jnp.where(above, loss - c["E"], 1.0)))
        some = inner > 0
        gained = jnp.exp(c["beta"] * jnp.log(jnp.where(some, inner, 1.0)))
        return jnp.where(above, jnp.where(some, jnp.minimum(gained, 1.0), 0.0), 1.0)

    def floor(self, letters: Values) -> Any:
        return 0.0 * letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        floor = v["floor_share"] * reference["loss"]
        return {
            "c": jnp.exp(jnp.log(v["score_center"]) / v["beta"]) / v["reach"],
            "K": (reference["loss"] - floor) * jnp.exp(v["reach"]),
            "E": floor,
            "beta": v["beta"],
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        reach = jnp.log(c["K"]) - jnp.log(reference["loss"] - c["E"])
        return {
            "score_center": jnp.exp(c["beta"] * jnp.log(c["c"] * reach)),
            "floor_share": c["E"] / reference["loss"],
            "reach": reach,
            "beta": c["beta"],
        }
