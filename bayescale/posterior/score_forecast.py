"""Scores of planned runs: draws of the law's loss through draws of the link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.model import score
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.inputs import checked
from bayescale.posterior.linked import Linked
from bayescale.posterior.posterior import Group
from bayescale.posterior.predict import interval, simulated

MEAN = "mean over tasks"


@final
@dataclass(frozen=True, eq=False, repr=False)
class ScoreForecast:
    """Intervals of the scores of planned runs, shares of 1.

    Attributes
    ----------
    runs : DataFrame
        One row a run and group: the law's inputs, ``flop`` (FLOPs), ``group``, ``extrapolation_factor`` (compute
        over the largest of the fit); or the ``loss`` that was given. ``below_scored`` is the probability that the mean
        loss lies below that of every run that was scored, where the link extrapolates.
    tasks : tuple of str
        The tasks with a link, in the order of the arrays; their mean stands last.
    mean, new_run : array (rows, tasks + 1, 3)
        Median, lower and upper end of the equal-tailed interval: of the mean score of runs like it, and of the score
        that one new run is measured to have, with as many questions as the runs of the fit.
    unpredictable : mapping of str to str
        Tasks without a link, each with the reason: they have no interval, and no part in the mean.
    level : float
        Probability in the interval.
    status : str
        Diagnostics of law and link.
    warning : str or None
        What is wrong with intervals beyond the data.
    """

    runs: pd.DataFrame
    tasks: tuple[str, ...]
    mean: np.ndarray
    new_run: np.ndarray
    unpredictable: Mapping[str, str]
    level: float
    status: str
    warning: str | None

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether its numbers may be relied on."""
        return "FAIL" if self.warning else self.status

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run, group and task, intervals as columns; NaN for a task that is unpredictable."""
        rows = []
        for i, run in enumerate(self.runs.to_dict("records")):
            for k, task in enumerate((*self.tasks, MEAN)):
                ends = {f"score_mean_{e}": v for e, v in zip(ENDS, self.mean[i, k], strict=True)}
                ends |= {f"score_new_run_{e}": v for e, v in zip(ENDS, self.new_run[i, k], strict=True)}
                rows.append({**run, "task": task, "predictable": True, "reason": "", **ends})
            rows += [{**run, "task": t, "predictable": False, "reason": r} for t, r in self.unpredictable.items()]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: null where there is no value."""
        results = []
        for i, run in enumerate(self.runs.to_dict("records")):
            plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in run.items()}
            scores: dict[str, Any] = {
                task: {
                    "predictable": True,
                    "score": {"mean": interval(self.mean[i, k]), "new_run": interval(self.new_run[i, k])},
                }
                for k, task in enumerate((*self.tasks, MEAN))
            }
            mean = {**scores.pop(MEAN), "tasks": list(self.tasks)}
            scores |= {t: {"predictable": False, "score": None, "reason": r} for t, r in self.unpredictable.items()}
            results.append({**plain, "tasks": scores, "mean_over_tasks": mean})
        return {
            "warning": self.warning,
            "level": self.level,
            "kind": "eti",
            "diagnostics": self.status,
            "score_unit": "share of 1",
            "results": results,
        }

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


ENDS = ("median", "lower", "upper")


def forecast(linked: Linked, runs: Any, group: Group | list[Group], level: float, seed: int) -> ScoreForecast:
    """The arguments of `Linked.predict`."""
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, as 0.9, not {level!r}.")
    rng = np.random.default_rng(seed)
    frames, mean, new_run = [], [], []
    for frame, blocks in _losses(linked, runs, group, rng):
        below = np.empty(len(frame))
        for at, loss, noisy in blocks:
            own, run = draws(linked, loss, noisy, rng, seed)
            mean.append(_summed(own, level))
            new_run.append(_summed(run, level))
            below[at] = (loss < linked.lowest_loss).mean(axis=0)
        frames.append(frame.assign(below_scored=below))
    table = pd.concat(frames, ignore_index=True)
    law = linked.posterior
    reach = table["extrapolation_factor"].to_numpy(float) if law and "flop" in table else np.zeros(1)
    far = bool(law and law.beyond == "FAIL" and (reach > 1).any())
    return ScoreForecast(
        table,
        linked.tasks,
        np.concatenate(mean),
        np.concatenate(new_run),
        linked.unpredictable,
        level,
        linked.status,
        HOLLOW if far else None,
    )


def _losses(linked: Linked, runs: Any, group: Any, rng: np.random.Generator) -> Iterator[tuple[pd.DataFrame, Any]]:
    """By group, the runs, and blocks of draws of their losses as `predict.simulated` gives them."""
    law = linked.posterior
    if "loss" in runs:
        loss = np.atleast_1d(np.asarray(runs["loss"], float))
        if not (np.isfinite(loss) & (loss > 0)).all():
            raise ValueError(f"loss must be positive and finite, not {runs['loss']!r:.80}.")
        size = len(next(iter(linked.values().values())))
        same = np.repeat(loss[None], size, axis=0)
        yield pd.DataFrame({"loss": loss}), [(slice(0, len(loss)), same, np.log(same))]
        return
    if law is None:
        raise ValueError("This link was fitted without a law: give it losses, as {'loss': [2.4, 2.2]}.")
    inputs = checked(law.law, runs)
    wanted = group if isinstance(group, list) else [group]
    if group is None and law.groups:
        wanted = list(law.groups)
    flop = law.rule.flop(inputs[law.law.size], inputs["n_tokens"])
    frame = pd.DataFrame({**inputs, "flop": flop, "extrapolation_factor": flop / law.largest["flop"]})
    for each in [law.named(g) for g in wanted]:
        yield frame.assign(group=None if each is None else str(each)), simulated(law, each, inputs, rng)


def draws(
    linked: Linked, loss: np.ndarray, log_loss: np.ndarray | None, rng: np.random.Generator, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores at draws of the mean loss, and of a new run's log loss (S, M): of runs like it, and of that run.

    Arrays (S, M, tasks + 1), the mean over tasks last.
    """
    values = linked.values(len(loss), seed)
    mean = linked.shares(values, loss)
    run = mean if log_loss is None else linked.shares(values, np.exp(log_loss))
    return _with_mean(mean), _with_mean(scatter(linked, values, loss.shape, rng).on(linked, run))


@final
@dataclass(frozen=True)
class Scatter:
    """How far runs score from their links: log odds ``away``, and standard ``sampling`` of questions (S, M, tasks)."""

    away: np.ndarray
    sampling: np.ndarray

    def on(self, linked: Linked, share: np.ndarray, tasks: slice = slice(None)) -> np.ndarray:
        """Scores as they are measured, where they would be ``share`` (S, M, tasks) without it."""
        questions = np.array([_asked(linked, task) for task in linked.tasks[tasks]])
        h = score.half(questions)
        away = self.away[..., tasks] + score.sampling(share, questions) * self.sampling[..., tasks]
        with np.errstate(over="ignore"):
            return score.from_log_odds(np.asarray(score.to_log_odds(share, h)) + away, h)

    def kept(self, keep: Callable[[np.ndarray], np.ndarray]) -> Scatter:
        """Of some draws only."""
        return Scatter(keep(self.away), keep(self.sampling))


def scatter(
    linked: Linked, values: Mapping[str, np.ndarray], shape: tuple[int, ...], rng: np.random.Generator
) -> Scatter:
    """Draws of it for ``shape`` (S, M), part of which all tasks of a run share."""
    noise, shared, whole = linked.model.noise, linked.info["shared"], (*shape, len(linked.tasks))
    scale = values["noise"][:, None]
    unit = {k: v[:, None] for k, v in values.items()} | {"noise": np.ones_like(scale)}
    own = noise.simulate(rng, np.zeros(whole), unit, 0.0)
    common = noise.simulate(rng, np.zeros((*shape, 1)), {k: v[..., :1] for k, v in unit.items()}, 0.0)
    away = scale * (np.sqrt(1 - shared) * own + np.sqrt(shared) * common)
    return Scatter(away, rng.standard_normal(whole))


def _asked(linked: Linked, task: str) -> float:
    """Number of questions behind a score at a task, as a rule; NaN where that is not known."""
    t = linked.scores.table
    known = t.loc[t["task"] == task, "questions"].dropna().to_numpy(float)
    return float(np.median(known)) if known.size else np.nan


def _with_mean(scores: np.ndarray) -> np.ndarray:
    return np.concatenate([scores, scores.mean(axis=-1, keepdims=True)], axis=-1)


def _summed(scores: np.ndarray, level: float) -> np.ndarray:
    return np.moveaxis(np.quantile(scores, [0.5, (1 - level) / 2, (1 + level) / 2], axis=0), 0, -1)
