"""Model sizes that later budgets proved best: does the 90 % interval of N_opt hold them?

IsoFLOP tables: a budget's minimum is that of `bayescale.isoflop_minima`, of budgets that have five runs within 5 % of
their lowest loss. Per group and r = 3, 10, 30, 100, 300: fit the runs with C <= Cmax / r where at least
ten remain, forecast N_opt at every larger budget that has a minimum. The public tables are read from a folder beside
the repository and are not part of it.

    python tests/benchmarks/optima.py [--hyper-priors "tilt .10" ...]
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator

import numpy as np
import pandas as pd
from forecasts import HYPER_PRIORS, public

import bayescale as bs
from bayescale.posterior.backtest import origins

TABLES = ("porian-2024", "loss-to-loss")
LEVEL = 0.9
NEAR = 1.05  # of the lowest loss: what the quadratic goes through
SAME = 1.05  # times the compute: runs of one budget


def minima(runs: bs.Runs) -> pd.DataFrame:
    """Each budget's best size, with its bootstrap standard error, where losses near enough to the lowest show it."""
    found = bs.isoflop_minima(runs, tolerance=SAME, near=NEAR).table
    return found[found["window_loss_ratio"] <= NEAR]


def forecasts(runs: bs.Runs, drift: bs.Drift) -> Iterator[dict]:
    """N_opt of every budget beyond a split's, with drift and by the law alone, against its minimum."""
    found = minima(runs)
    for factor, train in origins(runs.table["flop"]):
        own = dataclasses.replace(runs, table=runs.table[train])
        later = found[found["budget_flop"] > own.largest["flop"] * SAME]
        if not len(later):
            continue
        posterior = bs.fit(own, bs.laws.get("chinchilla"), drift=drift, seed=1)
        rows = bs.allocate(posterior, later["budget_flop"].tolist(), level=LEVEL).to_dict()["results"]
        for row, truth in zip(rows, later.to_dict("records"), strict=True):
            best = np.log(truth["n_opt_params"])
            for name, of in (("with drift", row), ("law alone", row["law_alone"])):
                n = {k: np.log(v) if v else np.nan for k, v in of["n_opt_params"].items()}
                yield {
                    "factor": factor,
                    "forecaster": name,
                    "x largest": row["extrapolation_factor"],
                    "covered": n["lower"] <= best <= n["upper"],
                    "width, decades": (n["upper"] - n["lower"]) / np.log(10),
                    "off, decades": (n["median"] - best) / np.log(10),
                    "se of minimum, decades": truth["log10_n_opt_se"],
                    "flop": truth["budget_flop"],
                    "gate": posterior.beyond,
                }


def main() -> None:
    """Print the shares held, by table and in all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hyper-priors", nargs="*", default=[], help="alternatives of the drift, by name, too")
    options = parser.parse_args()
    bs.use_compile_cache()
    for setting in ("default", *options.hyper_priors):
        drift = HYPER_PRIORS.get(setting, bs.Drift())
        parts = [
            pd.DataFrame(forecasts(runs, drift)).assign(table=name, group=group)
            for name in TABLES
            for group, runs in public(name).items()
        ]
        found = pd.concat([p for p in parts if len(p) > 0], ignore_index=True)
        numbers = ["covered", "width, decades", "off, decades", "se of minimum, decades"]
        distinct = found.drop_duplicates(["table", "group", "flop"])
        print(f"\n{setting}: {len(found) // 2} forecasts of {len(distinct)} minima")
        for by in (["table", "forecaster"], ["forecaster"]):
            print(found.groupby(by)[numbers].mean().round(3).assign(n=found.groupby(by).size()).to_string())
        last = found[found["gate"] == "PASS"].groupby("forecaster")["covered"].agg(["mean", "size"]).round(3)
        print(f"of splits that pass the gate\n{last.to_string()}", flush=True)


if __name__ == "__main__":
    main()
