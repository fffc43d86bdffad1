"""Kumar et al. 2024, *Scaling Laws for Precision* (arXiv 2411.04330), trained in low precision.

A parameter counts for less where weights, activations or the cache of keys and values are held in few
bits. The offsets n_x are part of every fit of the paper (its appendix K) though its main text drops
them; the sign +n_x is the one by which three bits of activation diverge and seven to eight bits are
best, as the paper says.

Bits are those of integers during training, and 16 count as an ordinary run. A factor is negative below
n_x gamma_x bits (3.1 for activations by the printed constants), where the law has no meaning; so a
parameter says what is left at the fewest bits of the domain, 3 for weights and cache and 4 for
activations, and a run with fewer is outside.

Rounding the weights after training adds a term (delta_PTQ) that grows with tokens. It is left out: it
takes three more constants, and more tokens could then raise the loss. A loss measured after such
rounding is not one of this law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, final

import jax.numpy as jnp

from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogitNormal, LogNormal, Parameter, Quantity

_EXACT = Chinchilla()
_FEWEST = {"weight_bits": 3.0, "activation_bits": 4.0, "cache_bits": 3.0}
_MOST = 32.0
_PARTS = {"weight_bits": ("w", "weights"), "activation_bits": ("a", "activations"), "cache_bits": ("kv", "cache")}


def _kept(name: str) -> Parameter:
    """What is left at the fewest bits: .56, .33 and .51 by the printed constants."""
    letter, part = _PARTS[name]
    meaning = f"share of the parameters that counts with {part} of {_FEWEST[name]:.0f} bits"
    return Parameter(f"kept_{letter}", f"$k_{{{letter}}}$", meaning, "1", LogitNormal(0.5, 1.0))


def _scale(name: str) -> Parameter:
    """Published: 2.7, 2.2 and 1.0 bits."""
    letter, part = _PARTS[name]
    meaning = f"bits of the {part} by which the share that does not count falls e-fold"
    return Parameter(f"gamma_{letter}", rf"$\gamma_{{{letter}}}$", meaning, "bits", LogNormal(1.8, 0.6))


def _letters(name: str) -> tuple[Quantity, Quantity]:
    """A scale and its offset."""
    letter, part = _PARTS[name]
    scale = _scale(name)
    offset = Quantity(f"n_{letter}", f"$n_{{{letter}}}$", f"offset of the {part}' bits, in units of gamma", "1")
    return Quantity(scale.name, scale.symbol, scale.meaning, scale.unit), offset


@final
@dataclass(frozen=True)
class Precision(Law):
    r"""L(N, D, P) = E + A / N_eff^alpha + B / D^beta, N_eff = N prod_x (1 - e^(-P_x / gamma_x + n_x))."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens", *_PARTS)
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType(dict.fromkeys(_PARTS, 16.0))
    monotone: ClassVar[tuple[str, ...]] = inputs
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {
        **Chinchilla.domain,
        **{name: (fewest, _MOST) for name, fewest in _FEWEST.items()},
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *Chinchilla.parameters,
        *(make(name) for name in _PARTS for make in (_kept, _scale)),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        *Chinchilla.coefficients,
        *(quantity for name in _PARTS for quantity in _letters(name)),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        return _EXACT.loss(letters, _counted(letters, run))

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        bits: dict[str, Any] = {}
        for name, (x, _) in _PARTS.items():
            gamma = bits[f"gamma_{x}"] = values[f"gamma_{x}"]
            bits[f"n_{x}"] = _FEWEST[name] / gamma + jnp.log1p(-values[f"kept_{x}"])
        return {**_EXACT.to_coefficients(values, _counted(bits, reference)), **bits}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c, bits = letters, {}
        for name, (x, _) in _PARTS.items():
            bits[f"gamma_{x}"] = c[f"gamma_{x}"]
            bits[f"kept_{x}"] = share_that_counts(c, name, _FEWEST[name])
        return {**_EXACT.to_parameters(c, _counted(c, reference)), **bits}


def share_that_counts(letters: Values, name: str, bits: Any) -> Any:
    """The factor of one part on N_eff: 1 - e^(-P / gamma + n), negative where the law has no meaning."""
    x, _ = _PARTS[name]
    return -jnp.expm1(letters[f"n_{x}"] - bits / letters[f"gamma_{x}"])


def _counted(letters: Values, run: Values) -> dict[str, Any]:
    """The run as Chinchilla's law reads it, with N_eff for N."""
    n_eff = run["n_params"]
    for name in _PARTS:
        n_eff = n_eff * share_that_counts(letters, name, run[name])
    return {"n_params": n_eff, "n_tokens": run["n_tokens"]}
