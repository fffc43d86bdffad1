"""The page of pilots: which run to make before the plan is carried out, or that none is worth its cost."""

from __future__ import annotations

from typing import Any

from bayescale.decision.pilots import Pilots
from bayescale.report.plans import NUMBERS_OF, ROWS, largest, left_over, notes, short
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, count, number, status


def pilots_page(pilots: Pilots) -> Page:
    """The answer first, then every candidate, batches, and what the figures mean."""
    found = pilots.to_dict()
    plan, unit = found["plan"], found["unit"]
    shown = found["results"][:ROWS]
    return Page(
        status(pilots.diagnostics, warning=pilots.warning),
        f"{_answer(found)}, diagnostics {pilots.diagnostics}",
        (
            f"without a pilot: {count(plan['n_params'])} parameters on {count(plan['n_tokens'])} tokens, "
            f"{number(plan['flop'])} FLOP",
            f"{found['objective']['name']} as small as possible, by its {found['objective']['risk']}",
            f"a unit of it ({unit}) is worth {number(found['unit_worth_flop'])} FLOP: {found['unit_worth_from']}",
            f"to know the law would be worth {number(found['perfect_information'])} {unit}, "
            f"{number(found['perfect_information_flop'])} FLOP",
        ),
        [
            Table(
                f"What a pilot is worth, gain in {short(unit)} +- Monte Carlo error", _header(shown[0]), _rows(shown)
            ),
            *left_over(len(found["results"]) - len(shown), "candidate", "to_dataframe()"),
            *notes("Together", [_step(each, unit) for each in found["steps"][1:]]),
            *notes("Mind", _mind(shown, found["steps"])),
            Notes(
                "It rests on",
                (
                    "gain: expected fall of the risk when the plan is made again with the losses seen, over what "
                    "they may be",
                    f"{pilots.plan.problem.outlook.size:,} joint draws, weighted by the likelihood of each loss; "
                    "nothing was fitted again",
                    largest(pilots.plan.posterior.largest),
                ),
            ),
        ],
    )


def _answer(found: dict[str, Any]) -> str:
    if found["stop"]:
        return "Stop: another pilot costs more than it is worth"
    runs = "; ".join(map(_run, found["batch"]))
    return f"Make {'this run' if len(found['batch']) == 1 else 'these runs'} next: {runs}"


def _run(run: dict[str, float]) -> str:
    own = [name for name in run if name in NUMBERS_OF]
    words = [f"{count(run[name])} {NUMBERS_OF[name][1]}" for name in own]
    words += [f"{name} {number(run[name])}" for name in run if name not in (*own, "replicates")]
    times = f", {run['replicates']:g} times" if run["replicates"] > 1 else ""
    return ", ".join(words) + times


def _header(first: dict[str, Any]) -> tuple[str, ...]:
    inputs = ["\n".join(NUMBERS_OF[name]) for name in first if name in NUMBERS_OF]
    money = ("net\ndollars",) if "net_dollars" in first else ()
    return (*inputs, "gain\n", "gain\nFLOP", "cost\nFLOP", "net\nFLOP", *money, "N then\n5 to 95 %")


def _rows(results: list[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_cells, results))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    inputs = [count(row[name]) for name in row if name in NUMBERS_OF]
    money = (number(row["net_dollars"]),) if "net_dollars" in row else ()
    least = "at least " if row["is_lower_bound"] else ""
    error = "" if row["gain_error"] is None else f"\n+- {number(row['gain_error'], 2)}"
    then = row["n_params_then"]
    return (
        *inputs,
        f"{least}{number(row['gain'])}{error}",
        *(number(row[f"{name}_flop"]) for name in ("gain", "cost", "net")),
        *money,
        f"{count(then['lower'])}\nto {count(then['upper'])}",
    )


def _step(step: dict[str, Any], unit: str) -> str:
    runs = "; ".join(map(_run, step["runs"]))
    return (
        f"{amount(len(step['runs']), 'run')}: {runs}: gain {number(step['gain'])} +- {number(step['gain_error'], 2)} "
        f"{unit}, net {number(step['net_flop'])} FLOP"
    )


def _mind(shown: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[str]:
    lines = []
    if any(row["is_lower_bound"] for row in (*shown, *steps)):
        lines.append(
            "where a gain is 'at least', too few draws agree with such losses, and it is that of noisier runs; "
            "more draws (NUTS(draws=...)) tell it better"
        )
    best = shown[0]
    if best["gain_error"] and abs(best["net_flop"]) < 2 * best["gain_error"] * best["gain_flop"] / (best["gain"] or 1):
        lines.append("the best candidate's net worth is within two Monte Carlo errors of nothing")
    return lines
