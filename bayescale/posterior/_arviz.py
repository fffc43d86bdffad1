"""The package's one door to arviz: converters, convergence statistics, LOO and power scaling."""

# arviz_stats exports from within a try block, which type checkers do not follow.
# pyright: reportPrivateImportUsage=false
from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import arviz_base
import arviz_stats
import numpy as np
import xarray as xr


def dataset(
    arrays: Mapping[str, np.ndarray], coords: Mapping[str, Any], dims: Mapping[str, list[str]], *, sampled: bool = True
) -> xr.Dataset:
    """A labelled group; ``sampled`` groups have chain and draw as their first two dimensions."""
    own = {k: v for k, v in coords.items() if any(k in d for d in dims.values())}
    sample_dims = ["chain", "draw"] if sampled else []
    return arviz_base.dict_to_dataset(dict(arrays), coords=own, dims={**dims}, sample_dims=sample_dims)


def convergence(draws: xr.Dataset) -> dict[str, xr.Dataset]:
    """R-hat, bulk ESS and tail ESS of every variable; NaN where a variable does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "r_hat": arviz_stats.rhat(draws),
            "ess_bulk": arviz_stats.ess(draws, method="bulk"),
            "ess_tail": arviz_stats.ess(draws, method="tail", prob=0.9),
        }


def bfmi(energy: xr.DataArray) -> np.ndarray:
    """Bayesian fraction of missing information of each chain (Betancourt 2016); NaN where constant."""
    stats = xr.DataTree.from_dict({"sample_stats": xr.Dataset({"energy": energy})})
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(arviz_stats.bfmi(stats)["energy"])


def loo(tree: xr.DataTree) -> Any:
    """PSIS-LOO (Vehtari, Gelman & Gabry 2017) of the log loss of each run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what arviz warns of stands in the result, which the caller reads
        return arviz_stats.loo(tree, pointwise=True)


def power_scaling(draws: xr.Dataset, log_prior: xr.Dataset, log_likelihood: xr.Dataset) -> Any:
    """Sensitivity to prior and likelihood by power scaling (Kallioinen et al. 2024), one row a variable."""
    tree = xr.DataTree.from_dict({"posterior": draws, "log_prior": log_prior, "log_likelihood": log_likelihood})
    return arviz_stats.psense_summary(tree, round_to=12)


def summary(draws: xr.Dataset, level: float) -> Any:
    """arviz' summary with equal-tailed intervals, unrounded."""
    return arviz_stats.summary(draws, ci_prob=level, ci_kind="eti", round_to="none")
