"""The answer of a report: what it is, what it is worth, and how far it can be relied on; a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayescale.decision.plan import Plan
from bayescale.frontier.frontier import Frontier
from bayescale.posterior.posterior import Posterior
from bayescale.report.plans import named
from bayescale.report.recommendations import about_plan
from bayescale.report.words import count, interval, kind, number, reach

GROUPS, BUDGETS = 4, 2  # that a sentence names
SAMPLING = {
    "PASS": "the fit passed its diagnostics",
    "FAIL": "the fit FAILED its diagnostics, so that no number here is to be relied on",
    "UNKNOWN": "the fit's diagnostics are UNKNOWN, so that no decision should rest on this alone",
}
GATE = {
    "PASS": "its runs passed the gate of forecasts beyond the data",
    "FAIL": "its runs FAIL the gate of forecasts beyond the data, where intervals are not calibrated",
    "UNKNOWN": "whether its runs pass the gate of forecasts beyond the data is UNKNOWN",
    None: "the law is taken to be exact at every scale, so that intervals beyond the data are too narrow",
}


def of_frontier(frontier: Frontier, asked: Sequence[float]) -> tuple[str, ...]:
    """Of the budgets that are asked for: the first of many, where there are many groups."""
    found = [row for row in frontier.to_dict()["results"] if row["budget_flop"] in asked]
    rows = _some(found, len(frontier.groups) > 1)
    more = len(found) - len(rows)
    others = "; the others are below" if more else ""
    sizes = "; ".join(map(_optimum, rows))
    losses = "; ".join(_loss(row, frontier.loss_unit) for row in rows)
    factor = max(row["extrapolation_factor"] for row in found) if found else 0.0
    return (
        f"{_first(sizes)}{others} (median and {kind(frontier.level)} interval).",
        f"The mean loss is then {losses}.",
        health(frontier.diagnostics, frontier.beyond, factor),
    )


def of_plan(plan: Plan, found: dict[str, Any]) -> tuple[str, ...]:
    """Of a recommendation."""
    loss = found["reach"]["loss"]
    new = _ends(loss["new_run"])
    wasted, flat = about_plan(plan, found)[-2:]
    waste = f"It {wasted}, and {flat}" if wasted.startswith("wastes") else _first(flat)
    run = f", a run like it at {new}" if new != "-" else ""
    return (
        f"Train {count(plan.n_params)} parameters on {count(plan.n_tokens)} tokens, "
        f"{number(plan.tokens_per_parameter)} tokens per parameter and {number(plan.flop)} FLOP; were the law known, "
        f"the best size would be {_ends(found['optima']['n_opt_params'], count)} parameters (median and "
        f"{kind(plan.level)} interval).",
        f"Its mean loss is expected at {_ends(loss['mean'])}{run} {found['loss_unit']}. {waste}.",
        health(plan.diagnostics, plan.posterior.beyond, found["extrapolation_factor"]),
    )


def of_letters(posterior: Posterior, why: str) -> tuple[str, ...]:
    """Of a fit that has no frontier."""
    rows = posterior.to_dict()["results"][:GROUPS]
    letters = "; ".join(
        named(row["group"])
        + ", ".join(f"{q.name} {_ends(row['quantities'][q.name])}" for q in posterior.law.coefficients)
        for row in rows
    )
    return (
        f"The letters of the law are {letters} (median and {kind(0.9)} interval).",
        f"There is no compute-optimal size: {why}",
        health(posterior.status, posterior.beyond, 0.0),
    )


def health(diagnostics: str, beyond: str | None, factor: float) -> str:
    """What an answer is worth."""
    where = f"what is asked {'reaches' if factor > 1 else 'lies'} {reach(factor)}. " if factor else ""
    return f"{_first(where)}{_first(SAMPLING[diagnostics])}; {GATE[beyond]}."


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _some(rows: Sequence[dict[str, Any]], grouped: bool) -> Sequence[dict[str, Any]]:
    """Several budgets of one law, or one budget of several groups."""
    if not grouped or not rows:
        return rows[:BUDGETS]
    first = rows[0]["budget_flop"]
    return [row for row in rows if row["budget_flop"] == first][:GROUPS]


def _optimum(row: dict[str, Any]) -> str:
    if row["n_opt_params"]["median"] is None:
        share = 100 * row["no_optimum_share"]
        return f"{_where(row)} no best size can be told: {share:.1f} % of the draws have none"
    return (
        f"{_where(row)} the loss is lowest with {_ends(row['n_opt_params'], count)} parameters on "
        f"{_ends(row['d_opt_tokens'], count)} tokens, "
        f"{_ends(row['tokens_per_parameter'])} tokens per parameter"
    )


def _loss(row: dict[str, Any], unit: str) -> str:
    band, flat = row["n_within_1_percent_params"], ""
    if band["lower"] is not None and band["upper"] is not None:
        flat = f", and at most 1 % more from {count(band['lower'])} to {count(band['upper'])} parameters"
    return f"{_ends(row['loss'])} {unit} {_where(row)}{flat}"


def _where(row: dict[str, Any]) -> str:
    group = "" if row["group"] is None else f" in {named(row['group']).removesuffix(': ').replace('Group', 'group')}"
    return f"at {number(row['budget_flop'])} FLOP{group}"


def _ends(q: dict[str, Any], write: Any = number) -> str:
    return interval(q["median"], q["lower"], q["upper"], write)
