"""Simulation-based calibration (Talts et al. 2018, arXiv 1804.06788) of fits and of what is read off them.

Parameters are drawn from the prior (its data-scaled constants frozen at the design's), losses are
simulated, the model is fitted, and the truth's rank among the draws is kept: uniform if and only if the
posterior is what it says it is. The same simulations give the coverage of the 90 % interval of N_opt
at 100 times the largest budget. Two designs are of the law alone, one of the law with drift.

    python tests/benchmarks/calibration.py --simulations 400 --processes 2
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd

LETTERS = ("A", "B", "E", "alpha", "beta")
OPTIMUM = ("n_opt", "tokens_per_parameter")
RANKS = 99  # draws kept of each fit: ranks 0 to 99
CAREFUL = 0.99  # target acceptance of a chain that diverged, run again
LOSS = 2.6  # nats per token, on which the prior of the loss at the centre is frozen


def isoflop_design() -> pd.DataFrame:
    """240 runs on 9 budgets, 6e18 to 3e21 FLOP, as Hoffmann et al. 2022 laid theirs out."""
    rng = np.random.default_rng(0)
    budgets = np.repeat([6e18, 1e19, 3e19, 6e19, 1e20, 3e20, 6e20, 1e21, 3e21], 27)[:240]
    n = np.sqrt(budgets / 120) * np.exp(rng.uniform(-1.5, 1.5, 240))
    return pd.DataFrame({"n_params": n, "n_tokens": budgets / (6 * n), "group": "one"})


def grouped_design() -> pd.DataFrame:
    """3 groups of 12 runs, each 3 sizes on 4 token counts."""
    n, d = (a.ravel() for a in np.meshgrid([1e8, 3e8, 1e9], [2e9, 8e9, 3e10, 1e11]))
    rows = pd.DataFrame({"n_params": n, "n_tokens": d})
    return pd.concat([rows.assign(group=g) for g in "abc"], ignore_index=True)


def drift_design() -> pd.DataFrame:
    """60 runs on the same 9 budgets."""
    return isoflop_design().iloc[::4].reset_index(drop=True)


def beyond(flop: float) -> dict[str, np.ndarray]:
    """Runs along an iso-FLOP curve, eight e-folds of size to both sides of 20 tokens a parameter."""
    n = np.sqrt(flop / 120) * np.exp(np.linspace(-8, 8, 61))
    return {"n_params": n, "n_tokens": flop / (6 * n)}


def lowest(log_loss: np.ndarray, run: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Log N_opt and the log loss there, (draws,), from losses (draws, runs) along an iso-FLOP curve: by a parabola."""
    log_n = np.log(run["n_params"])
    at = np.clip(log_loss.argmin(1), 1, len(log_n) - 2)
    left, here, right = (np.take_along_axis(log_loss, (at + k)[:, None], 1)[:, 0] for k in (-1, 0, 1))
    bend = left - 2 * here + right
    step = np.clip((left - right) / (2 * np.where(bend > 0, bend, 1.0)), -1, 1)
    return log_n[at] + step * (log_n[1] - log_n[0]), here - step * (left - right) / 4


DESIGNS = {"isoflop": isoflop_design, "grouped": grouped_design, "drift": drift_design}


def optimum(letters: dict[str, np.ndarray], flop: float) -> tuple[np.ndarray, np.ndarray]:
    """N_opt and tokens per parameter under C = 6 N D, by the closed form of Hoffmann et al. 2022, equation 4 (logs)."""
    a, b = letters["alpha"], letters["beta"]
    log_g = (np.log(a * letters["A"]) - np.log(b * letters["B"])) / (a + b)
    log_n = log_g + b / (a + b) * np.log(flop / 6)
    return log_n, np.log(flop / 6) - 2 * log_n


def simulate(number: int, design: str) -> dict[str, float]:
    """One simulation: rank of the truth for each quantity, and whether N_opt far out was covered."""
    import jax

    from bayescale.inference.devices import use_compile_cache
    from bayescale.inference.nuts import NUTS
    from bayescale.laws.chinchilla import Chinchilla
    from bayescale.model import simulate, table
    from bayescale.model.drift import Center, Drift
    from bayescale.model.joint import Model, describe
    from bayescale.model.pooling import Complete, Partial

    use_compile_cache()
    rows, drift = DESIGNS[design](), Drift() if design == "drift" else None
    names, group = np.unique(rows["group"], return_inverse=True)
    pooling = Complete() if len(names) == 1 else Partial("group")
    model = Model(Chinchilla(), pooling, drift=drift)
    joint = model.joint(len(names))
    run = {k: rows[k].to_numpy() for k in ("n_params", "n_tokens")}
    reference = {k: float(np.exp(np.log(v).mean())) for k, v in run.items()}
    largest, columns = 6 * (run["n_params"] * run["n_tokens"]).max(), None
    far = beyond(100 * largest)
    if drift:  # the runs beyond have a mean, and no loss
        run, group = {k: np.concatenate([run[k], far[k]]) for k in run}, np.zeros(len(rows) + len(far["n_params"]), int)
        flop = 6 * run["n_params"] * run["n_tokens"]
        own = slice(len(rows))
        ratio = np.log(run["n_tokens"] / run["n_params"])
        center = Center(float(np.log(flop[own]).mean()), float(ratio[own].mean()))
        columns = center.columns(flop, **run, tilt=drift.tilt)
    loss, se = np.full(len(group), LOSS), np.full(len(group), np.nan)
    data = table.arrays(model, run, loss, se, group, len(names), reference, LOSS, columns)
    data["mask"] &= np.arange(len(data["mask"])) < len(rows)
    rng = np.random.default_rng([number, len(names)])
    z = simulate.prior(joint, data, rng, 1)

    def found(z: np.ndarray, data: dict) -> dict:
        with jax.enable_x64(True):
            size = 500
            filled = np.concatenate([z, np.repeat(z[-1:], size - len(z), axis=0)])
            return jax.tree.map(lambda a: np.asarray(a)[: len(z)], describe(joint)(filled, data))

    truth = found(z, data)
    log_loss = simulate.runs(joint, rng, truth["mean"], truth["values"], data["se"], data["group"])[0]
    seen = {**data, "log_loss": log_loss}
    draws = NUTS(chains=1, draws=500).draw(joint, seen, seed=number)
    diverged = bool(draws.stats["diverging"].any())
    if diverged:  # what the check of divergences advises
        draws = NUTS(chains=1, draws=500, target_accept=CAREFUL).draw(joint, seen, seed=number)
    fit = found(draws.z[0], draws.data)
    keep = np.linspace(0, 499, RANKS).astype(int)

    def of_first_group(x: dict) -> dict[str, np.ndarray]:
        letters = {k: v[:, 0] if v.ndim > 1 else v for k, v in x["letters"].items()}
        if not drift:
            return {**letters, **dict(zip(OPTIMUM, optimum(letters, 100 * largest), strict=True))}
        told = {k: np.ravel(x["values"][k]) for k in ("noise", "decline", "departure")}
        log_n, best = lowest(x["mean"][:, len(rows) : len(group)], far)
        return {**letters, **told, "n_opt": log_n, "loss_beyond": best}

    true, drawn = of_first_group(truth), of_first_group(fit)
    low, high = np.quantile(drawn["n_opt"], [0.05, 0.95])
    return {
        "number": number,
        **{k: float((drawn[k][keep] < true[k]).sum()) for k in drawn},
        "covered": float(low <= true["n_opt"][0] <= high),
        "repeated": float(diverged),
        "divergences": float(draws.stats["diverging"].sum()),
        "whitened": float(draws.info["metric"] != "adapted"),
    }


def band_violation(ranks: np.ndarray, level: float = 0.99, sets: int = 4000) -> tuple[float, float]:
    """Smallest pointwise tail probability of the ranks' ECDF, and its limit for simultaneous bands.

    The limit is the quantile of the same statistic over uniform ranks (Sailynoja, Burkner & Vehtari 2022).
    """
    from scipy.stats import binom

    n, points = len(ranks), np.arange(1, RANKS + 1) / (RANKS + 1)

    def smallest(counts: np.ndarray) -> np.ndarray:
        tail = np.minimum(binom.cdf(counts, n, points), binom.sf(counts - 1, n, points))
        return 2 * tail.min(-1)

    def counts(r: np.ndarray) -> np.ndarray:
        return (r[..., None, :] < np.arange(1, RANKS + 1)[:, None]).sum(-1)

    rng = np.random.default_rng(0)
    uniform = np.array([smallest(counts(rng.integers(0, RANKS + 1, n))) for _ in range(sets)])
    return float(smallest(counts(ranks))), float(np.quantile(uniform, 1 - level))


def study(design: str, simulations: int, processes: int, keep: Path) -> pd.DataFrame:
    """All simulations of one design, in separate processes; each is written to a file as it ends, and read from there.

    So that a study which was stopped goes on where it was.
    """
    file = keep / f"{design}.jsonl"
    done = {json.loads(line)["number"] for line in file.read_text().splitlines()} if file.exists() else set()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool, file.open("a") as out:
        for job in as_completed(pool.submit(simulate, n, design) for n in range(simulations) if n not in done):
            print(json.dumps(job.result()), file=out, flush=True)
    return pd.read_json(file, lines=True)


def report(found: pd.DataFrame) -> pd.DataFrame:
    """One row a quantity: does the ECDF of the ranks stay inside simultaneous 99 % bands?"""
    rows = []
    for k in found.columns.drop(["number", "covered", "repeated", "divergences", "whitened"]):
        tail, limit = band_violation(found[k].to_numpy())
        rows.append({"quantity": k, "smallest tail probability": tail, "limit": limit, "inside": tail >= limit})
    return pd.DataFrame(rows)


def main() -> None:
    """Print both studies as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.mkdtemp()), help="folder of what is done already")
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    options = parser.parse_args()
    for design in options.designs:
        began = time.perf_counter()
        found = study(design, options.simulations, options.processes, options.keep)
        print(f"\n{design}: {len(found)} simulations in {time.perf_counter() - began:.0f} s; ", end="")
        still, again = int((found["divergences"] > 0).sum()), int(found["repeated"].sum())
        print(f"repeated {again}, of them still with divergences {still}, whitened {found['whitened'].mean():.2f}")
        share, error = found["covered"].mean(), np.sqrt(0.9 * 0.1 / len(found))
        print(f"coverage of the 90 % interval of N_opt at 100 x the largest: {share:.3f}, Monte Carlo sd {error:.3f}")
        print(report(found).to_string(index=False, float_format=lambda v: f"{v:.2g}"), flush=True)


if __name__ == "__main__":
    main()
