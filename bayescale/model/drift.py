r"""How far a fitted law can be believed beyond its runs: declining exponents, and a path away from the law.

A law fitted to small runs errs on larger ones, mostly in one direction and by far more than its posterior
says. Two things are added to it. Each input x with a diminishing return counts for less beyond the centre
x_0 of the table,

    log(x' / x_0) = (1 - e^(-rho n)) / rho,    n = log(x / x_0),

so that a power law's local exponent falls as e^(-rho n), and rho = 0 is the law itself. And log loss
departs from the law by

    delta = s [W(z) + sqrt(w) q (V_0 + V(z))],

with z the decades of compute from the centre, q the log of tokens per parameter from the centre, W and V
Brownian motions of unit variance a decade that start at the centre to both sides, and V_0 standard
Normal: the law may be wrong by an amount that wanders off with compute, and tilts along an iso-FLOP curve.

How fast exponents decline and how far losses depart cannot be told from one table's own runs (the misfit
inside a table says little about that outside): `Drift` holds what thirteen public tables say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from bayescale.laws._law import Law
from bayescale.parameter import LogitNormal, LogNormal, Normal, Parameter, Prior

DECLINE = Parameter(
    "decline", r"$\rho$", "decline of the exponents, per e-fold of size or tokens", "1", Normal(0.05, 0.03), 0.0
)
DEPARTURE = Parameter(
    "departure",
    "$s$",
    "departure of log loss from the law, per root decade of compute",
    "1",
    LogNormal(0.012, 0.15),
    0.0,
)
# Decades of compute from the centre between which a path is straight: a third of a decade where runs
# lie, wider beyond, to a million times the largest run.
LEFT = np.array([1, 2, 3, 4, 5, 6, 7.5, 9, 12]) / 3
RIGHT = np.array([1, 2, 3, 4, 5, 6, 7.5, 9, 12, 15, 19.5, 24]) / 3
KNOTS = len(LEFT) + len(RIGHT)
WEIGHTS = 2 * KNOTS + 1  # of a path: its walk; its tilt at the centre, and the tilt's walk

# Fits of thirteen public tables, train on the smaller and predict the larger runs. The shares are those
# of log(A / N^alpha / E) and log(B / D^beta / E) at the centre ~ N(-1, .6) each. Those fits held four degrees
# of freedom: a path that may bend to a few runs leaves little to tell the tails by, and where they may be as
# heavy as they like the scatter can shrink to nothing around the runs that it meets.
POPULATION: Mapping[str, Prior] = {
    "floor_share": LogitNormal(0.555, 0.44),
    "size_share": LogitNormal(0.5, 0.85),
    "alpha": LogNormal(0.26, 0.20),
    "beta": LogNormal(0.26, 0.20),
    "noise": LogNormal(0.006, 1.0),
    "tail": LogNormal(4.0, 0.3),
    DECLINE.name: DECLINE.prior,
    DEPARTURE.name: DEPARTURE.prior,
}


@final
@dataclass(frozen=True)
class Drift:
    """What other tables say about a law beyond its runs.

    Attributes
    ----------
    priors : mapping of str to Prior
        Of ``decline`` (rho) and ``departure`` (s), and of those parameters of laws and noise whose
        values at a table's centre other tables tell; for parameters that a law does not have, unused.
    tilt : float
        Variance w of the departure along an iso-FLOP curve, relative to that along compute, for each
        squared e-fold of tokens per parameter. 0.1 is wider and safer for N_opt.
    shared : float
        Share of a path's variance that groups under partial pooling have in common.

    Raises
    ------
    ValueError
        If ``decline`` or ``departure`` has no prior, ``tilt`` is negative or not finite, or ``shared``
        is not between 0 and 1.
    """

    priors: Mapping[str, Prior] = field(default_factory=lambda: dict(POPULATION))
    tilt: float = 0.06
    shared: float = 0.5

    def __post_init__(self) -> None:
        lacking = [p.name for p in (DECLINE, DEPARTURE) if not isinstance(self.priors.get(p.name), type(p.prior))]
        if lacking:
            raise ValueError(f"Drift(priors=...) needs a prior of {' and '.join(lacking)}, of the default's kind.")
        if not (np.isfinite(self.tilt) and self.tilt >= 0):
            raise ValueError(f"Drift(tilt=...) is a variance ratio, 0 or more, not {self.tilt!r}.")
        if not 0 <= self.shared <= 1:
            raise ValueError(f"Drift(shared=...) is a share, 0 to 1, not {self.shared!r}.")


@final
@dataclass(frozen=True)
class Center:
    """The centre of a table, from which paths start: means of log compute and of log tokens per parameter."""

    log_flop: float
    log_ratio: float

    def columns(self, flop: Any, n_params: Any, n_tokens: Any, tilt: float) -> np.ndarray:
        """What each weight of a path adds to a run's log loss, for s = 1: array (..., WEIGHTS)."""
        walk = self.walk(flop)
        lever = np.sqrt(tilt) * (np.log(n_tokens) - np.log(n_params) - self.log_ratio)[..., None]
        return np.concatenate([walk, lever, lever * walk], -1)

    def walk(self, flop: Any) -> np.ndarray:
        """The columns (..., KNOTS) of the walk alone, which are also those of the tilt's."""
        return basis((np.log(flop) - self.log_flop) / np.log(10.0))


def basis(decades: Any) -> np.ndarray:
    """Coefficients of the paths' standard Normal weights, array (..., KNOTS), at decades from the centre.

    Increments between knots are independent and paths straight in between, scaled so that the
    variance is that of Brownian motion everywhere, not at the knots alone.
    """
    z = np.asarray(decades, float)[..., None]
    sides = []
    for knots, distance in ((LEFT, -z), (RIGHT, z)):
        width = np.diff(knots, prepend=0.0)
        passed = np.clip((distance - (knots - width)) / width, 0.0, 1.0)
        column = passed * np.sqrt(width)
        variance = (column**2).sum(-1, keepdims=True)
        scale = np.sqrt(np.maximum(distance, 0.0) / np.where(variance > 0, variance, 1.0))
        sides.append(column * scale)
    return np.concatenate(sides, -1)


def declining(
    run: Mapping[str, Any], decline: Any, reference: Mapping[str, Any], inputs: tuple[str, ...]
) -> dict[str, Any]:
    """The run that the law sees: what its ``inputs`` with diminishing returns still count for."""
    out = dict(run)
    for name in inputs:
        n = jnp.log(run[name] / reference[name])
        u = -decline * n
        small = jnp.abs(u) < 1e-6
        safe = jnp.where(small, 1.0, u)
        out[name] = reference[name] * jnp.exp(n * jnp.where(small, 1 + u / 2, jnp.expm1(safe) / safe))
    return out


@final
@dataclass(frozen=True)
class Drifted:
    """A law as a drift bends it: mean loss = law at the declined run, times e^(departure + tilt q).

    ``loss`` reads, beside the law's letters, ``decline``, ``departure`` and ``tilt`` (of log loss, at the
    run's compute), ``center_ratio`` (log of tokens per parameter) and ``center_`` and the name of each input
    that declines.
    """

    law: Law

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads of a run."""
        return self.law.inputs

    @property
    def size(self) -> str:
        """What a compute budget buys against tokens."""
        return self.law.size

    @property
    def conditions(self) -> Mapping[str, float]:
        """What no compute budget settles, with its standard."""
        return self.law.conditions

    @property
    def domain(self) -> Mapping[str, tuple[float, float]]:
        """Where it holds."""
        return self.law.domain

    def loss(self, letters: Mapping[str, Any], run: Mapping[str, Any]) -> Any:
        """Mean loss, as `Law.loss`."""
        center = {name: letters[f"center_{name}"] for name in self.law.spent}
        seen = declining(run, letters[DECLINE.name], center, self.law.spent)
        q = jnp.log(run["n_tokens"] / run[self.law.size]) - letters["center_ratio"]
        return self.law.loss(letters, seen) * jnp.exp(letters[DEPARTURE.name] + letters["tilt"] * q)
