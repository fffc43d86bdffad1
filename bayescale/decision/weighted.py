"""Risk measures of draws that count unequally: what is left of a posterior once something more is seen."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Risk

AHEAD = 4  # times the tail's share of the draws that is looked at first
BLOCK = 40  # draws
Weighted = Callable[[np.ndarray], np.ndarray]


@functools.singledispatch
def weighted(risk: Risk, outcomes: np.ndarray) -> Weighted:
    """The measure of each choice, in the unit of the outcomes, as a function of weights.

    A measure that is not known here reads draws that are picked again in proportion to their weights,
    evenly spaced in the sum of weights.

    Parameters
    ----------
    outcomes : array (S, M)
        One row a draw, one column a choice.

    Returns
    -------
    callable
        From weights (K, S), whose rows sum to 1, to risks (K, M); with equal weights it is the measure itself.
    """
    places = (np.arange(len(outcomes)) + 0.5) / len(outcomes)

    def of(weights: np.ndarray) -> np.ndarray:
        picked = (np.searchsorted(np.cumsum(each), places * each.sum()) for each in weights)
        return np.stack([risk.of(outcomes[np.minimum(again, len(outcomes) - 1)]) for again in picked])

    return of


@weighted.register
def _mean(risk: Mean, outcomes: np.ndarray) -> Weighted:
    return lambda weights: weights @ outcomes


@weighted.register
def _entropic(risk: Entropic, outcomes: np.ndarray) -> Weighted:
    worst = outcomes.max(axis=0)
    grown = np.exp(risk.aversion * (outcomes - worst))
    return lambda weights: worst + np.log(weights @ grown) / risk.aversion


@weighted.register
def _deviation(risk: MeanDeviation, outcomes: np.ndarray) -> Weighted:
    middle = outcomes.mean(axis=0)  # so that the difference of squares keeps its digits
    from_it = outcomes - middle

    def of(weights: np.ndarray) -> np.ndarray:
        mean, square = weights @ from_it, weights @ from_it**2
        return middle + mean + risk.weight * np.sqrt(np.maximum(square - mean**2, 0.0))

    return of


@weighted.register
def _cvar(risk: CVaR, outcomes: np.ndarray) -> Weighted:
    draws = len(outcomes)
    order = np.argsort(-outcomes, axis=0, kind="stable").T
    worst_first = np.take_along_axis(outcomes.T, order, axis=1)
    filled = (0, 0), (0, -draws % BLOCK)  # up to whole blocks, with draws that weigh nothing
    order, worst_first = np.pad(order, filled, constant_values=draws), np.pad(worst_first, filled)
    first = BLOCK * math.ceil(AHEAD * risk.tail * draws / BLOCK)

    def of(weights: np.ndarray) -> np.ndarray:
        by_draw = np.vstack([weights.T, np.zeros(len(weights))])
        found = [_tail_mean(*each, by_draw, risk.tail, first) for each in zip(worst_first, order, strict=True)]
        return np.stack(found, axis=1)

    return of


def _tail_mean(worst_first: np.ndarray, order: np.ndarray, weights: np.ndarray, tail: float, first: int) -> np.ndarray:
    """Mean of one choice's worst outcomes that weigh ``tail`` together, under weights (S, K): (K,).

    No more draws are looked at than it takes, ``first`` of them to begin with: block by block up to the one in
    which the tail ends, and in that one draw by draw.
    """
    while True:
        weigh = weights[order[:first]].reshape(-1, BLOCK, weights.shape[1])
        each = weigh.sum(axis=1)
        below = np.cumsum(each, axis=0)
        if below[-1].min() >= tail or first >= len(order):
            break
        first *= 2
    worst = worst_first[:first].reshape(-1, BLOCK)
    moment = np.cumsum((worst[:, None] @ weigh)[:, 0], axis=0)
    sets = np.arange(weights.shape[1])
    last = np.minimum((below < tail).sum(axis=0), len(below) - 1)
    before = np.where(last > 0, below[last - 1, sets], 0.0)[:, None]
    so_far = np.minimum(before + np.cumsum(weigh[last, :, sets], axis=1), tail)
    whole = np.where(last > 0, moment[last - 1, sets], 0.0)
    return (whole + (np.diff(so_far, axis=1, prepend=before) * worst[last]).sum(axis=1)) / tail


@weighted.register
def _quantile(risk: Quantile, outcomes: np.ndarray) -> Weighted:
    order = np.argsort(outcomes, axis=0, kind="stable").T
    ordered = np.take_along_axis(outcomes.T, order, axis=1)

    def of(weights: np.ndarray) -> np.ndarray:
        out = np.empty((len(weights), len(order)))
        for choice, (values, where) in enumerate(zip(ordered, order, strict=True)):
            below = np.cumsum(weights[:, where], axis=1)
            # each draw stands in the middle of its own weight; the first and the last at the ends, as of equal draws
            middle = below - np.diff(below, axis=1, prepend=0.0) / 2
            start, last = middle[:, :1], middle[:, -1:]
            out[:, choice] = [np.interp(risk.level, each, values) for each in (middle - start) / (last - start)]
        return out

    return of
