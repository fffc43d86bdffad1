"""Tables of the same kinds as those of the shared cases, made here, so that every kind is tested without them.

Each follows one law, the unrounded constants of Besiroglu et al. 2024 (arXiv 2404.10102), whose optimum is known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

LAW = {"E": 1.816864, "A": 482.00572, "B": 2085.4342, "alpha": 0.34781303, "beta": 0.36585412}


def loss(n_params: np.ndarray, n_tokens: np.ndarray) -> np.ndarray:
    """Mean loss, nats per token."""
    c = LAW
    return c["E"] + c["A"] * n_params ** -c["alpha"] + c["B"] * n_tokens ** -c["beta"]


def n_opt(budget: float) -> float:
    """Compute-optimal parameters for C = 6 N D, by the closed form."""
    c = LAW
    s = c["alpha"] + c["beta"]
    return (c["alpha"] * c["A"] / (c["beta"] * c["B"])) ** (1 / s) * (budget / 6) ** (c["beta"] / s)


def study(n_params: np.ndarray, n_tokens: np.ndarray, noise: float, seed: int) -> pd.DataFrame:
    """Runs of the law with Normal scatter of log loss, a share of the loss."""
    rng = np.random.default_rng(seed)
    scattered = loss(n_params, n_tokens) * np.exp(noise * rng.standard_normal(len(n_params)))
    return pd.DataFrame({"params": np.round(n_params), "tokens": np.round(n_tokens), "loss": np.round(scattered, 5)})


def grid(sizes: tuple[float, float, int], tokens: tuple[float, float, int]) -> tuple[np.ndarray, np.ndarray]:
    """Every size with every number of tokens, each (first, last, how many)."""
    n, d = np.meshgrid(np.geomspace(*sizes), np.geomspace(*tokens), indexing="ij")
    return n.ravel(), d.ravel()


def _clean() -> pd.DataFrame:
    return study(*grid((5e7, 1.5e9, 4), (2e9, 1e11, 4)), noise=0.006, seed=2)


def _compute_for_tokens() -> pd.DataFrame:
    found = study(*grid((3.2e7, 1e9, 5), (3.2e9, 3.2e11, 5)), noise=0.004, seed=5)
    flop = 6 * found["params"] * found["tokens"]
    return pd.DataFrame({"Model Size": found["params"], "Training FLOP": flop, "loss": found["loss"]})


def _bad_losses() -> pd.DataFrame:
    found = study(*grid((4e7, 2.5e9, 4), (1.6e9, 1e11, 4)), noise=0.004, seed=3).astype({"loss": object})
    for line, cell in {4: "nan", 7: "inf", 9: -0.31, 11: 0, 13: "", 15: "-inf"}.items():
        found.loc[line - 2, "loss"] = cell
    return found


def _one_token_count() -> pd.DataFrame:
    return study(np.array([5e7, 6.5e7, 1.6e8, 2.1e8, 4.1e8, 1e9]), np.full(6, 4.4e9), noise=0.003, seed=13)


def _one_budget() -> pd.DataFrame:
    n = n_opt(1e20) * np.geomspace(0.1, 10, 9)
    return study(n, 1e20 / (6 * n), noise=0.002, seed=14)


def _no_effect_of_tokens() -> pd.DataFrame:
    found = study(*grid((3.2e7, 3.2e9, 5), (1e11, 1e13, 4)), noise=0.003, seed=18)
    size_only = found["loss"] - LAW["B"] * found["tokens"] ** -LAW["beta"]
    return found.assign(loss=size_only.round(5))


def _few(rows: int) -> pd.DataFrame:
    n, d = np.array([2.2e8, 5e7, 5e7, 4.6e8, 9.5e8, 1e8]), np.array([8e10, 8e10, 3.8e10, 8.7e9, 1.8e10, 4.2e9])
    return study(n, d, noise=0.005, seed=19).head(rows)


def _group_of_one_run() -> pd.DataFrame:
    parts = [study(*grid((5e7, 3.2e9, 4), (2.5e9, 1e11, 3)), noise=0.003, seed=seed) for seed in (22, 23)]
    single = study(np.array([4e8]), np.array([1.6e10]), noise=0.003, seed=24)
    return pd.concat([t.assign(corpus=name) for t, name in zip([*parts, single], "ABC", strict=True)])


def _two_diverged() -> pd.DataFrame:
    n = np.repeat(np.geomspace(5e7, 2e9, 6), 4)
    found = study(n, np.tile([1e19, 3e19, 1e20, 3e20], 6) / (6 * n), noise=0.004, seed=25)
    found.loc[[3, 16], "loss"] = [7.91, 10.83]
    return found


def _funnel() -> pd.DataFrame:
    n, d = np.array([2e8, 2e8, 6e8]), np.array([5e9, 2e10, 5e9])
    parts = [study(n, d, noise=0.004, seed=40 + k).assign(corpus=f"c{k}") for k in range(6)]
    return pd.concat(parts)


OWN: dict[str, Callable[[], pd.DataFrame]] = {
    "fit-01/runs.csv": lambda: study(*grid((5e7, 5e9, 8), (2e9, 3e11, 8)), noise=0.004, seed=1),
    "fit-05/runs_flop.csv": _compute_for_tokens,
    "fit-10/bad_losses.csv": _bad_losses,
    "fit-13/same_tokens.csv": _one_token_count,
    "fit-14/one_budget.csv": _one_budget,
    "fit-18/flat_in_D.csv": _no_effect_of_tokens,
    "fit-19/n3.csv": lambda: _few(3),
    "fit-19/n5.csv": lambda: _few(5),
    "fit-19/n6.csv": lambda: _few(6),
    "fit-22/one_run_group.csv": _group_of_one_run,
    "fit-23/one_run_group.csv": _group_of_one_run,
    "bayes-15/one_run_group.csv": _group_of_one_run,
    "fit-25/two_diverged.csv": _two_diverged,
    "bayes-04/funnel.csv": _funnel,
    "bayes-01/clean.csv": _clean,
    "bayes-05/clean.csv": _clean,
    "bayes-06/clean.csv": _clean,
    "bayes-10/clean.csv": _clean,
    "bayes-10/shuffled.csv": lambda: _clean().sample(frac=1, random_state=1),
    "bayes-12/clean.csv": _clean,
    "data-01/clean.csv": _clean,
    "plan-02/clean.csv": _clean,
    "plan-07/exact_law.csv": lambda: study(*grid((5e7, 2e10, 5), (2e9, 5e11, 5)), noise=0.001, seed=7),
}
