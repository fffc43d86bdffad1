"""The fewest tokens at which a model of a given size meets a condition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import elementwise

from bayescale.decision.outlook import Outlook

Excess = Callable[[Outlook, np.ndarray, np.ndarray], np.ndarray]

SCANNED = 256  # draws that the scan looks at, before all of them settle what it found
STEPS = 64  # of the scan, over the tokens of the law's domain
NEAR = 0.05  # in log tokens: how far from where a few draws cross all of them are looked for at first
WIDER = 24  # doublings of that bracket, from which it has reached the ends of any domain
CLOSE = 1e-9  # in log tokens


def crossing(excess: Excess, outlook: Outlook, size: np.ndarray) -> np.ndarray:
    """Fewest tokens at which an excess is no longer above zero.

    Parameters
    ----------
    excess : callable
        (outlook, sizes (K,), tokens (K,)) to an array (K,).
    size : array (M,)
        Parameters.

    Returns
    -------
    array (M,)
        The lowest tokens of the law's domain where the excess is not above zero even there; infinity
        where it is nowhere else.
    """
    low, high = outlook.law.domain["n_tokens"]
    steps = np.linspace(math.log(max(1.0, low)), math.log(high), STEPS)
    few = outlook.few(SCANNED)
    scan = excess(few, np.repeat(size, STEPS), np.exp(np.tile(steps, size.size))).reshape(size.size, STEPS)
    first = np.clip((scan <= 0).argmax(axis=1), 1, STEPS - 1)
    found = _roots(excess, few, size, steps[first - 1], steps[first], (steps[0], steps[-1]))
    if few is not outlook:  # all draws cross near where a few do
        near = np.clip(found, steps[0] + NEAR, steps[-1] - NEAR)
        found = _roots(excess, outlook, size, near - NEAR, near + NEAR, (steps[0], steps[-1]))
    return np.exp(found)


def _roots(
    excess: Excess, outlook: Outlook, size: np.ndarray, left: np.ndarray, right: np.ndarray, ends: tuple[float, float]
) -> np.ndarray:
    """Log tokens of the crossing, its bracket widened from the one given where it lies outside: (M,)."""

    def at(place: np.ndarray, which: np.ndarray) -> np.ndarray:
        return excess(outlook, size[which], np.exp(place))

    everywhere = np.arange(size.size)
    bracket = elementwise.bracket_root(at, left, right, xmin=ends[0], xmax=ends[1], args=(everywhere,), maxiter=WIDER)
    (left, right), (at_left, at_right) = bracket.bracket, bracket.f_bracket
    found = np.where(at_left <= 0, ends[0], math.inf)
    between = np.flatnonzero((at_left > 0) & (at_right <= 0))
    if between.size:
        crossed = left[between], right[between]
        found[between] = elementwise.find_root(at, crossed, args=(between,), tolerances={"xatol": CLOSE}).x
    return found
