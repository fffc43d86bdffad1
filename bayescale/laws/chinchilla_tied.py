"""Gadre et al. 2024, *Language models scale reliably with over-training* (arXiv 2403.08540), equation 4.

N counts all parameters, embeddings included; D counts tokens seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import Parameter, Quantity

CHINCHILLA = Chinchilla()
MEANING = "exponent of the model size and of the tokens"


@final
@dataclass(frozen=True)
class ChinchillaTied(Law):
    r"""L(N, D) = E + A / N^alpha + B / D^alpha.

    Hoffmann et al.'s law with one exponent for both. In compute C = 6 N D and tokens per parameter M = D / N it
    is Gadre et al.'s law of over-training,

        L(C, M) = E + (a M^eta + b M^-eta) C^-eta,    eta = alpha / 2,   a = A 6^eta,   b = B 6^eta,

    since N = (C / (6 M))^(1/2) and D = (C M / 6)^(1/2). The best M is the same at every budget,
    (B / A)^(1 / alpha), and training beyond it costs the same factor of the reducible loss at every budget.
    """

    inputs: ClassVar[tuple[str, ...]] = CHINCHILLA.inputs
    monotone: ClassVar[tuple[str, ...]] = CHINCHILLA.monotone
    domain: ClassVar[Mapping[str, tuple[float, float]]] = CHINCHILLA.domain
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *CHINCHILLA.parameters[:3],
        replace(CHINCHILLA.parameters[3], meaning=MEANING),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("A", "$A$", "coefficient of the model size", "loss x parameters^alpha"),
        Quantity("B", "$B$", "coefficient of the tokens", "loss x tokens^alpha"),
        Quantity("E", "$E$", "irreducible loss", "loss"),
        Quantity("alpha", r"$\alpha$", MEANING, "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        return CHINCHILLA.loss(_untied(letters), run)

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        return _tied(CHINCHILLA.to_coefficients(_untied(values), reference))

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        return _tied(CHINCHILLA.to_parameters(_untied(letters), reference))


def _untied(quantities: Values) -> dict[str, Any]:
    return {**quantities, "beta": quantities["alpha"]}


def _tied(quantities: Values) -> dict[str, Any]:
    return {name: value for name, value in quantities.items() if name != "beta"}
