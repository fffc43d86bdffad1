"""Budgets as people write them, to FLOPs: refused all at once, before anything is computed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

FORM = "A budget is training compute in FLOPs: one positive, finite number such as 1e22, 10**22 or '1e22', or a list."
DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def read_budgets(budgets: Any, *, smallest: float, largest: float) -> np.ndarray:
    """Budgets in FLOPs, in the order given.

    Parameters
    ----------
    budgets : number, text of a number, or iterable of those
        Whole numbers may be of any length.
    smallest, largest : float
        FLOPs that the smallest and the largest run of the law's domain cost.

    Returns
    -------
    array (K,), float64

    Raises
    ------
    ValueError
        If there is none, or any is not such a number or lies outside ``smallest`` to ``largest``; all
        are named, by position (from 1) and value.
    """
    if isinstance(budgets, np.ndarray) and budgets.ndim == 0:
        budgets = budgets.item()
    entries = list(budgets) if isinstance(budgets, Iterable) and not isinstance(budgets, str | bytes) else [budgets]
    if not entries:
        raise ValueError(f"There is no budget in the list. {FORM}")
    read = [_read(entry, smallest, largest) for entry in entries]
    faults = [
        f"budget {place} of {len(entries)}, {entry!r}, {fault}"
        for place, (entry, fault) in enumerate(zip(entries, read, strict=True), start=1)
        if isinstance(fault, str)
    ]
    if faults:
        raise ValueError(f"Not a budget: {'; '.join(faults)}. {FORM}")
    return np.array(read, float)


def read_number(entry: Any) -> float | str:
    """One positive, finite number, whole ones of any length and as text too; or what is wrong with it."""
    if isinstance(entry, str):
        if not DECIMAL.fullmatch(entry) and not re.fullmatch(r"\s*[+-]?(nan|inf(inity)?)\s*", entry, re.IGNORECASE):
            return "is text that is not a number"
    elif isinstance(entry, bool | np.bool_) or not isinstance(entry, Real):
        return f"is of type {type(entry).__name__}, not a number"
    try:
        value = float(entry)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        return "is not finite"
    return value if value > 0 else "is not positive"


def _read(entry: Any, smallest: float, largest: float) -> float | str:
    """The number, or what is wrong with it."""
    value = read_number(entry)
    if isinstance(value, str):
        return value
    if value < smallest:
        return f"is less than the smallest run within the law's domain costs, {smallest:.3g} FLOP"
    if value > largest:
        return f"is more than the largest run within the law's domain costs, {largest:.3g} FLOP"
    return value


def chosen_groups(known: Sequence[str], group: Any) -> dict[str | None, Any]:
    """Label and value of each group asked for; the label None stands for a fit without groups."""
    if group is None and not known:
        return {None: None}
    chosen = list(known) if group is None else list(group) if isinstance(group, list | tuple) else [group]
    labels = [str(each) for each in chosen]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice or not chosen:
        raise ValueError(f"group names each group once; {'twice: ' + ', '.join(twice) if twice else 'it is empty'}.")
    return dict(zip(labels, chosen, strict=True))
