"""Whether forecasts beyond the data can be believed: conditions on the table, checked before the answer.

A drift's priors come from tables of language-model training runs that follow a power law. On tables of
another kind its intervals failed as badly as the law alone's, and these conditions told those tables
from the others before a larger run was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayescale.model.noise import SCALE
from bayescale.parameter import Fixed
from bayescale.posterior.diagnostics import Check

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Posterior

STEEPER = 0.15  # more of the log-log slope of the lower envelope in the upper half of the compute
SPAN = 0.3  # decades of training compute: a factor of two
APART = 0.1  # decades of compute within which runs are of one budget: their slope is chance
CONFLICT = 3.0  # prior standard deviations between a posterior mean and its prior
BOUNDED = 1.0  # nats per token: every language model of more than a few words of context loses more
HOLLOW = "no calibrated forecast beyond the data"


def gate(posterior: Posterior) -> tuple[Check, ...]:
    """The conditions, worst over groups, each with its figure, its limit and what to do."""
    runs, by = posterior.runs, posterior.model.pooling.by
    assert runs is not None
    t = runs.table
    label = runs.labels(by)[0] if by else np.zeros(len(t))
    log_c, log_l = (np.log(t[name].to_numpy(float)) for name in ("flop", "loss"))
    own = [label == g for g in np.unique(label)]
    kinds = {posterior.model.pooling.kind(p) for p in posterior.model.parameters}
    apart = own if kinds == {"separate"} else [np.ones(len(t), bool)]
    return (
        _steepening([steepening(log_c[at], log_l[at]) for at in own]),
        _span(min(np.ptp(log_c[at]) for at in apart) / np.log(10)),
        _bounded(t["loss"].to_numpy(float).max(), runs.loss_unit),
        _conflict(posterior),
    )


def envelope(log_c: np.ndarray, log_l: np.ndarray) -> np.ndarray:
    """Indices of the best run of each budget that no smaller budget undercuts, by compute."""
    order = np.argsort(log_c, kind="stable")
    best: list[int] = []
    start = -np.inf
    for i in order:
        if log_c[i] > start + APART * np.log(10):
            start = log_c[i]
            best.append(i)
        elif log_l[i] < log_l[best[-1]]:
            best[-1] = i
    lowest = np.minimum.accumulate(log_l[best])
    return np.array(best)[np.concatenate([[True], log_l[best][1:] < lowest[:-1]])]


def steepening(log_c: np.ndarray, log_l: np.ndarray) -> float | None:
    """By how much the lower envelope's log-log slope is steeper in the upper half of the compute than in the lower.

    None where a half holds fewer than two points of the envelope.
    """
    at = envelope(log_c, log_l)
    x, y = log_c[at], log_l[at]
    middle = (log_c.min() + log_c.max()) / 2
    slopes = []
    for half in (x <= middle, x >= middle):
        if half.sum() < 2 or np.ptp(x[half]) == 0:
            return None
        slopes.append(np.polyfit(x[half], y[half], 1)[0])
    lower, upper = slopes
    return float(upper / lower - 1) if lower < 0 else None


def _steepening(found: list[float | None]) -> Check:
    known = [v for v in found if v is not None]
    if not known:
        return Check("steepening", None, f"{STEEPER}", "PASS", "too few runs along the lower envelope to tell")
    fails = max(known) > STEEPER
    advice = (
        "the best loss falls faster with compute at the upper end: no power law has set in yet; "
        "train larger runs, and leave the smallest out"
    )
    return Check("steepening", max(known), f"{STEEPER}", "FAIL" if fails else "PASS", advice if fails else "")


def _span(decades: float) -> Check:
    fails = decades < SPAN
    advice = "the runs span too little compute to tell how loss falls with it; train smaller or larger ones"
    return Check("span_decades", float(decades), f"{SPAN}", "FAIL" if fails else "PASS", advice if fails else "")


def _bounded(largest: float, unit: str) -> Check:
    fails = unit == "nats per token" and largest < BOUNDED
    advice = (
        "every loss is below 1 nat per token: an error rate or an accuracy, which is bounded, does not follow "
        "these laws; give the loss, or its unit"
    )
    return Check("bounded_metric", float(largest), f"{BOUNDED:g}", "FAIL" if fails else "PASS", advice if fails else "")


def _conflict(posterior: Posterior) -> Check:
    """Informative: a table can dispute what others say and still be forecast well."""
    model, sampled = posterior.model, posterior.tree["unconstrained_posterior"].dataset
    assert model.drift
    drawn = {**sampled.data_vars, **posterior.tree["posterior"].dataset.data_vars}
    found = {}
    for p in model.parameters:
        prior, x = model.prior(p), drawn.get(f"{p.site}_mean", drawn.get(p.site))
        if p.name in model.drift.priors and p is not SCALE and not isinstance(prior, Fixed) and x is not None:
            distance = np.abs(x.mean(("chain", "draw")).to_numpy() - prior.loc) / prior.spread
            found[p.name] = float(distance.max())
    if not found:
        return Check("prior_data_conflict", None, f"{CONFLICT:g}", "PASS")
    worst = max(found, key=found.__getitem__)
    far = found[worst] > CONFLICT
    advice = f"{worst} lies as many prior sds from what other tables say; look at the runs, or give its prior"
    return Check("prior_data_conflict", found[worst], f"{CONFLICT:g}", "PASS", advice if far else "")
