"""A link as a page: of each task whether it follows the loss and how; and scores of planned runs."""

from __future__ import annotations

from typing import Any

from bayescale.posterior.linked import Linked
from bayescale.posterior.score_forecast import MEAN, ScoreForecast
from bayescale.report.plans import ROWS, left_over, notes
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, count, interval, kind, number, printable, reach, status

UNPREDICTABLE = "unpredictable: no interval is given"


def linked_page(linked: Linked) -> Page:
    """What is said of a link."""
    told = linked.to_dict()
    rows = [each for each in told["results"] if each["predictable"]]
    letters = list(rows[0]["quantities"])
    checks = (*linked.checks, *(linked.posterior.checks if linked.posterior else ()))
    t = linked.scores.table
    loss, runs = t["loss"].to_numpy(float), len(set(t["run"]))
    scored = f"{amount(len(t), 'score')} of {amount(runs, 'run')}, losses {number(loss.min())} to {number(loss.max())}"
    law = linked.posterior and type(linked.posterior.law).__name__
    return Page(
        status(linked.status, checks),
        f"Link from loss to score: {type(linked.link).__name__}, {_formula(linked)}",
        (
            f"{scored} {linked.scores.loss_unit}",
            f"{amount(len(linked.tasks), 'task')} drawn from one population, {len(linked.unpredictable)} unpredictable",
            f"losses of planned runs by {law}, diagnostics {linked.posterior.status}"
            if linked.posterior
            else "no law: scores are given for losses only",
        ),
        [
            Table(
                f"The link of each task, median and {kind(told['level'])} interval; scores are shares of 1",
                ("task\nchance", *(f"{name}\n{_unit(rows[0], name)}" for name in letters)),
                tuple(_row(each, letters) for each in rows[:ROWS]),
            ),
            *left_over(len(rows) - ROWS, "task", "to_dataframe()"),
            *unpredictable(linked.unpredictable),
            *notes("Does the loss tell the score? On log odds, 1 is the best", [_verdict(v) for v in rows[:ROWS]]),
            Notes("Diagnostics of the link", tuple(map(str, linked.checks))),
            Notes("It rests on", (*_assumed(linked), *linked.scores.notes)),
        ],
    )


def _formula(linked: Linked) -> str:
    return (type(linked.link).__doc__ or "").splitlines()[0].rstrip(".")


def _unit(row: dict[str, Any], name: str) -> str:
    unit = row["quantities"][name]["unit"]
    return "" if unit == "1" else unit


def _row(row: dict[str, Any], letters: list[str]) -> tuple[str, ...]:
    ends = ("median", "lower", "upper")
    cells = (interval(*(row["quantities"][name][end] for end in ends), between="\n") for name in letters)
    return f"{printable(row['task'])}\n{number(row['chance'])}", *cells


def _verdict(row: dict[str, Any]) -> str:
    held = "" if row["held_out"] is None else f", forecasts {number(row['held_out'], 2)} of the runs of lowest loss"
    return (
        f"{row['task']}: {amount(row['n_scores'], 'score')}, rank correlation {number(row['rank'], 2)}, "
        f"explains {number(row['explained'], 2)}{held}"
    )


def unpredictable(reasons: Any) -> list[Notes]:
    """The tasks without a link, and why."""
    return notes(
        f"Unpredictable: no link, no interval, no part in the {MEAN}", [f"{t}: {r}" for t, r in reasons.items()]
    )


def _assumed(linked: Linked) -> tuple[str, ...]:
    return (
        "one link a task for all runs, whatever their data and recipe",
        f"scores scatter on their log odds, {type(linked.model.noise).__name__}; what one run misses its links by is "
        f"correlated between tasks, {number(linked.info['shared'], 2)}",
    )


def score_page(forecast: ScoreForecast) -> Page:
    """What is said of scores of planned runs."""
    told = forecast.to_dict()["results"]
    tables = [_scores(forecast, row) for row in told[:ROWS]]
    return Page(
        status(forecast.status, warning=forecast.warning),
        f"Scores of {amount(len(told), 'run')} at {amount(len(forecast.tasks), 'task')}",
        (
            "shares of 1; 'mean': of runs like it, 'new run': as one run is measured",
            f"{MEAN}: of the {len(forecast.tasks)} that have a link",
        ),
        [*tables, *left_over(len(told) - ROWS, "run", "to_dataframe()"), *unpredictable(forecast.unpredictable)],
    )


def _scores(forecast: ScoreForecast, row: dict[str, Any]) -> Table:
    named = f"Group {printable(str(row['group']))}: " if row.get("group") else ""
    if "flop" in row:
        size = next(v for k, v in row.items() if k.endswith("params"))
        run = f"{count(size)} parameters, {count(row['n_tokens'])} tokens, {reach(row['extrapolation_factor'])}"
    else:
        run = f"loss {number(row['loss'], 4)}"
    beyond = f"; mean loss below every scored run with probability {number(row['below_scored'], 2)}"
    far = beyond if row["below_scored"] > 0.05 else ""
    cells = [(task, each["score"]) for task, each in row["tasks"].items() if each["predictable"]]
    cells += [(MEAN, row["mean_over_tasks"]["score"])]
    rows = [(printable(task), *(_cell(score[of]) for of in ("mean", "new_run"))) for task, score in cells]
    rows += [(printable(task), UNPREDICTABLE, "-") for task in forecast.unpredictable]
    caption = f"{named}{run}{far}: score, median and {kind(forecast.level)} interval"
    return Table(caption, ("task", "mean", "new run"), tuple(rows))


def _cell(score: dict[str, float | None]) -> str:
    return interval(score["median"], score["lower"], score["upper"])
