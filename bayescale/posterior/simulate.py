"""Tables of runs that were never trained: for demonstrations, for tests, for choosing a design."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from bayescale.model.noise import Gaussian, StudentT
from bayescale.posterior.fitting import chosen
from bayescale.posterior.inputs import checked
from bayescale.posterior.posterior import Group, Posterior
from bayescale.runs.flops import SIX_ND, FlopsRule
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)
RATIOS = (2.0, 200.0)  # tokens per parameter: a decade either side of the 20 of Hoffmann et al. 2022


def isoflop_design(
    budgets: Sequence[float], per_budget: int, *, rule: FlopsRule = SIX_ND, ratios: tuple[float, float] = RATIOS
) -> pd.DataFrame:
    """Runs that spend the same compute on models of several sizes, as Hoffmann et al. 2022, section 3.2.

    Parameters
    ----------
    budgets : sequence of float
        Training compute of each group of runs, FLOPs.
    per_budget : int
        Runs at each budget, evenly spaced in log N.
    rule : FlopsRule
        What a run costs.
    ratios : tuple of float
        Tokens per parameter of the largest and of the smallest model at each budget.

    Returns
    -------
    DataFrame
        ``n_params`` (three significant digits) and ``n_tokens``, one row a run.

    Raises
    ------
    ValueError
        If a budget is not positive and finite, or there are fewer than two runs at a budget.
    """
    bad = [c for c in budgets if not (math.isfinite(c) and c > 0)]
    if bad or not len(budgets):
        raise ValueError(f"A design needs budgets in FLOPs, positive and finite; not {bad or 'none at all'}.")
    if per_budget < 2:
        raise ValueError(f"A design needs at least 2 runs a budget to compare sizes, not {per_budget}.")
    flop = np.repeat(np.asarray(budgets, float), per_budget)
    ratio = np.tile(np.geomspace(ratios[1], ratios[0], per_budget), len(budgets))
    n_params = np.array([float(f"{n:.3g}") for n in np.sqrt(flop / (rule.k * ratio))])
    return pd.DataFrame({"n_params": n_params, "n_tokens": np.round(rule.tokens(flop, n_params))})


def simulate(
    posterior: Posterior,
    runs: Mapping[str, Any] | pd.DataFrame | Runs,
    *,
    noise: float = 0.005,
    tail: float | None = None,
    group: Group = None,
    seed: int | None = None,
) -> pd.DataFrame:
    """Simulate the losses of runs, under one law drawn from a posterior.

    Parameters
    ----------
    posterior : Posterior
        A fit, of which one draw is the law of the whole table; or a published law.
    runs : mapping, DataFrame or Runs
        The law's inputs, its size (``n_params``), ``n_tokens``, and conditions that are not at their standard.
    noise : float
        Scale of the scatter of log loss, as a share of the loss; the default is the robust standard
        deviation of the residuals of Hoffmann et al.'s runs from Besiroglu et al.'s refit, .0049.
    tail : float, optional
        Degrees of freedom of Student-t scatter; Normal scatter unless given.
    group : str, NewGroup, PopulationMean or None
        Whose law, when the fit has groups.
    seed : int, optional
        Of the draw and the scatter; drawn when not given, and stated in ``origin``.

    Returns
    -------
    DataFrame
        The inputs, ``flop`` by the posterior's rule, ``loss`` in its unit, and ``origin``: text that
        says that the loss is simulated, and how. Ready for `read_runs`.

    Raises
    ------
    ValueError
        For an unknown group, inputs that are not positive numbers, a negative noise or a tail that
        is not positive.
    """
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise is a share of the loss, 0 or more, as 0.005, not {noise!r}.")
    if tail is not None and not tail > 0:
        raise ValueError(f"tail is a positive number of degrees of freedom, as 4, not {tail!r}.")
    seed = chosen(seed)
    rng = np.random.default_rng(seed)
    inputs = checked(posterior.law, runs)
    flop = posterior.rule.flop(inputs[posterior.law.size], inputs["n_tokens"])
    surface = posterior.surface(group)
    letters = surface.at(flop)
    draw = rng.integers(len(next(iter(letters.values()))))
    with jax.enable_x64(True):
        mean = np.log(np.asarray(surface.law.loss({name: v[draw] for name, v in letters.items()}, inputs)))
    scatter = Gaussian() if tail is None else StudentT()
    loss = np.exp(scatter.simulate(rng, mean, {"noise": noise, "tail": tail}, 0.0))
    name = posterior.metadata.get("name", type(posterior.law).__name__)
    around = f"noise {noise:g}" + (f", tail {tail:g}" if tail is not None else "")
    log.info("simulated %d losses, seed %d", len(loss), seed)
    return pd.DataFrame(inputs).assign(
        flop=flop,
        loss=loss,
        origin=f"simulated: {name}, {around}, seed {seed}",
    )
