"""Recipes side by side: how much compute one needs to reach what another does, and which is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
import xarray as xr

from bayescale import _show
from bayescale.frontier import solve
from bayescale.frontier.frontier import Frontier
from bayescale.frontier.intervals import flat, interval, plain, quantiles
from bayescale.frontier.solve import Letters

# Shares of a budget at which another recipe's best loss is sought: a twelfth of a decade apart, between which the
# log of a power law's loss is straight to a thousandth of the ratio.
RATIOS = np.geomspace(1e-3, 1e3, 73)
MOST_OUTSIDE = 0.05  # share of draws without a multiplier beyond which quantiles of the others mislead


def compute_multiplier(frontier: Frontier, *, reference: str) -> Multipliers:
    """The compute that each group needs to reach the reference group's best loss, over the reference's.

    Each draw compares both groups under the same draw of all that they share, so what is common to them
    cancels. A group's loss departs from its law as it does at the budget itself.

    Parameters
    ----------
    frontier : Frontier
        From `allocate`, of a fit with groups, at the budgets to compare at.
    reference : str
        The group that the others are compared with.

    Raises
    ------
    ValueError
        If the frontier has fewer than two groups, or no group of that name.
    """
    if len(frontier.groups) < 2:
        raise ValueError("Recipes are compared between groups: allocate from a fit with at least two of them.")
    if reference not in frontier.groups:
        known = ", ".join(map(str, frontier.groups))
        raise ValueError(f"Unknown group {reference!r}; this frontier has {known}.")
    budgets = range(len(frontier.budgets))
    goal = np.log(frontier.loss(reference).to_numpy())
    others = [g for g in frontier.groups if g != reference and g is not None]
    log_ratio = {
        g: np.stack([_needed(frontier, _at(frontier.letters[g], k), k, goal[:, k]) for k in budgets], 1) for g in others
    }
    lower = {g: _lower(np.log(frontier.loss(g).to_numpy()), goal) for g in others}
    alone = frontier.law_alone and compute_multiplier(frontier.law_alone, reference=reference)
    return Multipliers(frontier, reference, log_ratio, lower, alone)


def _at(letters: Letters, k: int) -> dict[str, np.ndarray]:
    """What the losses of one budget read."""
    return {name: v if v.ndim == 1 else v[:, k] for name, v in letters.items()}


def _needed(frontier: Frontier, letters: Letters, k: int, goal: np.ndarray) -> np.ndarray:
    """Log of the compute, over budget k, at which the best log loss is ``goal`` (S,): infinite beyond the ratios."""
    budgets = frontier.budgets[k] * RATIOS
    log_n = solve.optimum(frontier.mean, frontier.rule, letters, budgets)[0]
    best = np.log(solve.spend(frontier.mean, frontier.rule, letters, budgets, log_n)[1])
    out = np.full(len(goal), np.nan)
    log_ratio = np.log(RATIOS)
    for i in np.flatnonzero(np.isfinite(goal)):
        known = np.isfinite(best[i])
        if known.any():
            falls = -best[i, known]
            out[i] = np.interp(-goal[i], falls, log_ratio[known], left=-np.inf, right=np.inf)
    return out


def _lower(loss: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Where the loss is below the reference's: 1 or 0, NaN where either has no optimum."""
    return np.where(np.isfinite(loss) & np.isfinite(goal), loss < goal, np.nan)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Multipliers:
    """Compute that groups need, over that of a reference group, for the reference's best loss at each budget.

    Below 1 a group needs less. ``log_ratio`` is infinite where a draw needs less than a thousandth or more than
    a thousand times the compute, or never gets there.

    Attributes
    ----------
    frontier : Frontier
        The plans that are compared.
    reference : str
        The group that the others are compared with.
    log_ratio : mapping of group to array (S, K)
        Draws of the natural log of the multiplier; NaN where a group has no optimum.
    lower : mapping of group to array (S, K)
        1 where the group's best loss at the budget is below the reference's, else 0.
    law_alone : Multipliers or None
        Of a fit with drift: were the law exact.
    """

    frontier: Frontier
    reference: str
    log_ratio: Mapping[str, np.ndarray]
    lower: Mapping[str, np.ndarray]
    law_alone: Multipliers | None = None

    @property
    def warning(self) -> str | None:
        """As the frontier's."""
        return self.frontier.warning

    @property
    def standing(self) -> str:
        """As the frontier's."""
        return self.frontier.standing

    def draws(self, group: str) -> xr.DataArray:
        """Draws of a group's multiplier, dims (draw, budget_flop)."""
        values = np.exp(self.log_ratio[group])
        return xr.DataArray(values, {"budget_flop": self.frontier.budgets}, ("draw", "budget_flop"), name="multiplier")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain Python values; None where there is no number.

        One entry of ``results`` a group and budget: ``multiplier`` (null where over 5 % of the draws have none
        between a thousandth and a thousand), ``outside_share`` of those draws, and ``better_probability``, that
        the group's best loss at the budget is the lower. ``law_alone`` as in `Frontier.to_dict`.
        """
        return {
            "warning": self.warning,
            "level": self.frontier.level,
            "kind": "eti",
            "diagnostics": self.frontier.diagnostics,
            "reference": self.reference,
            "rule": str(self.frontier.rule),
            "drift": self.law_alone is not None,
            "beyond_data": self.frontier.beyond,
            "conditions": dict(self.frontier.conditions),
            "results": self._rows(),
        }

    def _rows(self) -> list[dict[str, Any]]:
        budgets = enumerate(self.frontier.budgets)
        rows = [self._row(group, k, float(budget)) for k, budget in budgets for group in self.log_ratio]
        if self.law_alone is None:
            return rows
        return [row | {"law_alone": own} for row, own in zip(rows, self.law_alone._rows(), strict=True)]

    def _row(self, group: str, k: int, budget: float) -> dict[str, Any]:
        drawn, tail = self.log_ratio[group][:, k], (1 - self.frontier.level) / 2
        outside = float((~np.isfinite(drawn)).mean())
        ends = quantiles(drawn[:, None], np.array([tail, 0.5, 1 - tail]))[:, 0]
        lower = self.lower[group][:, k]
        better = float(np.nanmean(lower)) if np.isfinite(lower).any() else np.nan
        return {
            "budget_flop": budget,
            "group": group,
            "multiplier": interval(*np.exp(ends if outside <= MOST_OUTSIDE else np.full(3, np.nan))),
            "outside_share": outside,
            "better_probability": plain(better),
            "extrapolation_factor": budget / self.frontier.largest["flop"],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """One row a group and budget; the keys of ``to_dict`` joined with their statistic."""
        table = self.to_dict()
        frame = pd.DataFrame([flat(row) for row in table.pop("results")])
        frame.attrs.update(table)
        return frame

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
