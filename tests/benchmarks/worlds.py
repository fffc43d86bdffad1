"""What a recommendation is worth: simulated worlds, each with its pilots, its fit, its plan and its true loss.

A world is one draw of the prior, of the law alone or with a drift from it. Pilots of one of three designs
are simulated in it, every planner sees their losses alone and names a size for 100 times the largest pilot's
compute, and is charged the world's own mean loss there, less that of the world's own best size. All planners
are charged in the same worlds.

    python tests/benchmarks/worlds.py --worlds 200
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.interpolate import CubicSpline

import bayescale as bs
from bayescale.decision.objective import Regret
from bayescale.decision.risk import CVaR
from bayescale.inference.prior import FromPrior
from bayescale.posterior.predict import simulated
from bayescale.posterior.simulate import isoflop_design

LAW = bs.laws.get("chinchilla")
LOSS = 2.6  # nats per token, on which the prior of the loss at the centre is frozen
BEYOND = 100.0
TAIL = 0.1
SHAPE = np.linspace(-7.0, 7.0, 57)  # log of a size over that of 20 tokens per parameter
KINDS = {"law alone": None, "drift": bs.Drift()}


def ladder() -> pd.DataFrame:
    """12 runs, a factor of two apart in size, alternately at 10 and 40 tokens per parameter."""
    n = 2e7 * 2.0 ** (np.arange(12) / 2)
    return pd.DataFrame({"n_params": n, "n_tokens": n * np.tile([10.0, 40.0], 6)})


def grid() -> pd.DataFrame:
    """4 sizes, each on 4 token counts."""
    n, d = (a.ravel() for a in np.meshgrid([3e7, 1e8, 3e8, 1e9], [1e9, 4e9, 1.6e10, 6.4e10]))
    return pd.DataFrame({"n_params": n, "n_tokens": d})


DESIGNS: dict[str, Callable[[], pd.DataFrame]] = {
    "iso-FLOP": lambda: isoflop_design([1e18, 3e18, 1e19, 3e19, 1e20], 7),
    "ladder": ladder,
    "grid": grid,
}


def target(rows: pd.DataFrame) -> float:
    """The budget that is planned for, FLOPs."""
    return BEYOND * 6 * float((rows["n_params"] * rows["n_tokens"]).max())


def worlds(rows: pd.DataFrame, kind: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses of the pilots (worlds, runs), and true mean log losses along `SHAPE` at the target (worlds, sizes)."""
    runs = bs.read_runs(rows.assign(loss=LOSS))
    prior = bs.fit(runs, LAW, drift=KINDS[kind], engine=FromPrior(draws=number), seed=1)
    size = np.sqrt(target(rows) / 120) * np.exp(SHAPE)
    curve = {"n_params": size, "n_tokens": target(rows) / 6 / size}
    every = {k: np.concatenate([rows[k].to_numpy(float), curve[k]]) for k in curve}
    mean = np.empty((number, len(rows) + len(size)))
    new = np.empty_like(mean)
    for block, expected, scattered in simulated(prior, None, every, np.random.default_rng(2)):
        mean[:, block], new[:, block] = expected, scattered
    return np.exp(new[:, : len(rows)]), np.log(mean[:, len(rows) :])


def point(letters: Mapping[str, float], flop: float) -> float:
    """Size at which the law with these letters is lowest under C = 6 N D (Hoffmann et al. 2022, equation 4)."""
    a, b = letters["alpha"], letters["beta"]
    g = np.log(a * letters["A"] / (b * letters["B"])) / (a + b)
    return float(np.exp(g + b / (a + b) * np.log(flop / 6)))


def sizes(runs: bs.Runs, flop: float, seed: int) -> tuple[dict[str, float], str]:
    """The size that each planner names, and whether the gate lets the fit with drift forecast beyond its runs."""
    fit = bs.fit(runs, LAW, seed=seed)
    huber = bs.fit(runs, LAW, drift=None, engine=bs.Huber(resamples=200), seed=seed)
    return {
        "recommend, mean": bs.recommend(fit, flop).n_params,
        "recommend, CVaR of regret": bs.recommend(fit, flop, objective=Regret(), risk=CVaR(TAIL)).n_params,
        "recommend on the law alone, mean": bs.recommend(fit.law_alone, flop).n_params,
        "Huber point estimate": point(huber.info["estimate"], flop),
        "Huber bootstrap, mean": bs.recommend(huber, flop).n_params,
        "20 tokens per parameter": float(np.sqrt(flop / 120)),
    }, str(fit.beyond)


def charged(size: float, flop: float, truth: CubicSpline) -> float:
    """Loss of a size over the world's best, %; sizes beyond `SHAPE` are charged at its end."""
    fine = truth(np.linspace(SHAPE[0], SHAPE[-1], 20_001))
    at = np.clip(np.log(size / np.sqrt(flop / 120)), SHAPE[0], SHAPE[-1])
    return float(100 * np.expm1(max(truth(at) - fine.min(), 0.0)))


def study(number: int, keep: Path) -> pd.DataFrame:
    """All worlds, kinds and designs; each is written to a file as it ends, so that a stopped study goes on."""
    file = keep / "worlds.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(line["kind"], line["design"], line["world"]) for line in lines}
    made = {(kind, design): worlds(DESIGNS[design](), kind, number) for kind in KINDS for design in DESIGNS}
    with file.open("a") as out:
        for world in range(number):
            for (kind, design), (losses, truth) in made.items():
                if (kind, design, world) in done:
                    continue
                rows = DESIGNS[design]()
                flop, curve = target(rows), CubicSpline(SHAPE, truth[world])
                said, beyond = sizes(bs.read_runs(rows.assign(loss=losses[world])), flop, seed=world)
                paid = {name: charged(size, flop, curve) for name, size in said.items()}
                line = {"kind": kind, "design": design, "world": world, "beyond": beyond, **paid}
                print(json.dumps(line), file=out, flush=True)
    return pd.read_json(file, lines=True)


def report(found: pd.DataFrame) -> pd.DataFrame:
    """Mean regret with its standard error, the mean of the worst tenth, and the paired gain of the recommendation."""
    planners = found.columns.drop(["kind", "design", "world", "beyond"])
    rows = []
    for (kind, design), part in found.groupby(["kind", "design"], sort=False):
        worst = max(1, round(TAIL * len(part)))
        for name in planners:
            saved = part[name] - part["recommend, mean"]
            rows.append(
                {
                    "worlds": kind,
                    "design": design,
                    "planner": name,
                    "n": len(part),
                    "mean regret, %": part[name].mean(),
                    "standard error": part[name].sem(),
                    "worst tenth, %": part[name].nlargest(worst).mean(),
                    "over recommend, mean": saved.mean(),
                    "its standard error": saved.sem(),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Print the regrets as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=200, help="worlds of each kind and design")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.mkdtemp()), help="folder of what is done already")
    options = parser.parse_args()
    bs.use_compile_cache()
    found = study(options.worlds, options.keep)
    gate = found.groupby(["kind", "design"], sort=False)["beyond"].apply(lambda b: (b == "PASS").mean())
    print(gate.round(2).rename("share that passes the gate").to_string())
    print(report(found).to_string(index=False, float_format=lambda v: f"{v:.3g}"))


if __name__ == "__main__":
    main()
