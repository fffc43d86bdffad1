"""What was learnt of the way from loss to scores: a link for each task that follows the loss, and who does not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from bayescale import _show
from bayescale.links._link import Link
from bayescale.model import score
from bayescale.model.joint import Model
from bayescale.posterior.diagnostics import Check, Status, overall
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predictable import Verdict
from bayescale.runs.scores import Scores, Task

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayescale.posterior.score_forecast import ScoreForecast


@final
@dataclass(frozen=True, eq=False, repr=False)
class Linked:
    """Draws of a link from loss to score for each task, drawn from a population of tasks.

    Attributes
    ----------
    tree : xarray.DataTree
        ``posterior`` holds the link's parameters by ``task``, the scatter of log odds around it, and the
        population's means and standard deviations; further ``unconstrained_posterior``, ``sample_stats`` and
        ``log_likelihood`` (of the log odds of each score).
    model : Model
        The link as it was fitted, with its priors and noise.
    scores : Scores
        What was read, of all tasks.
    verdicts : tuple of Verdict
        Of every task, whether it follows the loss; those that do not have no link.
    checks : tuple of Check
        Diagnostics of the link's own draws.
    info : mapping
        Engine, seed, versions; ``shared`` is the correlation of the scatter of one run's scores between tasks.
    posterior : Posterior or None
        The law behind the losses; None where the link was fitted to runs without one.
    metadata : mapping
        The user's own notes, any JSON value.
    """

    tree: xr.DataTree
    model: Model
    scores: Scores
    verdicts: tuple[Verdict, ...]
    checks: tuple[Check, ...]
    info: Mapping[str, Any]
    posterior: Posterior | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def link(self) -> Link:
        """The link whose parameters were inferred."""
        assert isinstance(self.model.law, score.Odds)
        return self.model.law.link

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that follow the loss, and so have a link."""
        return tuple(v.task for v in self.verdicts if v.predictable)

    @property
    def unpredictable(self) -> dict[str, str]:
        """The tasks that do not, each with the reason."""
        return {v.task: v.reason for v in self.verdicts if not v.predictable}

    @property
    def chance(self) -> np.ndarray:
        """Score of guessing at each of ``tasks``: array (tasks,)."""
        return np.array([self.scores.tasks[name].chance for name in self.tasks])

    @property
    def status(self) -> Status:
        """PASS, FAIL or UNKNOWN: whether the draws of link and law can be trusted."""
        return overall((*self.checks, *(self.posterior.checks if self.posterior else ())))

    @property
    def lowest_loss(self) -> float:
        """Lowest loss of a run that was scored: below it the link extrapolates."""
        return float(self.scores.table["loss"].to_numpy(float).min())

    @property
    def basis(self) -> str:
        """What its scores rest on, in a sentence."""
        left = f"; unpredictable and left out: {', '.join(self.unpredictable)}" if self.unpredictable else ""
        return f"link {type(self.link).__name__} of {len(self.tasks)} tasks, diagnostics {overall(self.checks)}{left}"

    def named(self, task: str) -> Task:
        """A task that has a link.

        Raises
        ------
        ValueError
            If it is unpredictable, or none of those read.
        """
        if task in self.unpredictable:
            raise ValueError(f"{task} is unpredictable: {self.unpredictable[task]}. There is no link to it.")
        if task not in self.tasks:
            raise ValueError(f"No task is called {task!r}; those with a link are {', '.join(self.tasks)}.")
        return self.scores.tasks[task]

    @functools.cache  # noqa: B019  (a link is frozen and few are alive)
    def values(self, size: int | None = None, seed: int = 0) -> dict[str, np.ndarray]:
        """Draws of the link's parameters and of its noise: arrays (draws, tasks).

        With a ``size``, so many draws in an order of their own, to stand beside as many of the law.
        """
        draws = self.tree["posterior"].dataset
        n, shape = draws.sizes["chain"] * draws.sizes["draw"], (-1, len(self.tasks))
        picked = np.arange(n)
        if size is not None:
            rng = np.random.default_rng([seed, 4])
            picked = np.concatenate([rng.permutation(n) for _ in range(-(-size // n))])[:size]
        out = {}
        for p in self.model.parameters:
            own = draws[p.name].to_numpy()
            whole = own.reshape(n, -1) if own.ndim > 2 else np.repeat(own.reshape(n, 1), shape[1], axis=1)
            out[p.name] = whole[picked]
        return out

    def shares(self, values: Mapping[str, np.ndarray], loss: np.ndarray, tasks: slice = slice(None)) -> np.ndarray:
        """Mean score at losses (S, M), with the draws (S, tasks) that stand beside them: array (S, M, tasks)."""
        own = {p.name: values[p.name][:, None, tasks] for p in self.link.parameters}
        reference = {"loss": np.float64(self.info["loss_center"]), "chance": self.chance[tasks]}
        with jax.enable_x64(True):
            return np.asarray(_shares(self.link)(own, np.asarray(loss, float)[..., None], reference))

    def coefficients(self, task: str) -> dict[str, np.ndarray]:
        """Draws of the paper's letters for a task: arrays (chains x draws,)."""
        self.named(task)
        at = self.tasks.index(task)
        own = {name: draws[:, at] for name, draws in self.values().items() if name in self._of_link}
        with jax.enable_x64(True):
            reference = {"loss": np.float64(self.info["loss_center"]), "chance": self.chance[at]}
            found = self.link.to_coefficients(own, reference)
            return {k: np.array(np.broadcast_to(v, next(iter(own.values())).shape)) for k, v in found.items()}

    @property
    def _of_link(self) -> set[str]:
        return {p.name for p in self.link.parameters}

    def predict(
        self, runs: Mapping[str, Any] | pd.DataFrame, *, group: Any = None, level: float = 0.9, seed: int = 0
    ) -> ScoreForecast:
        """Scores of planned runs: the law's losses, its drift included, through the link.

        Parameters
        ----------
        runs : mapping or DataFrame
            The law's inputs, as for `bayescale.predict`; or ``loss``, losses that are known.
        group : str, NewGroup, PopulationMean, a list of them, or None
            Whose law; None is every group of the fit.
        level : float
            Probability in the equal-tailed interval.
        seed : int
            Of the scatter, and of the order in which draws of link and law are paired.

        Returns
        -------
        ScoreForecast

        Raises
        ------
        ValueError
            For what `bayescale.predict` refuses; and without a law, for anything but losses.
        """
        from bayescale.posterior.score_forecast import forecast

        return forecast(self, runs, group, level, seed)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a task: its verdict, and medians and interval ends of the link's letters."""
        import pandas as pd

        return pd.DataFrame([self._row(v, 0.9) for v in self.verdicts])

    def _row(self, verdict: Verdict, level: float) -> dict[str, Any]:
        row = {k: v for k, v in verdict.to_dict().items() if k != "limits"}
        for name, q in (self._letters(verdict.task, level) if verdict.predictable else {}).items():
            row |= {f"{name}_{end}": q[end] for end in ("median", "lower", "upper")}
        return row

    def _letters(self, task: str, level: float) -> dict[str, dict[str, Any]]:
        """Intervals of the letters of a task's link, and of its scatter."""
        at = self.tasks.index(task)
        drawn = self.coefficients(task) | {"noise": self.values()["noise"][:, at]}
        units = {q.name: q.unit for q in (*self.link.coefficients, *self.model.noise.parameters)}
        out = {}
        for name, draws in drawn.items():
            median, lower, upper = np.quantile(draws, [0.5, (1 - level) / 2, (1 + level) / 2]).tolist()
            unit = units[name].replace("loss", self.scores.loss_unit)
            out[name] = {"median": median, "lower": lower, "upper": upper, "unit": unit}
        return out

    def to_dict(self, level: float = 0.9) -> dict[str, Any]:
        """Settings, checks, and by task its verdict and intervals of its link's letters, as JSON values."""
        results = []
        for verdict in self.verdicts:
            told = self._letters(verdict.task, level) if verdict.predictable else None
            results.append({**verdict.to_dict(), "chance": self.scores.tasks[verdict.task].chance, "quantities": told})
        return {
            "level": level,
            "kind": "eti",
            "diagnostics": self.status,
            "checks": [c.to_dict() for c in self.checks],
            "diagnostics_of_law": self.posterior and self.posterior.status,
            "link": type(self.link).__name__,
            "noise": type(self.model.noise).__name__,
            "priors": {name: repr(prior) for name, prior in self.model.priors.items()},
            "loss_unit": self.scores.loss_unit,
            "lowest_loss": self.lowest_loss,
            "scores": self.scores.to_dict(),
            "info": dict(self.info),
            "metadata": dict(self.metadata),
            "results": results,
        }

    def save(self, path: str | Path) -> Path:
        """Write everything, the law's fit included, as one netCDF file; see `bayescale.load_link`."""
        from bayescale.posterior.link_store import save

        return save(self, path)

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


@functools.cache
def _shares(link: Link) -> Callable[..., Any]:
    return jax.jit(lambda values, loss, reference: score.score(link, values, loss, reference))
