"""A frontier as plain values: one row a group and budget, and the law alone beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescale.frontier.intervals import interval, plain, quantiles
from bayescale.frontier.waste import wasted

if TYPE_CHECKING:
    from bayescale.frontier.frontier import Frontier

FAR = 100.0  # a plan this many times beyond the largest run is marked as far
WORDS = ("group", "extrapolates", "far", "determined", "compute_wasted")  # of a row: what is no number
DETERMINED = 10.0  # ratio of the ends of the interval of tokens per parameter beyond which it is not determined
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
