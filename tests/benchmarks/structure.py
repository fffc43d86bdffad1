"""Checkpoints that share their run's error: what counting them as runs does to the interval of N_opt.

Tables of 16 simulated runs under a published law, each with checkpoints that share one shock of log loss and scatter
little around it, are fitted twice: with a shock for each run, and as if rows were independent.

    python tests/benchmarks/structure.py --tables 100
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import bayescale as bs

LAW, TRUTH = bs.laws.get("chinchilla"), "besiroglu-2024"
SHOCK, SCATTER, RUNS = 0.01, 0.003, 16
BUDGET = 1e23
FITS = {"a shock for each run": [bs.Shocks("run_id")], "rows independent": []}


def checkpoints(each: int, seed: int) -> pd.DataFrame:
    """Rows of 16 runs, 4 sizes with 4 ratios of tokens to parameters, whose last checkpoints span 1e18 to 1e21 FLOP."""
    rng = np.random.default_rng(seed)
    n, ratio = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 2e9, 4), np.geomspace(10, 80, 4)))
    rows = pd.DataFrame({"run_id": np.repeat([f"r{i}" for i in range(RUNS)], each), "n_params": np.repeat(n, each)})
    rows["n_tokens"] = np.outer(n * ratio, np.geomspace(0.1, 1, each)).ravel()
    mean = bs.simulate(bs.published(TRUTH), rows[["n_params", "n_tokens"]], noise=0.0, seed=seed)["loss"].to_numpy()
    shock = np.repeat(SHOCK * rng.standard_normal(RUNS), each)
    return rows.assign(loss=mean * np.exp(shock + SCATTER * rng.standard_normal(len(rows))))


def main() -> None:
    """Print, by how the rows were read, status, divergences and the coverage of the 90 % interval of N_opt."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--each", type=int, default=50, help="checkpoints of a run")
    options = parser.parse_args()
    bs.use_compile_cache()
    truth = float(bs.allocate(bs.published(TRUTH), [BUDGET]).n_opt().median())
    rows = []
    for seed in range(options.tables):
        table = bs.read_runs(checkpoints(options.each, seed))
        for name, shocks in FITS.items():
            fit = bs.fit(table, LAW, drift=None, shocks=shocks, seed=seed)
            low, high = np.nanquantile(bs.allocate(fit, [BUDGET]).n_opt().to_numpy(), [0.05, 0.95])
            divergences = int(fit.tree["sample_stats"]["diverging"].sum())
            found = {"seed": seed, "fit": name, "status": str(fit.status), "divergences": divergences}
            found |= {"covered": low <= truth <= high, "decades": np.log10(high / low)}
            rows.append(found | {"seconds": fit.info["seconds"]["total"]})
            print(found, flush=True)
    whole = pd.DataFrame(rows).assign(passed=lambda t: t["status"] == "PASS")
    print(f"{options.tables} tables of {RUNS} runs with {options.each} checkpoints each, N_opt at {BUDGET:g} FLOP")
    columns = ["passed", "divergences", "covered", "decades", "seconds"]
    print(whole.groupby("fit", sort=False)[columns].mean().round(2).to_string())


if __name__ == "__main__":
    main()
