"""What follows from a choice, draw by draw: what it reaches, what it risks, what moves it.

Arrays of draws are (S,).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from bayescale.decision.constraint import Constraint
from bayescale.decision.objective import Loss, Regret
from bayescale.decision.outlook import Choices, Outlook
from bayescale.decision.risk import Mean
from bayescale.decision.search import Infeasible, Problem, best
from bayescale.decision.target import Target
from bayescale.frontier import solve
from bayescale.frontier.waste import wasted

DRAWS = 400  # behind compute wasted and its band: a share of percents, whose quantiles move little
SLIGHT = 0.01  # share of the compute that the flat band wastes at most
REACH = 1.6  # how far in log N the flat band is looked for, to each side: a factor of five
PARTS = 20  # consecutive parts of the draws, whose own choices tell the Monte Carlo error
FIFTH = 0.2  # of the draws, those with an input lowest and highest
BINDS = 1e-6  # a limit within this share of what was chosen binds


def reached(outlook: Outlook, choice: Choices) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss at a choice, and the loss of the run that will be made: two arrays (S,)."""
    mean = replace(outlook, held=None).loss(choice)
    return mean[:, 0], (mean * np.exp(outlook.scatter))[:, 0]


def waste(outlook: Outlook, choice: Choices, sizes: np.ndarray) -> np.ndarray:
    """Share of the choice's compute that each size would waste against each draw's own best size, constraints aside.

    At most ``DRAWS`` draws are looked at. Array (draws, M); NaN where a draw has no optimum.
    """
    few = outlook.few(DRAWS)
    own = {k: v[:, 0] for k, v in replace(few, held=None).letters(choice).items()}
    return wasted(few.surface.law, few.rule, own, float(choice.flop[0]), sizes)


def flat_band(outlook: Outlook, choice: Choices, level: float) -> tuple[float, float] | None:
    """Ends of the sizes around a choice that waste under ``SLIGHT`` with probability ``level``; None: none does."""
    sizes = choice.size[0] * np.exp(np.linspace(-REACH, REACH, 129))
    found = waste(outlook, choice, sizes)
    good = np.flatnonzero((np.where(np.isnan(found), 1.0, found) < SLIGHT).mean(axis=0) >= level)
    return (float(sizes[good[0]]), float(sizes[good[-1]])) if good.size else None


def optima(outlook: Outlook, choice: Choices) -> tuple[np.ndarray, np.ndarray]:
    """Each draw's own compute-optimal size and tokens at the choice's compute, constraints aside; NaN: none."""
    own = {k: v[:, 0] for k, v in replace(outlook, held=None).letters(choice).items()}
    log_n, _ = solve.optimum(outlook.surface.law, outlook.rule, own, choice.flop)
    size = np.exp(log_n[:, 0])
    return size, np.asarray(outlook.rule.tokens(choice.flop, size), float)


def needed(outlook: Outlook, target: Target, flop: float) -> np.ndarray:
    """Training compute with which each draw's own best run just reaches a target, the run's scatter included: (S,).

    NaN where that is over a thousand times ``flop``, or under a thousandth.
    """
    budgets = flop * np.geomspace(1e-3, 1e3, 121)
    letters = outlook.surface.at(budgets)
    log_n, _ = solve.optimum(outlook.surface.law, outlook.rule, letters, budgets)
    loss = np.log(solve.spend(outlook.surface.law, outlook.rule, letters, budgets, log_n)[1]) + outlook.scatter
    met = loss <= np.log(target.loss)
    first = met.argmax(axis=1)
    out = np.exp(np.log(budgets)[first])
    return np.where(met.any(axis=1) & (first > 0), out, np.nan)


@final
@dataclass(frozen=True)
class Caution:
    """What a risk measure costs on average, and what it saves by its own measure, against the best choice on average.

    ``mean_given_up`` and ``risk_saved`` are in the objective's unit; ``neutral`` is that choice.
    """

    neutral: Choices
    mean_given_up: float
    risk_saved: float


def caution(problem: Problem, choice: Choices) -> Caution | None:
    """The price of caution; None of a neutral decision."""
    if isinstance(problem.risk, Mean):
        return None
    neutral = best(replace(problem, risk=Mean()))
    own, other = (problem.outcomes(each) for each in (choice, neutral))
    risks = [float(problem.risk.of(each)[0]) for each in (own, other)]
    return Caution(neutral, float(own.mean() - other.mean()), risks[1] - risks[0])


def monte_carlo(problem: Problem, choice: Choices) -> float | None:
    """Standard error of the log of the recommended size that is due to the number of draws; None where it is not told.

    By batch means: consecutive parts of the draws choose for themselves.
    """
    size = problem.outlook.size
    if size < PARTS * PARTS or problem.shapes is not None:
        return None
    chosen = [_among(problem, part) for part in np.array_split(np.arange(size), PARTS)]
    found = [np.log(each.size[0] / choice.size[0]) for each in chosen if each is not None]
    return float(np.std(found, ddof=1) / np.sqrt(PARTS)) if len(found) == PARTS else None


def _among(problem: Problem, some: np.ndarray) -> Choices | None:
    try:
        return best(replace(problem, outlook=problem.outlook.among(some)))
    except Infeasible:
        return None


def tornado(problem: Problem) -> list[dict[str, Any]]:
    """What would be chosen if an unknown were known to be low, or high: one entry an unknown, the most moving first.

    Low and high are the fifths of the draws in which it is lowest and highest, so that what goes with it in
    the posterior moves along. Entries hold ``input``, ``low`` and ``high`` (its medians there) and
    ``n_params_low``, ``n_params_high``.
    """
    outlook = problem.outlook
    unknown = {**outlook.posterior.values(outlook.group), **outlook.drawn}
    found = []
    for name, values in unknown.items():
        if np.ptp(values) == 0:
            continue
        order, count = np.argsort(values, kind="stable"), max(1, int(FIFTH * values.size))
        parts = order[:count], order[-count:]
        chosen = [_among(problem, np.sort(part)) for part in parts]
        low, high = (float(np.median(values[part])) for part in parts)
        sizes = [None if each is None else float(each.size[0]) for each in chosen]
        found.append({"input": name, "low": low, "high": high, "n_params_low": sizes[0], "n_params_high": sizes[1]})
    return sorted(found, key=_moves, reverse=True)


def _moves(entry: dict[str, Any]) -> float:
    low, high = entry["n_params_low"], entry["n_params_high"]
    return np.inf if low is None or high is None else abs(np.log(high / low))


def binding(problem: Problem, choice: Choices) -> list[tuple[Constraint, Choices | None]]:
    """Constraints that stop the choice from being better, each with what would be chosen without it.

    What is to be spent, or reached, is no such constraint. None where nothing else limits the choice.
    """
    tokens, size = float(choice.tokens[0]), float(choice.size[0])
    found = []
    for i, each in enumerate(problem.constraints[1:], start=1):
        tokens_of = each.fewest(problem.outlook, choice.size), each.most(problem.outlook, choice.size)
        ends = [*tokens_of, *each.sizes(problem.outlook)]
        near = [
            abs(float(np.ravel(e)[0]) - x) <= BINDS * x for e, x in zip(ends, (tokens, tokens, size, size), strict=True)
        ]
        if any(near):
            others = [c for j, c in enumerate(problem.constraints) if j != i]
            found.append((each, _free(replace(problem, constraints=others))))
    return found


def _free(problem: Problem) -> Choices | None:
    try:
        return best(problem)
    except Infeasible:
        return None


def regret(problem: Problem, choice: Choices) -> np.ndarray:
    """How much more each draw loses at the choice than at its own best within the constraints, (S,)."""
    own = replace(problem, objective=Regret(Loss()))
    return own.outcomes(choice)[:, 0]


def probability(target: Target, outlook: Outlook, choice: Choices) -> float:
    """Probability that the run reaches the target."""
    return float((reached(outlook, choice)[1] <= target.loss).mean())
