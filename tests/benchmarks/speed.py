"""Effective draws per second, side by side in one run: this package, PyMC + nutpie, and numpyro's MCMC.

The same model and priors on the 240 runs of Besiroglu et al. 2024: Chinchilla's law at the table's centre, Student-t
scatter of log loss. The figure is the smallest bulk effective sample size of A, B, E, alpha and beta, over the wall
time of a second call on new data of the same shape (losses moved by .1 %), with everything in it that the call does.

    uv run --group bench python tests/benchmarks/speed.py ../shared/data/chinchilla-epoch/runs.csv
"""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import time
import warnings
from collections.abc import Callable

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from arviz_base import dict_to_dataset
from numpyro.infer import MCMC, NUTS

import bayescale as bs
from bayescale.laws.chinchilla import Chinchilla

Table = pd.DataFrame
CHAINS, DRAWS = 4, 1000


def ours(table: Table, seed: int) -> dict[str, np.ndarray]:
    """`bayescale.fit` with its defaults, diagnostics, predictive draws and labels included."""
    posterior = bs.fit(bs.read_runs(table), Chinchilla(), drift=None, seed=seed)
    return {k: v.reshape(CHAINS, DRAWS) for k, v in posterior.coefficients().items()}


def model(n: jax.Array, d: jax.Array, y: jax.Array, center: float) -> None:
    """The same model as numpyro's documentation would write it."""
    log_center = numpyro.sample("log_center", dist.Normal(jnp.log(center), 0.5))
    floor = jax.nn.sigmoid(numpyro.sample("logit_floor", dist.Normal(np.log(0.6 / 0.4), 1.0)))
    size = jax.nn.sigmoid(numpyro.sample("logit_size", dist.Normal(0.0, 1.0)))
    log_alpha = numpyro.sample("log_alpha", dist.Normal(np.log(0.35), 0.5))
    log_beta = numpyro.sample("log_beta", dist.Normal(np.log(0.35), 0.5))
    sigma = jnp.exp(numpyro.sample("log_noise", dist.Normal(np.log(0.01), 1.0)))
    tail = jnp.exp(numpyro.sample("log_tail", dist.Normal(np.log(6.0), 1.0)))
    shape = floor + (1 - floor) * (
        size * jnp.exp(-jnp.exp(log_alpha) * n) + (1 - size) * jnp.exp(-jnp.exp(log_beta) * d)
    )
    numpyro.sample("y", dist.StudentT(tail, log_center + jnp.log(shape), sigma), obs=y)


def logs(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Centred log N and log D, log loss, and the centres."""
    n, d = np.log(table["n_params"].to_numpy()), np.log(table["n_tokens"].to_numpy())
    return n - n.mean(), d - d.mean(), np.log(table["loss"].to_numpy()), n.mean(), d.mean()


def letters(s: dict[str, np.ndarray], n0: float, d0: float) -> dict[str, np.ndarray]:
    """A, B, E, alpha and beta from the sampled coordinates."""
    center, alpha, beta = np.exp(s["log_center"]), np.exp(s["log_alpha"]), np.exp(s["log_beta"])
    floor, size = 1 / (1 + np.exp(-s["logit_floor"])), 1 / (1 + np.exp(-s["logit_size"]))
    rest = center * (1 - floor)
    a, b = rest * size * np.exp(alpha * n0), rest * (1 - size) * np.exp(beta * d0)
    return {"A": a, "B": b, "E": center * floor, "alpha": alpha, "beta": beta}


def numpyro_mcmc(table: Table, seed: int) -> dict[str, np.ndarray]:
    """`numpyro.infer.MCMC` as documented, 1,000 + 1,000 draws, float64."""
    n, d, y, n0, d0 = logs(table)
    with jax.enable_x64(True):
        mcmc = MCMC(NUTS(model), num_warmup=DRAWS, num_samples=DRAWS, num_chains=CHAINS, progress_bar=False)
        mcmc.run(jax.random.PRNGKey(seed), n, d, y, float(np.exp(np.median(y))))
        draws = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
    return letters(draws, n0, d0)


def nutpie(table: Table, seed: int) -> dict[str, np.ndarray]:
    """PyMC's model, compiled and sampled by nutpie, 1,000 + 1,000 draws."""
    import nutpie as sampler
    import pymc as pm

    n, d, y, n0, d0 = logs(table)
    with pm.Model() as written:
        log_center = pm.Normal("log_center", np.median(y), 0.5)
        floor = pm.math.sigmoid(pm.Normal("logit_floor", np.log(0.6 / 0.4), 1.0))
        size = pm.math.sigmoid(pm.Normal("logit_size", 0.0, 1.0))
        log_alpha = pm.Normal("log_alpha", np.log(0.35), 0.5)
        log_beta = pm.Normal("log_beta", np.log(0.35), 0.5)
        sigma = pm.math.exp(pm.Normal("log_noise", np.log(0.01), 1.0))
        tail = pm.math.exp(pm.Normal("log_tail", np.log(6.0), 1.0))
        fall = size * pm.math.exp(-pm.math.exp(log_alpha) * n) + (1 - size) * pm.math.exp(-pm.math.exp(log_beta) * d)
        pm.StudentT("y", nu=tail, mu=log_center + pm.math.log(floor + (1 - floor) * fall), sigma=sigma, observed=y)
    compiled = sampler.compile_pymc_model(written)
    trace = sampler.sample(
        compiled, draws=DRAWS, tune=DRAWS, chains=CHAINS, seed=seed, progress_bar=False, save_warmup=False
    )
    names = ("log_center", "logit_floor", "logit_size", "log_alpha", "log_beta")
    return letters({k: np.asarray(trace["posterior"][k].values) for k in names}, n0, d0)


def measure(fit: Callable[[Table, int], dict[str, np.ndarray]], table: Table) -> dict[str, float]:
    """First and second call in this process, and the second's effective draws."""
    began = time.perf_counter()
    fit(table, 1)
    first = time.perf_counter() - began
    moved = table.assign(loss=table["loss"] * np.exp(0.001 * np.random.default_rng(0).standard_normal(len(table))))
    began = time.perf_counter()
    draws = fit(moved, 2)
    second = time.perf_counter() - began
    ess = arviz_stats.ess(dict_to_dataset(draws), method="bulk")
    smallest = min(float(v) for v in ess.data_vars.values())
    medians = {k: float(np.median(v)) for k, v in draws.items() if k in ("alpha", "beta", "E")}
    return {"first s": first, "second s": second, "smallest ESS": smallest, "ESS per s": smallest / second, **medians}


def main() -> None:
    """Print one row a sampler, as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--only", nargs="*", default=["ours", "numpyro_mcmc", "nutpie"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    table = pd.read_csv(options.table)
    table = table[~table["epoch_dropped_outlier"]][["n_params", "n_tokens", "loss"]].reset_index(drop=True)
    rows = {name: measure(globals()[name], table) for name in options.only}
    found = pd.DataFrame(rows).T
    found["ours is x times"] = found["ESS per s"].iloc[0] / found["ESS per s"]
    print(found.to_string(float_format=lambda v: f"{v:.4g}"))
    packages = ("bayescale", "numpyro", "jax", "pymc", "nutpie")
    present = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages if p in present))


if __name__ == "__main__":
    main()
