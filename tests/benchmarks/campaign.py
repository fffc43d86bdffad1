"""The package's own runs: fitted on the compute-limited part, held against every run that the fit has not seen.

The law alone and the law with drift, each with its 90 % interval of a new run. Larger runs and cells between
those of the fit are held out; other seeds of the fit's cells say what the scatter is worth; the runs of
``stress`` lie below the window of the fit, in width or in bytes.

    python tests/benchmarks/campaign.py
"""

from __future__ import annotations

import argparse
import datetime

import pandas as pd

import bayescale as bs

DRAWS = {"law alone": bs.NUTS(), "with drift": bs.NUTS(draws=2000)}


def posteriors(seed: int) -> dict[str, bs.Posterior]:
    """Both fits of the 22 runs."""
    runs, law = bs.data.load("stdlib"), bs.laws.get("chinchilla")
    drifts = {"law alone": None, "with drift": bs.Drift()}
    return {name: bs.fit(runs, law, drift=drifts[name], engine=DRAWS[name], seed=seed) for name in drifts}


def unseen() -> pd.DataFrame:
    """Runs that are not in the fit, with what they are for the forecast, and their compute in the fit's largest."""
    table = bs.data.load("stdlib", ["held-out", "seed", "stress"]).table
    times = table["flop"] / bs.data.load("stdlib").largest["flop"]
    kind = table["role"].where(table["role"] != "held-out", "cell between")
    return table.assign(times=times, kind=kind.where(times <= 1, "larger")).sort_values(["kind", "times"])


def compared(posterior: bs.Posterior, runs: pd.DataFrame) -> pd.DataFrame:
    """Forecasts beside what was reached: median, ends, error of the median, whether the interval holds it."""
    found = bs.predict(posterior, runs).to_dataframe().set_index(runs.index)
    ends = {end: found[f"loss_new_run_{end}"] for end in ("median", "lower", "upper")}
    out = runs[["run", "kind", "times", "loss"]].assign(**ends)
    return out.assign(off=out["median"] / out["loss"] - 1, holds=out["loss"].between(out["lower"], out["upper"]))


def main() -> None:
    """Print one table of the runs, and one of the shares that the intervals hold, as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    bs.use_compile_cache()
    fits, runs = posteriors(options.seed), unseen()
    found = {name: compared(posterior, runs) for name, posterior in fits.items()}
    versions = next(iter(fits.values())).info["versions"]
    print(datetime.date.today(), *(f"{name} {versions[name]}" for name in ("bayescale", "numpyro", "jax")))
    print(*(f"{name}: {posterior.status}" for name, posterior in fits.items()), sep="; ", end="\n\n")
    print("| run | what | compute | reached |", *(f"{name} | off |" for name in fits))
    print("|-" * (4 + 2 * len(fits)) + "|")
    for row in runs.itertuples():
        cells = [f"| {row.run} | {row.kind} | {row.times:.3g} | {row.loss:.4f} |"]
        for table in found.values():
            at = table.loc[row.Index]
            mark = "" if at["holds"] else " **misses**"
            cells.append(f"{at['lower']:.3f} to {at['upper']:.3f}{mark} | {100 * at['off']:+.1f} % |")
        print(*cells)
    print("\n| what | runs |", *(f"{name} holds | medians off by |" for name in fits))
    print("|-" * (2 + 2 * len(fits)) + "|")
    for kind, rows in runs.groupby("kind"):
        of_kind = [table.loc[rows.index] for table in found.values()]
        ends = (f"{t['holds'].sum()} | {100 * t['off'].min():+.1f} to {100 * t['off'].max():+.1f} % |" for t in of_kind)
        print(f"| {kind} | {len(rows)} |", *ends)


if __name__ == "__main__":
    main()
