"""A table in another convention: what sizes count, and whether data are counted in tokens or in bytes.

A compute that the source gives stays as it is; one that the rule gave follows the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescale.runs.cells import listed
from bayescale.runs.flops import FlopsRule
from bayescale.runs.number import column
from bayescale.runs.shapes import Embeddings, Shape
from bayescale.runs.table import Runs
from bayescale.runs.units import CONVENTIONS, loss_unit_of

# Norms, biases and positions are a percent or two of a model; beyond a tenth the shape is another model's.
MISFIT = 0.1
Counts = tuple[np.ndarray, np.ndarray]


def recount(runs: Runs, start: str, end: str, by: Embeddings | Mapping[str, Shape]) -> Runs:
    """Runs whose sizes count something else, with the error that this brings.

    Parameters
    ----------
    runs : Runs
    start, end : str
        What sizes count, and what they shall count: two of `bayescale.runs.units.CONVENTIONS`.
    by : Embeddings or mapping of str to Shape
        A family's rule, between ``total`` and ``non-embedding``; or the shape of each run by the run's name.

    Returns
    -------
    Runs
        With the former sizes in the column ``n_params_before``, and in ``n_params_error`` the relative error of
        the new ones: that of the rule (0 where it is not known), or what the shape does not explain of the size.

    Raises
    ------
    ValueError
        If the table says that its sizes count something else, the rule does not know one of the two, a run has
        no shape, or a size is not that of its shape.
    """
    said = _recorded(runs)
    for convention in (start, end):
        if convention not in CONVENTIONS:
            raise ValueError(f"A size counts one of {', '.join(map(repr, CONVENTIONS))}, not {convention!r}.")
    if said and said != start:
        raise ValueError(f"The sizes of {runs.source} count {said} parameters, by their column, and not {start!r}.")
    before = runs.table["n_params"].to_numpy(float)
    if isinstance(by, Embeddings):
        size, error = _by_family(before, start, end, by)
        how, exact = f"by N_total = N + {by.gamma:.6g} N^(1/3)", "of an error that is not known"
    else:
        size, error = _by_shape(runs, before, start, end, by)
        how, exact = "by the shapes of the models", "which they give exactly"
    known = f"with a relative error of at most {error.max():.2%}" if error.any() else exact
    table = runs.table.assign(n_params=size, n_params_before=before, n_params_error=error)
    if "flop" not in runs.columns:
        table["flop"] = runs.rule.flop(size, table["n_tokens"].to_numpy(float))
    note = f"Sizes are recounted from {start} to {end} parameters {how}, {known}."
    return replace(runs, table=table, notes=(*runs.notes, note), recognised=_renamed(runs, start, end))


def in_bytes(runs: Runs, bytes_per_token: float | str) -> Runs:
    """Runs whose data are counted in bytes, so that runs with different tokenizers have one ``n_tokens``.

    The rule k N D of the result has k over the (geometric mean) bytes per token, since a token costs what it did;
    ``flop`` stays.

    Parameters
    ----------
    runs : Runs
        Their loss is over bytes: read with ``bytes_per_token=``.
    bytes_per_token : float or str
        A number, or the column of the table that has them.

    Raises
    ------
    ValueError
        If the loss is over tokens, the rule is not k N D, or the bytes per token are not positive.
    """
    unit = loss_unit_of(runs.loss_unit)
    if unit is not None and unit.per == "token":
        raise ValueError(f"The loss is in {runs.loss_unit}: read the table with bytes_per_token=, then count in bytes.")
    if not isinstance(runs.rule, FlopsRule):
        raise ValueError(f"Data in bytes need the rule C = k N D, not {runs.rule}.")
    if isinstance(bytes_per_token, str) and bytes_per_token not in runs.table:
        raise ValueError(f"There is no column {bytes_per_token!r}; the columns are {', '.join(runs.table)}.")
    said = (
        runs.table[bytes_per_token]
        if isinstance(bytes_per_token, str)
        else pd.Series(bytes_per_token, range(len(runs)))
    )
    ratio = column("bytes_per_token", said).values
    if not (np.isfinite(ratio) & (ratio > 0)).all():
        raise ValueError("Bytes per token are a positive number for every run.")
    mean = float(np.exp(np.log(ratio).mean()))
    before = runs.table["n_tokens"].to_numpy(float)
    note = f"n_tokens counts bytes of text, from {ratio.min():.4g} to {ratio.max():.4g} of them a token."
    return replace(
        runs,
        table=runs.table.assign(n_tokens=before * ratio, n_tokens_before=before),
        rule=FlopsRule(runs.rule.k / mean),
        notes=(*runs.notes, note),
    )


def _by_family(before: np.ndarray, start: str, end: str, rule: Embeddings) -> Counts:
    if (start, end) == ("total", "non-embedding"):
        size, error = rule.non_embedding(before)
        return size, np.asarray(error)
    if (start, end) == ("non-embedding", "total"):
        return rule.total(before), np.full(len(before), rule.error)
    raise ValueError(
        f"A family's rule knows 'total' and 'non-embedding', not {start!r} to {end!r}: give the shape of each run."
    )


def _by_shape(runs: Runs, before: np.ndarray, start: str, end: str, shapes: Mapping[str, Shape]) -> Counts:
    names = runs.table["run"].tolist()
    lacking = [name for name in names if name not in shapes]
    if lacking:
        raise ValueError(f"{len(lacking)} of {len(names)} runs have no shape: {listed(lacking)}.")
    first, last = (np.array([shapes[name].count(kind) for name in names], float) for kind in (start, end))
    off = np.abs(first / before - 1)
    wrong = [f"{names[k]}: {before[k]:.4g}, by its shape {first[k]:.4g}" for k in np.flatnonzero(off > MISFIT)]
    if wrong:
        raise ValueError(
            f"{len(wrong)} of {len(names)} sizes are more than {MISFIT:.0%} off the {start} parameters of their shape "
            f"({listed(wrong)}). Correct the shapes, or what the sizes count."
        )
    # What the shape leaves out (norms, biases) stays; what one convention counts and the other does not is exact.
    size = before + last - first
    return size, np.abs(first - before) / size


def _recorded(runs: Runs) -> str:
    """What the column of sizes says that it counts; empty where it does not say."""
    units = " ".join(runs.recognised.loc[_is_size(runs), "unit"])
    return next((convention for convention in CONVENTIONS if f"({convention})" in units), "")


def _renamed(runs: Runs, start: str, end: str) -> Any:
    """The account of the columns, in which sizes count what they count now."""
    unit = f"parameters ({end}), from {start}"
    return runs.recognised.assign(unit=runs.recognised["unit"].where(~_is_size(runs), unit))


def _is_size(runs: Runs) -> Any:
    return runs.recognised["meaning"].astype(str).str.startswith("n_params:")
