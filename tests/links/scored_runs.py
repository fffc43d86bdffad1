"""Runs whose scores follow known sigmoids of their loss, written out beside the code; and one task that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import bayescale as bs

B24 = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}
"""Besiroglu et al. 2024 (arXiv 2404.10102)."""

LETTERS: dict[str, tuple[float, float, float, float]] = {
    "easy": (-0.65, 0.90, 2.5, 2.60),
    "choice": (-0.70, 0.95, 3.0, 2.50),
    "pairs": (-0.45, 0.95, 2.0, 2.60),
    "written": (-0.80, 0.80, 3.0, 3.00),
}
"""a, b, k and L0 of arXiv 2412.04403, step 2; the floor a + b is .25, .25, .5 and 0."""

TASKS: dict[str, Any] = {
    "easy": {"chance": 0.25, "questions": 2000},
    "choice": {"chance": 0.25, "questions": 2000},
    "pairs": {"chance": 0.5, "questions": 2000},
    "written": {"chance": 0.0, "questions": 2000},
    "flat": {"chance": 0.25, "questions": 500},
}
NOISE = 0.05  # scatter of log odds


def sigmoid(letters: tuple[float, float, float, float], loss: Any) -> Any:
    """b + a / (1 + exp(-k (L - L0)))."""
    a, b, k, middle = letters
    return b + a / (1 + np.exp(-k * (loss - middle)))


def table(n: int = 36, seed: int = 0, letters: Mapping[str, Any] = LETTERS) -> pd.DataFrame:
    """Runs of B24's law, with scores counted over 2,000 questions, and a task at which all guess."""
    rng = np.random.default_rng(seed)
    size, ratio = 10 ** rng.uniform(7.5, 9.5, n), 10 ** rng.uniform(0.7, 2.0, n)
    loss = B24["E"] + B24["A"] * size ** -B24["alpha"] + B24["B"] * (size * ratio) ** -B24["beta"]
    out = pd.DataFrame({"run": [f"r{i}" for i in range(n)], "n_params": size, "n_tokens": size * ratio})
    out["loss"] = loss * np.exp(0.004 * rng.standard_normal(n))
    for name, own in letters.items():
        share = sigmoid(own, out["loss"].to_numpy())
        odds = share / (1 - share) * np.exp(NOISE * rng.standard_normal(n))
        out[name] = rng.binomial(2000, odds / (1 + odds)) / 2000
    return out.assign(flat=rng.binomial(500, 0.25, n) / 500)


def runs(n: int = 36, seed: int = 0) -> bs.Runs:
    return bs.read_runs(table(n, seed))
