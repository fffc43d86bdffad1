"""Where a link meets scores: a link as a law of the odds of a score, so that tasks are pooled as groups of runs are.

Scores scatter on their log odds, where the distance from 49 to 51 % is not that from 98 to 100 %. Half a question
is added to either side, in the scores and in the link alike (Haldane 1956: the log odds are then finite, and without
bias to first order): h = 1 / (2 n) where there are n questions. The sampling of n questions gives log odds the
variance 1 / (n (S + h)) + 1 / (n (1 - S + h)), to which the scatter of the runs adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp
import numpy as np

from bayescale.laws._law import Law, Values
from bayescale.links._link import LEAST, LOSSES, Link
from bayescale.model import table
from bayescale.model.joint import Model
from bayescale.model.noise import Noise
from bayescale.model.pooling import Partial, Separate
from bayescale.parameter import Fixed, LogNormal, Parameter, Prior, Quantity

BY = "task"
# Scatter of log odds around the link: a tenth of them is 2.5 points of 100 at one half.
SCATTER = LogNormal(0.1, 1.0)


@final
@dataclass(frozen=True)
class Odds(Law):
    """The odds of a score, h added to either side: (S + h) / (1 - S + h), of a run's loss."""

    link: Link
    inputs: ClassVar[tuple[str, ...]] = ("loss", "chance", "half")
    size: ClassVar[str] = "loss"
    coefficients: ClassVar[tuple[Quantity, ...]] = ()
    monotone: ClassVar[tuple[str, ...]] = ()
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {"loss": LOSSES, "chance": (0.0, 1.0), "half": (0.0, 0.5)}

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.link.parameters

    def loss(self, letters: Values, run: Values) -> Any:
        share = score(self.link, letters, run["loss"], {"loss": letters["center"], "chance": run["chance"]})
        return (share + run["half"]) / (1 - share + run["half"])

    def floor(self, letters: Values) -> Any:
        return 0.0 * letters["center"]

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        """The link's own parameters: its letters depend on the chance, which is each task's own."""
        return {**values, "center": reference["loss"]}

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        return {p.name: letters[p.name] for p in self.link.parameters}


def score(link: Link, values: Values, loss: Any, reference: Values) -> Any:
    """Mean score, a share, from the values of a link's parameters; shapes broadcast."""
    own = {p.name: values[p.name] for p in link.parameters}
    return link.score(link.to_coefficients(own, reference), loss)


def half(questions: Any) -> np.ndarray:
    """Half a question, as a share of all; half a percent where their number is not known (NaN)."""
    return np.where(np.isnan(questions), LEAST, 0.5 / np.where(np.isnan(questions), 1.0, questions))


def to_log_odds(share: Any, h: Any) -> Any:
    """Of a score, ``h`` added to either side."""
    return jnp.log(share + h) - jnp.log(1 - share + h)


def from_log_odds(x: Any, h: Any) -> np.ndarray:
    """The inverse of `to_log_odds`, held between 0 and 1."""
    return np.clip((1 + 2 * h) / (1 + np.exp(-x)) - h, 0.0, 1.0)


def sampling(share: Any, questions: Any) -> np.ndarray:
    """Standard deviation of the log odds that the sampling of questions leaves; 0 where their number is not known."""
    h, n = half(questions), np.where(np.isnan(questions), np.inf, questions)
    return np.sqrt(1 / (n * (share + h)) + 1 / (n * (1 - share + h)))


def model(link: Link, noise: Noise, priors: Mapping[str, Prior | Fixed], n_tasks: int) -> Model:
    """The link of every task, drawn from a population of tasks that is inferred with them; of one task, its own."""
    pooling = Partial(BY) if n_tasks > 1 else Separate(BY)
    return Model(Odds(link), pooling, noise, {"noise": SCATTER, **priors}, None)


def arrays(model: Model, loss: Any, share: Any, questions: Any, task: Any, chance: Any) -> dict[str, Any]:
    """Data of scores for the engines: arrays (scores,), and ``chance`` (tasks,) by the index ``task``."""
    h, center = half(questions), float(np.median(loss))
    odds = (share + h) / (1 - share + h)
    run = {"loss": loss, "chance": np.asarray(chance)[task], "half": h}
    reference = {"loss": center, "chance": 0.5, "half": LEAST}
    se = odds * sampling(share, questions)
    return table.arrays(model, run, odds, se, task, len(chance), reference, center)
