"""A start for grouped models, from each group's runs one after the other.

A hierarchical model's joint mode is no guide (it counts the height of the density, not its volume),
and its curvature is costly. Each group's runs alone say where the group's values lie and how sure
that is; the rest is Normal arithmetic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from bayescale.inference import mode
from bayescale.inference.mode import Mode
from bayescale.model.joint import Joint, size, unpack
from bayescale.model.noise import SCALE
from bayescale.model.path import PATH
from bayescale.model.table import as_one, of_group

# Posterior sd of the log of a sd that a handful of groups determine: 1 / sqrt(2 groups) and up.
LOG_SD = 0.7
# Steps, and logs of scatters to try beside the scatter around one law for all, which holds the groups' differences too.
STEP = np.log(2.0)
PASSES = 2  # of the search beside paths: the second knows which runs are outliers
HALVINGS = STEP * np.arange(1, -9, -1)


class Normals(NamedTuple):
    """Each group's unknowns as Normals: means (groups, k), covariances (groups, k, k), the priors in them (k,).

    ``scatter`` is that of the runs under which they hold.
    """

    mean: np.ndarray
    cov: np.ndarray
    loc: np.ndarray
    spread: np.ndarray
    scatter: float = 1.0


def start(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator) -> Mode:
    """Where to start, and how wide the posterior is there: `mode.find` for ungrouped models."""
    if all(kind == "complete" for _, kind in joint.kinds):
        return mode.find(joint, data, rng)
    alone = _alone(joint)
    if joint.partial:
        fits = [mode.find(alone, as_one(data, alone), rng)]
        groups = _around(joint, data, fits[0])
    else:
        fits = [mode.find(alone, of_group(data, g, alone), rng, starts=2) for g in range(joint.n_groups)]
        cov = np.stack([m.factor @ m.factor.T for m in fits])
        groups = Normals(np.stack([m.center for m in fits]), cov, *mode.prior_scale(alone, data))
    center, factor, pilot = _assemble(joint, data, groups)
    data = {**data, "pilot": pilot}
    if joint.path or joint.shocks:
        center, factor, data = _beside_paths(joint, data, center, factor)
    # Separate groups are as Normal as their own fits; a population's sds never are, and the pilot sees to the rest.
    whitens = all(m.whitens for m in fits)
    told, agree = sum(m.converged for m in fits), sum(m.agree for m in fits)
    return Mode(center, factor, data, told, agree, whitens, skewed=bool(joint.partial))


def _alone(joint: Joint, held: frozenset[str] = frozenset()) -> Joint:
    """The model of one group, or of all runs as one, without shocks; parameters in ``held`` are held fixed."""
    return Joint(joint.law, joint.noise, tuple((n, "complete") for n, _ in joint.kinds), joint.fixed | held, 1)


def _columns(joint: Joint, data: Mapping[str, Any]) -> dict[str, int]:
    """Place of every parameter in the flat vector of an ungrouped model, by name."""
    rows, name = len(data["mask"]), {p.site: p.name for p in joint.parameters}
    return {name[s]: int(i) for s, i in unpack(joint, np.arange(size(joint, rows)), rows).items() if s in name}


def _around(joint: Joint, data: Mapping[str, Any], whole: Mode) -> Normals:
    """What each group's runs say, be they too few for a fit of their own.

    A few runs are met exactly by some law, so that neither their mode nor the scatter around it is a guide.
    Each group's law is sought around that of all runs, as far as groups are expected to differ, at each of
    several scatters; a scatter is as likely as the runs are with the laws integrated out (Laplace's method).
    """
    alone = _alone(joint)
    column = _columns(alone, data)
    at, prior = whole.center, mode.prior_scale(alone, data)
    free = SCALE.name in column
    scatter = at[column[SCALE.name]] + HALVINGS if free else np.full(3, np.log(data["fixed"][SCALE.name]))
    noise = [p for p in joint.noise.parameters if p.name in column]
    given = _alone(joint, frozenset(p.name for p in noise) | ({PATH.name} if joint.path else set()))
    moved = [p.name for p in joint.partial if p.name in _columns(given, data)]
    near = {
        **data,
        "prior_loc": {**data["prior_loc"], **{name: at[column[name]] for name in moved}},
        "prior_spread": {**data["prior_spread"], **{name: data["between_groups"][name] for name in moved}},
    }
    values = {p.name: np.full(len(scatter), p.prior.constrain(at[column[p.name]], np)) for p in noise}
    if free:
        values[SCALE.name] = np.exp(scatter)
    fits = [_at_each(given, of_group(near, g, given), values, len(scatter)) for g in range(joint.n_groups)]
    evidence, mean, cov = (np.stack(part) for part in zip(*fits, strict=True))
    likely = evidence.sum(0)
    if free:
        likely -= 0.5 * ((scatter - data["prior_loc"][SCALE.name]) / data["prior_spread"][SCALE.name]) ** 2
    best = int(np.clip(likely.argmax(), 1, len(scatter) - 2))
    x, none = np.tile(at, (joint.n_groups, 1)), np.zeros((joint.n_groups, len(at), len(at)))
    out = Normals(x, none, *prior, np.exp(scatter[best]))
    law = [column[name] for name in _columns(given, data)]
    out.mean[:, law] = mean[:, best]
    out.cov[np.ix_(range(joint.n_groups), law, law)] = cov[:, best]
    out.loc[law], out.spread[law] = mode.prior_scale(given, near)
    for p in noise:
        i, weak = column[p.name], data["prior_spread"][p.name] ** -2
        if p.name == SCALE.name:
            above, here, below = evidence[:, best - 1 : best + 2].T
            slope, told = (above - below) / (2 * STEP), np.maximum(2 * here - above - below, 0.0) / STEP**2
            step = np.where(told > 0, slope, 0.0) + weak * (out.loc[i] - scatter[best])
            out.mean[:, i] = scatter[best] + step / (told + weak)
        else:
            told = max((whole.factor[i] ** 2).sum() ** -1 - weak, 0.0) / joint.n_groups
        out.cov[:, i, i] = 1 / (told + weak)
    return out


def _at_each(joint: Joint, data: Mapping[str, Any], fixed: Mapping[str, np.ndarray], n: int) -> tuple:
    """Log evidence (n,), modes (n, k) and covariances (n, k, k) of one group's law, at each value of the noise."""
    loc, spread = mode.prior_scale(joint, data)
    point, u, out = mode.curvature(joint), np.zeros_like(loc), []
    for i in range(n):
        now = {**data, "fixed": {**data["fixed"], **{k: v[i] for k, v in fixed.items()}}}
        if joint.path:
            now = mode.told(joint, now, mode.typical(joint, now), np.zeros(len(data["mask"])))
        here = jax.device_put(now)
        z, energy, _ = mode.descend(lambda z, here=here: point(z, here), loc, spread, u)
        factor = mode.factor_of(np.asarray(point(z, here)[2]), spread)
        u = (z - loc) / spread
        out.append((-energy + np.linalg.slogdet(factor)[1], z, factor @ factor.T))
    return tuple(np.array(part) for part in zip(*out, strict=True))


def _assemble(joint: Joint, data: Mapping[str, Any], groups: Normals) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Center and factor of the flat vector, and the pilot of what is pooled partially."""
    rows, partial = len(data["mask"]), joint.partial
    column = _columns(_alone(joint), data)
    x, cov = groups.mean, groups.cov
    index = unpack(joint, np.arange(size(joint, rows)), rows)
    center, factor = np.zeros(size(joint, rows)), np.eye(size(joint, rows))
    for p in (p for p, _ in joint.shocks if p.name not in joint.fixed):
        at = np.ravel(index[p.site])
        center[at], factor[at, at] = data["prior_loc"][p.name], data["prior_spread"][p.name]
    apart = [p for p in joint.parameters if dict(joint.kinds)[p.name] == "separate" and p.name in column]
    pick = [column[p.name] for p in apart]
    for g in range(joint.n_groups):
        at = [int(index[p.site][g]) for p in apart]
        center[at] = x[g, pick]
        factor[np.ix_(at, at)] = np.linalg.cholesky(cov[g][np.ix_(pick, pick)])
    for p in joint.parameters:
        if p in partial or p in apart or p.name not in column:
            continue
        k, weak = column[p.name], data["prior_spread"][p.name] ** -2
        told = np.maximum(1 / cov[:, k, k] - weak, 0)
        center[index[p.site]] = (told @ x[:, k] + weak * data["prior_loc"][p.name]) / (told.sum() + weak)
        factor[index[p.site], index[p.site]] = (told.sum() + weak) ** -0.5
    members = [data["se"][data["mask"] & (data["group"] == g)] for g in range(joint.n_groups)]
    se = np.array([np.sqrt(np.mean(m**2)) for m in members])
    pilot = {**data["pilot"], "se": se, "variance": joint.noise.variance({SCALE.name: groups.scatter}, se)}
    for kind, members in (("law", joint.law.parameters), ("noise", joint.noise.parameters)):
        shared = [p for p in members if p in partial]
        if not shared:
            continue
        pick = [column[p.name] for p in shared]
        pilot[kind] = _told(x[:, pick], cov[:, pick][:, :, pick], groups.loc[pick], groups.spread[pick])
        wide = np.array([data["prior_spread"][p.name] for p in shared]) * 10
        loc = np.array([data["prior_loc"][p.name] for p in shared])
        variance = np.linalg.inv(pilot[kind]["precision"] + np.diag(wide**-2.0))
        estimate = np.einsum("gij,gj->gi", variance, pilot[kind]["shift"] + loc / wide**2)
        for i, p in enumerate(shared):
            sd = _spread_of_groups(estimate[:, i], variance[:, i, i], data["between_groups"][p.name])
            at = index[f"{p.site}_sd"]
            center[at], factor[at, at] = np.log(sd), LOG_SD
    return center, factor, pilot


def _beside_paths(
    joint: Joint, data: dict[str, Any], center: np.ndarray, factor: np.ndarray
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Center and factor at the mode with the paths at what the runs tell, given the sds between groups.

    What paths have in common ties the groups' laws together, which each group's own runs do not show.
    """
    held = dataclasses.replace(joint, fixed=joint.fixed | {PATH.name})
    rows, n = len(data["mask"]), size(held, len(data["mask"]))
    index = unpack(held, np.arange(n), rows)
    free = np.setdiff1d(np.arange(n), [int(i) for name, i in index.items() if name.endswith("_sd")])
    whole, both, point = center[:n].copy(), np.ix_(free, free), mode.curvature(held)
    values, residual = mode.scatter(held, data, whole)[0], np.zeros(rows)
    for _ in range(PASSES):
        data = mode.told(held, data, values, residual)
        here = jax.device_put(data)

        def at(z: np.ndarray, here: Any = here) -> Any:
            whole[free] = z
            value, slope, curve = (np.asarray(a) for a in point(whole, here))
            return value, slope[free], curve[both]

        spread = np.sqrt((factor[:n, :n] ** 2).sum(1))[free]
        z, _, _ = mode.descend(at, whole[free].copy(), spread, np.zeros(len(free)))
        curve = at(z)[2]
        values, residual = mode.scatter(held, data, whole)
    factor = factor.copy()
    factor[both] = mode.factor_of(curve, spread)
    return np.concatenate([whole, center[n:]]), factor, data


def _told(x: np.ndarray, cov: np.ndarray, loc: np.ndarray, spread: np.ndarray) -> dict[str, np.ndarray]:
    """What the runs alone say of each group's values: the posterior's precision and shift less the prior's."""
    prior = np.diag(spread**-2)
    values, vectors = np.linalg.eigh(spread[:, None] * np.linalg.inv(cov) * spread - np.eye(len(loc)))
    scaled = vectors / spread[:, None]
    precision = np.einsum("gij,gj,gkj->gik", scaled, np.maximum(values, 0.0), scaled)
    return {"precision": precision, "shift": np.einsum("gij,gj->gi", precision + prior, x) - prior @ loc}


def _spread_of_groups(x: np.ndarray, variance: np.ndarray, scale: float) -> float:
    """Posterior median of the sd between groups, given estimates with their variances."""
    sd = scale * np.geomspace(1e-3, 4, 100)
    weight = 1 / (sd[:, None] ** 2 + variance)
    mean = (weight * x).sum(1) / weight.sum(1)
    log_density = 0.5 * (np.log(weight).sum(1) - np.log(weight.sum(1)) - (weight * (x - mean[:, None]) ** 2).sum(1))
    log_density += np.log(sd) - 0.5 * (sd / scale) ** 2
    mass = np.exp(log_density - log_density.max()).cumsum()
    return float(sd[np.searchsorted(mass, 0.5 * mass[-1])])
