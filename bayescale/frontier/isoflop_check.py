"""Does a fit make tables whose IsoFLOP minima lie where those of its own table do?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.frontier.intervals import flat, plain
from bayescale.frontier.isoflop import Minima, isoflop_minima, profiles, rows_of, split
from bayescale.frontier.parabola import vertex, window
from bayescale.frontier.power import lines

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Posterior

KIND = "eti"
LEAST = 0.5  # share of replicated tables that have the minimum, below which there is no interval


def isoflop_check(
    posterior: Posterior, *, tolerance: float = 1.05, near: float = 1.05, level: float = 0.9
) -> IsoflopCheck:
    """The IsoFLOP minima of the fitted runs against those of tables that the fit would make.

    A law may describe losses well and put the optimum elsewhere, since loss hardly changes along a budget
    near its minimum. So the procedure of `isoflop_minima` (Hoffmann et al. 2022, arXiv 2203.15556, approach
    2), with the same choice of window, is applied to every replicated table of the posterior predictive:
    the same runs, new losses. What the parabola does to an asymmetric profile or a grid that is not
    centred, it does to both. That the data were used twice makes the check lenient: a minimum outside its
    interval is news, one inside is not proof.

    Parameters
    ----------
    posterior : Posterior
        A fit to runs.
    tolerance, near : float
        As of `isoflop_minima`.
    level : float
        Probability inside the equal-tailed intervals of the posterior predictive.

    Returns
    -------
    IsoflopCheck

    Raises
    ------
    ValueError
        If the posterior was not fitted to runs, or its runs have no two budgets with a minimum.
    """
    runs = posterior.runs
    if runs is None or "posterior_predictive" not in posterior.tree:
        raise ValueError(
            "This posterior was not fitted to runs; it has no table to check. Fit runs with several sizes."
        )
    by = posterior.model.pooling.by if posterior.groups else None
    seen = isoflop_minima(runs, group_by=by, tolerance=tolerance, near=near, resamples=100, level=level)
    new = np.asarray(posterior.tree["posterior_predictive"].dataset["loss"])
    with np.errstate(divide="ignore"):  # the tails of a wide scatter may leave what a float holds
        log_loss = np.log(new.reshape(-1, new.shape[-1]))
    place = {row: i for i, row in enumerate(runs.table.index)}
    draws = {
        group: _replicated(
            table, log_loss[:, [place[i] for i in table.index]], rows_of(seen.table, group), (tolerance, near)
        )
        for group, table in split(runs, by)
    }
    return IsoflopCheck(seen, draws, float(level), posterior.status)


@final
@dataclass(frozen=True, eq=False, repr=False)
class IsoflopCheck:
    """Observed IsoFLOP minima against posterior predictive intervals of them.

    Attributes
    ----------
    minima : Minima
        Of the observed losses.
    draws : mapping of group to array (S, K)
        Natural log of N_opt in each replicated table, at the budgets that have an observed minimum; NaN
        where the replicated table has none.
    level : float
        Probability inside the equal-tailed intervals.
    diagnostics : str
        PASS, FAIL or UNKNOWN: the fit's own.
    """

    minima: Minima
    draws: Mapping[str | None, np.ndarray]
    level: float
    diagnostics: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe. One entry of ``results`` a group: ``budgets`` and ``a``.

        Each budget has ``observed_n_opt_params``, ``predictive_n_opt_params`` (median, lower, upper),
        ``inside``, and ``no_minimum_share`` of the replicated tables; where that is above one half there is
        no interval, and ``inside`` is None.
        """
        return {
            "level": self.level,
            "kind": KIND,
            "diagnostics": self.diagnostics,
            "source": self.minima.source,
            **{k: self.minima.settings[k] for k in ("tolerance", "near")},
            "results": [self._result(group) for group in self.draws],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """One row a group and budget: observed minimum, predictive interval, inside or not."""
        table = self.to_dict()
        frame = pd.DataFrame([flat(b) | {"group": r["group"]} for r in table.pop("results") for b in r["budgets"]])
        frame.attrs.update(table)
        return frame

    def _result(self, group: str | None) -> dict[str, Any]:
        rows, power, draws = rows_of(self.minima.table, group), self.minima.power[group], self.draws[group]
        flop = rows["budget_flop"].to_numpy(float)
        found = []
        for k, (budget, n) in enumerate(zip(flop, rows["n_opt_params"].to_numpy(float), strict=True)):
            compared = self._compared("n_opt_params", float(n), np.exp(draws[:, k]))
            found.append({"budget_flop": float(budget), **compared})
        a = lines(np.log(flop), draws)[0] if power else np.empty(0)
        return {"group": group, "budgets": found, "a": self._compared("a", power.a, a) if power else None}

    def _compared(self, name: str, observed: float, draws: np.ndarray) -> dict[str, Any]:
        finite = draws[np.isfinite(draws)]
        enough = len(finite) >= LEAST * len(draws)
        q = [0.5, (1 - self.level) / 2, (1 + self.level) / 2]
        middle, lower, upper = np.quantile(finite, q) if enough else np.full(3, np.nan)
        return {
            f"observed_{name}": observed,
            f"predictive_{name}": {"median": plain(middle), "lower": plain(lower), "upper": plain(upper)},
            "inside": bool(lower <= observed <= upper) if enough else None,
            "no_minimum_share": 1 - len(finite) / len(draws),
        }

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def _replicated(table: pd.DataFrame, log_loss: np.ndarray, kept: pd.DataFrame, how: tuple[float, float]) -> np.ndarray:
    """Log N_opt (S, K) of replicated losses (S, runs) at the budgets that were kept."""
    tolerance, near = how
    log_n = np.log(table["n_params"].to_numpy(float))
    at_budget = dict(profiles(table, tolerance))
    columns = []
    for budget in kept["budget_flop"]:
        at = at_budget[float(budget)]
        fine = np.isfinite(log_loss[:, at]).all(axis=1)
        y = log_loss[np.ix_(fine, at)]
        found = vertex(log_n[at], y, window(y, near))
        column = np.full(len(fine), np.nan)
        column[fine] = np.where(found.why == 0, found.log_n, np.nan)
        columns.append(column)
    return np.stack(columns, axis=1) if columns else np.empty((len(log_loss), 0))
