"""Hoffmann et al. 2022 (arXiv 2203.15556) and Kaplan et al. 2020 (arXiv 2001.08361) as two ends of one law.

N and D count what the table's own columns count.
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

LOSS_CENTER, FLOOR_SHARE, SIZE_SHARE, ALPHA, BETA = Chinchilla.parameters
COUPLING = "coupling of the two limits: 1 where they add, towards 0 where the narrower of them counts alone"


@final
@dataclass(frozen=True)
class Coupled(Law):
    r"""L(N, D) = E + [(A / N^alpha)^(1/k) + (B / D^beta)^(1/k)]^k, with k the coupling.

    - k = 1 is Hoffmann et al.'s law, with the same A, B, E, alpha and beta.
    - k = beta is Kaplan et al.'s law above a floor, E + [(N_c / N)^(alpha_N / alpha_D) + D_c / D]^alpha_D, with
      alpha_N = alpha, alpha_D = beta, N_c = A^(1 / alpha) and D_c = B^(1 / beta); with E = 0 it is theirs itself.
    - k towards 0 is E + max(A / N^alpha, B / D^beta): the scarcer of the two counts alone.
    - k > 1 lets one replace the other more easily than in a sum.

    Where the first term is the share u of the bracket, the log of the reducible loss falls by u alpha for each
    e-fold of size and by (1 - u) beta for each of tokens, whatever k is. So u, alpha and beta mean at the centre
    what they mean for k = 1, and k is what the curvature between the two says. The best size for a budget
    solves u alpha = (1 - u) beta, that is (A / N^alpha) / (B / D^beta) = (beta / alpha)^k: k changes neither
    its exponent, beta / (alpha + beta), nor, where alpha = beta, the size, but far from it k decides.
    """

    inputs: ClassVar[tuple[str, ...]] = Chinchilla.inputs
    monotone: ClassVar[tuple[str, ...]] = Chinchilla.monotone
    domain: ClassVar[Mapping[str, tuple[float, float]]] = Chinchilla.domain
    # Kaplan et al.'s end, k = beta of .2 to .4, has to lie within reach: two standard deviations.
    parameters: ClassVar[tuple[Parameter, ...]] = (
        LOSS_CENTER,
        FLOOR_SHARE,
        replace(SIZE_SHARE, meaning="share of the model size in what limits a run at the centre (the rest: tokens)"),
        ALPHA,
        BETA,
        Parameter("coupling", "$k$", COUPLING, "1", LogNormal(1.0, 0.7), 0.3),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        *Chinchilla.coefficients,
        Quantity("coupling", "$k$", COUPLING, "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        of_size, of_tokens = _log_terms(letters, run)
        return letters["E"] + jnp.exp(letters["coupling"] * jnp.logaddexp(of_size, of_tokens))

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        reducible = jnp.log(v["loss_center"] * (1 - v["floor_share"]))
        of_size = reducible + v["coupling"] * jnp.log(v["size_share"])
        of_tokens = reducible + v["coupling"] * jnp.log1p(-v["size_share"])
        return {
            "A": jnp.exp(of_size + v["alpha"] * jnp.log(reference["n_params"])),
            "B": jnp.exp(of_tokens + v["beta"] * jnp.log(reference["n_tokens"])),
            "E": v["loss_center"] * v["floor_share"],
            "alpha": v["alpha"],
            "beta": v["beta"],
            "coupling": v["coupling"],
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        of_size, of_tokens = _log_terms(letters, reference)
        center = self.loss(letters, reference)
        return {
            "loss_center": center,
            "floor_share": letters["E"] / center,
            "size_share": jax.nn.sigmoid(of_size - of_tokens),
            "alpha": letters["alpha"],
            "beta": letters["beta"],
            "coupling": letters["coupling"],
        }


def _log_terms(letters: Values, run: Values) -> tuple[Any, Any]:
    """Logs of the bracket's two terms, which themselves leave the range of floats where k is small."""
    c = letters
    of_size = jnp.log(c["A"]) - c["alpha"] * jnp.log(run["n_params"])
    of_tokens = jnp.log(c["B"]) - c["beta"] * jnp.log(run["n_tokens"])
    return of_size / c["coupling"], of_tokens / c["coupling"]
