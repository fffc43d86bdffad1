"""Risk measures of draws that count unequally: what is left of a posterior once something more is seen."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Risk


@functools.singledispatch
def risks(risk: Risk, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The measure of each choice under each set of weights, in the unit of the outcomes.

    A measure that is not known here reads draws that are picked again in proportion to their weights,
    evenly spaced in the sum of weights.

    Parameters
    ----------
    outcomes : array (S, M)
        One row a draw, one column a choice.
    weights : array (K, S)
        Rows that sum to 1; with equal weights it is the measure itself.

    Returns
    -------
    array (K, M)
    """
    places = (np.arange(len(outcomes)) + 0.5) / len(outcomes)
    picked = (np.searchsorted(np.cumsum(each), places * each.sum()) for each in weights)
    return np.stack([risk.of(outcomes[np.minimum(again, len(outcomes) - 1)]) for again in picked])


@risks.register
def _mean(risk: Mean, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ outcomes


@risks.register
def _entropic(risk: Entropic, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    worst = outcomes.max(axis=0)
    return worst + np.log(weights @ np.exp(risk.aversion * (outcomes - worst))) / risk.aversion


@risks.register
def _deviation(risk: MeanDeviation, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    middle = outcomes.mean(axis=0)  # so that the difference of squares keeps its digits
    mean, square = weights @ (outcomes - middle), weights @ (outcomes - middle) ** 2
    return middle + mean + risk.weight * np.sqrt(np.maximum(square - mean**2, 0.0))


@risks.register
def _cvar(risk: CVaR, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty((len(weights), outcomes.shape[1]))
    for choice, (worst_first, below) in enumerate(_ordered(-outcomes, weights)):
        in_tail = np.diff(np.minimum(below, risk.tail), axis=1, prepend=0.0)
        out[:, choice] = -(in_tail @ worst_first) / risk.tail
    return out


@risks.register
def _quantile(risk: Quantile, outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.empty((len(weights), outcomes.shape[1]))
    for choice, (ordered, below) in enumerate(_ordered(outcomes, weights)):
        # each draw stands in the middle of its own weight; the first and the last at the ends, as of equal draws
        middle = below - np.diff(below, axis=1, prepend=0.0) / 2
        first, last = middle[:, :1], middle[:, -1:]
        places = (middle - first) / (last - first)
        out[:, choice] = [np.interp(risk.level, place, ordered) for place in places]
    return out


def _ordered(outcomes: np.ndarray, weights: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each choice, its outcomes from the lowest (S,), and the sum of weights up to each (K, S)."""
    for column in outcomes.T:
        order = np.argsort(column, kind="stable")
        yield column[order], np.cumsum(weights[:, order], axis=1)
