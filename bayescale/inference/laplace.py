"""A Normal at the mode: a preview in a fraction of a second, never an answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import numpy as np

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference.groups import start
from bayescale.model.joint import Joint


@final
@dataclass(frozen=True)
class Laplace(Engine):
    """Independent draws from the Normal whose mean is the mode and whose precision is the curvature there.

    Skewed, weakly identified and hierarchical posteriors are misjudged by it; results say that they
    are approximate.
    """

    name: ClassVar[str] = "laplace"
    approximate: ClassVar[bool] = True

    draws: int = 4000

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        with jax.enable_x64(True):
            began = time.perf_counter()
            rng = np.random.default_rng(seed)
            mode = start(joint, data, rng)
            u = rng.standard_normal((1, self.draws, len(mode.center)))
        info = {
            "engine": self.name,
            "chains": 1,
            "draws": self.draws,
            "mode_searches": {"converged": mode.converged, "agree": mode.agree},
            "close_to_normal": mode.whitens and not mode.skewed,
            "seconds": {"mode": round(time.perf_counter() - began, 4)},
        }
        return Draws(mode.center + u @ mode.factor.T, {}, mode.data, info)
