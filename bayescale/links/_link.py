"""The contract of a link from loss to downstream score.

A score is a share, 0 to 1, of which more is better (an accuracy, a BLEU over 100); an error is one less the score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from bayescale.parameter import Normal, Parameter, Quantity

Values = Mapping[str, Any]
LEAST = 0.005  # chance is held away from 0 and 1, where log odds end: half a percent is a guess at any task
LOSSES = (0.05, 10.0)  # nats per token of which a link is asked: from text known by heart to one byte in ten thousand

FLOOR_SHIFT = Parameter(
    "floor_shift",
    "$c$",
    "log odds of the score of a model that knows nothing, over those of guessing",
    "1",
    Normal(0.0, 0.3),
    0.2,
)


class Link(ABC):
    """The mean score of runs at a task, given their loss.

    To write a link, add one file to this folder with one frozen dataclass in it:

    - ``coefficients`` declares the paper's letters, and ``score`` is the paper's equation in them, as a score;
    - ``parameters`` declares what is sampled instead, each with a prior and with the spread between tasks, and
      ``to_coefficients`` turns those into the letters, given a reference: ``loss``, the median of the runs, and
      ``chance``, the score of guessing (one over the number of choices; 0 where an answer is written).

    A link holds no data and no draws. Its score never rises with the loss, is never below its floor, what a
    model of endless loss scores, and never above 1. All methods broadcast over numpy and jax arrays and are
    differentiable; the contract tests check the rest over `LOSSES`.
    """

    parameters: ClassVar[tuple[Parameter, ...]]
    coefficients: ClassVar[tuple[Quantity, ...]]

    @abstractmethod
    def score(self, letters: Values, loss: Any) -> Any:
        """Mean score, a share.

        Parameters
        ----------
        letters : mapping of str to array
            One entry for each of ``coefficients``; shapes broadcast with that of ``loss``.
        loss : array
            In the unit of the table's loss.
        """

    @abstractmethod
    def floor(self, letters: Values) -> Any:
        """The score as the loss grows without end."""

    @abstractmethod
    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        """The paper's letters from the values of ``parameters`` at the reference: its ``loss`` and ``chance``."""

    @abstractmethod
    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        """The inverse of ``to_coefficients``."""


def log_odds(share: Any) -> Any:
    """Of a share strictly between 0 and 1."""
    return jnp.log(share) - jnp.log1p(-share)


def floor_at(shift: Any, chance: Any) -> Any:
    """The floor whose log odds are ``shift`` above those of guessing."""
    return 1 / (1 + jnp.exp(-(log_odds(jnp.clip(chance, LEAST, 1 - LEAST)) + shift)))


def shift_of(floor: Any, chance: Any) -> Any:
    """The inverse of `floor_at`."""
    return log_odds(floor) - log_odds(jnp.clip(chance, LEAST, 1 - LEAST))
