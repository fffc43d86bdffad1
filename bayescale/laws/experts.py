"""Ludziejewski et al. 2025, *Joint MoE Scaling Laws* (arXiv 2502.05172).

N counts the parameters that a token uses, D tokens seen, E the experts of a layer, saturating as in
Clark et al. 2022. Exponents are printed, and kept here, with their minus sign. At each number of
experts it is a law of Chinchilla's form, and the parameters are that law's with one expert, where Ê
is E_start and not 1, and what 64 experts and endless ones make of it.

Nothing is promised about more experts: whether they help depends on size and tokens (by the printed
constants they lessen what tokens leave only beyond some 2e9 tokens).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws import _saturation
from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogNormal, Parameter, Quantity

_REDUCED = Chinchilla()


@final
@dataclass(frozen=True)
class Experts(Law):
    r"""L(N, D, E) = a Ê^delta N^(alpha + gamma ln Ê) + b Ê^omega D^(beta + zeta ln Ê) + c, Ê from E_start to E_max."""

    inputs: ClassVar[tuple[str, ...]] = ("n_active_params", "n_tokens", "n_experts")
    size: ClassVar[str] = "n_active_params"
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({"n_experts": 1.0})
    monotone: ClassVar[tuple[str, ...]] = ("n_active_params", "n_tokens")
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {
        "n_active_params": (1e3, 1e15),
        "n_tokens": (1e3, 1e17),
        "n_experts": (1.0, 1e5),
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(p for p in Chinchilla.parameters if p.name in ("loss_center", "floor_share", "size_share")),
        Parameter(
            "size_exponent", r"$\alpha_1$", "exponent of the model size, with one expert", "1", LogNormal(0.35, 0.5)
        ),
        Parameter("token_exponent", r"$\beta_1$", "exponent of the tokens, with one expert", "1", LogNormal(0.35, 0.5)),
        Parameter(
            "size_factor",
            "$f_N$",
            "factor of 64 experts on what a larger model would remove, at the table's centre",
            "1",
            LogNormal(0.9, 0.3),
        ),
        Parameter(
            "token_factor",
            "$f_D$",
            "factor of 64 experts on what more tokens would remove, at the table's centre",
            "1",
            LogNormal(0.9, 0.3),
        ),
        # One published fit, 1.65; most of the prior lies between .5 and 2.
        Parameter(
            "token_ratio",
            "$r_D$",
            "exponent of the tokens with endless experts, relative to that with one",
            "1",
            LogNormal(1.0, 0.4),
        ),
        *_saturation.PARAMETERS,
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        Quantity("a", "$a$", "coefficient of the model size where Ê is 1", "loss x parameters^-alpha"),
        Quantity("b", "$b$", "coefficient of the tokens where Ê is 1", "loss x tokens^-beta"),
        Quantity("c", "$c$", "irreducible loss", "loss"),
        Quantity("alpha", r"$\alpha$", "exponent of the model size where Ê is 1, negative", "1"),
        Quantity("beta", r"$\beta$", "exponent of the tokens where Ê is 1, negative", "1"),
        Quantity("gamma", r"$\gamma$", "change of the size's exponent for each e-fold of Ê", "1"),
        Quantity("delta", r"$\delta$", "exponent of Ê in the size's coefficient", "1"),
        Quantity("omega", r"$\omega$", "exponent of Ê in the tokens' coefficient", "1"),
        Quantity("zeta", r"$\zeta$", "change of the tokens' exponent for each e-fold of Ê", "1"),
        *_saturation.COEFFICIENTS,
    )

    def loss(self, letters: Values, run: Values) -> Any:
        reduced = _reduced(letters, _saturation.log_effective(letters, run["n_experts"]))
        return _REDUCED.loss(reduced, _dense(run))

    def floor(self, letters: Values) -> Any:
        return letters["c"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        one = _REDUCED.to_coefficients(
            {**v, "alpha": v["size_exponent"], "beta": v["token_exponent"]}, _dense(reference)
        )
        experts = _saturation.bounds(v)
        log_e, (many, endless) = jnp.log(v["E_start"]), _saturation.spans(experts)
        gamma = one["alpha"] * (1 - v["size_ratio"]) / endless
        zeta = one["beta"] * (1 - v["token_ratio"]) / endless
        delta = jnp.log(v["size_factor"]) / many - gamma * jnp.log(reference["n_active_params"])
        omega = jnp.log(v["token_factor"]) / many - zeta * jnp.log(reference["n_tokens"])
        return {
            "a": one["A"] * jnp.exp(-delta * log_e),
            "b": one["B"] * jnp.exp(-omega * log_e),
            "c": one["E"],
            "alpha": -one["alpha"] - gamma * log_e,
            "beta": -one["beta"] - zeta * log_e,
            "gamma": gamma,
            "delta": delta,
            "omega": omega,
            "zeta": zeta,
            **experts,
        }

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c, (many, endless) = letters, _saturation.spans(letters)
        one = _REDUCED.to_parameters(_reduced(c, jnp.log(c["E_start"])), _dense(reference))
        size, tokens = one.pop("alpha"), one.pop("beta")
        return {
            **one,
            "size_exponent": size,
            "token_exponent": tokens,
            "size_factor": jnp.exp(many * (c["delta"] + c["gamma"] * jnp.log(reference["n_active_params"]))),
            "token_factor": jnp.exp(many * (c["omega"] + c["zeta"] * jnp.log(reference["n_tokens"]))),
            "size_ratio": 1 - c["gamma"] * endless / size,
            "token_ratio": 1 - c["zeta"] * endless / tokens,
            **_saturation.parameters(c),
        }


def _dense(run: Values) -> dict[str, Any]:
    """The run as Chinchilla's law reads it."""
    return {"n_params": run["n_active_params"], "n_tokens": run["n_tokens"]}


def _reduced(letters: Values, log_e: Any) -> dict[str, Any]:
    """The letters of Chinchilla's law that the law is at one log Ê (the paper's m, mu, n, nu and c)."""
    c = letters
    return {
        "A": c["a"] * jnp.exp(c["delta"] * log_e),
        "B": c["b"] * jnp.exp(c["omega"] * log_e),
        "E": c["c"],
        "alpha": -(c["alpha"] + c["gamma"] * log_e),
        "beta": -(c["beta"] + c["zeta"] * log_e),
    }
