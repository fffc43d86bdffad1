"""Muennighoff et al. 2023, *Scaling Data-Constrained Language Models* (arXiv 2305.16264), section 6.1.

N counts all parameters, embeddings included; D counts tokens seen, repeats included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogNormal, Parameter, Quantity

CHINCHILLA = Chinchilla()
CENTER = "mean loss of a run at the table's centre, were no text repeated and no parameter in excess"
REPEATS = "repeats of the text after which one more is worth 1/e of new text"
EXCESS = "excess of the size, in multiples of what the text supports, at which more is worth 1/e"
# Log of an excess that is worth what any larger one is, and whose slope is still a number.
ENDLESS = 30.0


@final
@dataclass(frozen=True)
class DataConstrained(Law):
    r"""L(N, D, U) = E + A / N'^alpha + B / D'^beta, with U the distinct tokens.

    Repeated text and parameters beyond what the text supports count for less and less,

        D' = U_D + U_D R_D [1 - e^(-(D / U_D - 1) / R_D)],    U_D = min(U, D),
        N' = U_N + U_N R_N [1 - e^(-(N / U_N - 1) / R_N)],    U_N = min(N, N_opt(U_D)),

    where N_opt(U_D) = [alpha A U_D^beta / (beta B)]^(1 / alpha) is the size for which U_D tokens are
    compute-optimal. R_D and R_N are 1/e points, not half-lives. Text without a limit (the standard) leaves
    Hoffmann et al.'s law up to the best size, and parameters in excess beyond it.

    More of N, D or U never hurts: m + m R [1 - e^(-(x / m - 1) / R)], m <= x, rises in x, and in m too, and a
    larger D or U raises U_D and so N_opt. ``monotone`` leaves out U, of which the standard run has no end:
    it is not spent, and its return does not diminish from a table's centre on but stops at D.
    """

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens", "n_unique_tokens")
    monotone: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    conditions: ClassVar[Mapping[str, float]] = {"n_unique_tokens": CHINCHILLA.domain["n_tokens"][1]}
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {
        **CHINCHILLA.domain,
        "n_unique_tokens": CHINCHILLA.domain["n_tokens"],
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        replace(CHINCHILLA.parameters[0], meaning=CENTER),
        *CHINCHILLA.parameters[1:],
        Parameter("repeats", "$R_D$", REPEATS, "1", LogNormal(10.0, 1.0), 0.3),
        Parameter("excess", "$R_N$", EXCESS, "1", LogNormal(5.0, 1.0), 0.3),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        *CHINCHILLA.coefficients,
        Quantity("R_D", "$R_D$", REPEATS, "1"),
        Quantity("R_N", "$R_N$", EXCESS, "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        c = letters
        n, d = jnp.log(run["n_params"]), jnp.log(run["n_tokens"])
        u_d = jnp.minimum(jnp.log(run["n_unique_tokens"]), d)
        odds = jnp.log(c["alpha"]) + jnp.log(c["A"]) - jnp.log(c["beta"]) - jnp.log(c["B"])
        u_n = jnp.minimum(n, (odds + c["beta"] * u_d) / c["alpha"])
        return (
            c["E"]
            + c["A"] * jnp.exp(-c["alpha"] * _worth(n, u_n, c["R_N"]))
            + c["B"] * jnp.exp(-c["beta"] * _worth(d, u_d, c["R_D"]))
        )

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        made = CHINCHILLA.to_coefficients(values, reference)
        return {**made, "R_D": values["repeats"], "R_N": values["excess"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        made = CHINCHILLA.to_parameters(letters, reference)
        return {**made, "repeats": letters["R_D"], "excess": letters["R_N"]}


def _worth(x: Any, u: Any, r: Any) -> Any:
    """Log of what e^x is worth where e^u of it is used in full; in logs, since N_opt leaves the range of floats."""
    excess = jnp.expm1(jnp.minimum(x - u, ENDLESS))
    return u + jnp.log1p(-r * jnp.expm1(-excess / r))
