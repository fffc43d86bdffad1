"""The verb: from a posterior to what to train."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescale.decision.budget import Budget
from bayescale.decision.conflict import explained
from bayescale.decision.constraint import Constraint, Spend
from bayescale.decision.hardware import Hardware
from bayescale.decision.objective import Compute, Loss, read_objective
from bayescale.decision.outlook import Choices, Outlook
from bayescale.decision.plan import Plan
from bayescale.decision.risk import Mean, check_draws, read_risk
from bayescale.decision.search import Infeasible, Problem, best
from bayescale.frontier import solve
from bayescale.frontier.budgets import read_budgets
from bayescale.posterior.inputs import conditions
from bayescale.runs.flops import ComputeRule

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Group, Posterior

NEUTRAL = Mean()


def recommend(
    posterior: Posterior,
    goal: Any,
    *,
    objective: Any = None,
    constraints: Sequence[Constraint] = (),
    risk: Any = NEUTRAL,
    sizes: Sequence[float] | None = None,
    options: Mapping[str, Sequence[float]] | None = None,
    at: Mapping[str, Any] | None = None,
    hardware: Hardware | None = None,
    compare: Sequence[float] = (),
    group: Group = None,
    rule: ComputeRule | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Plan:
    """What to train: the best run for a budget, or the cheapest that reaches a target.

    Parameters
    ----------
    posterior : Posterior
        A fit, or a published law.
    goal : Budget, number of FLOPs, Target, ScoreTarget, or another Constraint
        What may be spent, or what has to be reached.
    objective : Objective or callable, optional
        What is as small as possible; by default `Loss` under a budget, `Compute` for a target.
    constraints : sequence of Constraint
        What the choice may not do.
    risk : Risk or callable
        How spread is weighed.
    sizes : sequence of numbers, optional
        Sizes to choose from, parameters; any size unless given.
    options : mapping of str to sequence of numbers, optional
        Values to choose from of conditions of the law: ``{"n_experts": [8, 16]}``.
    at : mapping of str to number, Prior or distribution, optional
        Conditions that are settled; those left out are at their standard.
    hardware : Hardware, optional
        For the plan's hours, dollars and energy; the budget's own unless given.
    compare : sequence of numbers, optional
        Sizes to set beside the recommendation, parameters.
    group : str, NewGroup, PopulationMean or None
        Whose law; needed where the fit has groups.
    rule : ComputeRule, optional
        What a run costs; the fit's own rule unless given.
    level : float
        Probability inside the equal-tailed intervals.
    seed : int
        Of uncertain inputs and of the run's scatter.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If an argument is not what it says, no choice keeps all constraints (the message names the smallest set
        in conflict, and the nearest value of each that could be kept), or too few draws stand in the tail that
        ``risk`` looks at.
    TypeError
        If ``objective``, ``risk``, ``rule`` or a constraint is of another kind.
    """
    rule = posterior.rule if rule is None else rule
    if not isinstance(rule, ComputeRule):
        raise TypeError(f"rule is a FLOP rule such as FlopsRule(6.0), not {rule!r}.")
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level is the probability inside the interval, between 0 and 1, not {level!r}.")
    risk, group = read_risk(risk), posterior.named(group)
    draws = len(next(iter(posterior.coefficients(group).values())))
    limit = _goal(posterior, goal, rule, seed, draws)
    if objective is None:
        objective = Compute() if limit.reaches else Loss()
    kept = (limit, *_constraints(constraints))
    wanted, shapes = read_objective(objective), _shapes(posterior, sizes)
    found = [
        Problem(_outlook(posterior, group, rule, seed, kept, settled), wanted, kept, risk, shapes)
        for settled in _combinations(posterior, options, at)
    ]
    check_draws(risk, effective(posterior, draws))
    solved = [(problem, choice) for problem in found if (choice := _solved(problem)) is not None]
    if not solved:
        raise explained(found[0])
    risks = [float(problem.risk.of(problem.outcomes(choice))[0]) for problem, choice in solved]
    problem, choice = solved[int(np.argmin(risks))]
    alternatives = [
        {**p.outlook.settled, "n_params": float(c.size[0]), "n_tokens": float(c.tokens[0]), "risk": r}
        for (p, c), r in zip(solved, risks, strict=True)
    ]
    budget = goal if isinstance(goal, Budget) else None
    own = hardware or (budget.hardware if budget else None)
    return Plan(problem, choice, goal if budget else limit, own, tuple(map(float, compare)), float(level), alternatives)


def effective(posterior: Posterior, draws: int) -> float:
    """Independent draws that a posterior's are worth; infinite for a point, which nothing is uncertain about."""
    if draws == 1:
        return np.inf
    ess = [c.value for c in posterior.checks if c.name == "ess_bulk" and c.value is not None]
    return min([*ess, float(draws)])


def _goal(posterior: Posterior, goal: Any, rule: ComputeRule, seed: int, draws: int) -> Constraint:
    if isinstance(goal, Constraint):
        return goal
    (n_low, n_high), (d_low, d_high) = solve.domain(posterior.law)
    flop = goal.flop(seed=seed, n=draws) if isinstance(goal, Budget) else goal
    if isinstance(flop, list | tuple | np.ndarray | Mapping):
        raise ValueError(f"One plan is for one goal, a Budget, a number of FLOPs or a Target, not {goal!r}.")
    ends = {"smallest": float(rule.flop(n_low, d_low)), "largest": float(rule.flop(n_high, d_high))}
    return Spend(float(read_budgets([flop], **ends)[0]))


def _constraints(constraints: Any) -> tuple[Constraint, ...]:
    given = tuple(constraints) if isinstance(constraints, Sequence) else (constraints,)
    wrong = [each for each in given if not isinstance(each, Constraint)]
    if wrong:
        raise TypeError(f"constraints are values such as Tokens(1e12) or Ratio(most=100), not {wrong[0]!r}.")
    return given


def _combinations(
    posterior: Posterior, options: Mapping[str, Sequence[float]] | None, at: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """What is settled in every combination of the options, those checked against the law."""
    options = options or {}
    twice = sorted(set(options) & set(at or {}))
    empty = [name for name, values in options.items() if not len(values)]
    if twice or empty:
        raise ValueError(f"options name values to choose from, and at one that is settled; {', '.join(twice + empty)}.")
    found = [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]
    for each in found:
        conditions(posterior.law, each)
    return [{**(at or {}), **each} for each in found]


def _outlook(
    posterior: Posterior,
    group: Group,
    rule: ComputeRule,
    seed: int,
    constraints: tuple[Constraint, ...],
    settled: dict[str, Any],
) -> Outlook:
    spend = next((c.flop for c in constraints if isinstance(c, Spend)), None)
    outlook = Outlook(posterior, group, rule, settled, seed, spend)
    said = {k: v for c in constraints for k, v in c.settles(outlook).items()}
    clash = sorted(set(said) & set(settled))
    if clash:
        raise ValueError(f"{', '.join(clash)} is settled twice: by a constraint, and by at or options.")
    outlook = replace(outlook, settled={**settled, **said})
    if spend is None:
        return outlook
    return replace(outlook, held=float(solve.fitted_compute(posterior, rule, outlook.surface, np.array([spend]))[0]))


def _shapes(posterior: Posterior, sizes: Sequence[float] | None) -> np.ndarray | None:
    if sizes is None:
        return None
    low, high = posterior.law.domain[posterior.law.size]
    bad = [s for s in sizes if isinstance(s, bool) or not isinstance(s, Real) or not max(low, 1) <= s <= high]
    if bad or not len(sizes):
        raise ValueError(f"sizes are parameters, {max(low, 1):g} to {high:g}, at least one; not {bad or list(sizes)}.")
    return np.array(sorted({float(s) for s in sizes}))


def _solved(problem: Problem) -> Choices | None:
    try:
        return best(problem)
    except Infeasible:
        return None
