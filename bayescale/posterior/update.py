"""A fit with more runs: the same model and engine on the table so far and what has come since."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from bayescale.inference._engine import Engine, Progress
from bayescale.inference.huber import Huber
from bayescale.inference.laplace import Laplace
from bayescale.inference.nuts import NUTS
from bayescale.inference.prior import FromPrior
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.runs.table import Runs

ENGINES: dict[str, type[Engine]] = {e.name: e for e in (NUTS, Laplace, FromPrior, Huber)}
ASKED = (
    "chains",
    "draws",
    "max_tree_depth",
    "searches",
    "delta",
)  # settings of which a fit's record holds what was asked


def update(posterior: Posterior, runs: Runs, *, seed: int | None = None, progress: Progress | None = None) -> Posterior:
    """Add runs to a fit: the same law, pooling, noise, priors, drift and engine, on all runs together.

    It is the posterior that `fit` gives of the joined table, since all of its runs are read anew; the reference
    run and the path's centre are those of the joined table.

    Parameters
    ----------
    posterior : Posterior
        A fit, with its table.
    runs : Runs
        What has been run since, in the same unit and by the same FLOP rule.
    seed : int, optional
        The fit's own unless given.
    progress : callable, optional
        As in `fit`.

    Returns
    -------
    Posterior
        With the fit's own metadata.

    Raises
    ------
    ValueError
        If the fit has no table, the tables differ in unit, rule or what sizes count, or a run is in both.
    """
    if posterior.runs is None:
        raise ValueError("A published law has no table to add runs to; fit(runs, law) fits yours.")
    engine = ENGINES[posterior.info["engine"]]
    known = {f.name for f in dataclasses.fields(engine)}  # type: ignore[arg-type]
    settings = {k: posterior.info[k] for k in ASKED if k in known and k in posterior.info}
    settings |= {"cluster": posterior.info["resampled"]["by"]} if "resampled" in posterior.info else {}
    return fit(
        joined(posterior.runs, runs),
        posterior.model,
        engine=engine(**settings),
        seed=posterior.info["seed"] if seed is None else seed,
        metadata=posterior.metadata,
        progress=progress,
    )


def joined(before: Runs, more: Runs) -> Runs:
    """Two tables as one; ValueError where they are not of one kind, or share a run."""
    _check(before, more)
    named = "run" in before.columns and "run" in more.columns
    parts = [each.table.drop(columns=["line"] if named else ["line", "run"]) for each in (before, more)]
    left_out = [each.left_out for each in (before, more) if len(each.left_out)]
    return dataclasses.replace(
        before,
        table=pd.concat(parts, ignore_index=True),
        source=f"{before.source}, {more.source}",
        columns={k: v for k, v in before.columns.items() if named or k != "run"},
        left_out=pd.concat(left_out, ignore_index=True) if left_out else before.left_out,
        notes=tuple(dict.fromkeys((*before.notes, *more.notes))),
    )


def _check(before: Runs, more: Runs) -> None:
    each = {
        "unit of the loss": (before.loss_unit, more.loss_unit),
        "FLOP rule": (before.rule.to_dict(), more.rule.to_dict()),
        "what sizes count": (before.counts, more.counts),
    }
    differing = [f"{name}: {a!r} of the fit, {b!r} of the new runs" for name, (a, b) in each.items() if a != b]
    if differing:
        raise ValueError(f"Runs are added in the fit's own terms; {'; '.join(differing)}. Read them alike.")
    twice = _twice(before, more)
    if twice:
        raise ValueError(f"Already in the fit: {', '.join(twice[:10])}. Give new runs only, each by a name of its own.")


def _twice(before: Runs, more: Runs) -> list[str]:
    """Names of new runs that the fit has: by name where both tables have names, or by the same numbers."""

    def keys(runs: Runs) -> list[Any]:
        return list(map(tuple, np.column_stack([runs.table[k] for k in ("n_params", "n_tokens", "loss")]).tolist()))

    numbers, names = set(keys(before)), set(before.table["run"])
    named = "run" in before.columns and "run" in more.columns
    own = zip(more.table["run"], keys(more), strict=True)
    return [str(name) for name, key in own if key in numbers or (named and name in names)]
