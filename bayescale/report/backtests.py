"""A backtest as a page: scores of each forecaster, then how little one table can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescale.posterior.gate import APART, HOLLOW
from bayescale.posterior.scorecard import ALL, BINS, INSIDE, LEVELS, Backtest
from bayescale.report.plans import notes
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import NONE, amount, kind, number, printable

ONE_ERROR = "errors at one budget are almost perfectly correlated, so runs of one budget count as hardly more than one"
BY_FACTOR = {
    "coverage": "Share of new runs that the {kind} interval holds",
    "interval_score": "Interval score of the {kind} interval, log loss x 100: smaller is better",
    "bias_percent": "Median of forecast less what came, % of the loss",
}


def backtest_page(found: Backtest) -> Page:
    """What is said of a backtest: first the gate and diagnostics that did not pass."""
    splits: Any = found.splits
    groups = int(splits["group"].nunique(dropna=False))
    rows = splits.to_dict("records")
    unlike = [row for row in rows if row["gate"] not in (None, "PASS")]
    of = f"{amount(len(splits), 'split')} of {amount(groups, 'group')}"
    summary = found.summary()
    return Page(
        _first(rows, len(unlike)),
        f"Backtest of {found.source}: {of}",
        (
            f"each split trains on the runs with C <= C_max / r, at least {found.least}, and forecasts all larger ones",
            f"intervals of a new run, {kind(found.level)}; means within group, split and extrapolation factor, "
            "then over those",
        ),
        [
            overall(summary),
            *(by_factor(summary, measure, found.level) for measure in BY_FACTOR),
            *notes("The gate did not pass", [f"{_split(row)}: {row['gate_failed']}" for row in unlike]),
            *notes("Diagnostics that did not pass", _diagnostics(rows)),
            Notes("How little one table can show", _little(found, groups)),
        ],
    )


def overall(summary: Any) -> Table:
    """Every forecaster's scores over all that was forecast."""
    rows = summary[summary["bin"] == ALL].to_dict("records")
    shares = [f"{100 * p:g}" for p in LEVELS]
    return Table(
        "Share of new runs inside intervals of so many %, and scores of log loss x 100",
        ("forecaster", *(f"{share} %" for share in shares), "width\n%", "interval\nscore", "CRPS\n", "bias\n%"),
        tuple(
            (
                row["forecaster"],
                *(f"{row[f'coverage_{share}']:.2f}" for share in shares),
                *(number(row[name]) for name in ("width_percent", "interval_score", "crps")),
                _signed(row["bias_percent"]),
            )
            for row in rows
        ),
    )


def by_factor(summary: Any, measure: str, level: float) -> Table:
    """One score of every forecaster, by how far beyond the largest run of its fit a forecast lay."""
    forecasters = list(dict.fromkeys(summary["forecaster"]))
    write = {"coverage": "{:.2f}".format, "bias_percent": _signed}.get(measure, number)
    rows = []
    for b in (INSIDE, *BINS):
        own = summary[summary["bin"] == b].set_index("forecaster")
        if len(own):
            cells = (write(float(own.loc[name, measure])) if name in own.index else NONE for name in forecasters)
            runs = [str(own["runs"].get(name, 0)) for name in forecasters]
            rows.append((b, runs[0] if len(set(runs)) == 1 else ", ".join(runs), *cells))
    caption = BY_FACTOR[measure].format(kind=kind(level))
    return Table(caption, ("x largest run", "forecasts", *forecasters), tuple(rows))


def _signed(value: float) -> str:
    return f"{value:+.2f}"


def _split(row: dict[str, Any]) -> str:
    group = "" if row["group"] is None else f"group {printable(str(row['group']))}, "
    return f"{group}r = {row['factor']:g}, trained on {amount(row['trained_on'], 'run')}"


def _first(splits: list[dict[str, Any]], unlike: int) -> str | None:
    """How many splits are not to be relied on, and why; None where all are."""
    of = amount(len(splits), "split")
    said = [f"GATE: {HOLLOW} for {unlike} of {of}, named below."] if unlike else []
    for word, why in (("FAIL", "failed"), ("UNKNOWN", "are approximations or lack")):
        n = sum(word in (row["diagnostics_drift"], row["diagnostics_alone"]) for row in splits)
        said += [f"{word}: the fits of {n} of {of} {why} their diagnostics; named below."] if n else []
    return " ".join(said) or None


def _diagnostics(splits: list[dict[str, Any]]) -> list[str]:
    """Fits that did not pass; of the bootstrap, which is UNKNOWN by its nature, those that failed."""
    lines = []
    for row in splits:
        for word, fits in (("FAIL", ("drift", "alone", "bootstrap")), ("UNKNOWN", ("drift", "alone"))):
            named = [fit for fit in fits if row[f"diagnostics_{fit}"] == word]
            lines += [f"{_split(row)}: {word} of {', '.join(named)}"] if named else []
    return lines


def apart(group: Any, flop: Any) -> int:
    """How many budgets so many runs make: those of one group and about one compute are one."""
    budget = np.round(np.log10(np.asarray(flop, float)) / APART)
    return len(set(zip(map(str, group), budget, strict=True)))


def _little(found: Backtest, groups: int) -> tuple[str, ...]:
    predictions: Any = found.predictions
    own = predictions[predictions["forecaster"] == predictions["forecaster"].iloc[0]]
    budgets = apart(own["group"], own["flop"])
    return (
        f"{amount(len(found.splits), 'split')}, of which at most {groups} are independent: the splits of a group "
        "forecast the same largest runs from nested tables",
        f"{amount(len(own), 'forecast')} of {amount(budgets, 'budget')}: {ONE_ERROR}",
        f"so a {100 * found.level:g} % interval may hold all or none of them and be calibrated all the same; "
        "whether it is, only many tables can show",
    )
