"""How good a forecast was, once the loss is known: proper scores, coverage and bias.

Scores are losses, smaller is better, in the unit of what was forecast; give log losses for shares of the
loss. They are proper: a forecaster's expected score is best when the forecast is what is believed
(Gneiting & Raftery 2007, *Strictly Proper Scoring Rules, Prediction, and Estimation*, JASA 102).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special


def crps(draws: Any, observed: Any) -> np.ndarray:
    """Continuous ranked probability score of forecasts that are given as draws.

    E |X - y| - E |X - X'| / 2 (Gneiting & Raftery 2007, equation 21) of the draws' own distribution, by
    sorting. Of one draw, or of draws that are all equal, it is the absolute error.

    Parameters
    ----------
    draws : array (draws, ...)
        At least one draw of each forecast.
    observed : array (...)
        What came.

    Returns
    -------
    array (...)
        NaN where a draw or what came is NaN.

    Raises
    ------
    ValueError
        Without draws, or if the shapes do not fit.
    """
    x, y = np.asarray(draws, float), np.asarray(observed, float)
    if x.ndim == 0 or not len(x):
        raise ValueError(f"crps takes draws along their first axis, at least one; not an array of shape {x.shape}.")
    if x.shape[1:] != y.shape:
        raise ValueError(f"crps takes draws (draws, ...) of what was observed (...), not {x.shape} and {y.shape}.")
    n = len(x)
    rank = (2 * np.arange(1, n + 1) - n - 1).reshape(n, *(1,) * y.ndim)
    # The mean difference of all pairs, with the offset taken off so that rounding is relative to the spread.
    spread = (rank * (np.sort(x, axis=0) - x[:1])).sum(0) / n**2
    return np.abs(x - y).mean(0) - spread


def crps_of_quantiles(probabilities: Any, quantiles: Any, observed: Any) -> np.ndarray:
    """Continuous ranked probability score of forecasts that are given as a few quantiles: approximate.

    The score is twice the quantile loss, averaged over all probabilities (Gneiting & Raftery 2007, section
    6); here each quantile stands for those that are nearest to its own. The approximation is itself proper:
    no forecaster gains by giving quantiles that are not believed. Of a Normal by `entries.PROBABILITIES` it is
    within .046 standard deviations of the score.

    Parameters
    ----------
    probabilities : array (K,)
        Rising, between 0 and 1.
    quantiles : array (..., K)
        Of each forecast, at these probabilities.
    observed : array (...)
        What came.

    Raises
    ------
    ValueError
        If probabilities do not rise between 0 and 1, or the shapes do not fit.
    """
    p, q, y = np.asarray(probabilities, float), np.asarray(quantiles, float), np.asarray(observed, float)
    if p.ndim != 1 or not len(p) or not (p[0] > 0 and p[-1] < 1 and (np.diff(p) > 0).all()):
        raise ValueError(f"Probabilities of quantiles rise between 0 and 1, as (.05, .5, .95), not {probabilities!r}.")
    if q.shape != (*y.shape, len(p)):
        raise ValueError(f"quantiles are of shape {(*y.shape, len(p))} here, not {q.shape}.")
    share = np.diff(np.concatenate([[0.0], (p[1:] + p[:-1]) / 2, [1.0]]))
    off = y[..., None] - q
    return 2 * (share * np.maximum(p * off, (p - 1) * off)).sum(-1)


def interval_score(lower: Any, upper: Any, observed: Any, level: float = 0.9) -> np.ndarray:
    """Width of an equal-tailed interval, and 2 / (1 - level) times the distance by which it was missed.

    Gneiting & Raftery 2007, equation 43, with their alpha = 1 - level.

    Parameters
    ----------
    lower, upper, observed : array (...)
        Ends of the intervals, and what came; shapes broadcast.
    level : float
        Probability that the intervals were to hold.

    Raises
    ------
    ValueError
        If the level is not between 0 and 1, or an interval's ends are in the wrong order.
    """
    low, high, y = _intervals(lower, upper, observed)
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, as 0.9, not {level!r}.")
    return high - low + 2 / (1 - level) * (np.maximum(low - y, 0) + np.maximum(y - high, 0))


def coverage(lower: Any, upper: Any, observed: Any) -> float:
    """Share of what came that its interval holds, ends included; NaN of no forecasts.

    Raises
    ------
    ValueError
        If a number is NaN, or an interval's ends are in the wrong order.
    """
    low, high, y = _intervals(lower, upper, observed)
    if not np.isfinite(y).all() or np.isnan(low).any() or np.isnan(high).any():
        raise ValueError(
            "coverage counts every forecast: leave out those without an interval or an outcome, and say so."
        )
    return float(np.mean((low <= y) & (y <= high))) if y.size else float("nan")


def chance(held: int, forecasts: int, level: float = 0.9) -> tuple[float, float]:
    """Coverages that so many of so many independent forecasts leave open: Clopper & Pearson 1934, exact.

    *The use of confidence or fiducial limits illustrated in the case of the binomial*, Biometrika 26. The
    interval from ``lower`` to ``upper`` holds the true share with at least probability ``level``.
    """
    if not 0 <= held <= forecasts or not forecasts:
        raise ValueError(f"Of {forecasts} forecasts, at least one, {held} cannot have held.")
    tail = (1 - level) / 2
    lower = special.betaincinv(held, forecasts - held + 1, tail) if held else 0.0
    upper = special.betaincinv(held + 1, forecasts - held, 1 - tail) if held < forecasts else 1.0
    return float(lower), float(upper)


def bias(median: Any, observed: Any) -> float:
    """Median of forecast less what came: positive where forecasts promise a loss that is too high.

    Raises
    ------
    ValueError
        Without forecasts.
    """
    error = np.asarray(median, float) - np.asarray(observed, float)
    if not error.size:
        raise ValueError("bias takes at least one forecast.")
    return float(np.median(error))


def _intervals(lower: Any, upper: Any, observed: Any) -> tuple[np.ndarray, ...]:
    low, high, y = np.broadcast_arrays(*(np.asarray(a, float) for a in (lower, upper, observed)))
    if (low > high).any():
        at = int(np.flatnonzero((low > high).ravel())[0])
        raise ValueError(f"Interval {at} ends before it begins: {low.ravel()[at]:g} to {high.ravel()[at]:g}.")
    return low, high, y
