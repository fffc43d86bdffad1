"""The pages of plans: of a frontier and of a forecast, with what the law alone says beside what is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayescale.frontier.frontier import Frontier
from bayescale.frontier.multiplier import Multipliers
from bayescale.posterior.predict import Forecast
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, count, interval, kind, number, printable, problem, reach, status

ROWS = 10  # rows of a table and groups of a result that are shown; the rest is in to_dataframe()
NUMBERS_OF = {
    "n_params": ("N", "parameters"),
    "n_active_params": ("N", "active parameters"),
    "n_total_params": ("N", "total parameters"),
    "n_tokens": ("D", "tokens"),
}


def frontier_page(frontier: Frontier) -> Page:
    shown = _thinned(frontier)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in shown.to_dict()["results"]:
        groups.setdefault(row["group"], []).append(row)
    some_groups = dict(list(groups.items())[:ROWS])
    rows = [row for own in some_groups.values() for row in own]
    return Page(
        status(frontier.diagnostics, warning=frontier.warning),
        f"Compute-optimal frontier, diagnostics {frontier.diagnostics}: {problem(frontier)}",
        (
            largest(frontier.largest),
            *(f"{name} = {number(value)}" for name, value in frontier.conditions.items()),
            f"median and {kind(frontier.level)} interval over draws that have an optimum",
        ),
        [
            *(table for group, own in some_groups.items() for table in _tables(group, own, frontier)),
            *left_over(len(groups) - len(some_groups), "group", "to_dataframe()"),
            *left_over(len(frontier.budgets) - len(shown.budgets), "budget", "to_dataframe()"),
            *notes("Not determined by these runs", [*map(_undetermined, (r for r in rows if r["compute_wasted"]))]),
            *notes("Mind", [*_far(rows), *_without(rows)]),
        ],
    )


def _thinned(frontier: Frontier) -> Frontier:
    """At most ``ROWS`` of the budgets, evenly spaced, so that showing thousands costs no more than ten."""
    if len(frontier.budgets) <= ROWS:
        return frontier
    return frontier.thinned(np.linspace(0, len(frontier.budgets) - 1, ROWS).round().astype(int))


def _tables(group: str | None, rows: Sequence[dict[str, Any]], frontier: Frontier) -> list[Table | Notes]:
    level = kind(frontier.level)
    found: list[Table | Notes] = [
        _plan(group, rows, frontier, f"compute-optimal plan, {level}"),
        _reach_table(group, rows),
    ]
    if frontier.law_alone is None:
        return found
    alone = [row["law_alone"] for row in rows]
    drifts = [said for row in rows if (said := _drift(row))]
    shares = notes(f"{named(group)}share of the intervals' widths that is drift", drifts)
    of = frontier.law_alone.diagnostics
    caption = f"the law alone, were it exact at every scale, {level}{'' if of == 'PASS' else f'; diagnostics {of}'}"
    return [*found, _plan(group, alone, frontier, caption), *shares]


def _drift(row: dict[str, Any]) -> str:
    names = {"n_opt_params": "N_opt", "tokens_per_parameter": "tokens per parameter", "loss": "loss"}
    shares = [f"{names[k]} {100 * v:.0f} %" for k, v in row["drift_share"].items() if k in names and v is not None]
    return f"{number(row['budget_flop'])} FLOP: {', '.join(shares)}" if shares else ""


def _undetermined(row: dict[str, Any]) -> str:
    ratio, waste = row["tokens_per_parameter"], row["compute_wasted"]
    choices = ", ".join(
        f"{count(w['n_params'])} wastes {100 * w['median']:.0f} % (at most {100 * w['upper']:.0f} %)"
        for w in waste.values()
        if w["median"] is not None
    )
    return (
        f"{named(row['group'])}tokens per parameter at {number(row['budget_flop'])} FLOP, anything from "
        f"{number(ratio['lower'])} to {number(ratio['upper'])}. Of the compute, a model of {choices}"
    )


def _plan(group: str | None, rows: Sequence[dict[str, Any]], frontier: Frontier, caption: str) -> Table:
    def stacked(entry: dict[str, Any], write: Any = number) -> str:
        return interval(entry["median"], entry["lower"], entry["upper"], write, "\n")

    return Table(
        f"{named(group)}{caption}",
        (
            "budget\nFLOP",
            "N_opt\nparameters",
            "D_opt\ntokens",
            "tokens per\nparameter",
            f"loss\n{short(frontier.loss_unit)}",
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


def short(unit: str) -> str:
    """The unit on lines short enough for a column."""
    return unit.replace(" per ", "/") if len(unit) > 10 else unit


def _reach_table(group: str | None, rows: Sequence[dict[str, Any]]) -> Table:
    missing = any(row["no_optimum_share"] for row in rows)

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        band = row["n_within_1_percent_params"]
        exponents = (interval(*(row[x][end] for end in ("median", "lower", "upper")), between="\n") for x in ("a", "b"))
        share = (f"{100 * row['no_optimum_share']:.1f} %",) if missing else ()
        ends = "-" if band["lower"] is None else f"{count(band['lower'])} to {count(band['upper'])}"
        return (number(row["budget_flop"]), number(row["extrapolation_factor"]), ends, *exponents, *share)

    header = (
        "budget\nFLOP",
        "x largest\nrun",
        "N within 1 %\nof the best loss",
        "a in\nN_opt ~ C^a",
        "b in\nD_opt ~ C^b",
    )
    last = ("no\noptimum",) if missing else ()
    return Table(f"{named(group)}reach, flatness, exponents", header + last, tuple(map(cells, rows)))


def _far(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{named(row['group'])}{number(row['budget_flop'])} FLOP is {reach(row['extrapolation_factor'])}" + _beyond(row)
        for row in rows
        if row["far"]
    ]


def _beyond(row: dict[str, Any]) -> str:
    n, d = row["n_opt_extrapolation_factor"], row["d_opt_extrapolation_factor"]
    if n is None or d is None:
        return ""
    return f"; N_opt is {number(n)} times the largest size, D_opt {number(d)} times the most tokens"


def _without(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{named(row['group'])}{number(row['budget_flop'])} FLOP: {100 * row['no_optimum_share']:.1f} % of the draws "
        "have no optimum inside the law's domain"
        + ("; no interval is given" if row["n_opt_params"]["median"] is None else "")
        for row in rows
        if row["no_optimum_share"]
    ]


def forecast_page(forecast: Forecast) -> Page:
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
        *(("a new run,\nlaw alone",) if forecast.law_alone else ()),
    )

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        shown = ("loss_mean", "loss_new_run", *(("law_alone_loss_new_run",) if forecast.law_alone else ()))
        ends = [[row[f"{of}_{end}"] for end in ("median", "lower", "upper")] for of in shown]
        name = (printable(str(row["group"])),) if grouped else ()
        return (*name, *(count(row[c]) for c in inputs), *(interval(*e, between="\n") for e in ends))

    return Page(
        status(forecast.status, warning=forecast.warning),
        f"Forecast, diagnostics {forecast.status}: {amount(len(table), 'run')}",
        (f"loss in {forecast.loss_unit}, median and {kind(forecast.level)} interval",),
        [
            Table("", header, tuple(map(cells, shown.to_dict("records")))),
            *left_over(len(table) - len(shown), "row", "to_dataframe()"),
            *notes("Mind", list(dict.fromkeys(far))),
        ],
    )


def multipliers_page(found: Multipliers) -> Page:
    rows, of = found.to_dict()["results"], f"of {printable(found.reference)}'s compute"
    header = ("budget\nFLOP", "group", f"compute needed\n{of}", "better with\nprobability")
    header += ("compute needed,\nlaw alone",) if found.law_alone else ()
    shown = rows[: ROWS * len(found.log_ratio)]

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        each = [row["multiplier"], *([row["law_alone"]["multiplier"]] if found.law_alone else [])]
        ends = [interval(*(m[k] for k in ("median", "lower", "upper")), between="\n") for m in each]
        better = "-" if row["better_probability"] is None else f"{row['better_probability']:.2f}"
        return (number(row["budget_flop"]), printable(row["group"]), ends[0], better, *ends[1:])

    outside = [
        f"{named(row['group'])}{number(row['budget_flop'])} FLOP: {100 * row['outside_share']:.1f} % of the draws "
        f"need under a thousandth or over a thousand times the compute of {printable(found.reference)}"
        for row in shown
        if row["outside_share"]
    ]
    far = [
        f"{number(row['budget_flop'])} FLOP is {reach(row['extrapolation_factor'])}"
        for row in shown
        if row["extrapolation_factor"] > 1
    ]
    return Page(
        status(found.frontier.diagnostics, warning=found.warning),
        f"Compute that groups need for the best loss of {printable(found.reference)}, {found.frontier.rule}",
        (largest(found.frontier.largest), f"median and {kind(found.frontier.level)} interval over paired draws"),
        [
            Table("", header, tuple(map(cells, shown))),
            *left_over(len(rows) - len(shown), "row", "to_dataframe()"),
            *notes("Mind", [*dict.fromkeys(far), *outside]),
        ],
    )


def largest(runs: Mapping[str, float]) -> str:
    n, d, c = count(runs["n_params"]), count(runs["n_tokens"]), number(runs["flop"])
    return f"largest run: {n} parameters, {d} tokens, {c} FLOP"


def named(group: str | None) -> str:
    return "" if group is None else f"Group {printable(group)}: "


def notes(heading: str, lines: Sequence[str]) -> list[Notes]:
    return [Notes(heading, tuple(lines))] if lines else []


def left_over(more: int, noun: str, where: str) -> list[Notes]:
    return [Notes("Not shown", (f"{amount(more, f'more {noun}')}: {where} has them all",))] if more > 0 else []
