"""The mean loss of any run, for every draw: the law's letters, and the path that departs from the law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from bayescale.laws._law import Law
from bayescale.model.drift import DECLINE, DEPARTURE, KNOTS, WEIGHTS, Center, Drift, Drifted
from bayescale.model.path import PATH
from bayescale.model.pooling import NewGroup, PopulationMean

if TYPE_CHECKING:
    import xarray as xr


@final
@dataclass(frozen=True)
class Surface:
    """Mean loss over the plane of runs, one surface a draw.

    Attributes
    ----------
    law : Law or Drifted
        Its ``loss(letters, run)``.
    letters : mapping of str to array (S,)
        What of its arguments is the same for all runs.
    path : array (S, WEIGHTS) or None
        Weights of the path on log loss; None where the law is exact.
    center : Center or None
        Where the path starts.
    """

    law: Law | Drifted
    letters: Mapping[str, np.ndarray]
    path: np.ndarray | None = None
    center: Center | None = None

    def at(self, flop: Any) -> dict[str, np.ndarray]:
        """Arguments of ``law.loss`` for runs of compute ``flop`` (K,), FLOPs: arrays (S,), and (S, K) along a path."""
        if self.path is None or self.center is None:
            return dict(self.letters)
        with jax.enable_x64(True):
            level, tilt = _along(self.path, self.center.walk(np.asarray(flop, float)))
        return {**self.letters, DEPARTURE.name: np.asarray(level), "tilt": np.asarray(tilt)}


@jax.jit
def _along(path: Any, walk: Any) -> tuple[Any, Any]:
    """Departure and tilt (S, K); compiled, since threads of BLAS wait for each other where cores are shared."""
    return path[:, :KNOTS] @ walk.T, path[:, KNOTS, None] + path[:, KNOTS + 1 :] @ walk.T


def weights(draws: xr.Dataset, group: Any, drift: Drift, seed: int) -> np.ndarray:
    """Weights of a group's path, for s = 1: array (chains x draws, WEIGHTS).

    Raises
    ------
    ValueError
        If a population is asked for, and paths are pooled separately.
    """
    own = draws[PATH.name]
    if not isinstance(group, NewGroup | PopulationMean) or "group" not in own.dims:
        return (own.sel(group=group) if "group" in own.dims else own).to_numpy().reshape(-1, WEIGHTS)
    if f"{PATH.name}_mean" not in draws:
        raise ValueError(f"Paths are pooled separately: there is no population to draw a {group} from.")
    common = draws[f"{PATH.name}_mean"].to_numpy().reshape(-1, WEIGHTS)
    if isinstance(group, PopulationMean):
        return common
    rng = np.random.default_rng([seed, 2])
    return common + np.sqrt(1 - drift.shared) * rng.standard_normal(common.shape)


def drifted(
    law: Law,
    letters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    path: np.ndarray,
    tilt: float,
    center: Center,
    reference: Mapping[str, float],
) -> Surface:
    """The surface of a law with drift, from the parameters' values (S,) and the weights of its path for s = 1."""
    path = path * values[DEPARTURE.name][:, None]
    path[:, KNOTS:] *= np.sqrt(tilt)
    decline = np.broadcast_to(values[DECLINE.name], len(path))
    same = {"center_ratio": center.log_ratio, **{f"center_{name}": reference[name] for name in law.spent}}
    fixed = {name: np.full(len(path), value) for name, value in same.items()}
    return Surface(Drifted(law), {**letters, DECLINE.name: decline, **fixed}, path, center)
