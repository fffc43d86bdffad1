"""The lower envelope of loss against compute: the frontier without a law, from runs of any compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.frontier.isoflop import checked, constant, rows_of, split
from bayescale.frontier.power import KIND, PowerLaw, lines
from bayescale.posterior.scorecard import records
from bayescale.runs.table import Runs

COLUMNS = ("group", "run", "flop", "n_params", "n_tokens", "tokens_per_parameter", "loss")
FEWEST = 3  # runs on an envelope: a line and one degree of freedom
BLOCK = 1 << 22  # resamples x runs at once: 32 MB an array


def compute_envelope(
    runs: Runs, *, group_by: str | None = None, resamples: int = 1000, seed: int = 0, level: float = 0.9
) -> Envelope:
    """Sizes of the runs that no cheaper run beats, and a power law N ~ C^a through them.

    The idea of approach 1 of Hoffmann et al. 2022 (arXiv 2203.15556), with finished runs in place of
    training curves: a run is on the envelope when its loss is below that of all runs of its compute or
    less. The interval is a pairs bootstrap, since sizes and compute are here as they come: runs are
    resampled, and each resample has its own envelope.

    It is biased, and its interval does not show it. Between the sizes that were trained the envelope can
    only choose the nearest, at the ends of the sizes it stays there, the cheapest run is on it whatever
    its size, and a lucky loss stays on it at any size. So it needs many sizes at every compute; with
    budgets of several sizes each, `isoflop_minima` is better. A bootstrap of extremes is a rough one too.

    Parameters
    ----------
    runs : Runs
        Finished runs; their own compute, column ``flop``.
    group_by : str, optional
        Column whose values are recipes of their own: each has its envelope.
    resamples, seed
        Of the bootstrap.
    level : float
        Probability inside the intervals.

    Returns
    -------
    Envelope

    Raises
    ------
    ValueError
        If the envelope of no group has three runs of different sizes, a setting is outside its range, or
        the group column is not there.
    """
    checked(resamples=resamples, level=level)
    rng = np.random.default_rng(seed)
    parts, power = [], {}
    for group, table in split(runs, group_by):
        table = table.sort_values(["flop", "loss"], kind="stable")
        log_loss, log_c, log_n = (np.log(table[k].to_numpy(float)) for k in ("loss", "flop", "n_params"))
        on = lowest(log_loss[None])[0]
        tokens = table["n_tokens"] / table["n_params"]
        parts.append(table.assign(group=group, tokens_per_parameter=tokens).loc[on, list(COLUMNS)])
        fits = on.sum() >= FEWEST and len(set(log_n[on])) > 1
        power[group] = _power(log_c, log_n, log_loss, constant(table), resamples, rng) if fits else None
    if not any(power.values()):
        raise ValueError(
            f"The envelope of {runs.source} has {max(map(len, parts))} runs at most; a power law needs {FEWEST} of "
            "different sizes. Add runs at more compute levels, each with several sizes."
        )
    table = pd.concat(parts, ignore_index=True)
    settings = {"resamples": resamples, "seed": seed}
    return Envelope(table, power, float(level), settings, len(runs), runs.source, runs.loss_unit)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Envelope:
    """The runs on the lower envelope of loss against compute, and the power law of their sizes.

    Attributes
    ----------
    table : DataFrame
        One row a run on the envelope, compute ascending: ``group``, ``run``, ``flop`` (FLOPs), ``n_params``,
        ``n_tokens``, ``tokens_per_parameter``, ``loss`` (in ``loss_unit``).
    power : mapping of group to PowerLaw or None
        N ~ C^a; None where fewer than three runs of different sizes are on the envelope.
    level : float
        Probability inside the intervals; ``dataclasses.replace(envelope, level=.5)`` changes it.
    settings : mapping
        ``resamples`` and ``seed``.
    n_runs : int
        Runs of the table it was found in.
    source, loss_unit : str
        Where the runs were read, and the unit of their losses.
    """

    table: pd.DataFrame
    power: Mapping[str | None, PowerLaw | None]
    level: float
    settings: Mapping[str, Any]
    n_runs: int
    source: str
    loss_unit: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: one entry of ``results`` a group, with ``power_law`` as `Minima.to_dict` and its ``runs``."""
        return {
            "level": self.level,
            "kind": KIND,
            "source": self.source,
            "loss_unit": self.loss_unit,
            "n_runs": self.n_runs,
            **self.settings,
            "results": [self._result(group) for group in self.power],
        }

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of ``table``."""
        return self.table.copy()

    def _result(self, group: str | None) -> dict[str, Any]:
        power = self.power[group]
        rows = records(rows_of(self.table, group))
        return {"group": group, "power_law": power and power.to_dict(self.level), "runs": rows}

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def lowest(log_loss: np.ndarray) -> np.ndarray:
    """Of losses (R, n) in the order of compute: which lie below all before them; runs left out are infinite."""
    before = np.minimum.accumulate(log_loss, axis=1)[:, :-1]
    return log_loss < np.pad(before, ((0, 0), (1, 0)), constant_values=np.inf)


def _power(
    log_c: np.ndarray, log_n: np.ndarray, log_loss: np.ndarray, spends_all: bool, size: int, rng: np.random.Generator
) -> PowerLaw:
    """The line through the envelope, and through those of resampled runs, all at the first one's centre."""
    on = lowest(log_loss[None])[0]
    center = log_c[on].mean()
    slope, height = lines(log_c[on], log_n[on][None])
    slopes, heights = [], []
    step = max(1, BLOCK // len(log_c))
    for start in range(0, size, step):
        rows = min(step, size - start)
        there = np.zeros((rows, len(log_c)), bool)
        there[np.arange(rows)[:, None], rng.integers(len(log_c), size=(rows, len(log_c)))] = True
        chosen = lowest(np.where(there, log_loss, np.inf))
        a, at_mean = lines(log_c, np.where(chosen, log_n, np.nan))
        slopes.append(a)
        heights.append(at_mean + a * (center - log_c.mean()))
    draws = np.concatenate(slopes), np.concatenate(heights)
    return PowerLaw(float(np.exp(center)), float(slope[0]), float(height[0]), *draws, spends_all)
