"""A plan as plain values: JSON has no arrays, no infinities and no units but those in its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayescale.decision import consequences, uncertain
from bayescale.decision.budget import Budget
from bayescale.decision.constraint import Constraint
from bayescale.decision.outlook import Choices
from bayescale.frontier.intervals import plain
from bayescale.frontier.rows import FAR

if TYPE_CHECKING:
    from bayescale.decision.plan import Plan


def rival(plan: Plan, name: str, choice: Choices) -> dict[str, Any]:
    """The figures by which one run is compared with another."""
    outcomes = plan.problem.outcomes(choice)
    wasted = consequences.waste(plan.problem.outlook, choice, choice.size)[:, 0]
    out = {
        "rule": name,
        "n_params": float(choice.size[0]),
        "n_tokens": float(choice.tokens[0]),
        "tokens_per_parameter": float(choice.tokens[0] / choice.size[0]),
        "flop": float(choice.flop[0]),
        "outcome_mean": float(outcomes.mean()),
        "outcome_risk": float(plan.problem.risk.of(outcomes)[0]),
        "loss": plan.interval(consequences.reached(plan.problem.outlook, choice)[0]),
        "compute_wasted": plan.interval(wasted),
        "keeps_constraints": bool(plan.problem.keep(choice.size, choice.tokens, 1e-6)[0]),
    }
    if plan.target:
        out["probability_of_target"] = consequences.probability(plan.target, plan.problem.outlook, choice)
    return out


def plan_entry(plan: Plan) -> dict[str, Any]:
    """Everything as JSON values, units in the keys; null where there is no value."""
    band, error = plan.flat_band, plan.monte_carlo_error
    return {
        "warning": plan.warning,
        "diagnostics": plan.diagnostics,
        "beyond_data": plan.posterior.beyond,
        "drift": plan.posterior.law_alone is not None,
        "level": plan.level,
        "kind": "eti",
        "loss_unit": plan.posterior.loss_unit,
        "goal": plan.goal.to_dict() if isinstance(plan.goal, Budget) else str(plan.goal),
        "objective": {"name": str(plan.problem.objective), "unit": unit(plan), "risk": str(plan.problem.risk)},
        "choice": _chosen(plan),
        "n_params_monte_carlo_error_share": error,
        "reach": {"loss": {name: plan.interval(draws) for name, draws in plan.reach.items()}},
        **_scores(plan),
        "optima": {name: plan.interval(draws) for name, draws in plan.optima.items()},
        "regret_loss": plan.interval(plan.regret),
        "compute_wasted": plan.interval(plan.wasted),
        "compute_wasted_mean": plain(float(np.nanmean(plan.wasted))) if np.isfinite(plan.wasted).any() else None,
        "n_wasting_under_1_percent_params": band and {"lower": band[0], "upper": band[1]},
        "flop_needed": None if plan.needed is None else plan.interval(plan.needed),
        "costs": {name: plan.interval(draws) for name, draws in plan.costs.items()},
        "caution": _caution(plan),
        "binding": [_freed(plan, each, free) for each, free in plan.binding],
        "alternatives": [dict(each) for each in plan.alternatives] if len(plan.alternatives) > 1 else [],
        "rivals": plan.rivals,
        "tornado": plan.tornado,
        "extrapolation_factor": plan.extrapolation["flop"],
        "n_params_extrapolation_factor": plan.extrapolation["n_params"],
        "n_tokens_extrapolation_factor": plan.extrapolation["n_tokens"],
        "extrapolates": any(value > 1 for value in plan.extrapolation.values()),
        "far": any(value > FAR for value in plan.extrapolation.values()),
        "assumptions": plan.assumptions,
        "law_alone": plan.law_alone and _brief(plan.law_alone),
    }


def _scores(plan: Plan) -> dict[str, Any]:
    """Intervals of what is scored, shares of 1; nothing where no link is read."""
    told = {task: {k: plan.interval(v) for k, v in drawn.items()} for task, drawn in plan.scores.items()}
    return {"scores": told} if told else {}


def unit(plan: Plan) -> str:
    """Unit of the objective."""
    unit = plan.problem.objective.unit
    return plan.posterior.loss_unit if unit == "loss" else unit


def _chosen(plan: Plan) -> dict[str, Any]:
    said = {k: v if isinstance(v, float | int) else uncertain.describe(v) for k, v in plan.conditions.items()}
    return {
        "n_params": plan.n_params,
        "n_tokens": plan.n_tokens,
        "tokens_per_parameter": plan.tokens_per_parameter,
        "flop": plan.flop,
        "risk": plan.risk,
        **({"conditions": said} if said else {}),
        **({"probability_of_target": float((plan.reach["new_run"] <= plan.target.loss).mean())} if plan.target else {}),
    }


def _probability(plan: Plan) -> dict[str, float]:
    if plan.target is None:
        return {}
    return {"probability_of_target": float((plan.reach["new_run"] <= plan.target.loss).mean())}


def _brief(plan: Plan) -> dict[str, Any]:
    return {
        "choice": _chosen(plan),
        "reach": {"loss": {name: plan.interval(draws) for name, draws in plan.reach.items()}},
        "optima": {name: plan.interval(draws) for name, draws in plan.optima.items()},
        "compute_wasted": plan.interval(plan.wasted),
    }


def _caution(plan: Plan) -> dict[str, Any] | None:
    found = plan.caution
    return found and {
        "neutral_n_params": float(found.neutral.size[0]),
        "neutral_n_tokens": float(found.neutral.tokens[0]),
        "mean_given_up": found.mean_given_up,
        "risk_saved": found.risk_saved,
    }


def _freed(plan: Plan, constraint: Constraint, free: Choices | None) -> dict[str, Any]:
    if free is None:
        return {"constraint": str(constraint), "without": None}
    risk = float(plan.problem.risk.of(plan.problem.outcomes(free))[0])
    found = {"n_params": float(free.size[0]), "n_tokens": float(free.tokens[0]), "flop": float(free.flop[0])}
    return {"constraint": str(constraint), "without": found | {"risk": risk}, "price": plan.risk - risk}
