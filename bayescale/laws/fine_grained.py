"""Krajewski et al. 2024, *Scaling Laws for Fine-Grained Mixture of Experts* (arXiv 2402.07871).

N counts ALL parameters but the embeddings, of every expert and not only those that a token uses; D
counts tokens seen; the granularity G is the width of the dense feed-forward layer over that of one
expert. The experts hold 64 times the parameters of that layer (expansion rate 64) in every run: the
law says nothing about another rate. Routing costs compute that grows with G and that the law does
not see, so the granularity that is best for a budget is finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity

_AT_ONE = Chinchilla()
# Published: .115 and .147, with a floor far below that of other laws, which flattens every exponent.
_EXPONENT = LogNormal(0.25, 0.6)


@final
@dataclass(frozen=True)
class FineGrained(Law):
    r"""L(N, D, G) = c + (g / G^gamma + a) / N^alpha + b / D^beta."""

    inputs: ClassVar[tuple[str, ...]] = ("n_total_params", "n_tokens", "granularity")
    size: ClassVar[str] = "n_total_params"
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({"granularity": 1.0})
    monotone: ClassVar[tuple[str, ...]] = inputs
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {
        "n_total_params": (1e3, 1e15),
        "n_tokens": (1e3, 1e17),
        "granularity": (1.0, 1e4),
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(replace(p, prior=_EXPONENT) if p.name in ("alpha", "beta") else p for p in Chinchilla.parameters),
        Parameter(
            "granularity_share",
            "$s_G$",
            "share of what a larger model would remove that ever finer experts would remove too",
            "1",
            LogitNormal(0.1, 0.8),
        ),
        Parameter("gamma", r"$\gamma$", "exponent of the granularity", "1", LogNormal(0.6, 0.5)),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("a", "$a$", "coefficient of the model size with endlessly fine experts", "loss x parameters^alpha"),
        Quantity("b", "$b$", "coefficient of the tokens", "loss x tokens^beta"),
        Quantity("c", "$c$", "irreducible loss", "loss"),
        Quantity("g", "$g$", "what granularity 1 adds to a", "loss x parameters^alpha"),
        Quantity("alpha", r"$\alpha$", "exponent of the total parameters", "1"),
        Quantity("beta", r"$\beta$", "exponent of the tokens", "1"),
        Quantity("gamma", r"$\gamma$", "exponent of the granularity", "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        return _AT_ONE.loss(_at(letters, run["granularity"]), _seen(run))

    def floor(self, letters: Values) -> Any:
        return letters["c"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        one, share = _AT_ONE.to_coefficients(values, _seen(reference)), values["granularity_share"]
        return {
            "a": one["A"] * (1 - share),
            "b": one["B"],
            "c": one["E"],
            "g": one["A"] * share,
            "alpha": one["alpha"],
            "beta": one["beta"],
            "gamma": values["gamma"],
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        one = _AT_ONE.to_parameters(_at(c, 1.0), _seen(reference))
        return {**one, "granularity_share": c["g"] / (c["a"] + c["g"]), "gamma": c["gamma"]}


def _seen(run: Values) -> dict[str, Any]:
    """The run as Chinchilla's law reads it."""
    return {"n_params": run["n_total_params"], "n_tokens": run["n_tokens"]}


def _at(letters: Values, granularity: Any) -> dict[str, Any]:
    """The letters of Chinchilla's law that the law is at one granularity."""
    c = letters
    return {
        "A": c["a"] + c["g"] * jnp.exp(-c["gamma"] * jnp.log(granularity)),
        "B": c["b"],
        "E": c["c"],
        "alpha": c["alpha"],
        "beta": c["beta"],
    }
