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
    scan = excess(outlook.few(SCANNED), np.repeat(size, STEPS), np.exp(np.tile(steps, size.size)))
    met = scan.reshape(size.size, STEPS) <= 0
    first = np.where(met.any(axis=1), met.argmax(axis=1), STEPS - 1)

    def full(place: np.ndarray, which: np.ndarray) -> np.ndarray:
        return excess(outlook, size[which], np.exp(place))

    # All draws may cross a step from where those that were scanned do.
    left, right = steps[np.maximum(first - 2, 0)], steps[np.minimum(first + 1, STEPS - 1)]
    everywhere = np.arange(size.size)
    at_left, at_right = full(left, everywhere), full(right, everywhere)
    found = np.where(at_left <= 0, left, np.where(at_right > 0, math.inf, right))
    between = np.flatnonzero((at_left > 0) & (at_right <= 0))
    if between.size:
        ends = left[between], right[between]
        found[between] = elementwise.find_root(full, ends, args=(between,), tolerances={"xatol": CLOSE}).x
    return np.exp(found)
