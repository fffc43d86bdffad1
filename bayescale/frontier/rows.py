"""A frontier's draws summed up, and as plain values: one row a group and budget, the law alone beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescale.frontier import solve
from bayescale.frontier.intervals import interval, plain, quantiles
from bayescale.frontier.waste import wasted

if TYPE_CHECKING:
    from bayescale.frontier.frontier import Frontier

FAR = 100.0  # a plan this many times beyond the largest run is marked as far
WORDS = ("group", "extrapolates", "far", "determined", "compute_wasted")  # of a row: what is no number
DETERMINED = 10.0  # ratio of the ends of the interval of tokens per parameter beyond which it is not determined
MOST_WITHOUT = 0.05  # share of draws without an optimum beyond which quantiles of the others mislead
BAND_DRAWS = 400  # draws behind the 1 % band: the median of its ends moves by a twentieth of their spread
BLOCK = 1 << 20  # draws x budgets summarised at a time: 8 MB an array
WASTE_DRAWS = 200  # draws behind the compute wasted: it is a share of percents, and its median moves little
UNITS = {"n_opt_params": "parameters", "d_opt_tokens": "tokens", "tokens_per_parameter": "tokens per parameter"}
UNITS |= {"loss": "loss", "a": "1", "b": "1"}


def rows(frontier: Frontier) -> list[dict[str, Any]]:
    """One entry a group and budget, as `Frontier.to_dict` says."""
    found = [row(frontier, label, k) for label in frontier.groups for k in range(frontier.budgets.size)]
    if frontier.law_alone is None:
        return found
    alone = rows(dataclasses.replace(frontier.law_alone, level=frontier.level))
    return [
        each | {"drift_share": _shares(each, own), "law_alone": own} for each, own in zip(found, alone, strict=True)
    ]


def row(frontier: Frontier, label: str | None, k: int) -> dict[str, Any]:
    """The entry of one group and budget."""
    summary, budget = frontier.summary[label], float(frontier.budgets[k])
    factors = {
        "extrapolation_factor": budget / frontier.largest["flop"],
        "n_opt_extrapolation_factor": summary["n_opt_params"][1, k] / frontier.largest["n_params"],
        "d_opt_extrapolation_factor": summary["d_opt_tokens"][1, k] / frontier.largest["n_tokens"],
    }
    ratio = summary["tokens_per_parameter"][:, k]
    determined = bool(ratio[2] <= DETERMINED * ratio[0]) if np.isfinite(ratio).all() else None
    return {
        "budget_flop": budget,
        "group": label,
        **{name: interval(*summary[name][:, k]) for name in UNITS},
        "n_within_1_percent_params": dict(zip(("lower", "upper"), map(plain, summary["band"][:, k]), strict=True)),
        **{name: plain(value) for name, value in factors.items()},
        "extrapolates": any(value > 1 for value in factors.values()),
        "far": any(value > FAR for value in factors.values()),
        "no_optimum_share": float(summary["share"][0, k]),
        "determined": determined,
        "compute_wasted": None
        if determined is not False
        else _waste(frontier, label, k, summary["n_opt_params"][:, k]),
    }


def summarise(frontier: Frontier, label: str | None) -> dict[str, np.ndarray]:
    """Lower end, median and upper end of each quantity (3, K); the band (2, K); the share (1, K)."""
    log_n, letters = frontier.log_n[label], frontier.letters[label]
    probabilities = np.array([(1 - frontier.level) / 2, 0.5, (1 + frontier.level) / 2])
    summary = {name: np.empty((3, frontier.budgets.size)) for name in UNITS}
    step = max(1, BLOCK // len(log_n))
    for block in (slice(k, k + step) for k in range(0, frontier.budgets.size, step)):
        own = {name: v if v.ndim == 1 else v[:, block] for name, v in letters.items()}
        problem = frontier.mean, frontier.rule, own, frontier.budgets[block], log_n[:, block]
        n_params, (tokens, loss) = np.exp(problem[-1]), solve.spend(*problem)
        values = n_params, tokens, tokens / n_params, loss, *solve.exponents(*problem)
        for name, each in zip(UNITS, values, strict=True):
            summary[name][:, block] = quantiles(each, probabilities)
    share = frontier.no_optimum_share(label).to_numpy()
    summary = {name: np.where(share > MOST_WITHOUT, np.nan, values) for name, values in summary.items()}
    return summary | {"band": band(frontier, label), "share": share[None]}


def band(frontier: Frontier, label: str | None) -> np.ndarray:
    """Median ends of the 1 % band, (2, K)."""
    log_n = frontier.log_n[label]
    some = np.unique(np.linspace(0, len(log_n) - 1, BAND_DRAWS).round().astype(int))
    letters = {name: values[some] for name, values in frontier.letters[label].items()}
    ends = solve.band(frontier.mean, frontier.rule, letters, frontier.budgets, log_n[some])
    medians = np.exp(np.concatenate([quantiles(end, np.array([0.5])) for end in ends]))
    none = frontier.no_optimum_share(label).to_numpy() > MOST_WITHOUT
    return np.where(none | (medians == 0) | np.isinf(medians), np.nan, medians)


def _waste(frontier: Frontier, label: str | None, k: int, sizes: np.ndarray) -> dict[str, Any]:
    """Share of the budget that a size at each of the interval's ends and at its middle wastes.

    The median over draws, and the one-sided upper end of the frontier's level.
    """
    letters = frontier.letters[label]
    draws = len(frontier.log_n[label])
    some = np.unique(np.linspace(0, draws - 1, WASTE_DRAWS).round().astype(int))
    own = {name: v[some] if v.ndim == 1 else v[some, k] for name, v in letters.items()}
    found = wasted(frontier.mean, frontier.rule, own, float(frontier.budgets[k]), sizes)
    middle, upper = quantiles(found, np.array([0.5, frontier.level]))
    return {
        of: {"n_params": plain(n), "median": plain(m), "upper": plain(u)}
        for of, n, m, u in zip(("lower", "median", "upper"), sizes, middle, upper, strict=True)
    }


def _shares(found: Mapping[str, Any], alone: Mapping[str, Any]) -> dict[str, float | None]:
    """Of each quantity, the share of the interval's width (of its log) that is drift."""
    return {name: _share(found[name], alone[name]) for name in UNITS if name not in ("a", "b")}


def _share(found: Mapping[str, float | None], alone: Mapping[str, float | None]) -> float | None:
    widths = []
    for each in (found, alone):
        lower, upper = each["lower"], each["upper"]
        if lower is None or upper is None or not 0 < lower < upper:
            return None
        widths.append(math.log(upper / lower))
    return max(0.0, 1 - widths[1] / widths[0])
