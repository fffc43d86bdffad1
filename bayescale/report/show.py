"""Each result as a page: what is said of it, in which order.

A warning stands first wherever the fit's diagnostics did not pass. Then what was done, the numbers with
the kind and level of their intervals, and what they rest on.
"""

from __future__ import annotations

import functools
from typing import Any

from bayescale.model.joint import Model
from bayescale.posterior.posterior import Posterior
from bayescale.report import isoflop, plans, recommendations
from bayescale.report.backtests import backtest_page
from bayescale.report.followed import followed_page
from bayescale.report.ledgers import ledger_page
from bayescale.report.links import linked_page, score_page
from bayescale.report.pilots import pilots_page
from bayescale.report.plans import ROWS, largest, left_over, notes
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import (
    ENGINES,
    amount,
    between,
    digits,
    drawn_from,
    equation,
    estimate,
    kind,
    number,
    printable,
    prior_cells,
    resampled,
    scatter,
    some,
    status,
)

HOW_TO_CHANGE = "change a prior by its name: priors={'alpha': LogNormal(0.35, 0.2)}, or hold it: Fixed(0.35)"


@functools.singledispatch
def page(result: Any) -> Page:
    """The page of a result; one function a kind of result is registered below."""
    raise TypeError(f"There is no page for a {type(result).__name__}.")


@page.register
def _posterior(posterior: Posterior) -> Page:
    summary = posterior.to_dict()
    shown = summary["results"][:ROWS]
    return Page(
        status(posterior.status, posterior.checks, posterior.warning),
        f"{drawn_from(posterior).capitalize()}, diagnostics {posterior.status}: {equation(posterior.model)}",
        tuple(_about(posterior)),
        [
            *(_letters(row, summary["level"], drawn_from(posterior)) for row in shown),
            *left_over(len(summary["results"]) - len(shown), "group", "summary()"),
            Notes("Diagnostics", tuple(map(str, posterior.checks))),
            *notes("Forecasts beyond the data", tuple(map(str, posterior.gate))),
            *notes("The design cannot tell", [_finding(f) for f in posterior.info.get("design", ())]),
            *notes("It rests on", assumptions(posterior)),
        ],
    )


@page.register
def _model(model: Model) -> Page:
    grouped = f" by {model.pooling.by!r}" if model.pooling.by else ""
    pooled = f"{type(model.pooling).__name__.lower()} pooling{grouped}"
    head = ("parameter", "prior", "median", "90 % interval")
    rows = tuple(prior_cells(p, model.prior(p)) for p in model.parameters)
    meaning = tuple(f"{p.name}: {p.meaning}{between(p, model.pooling)}" for p in model.parameters)
    return Page(
        None,
        f"Model: {equation(model)}",
        (f"{pooled}; {scatter(model)}", HOW_TO_CHANGE),
        [Table("Priors: median and 90 % equal-tailed interval", head, rows), Notes("Meaning", meaning)],
    )


def _about(posterior: Posterior) -> list[str]:
    model, info = posterior.model, posterior.info
    lines = []
    if posterior.runs is not None:
        lines.append(f"{amount(len(posterior.runs), 'run')} of {posterior.runs.source}, {largest(posterior.largest)}")
    if posterior.groups:
        sizes = [f"{g}: {amount(n, 'run')}" for g, n in info["runs_per_group"].items()]
        own = [f"{name} {chosen}" for name, chosen in model.pooling.per_parameter.items()]
        except_for = f" (but {', '.join(own)})" if own else ""
        kind_of = type(model.pooling).__name__.lower()
        lines.append(f"groups by {model.pooling.by!r}, {kind_of} pooling{except_for}: {some(sizes, ROWS)}")
    elif posterior.runs is not None:
        lines.append("one law for all runs")
    if posterior.runs is not None:
        lines.append(f"{scatter(model)}; loss in {posterior.loss_unit}")
    lines += [f"prior of {name}: {prior}" for name, prior in model.priors.items()]
    return [*lines, *_engine(posterior)]


def _engine(posterior: Posterior) -> list[str]:
    info = posterior.info
    how = ENGINES[info["engine"]]
    if info["engine"] == "published":
        return [how, info["source"], *(f"{name}: {meaning}" for name, meaning in info["conventions"].items())]
    if "resampled" in info:
        return [f"{how}: {resampled(info)}", estimate(info)]
    drawn = f"{amount(info['chains'], 'chain')} of {amount(info['draws'], 'draw')}, seed {info['seed']}"
    divergences = [c.value for c in posterior.checks if c.name == "divergences" and c.value is not None]
    return [f"{how}: {drawn}" + (f", {amount(int(divergences[0]), 'divergence')}" if divergences else "")]


def _letters(row: dict[str, Any], level: float, of: str) -> Table:
    group = f"Group {printable(row['group'])}, {amount(row['n_runs'], 'run')}: " if row["group"] is not None else ""
    point = all(q["lower"] == q["upper"] for q in row["quantities"].values())
    ends = ("median",) if point else ("median", "lower", "upper")
    rows = []
    for name, q in row["quantities"].items():
        n = digits(q["median"], q["lower"], q["upper"])
        rows.append((name, *(number(q[end], n) for end in ends), q["unit"]))
    if point:
        return Table(f"{group}one value, no interval", ("", "value", "unit"), tuple(rows))
    return Table(f"{group}{of} median and {kind(level)} interval", ("", *ends, "unit"), tuple(rows))


def _finding(finding: dict[str, Any]) -> str:
    where = f", group {some(finding['groups'])}" if finding["groups"] else ""
    return f"{finding['name']} ({finding['column']}{where}): {finding['figures']}. {finding['advice']}"


def assumptions(posterior: Posterior) -> list[str]:
    """What a fit takes for granted of its table."""
    runs = posterior.runs
    if runs is None:
        return [f"compute: {posterior.rule}"]
    out = [f"{run} (line {line}): {reason}" for line, run, reason in runs.left_out.itertuples(index=False)]
    left_out = [f"{amount(len(out), 'row')} of the source left out: {some(out)}"] if out else []
    return [f"compute: {posterior.rule}", *runs.notes, *left_out]


ISOFLOP = isoflop.minima_page, isoflop.envelope_page, isoflop.check_page
PLANS = plans.frontier_page, plans.forecast_page, plans.multipliers_page, recommendations.plan_page
for others in (*PLANS, *ISOFLOP, pilots_page, followed_page, backtest_page, ledger_page, linked_page, score_page):
    page.register(others)
