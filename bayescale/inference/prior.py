"""Draws of the prior: a fit that has used no run, so that its frontier and its forecasts are the prior's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.model import simulate
from bayescale.model.joint import Joint


@final
@dataclass(frozen=True)
class FromPrior(Engine):
    """Independent draws from the prior, centred where the table of runs is."""

    name: ClassVar[str] = "prior"
    approximate: ClassVar[bool] = True

    draws: int = 4000

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        z = simulate.prior(joint, data, np.random.default_rng(seed), self.draws)
        info = {"engine": self.name, "chains": 1, "draws": self.draws, "seconds": {}}
        return Draws(z[None], {}, data, info)
