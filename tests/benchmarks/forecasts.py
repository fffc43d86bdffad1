"""Rolling-origin forecasts on public tables and on the package's own: does a 90 % interval hold 90 %?

Per group of a table and r = 3, 10, 30, 100, 300: train on the runs with C <= Cmax / r where at least ten
remain, forecast all larger ones; one finished run per (N, D), 1 <= D / N <= 2000. Means within (group, split,
extrapolation factor 1 to 3, 3 to 10, 10 to 30, over 30), then within a table, then over tables, each of which
counts once. The public tables are read from a folder beside the repository and are not part of it.

    python tests/benchmarks/forecasts.py --keep FOLDER

Each split is appended to a file of FOLDER as it ends, so that a study which was stopped goes on where it was.
``--report`` only prints what is there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import bayescale as bs
from bayescale.posterior.backtest import backtest, origins
from bayescale.posterior.scorecard import ALL, ALONE, BINS, BOOTSTRAP, DRIFTS, Backtest

DATA = Path(__file__).parents[2] / "../shared/data"
RATIO = 1.0, 2000.0  # tokens per parameter
LEVEL = 0.9
PORIAN = [f"{data}/{run}/standard-count" for data in ("rw", "owt2")
          for run in ("base/short-warmup/chinchilla", "tuned/short-warmup/const")]  # fmt: skip


def gemstones(rows: pd.DataFrame) -> pd.DataFrame:
    """Ends of cooldowns."""
    return rows[rows["group"] == "cooldown-10pct"]


def porian(rows: pd.DataFrame) -> pd.DataFrame:
    """Cosine matched to the budget, and tuned at a constant rate; parameters with the head."""
    return rows[rows["group"].isin(PORIAN)]


def steplaw(rows: pd.DataFrame) -> pd.DataFrame:
    """The best hyper-parameters of each (N, D); of a mixture of experts, N is the active parameters."""
    size = rows["n_params_active"].fillna(rows["n_params_nonembedding"])
    return rows[_true(rows["is_best_hparams_for_n_d"])].assign(n_params=size)


def _true(column: pd.Series) -> pd.Series:
    return column.astype(str) == "True"


# The fewest splits first.
TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "steplaw": steplaw,
    "datablations": lambda rows: rows[rows["epochs"] <= 1],
    "chinchilla-epoch": lambda rows: rows[~_true(rows["epoch_dropped_outlier"])],
    "gemstones": gemstones,
    "xlstm-isoflop": lambda rows: rows[~_true(rows["suspect_row"]) & _true(rows["is_final_checkpoint"])],
    "gadre-2024": lambda rows: rows,
    "loss-to-loss": lambda rows: rows,
    "porian-2024": porian,
}


def public(name: str) -> dict[str, bs.Runs]:
    """Each group of a public table: the first row of each (N, D), compute by 6 N D."""
    rows = TABLES[name](pd.read_csv(DATA / name / "runs.csv", low_memory=False))
    rows = rows.rename(columns={"run_id": "run"})[["run", "group", "n_params", "n_tokens", "loss"]].dropna()
    rows = rows[(rows["n_tokens"] / rows["n_params"]).between(*RATIO)]
    rows = rows.drop_duplicates(["group", "n_params", "n_tokens"])
    return {str(group): bs.Runs(own) for group, own in rows.groupby("group")}


def own() -> dict[str, bs.Runs]:
    """The package's own runs, those of the fit and those held out."""
    runs = bs.data.load("stdlib", ("fit", "held-out"))
    inside = (runs.table["n_tokens"] / runs.table["n_params"]).between(*RATIO)
    table = runs.table[inside].drop_duplicates(["n_params", "n_tokens"])
    return {"stdlib": dataclasses.replace(runs, table=table)}


def study(name: str, groups: dict[str, bs.Runs], keep: Path, seed: int) -> None:
    """Every split of a table that is not in its file yet."""
    file = keep / f"{name}.jsonl"
    done = {(s["group"], s["factor"]) for s in kept(file)}
    for group, runs in groups.items():
        for factor, _ in origins(runs.table["flop"]):
            if (group, factor) in done:
                continue
            began = time.perf_counter()
            found = backtest(runs, bs.laws.get("chinchilla"), factors=(factor,), level=LEVEL, seed=seed).to_dict()
            where = {"table": name, "group": group, "factor": factor, "seconds": time.perf_counter() - began}
            line = where | {k: found[k] for k in ("splits", "predictions")}
            with file.open("a", encoding="utf-8") as out:
                print(json.dumps(line), file=out, flush=True)
            split = found["splits"][0]
            print(f"{name} {group} / {factor:g}: trained on {split['trained_on']}, forecast {split['forecast']}, "
                  f"gate {split['gate']} {split['gate_failed']}, {where['seconds']:.0f} s", flush=True)  # fmt: skip


def kept(file: Path) -> Iterator[dict]:
    """Splits of a file."""
    return (json.loads(line) for line in (file.read_text("utf-8").splitlines() if file.exists() else ()))


def backtested(splits: list[dict]) -> Backtest:
    """The splits of a table as one value."""
    frames = {"predictions": [], "splits": []}
    for split in splits:
        for of in frames:
            frames[of].append(pd.DataFrame(split[of]).assign(group=split["group"]))
    merged = {of: pd.concat(parts, ignore_index=True) for of, parts in frames.items()}
    return Backtest(**merged, level=LEVEL, least=10, seed=1, source=splits[0]["table"], loss_unit="")


def report(keep: Path) -> pd.DataFrame:
    """Print each table's scores and their means over tables; return the latter."""
    rows, passed, seconds = [], [], 0.0
    for file in sorted(keep.glob("*.jsonl")):
        splits = list(kept(file))
        found = backtested(splits)
        seconds += sum(s["seconds"] for s in splits)
        passed.append(found.splits.assign(table=file.stem))
        rows.append(found.summary().assign(table=file.stem, splits=len(splits)))
    table, gates = pd.concat(rows), pd.concat(passed)
    whole = table[table["bin"] == ALL]
    shown = ["coverage_50", "coverage_80", "coverage_90", "coverage_95"]
    shown += ["width_percent", "interval_score", "crps", "bias_percent"]
    written = {"index": False, "float_format": lambda v: f"{v:.2f}"}
    print(f"\n{len(gates)} splits of {whole['table'].nunique()} tables, {seconds:.0f} s\n")
    print(whole[["table", "splits", "forecaster", *shown]].to_string(**written))
    for b in (*BINS, ALL):
        own = table[table["bin"] == b]
        mean = own.groupby("forecaster", sort=False)[shown].mean()
        error = own.groupby("forecaster", sort=False)["coverage_90"].sem().rename("se of coverage_90")
        print(f"\nover tables, {own['table'].nunique()}, extrapolation factor {b}")
        print(mean.join(error).reindex([DRIFTS, ALONE, BOOTSTRAP]).to_string(float_format=written["float_format"]))
    fails = gates[gates["gate"] != "PASS"]
    print(f"\nthe gate passes {len(gates) - len(fails)} of {len(gates)} splits; the others:")
    print(fails[["table", "group", "factor", "gate", "gate_failed"]].to_string(index=False))
    return whole


def main() -> None:
    """Run what is missing, smaller tables first, and print all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, required=True, help="folder of what is done already")
    parser.add_argument("--tables", nargs="*", default=["stdlib", *TABLES])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="print what is there, and run nothing")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    bs.use_compile_cache()
    for name in [] if options.report else options.tables:
        if name != "stdlib" and not (DATA / name).is_dir():
            print(f"{name}: no folder {DATA / name}; left out")
            continue
        study(name, own() if name == "stdlib" else public(name), options.keep, options.seed)
    report(options.keep)


if __name__ == "__main__":
    np.seterr(over="ignore")  # the tails of a scatter
    main()
