"""From draws to the numbers of a table: quantiles, and plain values of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def quantiles(values: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Quantiles down the draws by linear interpolation, NaN left out.

    Parameters
    ----------
    values : array (S, K)
        Draws; infinite ones count as the largest or smallest.
    probabilities : array (Q,)

    Returns
    -------
    array (Q, K)
        NaN where a column holds nothing else.
    """
    ordered = np.sort(values, axis=0)  # NaN last; one sort serves every probability
    last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=0) - 1, 0)
    place = probabilities[:, None] * last
    before = place.astype(int)
    low = np.take_along_axis(ordered, before, axis=0)
    high = np.take_along_axis(ordered, np.minimum(before + 1, last), axis=0)
    with np.errstate(invalid="ignore"):  # the unused branch may subtract infinities
        return np.where((low == high) | (place == before), low, low + (place - before) * (high - low))


def interval(lower: float, median: float, upper: float) -> dict[str, float | None]:
    """A row's entry for one quantity."""
    return {"median": plain(median), "lower": plain(lower), "upper": plain(upper)}


def plain(value: float) -> float | None:
    """A Python float, None where there is no finite number: JSON has no other way to say so."""
    return float(value) if math.isfinite(value) else None


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """One level of keys: ``{"loss": {"median": 2.0}}`` becomes ``{"loss_median": 2.0}``."""
    result: dict[str, Any] = {}
    for key, value in row.items():
        inner = flat(value) if isinstance(value, dict) else {"": value}
        result |= {f"{key}_{stat}" if stat else key: each for stat, each in inner.items()}
    return result
