"""Each kind of result as a report: the answer first, then what it rests on."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescale.decision.plan import Plan
from bayescale.decision.recommend import recommend
from bayescale.frontier.frontier import Frontier, allocate
from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.posterior.inputs import conditions
from bayescale.posterior.ledger import Ledger
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.scorecard import Backtest
from bayescale.report import answers, show
from bayescale.report.document import Document, Figure, Section, sections
from bayescale.report.evidence import evidence
from bayescale.report.planner import Planner, round_budgets
from bayescale.report.plans import forecast_page, frontier_page, left_over, named, notes
from bayescale.report.plots import plot_calibration, plot_frontier, plot_tokens_per_parameter
from bayescale.report.recommendations import about_plan, plan_parts
from bayescale.report.tables import Notes, Table
from bayescale.report.words import kind, law_name, number, status

DECADES = (0, 1, 2)  # beyond the largest run, that a fit's report looks at
GROUPS = 3  # of which choices are looked at one by one


@functools.singledispatch
def document(result: Any) -> Document:
    """The report of a result; kinds that have one of their own are registered below."""
    page = show.page(result)
    return Document(page.title, page.warning, page.lines, [Section("result", "Result", list(page.parts))])


@document.register
def _of_posterior(posterior: Posterior) -> Document:
    of = f"{len(posterior.runs)} runs of {posterior.runs.source}" if posterior.runs else posterior.info["source"]
    title = f"{law_name(posterior.law, posterior.model.drift is not None)} and {of}"
    largest = math.ceil(math.log10(posterior.largest["flop"]))
    try:
        frontier = allocate(posterior, [10.0 ** (largest + k) for k in DECADES])
    except ValueError as why:
        first = status(posterior.status, posterior.checks, posterior.warning)
        return Document(title, first, answers.of_letters(posterior, str(why)), evidence(posterior))
    return _budgets(title, frontier, 1)


@document.register
def _of_frontier(frontier: Frontier) -> Document:
    name = law_name(frontier.law, frontier.mean is not frontier.law)
    return _budgets(f"Compute-optimal runs: {name}", frontier, len(frontier.budgets))


@document.register
def _of_plan(plan: Plan) -> Document:
    found, posterior, outlook = plan.to_dict(), plan.posterior, plan.problem.outlook
    parts = plan_parts(plan, found)
    fixed = {k: v for k, v in outlook.settled.items() if isinstance(v, float | int)}
    over = allocate(
        posterior,
        plan.flop * 10.0 ** np.arange(-1, 3),
        rule=outlook.rule,
        group=outlook.group,
        at=fixed,
        level=plan.level,
    )
    wide = _wide(over)
    return Document(
        f"Recommendation: {about_plan(plan, found)[0]}",
        status(plan.diagnostics, posterior.checks, plan.warning),
        answers.of_plan(plan, found),
        [
            *sections(
                Section(
                    "recommendation",
                    "Recommendation",
                    [
                        *parts["choice"],
                        *parts["costs"],
                        *parts["binding"],
                        *parts["options"],
                        *parts["mind"],
                    ],
                ),
                _ahead(wide, plan.flop),
                _frontier(over, wide, "The compute-optimal frontier around it, constraints aside"),
                Section("regret", "Regret, and the flat band", _regret(plan, found)),
                Section("sensitivity", "Sensitivity", parts["sensitivity"]),
                Section("decision", "What the decision takes for granted", parts["assumptions"]),
            ),
            *evidence(posterior),
        ],
    )


@document.register
def _of_backtest(backtest: Backtest) -> Document:
    return _scored(backtest)


@document.register
def _of_ledger(ledger: Ledger) -> Document:
    return _scored(ledger, any(entry["landing"] for entry in ledger.entries()))


def _scored(found: Any, drawn: bool = True) -> Document:
    page = show.page(found)
    alt = "Share of runs inside intervals of 50, 80, 90 and 95 %, against those levels"
    figures = [Figure(lambda: plot_calibration(found), alt)] if drawn else []
    tables, others = ([p for p in page.parts if isinstance(p, Table) is of] for of in (True, False))
    parts = [Section("scores", "Scores", [*tables, *figures]), Section("notes", "What they rest on", others)]
    return Document(page.title, page.warning, page.lines, list(sections(*parts)))


def _budgets(title: str, frontier: Frontier, asked: int) -> Document:
    """The report of a fit at some budgets; the answer is of the first ``asked``."""
    fit, wide = frontier.fit, _wide(frontier)
    plans = [] if fit is None else _plans(frontier)
    choices: list[Any] = [part for plan in plans for part in _choice(plan)]
    regrets: list[Any] = [part for plan in plans for part in _regret(plan, plan.to_dict())]
    movers: list[Any] = [
        part for plan in plans for part in [*_of_group(plan), *plan_parts(plan, plan.to_dict())["sensitivity"]]
    ]
    more = left_over(len(frontier.groups) - len(plans), "group", "bs.recommend(fit, budget, group=NAME)")
    return Document(
        title,
        status(frontier.diagnostics, fit.checks if fit else (), frontier.warning),
        answers.of_frontier(frontier, frontier.budgets[:asked].tolist()),
        [
            *sections(
                Section("recommendation", "Recommendation", [*choices, *(more if choices else [])]),
                _ahead(wide, float(frontier.budgets[0])),
                _frontier(frontier, wide, "Compute-optimal size and tokens over budgets"),
                Section("forecast", "Loss forecast", [] if fit is None else _forecast(frontier, fit)),
                Section("regret", "Regret, and the flat band", regrets),
                Section("sensitivity", "Sensitivity", movers),
            ),
            *(evidence(fit) if fit else []),
        ],
    )


def _ahead(wide: Frontier | None, asked: float) -> Section | None:
    return None if wide is None else Section("ahead", "Plan ahead", [Planner(wide, asked)])


def _frontier(frontier: Frontier, wide: Frontier | None, heading: str) -> Section:
    """Tables at the budgets asked, and figures in between."""
    figures = []
    if wide is not None:
        band = f"median, 50 % and {kind(frontier.level)} bands"
        figures = [
            Figure(lambda: plot_frontier(wide), f"Compute-optimal size against compute: {band}"),
            Figure(lambda: plot_tokens_per_parameter(wide), f"Tokens per parameter against compute: {band}"),
        ]
    return Section("frontier", heading, [*frontier_page(frontier).parts, *figures])


def _wide(frontier: Frontier) -> Frontier | None:
    """The same over all compute, from a tenth of the largest run's to far beyond it, and all that is asked."""
    fit = frontier.fit
    if fit is None:
        return None
    largest = fit.largest["flop"]
    budgets = round_budgets(min(*frontier.budgets, largest / 10), max(*frontier.budgets, largest * 10.0 ** DECADES[-1]))
    groups = [_chosen(fit, label) for label in frontier.groups]
    held = {name: value for name, value in frontier.conditions.items() if name in fit.law.conditions}
    group = None if groups == [None] else groups
    try:
        return allocate(fit, budgets, rule=frontier.rule, group=group, at=held, level=frontier.level)
    except ValueError:  # some lie outside the law's domain: those that were asked for do not
        return frontier


def _chosen(fit: Posterior, label: str | None) -> Any:
    """The choice of a group, by its label."""
    kinds = {str(k): k for k in (NewGroup(), PopulationMean())}
    return label if label in fit.groups or label is None else kinds.get(label, label)


def _plans(frontier: Frontier) -> list[Plan]:
    """The run that loses least on average over the draws, at the first budget, for some groups."""
    fit, found = frontier.fit, []
    assert fit is not None
    for label in frontier.groups[:GROUPS]:
        group, at = _chosen(fit, label), dict(frontier.conditions)
        budget = float(frontier.budgets[0])
        try:
            plan = recommend(fit, budget, group=group, rule=frontier.rule, at=at, level=frontier.level)
        except ValueError:  # no run within the law's domain costs that: the frontier says so
            continue
        found.append(plan)
    return found


def _of_group(plan: Plan) -> list[Notes]:
    group = plan.problem.outlook.group
    return [] if group is None else notes(named(str(group)).removesuffix(": "), [f"{number(plan.flop)} FLOP"])


def _choice(plan: Plan) -> list[Table | Notes]:
    parts = plan_parts(plan, plan.to_dict())
    return [*_of_group(plan), *parts["choice"], *parts["mind"]]


def _regret(plan: Plan, found: dict[str, Any]) -> list[Table | Notes]:
    parts = plan_parts(plan, found)
    given_up, unit = found["regret_loss"], found["loss_unit"]
    ends = [number(given_up[end]) for end in ("median", "lower", "upper")]
    regret = (
        f"loss given up against each draw's own best run within the limits: {ends[0]} [{ends[1]}, {ends[2]}] {unit}, "
        f"median and {kind(plan.level)} interval"
    )
    group = plan.problem.outlook.group
    heading = f"{named(None if group is None else str(group))}at {number(plan.flop)} FLOP"
    return [*notes(heading, [regret, *about_plan(plan, found)[-2:]]), *parts["rivals"], *parts["caution"]]


def _forecast(frontier: Frontier, fit: Posterior) -> list[Table | Notes]:
    """Loss of the median optimum, of its mean and of one new run."""
    parts: list[Table | Notes] = []
    for label in frontier.groups[:GROUPS]:
        with np.errstate(invalid="ignore"):
            size = np.exp(np.nanmedian(frontier.log_n[label], axis=0))
        told_at = np.isfinite(size)
        size, budgets = size[told_at], frontier.budgets[told_at]
        if not size.size:
            continue
        tokens = np.asarray(frontier.rule.tokens(budgets, size), float)
        runs = {fit.law.size: size, "n_tokens": tokens} | conditions(fit.law, frontier.conditions)
        found = predict(fit, runs, group=_chosen(fit, label), level=frontier.level)
        page = forecast_page(found)
        parts += notes(f"{named(label)}runs of the median optimal size", page.lines)
        parts += [_with_factor(part, found.runs["extrapolation_factor"].tolist()) for part in page.parts]
    return [*parts, *left_over(len(frontier.groups) - GROUPS, "group", "bs.predict(fit, runs)")]


def _with_factor(part: Table | Notes, factors: Sequence[float]) -> Table | Notes:
    """The table with a column of how far each run lies beyond the fit's."""
    if isinstance(part, Notes):
        return part
    rows = tuple((*row, number(factor)) for row, factor in zip(part.rows, factors, strict=False))
    return Table(part.caption, (*part.header, "x largest\nrun"), rows)
