"""What a pilot would be worth before it is run: the expected value of sample information.

A pilot may show many losses. Each would leave another posterior, and another best choice. What it is worth
is the risk, then, of the choice that would be made without it, less that of the choice made with it,
averaged over what it may show (Raiffa & Schlaifer 1961, chapter 4; for a risk measure, of the outcomes that
are still possible once it has been seen). It is never negative, and zero where no loss changes the choice.

Nothing is fitted again: the draws of the posterior are weighted by the likelihood of each simulated loss.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from bayescale.decision.outlook import Outlook
from bayescale.decision.risk import LEAST
from bayescale.decision.search import Problem, lowest
from bayescale.decision.weighted import Weighted, weighted
from bayescale.model.noise import Noise
from bayescale.posterior.predict import simulated

if TYPE_CHECKING:
    from bayescale.decision.outlook import Choices

SIZES = 25  # of the grid on which a choice is looked for again: parabolas between are exact to 1e-6 of the loss
SHOWN = 48  # losses that a pilot is taken to show, one in each of as many equally likely strata
ROUNDS = 4  # losses that are simulated for every draw
PARTS = 10  # parts of the draws, each left out in turn, that tell the Monte Carlo error
DEGREE = 6  # of the polynomial through the risks of a measure that draws make rough
OUTER = 0.005  # share of the draws whose own best size is beyond the grid, at either end
WEIGHED = 100.0  # effective draws that have to be left
WIDER, WIDEST = math.sqrt(2.0), 64.0  # by which a pilot's scatter grows until they are


@final
@dataclass(frozen=True, eq=False)
class Stake:
    """What may be chosen, draw by draw, with and without a pilot.

    Attributes
    ----------
    problem : Problem
        Whose risk measure it is.
    size : array (M,)
        Sizes of the choices, parameters.
    outcomes : array (S, M)
        Outcomes of the choices.
    at : float
        Size that is chosen without a pilot.
    chosen : array (S,)
        Its outcomes.
    """

    problem: Problem
    size: np.ndarray
    outcomes: np.ndarray
    at: float
    chosen: np.ndarray

    @classmethod
    def of(cls, problem: Problem, choice: Choices) -> Stake:
        """The choices around those that single draws would make, and around the one that is made."""
        sizes = problem.shapes
        if sizes is None:
            own = problem.own_best(problem.scan)[0]
            ends = np.quantile(own, [OUTER, 1 - OUTER])
            sizes = np.geomspace(min(ends[0], choice.size[0]) / 1.2, max(ends[1], choice.size[0]) * 1.2, SIZES)
        choices = problem.allowed(*problem.grid_of(sizes))[1]
        size, chosen = float(choice.size[0]), problem.outcomes(choice)[:, 0]
        return cls(problem, choices.size, problem.outcomes(choices), size, chosen)

    @property
    def perfect(self) -> float:
        """What it would be worth to know the law: the mean of each draw's own gain."""
        return float(np.maximum(self.chosen - self._least(self.outcomes), 0.0).mean())

    def gains(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What choosing anew saves under each set of weights (K, S), and the size then chosen: two arrays (K,)."""
        found = self._risks(weights)
        anew, kept = found[:, :-1], found[:, -1]
        if self._smooth and not self.problem.risk.is_convex:
            anew, kept = self._evened(anew)
        return np.maximum(kept - self._least(anew), 0.0), self.size[anew.argmin(axis=1)]

    @functools.cached_property
    def _risks(self) -> Weighted:
        """Risks of the choices, and of the one that is made without a pilot, as a function of weights."""
        return weighted(self.problem.risk, np.column_stack([self.outcomes, self.chosen]))

    @property
    def _smooth(self) -> bool:
        return self.problem.shapes is None and len(self.problem.shares) == 1

    def _least(self, values: np.ndarray) -> np.ndarray:
        return lowest(values) if self._smooth else values.min(axis=1)

    def _evened(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Risks as a polynomial in log N, and its value at the size chosen without a pilot.

        A quantile passes from draw to draw as the size changes: the lowest of many sizes is then low by luck.
        """
        u = np.log(self.size / self.size.mean())
        columns = np.polynomial.polynomial.polyvander(np.append(u, np.log(self.at / self.size.mean())), DEGREE)
        found = values @ np.linalg.pinv(columns[:-1]).T @ columns.T
        return found[:, :-1], found[:, -1]


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """Losses that runs may show: of each draw the mean log loss, and one that a run would end at.

    Attributes
    ----------
    noise : Noise
        How a run scatters.
    values : mapping of str to array (S,)
        Its parameters' values.
    mean : array (runs, S)
    scatter : array (runs, replicates, ROUNDS x S)
        How far runs end from their mean, in ``ROUNDS`` for every draw.
    """

    noise: Noise
    values: Any
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, outlook: Outlook, inputs: dict[str, np.ndarray], replicates: int) -> Evidence:
        """The evidence of planned runs, each with so many replicates."""
        rng = np.random.default_rng([outlook.seed, 5])
        posterior, group = outlook.posterior, outlook.group
        values = {p.name: posterior.values(group)[p.name] for p in posterior.model.noise.parameters}
        parts = [np.log(mean).T for _, mean, _ in simulated(posterior, group, inputs, rng)]
        mean = np.concatenate(parts)
        shape = len(mean), replicates, ROUNDS // 2, mean.shape[1]
        half = posterior.model.noise.simulate(rng, np.zeros(shape), values, 0.0)
        both = np.concatenate([half, -half], axis=2)  # a symmetric scatter that leaves every draw's mean where it is
        return cls(posterior.model.noise, values, mean, both.reshape(len(mean), replicates, -1))

    def weights(self, runs: Sequence[int], wider: float = 1.0) -> np.ndarray:
        """Weights (SHOWN, S) of the draws once all of some runs have been seen, for losses in strata of the last one's.

        ``wider`` times the scatter is what the runs then have.
        """
        shown = {run: np.tile(self.mean[run], ROUNDS) + wider * self.scatter[run] for run in runs}
        last = shown[runs[-1]].mean(axis=0)
        strata = ((np.arange(SHOWN) + 0.5) / SHOWN * last.size).astype(int)
        picked = np.argsort(last, kind="stable")[strata]
        values = {**self.values, "noise": wider * self.values["noise"]}
        with jax.enable_x64(True):
            parts = (log_weights(self.noise)(self.mean[run], values, shown[run][:, picked].T) for run in runs)
            total = np.asarray(sum(parts))
        weights = np.exp(total - total.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


@functools.cache
def log_weights(noise: Noise) -> Callable[..., Any]:
    """Log likelihood (K, S) of mean log losses (S,) and the noise's values (S,), given log losses (K, replicates)."""

    def of(mean: Any, values: Any, shown: Any) -> Any:
        scatter = noise.distribution(mean, values, 0.0)
        return sum(scatter.log_prob(shown[:, i, None]) for i in range(shown.shape[1]))

    return jax.jit(of)


@final
@dataclass(frozen=True, eq=False)
class Worth:
    """What seeing some runs is worth, in the unit of the objective.

    Attributes
    ----------
    gain : float
        Expected reduction of the risk.
    effective : float
        Draws that are left once losses have been seen, on average.
    wider : float
        Factor by which the runs' scatter was widened so that enough are left: above 1, the gain is a lower bound,
        since a noisier run tells no more.
    sizes : array (SHOWN,)
        Sizes that would be chosen, parameters.
    error : float or None
        Monte Carlo standard error of ``gain``, where it was asked for.
    """

    gain: float
    effective: float
    wider: float
    sizes: np.ndarray
    error: float | None = None


def worth(stake: Stake, evidence: Evidence, runs: Sequence[int], *, with_error: bool = False) -> Worth:
    """What seeing all of some runs is worth; they are told by their places in the evidence."""
    weights, effective, wider = _enough(stake, evidence, runs)
    gains, sizes = stake.gains(weights)
    return Worth(float(gains.mean()), effective, wider, sizes, _error(stake, weights) if with_error else None)


def _enough(stake: Stake, evidence: Evidence, runs: Sequence[int]) -> tuple[np.ndarray, float, float]:
    """Weights under which enough draws count, how many do, and the factor of scatter that it takes."""
    wanted, wider = max(WEIGHED, LEAST / (stake.problem.risk.tail_share or 1.0)), 1.0
    wanted = min(wanted, evidence.mean.shape[1] / 2)
    while True:
        weights = evidence.weights(runs, wider)
        effective = 1 / float((weights**2).sum(axis=1).mean())
        if effective >= wanted or wider >= WIDEST:
            return weights, effective, wider
        wider *= WIDER


def _error(stake: Stake, weights: np.ndarray) -> float:
    """Jackknife over parts of the draws (Efron 1982, chapter 2)."""
    found = []
    for part in np.array_split(np.arange(weights.shape[1]), min(PARTS, weights.shape[1])):
        fewer = weights.copy()
        fewer[:, part] = 0.0
        left = fewer.sum(axis=1, keepdims=True)
        found.append(stake.gains(fewer / np.where(left > 0, left, 1.0))[0].mean())
    return float(np.sqrt((len(found) - 1) / len(found) * np.sum((np.array(found) - np.mean(found)) ** 2)))
