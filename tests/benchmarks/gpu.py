"""Compile time, draws and effective draws per second for 4, 64 and 1,024 chains, on the CPU and on an accelerator.

Both in one run, on a simulated table of 240 runs (Besiroglu et al. 2024); without an accelerator, the CPU alone.

    python tests/benchmarks/gpu.py [--chains 4 64 1024] [--draws 500]
"""

from __future__ import annotations

import argparse
import logging
import time

import arviz_stats
import jax
import numpy as np
import pandas as pd
from arviz_base import dict_to_dataset

import bayescale as bs
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.fitting import arrays_of


def table() -> pd.DataFrame:
    """240 simulated runs on 9 budgets, .5 % scatter of log loss."""
    rng = np.random.default_rng(0)
    flop = np.repeat(np.geomspace(6e18, 3e21, 9), 27)[:240]
    n = np.sqrt(flop / 120) * np.exp(rng.uniform(-1.5, 1.5, 240))
    d = flop / (6 * n)
    loss = 1.8172 + 482.01 * n**-0.3478 + 2085.43 * d**-0.3658
    return pd.DataFrame({"n_params": n, "n_tokens": d, "loss": loss * np.exp(0.005 * rng.standard_normal(240))})


def measure(platform: str, chains: int, draws: int) -> dict[str, float]:
    """First call (compiles) and second call of the sampler alone."""
    model = bs.Model(Chinchilla(), drift=None)
    joint, data = arrays_of(model, bs.read_runs(table()))
    engine = bs.NUTS(chains=chains, draws=draws, platform=platform)
    began = time.perf_counter()
    engine.draw(joint, data, seed=1)
    first = time.perf_counter() - began
    began = time.perf_counter()
    found = engine.draw(joint, data, seed=2)
    second = time.perf_counter() - began
    ess = arviz_stats.ess(dict_to_dataset({f"x{i}": found.z[:, :, i] for i in range(found.z.shape[-1])}))
    smallest = min(float(v) for v in ess.data_vars.values())
    return {
        "chains": chains,
        "compile s": first - second,
        "second call s": second,
        "draws per s": chains * draws / second,
        "ESS per s": smallest / second,
    }


def main() -> None:
    """Print one row a platform and number of chains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chains", type=int, nargs="*", default=[4, 64, 1024])
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    platforms = ["cpu"] + ([jax.default_backend()] if jax.default_backend() != "cpu" else [])
    rows = [{"platform": p, **measure(p, c, options.draws)} for c in options.chains for p in platforms]
    print(f"jax {jax.__version__}, {[d.device_kind for d in jax.devices()]}")
    print(pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.4g}"))


if __name__ == "__main__":
    main()
