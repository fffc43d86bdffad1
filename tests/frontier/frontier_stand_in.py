"""A posterior as the frontier reads it, with its draws given, and laws with published constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayescale.laws._law import Law
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.surface import Surface
from bayescale.runs.flops import ComputeRule, FlopsRule

B24 = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}
"""Besiroglu et al. 2024 (arXiv 2404.10102)."""

H22_ROUNDED = {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28}
"""Hoffmann et al. 2022 (arXiv 2203.15556), equation 10, as printed."""

H22_TEX = {
    "A": np.exp(6.0073404),
    "B": np.exp(6.0179186),
    "E": np.exp(0.5267228),
    "alpha": 0.33917084,
    "beta": 0.2849083,
}
"""The same, from the TeX source."""


def letters(*points: Mapping[str, float]) -> dict[str, np.ndarray]:
    """One draw a point."""
    return {name: np.array([point[name] for point in points], float) for name in points[0]}


def spread(size: int, seed: int = 0, **centre: float) -> dict[str, np.ndarray]:
    """Draws around B24, a tenth wide in each coefficient."""
    rng = np.random.default_rng(seed)
    width = {"A": 0.1, "B": 0.1, "E": 0.01, "alpha": 0.02, "beta": 0.02}
    return {name: (B24 | centre)[name] * np.exp(sd * rng.standard_normal(size)) for name, sd in width.items()}


@dataclass(frozen=True)
class StandIn:
    """``draws`` has one entry a group, or the single key None."""

    draws: Mapping[str | None, Mapping[str, np.ndarray]]
    law: Law = field(default_factory=Chinchilla)
    rule: ComputeRule = field(default_factory=FlopsRule)
    status: str = "PASS"
    law_alone: None = None
    beyond: None = None
    loss_unit: str = "nats per token"
    largest: Mapping[str, float] = field(default_factory=lambda: {"n_params": 1e10, "n_tokens": 2e11, "flop": 1e22})

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(name for name in self.draws if name is not None and name not in ("new group", "population mean"))

    def surface(self, group: Any = None, at=None) -> Surface:
        return Surface(self.law, {name: np.asarray(v, float) for name, v in self.coefficients(group).items()})

    def coefficients(self, group: Any = None) -> Mapping[str, np.ndarray]:
        label = None if group is None else str(group)
        if label not in self.draws:
            raise ValueError(f"group {label!r} is unknown; the groups are {', '.join(self.groups)}.")
        return self.draws[label]


def one(**draws: np.ndarray) -> StandIn:
    """A posterior without groups."""
    return StandIn({None: draws})
