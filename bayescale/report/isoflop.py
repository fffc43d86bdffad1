"""The pages of the frontier without a law: IsoFLOP minima, the envelope, and the check of a fit against minima."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescale.frontier.envelope import Envelope
from bayescale.frontier.isoflop import Minima
from bayescale.frontier.isoflop_check import IsoflopCheck
from bayescale.report.plans import ROWS, left_over, named, notes, short
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import NONE, amount, count, interval, kind, number, status

MOST_DIGITS = 4  # four intervals beside each other in 80 columns
BIAS = "the envelope is biased where sizes are few: between those trained it can only choose the nearest"
POINTS = "an interval holds no bias of the parabola, and no correlation of budgets that are points of one run"


def minima_page(found: Minima) -> Page:
    """Each group's power law and minima, then what was refused."""
    results = found.to_dict()["results"]
    shown = results[:ROWS]
    kept, refused = len(found.table), len(found.refused)
    return Page(
        None,
        f"IsoFLOP minima of {found.source}: {amount(kept, 'budget')}, {refused} refused; no law assumed",
        (
            f"estimate and {_bootstrap(found.level, found.settings)}",
            f"parabola of log loss in log N through the runs within {100 * (found.settings['near'] - 1):.3g} % of a "
            "budget's lowest loss, or the five lowest",
        ),
        [
            *(table for r in shown for table in (*_power(r, "minima"), *_minima(r, found.loss_unit))),
            *left_over(len(results) - len(shown), "group", "to_dataframe()"),
            *left_over(sum(max(0, len(r["minima"]) - ROWS) for r in shown), "budget", "to_dataframe()"),
            *notes("Refused", _refused(results)),
            Notes("Mind", (POINTS,)),
        ],
    )


def envelope_page(found: Envelope) -> Page:
    """Each group's power law and the runs on its envelope."""
    results = found.to_dict()["results"]
    shown = results[:ROWS]
    return Page(
        None,
        f"Lower envelope of {found.source}: {len(found.table)} of {amount(found.n_runs, 'run')}; no law assumed",
        (f"estimate and {_bootstrap(found.level, found.settings)}",),
        [
            *(table for r in shown for table in (*_power(r, "runs on the envelope"), _runs(r, found.loss_unit))),
            *left_over(len(results) - len(shown), "group", "to_dataframe()"),
            Notes("Mind", (BIAS,)),
        ],
    )


def check_page(found: IsoflopCheck) -> Page:
    """Which minima the fit would not have made."""
    results = found.to_dict()["results"]
    judged = [b["inside"] for r in results for b in r["budgets"] if b["inside"] is not None]
    return Page(
        status(found.diagnostics),
        f"IsoFLOP minima against the posterior predictive, diagnostics {found.diagnostics}: "
        f"{sum(judged)} of {len(judged)} inside",
        (f"median and {kind(found.level)} interval of tables that the fit would make, by the same parabolas",),
        [
            *(table for r in results[:ROWS] for table in _compared(r)),
            *left_over(len(results) - ROWS, "group", "to_dataframe()"),
            *left_over(sum(max(0, len(r["budgets"]) - ROWS) for r in results[:ROWS]), "budget", "to_dataframe()"),
        ],
    )


def _power(result: dict[str, Any], of: str) -> list[Table]:
    law = result["power_law"]
    if law is None:
        return []
    header = ("a in\nN ~ C^a", "b in\nD ~ C^b", "N at centre\nparameters", "centre\nFLOP")
    b = NONE if law["b"] is None else _ends(law["b"])
    cells = _ends(law["a"]), b, _ends(law["n_opt_at_center_params"], count), number(law["center_flop"])
    return [Table(f"{named(result['group'])}power law through the {of}", header, (cells,))]


def _minima(result: dict[str, Any], unit: str) -> list[Table]:
    header = ("budget\nFLOP", "N_opt\nparameters", "D_opt\ntokens", "tokens per\nparameter")
    rows = tuple(
        (
            number(row["budget_flop"]),
            _ends(row["n_opt_params"], count),
            _ends(row["d_opt_tokens"], count),
            _ends(row["tokens_per_parameter"]),
            _ends(row["loss"]),
        )
        for row in _some(result["minima"])
    )
    return [Table(f"{named(result['group'])}minima", (*header, f"loss\n{short(unit)}"), rows)] if rows else []


def _runs(result: dict[str, Any], unit: str) -> Table:
    header = ("compute\nFLOP", "N\nparameters", "D\ntokens", "tokens per\nparameter", f"loss\n{short(unit)}")
    rows = _some(result["runs"])
    more = f", {len(rows)} of {len(result['runs'])}" if len(rows) < len(result["runs"]) else ""
    return Table(
        f"{named(result['group'])}runs on the envelope{more}",
        header,
        tuple(
            (
                number(row["flop"]),
                count(row["n_params"]),
                count(row["n_tokens"]),
                number(row["tokens_per_parameter"]),
                number(row["loss"], 4),
            )
            for row in rows
        ),
    )


def _compared(result: dict[str, Any]) -> list[Table | Notes]:
    header = ("budget\nFLOP", "N_opt observed\nparameters", "predictive\nparameters", "inside\n", "tables without\n%")

    def cells(row: dict[str, Any], name: str, write: Any) -> tuple[str, ...]:
        q = row[f"predictive_{name}"]
        inside = {True: "yes", False: "no", None: NONE}[row["inside"]]
        predictive = interval(q["median"], q["lower"], q["upper"], write)
        return write(row[f"observed_{name}"], 3), predictive, inside, number(100 * row["no_minimum_share"])

    rows = tuple((number(b["budget_flop"]), *cells(b, "n_opt_params", count)) for b in _some(result["budgets"]))
    if not rows:
        return []
    tables: list[Table | Notes] = [Table(f"{named(result['group'])}minima", header, rows)]
    if result["a"] is None:
        return tables
    of = ("exponent", "observed", "predictive", "inside", "tables without, %")
    return [*tables, Table(f"{named(result['group'])}N_opt ~ C^a", of, (("a", *cells(result["a"], "a", number)),))]


def _refused(results: list[dict[str, Any]]) -> list[str]:
    said = [f"{named(r['group'])}{number(b['budget_flop'])} FLOP: {b['reason']}" for r in results for b in r["refused"]]
    return said if len(said) <= ROWS else [*said[:ROWS], f"{amount(len(said) - ROWS, 'more budget')}: refused has them"]


def _ends(q: dict[str, Any], write: Any = number) -> str:
    def cut(value: float | None, digits: int) -> str:
        return write(value, min(digits, MOST_DIGITS))

    return interval(q["estimate"], q["lower"], q["upper"], cut, "\n")


def _bootstrap(level: float, settings: Any) -> str:
    resamples = amount(settings["resamples"], "resample")
    return f"{kind(level)} interval, percentiles of a bootstrap ({resamples}, seed {settings['seed']})"


def _some(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most ``ROWS``, evenly spaced."""
    keep = np.unique(np.linspace(0, len(rows) - 1, ROWS).round().astype(int)) if rows else []
    return [rows[i] for i in keep]
