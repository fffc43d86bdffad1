"""Posteriors whose draws are given, and Hoffmann et al.'s law written out beside the code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import xarray as xr

import bayescale as bs

B24 = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}
"""Besiroglu et al. 2024 (arXiv 2404.10102)."""

SARDANA = {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.336, "beta": 0.283}
"""Sardana et al. 2023 (arXiv 2401.00448)."""


def posterior(letters: Mapping[str, np.ndarray]) -> bs.Posterior:
    """A published posterior with the draws of the law's letters replaced: arrays (S,)."""
    found = bs.published("besiroglu-2024")
    tree = found.tree.copy()
    tree["posterior"] = xr.DataTree(
        xr.Dataset({name: (("chain", "draw"), np.asarray(draws, float)[None]) for name, draws in letters.items()})
    )
    return dataclasses.replace(found, tree=tree)


def cloud(size: int, seed: int = 0, spread: float = 1.0) -> dict[str, np.ndarray]:
    """Draws around `B24`, as wide as a small table leaves them."""
    rng = np.random.default_rng(seed)
    width = {"A": 0.15, "B": 0.15, "E": 0.02, "alpha": 0.04, "beta": 0.04}
    return {name: B24[name] * np.exp(spread * sd * rng.standard_normal(size)) for name, sd in width.items()}


def loss(letters: Mapping[str, np.ndarray], size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """E + A / N^alpha + B / D^beta of every draw at every run: (S, M)."""
    c = {name: np.atleast_1d(np.asarray(draws, float))[:, None] for name, draws in letters.items()}
    return c["E"] + c["A"] * size ** -c["alpha"] + c["B"] * tokens ** -c["beta"]


def optimum(letters: Mapping[str, np.ndarray], flop: float) -> tuple[np.ndarray, np.ndarray]:
    """Size of each draw's own optimum under C = 6 N D, and its loss (Hoffmann et al. 2022, equation 4): (S,)."""
    c = {name: np.atleast_1d(np.asarray(draws, float)) for name, draws in letters.items()}
    g = (c["alpha"] * c["A"] / (c["beta"] * c["B"])) ** (1 / (c["alpha"] + c["beta"]))
    size = g * (flop / 6) ** (c["beta"] / (c["alpha"] + c["beta"]))
    return size, c["E"] + c["A"] * size ** -c["alpha"] + c["B"] * (flop / 6 / size) ** -c["beta"]
