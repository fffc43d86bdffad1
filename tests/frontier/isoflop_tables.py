"""Tables of runs at a few budgets whose minima are known in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayescale.runs.table import Runs

BUDGETS = (1e18, 1e19, 1e20, 1e21)
ALPHA, A, B, E = 0.35, 400.0, 900.0, 1.8
"""A law with alpha = beta: along a budget it is a cosh of log N / N_opt, symmetric about its minimum."""


def best(flop: float) -> float:
    """N_opt of the symmetric law: (A / B)^(1 / 2 alpha) (C / 6)^(1/2), from setting dL/dN = 0 at D = C / 6N."""
    return (A / B) ** (1 / (2 * ALPHA)) * (flop / 6) ** 0.5


def symmetric(sizes: int = 7, budgets: Sequence[float] = BUDGETS) -> pd.DataFrame:
    """Noiseless runs of the symmetric law at sizes that are centred on its optimum."""
    return pd.concat([profile(c, best(c) * np.geomspace(1 / 3, 3, sizes)) for c in budgets], ignore_index=True)


def profile(flop: float, n: np.ndarray) -> pd.DataFrame:
    """Runs of the symmetric law at one budget."""
    d = flop / (6 * n)
    return pd.DataFrame({"flop": flop, "n_params": n, "n_tokens": d, "loss": E + A * n**-ALPHA + B * d**-ALPHA})


def parabolas(a: float, curve: float, log_noise: float, scatter: float, tables: int, seed: int) -> pd.DataFrame:
    """Tables whose log loss is a parabola in log N, the minimum at 3e8 (C / 1e20)^a.

    ``log_noise`` is of log loss, ``scatter`` of each budget's log N_opt.
    """
    rng = np.random.default_rng(seed)
    budgets = np.geomspace(1e18, 1e22, 6)
    log_n_opt = np.log(3e8) + a * np.log(budgets / 1e20) + scatter * rng.standard_normal((tables, 6))
    off = np.linspace(-1.3, 1.1, 8)  # not centred: the vertex of a parabola is where it is all the same
    x = np.log(3e8) + a * np.log(budgets / 1e20)[:, None] + off
    y = 1 - 0.05 * np.log(budgets / 1e20)[:, None] + curve * (x - log_n_opt[..., None]) ** 2
    y = y + log_noise * rng.standard_normal(y.shape)
    table, budget, _ = np.indices(y.shape)
    flop, n = budgets[budget].ravel(), np.broadcast_to(np.exp(x), y.shape).ravel()
    columns = {"flop": flop, "n_params": n, "n_tokens": flop / (6 * n), "loss": np.exp(y).ravel()}
    return pd.DataFrame(columns | {"table": [f"{t:03}" for t in table.ravel()]})


def runs(*parts: pd.DataFrame) -> Runs:
    return Runs(pd.concat(parts, ignore_index=True))
