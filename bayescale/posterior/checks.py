"""Whether the model describes the runs: which runs it does not, and what it would miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from bayescale.posterior import _arviz
from bayescale.posterior.inputs import of_runs
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.shared import shared_by
from bayescale.posterior.surface import Surface
from bayescale.runs.table import Runs

NONE_EXPECTED = 0.95  # prior probability that none of the runs of a table is an outlier


def _fitted(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Mean log loss of every run with the shocks that it shares, and its noise scale: arrays (draws, runs)."""
    runs = posterior.runs
    if runs is None or "log_likelihood" not in posterior.tree:
        raise ValueError("This posterior was not fitted to runs; there is nothing to check it against.")
    t = runs.table
    se = np.nan_to_num(t["loss_se"].to_numpy(float)) / t["loss"].to_numpy(float)
    group = runs.labels(posterior.model.pooling.by)[0] if posterior.groups and posterior.model.pooling.by else None
    mean, scale = [], []
    for g in posterior.groups or (None,):
        at = np.ones(len(runs), bool) if group is None else group == g
        surface, values = posterior.surface(g), posterior.values(g)
        run = {k: v[at] for k, v in of_runs(posterior.law, runs).items()}
        flop = posterior.rule.flop(*(t.loc[at, k].to_numpy(float) for k in ("n_params", "n_tokens")))
        mean.append((at, _log_loss(surface, surface.at(flop), run)))
        scale.append((at, np.hypot(values["noise"][:, None], se[at])))
    draws = len(mean[0][1])
    out = np.empty((draws, len(runs))), np.empty((draws, len(runs)))
    for whole, parts in zip(out, (mean, scale), strict=True):
        for at, part in parts:
            whole[:, at] = part
    return out[0] + _shocked(posterior, runs), out[1]


def _shocked(posterior: Posterior, runs: Runs) -> np.ndarray | float:
    """What the shocks of a fit add to the log loss of every run: array (draws, runs)."""
    draws, total = posterior.tree["posterior"].dataset, 0.0
    size = posterior.law.size
    log_size = np.log(of_runs(posterior.law, runs)[size] / posterior.reference[size]) if posterior.model.shocks else 0.0
    for s, each in zip(posterior.model.shocks, shared_by(posterior.model, runs), strict=True):
        for p, lever in zip(s.parameters, (1.0, log_size), strict=False):
            own = draws[f"{p.name}s"].to_numpy()
            total = total + own.reshape(-1, own.shape[-1])[:, each.code] * lever
    return total


def _log_loss(surface: Surface, letters: dict[str, np.ndarray], run: dict[str, np.ndarray]) -> np.ndarray:
    import jax

    from bayescale.posterior.predict import losses

    with jax.enable_x64(True):
        return np.log(np.asarray(losses(surface.law)(letters, run)))


def outliers(posterior: Posterior) -> pd.DataFrame:
    """Probability of each run to be an outlier, given all runs (Chaloner & Brant 1988).

    A run is an outlier when its log loss is more than k noise scales off the law, k such that under
    Normal noise no run of the table would be with probability .95. A run is flagged when that is
    more probable than not; nothing is left out for it.

    Returns
    -------
    DataFrame
        One row a run: ``run``, ``line``, ``loss``, ``loss_expected`` (posterior median of the mean),
        ``residual`` (median difference of log loss), ``probability_outlier``, ``flagged``.
    """
    mean, scale = _fitted(posterior)
    t = posterior.runs.table  # type: ignore[union-attr]
    k = norm.ppf(0.5 + 0.5 * NONE_EXPECTED ** (1 / len(t)))
    residual = np.log(t["loss"].to_numpy(float)) - mean
    probability = (np.abs(residual) > k * scale).mean(0)
    return pd.DataFrame(
        {
            "run": t["run"].to_numpy(),
            "line": t["line"].to_numpy(),
            "loss": t["loss"].to_numpy(float),
            "loss_expected": np.exp(np.median(mean, 0)),
            "residual": np.median(residual, 0),
            "probability_outlier": probability,
            "flagged": probability > 0.5,
        }
    )


def loo(posterior: Posterior) -> Any:
    """PSIS-LOO of log loss (Vehtari, Gelman & Gabry 2017): arviz' ELPDData, pointwise.

    Its ``warning`` and ``pareto_k`` say where a run is too influential for the estimate.
    """
    if "log_likelihood" not in posterior.tree:
        raise ValueError("This posterior was not fitted to runs; there is nothing to leave out.")
    return _arviz.loo(posterior.tree)


def predictive_check(posterior: Posterior) -> pd.DataFrame:
    """Posterior predictive check: what new tables of the same runs would look like.

    Statistics of the log residuals from the posterior median law, in the table and in replicated
    tables: their spread, their largest size, their rank correlation with log N, log D and log C
    (a trend is what the law's form misses), and the share of runs inside their own 90 % interval.

    Returns
    -------
    DataFrame
        Rows by statistic: ``observed``, ``lower``, ``upper`` (90 % equal-tailed of the replicates),
        ``p_value`` (two-sided; small: the model does not make tables like this one).
    """
    mean, _ = _fitted(posterior)
    t = posterior.runs.table  # type: ignore[union-attr]
    center = np.median(mean, 0)
    new = np.asarray(posterior.tree["posterior_predictive"].dataset["loss"])
    replicated = np.log(new.reshape(-1, new.shape[-1])) - center
    observed = np.log(t["loss"].to_numpy(float)) - center
    low, high = np.quantile(replicated, [0.05, 0.95], axis=0)
    statistics = {
        "sd of log residuals": lambda r: r.std(-1),
        "robust sd of log residuals": lambda r: 1.4826 * np.median(np.abs(r - np.median(r, -1, keepdims=True)), -1),
        "largest log residual": lambda r: np.abs(r).max(-1),
        "share of runs inside 90 %": lambda r: ((r >= low) & (r <= high)).mean(-1),
        **{
            f"rank correlation with log {name}": lambda r, column=column: _correlation(r, t[column].to_numpy(float))
            for name, column in (("N", "n_params"), ("D", "n_tokens"), ("C", "flop"))
        },
    }
    rows = {}
    for name, statistic in statistics.items():
        seen, made = float(statistic(observed)), statistic(replicated)
        above = (np.sum(made >= seen) + 1) / (len(made) + 1)
        below = (np.sum(made <= seen) + 1) / (len(made) + 1)
        lower, upper = np.quantile(made, [0.05, 0.95])
        rows[name] = {"observed": seen, "lower": lower, "upper": upper, "p_value": min(1.0, 2 * min(above, below))}
    return pd.DataFrame(rows).T.rename_axis("statistic").reset_index()


def _correlation(residual: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of the last axis with ``x``; 0 where ``x`` does not vary."""
    a, b = rankdata(residual, axis=-1), rankdata(x)
    a, b = a - a.mean(-1, keepdims=True), b - b.mean()
    size = np.sqrt((a**2).sum(-1) * (b**2).sum())
    return np.where(size > 0, (a * b).sum(-1) / np.where(size > 0, size, 1), 0.0)
