"""Draws that no data were needed for: of the prior, and of new runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayescale.model.joint import Joint, sites
from bayescale.model.path import PATH
from bayescale.model.shocks import SITE


def prior(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, draws: int) -> np.ndarray:
    """Draw flat unconstrained vectors from the prior: array (draws, d), in the coordinates of `table.without_pilot`."""
    partial = joint.partial
    shapes = sites(joint, len(data["mask"]))
    x: dict[str, np.ndarray] = {}
    for p in joint.parameters:
        if p.name in joint.fixed:
            continue
        if p in partial:
            x[f"{p.site}_mean_offset"] = rng.standard_normal(draws)
            x[f"{p.site}_sd"] = np.log(np.abs(data["between_groups"][p.name] * rng.standard_normal(draws)))
            x[f"{p.site}_offset"] = rng.standard_normal((draws, joint.n_groups))
        else:
            loc, spread = data["prior_loc"][p.name], data["prior_spread"][p.name]
            x[p.site] = loc + spread * rng.standard_normal((draws, *shapes[p.site]))
    for site in shapes.keys() & {PATH.site, SITE}:
        x[site] = rng.standard_normal((draws, *shapes[site]))
    return np.concatenate([x[site].reshape(draws, -1) for site in shapes], axis=1)


def runs(
    joint: Joint, rng: np.random.Generator, mean: np.ndarray, values: Mapping[str, Any], se: np.ndarray, group: Any
) -> np.ndarray:
    """Draw the log loss of runs whose mean log loss is ``mean`` (draws, n): array (draws, n).

    ``values`` holds the parameters' values, shape (draws,) or (draws, groups); ``group`` the index of
    each run's group.
    """
    of_runs = {k: v[:, group] if v.ndim > 1 else v[:, None] for k, v in values.items()}
    return joint.noise.simulate(rng, mean, of_runs, se)
