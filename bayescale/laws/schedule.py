r"""Checkpoints whose learning rate has not finished decaying: the package's own form.

A checkpoint's loss is that of a finished run of its size and tokens and a penalty, which its decay
would still have removed. r is the share of the learning rate's decay that is to come,

    r = (eta - eta_end) / (eta_peak - eta_end),

with eta the rate at the checkpoint: 0 for a finished run, 1 before the decay, .75 at a third of a cosine. h
rises from 0 to 1, half of it at r = t.

No closed form in N is published. That the penalty grows as a power of N, and the centres of the priors,
are from the public curves of Luo et al. 2025 (arXiv 2503.12811) at 25e6, 100e6 and 400e6 parameters,
24,000 steps: .044, .057 and .077 nats with a constant rate and .037, .045 and .060 at a third of a
cosine. They give omega = .20 and .17, t = .42, and at 100e6 parameters .058 nats, which is 2 % of a loss
of some 2.9: the prior is relative to the loss at the table's centre, so that it means the same in any
unit of loss.

Its limits: one corpus and one peak rate are behind the figures; the penalty is the same for any tokens; and it
grows with N, so that a large enough model with its decay to come is put above a smaller one, far
outside the three sizes. So nothing is promised about more parameters, though for finished runs it is Chinchilla's law.
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

_FINISHED = Chinchilla()


@final
@dataclass(frozen=True)
class Schedule(Law):
    r"""L(N, D, r) = E + A / N^alpha + B / D^beta + K N^omega h(r), h(r) = r (1 - t) / (r (1 - t) + t (1 - r))."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens", "decay_left")
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({"decay_left": 0.0})
    monotone: ClassVar[tuple[str, ...]] = ("n_tokens",)
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {**Chinchilla.domain, "decay_left": (0.0, 1.0)}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *Chinchilla.parameters,
        Parameter(
            "decay_gain",
            r"$\kappa$",
            "loss that the whole decay of the learning rate removes at the table's centre, relative to loss_center",
            "1",
            LogNormal(0.02, 0.5),
        ),
        Parameter("omega", r"$\omega$", "exponent of the model size in that loss", "1", LogNormal(0.19, 0.5)),
        Parameter(
            "t", "$t$", "share of the decay still to come when half of that loss is", "1", LogitNormal(0.42, 0.5)
        ),
    )
    coefficients: ClassVar[tuple[Quantity, ...]] = (
        *Chinchilla.coefficients,
        Quantity("K", "$K$", "coefficient of the model size in what the decay removes", "loss x parameters^-omega"),
        Quantity("omega", r"$\omega$", "exponent of the model size in what the decay removes", "1"),
        Quantity("t", "$t$", "share of the decay still to come when half of its gain is", "1"),
    )

    def loss(self, letters: Values, run: Values) -> Any:
        t, left = letters["t"], run["decay_left"]
        unpaid = left * (1 - t) / (left * (1 - t) + t * (1 - left))
        return _FINISHED.loss(letters, run) + _whole(letters, run) * unpaid

    def floor(self, letters: Values) -> Any:
        return letters["E"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        v = values
        k = v["decay_gain"] * v["loss_center"] * jnp.exp(-v["omega"] * jnp.log(reference["n_params"]))
        return {**_FINISHED.to_coefficients(v, reference), "K": k, "omega": v["omega"], "t": v["t"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        c, finished = letters, _FINISHED.to_parameters(letters, reference)
        gain = _whole(c, reference) / finished["loss_center"]
        return {**finished, "decay_gain": gain, "omega": c["omega"], "t": c["t"]}


def _whole(letters: Values, run: Values) -> Any:
    """What the whole decay removes from the loss."""
    return letters["K"] * jnp.exp(letters["omega"] * jnp.log(run["n_params"]))
