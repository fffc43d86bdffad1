"""The loss of given runs: of the mean over runs like it, and of one new run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.laws._law import Law
from bayescale.model.drift import Drifted
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.inputs import checked
from bayescale.posterior.posterior import Group, Posterior
from bayescale.runs.table import Runs

ELEMENTS = 2_000_000  # draws x rows handled at once: 16 MB an array


@final
@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Intervals of the loss of planned runs.

    Attributes
    ----------
    runs : DataFrame
        One row a run and group: the law's inputs, ``flop`` (FLOPs), ``group``, ``extrapolation_factor``
        (compute over the largest of the fit).
    mean, new_run : array (rows, 3)
        Median, lower and upper end of the equal-tailed interval: of the mean loss at these inputs,
        and of the loss that one new run would end at. ``new_run`` is NaN where the fit has no noise
        (a published law).
    level : float
        Probability in the interval.
    status : str
        The fit's diagnostics.
    loss_unit : str
        Unit of both.
    law_alone : Forecast or None
        Of a fit with drift: the same runs were the law exact.
    beyond : str or None
        Of a fit with drift: PASS or FAIL, whether intervals beyond the data are calibrated.
    """

    runs: pd.DataFrame
    mean: np.ndarray
    new_run: np.ndarray
    level: float
    status: str
    loss_unit: str
    law_alone: Forecast | None = None
    beyond: str | None = None

    @property
    def warning(self) -> str | None:
        """What is wrong with its intervals, where runs lie beyond runs that fail the gate."""
        far = bool((self.runs["extrapolation_factor"] > 1).any())
        return HOLLOW if far and self.beyond == "FAIL" else None

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether its numbers may be relied on, beyond the data too where runs lie there."""
        return "FAIL" if self.warning else self.status

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run and group, intervals as columns; those of ``law_alone`` after the others."""
        out, alone = self.runs.copy(), self.law_alone
        columns = {"loss_mean": self.mean, "loss_new_run": self.new_run}
        columns |= {"law_alone_loss_mean": alone.mean, "law_alone_loss_new_run": alone.new_run} if alone else {}
        for name, values in columns.items():
            for i, end in enumerate(("median", "lower", "upper")):
                out[f"{name}_{end}"] = values[:, i]
        return out

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: null where there is no value. ``law_alone`` and ``beyond_data`` as in `Frontier.to_dict`."""
        results = self._rows()
        if self.law_alone:
            alone = self.law_alone._rows()
            results = [each | {"law_alone": own} for each, own in zip(results, alone, strict=True)]
        return {
            "warning": self.warning,
            "level": self.level,
            "kind": "eti",
            "diagnostics": self.status,
            "loss_unit": self.loss_unit,
            "drift": self.law_alone is not None,
            "beyond_data": self.beyond,
            "results": results,
        }

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for row, mean, new in zip(self.runs.to_dict("records"), self.mean, self.new_run, strict=True):
            plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
            rows.append({**plain, "loss": {"mean": interval(mean), "new_run": interval(new)}})
        return rows

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def interval(values: np.ndarray) -> dict[str, float | None]:
    """Median, lower and upper end by name; None where there is no value."""
    return {k: float(v) if np.isfinite(v) else None for k, v in zip(("median", "lower", "upper"), values, strict=True)}


def predict(
    posterior: Posterior,
    runs: Mapping[str, Any] | pd.DataFrame | Runs,
    *,
    group: Group | list[Group] = None,
    level: float = 0.9,
    seed: int = 0,
) -> Forecast:
    """Loss of given runs.

    Rows are worked through in blocks, so that memory stays bounded whatever their number.

    Parameters
    ----------
    posterior : Posterior
        A fit.
    runs : mapping, DataFrame or Runs
        The law's inputs, its size (``n_params``) and ``n_tokens``: numbers, or lists of one length. Conditions
        that are not given are at their standard.
    group : str, NewGroup, PopulationMean, a list of them, or None
        Whose law; None is every group of the fit.
    level : float
        Probability in the equal-tailed interval.
    seed : int
        Seed of the scatter of new runs.

    Raises
    ------
    ValueError
        For an unknown group, a missing input, inputs of different lengths, or inputs outside the law's
        domain; one message names all of those.
    """
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, as 0.9, not {level!r}.")
    inputs = checked(posterior.law, runs)
    wanted = group if isinstance(group, list) else [group]
    if group is None and posterior.groups:
        wanted = list(posterior.groups)
    chosen = [posterior.named(g) for g in wanted]
    flop = posterior.rule.flop(inputs[posterior.law.size], inputs["n_tokens"])
    frame = pd.DataFrame({**inputs, "flop": flop})
    frame["extrapolation_factor"] = frame["flop"] / posterior.largest["flop"]
    rng = np.random.default_rng(seed)
    parts = [_intervals(posterior, g, inputs, level, rng) for g in chosen]
    table = pd.concat([frame.assign(group=None if g is None else str(g)) for g in chosen], ignore_index=True)
    mean, new_run = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    alone = posterior.law_alone and predict(posterior.law_alone, runs, group=group, level=level, seed=seed)
    return Forecast(table, mean, new_run, level, posterior.status, posterior.loss_unit, alone, posterior.beyond)


@functools.cache
def losses(law: Law | Drifted) -> Callable[..., Any]:
    """Mean losses (S, rows) from `Surface.at` and runs (rows,)."""
    return jax.jit(lambda letters, run: law.loss({k: v if v.ndim > 1 else v[:, None] for k, v in letters.items()}, run))


def simulated(
    posterior: Posterior, group: Group, inputs: Mapping[str, np.ndarray], rng: np.random.Generator
) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Draws of given runs, in blocks of rows: which rows, their mean loss, and the log loss of a new run at each.

    Both are arrays (draws, rows of the block); new runs are None where the fit has no noise.
    """
    surface, values = posterior.surface(group), posterior.values(group)
    draws = len(next(iter(surface.letters.values())))
    rows = len(next(iter(inputs.values())))
    block = max(1, min(rows, ELEMENTS // draws))
    for at in range(0, rows, block):
        part = {k: v[at : at + block] for k, v in inputs.items()}
        n = len(next(iter(part.values())))
        filled = {k: np.concatenate([v, np.repeat(v[-1:], block - n)]) for k, v in part.items()}
        flop = posterior.rule.flop(filled[posterior.law.size], filled["n_tokens"])
        with jax.enable_x64(True):
            loss = np.asarray(losses(surface.law)(surface.at(flop), filled))[:, :n]
        size = part[posterior.law.size]
        yield (
            slice(at, at + n),
            loss,
            scattered(posterior, values, np.log(loss), size, rng) if "noise" in values else None,
        )


def scattered(
    posterior: Posterior, values: Mapping[str, np.ndarray], mean: Any, size: Any, rng: np.random.Generator
) -> np.ndarray:
    """Log losses (S, K) of new runs whose mean log loss is ``mean``: their scatter and, each its own, shocks.

    ``values`` (S,) are a group's, ``size`` (K,) numbers of parameters; None is the centre of the table's sizes.
    """
    model, column = posterior.model, {k: v[:, None] for k, v in values.items()}
    out = model.noise.simulate(rng, mean, column, 0.0)
    for each in model.shocks:
        scales = [column[p.name] for p in each.parameters]
        levers = (1.0, 0.0 if size is None else np.log(size / posterior.reference[model.law.size]))
        for scale, lever in zip(scales, levers, strict=False):
            out = out + scale * lever * rng.standard_normal(out.shape)
    return out


def _intervals(
    posterior: Posterior, group: Group, inputs: Mapping[str, np.ndarray], level: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    rows = len(next(iter(inputs.values())))
    q = [0.5, (1 - level) / 2, (1 + level) / 2]
    mean, new_run = np.empty((rows, 3)), np.full((rows, 3), np.nan)
    for at, loss, noisy in simulated(posterior, group, inputs, rng):
        mean[at] = np.quantile(loss, q, axis=0).T
        if noisy is not None:
            with np.errstate(over="ignore"):  # the tails of a prior's scatter may exceed any float
                new_run[at] = np.exp(np.quantile(noisy, q, axis=0)).T
    return mean, new_run
