"""Tokens of two sources, of which those of one are worth q of the other's: the package's own form.

No closed form is published for what the quality of data does to a loss. This is the plainest: a token
of the other source counts as q tokens of the reference source (q > 1: as more), whatever the model,
the tokens seen and the share. Hence its limits: it knows no floor or exponent that depends on the
data, no gain from a mixture over either source alone, and no repetition; q is worth what the data
the loss is measured on makes of it, so it holds for one held-out set; and it is learned only where
runs with different shares are in the table.

Where the other source differs between groups, or its worth does, partial pooling gives each its own q
about a common one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, final

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogNormal, Parameter, Quantity

_ONE_SOURCE = Chinchilla()


@final
@dataclass(frozen=True)
class Quality(Law):
    r"""L(N, D, s) = E + A / N^alpha + B / (D (1 - s + q s))^beta."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens", "other_share")
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({"other_share": 0.0})
    monotone: ClassVar[tuple[str, ...]] = Chinchilla.monotone
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {**Chinchilla.domain, "other_share": (0.0, 1.0)}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *Chinchilla.parameters,
        # .44 to 2.3 with 90 %: which source is better is not known beforehand. Sources may differ between groups
        # by as much as one source may from the reference.
        Parameter(
            "q", "$q$", "tokens of the reference source that one of the other is worth", "1", LogNormal(1, 0.5), 0.5
        ),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        *Chinchilla.coefficients,
        Quantity("q", "$q$", "tokens of the reference source that one of the other is worth", "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        share = run["other_share"]
        worth = run["n_tokens"] * (1 - share + letters["q"] * share)
        return _ONE_SOURCE.loss(letters, {"n_params": run["n_params"], "n_tokens": worth})

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        return {**_ONE_SOURCE.to_coefficients(values, reference), "q": values["q"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        return {**_ONE_SOURCE.to_parameters(letters, reference), "q": letters["q"]}
