"""A start for grouped models, from each group's own fit.

A hierarchical model's joint mode is no guide (it counts the height of the density, not its volume),
and its curvature is costly. Each group's runs alone, under the ungrouped model, say where the
group's values lie and how sure that is; the rest is Normal arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayescale.inference import mode
from bayescale.inference.mode import Mode
from bayescale.model.joint import Joint, size, unpack
from bayescale.model.table import of_group

# Posterior sd of the log of a sd that a handful of groups determine: 1 / sqrt(2 groups) and up.
LOG_SD = 0.7


def start(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator) -> Mode:
    """Where to start, and how wide the posterior is there: `mode.find` for ungrouped models."""
    if all(kind == "complete" for _, kind in joint.kinds):
        return mode.find(joint, data, rng)
    alone = Joint(joint.law, joint.noise, tuple((n, "complete") for n, _ in joint.kinds), joint.fixed, 1)
    subsets = [of_group(data, g) for g in range(joint.n_groups)]
    own = [mode.find(alone, subset, rng, starts=2) for subset in subsets]
    return _assemble(joint, alone, data, subsets, own)


def _assemble(joint: Joint, alone: Joint, data: Mapping[str, Any], subsets: list[Any], own: list[Mode]) -> Mode:
    rows = len(data["mask"])
    column = {site: int(i) for site, i in unpack(alone, np.arange(len(own[0].center)), len(subsets[0]["mask"])).items()}
    x = np.stack([m.center for m in own])
    cov = np.stack([m.factor @ m.factor.T for m in own])
    index = unpack(joint, np.arange(size(joint, rows)), rows)
    center, factor = np.zeros(size(joint, rows)), np.eye(size(joint, rows))
    partial = joint.partial
    apart = [p for p in joint.parameters if dict(joint.kinds)[p.name] == "separate" and p.name not in joint.fixed]
    for g in range(joint.n_groups):
        at = [int(index[p.site][g]) for p in apart]
        pick = [column[p.site] for p in apart]
        center[at] = x[g, pick]
        factor[np.ix_(at, at)] = np.linalg.cholesky(cov[g][np.ix_(pick, pick)])
    for p in joint.parameters:
        if p in partial or p in apart or p.name in joint.fixed:
            continue
        k, weak = column[p.site], data["prior_spread"][p.name] ** -2
        told = np.maximum(1 / cov[:, k, k] - weak, 0)
        center[index[p.site]] = (told @ x[:, k] + weak * data["prior_loc"][p.name]) / (told.sum() + weak)
        factor[index[p.site], index[p.site]] = (told.sum() + weak) ** -0.5
    pilot = data["pilot"]
    if partial:
        pick = [column[p.site] for p in partial]
        loc, spread = (np.array([data[key][p.name] for p in partial]) for key in ("prior_loc", "prior_spread"))
        pilot = _told(x[:, pick], cov[:, pick][:, :, pick], loc, spread)
        variance = np.linalg.inv(pilot["precision"] + np.diag(0.01 / spread**2))
        estimate = np.einsum("gij,gj->gi", variance, pilot["shift"] + 0.01 * loc / spread**2)
        for i, p in enumerate(partial):
            sd = _spread_of_groups(estimate[:, i], variance[:, i, i], data["between_groups"][p.name])
            at = index[f"{p.site}_sd"]
            center[at], factor[at, at] = np.log(sd), LOG_SD
    # Separate groups are as Normal as their own fits; a population's sds never are, and the pilot sees to the rest.
    whitens = bool(partial) or all(m.whitens for m in own)
    told, agree = sum(m.converged for m in own), sum(m.agree for m in own)
    return Mode(center, factor, {**data, "pilot": pilot}, told, agree, whitens, skewed=bool(partial))


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
