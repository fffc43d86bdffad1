"""What a reduction of a plan's risk is worth in compute, so that it can be set against what a pilot costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from bayescale.decision.budget import Budget
from bayescale.decision.constraint import Spend
from bayescale.decision.cost import training_cost, training_inputs
from bayescale.decision.objective import Cost, Regret
from bayescale.decision.search import best
from bayescale.decision.target import AtMost

if TYPE_CHECKING:
    from bayescale.decision.plan import Plan

MORE = 1.05  # times the plan's budget, at which it is seen what more of it would buy


@final
@dataclass(frozen=True)
class Exchange:
    """What a unit of the objective is worth.

    Attributes
    ----------
    flop : float
        FLOPs of training compute.
    reason : str
        Where that comes from, in words.
    """

    flop: float
    reason: str


def exchange(plan: Plan, told: Budget | None) -> Exchange:
    """What a unit of the plan's objective is worth: as told, or as the plan's own budget would buy it.

    Raises
    ------
    ValueError
        If it is not told, and more budget would not improve the plan.
    """
    outlook = plan.problem.outlook
    if told is not None:
        if not isinstance(told, Budget):
            raise ValueError(f"unit_worth is a Budget, as Budget(flop=1e24) for a unit of loss, not {told!r}.")
        return Exchange(told.flop(seed=outlook.seed, n=outlook.size), f"as told, {told.describe()} a unit")
    objective = plan.problem.objective
    plain = replace(plan.problem, objective=objective.of if isinstance(objective, Regret) else objective)
    limit, *others = plain.constraints
    richer = replace(plain, constraints=(limit.relaxed(MORE), *others))
    now, then = (float(p.risk.of(p.outcomes(best(p)))[0]) for p in (plain, richer))
    slope = (now - then) / math.log(MORE)
    spent = _spent(plan)
    if not slope > 0 or spent is None:
        raise ValueError(
            f"More budget would not improve this plan, so that it does not tell what its {plain.objective} is worth; "
            "say it, as unit_worth=Budget(flop=1e24)."
        )
    return Exchange(spent / slope, "the compute that would buy as much at the plan's budget")


def _spent(plan: Plan) -> float | None:
    """What the plan may spend, as FLOPs of training; None where it is limited by something else."""
    limit = plan.problem.constraints[0]
    if isinstance(limit, Spend):
        return limit.flop
    if not isinstance(limit, AtMost) or not isinstance(limit.objective, Cost):
        return None
    hardware, currency = limit.objective.hardware, limit.objective.currency
    if hardware is None or currency == "flop":
        return limit.amount
    drawn = {k: plan.problem.outlook.draws(k, v)[:, 0] for k, v in training_inputs(currency, hardware).items()}
    return limit.amount / float(training_cost(currency, 1.0, hardware, drawn).mean())
