"""The IsoFLOP estimator on arrays: budgets, windows, and parabolas of log loss in log N.

Hoffmann et al. 2022 (arXiv 2203.15556), approach 2: at one budget, log loss against log N is close to a
parabola near its lowest point, whose vertex is log N_opt. No law of the loss is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

FEWEST = 5  # runs in a window: three letters of a parabola, and two degrees of freedom to see the scatter with
SPAN = 1.25  # max over min compute of one budget: beyond it the loss falls by 1 % for compute alone (slope -.05)
MOST_WITHOUT = 0.05  # share of resamples without a minimum beyond which the scatter hides it
SINGULAR = 1e-10  # smallest over largest eigenvalue: below it, fewer than three sizes
FEW, CONCAVE, OUTSIDE = 1, 2, 3  # why there is no minimum


@final
@dataclass(frozen=True)
class Vertex:
    """Where each of S parabolas is lowest.

    ``log_n`` and ``log_loss`` (S,) are NaN where the parabola is not convex; ``why`` (S,) is 0 where the
    vertex stands: at least `FEWEST` runs in the window, convex, and runs of it on both sides.
    """

    log_n: np.ndarray
    log_loss: np.ndarray
    why: np.ndarray


def budgets(flop: np.ndarray, tolerance: float) -> np.ndarray:
    """Index of each run's budget, the smallest first.

    Sorted by compute, a run belongs to the budget of the one before unless it spends more than
    ``tolerance`` times as much, so that rounding never splits a budget.
    """
    order = np.argsort(flop, kind="stable")
    label = np.empty(len(flop), int)
    label[order] = np.cumsum(np.diff(np.log(flop[order]), prepend=np.log(flop[order[0]])) > np.log(tolerance))
    return label


def window(log_loss: np.ndarray, near: float) -> np.ndarray:
    """Of each row (S, n), the runs whose loss is at most ``near`` times the lowest, or the `FEWEST` lowest.

    The second where the first are fewer: sizes of small budgets lie so far apart that few losses are near.
    """
    ordered = np.sort(log_loss, axis=-1)
    least = ordered[..., [min(FEWEST, log_loss.shape[-1]) - 1]]
    return log_loss <= np.maximum(ordered[..., :1] + np.log(near), least)


def vertex(x: np.ndarray, y: np.ndarray, inside: np.ndarray) -> Vertex:
    """Least squares parabolas of ``y`` (S, n) in log sizes ``x`` (n,) through the runs ``inside`` (S or 1, n)."""
    center, scale = x.mean(), max(float(np.ptp(x)), 1e-300) / 2
    z = (x - center) / scale
    design, weight = np.stack([np.ones_like(z), z, z * z], axis=-1), inside.astype(float)
    gram = np.einsum("sn,ni,nj->sij", weight, design, design)
    value, vector = np.linalg.eigh(gram)
    regular = value[:, 0] > SINGULAR * value[:, -1]
    value = np.where(regular[:, None], value, np.inf)
    moment = np.einsum("sn,ni->si", weight * y, design)
    turned = np.einsum("sij,si->sj", np.broadcast_to(vector, (len(moment), 3, 3)), moment) / value
    level, slope, curve = np.einsum("sij,sj->is", np.broadcast_to(vector, (len(moment), 3, 3)), turned)
    convex = (curve > 0) & regular
    at = np.divide(-slope, 2 * curve, out=np.full(len(curve), np.nan), where=convex)
    ends = np.where(inside, z, np.inf).min(-1), np.where(inside, z, -np.inf).max(-1)
    why = np.where(convex, np.where((ends[0] < at) & (at < ends[1]), 0, OUTSIDE), CONCAVE)
    why = np.where(inside.sum(-1) < FEWEST, FEW, why)
    return Vertex(center + scale * at, level + slope * at / 2, why)


def scattered(residual: np.ndarray, freedom: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Resampled residuals (size, n), widened by sqrt(n / freedom): those of a fit are smaller than the errors."""
    return rng.choice(residual * np.sqrt(len(residual) / freedom), (size, len(residual)))


def stretch(freedom: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Factors (size, 1), sqrt(freedom / chi2), on resampled residuals.

    How wide the errors are is known the less, the fewer the residuals; with these factors an interval has
    Student's tails and not the Normal's.
    """
    return np.sqrt(freedom / rng.chisquare(freedom, (size, 1)))


def resampled(x: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator) -> tuple[Vertex, Vertex]:
    """Vertices of parabolas through the runs of one window, their residuals resampled.

    Residuals and not pairs, since the sizes were chosen and not drawn: a resample of five to ten runs
    often has sizes on one side of the minimum only. The first with Student's tails, for this budget's
    interval; the second without, for what is taken over many budgets, where one that seems too exact and
    one that does not make up for each other.
    """
    z, every = x - x.mean(), np.ones((1, len(x)), bool)
    fitted = np.polyval(np.polyfit(z, y, 2), z)
    errors = scattered(y - fitted, len(x) - 3, size, rng)
    wide = errors * stretch(len(x) - 3, size, rng)
    return vertex(x, fitted + wide, every), vertex(x, fitted + errors, every)
