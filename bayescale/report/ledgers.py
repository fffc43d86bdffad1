"""A ledger as a page: what is open, what landed and where, and how little few runs tell."""

from __future__ import annotations

from typing import Any

from bayescale.posterior import landed, scores
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.landed import LEVEL
from bayescale.posterior.ledger import Ledger, hollow
from bayescale.posterior.scorecard import ALL
from bayescale.report.backtests import BY_FACTOR, ONE_ERROR, apart, by_factor, overall
from bayescale.report.plans import ROWS, left_over, named, notes
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, count, interval, kind, number, printable, some

NAMED = 18  # letters of a run's name that a column holds


def ledger_page(ledger: Ledger) -> Page:
    """What is said of a ledger: first, whether its forecasts could be relied on when they were written."""
    entries = ledger.entries()
    open_ones = [e for e in entries if e["landing"] is None]
    done = [e for e in entries if e["landing"]]
    scored = landed.scored(entries)
    summary = landed.summed(scored)
    unlike = [e for e in entries if hollow(e)]
    of = f"{len(unlike)} of {amount(len(entries), 'forecast')}"
    return Page(
        f"GATE: {HOLLOW} for {of}, named below." if unlike else None,
        f"Ledger {ledger.path}: {amount(len(open_ones), 'open forecast')}, {len(done)} landed",
        (
            f"loss of a new run, median and {kind(LEVEL)} interval, as written down before it landed",
            "x largest: compute over that of the largest run of the fit behind the forecast",
        ),
        [
            *_shown("Open", open_ones),
            *_shown("Landed", done),
            *_scored(summary),
            *notes("The gate did not pass when it was written", _those(unlike)),
            *notes("Diagnostics did not pass when it was written", _diagnosed(entries)),
            Notes("How little few runs tell", _little(scored, summary, len(open_ones))),
        ],
    )


def entry_page(entry: dict[str, Any]) -> Page:
    """One forecast, and what its run reached."""
    first = f"GATE: {HOLLOW}." if hollow(entry) else None
    landing, run = entry.get("landing"), printable(entry["run"])
    title = f"{run}: landed" if landing else f"{run}: forecast, to be landed"
    lines = [f"written {entry['written']}, by the fit {entry['fit']['fingerprint'][:12]}"]
    lines += [f"landed {landing['written']}"] if landing else []
    lines += [f"diagnostics of the fit {entry['diagnostics']}; loss in {entry['loss_unit']}"]
    caption = f"Loss of a new run, median and {kind(LEVEL)} interval"
    return Page(first, title, tuple(lines), [_table(caption, [entry])])


def _shown(caption: str, entries: list[dict[str, Any]]) -> list[Table | Notes]:
    """The latest of them."""
    more = left_over(len(entries) - ROWS, "forecast", "to_dataframe()")
    return [_table(caption, entries[-ROWS:]), *more] if entries else []


def _table(caption: str, entries: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for e in entries for name in e["quantiles"]))
    reached = ("reached\n",) if entries[0].get("landing") else ()
    header = ("run\n", "N\nD", "x\nlargest", *(name.replace(" ", "\n", 1) for name in names), *reached)
    return Table(caption, header, tuple(_row(e, names) for e in entries))


def _row(entry: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    run, group = printable(entry["run"]), entry["group"]
    who = run if len(run) <= NAMED else run[: NAMED - 1] + "…"
    ends = [landed.interval(entry, name) if name in entry["quantiles"] else None for name in names]
    last = (_reached(entry),) if entry.get("landing") else ()
    return (
        who if group is None else f"{who}\n{named(group).removesuffix(': ')}",
        f"{count(entry['n_params'])}\n{count(entry['n_tokens'])}",
        number(entry["extrapolation_factor"]),
        *(interval(*e, between="\n") if e else "-" for e in ends),
        *last,
    )


def _reached(entry: dict[str, Any]) -> str:
    """The loss, and whether the first forecaster's interval held it."""
    loss = entry["landing"]["loss"]
    _, lower, upper = landed.interval(entry, next(iter(entry["quantiles"])))
    return f"{number(loss, 4)}\n{'inside' if lower <= loss <= upper else 'above' if loss > upper else 'below'}"


def _scored(summary: Any) -> list[Table]:
    return [overall(summary), *(by_factor(summary, measure, LEVEL) for measure in BY_FACTOR)] if len(summary) else []


def _those(entries: list[dict[str, Any]]) -> list[str]:
    failed = {e["run"]: [c["name"] for c in e["gate"] if c["status"] != "PASS"] for e in entries}
    lines = [f"{printable(run)}: {', '.join(names)}" for run, names in failed.items()]
    return [*lines[:ROWS], *([f"and {len(lines) - ROWS} more"] if len(lines) > ROWS else [])]


def _diagnosed(entries: list[dict[str, Any]]) -> list[str]:
    of = {word: [printable(e["run"]) for e in entries if e["diagnostics"] == word] for word in ("FAIL", "UNKNOWN")}
    return [f"{word}: {some(runs, ROWS)}" for word, runs in of.items() if runs]


def _little(scored: Any, summary: Any, waiting: int) -> tuple[str, ...]:
    still = f"{amount(waiting, 'forecast')} not scored, being open: runs that never land may be those that went wrong"
    if not len(summary):
        return ("no forecast has landed: nothing is known of how good they are", *([still] if waiting else []))
    lines = []
    for row in summary[summary["bin"] == ALL].to_dict("records"):
        held = round(row["coverage"] * row["runs"])
        low, high = scores.chance(held, row["runs"])
        lines.append(
            f"{row['forecaster']}: {100 * LEVEL:g} % intervals held {held} of {amount(row['runs'], 'run')}; were these "
            f"independent, they would leave open a coverage of anything from {low:.2f} to {high:.2f}"
        )
    runs = scored.drop_duplicates("run")
    budgets = apart(runs["group"], runs["flop"])
    correlated = f"{amount(len(runs), 'run')} of {amount(budgets, 'budget')}: {ONE_ERROR}"
    return (*lines, correlated, *([still] if waiting else []))
