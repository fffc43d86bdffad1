"""Model sizes that later budgets proved best: does the 90 % interval of N_opt hold them?

IsoFLOP tables: a budget's minimum is that of a quadratic in log N through its lowest losses, kept where it is
convex and lies between them. Per group and r = 3, 10, 30, 100, 300: fit the runs with C <= Cmax / r where at least
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
FEWEST, RESAMPLES = 5, 200
SAME = 0.05  # of log compute: runs of one budget


def minima(table: pd.DataFrame) -> pd.DataFrame:
    """Each budget's best size, log N, with its bootstrap standard error."""
    table = table.sort_values("flop")
    steps = np.diff(np.log(table["flop"].to_numpy(float)), prepend=0.0) > SAME
    rows = []
    for _, own in table.groupby(np.cumsum(steps)):
        low = own[own["loss"] <= NEAR * own["loss"].min()]
        x, y = np.log(low["n_params"].to_numpy(float)), np.log(low["loss"].to_numpy(float))
        if len(low) < FEWEST or (best := vertex(x, y)) is None:
            continue
        rng = np.random.default_rng(0)
        fitted = np.polyval(np.polyfit(x - x.mean(), y, 2), x - x.mean())
        scatter = (y - fitted) * np.sqrt(len(x) / (len(x) - 3))
        again = [vertex(x, fitted + rng.choice(scatter, len(x))) for _ in range(RESAMPLES)]
        se = np.std([v for v in again if v is not None])
        rows.append({"flop": float(np.exp(np.log(own["flop"]).mean())), "log_n": best, "se": float(se)})
    return pd.DataFrame(rows)


def vertex(x: np.ndarray, y: np.ndarray) -> float | None:
    """Where the parabola through some points is lowest; None unless it is convex there and between them."""
    center = x.mean()
    curve, slope, _ = np.polyfit(x - center, y, 2)
    if curve <= 0:
        return None
    at = float(center - slope / (2 * curve))
    return at if x.min() < at < x.max() else None


def forecasts(runs: bs.Runs, drift: bs.Drift) -> Iterator[dict]:
    """N_opt of every budget beyond a split's, with drift and by the law alone, against its minimum."""
    found = minima(runs.table)
    for factor, train in origins(runs.table["flop"]):
        own = dataclasses.replace(runs, table=runs.table[train])
        later = found[found["flop"] > own.largest["flop"] * (1 + SAME)] if len(found) else found
        if not len(later):
            continue
        engine = bs.NUTS()
        posterior = bs.fit(own, bs.laws.get("chinchilla"), drift=drift, engine=engine, seed=1)
        rows = bs.allocate(posterior, later["flop"].tolist(), level=LEVEL).to_dict()["results"]
        for row, truth in zip(rows, later.to_dict("records"), strict=True):
            for name, of in (("with drift", row), ("law alone", row["law_alone"])):
                n = {k: np.log(v) if v else np.nan for k, v in of["n_opt_params"].items()}
                yield {
                    "factor": factor,
                    "forecaster": name,
                    "x largest": row["extrapolation_factor"],
                    "covered": n["lower"] <= truth["log_n"] <= n["upper"],
                    "width, decades": (n["upper"] - n["lower"]) / np.log(10),
                    "off, decades": (n["median"] - truth["log_n"]) / np.log(10),
                    "se of minimum, decades": truth["se"] / np.log(10),
                    "flop": truth["flop"],
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
