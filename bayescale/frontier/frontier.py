"""The compute-optimal frontier: for each budget, draws of N_opt, D_opt, tokens per parameter and loss.

Intervals are equal-tailed and taken over the draws that have an optimum inside the law's domain; the
share that has none is stated, and beyond 5 % of them there is no interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd
import xarray as xr

from bayescale import _show
from bayescale.frontier import solve
from bayescale.frontier.budgets import chosen_groups, read_budgets
from bayescale.frontier.intervals import flat
from bayescale.frontier.rows import UNITS, WORDS, band, rows, summarise
from bayescale.laws._law import Law
from bayescale.model.drift import Drifted
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.inputs import conditions
from bayescale.runs.flops import ComputeRule

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Posterior


def allocate(
    posterior: Posterior,
    budgets: Any,
    *,
    rule: ComputeRule | None = None,
    group: Any = None,
    at: Mapping[str, float] | None = None,
    level: float = 0.9,
) -> Frontier:
    """Compute-optimal model size and tokens for each budget, with their uncertainty.

    Parameters
    ----------
    posterior : Posterior
        A fit, or a published law.
    budgets : number, text of a number, or iterable of those
        Training compute, FLOPs; one to thousands.
    rule : ComputeRule, optional
        What a run costs; the fit's own rule unless given.
    group : str, NewGroup, PopulationMean, or list of those, optional
        Of a grouped fit: which groups; all of its groups unless given.
    at : mapping of str to float, optional
        Values of the law's conditions (``{"n_experts": 8}``); those left out are at their standard.
    level : float
        Probability inside the equal-tailed intervals.

    Returns
    -------
    Frontier

    Raises
    ------
    ValueError
        If a budget is not a positive number of FLOPs that buys a run within the law's domain (all bad
        ones in one message), ``level`` is not between 0 and 1, a group is unknown or named twice, a
        condition is unknown or outside the law's domain, or the law reads no tokens.
    TypeError
        If ``rule`` is not a FLOP rule.
    """
    rule = posterior.rule if rule is None else rule
    if not isinstance(rule, ComputeRule):
        raise TypeError(f"rule is a FLOP rule such as FlopsRule(6.0), not {rule!r}.")
    if isinstance(level, bool) or not 0 < level < 1:
        raise ValueError(f"level is the probability inside the interval, between 0 and 1, not {level!r}.")
    (n_low, n_high), (d_low, d_high) = solve.domain(posterior.law)
    alone = posterior.law_alone
    flop = read_budgets(budgets, smallest=float(rule.flop(n_low, d_low)), largest=float(rule.flop(n_high, d_high)))
    groups = chosen_groups(posterior.groups, group)
    surfaces = {label: posterior.surface(chosen, at) for label, chosen in groups.items()}
    mean = next(iter(surfaces.values())).law
    letters = {g: own.at(solve.fitted_compute(posterior, rule, own, flop)) for g, own in surfaces.items()}
    return Frontier(
        law=posterior.law,
        mean=mean,
        rule=rule,
        budgets=flop,
        level=float(level),
        diagnostics=posterior.status,
        loss_unit=posterior.loss_unit,
        largest=dict(posterior.largest),
        beyond=posterior.beyond,
        letters=letters,
        log_n={label: solve.optimum(mean, rule, own, flop)[0] for label, own in letters.items()},
        law_alone=alone and allocate(alone, budgets, rule=rule, group=group, at=at, level=level),
        conditions=conditions(posterior.law, at),
        fit=posterior,
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Draws of the compute-optimal plan for each budget, and their intervals.

    Only the draws of log N_opt are kept; all else is computed when asked for.

    Attributes
    ----------
    law, mean, rule
        The law; what was minimised (it, or it with drift); and what a run costs.
    budgets : array (K,)
        Training compute, FLOPs, in the order given.
    level : float
        Probability inside the equal-tailed intervals; ``dataclasses.replace(frontier, level=.5)``
        changes it without solving again.
    diagnostics : str
        PASS, FAIL or UNKNOWN: whether the fit's sampling may be relied on.
    loss_unit : str
        Unit of the loss.
    largest : mapping
        Largest ``n_params``, ``n_tokens`` and ``flop`` of the fitted runs.
    letters : mapping of group to mapping of str to array (S,) or (S, K)
        Draws of what ``mean`` reads.
    log_n : mapping of group to array (S, K)
        Natural log of N_opt; NaN where a draw has no optimum inside the law's domain. The key of a
        fit without groups is None.
    law_alone : Frontier or None
        Of a fit with drift: the same budgets were the law exact.
    beyond : str or None
        Of a fit with drift: PASS or FAIL, whether intervals beyond the data are calibrated.
    conditions : mapping of str to float
        Values at which the law's conditions are held.
    fit : Posterior or None
        What it rests on.
    """

    law: Law
    mean: Law | Drifted
    rule: ComputeRule
    budgets: np.ndarray
    level: float
    diagnostics: str
    loss_unit: str
    largest: Mapping[str, float]
    letters: Mapping[str | None, Mapping[str, np.ndarray]]
    log_n: Mapping[str | None, np.ndarray]
    law_alone: Frontier | None = None
    beyond: str | None = None
    conditions: Mapping[str, float] = field(default_factory=dict)
    fit: Posterior | None = None

    @property
    def warning(self) -> str | None:
        """What is wrong with its intervals, where budgets lie beyond runs that fail the gate."""
        far = bool((self.budgets > self.largest["flop"]).any())
        return HOLLOW if far and self.beyond == "FAIL" else None

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether its numbers may be relied on, beyond the data too where budgets lie there."""
        return "FAIL" if self.warning else self.diagnostics

    def thinned(self, keep: np.ndarray) -> Frontier:
        """The same at some of its budgets, by index."""
        letters = {g: {n: v if v.ndim == 1 else v[:, keep] for n, v in own.items()} for g, own in self.letters.items()}
        log_n = {g: values[:, keep] for g, values in self.log_n.items()}
        alone = self.law_alone and self.law_alone.thinned(keep)
        return replace(self, budgets=self.budgets[keep], letters=letters, log_n=log_n, law_alone=alone)

    @property
    def groups(self) -> tuple[str | None, ...]:
        """Labels of the groups; ``(None,)`` for a fit without groups."""
        return tuple(self.log_n)

    def n_opt(self, group: Any = None) -> xr.DataArray:
        """Draws of the compute-optimal number of parameters, dims (draw, budget_flop).

        ``group`` may be left out where there is only one. NaN where a draw has no optimum.
        """
        return self._labelled("n_opt_params", np.exp(self.log_n[self._label(group)]))

    def d_opt(self, group: Any = None) -> xr.DataArray:
        """Draws of the compute-optimal number of tokens, as ``n_opt``."""
        return self._labelled("d_opt_tokens", self._spend(self._label(group))[0])

    def tokens_per_parameter(self, group: Any = None) -> xr.DataArray:
        """Draws of D_opt / N_opt, as ``n_opt``."""
        label = self._label(group)
        return self._labelled("tokens_per_parameter", self._spend(label)[0] / np.exp(self.log_n[label]))

    def loss(self, group: Any = None) -> xr.DataArray:
        """Draws of the mean loss of the compute-optimal run, as ``n_opt``."""
        return self._labelled("loss", self._spend(self._label(group))[1])

    def exponents(self, group: Any = None) -> xr.Dataset:
        """Draws of a = d log N_opt / d log C and b = d log D_opt / d log C at each budget.

        For Hoffmann et al.'s law and C = k N D, a = beta / (alpha + beta) at every budget (arXiv
        2203.15556, equation 4).
        """
        label = self._label(group)
        a, b = solve.exponents(self.mean, self.rule, self.letters[label], self.budgets, self.log_n[label])
        return xr.Dataset({"a": self._labelled("a", a), "b": self._labelled("b", b)})

    def draws(self) -> xr.Dataset:
        """All draws of N_opt, D_opt, tokens per parameter and loss; with a dimension ``group`` if grouped."""
        each = [
            xr.merge([self.n_opt(g), self.d_opt(g), self.tokens_per_parameter(g), self.loss(g)]) for g in self.groups
        ]
        if self.groups == (None,):
            return each[0]
        return xr.concat(each, xr.IndexVariable("group", [str(g) for g in self.groups]))

    def no_optimum_share(self, group: Any = None) -> xr.DataArray:
        """Share of draws whose loss has no minimum inside the law's domain, dim (budget_flop)."""
        share = np.isnan(self.log_n[self._label(group)]).mean(axis=0)
        return xr.DataArray(share, {"budget_flop": self.budgets}, name="no_optimum_share")

    def within_1_percent(self, group: Any = None) -> xr.Dataset:
        """Sizes whose loss is within 1 % of the compute-optimal one at the same budget.

        Medians over draws of each draw's own two ends, ``lower`` and ``upper``, dim (budget_flop);
        over at most 400 evenly spaced draws. An end is NaN where the band reaches the edge of the
        law's domain in half of the draws, or where there is no interval at all.
        """
        lower, upper = band(self, self._label(group))
        ends = {"lower": ("budget_flop", lower), "upper": ("budget_flop", upper)}
        return xr.Dataset(ends, {"budget_flop": self.budgets})

    def to_dict(self) -> dict[str, Any]:
        """The table as plain Python values; None where there is no number.

        One entry of ``results`` a group and budget. ``extrapolation_factor`` is the budget over the
        largest fitted run's, ``n_opt_extrapolation_factor`` and ``d_opt_extrapolation_factor`` the
        medians over the largest fitted size and tokens; ``extrapolates`` and ``far`` say whether any
        of the three is above 1, above 100. ``determined`` is false where the ends of the interval of
        tokens per parameter differ by more than a factor of ten; ``compute_wasted`` then is the share
        of the budget that a model of the interval's lower end, median and upper end wastes. With
        drift, ``law_alone`` is the same entry were the law exact, and ``drift_share`` the share of the
        intervals' widths (of logs) that is drift; ``beyond_data`` is FAIL where the table has no
        calibrated forecast beyond it. ``conditions`` are the values at which the law's conditions are held.
        """
        return {
            "warning": self.warning,
            "level": self.level,
            "kind": "eti",
            "diagnostics": self.diagnostics,
            "rule": str(self.rule),
            "loss_unit": self.loss_unit,
            "drift": self.mean is not self.law,
            "beyond_data": self.beyond,
            "conditions": dict(self.conditions),
            "results": rows(self),
        }

    def to_dataframe(self) -> pd.DataFrame:
        """One row a group and budget; the keys of ``to_dict`` joined with their statistic, NaN for None.

        ``attrs`` has the level and kind of the intervals and the diagnostics.
        """
        table = self.to_dict()
        frame = pd.DataFrame([flat(row) for row in table.pop("results")])
        frame = frame.astype({name: float for name in frame if not name.endswith(WORDS)})
        frame.attrs.update(table)
        return frame

    @cached_property
    def summary(self) -> dict[str | None, dict[str, np.ndarray]]:
        """Of each group: ends and median of each quantity (3, K); the 1 % band (2, K); the share without (1, K)."""
        return {label: summarise(self, label) for label in self.groups}

    def _spend(self, label: str | None) -> tuple[np.ndarray, ...]:
        return solve.spend(self.mean, self.rule, self.letters[label], self.budgets, self.log_n[label])

    def _label(self, group: Any) -> str | None:
        label = self.groups[0] if group is None and len(self.groups) == 1 else None if group is None else str(group)
        if label not in self.log_n:
            raise ValueError(f"group is one of {', '.join(map(str, self.groups))}, not {group!r}.")
        return label

    def _labelled(self, name: str, values: np.ndarray) -> xr.DataArray:
        unit = self.loss_unit if name == "loss" else UNITS[name]
        coordinates = {"draw": np.arange(len(values)), "budget_flop": self.budgets}
        return xr.DataArray(values, coordinates, ("draw", "budget_flop"), name, {"unit": unit})

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
