"""The power law N_opt ~ C^a through estimates of N_opt, with bootstrap draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from bayescale.frontier.intervals import plain
from bayescale.frontier.parabola import scattered, stretch

KIND = "bootstrap percentile"


@final
@dataclass(frozen=True, eq=False)
class PowerLaw:
    """N_opt = n_center (C / center_flop)^a.

    Attributes
    ----------
    center_flop : float
        Geometric mean of the computes it goes through, FLOPs: at it, a and N_opt are hardly correlated.
    a : float
        Exponent, of least squares in logs.
    log_n : float
        Natural log of N_opt at the centre.
    draws_a, draws_log_n : array (R,)
        Their bootstrap.
    spends_all : bool
        Whether C = k N D in the runs, so that D_opt ~ C^(1 - a).
    """

    center_flop: float
    a: float
    log_n: float
    draws_a: np.ndarray
    draws_log_n: np.ndarray
    spends_all: bool

    def to_dict(self, level: float) -> dict[str, Any]:
        """Estimate and interval of ``a``, of ``b`` (None unless C = k N D) and of N_opt at the centre."""
        n = ends(np.exp(self.log_n), np.exp(self.draws_log_n), level)
        return {
            "a": ends(self.a, self.draws_a, level),
            "b": ends(1 - self.a, 1 - self.draws_a, level) if self.spends_all else None,
            "center_flop": self.center_flop,
            "n_opt_at_center_params": n,
        }


def ends(estimate: float, draws: np.ndarray, level: float) -> dict[str, float | None]:
    """Estimate and equal-tailed ends of its bootstrap draws; None where there is no number."""
    finite = draws[np.isfinite(draws)]
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2]) if len(finite) else (np.nan, np.nan)
    return {"estimate": plain(estimate), "lower": plain(low), "upper": plain(high)}


def spread(draws: np.ndarray) -> np.ndarray:
    """Standard error of each column: half of the central 68.27 %, which a few far draws leave alone."""
    low, high = np.nanquantile(draws, [0.158655, 0.841345], axis=0)
    return (high - low) / 2


def lines(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope, and height at the mean of ``x`` (K,), of the line through each row of ``y`` (R, K); NaN left out.

    NaN where fewer than two different abscissas are left.
    """
    at, center = np.isfinite(y), x.mean()
    count = at.sum(1)
    known = np.maximum(count, 1)
    z = np.where(at, x - center, 0.0)
    mean_z, mean_y = z.sum(1) / known, np.where(at, y, 0.0).sum(1) / known
    off = np.where(at, z - mean_z[:, None], 0.0)
    square = (off**2).sum(1)
    fine = (count >= 2) & (square > 0)
    slope = np.divide((off * np.where(at, y, 0.0)).sum(1), square, out=np.full(len(y), np.nan), where=fine)
    return slope, mean_y - slope * mean_z


def through(
    log_c: np.ndarray, log_n: np.ndarray, draws: np.ndarray, spends_all: bool, rng: np.random.Generator
) -> PowerLaw:
    """The power law through minima (K,) with bootstrap draws (R, K) of each.

    Equal weights: a budget's own error rests on few residuals, and one that is small by luck would take
    all the weight. Budgets are chosen, so what is resampled around the line is their errors: each
    budget's own, and the scatter between budgets by as much as exceeds that. Where there is none, chance
    still shows some in half of the tables, and the interval is a little wide. With two budgets the scatter
    cannot be seen, and only their own errors count.
    """
    slope, height = (v[0] for v in lines(log_c, log_n[None]))
    fitted = height + slope * (log_c - log_c.mean())
    residual, freedom = log_n - fitted, len(log_c) - 2
    again = fitted + draws - log_n
    total = float((residual**2).sum()) / max(freedom, 1)
    beyond = max(0.0, total - float((spread(draws) ** 2).mean()))
    if freedom and beyond:
        between = scattered(residual * np.sqrt(beyond / total), freedom, len(draws), rng)
        again = again + between * stretch(freedom, len(draws), rng)
    draws_a, draws_log_n = lines(log_c, again)
    center = float(np.exp(log_c.mean()))
    return PowerLaw(center, float(slope), float(height), draws_a, draws_log_n, spends_all)
