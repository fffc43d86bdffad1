"""Rolling-origin forecasts on public tables and on the package's own: does a 90 % interval hold 90 %?

Per group of a table and r = 3, 10, 30, 100, 300: train on the runs with C <= Cmax / r where at least ten
remain, forecast all larger ones; one finished run per (N, D), 1 <= D / N <= 2000. Means within (group, split,
extrapolation factor 1 to 3, 3 to 10, 10 to 30, over 30), then within a table, then over tables, each of which
counts once. The public tables are read from a folder beside the repository and are not part of it.

    python tests/benchmarks/forecasts.py --keep FOLDER

Each split is appended to a file of FOLDER as it ends, so that a study which was stopped goes on where it was.
``--report`` only prints what is there. ``--hyper-priors`` forecasts with each of the drift's alternatives too, and
then scores every table under that which has the smallest mean log interval score on the other tables; ``--few``
trains each split on 6, 8, 12 or 20 of its runs, drawn at random.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescale as bs
from bayescale.posterior.backtest import backtest, origins
from bayescale.posterior.scorecard import ALL, ALONE, BINS, BOOTSTRAP, DRIFTS, Backtest

DATA = Path(__file__).parents[2] / "../shared/data"
RATIO = 1.0, 2000.0  # tokens per parameter
LEVEL = 0.9
DEFAULT = "default"
FEW = 6, 8, 12, 20
PORIAN = [f"{data}/{run}/standard-count" for data in ("rw", "owt2")
          for run in ("base/short-warmup/chinchilla", "tuned/short-warmup/const")]  # fmt: skip


def drift(tilt: float = 0.06, **priors: bs.Normal | bs.LogNormal) -> bs.Drift:
    """A drift with some of its hyper-priors changed."""
    return bs.Drift(priors={**bs.Drift().priors, **priors}, tilt=tilt)


def wide(sd: float) -> dict[str, bs.LogNormal]:
    """Exponents about .26, told less sharply."""
    return {"alpha": bs.LogNormal(0.26, sd), "beta": bs.LogNormal(0.26, sd)}


# One thing changed, and some together.
HYPER_PRIORS = {
    "departure .007": drift(departure=bs.LogNormal(0.007, 0.15)),
    "departure .009": drift(departure=bs.LogNormal(0.009, 0.15)),
    "departure .016": drift(departure=bs.LogNormal(0.016, 0.15)),
    "decline .03": drift(decline=bs.Normal(0.03, 0.03)),
    "decline .07": drift(decline=bs.Normal(0.07, 0.03)),
    "decline .05, sd .05": drift(decline=bs.Normal(0.05, 0.05)),
    "no decline": drift(decline=bs.Normal(0.0, 0.001)),
    "exponents sd .3": drift(**wide(0.3)),
    "exponents .30": drift(alpha=bs.LogNormal(0.30, 0.2), beta=bs.LogNormal(0.30, 0.2)),
    "tilt .02": drift(0.02),
    "tilt .10": drift(0.10),
    "a: departure .009, exponents sd .3, tilt .10": drift(0.1, departure=bs.LogNormal(0.009, 0.15), **wide(0.3)),
    "b: a, decline sd .05": drift(0.1, departure=bs.LogNormal(0.009, 0.15), decline=bs.Normal(0.05, 0.05), **wide(0.3)),
    "c: b, exponents sd .4": drift(
        0.1, departure=bs.LogNormal(0.009, 0.15), decline=bs.Normal(0.05, 0.05), **wide(0.4)
    ),
}


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


def study(name: str, groups: dict[str, bs.Runs], keep: Path, few: int | None = None, **how: Any) -> None:
    """Every split of a table that is not in its file yet; with ``few``, trained on so many of its runs, at random."""
    file = keep / f"{name}.jsonl"
    done = {(s["group"], s["factor"]) for s in kept(file)}
    for group, runs in groups.items():
        for factor, train in origins(runs.table["flop"]):
            if (group, factor) in done or (few or 0) > train.sum():
                continue
            began = time.perf_counter()
            some = runs if few is None else sampled(runs, train, few)
            how |= {"factors": (factor,), "level": LEVEL, "least": few or 10}
            found = backtest(some, bs.laws.get("chinchilla"), **how).to_dict()
            where = {"table": name, "group": group, "factor": factor, "seconds": time.perf_counter() - began}
            line = where | {k: found[k] for k in ("splits", "predictions")}
            with file.open("a", encoding="utf-8") as out:
                print(json.dumps(line), file=out, flush=True)
            split = found["splits"][0]
            print(f"{name} {group} / {factor:g}: trained on {split['trained_on']}, forecast {split['forecast']}, "
                  f"gate {split['gate']} {split['gate_failed']}, {where['seconds']:.0f} s", flush=True)  # fmt: skip


def sampled(runs: bs.Runs, train: np.ndarray, few: int) -> bs.Runs:
    """All later runs, and some of those that a split trains on."""
    chosen = np.random.default_rng(few).choice(np.flatnonzero(train), few, replace=False)
    return dataclasses.replace(runs, table=runs.table.iloc[np.union1d(chosen, np.flatnonzero(~train))])


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


def chosen(keep: Path) -> None:
    """Print each setting's scores over tables, and each table's under the setting that the others choose."""
    found = {DEFAULT: _drifts(keep)} | {name: _drifts(keep / name) for name in HYPER_PRIORS}
    complete = {k: v for k, v in found.items() if set(v.index) == set(found[DEFAULT].index)}
    over = pd.DataFrame({name: own.mean() for name, own in complete.items()}).T
    print(f"\nover {len(found[DEFAULT])} tables, with drift, by hyper-priors\n{over.round(3).to_string()}")
    logs = pd.DataFrame({name: own["log_interval_score"] for name, own in complete.items()})
    picked = {table: str(logs.drop(table).mean().idxmin()) for table in logs.index}
    rows = pd.DataFrame({t: complete[name].loc[t] for t, name in picked.items()}).T
    print("\neach table under the hyper-priors that the other tables choose")
    print(rows.round(2).assign(hyper_priors=picked).to_string())
    print(rows.mean().round(3).to_string())
    print(f"standard error of coverage_90: {rows['coverage_90'].sem():.3f}")


def _drifts(keep: Path) -> pd.DataFrame:
    """Scores of the forecasts with drift, one row a table; the log score is the mean over its cells."""
    rows = {}
    for file in sorted(keep.glob("*.jsonl")):
        cells = backtested(list(kept(file))).cells()
        own = cells[cells["forecaster"] == DRIFTS]
        scores = own[["coverage_50", "coverage_80", "coverage_90", "coverage_95", "width_percent", "interval_score"]]
        rows[file.stem] = scores.mean().to_dict() | {"log_interval_score": np.log(own["interval_score"]).mean()}
    return pd.DataFrame(rows).T


def main() -> None:
    """Run what is missing, smaller tables first, and print all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, required=True, help="folder of what is done already")
    parser.add_argument("--tables", nargs="*", default=["stdlib", *TABLES])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hyper-priors", action="store_true", help="the drift's alternatives, too")
    parser.add_argument("--few", action="store_true", help="splits of fewer training runs, too")
    parser.add_argument("--report", action="store_true", help="print what is there, and run nothing")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    bs.use_compile_cache()
    settings: dict[str, dict[str, Any]] = {".": {}}
    settings |= {f"{k} runs": {"few": k, "bootstrap": None} for k in (FEW if options.few else ())}
    if options.hyper_priors:
        settings |= {k: {"drift": v, "bootstrap": None} for k, v in HYPER_PRIORS.items()}
    for setting, how in () if options.report else settings.items():
        (options.keep / setting).mkdir(exist_ok=True)
        for name in options.tables:
            if name == "stdlib" or (DATA / name).is_dir():
                groups = own() if name == "stdlib" else public(name)
                study(name, groups, options.keep / setting, seed=options.seed, **how)
            else:
                print(f"{name}: no folder {DATA / name}; left out")
    report(options.keep)
    for k in FEW if options.few else ():
        found = _drifts(options.keep / f"{k} runs")
        error = found["coverage_90"].sem()
        print(f"\n{k} training runs, over {len(found)} tables (standard error of coverage_90 {error:.2f})")
        print(found.mean().round(2).to_string())
    if options.hyper_priors:
        chosen(options.keep)


if __name__ == "__main__":
    np.seterr(over="ignore")  # the tails of a scatter
    main()
