"""Tables of a known law, engines that need no sampling, and the law's equations once more, in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import numpy as np
import pandas as pd

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference.groups import start
from bayescale.laws import Law
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model import simulate
from bayescale.model.joint import Joint

B24 = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}
"""Besiroglu et al. 2024 (arXiv 2404.10102)."""

NOISE = 0.005
GROUPS = {"A": 1.0, "b/é": 1.1, "C d": 1.25}
"""Names of the groups, and what each one's loss is multiplied with."""

METADATA = {
    "note": None,
    "robust": True,
    "units": {"params": "N", "tokens": "D"},
    "budgets": [1e22, 1e24],
    "source": "runs/été.csv",
    "date": "2026-11-30T12:00:00",
    "limit": "inf",
}
"""Notes of every kind that JSON holds."""

Arrays = dict[str, np.ndarray]


def loss(letters: Mapping[str, Any], n_params: Any, n_tokens: Any) -> Any:
    """E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, equation 2)."""
    c = letters
    return c["E"] + c["A"] / n_params ** c["alpha"] + c["B"] / n_tokens ** c["beta"]


def letters(v: Mapping[str, np.ndarray], n0: float, d0: float) -> Arrays:
    """The letters, such that the terms at (n0, d0) have the given shares of the loss there."""
    e = v["loss_center"] * v["floor_share"]
    rest = v["loss_center"] - e
    return {
        "A": rest * v["size_share"] * n0 ** v["alpha"],
        "B": rest * (1 - v["size_share"]) * d0 ** v["beta"],
        "E": e,
        "alpha": v["alpha"],
        "beta": v["beta"],
    }


def table(n: int = 24, *, seed: int = 0, noise: float = NOISE) -> pd.DataFrame:
    """Runs of B24's law over two decades of size and of tokens, with Normal scatter of log loss."""
    rng = np.random.default_rng(seed)
    n_params, n_tokens = 10 ** rng.uniform(7.5, 9.5, n), 10 ** rng.uniform(9, 11, n)
    mean = loss(B24, n_params, n_tokens)
    return pd.DataFrame(
        {"n_params": n_params, "n_tokens": n_tokens, "loss": mean * np.exp(noise * rng.standard_normal(n))}
    )


def grouped_table() -> pd.DataFrame:
    """Twelve runs of each of ``GROUPS``, with columns of every kind that a table may have."""
    n = 12 * len(GROUPS)
    group = np.array([list(GROUPS)[i % 3] for i in range(n)])
    t = table(n, seed=1)
    return t.assign(
        run=[f"läuf {i}" for i in range(n)],
        loss=t["loss"] * np.array([GROUPS[g] for g in group]),
        loss_se=np.where(np.arange(n) % 2, 0.003, np.nan),
        corpus=group,
        note=['"quoted", ünicode \n two lines' if i % 4 else "" for i in range(n)],
        good=np.arange(n) % 2 == 0,
        steps=np.arange(n) * 1000,
        rate=np.where(np.arange(n) % 3, 3e-4, np.nan),
    )


@final
@dataclass(frozen=True)
class Never(Engine):
    """Fails the test that comes as far as drawing."""

    name: ClassVar[str] = "never"
    approximate: ClassVar[bool] = True

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        raise AssertionError("it was sampled")


@final
@dataclass(frozen=True)
class AtMode(Engine):
    """One draw, at the mode."""

    name: ClassVar[str] = "laplace"
    approximate: ClassVar[bool] = True

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        with jax.enable_x64(True):
            mode = start(joint, data, np.random.default_rng(seed))
        return Draws(mode.center[None, None], {}, mode.data, {"engine": self.name, "seconds": {}})


@final
@dataclass(frozen=True)
class Sampled(Engine):
    """Independent draws of the prior, recorded as a sampler records its own."""

    name: ClassVar[str] = "nuts"
    approximate: ClassVar[bool] = False

    chains: int = 4
    draws: int = 500
    diverging: int = 0
    interrupted: bool = False

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        rng, shape = np.random.default_rng(seed), (self.chains, self.draws)
        z = simulate.prior(joint, data, rng, self.chains * self.draws)
        stats = {
            "diverging": (np.arange(self.chains * self.draws) < self.diverging).reshape(shape),
            "energy": rng.standard_normal(shape),
            "reached_max_tree_depth": np.zeros(shape, bool),
        }
        info = {"engine": self.name, "chains": self.chains, "draws": self.draws, "interrupted": self.interrupted}
        return Draws(z.reshape(*shape, -1), stats, data, info | {"seconds": {}})


@final
@dataclass(frozen=True)
class Outside(Law):
    """L(N, D) = E + A / N^alpha + B / D^beta, in a file that is not in the folder of laws."""

    inputs = Chinchilla.inputs
    parameters = Chinchilla.parameters
    coefficients = Chinchilla.coefficients
    monotone = Chinchilla.monotone
    domain = Chinchilla.domain

    def loss(self, letters: Any, run: Any) -> Any:
        return Chinchilla().loss(letters, run)

    def floor(self, letters: Any) -> Any:
        return Chinchilla().floor(letters)

    def to_coefficients(self, values: Any, reference: Any) -> Any:
        return Chinchilla().to_coefficients(values, reference)

    def to_parameters(self, letters: Any, reference: Any) -> Any:
        return Chinchilla().to_parameters(letters, reference)
