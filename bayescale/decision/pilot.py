"""The verb: which run would change a decision most, for what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from bayescale.decision.budget import Budget
from bayescale.decision.exchange import exchange
from bayescale.decision.outlook import Outlook
from bayescale.decision.pilots import Pilots
from bayescale.decision.plan import Plan
from bayescale.decision.preposterior import Evidence, Stake, Worth, worth
from bayescale.frontier.budgets import read_number
from bayescale.laws._law import Law
from bayescale.posterior.inputs import checked, of_runs
from bayescale.runs.table import Runs

PILOT = 0.01  # share of the plan's compute that a pilot of the grid costs at most, unless told
SMALLEST, BUDGETS = 0.01, 6  # of that, the cheapest of the grid; and budgets from there
RATIOS = np.geomspace(2.0, 200.0, 9)  # tokens per parameter, about: a decade either side of 20
SURE = 20  # pilots at the head of the list whose Monte Carlo error is told

Candidates = Mapping[str, Any] | pd.DataFrame | Runs | Sequence[Sequence[float]] | Budget | float | None


def next_pilot(
    plan: Plan,
    candidates: Candidates = None,
    *,
    replicates: int = 1,
    batch: int = 1,
    unit_worth: Budget | None = None,
) -> Pilots:
    """Which run, made before a plan is carried out, would improve it most for what it costs.

    Of every candidate it tells the expected value of sample information: by how much the plan's risk would
    fall, on average over the losses that the run may show, if the plan were made again with that loss. The
    posterior's draws are weighted by the likelihood of simulated losses, its path away from the law and the
    run's own scatter included; nothing is fitted again.

    Parameters
    ----------
    plan : Plan
        From `recommend` for a budget: its posterior, objective, constraints and risk are those in use.
    candidates : mapping, DataFrame, Runs, pairs, Budget or number, optional
        The law's inputs of each run, as `predict` takes them, or pairs of size and tokens; or what one run may
        cost at most (FLOPs, where it is a number), of which a grid is made: six budgets from a hundredth of that, with
        2 to 200 tokens per parameter, of no smaller size and no fewer tokens than the fit's own runs, below which
        its law says nothing. Unless given, a hundredth of the plan's compute.
    replicates : int
        How often each run is made.
    batch : int
        Runs that may be made at once: the best one, then the best beside it, and so on (greedily). As many of
        them are made as together are worth most beyond their cost.
    unit_worth : Budget, optional
        What one unit of the objective is worth. Unless given, a reduction of the risk is worth the compute that
        would buy as much at the plan's own budget.

    Returns
    -------
    Pilots

    Raises
    ------
    ValueError
        If the plan is for a target, its fit has no scatter or has shocks, a run is outside the law's domain, a
        count is not positive, or more compute would not improve the plan, so that its worth has to be told.
    """
    counts = {"replicates": replicates, "batch": batch}
    bad = [f"{k}={v!r}" for k, v in counts.items() if isinstance(v, bool) or not isinstance(v, int) or v < 1]
    if bad:
        raise ValueError(f"next_pilot: a whole number, at least 1; not {', '.join(bad)}.")
    outlook = plan.problem.outlook
    _check(plan, outlook)
    inputs = _inputs(plan, candidates)
    rate = exchange(plan, unit_worth)
    law = outlook.law
    flop = replicates * np.asarray(outlook.rule.flop(inputs[law.size], inputs["n_tokens"]), float)
    stake, evidence = Stake.of(plan.problem, plan.choice), Evidence.of(outlook, inputs, replicates)
    single = [worth(stake, evidence, [i]) for i in range(len(flop))]
    order = np.argsort(flop - rate.flop * np.array([each.gain for each in single]), kind="stable")
    for i in order[:SURE]:
        single[i] = worth(stake, evidence, [i], with_error=True)
    steps = _greedy(stake, evidence, int(order[0]), flop, rate.flop, batch)
    runs = pd.DataFrame(inputs).assign(replicates=replicates, flop=flop)
    return Pilots(plan, runs, tuple(single), tuple(steps), rate, stake.perfect)


def _check(plan: Plan, outlook: Outlook) -> None:
    targets = [each for each in plan.problem.constraints if each.reaches]
    if targets:
        raise ValueError(
            f"next_pilot reads a plan for a budget; this one has to reach {targets[0]}. Plan for the budget that it "
            "comes to, recommend(posterior, plan.flop), and ask for the pilots of that."
        )
    if "noise" not in outlook.posterior.values(outlook.group):
        raise ValueError("next_pilot needs a fit that tells how runs scatter; a published law does not. Fit runs.")
    if outlook.posterior.model.shocks:
        raise ValueError(
            "next_pilot reads no fit with shocks: a pilot would share one with no run yet, and tell less than its "
            "scatter says. Plan from a fit of finished runs without them."
        )


def _greedy(
    stake: Stake, evidence: Evidence, first: int, flop: np.ndarray, rate: float, batch: int
) -> list[tuple[tuple[int, ...], Worth]]:
    """The best run, then the best beside those before: two may tell together what neither tells alone."""
    runs: tuple[int, ...] = (first,)
    steps: list[tuple[tuple[int, ...], Worth]] = [(runs, worth(stake, evidence, runs, with_error=True))]
    while len(runs) < min(batch, len(flop)):
        others = [i for i in range(len(flop)) if i not in runs]
        found = [rate * worth(stake, evidence, [*runs, i]).gain - flop[i] for i in others]
        runs = (*runs, others[int(np.argmax(found))])
        told = worth(stake, evidence, runs, with_error=True)
        # A lower bound, where the scatter was widened; and more runs never tell less.
        steps.append((runs, replace(told, gain=max(told.gain, steps[-1][1].gain))))
    return steps


def _inputs(plan: Plan, candidates: Candidates) -> dict[str, np.ndarray]:
    """The law's inputs of every candidate: arrays (K,)."""
    law = plan.posterior.law
    if candidates is None or isinstance(candidates, Budget | Real | str):
        return checked(law, _settled(plan) | _grid(plan, candidates))
    if isinstance(candidates, Runs):
        return checked(law, candidates)
    if isinstance(candidates, Mapping | pd.DataFrame):
        given = {str(k): candidates[k] for k in candidates}
        if law.size not in given and "n_params" in given:
            given[law.size] = given.pop("n_params")
        return checked(law, _settled(plan) | given)
    try:
        pairs = np.asarray(candidates, float).reshape(-1, 2)
    except (TypeError, ValueError):
        raise ValueError(
            "candidates are runs, as [(1e9, 2e10), (2e9, 1e10)] or {'n_params': ..., 'n_tokens': ...}, or what one run "
            f"may cost at most, as Budget(flop=1e21); not {candidates!r:.60}."
        ) from None
    if not len(pairs):
        raise ValueError("There is no candidate: give pairs of size and tokens, or what one run may cost at most.")
    return checked(law, _settled(plan) | {law.size: pairs[:, 0], "n_tokens": pairs[:, 1]})


def _settled(plan: Plan) -> dict[str, float]:
    """Conditions of the law that the plan settles, at which pilots are made unless they say otherwise."""
    return {k: float(v) for k, v in plan.conditions.items() if isinstance(v, Real)}


def _grid(plan: Plan, most: Any) -> dict[str, np.ndarray]:
    """Runs of several budgets and ratios that cost at most so much."""
    law, rule = plan.posterior.law, plan.problem.outlook.rule
    flop = PILOT * plan.flop if most is None else most.flop() if isinstance(most, Budget) else read_number(most)
    if isinstance(flop, str):
        raise ValueError(f"candidates={most!r}: what one run may cost at most {flop}. Give FLOPs, or a Budget.")
    budgets = np.repeat(flop * np.geomspace(SMALLEST, 1.0, BUDGETS), len(RATIOS))
    size = np.sqrt(budgets / (6.0 * np.tile(RATIOS, BUDGETS)))
    tokens = np.asarray(rule.tokens(budgets, size), float)
    least = _least(plan)
    inside = _within(law, law.size, size) & _within(law, "n_tokens", tokens)
    inside &= (size >= least[law.size]) & (tokens >= least["n_tokens"])
    if not inside.any():
        raise ValueError(
            f"No run of at most {flop:.3g} FLOP is as large as the fit's smallest, {least[law.size]:.3g} parameters "
            f"and {least['n_tokens']:.3g} tokens, and within the law's domain. Allow more, or name the candidates."
        )
    return {law.size: _rounded(size[inside]), "n_tokens": _rounded(tokens[inside])}


def _least(plan: Plan) -> dict[str, float]:
    """Smallest size and fewest tokens of the fit's runs; 0 where it has none."""
    law, runs = plan.posterior.law, plan.posterior.runs
    found = {law.size: 0.0, "n_tokens": 0.0}
    return found if runs is None else {k: float(of_runs(law, runs)[k].min()) for k in found}


def _within(law: Law, name: str, values: np.ndarray) -> np.ndarray:
    low, high = law.domain.get(name, (0.0, math.inf))
    return (values >= 1.01 * max(low, 1.0)) & (values <= 0.99 * high)


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.array([float(f"{value:.3g}") for value in values])
