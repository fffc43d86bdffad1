"""The rules that people would use instead: twenty tokens per parameter, a point estimate, a size of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bayescale.decision.crossing import crossing
from bayescale.decision.outlook import Choices, Outlook
from bayescale.decision.search import Problem
from bayescale.decision.target import Target
from bayescale.frontier import solve
from bayescale.laws._law import held_at

RULE_OF_THUMB = 20.0  # tokens per parameter at Chinchilla's budget (Hoffmann et al. 2022)
LADDER = 400  # budgets at which a point estimate's best loss is read, over the law's domain


def rivals(problem: Problem, sizes: Sequence[float]) -> dict[str, Choices]:
    """What other rules would train, by name: one run each, at the same compute or for the same target.

    The rule of twenty and the point estimate (the law alone at the medians of its parameters) are left out
    where they give nothing within the law's domain.
    """
    target = next((c for c in problem.constraints if isinstance(c, Target)), None)
    outlook = problem.outlook
    found = {
        f"{RULE_OF_THUMB:g} tokens per parameter": _ratio(outlook, target),
        "point estimate": _plug_in(outlook, target),
        **{f"given size {size:.4g}": _size(outlook, target, size) for size in sizes},
    }
    return {name: choice for name, choice in found.items() if choice is not None}


def _ratio(outlook: Outlook, target: Target | None) -> Choices | None:
    if outlook.spending is not None:
        size, high = 0.0, math.log(outlook.law.domain[outlook.law.size][1])
        for _ in range(60):
            middle = (size + high) / 2
            enough = outlook.rule.flop(math.exp(middle), RULE_OF_THUMB * math.exp(middle)) < outlook.spending
            size, high = (middle, high) if enough else (size, middle)
        return outlook.choices([math.exp(size)], [RULE_OF_THUMB * math.exp(size)])
    if target is None:
        return None
    sizes = np.geomspace(*_domain(outlook), LADDER)
    met = target.excess(outlook, sizes, RULE_OF_THUMB * sizes) <= 0
    first = sizes[met][:1]
    return outlook.choices(first, RULE_OF_THUMB * first) if first.size else None


def _domain(outlook: Outlook) -> tuple[float, float]:
    (n_low, n_high), (d_low, d_high) = solve.domain(outlook.law)
    return max(n_low, d_low / RULE_OF_THUMB), min(n_high, d_high / RULE_OF_THUMB)


def _plug_in(outlook: Outlook, target: Target | None) -> Choices | None:
    law, rule, letters = outlook.law, outlook.rule, _medians(outlook)
    if outlook.spending is not None:
        return _at(outlook, letters, outlook.spending)
    if target is None:
        return None
    (n_low, n_high), (d_low, d_high) = solve.domain(law)
    budgets = np.geomspace(float(rule.flop(n_low, d_low)), float(rule.flop(n_high, d_high)), LADDER)[1:-1]
    log_n, interior = solve.optimum(law, rule, letters, budgets)
    loss = np.where(interior, solve.spend(law, rule, letters, budgets, log_n)[1], np.inf)[0]
    reached = np.flatnonzero(loss <= target.loss)
    if not reached.size or reached[0] == 0 or not np.isfinite(loss[reached[0] - 1]):
        return None
    ends = slice(reached[0] - 1, reached[0] + 1)
    flop = np.exp(np.interp(-target.loss, -loss[ends], np.log(budgets[ends])))
    return _at(outlook, letters, float(flop))


def _at(outlook: Outlook, letters: Mapping[str, np.ndarray], flop: float) -> Choices | None:
    """The compute-optimal run of one law."""
    log_n, interior = solve.optimum(outlook.law, outlook.rule, letters, np.array([flop]))
    size = np.exp(log_n[0])
    return outlook.choices(size, outlook.rule.tokens(flop, size)) if interior[0, 0] else None


def _medians(outlook: Outlook) -> dict[str, np.ndarray]:
    """The law's letters at the medians of its parameters, (1,): those of the letters do not belong to one law."""
    law, values = outlook.law, outlook.posterior.values(outlook.group)
    held = {name: np.median(outlook.surface.letters[held_at(name)])[None] for name in law.conditions}
    own = {held_at(name): value for name, value in held.items()}
    if any(p.name not in values for p in law.parameters):
        letters = outlook.posterior.coefficients(outlook.group)
        return {q.name: np.median(letters[q.name])[None] for q in law.coefficients} | own
    middle = {p.name: np.median(values[p.name])[None] for p in law.parameters}
    found = law.to_coefficients(middle, outlook.posterior.reference)
    return {q.name: np.asarray(found[q.name], float).reshape(1) for q in law.coefficients} | own


def _size(outlook: Outlook, target: Target | None, size: float) -> Choices | None:
    sizes = np.array([float(size)])
    if outlook.spending is not None:
        return outlook.choices(sizes, outlook.rule.tokens(outlook.spending, sizes))
    if target is None:
        return None
    tokens = crossing(target.excess, outlook, sizes)
    return outlook.choices(sizes, tokens) if np.isfinite(tokens).all() else None
