"""IsoFLOP minima: the compute-optimal frontier without a law, from runs that spend the same on several sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.frontier.intervals import flat
from bayescale.frontier.parabola import CONCAVE, FEW, FEWEST, MOST_WITHOUT, SPAN, budgets, resampled, vertex, window
from bayescale.frontier.power import KIND, PowerLaw, ends, spread, through
from bayescale.posterior.scorecard import records
from bayescale.runs.table import Runs

QUANTITIES = ("n_opt_params", "d_opt_tokens", "tokens_per_parameter", "loss")
COLUMNS = ("group", "budget_flop", "n_runs", "n_window", "window_loss_ratio", *QUANTITIES, "log10_n_opt_se")
FAR = 700.0  # a nearly straight parabola is lowest farther out than exp of a float can say
REFUSED = ("group", "budget_flop", "n_runs", "reason")


def isoflop_minima(
    runs: Runs,
    *,
    group_by: str | None = None,
    tolerance: float = 1.05,
    near: float = 1.05,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.9,
) -> Minima:
    """Compute-optimal sizes of the budgets that runs were trained at, and the power law through them.

    Approach 2 of Hoffmann et al. 2022 (arXiv 2203.15556), with bootstrap errors as Porian et al. 2024
    (arXiv 2406.19146). At each budget, a least squares parabola of log loss in log N goes through the
    window: the runs whose loss is at most ``near`` times the budget's lowest, or the five of lowest loss
    where those are fewer. Its vertex is N_opt, kept where the window has five runs or more, the parabola is
    convex, runs of the window lie on both sides, and at most 5 % of the resamples have no minimum; any
    other budget is in ``refused`` with the reason.
    D_opt is read off the line of log D in log N through the same runs, so no FLOP rule is used.

    Errors are a residual bootstrap in a fixed window (`parabola.resampled` says why not pairs); those of
    the power law add the scatter between budgets (`power.through`). Two things are not in them. A parabola
    shifts the vertex where the profile is asymmetric or the sizes are not centred: N_opt is then biased,
    by percents in windows of 5 %, and a is not as long as windows are alike (Czech et al. 2026, arXiv
    2603.22339); ``window_loss_ratio`` shows where they are not. And where budgets are points of the same
    runs (checkpoints under a constant learning rate), their errors are correlated, and the interval of a
    is too narrow.

    Parameters
    ----------
    runs : Runs
        Finished runs; their own compute, column ``flop``.
    group_by : str, optional
        Column whose values are recipes of their own: each has its minima and its power law.
    tolerance : float
        Runs are of one budget where, sorted, their compute differs by at most this factor from the next.
    near : float
        The window: loss at most this factor times the lowest of the budget.
    resamples : int
        Of the bootstrap.
    seed : int
        Of the bootstrap.
    level : float
        Probability inside the intervals.

    Returns
    -------
    Minima

    Raises
    ------
    ValueError
        If no group has two budgets with a minimum, a setting is outside its range, or the group column is
        not there.
    """
    checked(tolerance=tolerance, near=near, resamples=resamples, level=level)
    found, refused, draws, power = [], [], {}, {}
    rng = np.random.default_rng(seed)
    for group, table in split(runs, group_by):
        kept, bad, own = _of_group(group, table, (tolerance, near, resamples), rng)
        found, refused, draws[group] = found + kept, refused + bad, own
        log_c = np.log([row["budget_flop"] for row in kept])
        log_n = np.log([row["n_opt_params"] for row in kept])
        errors = own.pop("line")
        power[group] = through(log_c, log_n, errors, constant(table), rng) if len(kept) > 1 else None
    if not any(power.values()):
        raise ValueError(_too_few(runs, refused, len(found)))
    tables = pd.DataFrame(found, columns=list(COLUMNS)), pd.DataFrame(refused, columns=list(REFUSED))
    settings = {"tolerance": tolerance, "near": near, "resamples": resamples, "seed": seed}
    return Minima(*tables, draws, power, float(level), settings, runs.source, runs.loss_unit)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Minima:
    """IsoFLOP minima with their bootstrap, and the power law through those of each group.

    Attributes
    ----------
    table : DataFrame
        One row a group and budget that has a minimum, budgets ascending: ``group``, ``budget_flop`` (geometric
        mean, FLOPs), ``n_runs``, ``n_window`` (runs the parabola goes through), ``window_loss_ratio`` (their
        highest loss over their lowest), ``n_opt_params``, ``d_opt_tokens``, ``tokens_per_parameter``,
        ``loss`` (at the minimum, in ``loss_unit``) and ``log10_n_opt_se`` (bootstrap standard error of
        log10 N_opt).
    refused : DataFrame
        The other budgets: ``group``, ``budget_flop``, ``n_runs``, ``reason``.
    draws : mapping of group to mapping of str to array (R, K)
        Bootstrap of ``log_n``, ``log_d`` and ``log_loss``, natural logs; NaN where a resample has no minimum.
    power : mapping of group to PowerLaw or None
        N_opt ~ C^a; None where a group has fewer than two minima.
    level : float
        Probability inside the intervals; ``dataclasses.replace(minima, level=.5)`` changes it.
    settings : mapping
        ``tolerance``, ``near``, ``resamples`` and ``seed``.
    source, loss_unit : str
        Where the runs were read, and the unit of their losses.
    """

    table: pd.DataFrame
    refused: pd.DataFrame
    draws: Mapping[str | None, Mapping[str, np.ndarray]]
    power: Mapping[str | None, PowerLaw | None]
    level: float
    settings: Mapping[str, Any]
    source: str
    loss_unit: str

    @property
    def groups(self) -> tuple[str | None, ...]:
        """Labels of the groups; ``(None,)`` without ``group_by``."""
        return tuple(self.power)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; None where there is no number.

        One entry of ``results`` a group: ``minima`` (each quantity with ``estimate``, ``lower``, ``upper``),
        ``refused`` and ``power_law`` (``a``, ``b``, ``center_flop``, ``n_opt_at_center_params``).
        """
        return {
            "level": self.level,
            "kind": KIND,
            "source": self.source,
            "loss_unit": self.loss_unit,
            **self.settings,
            "results": [self._result(group) for group in self.groups],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """One row a group and budget that has a minimum: ``table`` with the ends of the intervals."""
        frame = pd.DataFrame([flat(row) | {"group": g} for g in self.groups for row in self._result(g)["minima"]])
        frame.attrs.update({"level": self.level, "kind": KIND, "loss_unit": self.loss_unit})
        return frame

    def _result(self, group: str | None) -> dict[str, Any]:
        own, power = self.draws[group], self.power[group]
        logs = np.array([own["log_n"], own["log_d"], own["log_d"] - own["log_n"], own["log_loss"]])
        values = np.exp(np.clip(logs, -FAR, FAR))
        minima = []
        for k, row in enumerate(records(rows_of(self.table, group))):
            each = zip(QUANTITIES, values, strict=True)
            minima.append(row | {name: ends(row[name], drawn[:, k], self.level) for name, drawn in each})
        law = power and power.to_dict(self.level)
        return {"group": group, "power_law": law, "minima": minima, "refused": records(rows_of(self.refused, group))}

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def split(runs: Runs, group_by: str | None) -> list[tuple[str | None, pd.DataFrame]]:
    """The table of each group, under its label."""
    if group_by is None:
        return [(None, runs.table)]
    label, names = runs.labels(group_by)
    return [(name, runs.table.loc[label == name]) for name in names]


def profiles(table: pd.DataFrame, tolerance: float) -> list[tuple[float, np.ndarray]]:
    """Each budget's compute, FLOPs, and which runs of the table spend it, the smallest first."""
    flop = table["flop"].to_numpy(float)
    label = budgets(flop, tolerance)
    each = [label == b for b in range(label.max() + 1)]
    return [(float(np.exp(np.log(flop[at]).mean())), at) for at in each]


def rows_of(table: pd.DataFrame, group: str | None) -> pd.DataFrame:
    """The rows of one group of a result's table."""
    return table if group is None else table.loc[table["group"] == group]


def constant(table: pd.DataFrame) -> bool:
    """Whether C / (N D) is one number k, within a percent."""
    k = table["flop"].to_numpy(float) / (table["n_params"].to_numpy(float) * table["n_tokens"].to_numpy(float))
    return bool(k.max() <= 1.01 * k.min())


def checked(*, resamples: int, level: float, **factors: float) -> None:
    """Refuse settings that mean nothing."""
    for name, value in factors.items():
        if not (math.isfinite(value) and value > 1):
            raise ValueError(f"{name} is a factor above 1, as 1.05, not {value!r}.")
    if isinstance(level, bool) or not 0 < level < 1:
        raise ValueError(f"level is the probability inside the interval, between 0 and 1, not {level!r}.")
    if resamples < 100:
        raise ValueError(f"resamples is at least 100, since its tails are an interval's ends, not {resamples!r}.")


def _of_group(group: str | None, table: pd.DataFrame, how: tuple[float, float, int], rng: np.random.Generator) -> Any:
    """Minima and refused budgets as rows, and bootstrap draws (R, K) of the minima."""
    tolerance, near, resamples = how
    kept, refused, draws = [], [], []
    for budget, at in profiles(table, tolerance):
        row = {"group": group, "budget_flop": budget, "n_runs": int(at.sum())}
        found = _minimum(table.loc[at], near, resamples, rng)
        if isinstance(found, str):
            refused.append(row | {"reason": found})
        else:
            kept.append(row | found[0])
            draws.append(found[1])
    names = ("log_n", "log_d", "log_loss", "line")
    stacked = np.stack(draws, axis=-1) if draws else np.empty((len(names), resamples, 0))
    return kept, refused, dict(zip(names, stacked, strict=True))


def _minimum(own: pd.DataFrame, near: float, resamples: int, rng: np.random.Generator) -> Any:
    """Estimates at one budget and their bootstrap (4, R), the last for the power law; or why there is none."""
    flop, n_params, tokens, loss = (own[k].to_numpy(float) for k in ("flop", "n_params", "n_tokens", "loss"))
    if flop.max() > SPAN * flop.min():
        return f"its runs spend from {flop.min():.3g} to {flop.max():.3g} FLOP, which is not one budget"
    inside = window(np.log(loss), near)
    x, d, y = np.log(n_params[inside]), np.log(tokens[inside]), np.log(loss[inside])
    point = vertex(x, y[None], np.ones((1, len(x)), bool))
    if point.why[0]:
        return reason(int(point.why[0]), len(x))
    again, line = resampled(x, y, resamples, rng)
    without = float(np.isnan(again.log_n).mean())
    if without > MOST_WITHOUT:
        return f"the scatter hides the minimum: {100 * without:.0f} % of the resamples have none"
    slope, height = np.polyfit(x - x.mean(), d, 1)
    log_n, log_loss = float(point.log_n[0]), float(point.log_loss[0])
    log_d = height + slope * (log_n - x.mean())
    values = np.exp([log_n, log_d, log_d - log_n, log_loss]).tolist()
    se = float(spread(again.log_n[:, None])[0] / np.log(10))
    row = {
        "n_window": len(x),
        "window_loss_ratio": float(np.exp(np.ptp(y))),
        **dict(zip(QUANTITIES, values, strict=True)),
        "log10_n_opt_se": se,
    }
    return row, np.stack([again.log_n, height + slope * (again.log_n - x.mean()), again.log_loss, line.log_n])


def reason(why: int, n: int) -> str:
    """Why a budget has no minimum, in words."""
    if why == FEW:
        return f"{n} run{'' if n == 1 else 's'}, a parabola with an error needs {FEWEST}"
    if why == CONCAVE:
        return "log loss is not convex in log N near its lowest point"
    return "not bracketed: its runs near the lowest loss lie on one side of the parabola's minimum"


def _too_few(runs: Runs, refused: list[dict[str, Any]], kept: int) -> str:
    named = [f"{row['budget_flop']:.3g} FLOP ({row['n_runs']} runs): {row['reason']}" for row in refused]
    more = f"; and {len(named) - 6} more" if len(named) > 6 else ""
    return (
        f"{runs.source} has {kept} budgets with a minimum; a power law needs two of one group. "
        f"{'; '.join(named[:6])}{more}. Train at least {FEWEST} sizes on both sides of the best at each of two "
        "budgets; raise tolerance= where the compute of one budget varies; or take compute_envelope, which needs none."
    )
