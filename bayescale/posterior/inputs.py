"""What a law reads of runs: of those in a table, and of those that are planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescale.laws._law import Law, held_at
from bayescale.runs.table import Runs

COUNTS = {"n_active_params": ("active",), "n_total_params": ("total", "non-embedding")}
"""What a table's sizes count where they are a law's size of that name."""
SHOWN = 10  # values named in one message


def columns(law: Law) -> tuple[str, ...]:
    """The law's inputs, and tokens where it reads none: compute takes them."""
    return law.inputs if "n_tokens" in law.inputs else (*law.inputs, "n_tokens")


def of_runs(law: Law, runs: Runs) -> dict[str, np.ndarray]:
    """The law's inputs and tokens of every run of a table: arrays (runs,).

    Raises
    ------
    ValueError
        If the table lacks one, or holds one that is no number within the law's domain; one message names all rows.
    """
    table, out, lacking, problems = runs.table, {}, [], []
    for name in columns(law):
        column = _column(law, runs, name)
        if column is None:
            lacking.append(name)
            continue
        out[name] = np.asarray(pd.to_numeric(table[column], errors="coerce"), float)
        low, high = law.domain.get(name, (0.0, np.inf))
        bad = np.flatnonzero(~((out[name] >= low) & (out[name] <= high)))
        said = [f"{table['run'].iloc[i]} {table[column].iloc[i]}" for i in bad[:SHOWN]]
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        problems += [f"{column} of {', '.join(said)}{more} (it takes {low:g} to {high:g})"] if said else []
    if lacking:
        raise ValueError(_without(law, runs, lacking))
    if problems:
        raise ValueError(
            f"{type(law).__name__} does not hold for all runs: {'; '.join(problems)}. "
            "Mend these cells, or leave the runs out."
        )
    return out


def _column(law: Law, runs: Runs, name: str) -> str | None:
    """The table's column that is this input; None where there is none.

    Whatever a size counts, it is the table's ``n_params``, from which its compute follows.
    """
    if name != law.size:
        return name if name in runs.table else None
    return "n_params" if name == "n_params" or runs.counts in COUNTS[name] else None


def _without(law: Law, runs: Runs, lacking: list[str]) -> str:
    """What to do about columns that a law reads and a table lacks."""
    said = [f"{type(law).__name__} reads {', '.join(lacking)}, and the table has no such column."]
    usual = [f"{k} = {law.conditions[k]:g}" for k in lacking if k in law.conditions]
    if usual:
        said.append(f"Add it; ordinary runs have {', '.join(usual)}.")
    if law.size in lacking:
        counted = COUNTS[law.size][0]
        said.append(
            f"Read such sizes as n_params, and say what they count: by the header '{counted} params', "
            f"or read_runs(..., counts={counted!r})."
        )
    return " ".join(said)


def checked(law: Law, runs: Any) -> dict[str, np.ndarray]:
    """The inputs of planned runs and their tokens as arrays of one length, conditions at their standard unless given.

    ``runs`` is a mapping, a DataFrame or Runs.

    Raises
    ------
    ValueError
        For a missing input, and for what the law does not hold for.
    """
    if isinstance(runs, Runs):
        return of_runs(law, runs)
    given = {**law.conditions, **{k: runs[k] for k in columns(law) if k in runs}}
    missing = [k for k in columns(law) if k not in given]
    if missing:
        raise ValueError(f"predict needs {', '.join(columns(law))}; missing: {', '.join(missing)}.")
    problems, arrays = [], {}
    for k in columns(law):
        arrays[k] = _numbers(k, given[k])
        low, high = law.domain.get(k, (0.0, np.inf))
        bad = np.flatnonzero(~((arrays[k] >= low) & (arrays[k] <= high)))
        problems += [f"{k}[{i}] = {arrays[k][i]:g} ({low:g} to {high:g})" for i in bad[:SHOWN]]
    if problems:
        raise ValueError(f"Inputs outside the range that {type(law).__name__} holds for: {', '.join(problems)}.")
    lengths = {k: len(a) for k, a in arrays.items() if len(a) != 1}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"Inputs are of one length, or single numbers; here {lengths}.")
    return dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))


def _numbers(name: str, given: Any) -> np.ndarray:
    try:
        a = np.atleast_1d(np.asarray(given, float))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers, not {given!r:.80}.") from None
    if a.ndim > 1:
        raise ValueError(f"{name} is one list of numbers, not a table of shape {a.shape}; a grid is given raveled.")
    return a


def reference(law: Law, inputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The run at which a law's parameters are defined: the centre of a table in logs, conditions at their standard."""
    return {k: float(np.exp(np.log(inputs[k]).mean())) for k in law.spent} | dict(law.conditions)


def held(law: Law, at: Mapping[str, float] | None, size: int) -> dict[str, np.ndarray]:
    """Conditions as they are handed on with letters: arrays (size,)."""
    return {held_at(k): np.full(size, v) for k, v in conditions(law, at).items()}


def conditions(law: Law, at: Mapping[str, float] | None) -> dict[str, float]:
    """A law's conditions, each at its standard unless given.

    Raises
    ------
    ValueError
        For a name that is none of the law's conditions, or a value outside its domain.
    """
    at = at or {}
    unknown = [k for k in at if k not in law.conditions]
    if unknown:
        known = ", ".join(law.conditions) or "none"
        raise ValueError(f"{type(law).__name__} has no condition {', '.join(unknown)}; it has {known}.")
    out = {k: float(at.get(k, v)) for k, v in law.conditions.items()}
    bad = [f"{k} = {v:g} ({law.domain[k][0]:g} to {law.domain[k][1]:g})" for k, v in out.items()
           if not law.domain[k][0] <= v <= law.domain[k][1]]  # fmt: skip
    if bad:
        raise ValueError(f"Conditions outside the range that {type(law).__name__} holds for: {', '.join(bad)}.")
    return out
