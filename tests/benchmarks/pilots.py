"""What pilots are worth: how fast that is told, against refits with simulated losses, and in worlds of known truth.

python tests/benchmarks/pilots.py [speed] [refits] [worlds]
"""

from __future__ import annotations

import subprocess
import sys
import time

import jax
import numpy as np
import pandas as pd

import bayescale as bs
from bayescale.decision.plan import Plan
from bayescale.decision.risk import CVaR, Mean
from bayescale.posterior.simulate import isoflop_design

BUDGETS, PER_BUDGET, NOISE = [1e18, 3e18, 1e19, 3e19, 1e20], 6, 0.005
PLANNED, PILOT, PRICE = 1e23, 3e20, bs.Budget(flop=1e25)
REFITS, WORLDS = 30, 12
LAW = bs.laws.get("chinchilla")


def table(seed: int) -> pd.DataFrame:
    """Runs of a published law."""
    design = isoflop_design(BUDGETS, PER_BUDGET)
    return bs.simulate(bs.published("besiroglu-2024"), design, noise=NOISE, tail=6, seed=seed)[
        ["n_params", "n_tokens", "loss"]
    ]


def fitted(frame: pd.DataFrame, seed: int, *, drift: bool = False) -> bs.Posterior:
    """A fit of a table."""
    return bs.fit(bs.read_runs(frame), LAW, seed=seed, **({} if drift else {"drift": None}))


def candidates() -> np.ndarray:
    """Nine runs of one compute, 2 to 200 tokens per parameter."""
    size = np.sqrt(PILOT / (6 * np.geomspace(2, 200, 9)))
    return np.column_stack([size, PILOT / 6 / size])


def speed() -> None:
    """200 candidates at 4,000 draws, a second call, in imports of jax and numpyro."""
    code = "import time; t = time.perf_counter(); import jax, numpyro; print(time.perf_counter() - t)"
    imports = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    size = np.geomspace(1e8, 1e10, 20)
    runs = [(n, d) for n in size for d in np.geomspace(1e9, 3e11, 10)]
    posterior = fitted(table(3), 1, drift=True)
    for risk in (Mean(), CVaR(0.1)):
        plan = bs.recommend(posterior, PLANNED, risk=risk)
        bs.next_pilot(plan, runs)
        began = time.perf_counter()
        bs.next_pilot(plan, runs)
        taken = time.perf_counter() - began
        print(f"{risk}: {len(runs)} candidates {taken:.2f} s, imports {imports:.2f} s, ratio {taken / imports:.2f}")


def seen(posterior: bs.Posterior, draw: int, runs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Losses of runs under one draw of a posterior, scatter included."""
    values = posterior.values()
    scatter = posterior.model.noise.simulate(rng, np.zeros(len(runs)), {k: v[draw] for k, v in values.items()}, 0.0)
    return mean(posterior, draw, runs) * np.exp(scatter)


def mean(posterior: bs.Posterior, draw: int, runs: np.ndarray) -> np.ndarray:
    """Mean loss of runs under one draw."""
    letters = {k: v[draw] for k, v in posterior.coefficients().items()}
    with jax.enable_x64(True):
        return np.asarray(LAW.loss(letters, {"n_params": runs[:, 0], "n_tokens": runs[:, 1]}))


def with_runs(frame: pd.DataFrame, runs: np.ndarray, loss: np.ndarray) -> pd.DataFrame:
    """A table with further runs."""
    more = pd.DataFrame({"n_params": runs[:, 0], "n_tokens": runs[:, 1], "loss": loss})
    return pd.concat([frame, more], ignore_index=True)


def refits() -> None:
    """Predicted gains against the mean gain of plans made anew after fitting simulated losses."""
    frame = table(3)
    prior = fitted(frame, 1)
    plan, rng = bs.recommend(prior, PLANNED), np.random.default_rng(0)
    runs = candidates()[[0, 8]]
    told = bs.next_pilot(plan, runs)
    draws = rng.choice(len(prior.values()["noise"]), REFITS, replace=False)
    for k, run in enumerate(runs):
        gains = []
        for i, draw in enumerate(draws):
            loss = seen(prior, int(draw), run[None], rng)
            again = bs.recommend(fitted(with_runs(frame, run[None], loss), i), PLANNED)
            kept = again.problem.outcomes(plan.choice)
            gains.append(float(kept.mean()) - again.risk)
        found, error = np.mean(gains), np.std(gains, ddof=1) / np.sqrt(REFITS)
        print(
            f"{run[0]:.3g} x {run[1]:.3g}: predicted {told.worth[k].gain:.3g} ({told.worth[k].error:.1g}), "
            f"{REFITS} refits {found:.3g} ({error:.1g})"
        )


def regret(plan: Plan, prior: bs.Posterior, draw: int) -> float:
    """Loss given up by a plan, under one draw taken for the truth."""
    sizes = np.geomspace(1e9, 1e12, 4001)
    best = mean(prior, draw, np.column_stack([sizes, PLANNED / 6 / sizes])).min()
    return float(mean(prior, draw, np.array([[plan.n_params, plan.n_tokens]]))[0] - best)


def worlds() -> None:
    """Regret after two pilots of one compute: chosen by next_pilot, at random, and on a geometric ladder."""
    frame = table(3)
    prior = fitted(frame, 1)
    plan, rng, grid = bs.recommend(prior, PLANNED), np.random.default_rng(1), candidates()
    chosen = bs.next_pilot(plan, grid, batch=2, unit_worth=PRICE)
    best = grid[list(chosen.steps[-1][0])]
    print("chosen", best[:, 1] / best[:, 0], f"predicted gain {chosen.steps[-1][1].gain:.3g}")
    ladder = np.array([[np.sqrt(c / 120), 20 * np.sqrt(c / 120)] for c in (PILOT / 2, 1.5 * PILOT)])
    rows = []
    for draw in rng.choice(len(prior.values()["noise"]), WORLDS, replace=False):
        designs = {"next_pilot": best, "random": grid[rng.choice(len(grid), 2, replace=False)], "ladder": ladder}
        row = {"none": regret(plan, prior, int(draw))}
        for name, runs in designs.items():
            loss = seen(prior, int(draw), runs, rng)
            row[name] = regret(bs.recommend(fitted(with_runs(frame, runs, loss), 5), PLANNED), prior, int(draw))
        rows.append(row)
    found = pd.DataFrame(rows)
    print(pd.DataFrame({"mean regret": found.mean(), "standard error": found.sem()}).to_string())
    print("gain over none:", (found["none"] - found["next_pilot"]).mean(), (found["none"] - found["next_pilot"]).sem())


if __name__ == "__main__":
    bs.use_compile_cache()
    for part in sys.argv[1:] or ["speed", "refits", "worlds"]:
        {"speed": speed, "refits": refits, "worlds": worlds}[part]()
