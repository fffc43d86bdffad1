"""Hoffmann et al. 2022, *Training Compute-Optimal Large Language Models* (arXiv 2203.15556), section 3.3.

N counts all parameters, embeddings included; D counts tokens seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws._law import Law, Values
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity


@final
@dataclass(frozen=True)
class Chinchilla(Law):
    r"""L(N, D) = E + A / N^alpha + B / D^beta."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    monotone: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {"n_params": (1e3, 1e15), "n_tokens": (1e3, 1e17)}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "loss_center", "$L_0$", "mean loss of a run at the table's centre", "loss", LogNormal(None, 0.5), 0.3
        ),
        Parameter("floor_share", "$s_E$", "share of that loss that is irreducible", "1", LogitNormal(0.6, 1.0), 0.5),
        Parameter(
            "size_share", "$s_N$", "share of the rest that a larger model would remove", "1", LogitNormal(0.5, 1.0), 0.5
        ),
        Parameter("alpha", r"$\alpha$", "exponent of the model size", "1", LogNormal(0.35, 0.5), 0.3),
        Parameter("beta", r"$\beta$", "exponent of the tokens", "1", LogNormal(0.35, 0.5), 0.3),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("A", "$A$", "coefficient of the model size", "loss x parameters^alpha"),
        Quantity("B", "$B$", "coefficient of the tokens", "loss x tokens^beta"),
        Quantity("E", "$E$", "irreducible loss", "loss"),
        Quantity("alpha", r"$\alpha$", "exponent of the model size", "1"),
        Quantity("beta", r"$\beta$", "exponent of the tokens", "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        c = letters
        return (
            c["E"]
            + c["A"] * jnp.exp(-c["alpha"] * jnp.log(run["n_params"]))
            + c["B"] * jnp.exp(-c["beta"] * jnp.log(run["n_tokens"]))
        )

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        reducible = v["loss_center"] * (1 - v["floor_share"])
        return {
            "A": reducible * v["size_share"] * jnp.exp(v["alpha"] * jnp.log(reference["n_params"])),
            "B": reducible * (1 - v["size_share"]) * jnp.exp(v["beta"] * jnp.log(reference["n_tokens"])),
            "E": v["loss_center"] * v["floor_share"],
            "alpha": v["alpha"],
            "beta": v["beta"],
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        of_size = c["A"] * jnp.exp(-c["alpha"] * jnp.log(reference["n_params"]))
        of_tokens = c["B"] * jnp.exp(-c["beta"] * jnp.log(reference["n_tokens"]))
        center = c["E"] + of_size + of_tokens
        return {
            "loss_center": center,
            "floor_share": c["E"] / center,
            "size_share": of_size / (of_size + of_tokens),
            "alpha": c["alpha"],
            "beta": c["beta"],
        }
