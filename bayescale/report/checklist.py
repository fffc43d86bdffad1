"""The reporting checklist of Li et al. 2025, "(Mis)Fitting" (arXiv 2502.18969), filled in from a fit.

What a table of runs does not tell is asked for by name: notes kept with the fit (its ``metadata``) answer it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescale.posterior.posterior import Posterior
from bayescale.report.tables import Table
from bayescale.report.words import ENGINES, amount, count, drawn_from, equation, number, some
from bayescale.runs.units import UNITS

ASKED = "NOT IN THE TABLE; metadata={{{!r}: ...}} of the fit says it here"


def checklist(posterior: Posterior) -> Table:
    """Four groups of items, each with what the fit says."""
    rows = [
        *_form(posterior),
        *(_training(posterior) if posterior.runs is not None else [("2 training setup", "runs", "none: published")]),
        *(_collection(posterior) if posterior.runs is not None else []),
        *_fitting(posterior),
    ]
    return Table("Li et al. 2025, arXiv 2502.18969", ("group", "item", "this fit"), tuple(rows))


def _form(posterior: Posterior) -> list[tuple[str, str, str]]:
    of, law = "1 form and hypothesis", posterior.law
    shared = type(posterior.model.pooling).__name__.lower()
    by = f" by {posterior.model.pooling.by!r}" if posterior.model.pooling.by else ", one law for all runs"
    return [
        (of, "form", equation(posterior.model)),
        (of, "variables", ", ".join(law.inputs)),
        (of, "unknowns", f"{len(posterior.model.parameters)}: {', '.join(p.name for p in posterior.model.parameters)}"),
        (of, "what differs between groups", f"{shared} pooling{by}"),
    ]


def _training(posterior: Posterior) -> list[tuple[str, str, str]]:
    of, runs = "2 training setup", posterior.runs
    assert runs is not None
    low, high = {k: float(np.min(runs.table[k].to_numpy(float))) for k in UNITS}, runs.largest
    counts = f"{runs.counts} parameters" if runs.counts else "parameters as the table counts them"
    return [
        (of, "number of models", amount(len(runs), "run")),
        (of, "sizes", f"{count(low['n_params'])} to {count(high['n_params'])} {counts}"),
        (of, "tokens", f"{count(low['n_tokens'])} to {count(high['n_tokens'])}"),
        (of, "compute", f"{number(low['flop'])} to {number(high['flop'])} FLOP, {runs.rule}"),
        (of, "training data", _noted(posterior, "training_data")),
        (of, "architecture", _noted(posterior, "architecture")),
        (of, "optimiser and hyper-parameters", _noted(posterior, "hyper_parameters")),
        (of, "repeated or multi-epoch data", _noted(posterior, "epochs")),
    ]


def _collection(posterior: Posterior) -> list[tuple[str, str, str]]:
    of, runs = "3 data collection", posterior.runs
    assert runs is not None
    out = [str(run) for run in runs.left_out["run"]]
    left = f"; {amount(len(out), 'row')} left out: {some(out)}" if out else "; none left out"
    se = int(np.isfinite(runs.table["loss_se"].to_numpy(float)).sum())
    return [
        (of, "checkpoints", f"{_rows(posterior)}{left}"),
        (of, "metric", f"loss in {runs.loss_unit}; measurement error given for {amount(se, 'run')}"),
        (of, "evaluation set", _noted(posterior, "evaluation_set")),
        (of, "where the table is", f"{runs.source}, SHA-256 {posterior.info['table_hash'][:12]}…"),
    ]


def _rows(posterior: Posterior) -> str:
    shared = " and ".join(f"of one {s.by}" for s in posterior.model.shocks)
    return f"rows {shared} share a shock of log loss" if shared else "one row a run, taken as finished"


def _fitting(posterior: Posterior) -> list[tuple[str, str, str]]:
    of, info, runs = "4 fitting", posterior.info, posterior.runs
    rows = [(of, "method", ENGINES[info["engine"]])]
    if runs is not None:
        scatter = type(posterior.model.noise).__name__
        none = "none: `bayescale backtest RUNS` holds larger runs out"
        rows += [
            (of, "objective", f"joint density of log loss, {scatter} scatter, and the priors under Law and priors"),
            (of, "start", _start(info)),
            (of, "coverage of N and D", _coverage(runs)),
            (of, "data against unknowns", f"{len(runs)} runs, {len(posterior.model.parameters)} unknowns a group"),
            (
                of,
                "held-out runs",
                _noted(posterior, "held_out", none),
            ),
        ]
    return [
        *rows,
        (of, "uncertainty", f"draws of the {drawn_from(posterior)}; equal-tailed intervals"),
        (of, "convergence", f"diagnostics {posterior.status}: {', '.join(c.name for c in posterior.checks)}"),
        (of, "code", f"bayescale {info.get('versions', {}).get('bayescale', '')}".strip()),
    ]


def _start(info: Any) -> str:
    searches = info.get("mode_searches")
    if not searches:
        return "-"
    return f"{searches['agree']} of {searches['converged']} searches for the mode ended at the same one"


def _coverage(runs: Any) -> str:
    """Spread of the design, and whether sizes and tokens vary apart."""
    log_n, log_d = (np.log10(runs.table[k].to_numpy(float)) for k in ("n_params", "n_tokens"))
    spans = f"{np.ptp(log_n):.1f} decades of N, {np.ptp(log_d):.1f} of D"
    if len(runs) < 3 or not (np.ptp(log_n) and np.ptp(log_d)):
        return spans
    return f"{spans}, correlation of their logs {np.corrcoef(log_n, log_d)[0, 1]:.2f}"


def _noted(posterior: Posterior, name: str, otherwise: str | None = None) -> str:
    """What the notes kept with the fit say."""
    said = posterior.metadata.get(name)
    return str(said) if said is not None else (otherwise or ASKED.format(name))
