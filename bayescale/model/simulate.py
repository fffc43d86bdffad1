"""Draws that no data were needed for: of the prior, and of new runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayescale.model.joint import Joint, sites


def prior(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, draws: int) -> np.ndarray:
    """Draw flat unconstrained vectors from the prior: array (draws, d)."""
    kinds, of_site = dict(joint.kinds), {p.site: p.name for p in joint.parameters}
    shapes = sites(joint, len(data["mask"]))
    x: dict[str, np.ndarray] = {}
    for site, name in of_site.items():
        if name in joint.fixed:
            continue
        loc, spread = data["prior_loc"][name], data["prior_spread"][name]
        if kinds[name] != "partial":
            x[site] = loc + spread * rng.standard_normal((draws, *shapes[site]))
            continue
        mean = loc + spread * rng.standard_normal(draws)
        sd = np.abs(data["between_groups"][name] * rng.standard_normal(draws))
        c = data["centered"][name]
        around, width = c * mean[:, None], sd[:, None] ** c
        x |= {
            f"{site}_mean": mean,
            f"{site}_sd": np.log(sd),
            f"{site}_offset": around + width * rng.standard_normal((draws, joint.n_groups)),
        }
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
