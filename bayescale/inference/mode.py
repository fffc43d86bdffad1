"""Where the density peaks and how wide it is there: a start for samplers, and a quick preview.

The search runs from several draws of the prior, each to convergence; the summed objective is
never rescaled, since an averaged one meets its tolerance at the start (Besiroglu et al. 2024,
arXiv 2404.10102, on the fits of Hoffmann et al. 2022).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np
from scipy.optimize import minimize

from bayescale.model.joint import Joint, potential, sites, size

STARTS = 4
# The share of effective draws, of an importance sample from the Normal at the mode, above which
# that Normal is taken for the posterior's shape: whitening by it then beats any adaptation.
SOUND = 0.3
PILOT = 256  # size of that importance sample


@final
@dataclass(frozen=True)
class Mode:
    """The highest point found, and a factor ``L`` of the covariance ``L L'`` there."""

    center: np.ndarray
    factor: np.ndarray
    data: Mapping[str, Any]
    converged: int
    agree: int
    pilot_share: float

    @property
    def sound(self) -> bool:
        """Whether the Normal at the mode is close to the posterior."""
        return self.pilot_share >= SOUND


@functools.cache
def _curvature(joint: Joint) -> Callable[..., Any]:
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


def prior_scale(joint: Joint, data: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Location and spread of the prior of every entry of the flat vector, in the non-centred form."""
    loc, spread = [], []
    of_site = {p.site: p.name for p in joint.parameters}
    for site, shape in sites(joint, len(data["mask"])).items():
        name = of_site.get(site) or of_site.get(site.rsplit("_", 1)[0])
        if site.endswith("_sd") and site not in of_site:
            at, width = np.log(data["between_groups"][name]), 1.0
        elif site.endswith("_offset") and site not in of_site:
            at, width = 0.0, 1.0
        else:
            at, width = data["prior_loc"][name], data["prior_spread"][name]
        loc.append(np.full(shape, at).ravel())
        spread.append(np.full(shape, width).ravel())
    return np.concatenate(loc), np.concatenate(spread)


def find(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, starts: int = STARTS) -> Mode:
    """Search for the mode from the prior's median and from ``starts`` - 1 draws of the prior.

    Hierarchical models are searched in their non-centred form, in which the mode is not degenerate,
    and handed on in the form that suits each group.
    """
    loc, spread = prior_scale(joint, data)
    point = _curvature(joint)
    on_device = jax.device_put(dict(data))
    ends = [
        _descend(lambda z: point(z, on_device), loc, spread, u)
        for u in (np.zeros_like(loc), *rng.standard_normal((starts - 1, len(loc))) * 0.7)
    ]
    best = min(ends, key=lambda e: e[1])
    agree = sum(e[1] < best[1] + 0.01 for e in ends)
    data = _centre(joint, dict(data), best[0])
    z = _recentre(joint, data, best[0])
    on_device = jax.device_put(data)
    factor = _factor(np.asarray(point(z, on_device)[2]), spread)
    share = _pilot(joint, z, factor, on_device, rng)
    return Mode(z, factor, data, sum(e[2] for e in ends), agree, share)


def _descend(point: Callable[..., Any], loc: np.ndarray, spread: np.ndarray, u: np.ndarray) -> tuple:
    """One search in prior-standardised coordinates: (z, energy, converged)."""

    @functools.lru_cache(maxsize=4)
    def at(key: bytes) -> Any:
        value, slope, curve = (np.asarray(a) for a in point(loc + spread * np.frombuffer(key)))
        return float(value), slope * spread, curve * np.outer(spread, spread)

    def part(i: int) -> Callable[[np.ndarray], Any]:
        return lambda v: at(np.ascontiguousarray(v).tobytes())[i]

    end = minimize(part(0), u, jac=part(1), hess=part(2), method="trust-exact", options={"gtol": 1e-6, "maxiter": 300})
    converged = bool(np.abs(part(1)(end.x)).max() < 1e-3)
    return loc + spread * end.x, float(end.fun) if np.isfinite(end.fun) else np.inf, converged


def _factor(hessian: np.ndarray, spread: np.ndarray) -> np.ndarray:
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
    return float(w.sum() ** 2 / (w**2).sum() / PILOT)


def _partial(joint: Joint) -> list[tuple[str, str]]:
    kinds = dict(joint.kinds)
    return [(p.name, p.site) for p in joint.parameters if kinds[p.name] == "partial" and p.name not in joint.fixed]


def _split(joint: Joint, z: np.ndarray, rows: int) -> dict[str, np.ndarray]:
    out, at = {}, 0
    for name, shape in sites(joint, rows).items():
        n = int(np.prod(shape))
        out[name] = z[at : at + n].reshape(shape)
        at += n
    return out


def _centre(joint: Joint, data: dict[str, Any], z: np.ndarray) -> dict[str, Any]:
    """Choose the form of each group's value by how much of its variance the group's own runs explain.

    With the population's sd at its value in ``z``, the posterior variance of an offset is V and its
    prior variance 1; the group stands 1 - V of the way to the centred form.
    """
    if not _partial(joint):
        return data
    rows = len(data["mask"])
    curve = np.asarray(_curvature(joint)(z, jax.device_put(data))[2])
    index = _split(joint, np.arange(size(joint, rows)), rows)
    names = _partial(joint)
    offsets = np.concatenate([index[f"{site}_offset"] for _, site in names]).astype(int)
    block = curve[np.ix_(offsets, offsets)]
    values, vectors = np.linalg.eigh((block + block.T) / 2)
    variance = ((vectors**2) / np.maximum(values, 1.0)).sum(1).reshape(len(names), -1)
    centered = {name: np.clip(1 - variance[i], 0.0, 1.0) for i, (name, _) in enumerate(names)}
    return {**data, "centered": {**data["centered"], **centered}}


def _recentre(joint: Joint, data: Mapping[str, Any], z: np.ndarray) -> np.ndarray:
    """The same point, from the non-centred form to the form that ``data`` now asks for."""
    rows = len(data["mask"])
    parts = {k: v.copy() for k, v in _split(joint, z, rows).items()}
    for name, site in _partial(joint):
        c, mean, sd = data["centered"][name], parts[f"{site}_mean"], np.exp(parts[f"{site}_sd"])
        parts[f"{site}_offset"] = c * mean + sd**c * parts[f"{site}_offset"]
    return np.concatenate([v.ravel() for v in parts.values()])
