"""Kaplan et al. 2020, *Scaling Laws for Neural Language Models* (arXiv 2001.08361), equation 1.5.

N counts parameters without embeddings; D counts the tokens of the training set, on which a run goes on until its
held-out loss is lowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogNormal, Parameter, Quantity

LOSS_CENTER, _, SIZE_SHARE, _, _ = Chinchilla.parameters


@final
@dataclass(frozen=True)
class Kaplan(Law):
    """L(N, D) = [(N_c / N)^(alpha_N / alpha_D) + D_c / D]^alpha_D.

    No loss is irreducible, so its exponents are those of the loss itself and smaller than the alpha and beta of a
    law with a floor. Where the first term is the share u of the bracket, log loss falls by u alpha_N for each
    e-fold of size and by (1 - u) alpha_D for each of tokens: what a table tells best, and therefore sampled.
    """

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    monotone: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    domain: ClassVar[Mapping[str, tuple[float, float]]] = Chinchilla.domain
    # A floor of half the loss and exponents of 0.2 above it make 0.1 of the whole.
    parameters: ClassVar[tuple[Parameter, ...]] = (
        LOSS_CENTER,
        replace(SIZE_SHARE, meaning="share of the model size in what limits a run at the centre (the rest: tokens)"),
        Parameter(
            "alpha_N", r"$\alpha_N$", "exponent of the model size, tokens unlimited", "1", LogNormal(0.1, 0.5), 0.3
        ),
        Parameter(
            "alpha_D", r"$\alpha_D$", "exponent of the tokens, model size unlimited", "1", LogNormal(0.1, 0.5), 0.3
        ),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("N_c", "$N_c$", "model size that reaches a loss of 1, tokens unlimited", "parameters"),
        Quantity("D_c", "$D_c$", "tokens that reach a loss of 1, model size unlimited", "tokens"),
        Quantity("alpha_N", r"$\alpha_N$", "exponent of the model size, tokens unlimited", "1"),
        Quantity("alpha_D", r"$\alpha_D$", "exponent of the tokens, model size unlimited", "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        of_size, of_tokens = _log_terms(letters, run)
        return jnp.exp(letters["alpha_D"] * jnp.logaddexp(of_size, of_tokens))

    def floor(self, letters: Values) -> Any:
        return jnp.zeros_like(letters["alpha_D"])

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        bracket = jnp.log(v["loss_center"]) / v["alpha_D"]
        of_size, of_tokens = bracket + jnp.log(v["size_share"]), bracket + jnp.log1p(-v["size_share"])
        return {
            "N_c": reference["n_params"] * jnp.exp(of_size * v["alpha_D"] / v["alpha_N"]),
            "D_c": reference["n_tokens"] * jnp.exp(of_tokens),
            "alpha_N": v["alpha_N"],
            "alpha_D": v["alpha_D"],
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        of_size, of_tokens = _log_terms(letters, reference)
        return {
            "loss_center": self.loss(letters, reference),
            "size_share": jax.nn.sigmoid(of_size - of_tokens),
            "alpha_N": letters["alpha_N"],
            "alpha_D": letters["alpha_D"],
        }


def _log_terms(letters: Values, run: Values) -> tuple[Any, Any]:
    """Logs of the bracket's two terms, which themselves can leave the range of floats."""
    c = letters
    of_size = c["alpha_N"] / c["alpha_D"] * (jnp.log(c["N_c"]) - jnp.log(run["n_params"]))
    return of_size, jnp.log(c["D_c"]) - jnp.log(run["n_tokens"])
