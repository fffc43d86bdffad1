"""What a drift costs where the law is exact: tables simulated under a published law, forecast from their smaller runs.

python tests/benchmarks/caution.py
"""

from __future__ import annotations

import pandas as pd

import bayescale as bs
from bayescale.posterior.simulate import isoflop_design

TABLES = 20
BUDGETS = [1e18, 3e18, 1e19, 3e19, 1e20, 3e20, 1e21, 3e21, 1e22]


def main() -> None:
    """Print coverage, width and interval score over tables, with drift and by the law alone."""
    bs.use_compile_cache()
    parts = []
    for seed in range(TABLES):
        frame = bs.simulate(bs.published("besiroglu-2024"), isoflop_design(BUDGETS, 8), noise=0.005, seed=seed)
        runs = bs.read_runs(frame)
        found = bs.backtest(runs, bs.laws.get("chinchilla"), factors=(10.0, 100.0), bootstrap=None, seed=seed)
        parts.append(found.summary().assign(table=seed))
    shown = ["coverage_50", "coverage_90", "width_percent", "interval_score", "crps", "bias_percent"]
    found = pd.concat(parts).groupby(["bin", "forecaster"])
    print(f"{TABLES} tables of {8 * len(BUDGETS)} runs, trained on C <= Cmax / 10 and / 100")
    print(found[shown].mean().round(3).to_string())
    print(found["coverage_90"].sem().round(3).rename("standard error of coverage_90").to_string())


if __name__ == "__main__":
    main()
