"""What every answer of a fit rests on: sections on its data, law, diagnostics, assumptions and provenance."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescale.posterior.posterior import Posterior
from bayescale.report import checks, show
from bayescale.report.checklist import checklist
from bayescale.report.document import Figure, Section, sections
from bayescale.report.plans import ROWS, left_over, notes
from bayescale.report.plots import plot_fit, plot_posterior, plot_residuals
from bayescale.report.reproduce import provenance
from bayescale.report.tables import Notes, Table
from bayescale.report.words import amount, count, kind, number

DRAWN = 4  # draws that a density takes at least


def evidence(posterior: Posterior) -> list[Section]:
    """The sections, in the order of a report."""
    found = checks.checks(posterior)
    return list(
        sections(
            Section("data", "Data used, and rows flagged", _data(posterior, found)),
            Section("law", "Law and priors", _law(posterior)),
            Section("diagnostics", "Diagnostics", [*checks.sampling(posterior), *checks.model_checks(found)]),
            Section("assumptions", "Assumptions", notes("It rests on", show.assumptions(posterior))),
            Section("checklist", "Reporting checklist", [checklist(posterior)]),
            Section("provenance", "Provenance", provenance(posterior)),
        )
    )


def _data(posterior: Posterior, found: dict[str, Any]) -> list[Table | Notes | Figure]:
    runs = posterior.runs
    if runs is None:
        return []
    units: dict[str, Any] = {"n_params": ("parameters", count), "n_tokens": ("tokens", count), "flop": ("FLOP", number)}
    units |= {"loss": (runs.loss_unit, lambda value: number(value, 4))}
    quantiles = {name: np.quantile(runs.table[name].to_numpy(float), [0, 0.5, 1]) for name in units}
    rows = [(name, *map(write, quantiles[name]), unit) for name, (unit, write) in units.items()]
    caption = f"{amount(len(runs), 'run')} of {runs.source}"
    return [
        Table(caption, ("", "least", "median", "most", "unit"), tuple(rows)),
        *_groups(posterior),
        *_pictures(posterior),
        *checks.design(found),
        *checks.flagged(found),
    ]


def _groups(posterior: Posterior) -> list[Table | Notes]:
    sizes = posterior.info.get("runs_per_group", {})
    if not posterior.groups:
        return []
    shown = [(name, str(n)) for name, n in list(sizes.items())[:ROWS]]
    caption = f"Groups by {posterior.model.pooling.by!r}"
    return [Table(caption, ("group", "runs"), tuple(shown)), *left_over(len(sizes) - ROWS, "group", "summary()")]


def _pictures(posterior: Posterior) -> list[Figure]:
    """Of a fit that runs made."""
    if not checks.used_runs(posterior):
        return []
    group = posterior.groups[0] if posterior.groups else None
    of = f" of group {group}" if group is not None else ""
    fit = f"Loss against compute: the runs{of}, and the law at some sizes"
    return [
        Figure(lambda: plot_fit(posterior, group=group), fit),
        Figure(lambda: plot_residuals(posterior), "Residuals of log loss against compute, run by run"),
    ]


def _law(posterior: Posterior) -> list[Table | Notes | Figure]:
    letters = [part for part in show.page(posterior).parts if isinstance(part, Table)]
    draws = posterior.tree["posterior"].sizes
    drawn = draws["chain"] * draws["draw"] >= DRAWN
    alt = f"Pair plot of the law's letters, with medians and {kind(0.9)} intervals"
    figures = [Figure(lambda: plot_posterior(posterior), alt)] if drawn else []
    model = show.page(posterior.model)
    return [Notes(model.title, model.lines), *letters, *figures, *model.parts]
