"""Each result as a page: what is said of it, in which order.

A warning stands first wherever the fit's diagnostics did not pass. Then what was done, the numbers with
the kind and level of their intervals, and what they rest on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescale.frontier.frontier import Frontier
from bayescale.model.joint import Model
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import Forecast
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import (
    ENGINES,
    amount,
    between,
    count,
    digits,
    drawn_from,
    equation,
    estimate,
    interval,
    kind,
    number,
    printable,
    prior_cells,
    problem,
    reach,
    resampled,
    some,
    status,
)

ROWS = 10  # rows of a table and groups of a result that are shown; the rest is in to_dataframe()
HOW_TO_CHANGE = "change a prior by its name: priors={'alpha': LogNormal(0.35, 0.2)}, or hold it: Fixed(0.35)"
NUMBERS_OF = {"n_params": ("N", "parameters"), "n_tokens": ("D", "tokens")}


@functools.singledispatch
def page(result: Any) -> Page:
    """The page of a result; one function a kind of result is registered below."""
    raise TypeError(f"There is no page for a {type(result).__name__}.")


@page.register
def _posterior(posterior: Posterior) -> Page:
    summary = posterior.to_dict()
    shown = summary["results"][:ROWS]
    return Page(
        status(posterior.status, posterior.checks),
        f"{drawn_from(posterior).capitalize()}, diagnostics {posterior.status}: {equation(posterior.model)}",
        tuple(_about(posterior)),
        [
            *(_letters(row, summary["level"], drawn_from(posterior)) for row in shown),
            *_left_over(len(summary["results"]) - len(shown), "group", "summary()"),
            Notes("Diagnostics", tuple(map(str, posterior.checks))),
            *_notes("The design cannot tell", [_finding(f) for f in posterior.info.get("design", ())]),
            *_notes("It rests on", _assumptions(posterior)),
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
        (f"{pooled}; noise on log loss: {type(model.noise).__name__}", HOW_TO_CHANGE),
        [Table("Priors: median and 90 % equal-tailed interval", head, rows), Notes("Meaning", meaning)],
    )


def _about(posterior: Posterior) -> list[str]:
    model, info = posterior.model, posterior.info
    lines = []
    if posterior.runs is not None:
        lines.append(f"{amount(len(posterior.runs), 'run')} of {posterior.runs.source}, {_largest(posterior.largest)}")
    if posterior.groups:
        sizes = [f"{g}: {amount(n, 'run')}" for g, n in info["runs_per_group"].items()]
        own = [f"{name} {chosen}" for name, chosen in model.pooling.per_parameter.items()]
        except_for = f" (but {', '.join(own)})" if own else ""
        kind_of = type(model.pooling).__name__.lower()
        lines.append(f"groups by {model.pooling.by!r}, {kind_of} pooling{except_for}: {some(sizes, ROWS)}")
    elif posterior.runs is not None:
        lines.append("one law for all runs")
    if posterior.runs is not None:
        lines.append(f"noise on log loss: {type(model.noise).__name__}; loss in {posterior.loss_unit}")
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


def _assumptions(posterior: Posterior) -> list[str]:
    runs = posterior.runs
    if runs is None:
        return [f"compute: {posterior.rule}"]
    out = [f"{run} (line {line}): {reason}" for line, run, reason in runs.left_out.itertuples(index=False)]
    left_out = [f"{amount(len(out), 'row')} of the source left out: {some(out)}"] if out else []
    return [f"compute: {posterior.rule}", *runs.notes, *left_out]


@page.register
def _frontier(frontier: Frontier) -> Page:
    shown = _thinned(frontier)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in shown.to_dict()["results"]:
        groups.setdefault(row["group"], []).append(row)
    some_groups = dict(list(groups.items())[:ROWS])
    rows = [row for own in some_groups.values() for row in own]
    return Page(
        status(frontier.diagnostics),
        f"Compute-optimal frontier, diagnostics {frontier.diagnostics}: {problem(frontier)}",
        (_largest(frontier.largest), f"median and {kind(frontier.level)} interval over draws that have an optimum"),
        [
            *(t for group, own in some_groups.items() for t in (_plan(group, own, frontier), _reach_table(group, own))),
            *_left_over(len(groups) - len(some_groups), "group", "to_dataframe()"),
            *_left_over(len(frontier.budgets) - len(shown.budgets), "budget", "to_dataframe()"),
            *_notes("Mind", [*_far(rows), *_without(rows)]),
        ],
    )


def _thinned(frontier: Frontier) -> Frontier:
    """At most ``ROWS`` of the budgets, evenly spaced, so that showing thousands costs no more than ten."""
    if len(frontier.budgets) <= ROWS:
        return frontier
    return frontier.thinned(np.linspace(0, len(frontier.budgets) - 1, ROWS).round().astype(int))


def _plan(group: str | None, rows: Sequence[dict[str, Any]], frontier: Frontier) -> Table:
    def stacked(entry: dict[str, Any], write: Any = number) -> str:
        return interval(entry["median"], entry["lower"], entry["upper"], write, "\n")

    return Table(
        f"{_named(group)}compute-optimal plan, {kind(frontier.level)}",
        (
            "budget\nFLOP",
            "N_opt\nparameters",
            "D_opt\ntokens",
            "tokens per\nparameter",
            f"loss\n{_short(frontier.loss_unit)}",
        ),
        tuple(
            (
                number(row["budget_flop"]),
                stacked(row["n_opt_params"], count),
                stacked(row["d_opt_tokens"], count),
                stacked(row["tokens_per_parameter"]),
                stacked(row["loss"]),
            )
            for row in rows
        ),
    )


def _short(unit: str) -> str:
    """The unit on lines short enough for a column."""
    return unit.replace(" per ", "/") if len(unit) > 10 else unit


def _reach_table(group: str | None, rows: Sequence[dict[str, Any]]) -> Table:
    missing = any(row["no_optimum_share"] for row in rows)

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        band = row["n_within_1_percent_params"]
        exponents = (interval(*(row[x][end] for end in ("median", "lower", "upper")), between="\n") for x in ("a", "b"))
        share = (f"{100 * row['no_optimum_share']:.1f} %",) if missing else ()
        ends = f"{count(band['lower'])} to {count(band['upper'])}"
        return (number(row["budget_flop"]), number(row["extrapolation_factor"]), ends, *exponents, *share)

    header = (
        "budget\nFLOP",
        "x largest\nrun",
        "N within 1 %\nof the best loss",
        "a in\nN_opt ~ C^a",
        "b in\nD_opt ~ C^b",
    )
    last = ("no\noptimum",) if missing else ()
    return Table(f"{_named(group)}reach, flatness, exponents", header + last, tuple(map(cells, rows)))


def _far(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{_named(row['group'])}{number(row['budget_flop'])} FLOP is {reach(row['extrapolation_factor'])}; "
        f"N_opt is {_times(row['n_opt_extrapolation_factor'])} the largest size, "
        f"D_opt {_times(row['d_opt_extrapolation_factor'])} the most tokens"
        for row in rows
        if row["far"]
    ]


def _times(factor: float | None) -> str:
    return f"{number(factor)} times"


def _without(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{_named(row['group'])}{number(row['budget_flop'])} FLOP: {100 * row['no_optimum_share']:.1f} % of the draws "
        "have no optimum inside the law's domain"
        + ("; no interval is given" if row["n_opt_params"]["median"] is None else "")
        for row in rows
        if row["no_optimum_share"]
    ]


@page.register
def _forecast(forecast: Forecast) -> Page:
    table = forecast.to_dataframe()
    keep = np.unique(np.linspace(0, len(table) - 1, ROWS).round().astype(int)) if len(table) else []
    shown = table.iloc[keep]
    inputs = [c for c in forecast.runs if c not in ("flop", "group", "extrapolation_factor")]
    grouped = bool(table["group"].notna().any())
    far = [
        f"{number(row.flop)} FLOP is {reach(row.extrapolation_factor)}"
        for row in shown.itertuples()
        if row.extrapolation_factor > 1
    ]
    header = (
        *(("group",) if grouped else ()),
        *("\n".join(NUMBERS_OF.get(c, (c, ""))) for c in inputs),
        "mean loss\n",
        "loss of a\nnew run",
    )

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        ends = [[row[f"loss_{of}_{end}"] for end in ("median", "lower", "upper")] for of in ("mean", "new_run")]
        name = (printable(str(row["group"])),) if grouped else ()
        return (*name, *(count(row[c]) for c in inputs), *(interval(*e, between="\n") for e in ends))

    return Page(
        status(forecast.status),
        f"Forecast, diagnostics {forecast.status}: {amount(len(table), 'run')}",
        (f"loss in {forecast.loss_unit}, median and {kind(forecast.level)} interval",),
        [
            Table("", header, tuple(map(cells, shown.to_dict("records")))),
            *_left_over(len(table) - len(shown), "row", "to_dataframe()"),
            *_notes("Mind", list(dict.fromkeys(far))),
        ],
    )


def _largest(largest: Any) -> str:
    n, d, c = count(largest["n_params"]), count(largest["n_tokens"]), number(largest["flop"])
    return f"largest run: {n} parameters, {d} tokens, {c} FLOP"


def _named(group: str | None) -> str:
    return "" if group is None else f"Group {printable(group)}: "


def _notes(heading: str, lines: Sequence[str]) -> list[Notes]:
    return [Notes(heading, tuple(lines))] if lines else []


def _left_over(more: int, noun: str, where: str) -> list[Notes]:
    return [Notes("Not shown", (f"{amount(more, f'more {noun}')}: {where} has them all",))] if more > 0 else []
