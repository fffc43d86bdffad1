"""What a choice of model size costs: the compute that the best choice would have saved."""

from __future__ import annotations

import numpy as np

from bayescale.frontier import solve
from bayescale.frontier.solve import Letters
from bayescale.laws._law import Law
from bayescale.model.drift import Drifted
from bayescale.runs.flops import ComputeRule

SAVED = np.geomspace(0.02, 1.0, 17)  # shares of the budget at which the best loss is sought; straight in log in between


def wasted(mean: Law | Drifted, rule: ComputeRule, letters: Letters, budget: float, n_params: np.ndarray) -> np.ndarray:
    """Share of a budget that a model of another size than the best wastes.

    A path departs roughly with compute, so that a draw's best loss need not fall with the budget: the
    departure is held at its value at the budget.

    Parameters
    ----------
    letters : mapping of str to array (S,)
        What ``mean`` reads at the budget.
    budget : float
        FLOPs.
    n_params : array (M,)
        Sizes to choose from, parameters.

    Returns
    -------
    array (S, M)
        1 - C' / C, where the best run of compute C' loses what the chosen run of compute C does; at most
        .98. NaN where a draw has no optimum.
    """
    shares = budget * SAVED
    best_n = solve.optimum(mean, rule, letters, shares)[0]
    best = np.log(solve.spend(mean, rule, letters, shares, best_n)[1])
    size, draws = len(n_params), len(best_n)
    chosen = np.broadcast_to(np.log(n_params), (draws, size))
    loss = np.log(solve.spend(mean, rule, letters, np.full(size, budget), chosen)[1])
    log_share = np.log(SAVED)
    out = np.full((draws, size), np.nan)
    for i in np.flatnonzero(np.isfinite(best).all(1)):
        out[i] = -np.expm1(np.interp(-loss[i], -best[i], log_share))
    return np.where(np.isfinite(loss), out, np.nan)
