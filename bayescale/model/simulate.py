"""Draws that no data were needed for: of the prior, and of new runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayescale.model.joint import Joint, sites


def prior(joint: Joint, data: Mapping[str, Any], rng: np.random.Generator, draws: int) -> np.ndarray:
    """Draw flat unconstrained vectors from the prior: array (draws, d)."""
    partial = joint.partial
    shapes = sites(joint, len(data["mask"]))
    x: dict[str, np.ndarray] = {}
    for p in joint.parameters:
        if p.name in joint.fixed:
            continue
        loc, spread = data["prior_loc"][p.name], data["prior_spread"][p.name]
        if p in partial:
            x[f"{p.site}_mean"] = loc + spread * rng.standard_normal(draws)
            x[f"{p.site}_sd"] = np.abs(data["between_groups"][p.name] * rng.standard_normal(draws))
        else:
            x[p.site] = loc + spread * rng.standard_normal((draws, *shapes[p.site]))
    if partial:
        w = rng.standard_normal((draws, joint.n_groups, len(partial)))
        mean, sd = (np.stack([x[f"{p.site}_{k}"] for p in partial], -1) for k in ("mean", "sd"))
        u = _from_standard(w, mean, sd, data["pilot"])
        for i, p in enumerate(partial):
            x[f"{p.site}_offset"], x[f"{p.site}_sd"] = u[..., i], np.log(sd[:, i])
    return np.concatenate([x[site].reshape(draws, -1) for site in shapes], axis=1)


def _from_standard(w: np.ndarray, mean: np.ndarray, sd: np.ndarray, pilot: Mapping[str, Any]) -> np.ndarray:
    """Undo `pooling.to_standard`: u from w, arrays (draws, groups, parameters)."""
    q, h = pilot["precision"], pilot["shift"]
    k = np.linalg.cholesky(np.eye(sd.shape[-1]) + sd[:, None, :, None] * q * sd[:, None, None, :])
    pull = sd[:, None] * (h - np.einsum("gij,dj->dgi", q, mean))
    inner = np.einsum("dgji,dgj->dgi", k, w)
    return inner - np.linalg.solve(k, pull[..., None])[..., 0]


def runs(
    joint: Joint, rng: np.random.Generator, mean: np.ndarray, values: Mapping[str, Any], se: np.ndarray, group: Any
) -> np.ndarray:
    """Draw the log loss of runs whose mean log loss is ``mean`` (draws, n): array (draws, n).

    ``values`` holds the parameters' values, shape (draws,) or (draws, groups); ``group`` the index of
    each run's group.
    """
    of_runs = {k: v[:, group] if v.ndim > 1 else v[:, None] for k, v in values.items()}
    return joint.noise.simulate(rng, mean, of_runs, se)
