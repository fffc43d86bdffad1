"""How much the answer leans on the prior and on the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescale.frontier.frontier import allocate
from bayescale.posterior import _arviz
from bayescale.posterior.posterior import Group, Posterior


def sensitivity(posterior: Posterior, budgets: Any, *, group: Group = None) -> pd.DataFrame:
    """Power-scaling sensitivity of N_opt and tokens per parameter (Kallioinen et al. 2024).

    Raising prior or likelihood to powers near 1 moves the posterior of a quantity; the figure is by
    how much (a distance of distributions per doubling of the power). Below .05 it hardly moves.

    Parameters
    ----------
    posterior : Posterior
        A fit that was sampled.
    budgets : number or sequence of numbers
        Training compute, FLOPs.
    group : str or None
        Whose optimum, when the fit has groups.

    Returns
    -------
    DataFrame
        ``budget_flop``, ``quantity``, ``prior``, ``likelihood`` (sensitivities), ``diagnosis`` ("✓", or
        arviz' words for a strong prior or a prior-data conflict), and a column ``prior:NAME`` for the
        prior of each parameter alone: which prior moves the answer.

    Raises
    ------
    ValueError
        If the posterior was not sampled given runs, or an optimum is not interior for some draws.
    """
    if "log_prior" not in posterior.tree or posterior.info["engine"] != "nuts":
        raise ValueError("Sensitivity needs a posterior that was sampled from runs, by NUTS.")
    frontier = allocate(posterior, budgets, group=group)
    draws = posterior.tree["posterior"].sizes
    shape = (draws["chain"], draws["draw"])
    found = frontier.draws()
    log_prior = posterior.tree["log_prior"].to_dataset()
    log_likelihood = posterior.tree["log_likelihood"].to_dataset()
    quantities = {}
    for i, budget in enumerate(found["budget_flop"].values):
        for name in ("n_opt_params", "tokens_per_parameter"):
            values = found[name].isel(budget_flop=i).values.reshape(shape)
            if np.isnan(values).any():
                raise ValueError(f"At {budget:g} FLOP some draws have no interior optimum; sensitivity is not defined.")
            quantities[f"q{len(quantities)}"] = (budget, name, np.log(values))
    data = xr.Dataset({k: (("chain", "draw"), v) for k, (_, _, v) in quantities.items()})
    whole = _arviz.power_scaling(data, log_prior, log_likelihood)
    alone = {
        f"prior:{site}": _arviz.power_scaling(data, log_prior[[site]], log_likelihood)["prior"]
        for site in map(str, log_prior.data_vars)
    }
    return pd.DataFrame(
        [
            {
                "budget_flop": float(budget),
                "quantity": name,
                "prior": float(whole.loc[k, "prior"]),
                "likelihood": float(whole.loc[k, "likelihood"]),
                "diagnosis": str(whole.loc[k, "diagnosis"]),
                **{column: float(values[k]) for column, values in alone.items()},
            }
            for k, (budget, name, _) in quantities.items()
        ]
    )
