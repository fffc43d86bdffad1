"""Where the density peaks and how wide it is there: a start for samplers, and a quick preview.

The search runs from several draws of the prior, each to convergence; the summed objective is
never rescaled, since an averaged one meets its tolerance at the start (Besiroglu et al. 2024,
arXiv 2404.10102, on the fits of Hoffmann et al. 2022).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import minimize

from bayescale.model import shocks
from bayescale.model.joint import Joint, describe, potential, sites, size
from bayescale.model.path import PATH

STARTS = 4
# The share of effective draws, of an importance sample from the Normal at the mode, above which
# that Normal is taken for the posterior's shape: whitening by it then beats any adaptation.
SOUND = 0.3
OUTSIDE = 1e300  # energy where the density cannot be computed
PILOT = 256  # size of that importance sample


@final
@dataclass(frozen=True)
class Mode:
    """Where to start, and a factor ``L`` of the covariance ``L L'`` there, both in the flat vector's coordinates.

    ``data`` is the data that these coordinates belong to; ``converged`` and ``agree`` count the searches that
    ended at a stationary point and at the best one; ``whitens`` says whether the factor takes the posterior
    to something close to standard Normal, and ``skewed`` whether it can only do so roughly.
    """

    center: np.ndarray
    factor: np.ndarray
    data: Mapping[str, Any]
    converged: int
    agree: int
    whitens: bool
    skewed: bool = False


@functools.cache
def curvature(joint: Joint) -> Callable[..., Any]:
    """Energy, gradient and Hessian at a flat vector."""
    energy = potential(joint)

    def slope(z: Any, data: Any) -> Any:
        value, first = jax.value_and_grad(energy)(z, data)
        return first, (value, first)

    def point(z: Any, data: Any) -> Any:
        second, (value, first) = jax.jacfwd(slope, has_aux=True)(z, data)
        return value, first, second

    return jax.jit(point)


@functools.cache
def energies(joint: Joint) -> Callable[..., Any]:
    """Potential energy of many flat vectors (k, d) at once."""
    return jax.jit(jax.vmap(potential(joint), in_axes=(0, None)))


def find(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, starts: int = STARTS) -> Mode:
    """Search for the mode of an ungrouped model, from the prior's median and from draws of the prior."""
    if (joint.path or joint.shocks) and PATH.name not in joint.fixed:
        return _beside_path(joint, data, rng, starts)
    loc, spread = prior_scale(joint, data)
    point = curvature(joint)
    on_device = jax.device_put(dict(data))
    ends = [
        descend(lambda z: point(z, on_device), loc, spread, u)
        for u in (np.zeros_like(loc), *rng.standard_normal((starts - 1, len(loc))) * 0.7)
    ]
    z, lowest, _ = min(ends, key=lambda e: e[1])
    agree = sum(e[1] < lowest + 0.01 for e in ends)
    factor = factor_of(np.asarray(point(z, on_device)[2]), spread)
    sound = _pilot(joint, z, factor, on_device, rng) >= SOUND
    return Mode(z, factor, data, sum(e[2] for e in ends), agree, whitens=sound)


def _beside_path(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, starts: int) -> Mode:
    """The mode of all else, with the path at what the runs tell given that; around there the path is Normal."""
    held = dataclasses.replace(joint, fixed=joint.fixed | {PATH.name})
    data = told(held, data, typical(held, data), np.zeros(len(data["mask"])))
    data = told(held, data, *scatter(held, data, find(held, data, rng, starts).center))
    m = find(held, data, rng, starts)
    n = size(joint, len(data["mask"])) - len(m.center)
    center, factor = np.concatenate([m.center, np.zeros(n)]), block_diag(m.factor, np.eye(n))
    return dataclasses.replace(m, center=center, factor=factor)


def told(joint: Joint, data: Mapping[str, Any], values: Mapping[str, Any], residual: np.ndarray) -> dict[str, Any]:
    """The data with a pilot of the paths, from the groups' noise (groups,) and residuals (rows,) of log loss."""
    group, mask, groups = data["group"], data["mask"], range(joint.n_groups)
    se = np.sqrt([np.mean(data["se"][mask & (group == g)] ** 2) for g in groups])
    precision = joint.noise.precision({k: v[group] for k, v in values.items()}, residual, data["se"])
    away = shocks.pilot(joint.path, joint.shocks, len(se), data, precision, joint.noise.variance(values, se))
    return {**data, "pilot": {**data["pilot"], "path": away, "se": se}}


def typical(joint: Joint, data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Noise (groups,) at the prior's medians."""
    fixed, loc = data["fixed"], data["prior_loc"]
    return {
        p.name: np.full(joint.n_groups, fixed[p.name] if p.name in joint.fixed else p.prior.constrain(loc[p.name], np))
        for p in joint.noise.parameters
    }


def scatter(joint: Joint, data: Mapping[str, Any], z: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Noise (groups,) and residuals (rows,) of log loss at a flat vector."""
    found = describe(joint)(z[None], data)
    noise = {p.name: np.ravel(found["values"][p.name]) for p in joint.noise.parameters}
    values = {name: np.broadcast_to(v, (joint.n_groups,)) for name, v in noise.items()}
    return values, data["log_loss"] - np.asarray(found["mean"][0])


def prior_scale(joint: Joint, data: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Location and spread of the prior of every entry of an ungrouped model's flat vector."""
    of_site = {p.site: p.name for p in joint.parameters}
    loc, spread = [], []
    for site, shape in sites(joint, len(data["mask"])).items():
        known = site in of_site  # the weights of a drift's path are standard Normal
        loc.append(np.full(math.prod(shape), data["prior_loc"][of_site[site]] if known else 0.0))
        spread.append(np.full(math.prod(shape), data["prior_spread"][of_site[site]] if known else 1.0))
    return np.concatenate(loc), np.concatenate(spread)


def descend(point: Callable[..., Any], loc: np.ndarray, spread: np.ndarray, u: np.ndarray) -> tuple:
    """One search in prior-standardised coordinates: (z, energy, converged)."""

    @functools.lru_cache(maxsize=4)
    def at(key: bytes) -> Any:
        value, slope, curve = (np.asarray(a) for a in point(loc + spread * np.frombuffer(key)))
        if not (np.isfinite(value) and np.isfinite(slope).all() and np.isfinite(curve).all()):
            return OUTSIDE, np.zeros_like(spread), np.eye(len(spread))  # overflow: a step there is refused
        return float(value), slope * spread, curve * np.outer(spread, spread)

    def part(i: int) -> Callable[[np.ndarray], Any]:
        return lambda v: at(np.ascontiguousarray(v).tobytes())[i]

    while u.any() and part(0)(u) == OUTSIDE:
        u = np.where(np.abs(u) < 1e-3, 0.0, u / 2)
    end = minimize(part(0), u, jac=part(1), hess=part(2), method="trust-exact", options={"gtol": 1e-6, "maxiter": 300})
    converged = bool(np.abs(part(1)(end.x)).max() < 1e-3)
    return loc + spread * end.x, float(end.fun), converged and end.fun < OUTSIDE


def factor_of(hessian: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """A factor of the inverse curvature; directions that the data do not bend keep the prior's width."""
    scaled = hessian * np.outer(spread, spread)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    return spread[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), 0.25))


def _pilot(joint: Joint, center: np.ndarray, factor: np.ndarray, data: Any, rng: np.random.Generator) -> float:
    """Share of effective draws of an importance sample from the Normal at the mode."""
    u = rng.standard_normal((PILOT, len(center)))
    log_weight = 0.5 * (u**2).sum(1) - np.asarray(energies(joint)(center + u @ factor.T, data))
    log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
    w = np.exp(log_weight - log_weight.max())
    w = np.minimum(w, w.mean() * np.sqrt(PILOT))  # Ionides 2008: one draw far out does not decide
    return float(w.sum() ** 2 / (w**2).sum() / PILOT)
