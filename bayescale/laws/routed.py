"""Clark et al. 2022, *Unified Scaling Laws for Routed Language Models* (arXiv 2202.01169).

N counts the parameters that a token uses (those of the dense model of the same cost); E the experts
of a routed layer, of which a token uses one. All runs saw 130e9 tokens, so tokens do not appear: the
law says nothing about a table in which they differ, nor about how to split a budget.

It was fitted from 15e6 to 1.3e9 active parameters and to 512 experts. Experts pay less on a larger
model (c > 0): at N = 10^(-b / c), about 1e12 by the printed S-BASE constants but anywhere from 3e10 by
those of the other routers, they stop paying, and beyond it the equation has more experts hurt. So
nothing is promised about more experts, and plans beyond that size mean little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws import _saturation
from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity

_LN10 = math.log(10)


@final
@dataclass(frozen=True)
class Routed(Law):
    r"""L(N, E) = 10^(a log10 N + b log10 Ê + c log10 N log10 Ê + d), Ê rising with E from E_start to E_max."""

    inputs: ClassVar[tuple[str, ...]] = ("n_active_params", "n_experts")
    size: ClassVar[str] = "n_active_params"
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({"n_experts": 1.0})
    monotone: ClassVar[tuple[str, ...]] = ("n_active_params",)
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {"n_active_params": (1e3, 1e15), "n_experts": (1.0, 1e5)}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(p for p in Chinchilla.parameters if p.name == "loss_center"),
        Parameter(
            "size_slope",
            r"$\alpha_1$",
            "exponent of the loss in the model size, with one expert",
            "1",
            LogNormal(0.08, 0.4),
        ),
        Parameter(
            "experts_gain",
            "$g$",
            "share of the loss that 64 experts remove at the table's centre",
            "1",
            LogitNormal(0.1, 0.6),
        ),
        *_saturation.PARAMETERS,
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("a", "$a$", "exponent of the model size where Ê is 1", "1"),
        Quantity("b", "$b$", "exponent of the effective experts where N is 1", "1"),
        Quantity("c", "$c$", "change of either exponent for a factor of ten in the other", "1"),
        Quantity("d", "$d$", "log10 of the loss where N and Ê are 1", "log10 loss"),
        *_saturation.COEFFICIENTS,
    )

    def loss(self, letters: Values, run: Values) -> Any:
        c = letters
        log_n = jnp.log10(run["n_active_params"])
        log_e = _saturation.log_effective(c, run["n_experts"]) / _LN10
        return jnp.exp(_LN10 * (c["a"] * log_n + c["b"] * log_e + c["c"] * log_n * log_e + c["d"]))

    def floor(self, letters: Values) -> Any:
        return jnp.zeros_like(letters["d"])

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v, log_n = values, jnp.log10(reference["n_active_params"])
        experts = _saturation.bounds(v)
        many, endless = (span / _LN10 for span in _saturation.spans(experts))
        log_e = jnp.log10(experts["E_start"])
        c = v["size_slope"] * (1 - v["size_ratio"]) / endless
        a = -v["size_slope"] - c * log_e
        b = jnp.log1p(-v["experts_gain"]) / _LN10 / many - c * log_n
        d = jnp.log10(v["loss_center"]) - a * log_n - (b + c * log_n) * log_e
        return {"a": a, "b": b, "c": c, "d": d, **experts}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c = letters
        many, endless = (span / _LN10 for span in _saturation.spans(c))
        slope = -(c["a"] + c["c"] * jnp.log10(c["E_start"]))
        return {
            "loss_center": self.loss(c, {**reference, "n_experts": 1.0}),
            "size_slope": slope,
            "experts_gain": -jnp.expm1(_LN10 * (c["b"] + c["c"] * jnp.log10(reference["n_active_params"])) * many),
            "size_ratio": 1 - c["c"] * endless / slope,
            **_saturation.parameters(c),
        }
