"""What a choice is worth.

An outcome is a loss: larger is worse. An objective gives the outcome of every choice in every draw; what
is to be as large as possible is its negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bayescale.decision.budget import UNITS
from bayescale.decision.cost import Inference, LifetimeCost
from bayescale.decision.hardware import Hardware
from bayescale.decision.outlook import Choices, Outlook


class Objective(ABC):
    """The outcome of choices, draw by draw.

    To write one, add a frozen dataclass with ``outcomes`` and ``unit``. ``tokens`` says which way the
    outcome goes as a model of one size trains on more tokens: "better" (a loss), "worse" (a cost), or
    "either", and then how many to train on is searched as well. One that is ``relative`` to each draw's own
    best outcome is told that by ``against``.
    """

    tokens: ClassVar[str] = "either"
    relative: ClassVar[bool] = False

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of the outcome."""

    @abstractmethod
    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        """Outcome of each choice in each draw: (S, M), or (1, M) where it is certain."""

    @abstractmethod
    def __str__(self) -> str:
        """What is as small as possible, in words."""

    def against(self, best: np.ndarray) -> Objective:
        """The objective once each draw's own best outcome (S, 1) is known."""
        return self


@final
@dataclass(frozen=True)
class Loss(Objective):
    """The mean loss of a run, in the unit of the fit's loss."""

    tokens: ClassVar[str] = "better"

    @property
    def unit(self) -> str:
        return "loss"

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        return outlook.loss(choices)

    def __str__(self) -> str:
        return "loss"


@final
@dataclass(frozen=True)
class Compute(Objective):
    """Training compute, FLOPs."""

    tokens: ClassVar[str] = "worse"

    @property
    def unit(self) -> str:
        return "FLOP"

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        return choices.flop[None]

    def __str__(self) -> str:
        return "training compute"


@final
@dataclass(frozen=True)
class Cost(Objective):
    """What training costs, and serving where there is demand, in one currency: see `LifetimeCost`.

    Attributes
    ----------
    currency : str
        ``dollars``, ``accelerator_hours``, ``kwh``, ``carbon_kg``, ``days`` (of training) or ``flop``.
    hardware : Hardware, optional
        That trains; not needed in FLOPs.
    inference : Inference, optional
        Demand over the model's life.

    Raises
    ------
    ValueError
        If the currency is unknown, or something that it needs is not known.
    """

    tokens: ClassVar[str] = "worse"
    currency: str = "dollars"
    hardware: Hardware | None = None
    inference: Inference | None = None

    def __post_init__(self) -> None:
        self.cost.inputs()

    @property
    def cost(self) -> LifetimeCost:
        """The cost itself."""
        return LifetimeCost(self.currency, self.hardware, self.inference)

    @property
    def unit(self) -> str:
        return UNITS[self.currency]

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        drawn = {name: outlook.draws(name, value)[:, 0] for name, value in self.cost.inputs().items()}
        return self.cost.of(choices.size[:, None], choices.tokens[:, None], choices.flop[:, None], drawn).T

    def __str__(self) -> str:
        return f"{'lifetime' if self.inference else 'training'} {self.unit}"


@final
@dataclass(frozen=True)
class Regret(Objective):
    """How much worse than the best choice of the same draw: what not knowing the law costs.

    Savage 1951. Its mean is least where the mean of ``of`` is; its worst, or the mean of its worst draws, is not.

    Attributes
    ----------
    of : Objective
        Outcome of which it is the regret.
    best : array (S, 1) or None
        Outcome of each draw's best choice within the constraints; found by the search.
    """

    relative: ClassVar[bool] = True
    of: Objective = Loss()
    best: np.ndarray | None = None

    @property
    def tokens(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.tokens

    @property
    def unit(self) -> str:
        return self.of.unit

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        found = self.of.outcomes(outlook, choices)
        return found if self.best is None else np.maximum(found - self.best, 0.0)

    def against(self, best: np.ndarray) -> Objective:
        return Regret(self.of, best)

    def __str__(self) -> str:
        return f"regret of the {self.of}"


@final
@dataclass(frozen=True)
class Weighted(Objective):
    """A weighted sum of objectives.

    Attributes
    ----------
    terms : sequence of (number, Objective)
        Weights turn each unit into one common unit, which ``unit_of`` names.

    Raises
    ------
    ValueError
        If there is no term, or a weight is no finite number.
    """

    terms: Sequence[tuple[float, Objective]]
    unit_of: str = "weighted sum"

    def __post_init__(self) -> None:
        bad = [weight for weight, _ in self.terms if isinstance(weight, bool) or not np.isfinite(weight)]
        if bad or not self.terms:
            raise ValueError(f"Weighted(terms) is a list of (finite weight, objective), not {self.terms!r}.")

    @property
    def unit(self) -> str:
        return self.unit_of

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        total: Any = 0.0
        for weight, each in self.terms:
            total = total + weight * each.outcomes(outlook, choices)
        return total

    def __str__(self) -> str:
        return " + ".join(f"{weight:g} x {each}" for weight, each in self.terms)


@final
@dataclass(frozen=True)
class Custom(Objective):
    """A function of draws.

    Attributes
    ----------
    function : callable
        From a mapping with ``loss`` (S, M), ``n_params``, ``n_tokens`` and ``flop`` (1, M) each to the outcome, an
        array that broadcasts with those.
    """

    function: Callable[[dict[str, np.ndarray]], Any]

    @property
    def unit(self) -> str:
        return "outcome"

    def outcomes(self, outlook: Outlook, choices: Choices) -> np.ndarray:
        known = {"n_params": choices.size, "n_tokens": choices.tokens, "flop": choices.flop}
        found = self.function({"loss": outlook.loss(choices), **{k: v[None] for k, v in known.items()}})
        return np.broadcast_to(np.asarray(found, float), (outlook.size, choices.size.size))

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "the given function")


def read_objective(objective: Any) -> Objective:
    """An objective, or a function wrapped as one; TypeError for anything else."""
    if isinstance(objective, Objective):
        return objective
    if callable(objective) and not isinstance(objective, type):
        return Custom(objective)
    raise TypeError(f"objective is a value such as Loss() or Compute(), or a function of draws, not {objective!r}.")
