"""The contract of an engine: how draws are made from a joint density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bayescale.model.joint import Joint

Progress = Callable[[int, int], None]


@final
@dataclass(frozen=True)
class Draws:
    """What an engine returns: arrays, without labels.

    Attributes
    ----------
    z : array (chains, draws, d)
        Draws on the unconstrained scale, laid out as `model.joint.sites` says.
    stats : mapping of str to array (chains, draws)
        The sampler's own record of each draw, by arviz' names; empty where there is none.
    data : mapping
        The data as the draws understand them (with the choice of centring in it).
    info : mapping
        How the draws were made, in values that JSON holds.
    """

    z: np.ndarray
    stats: Mapping[str, np.ndarray]
    data: Mapping[str, Any]
    info: Mapping[str, Any]


class Engine(ABC):
    """Draws from the posterior density of a model.

    To write one, give ``draw``; settings are the dataclass's fields. An engine that does not
    sample the density itself says ``approximate``, and every result made with it says so; what it
    says of its own convergence, shares by name in ``info["converged"]``, is checked. One that does
    not read priors or a drift says that, and is not given any. ``cluster`` names a column of the table whose
    labels it reads: ``data["cluster"]``, the index of each run's label.
    """

    name: ClassVar[str]
    approximate: ClassVar[bool]
    reads_priors: ClassVar[bool] = True
    reads_drift: ClassVar[bool] = True
    cluster: str | None = None

    @abstractmethod
    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        """Draw from ``joint`` given ``data``; the same seed gives the same draws on one machine."""
