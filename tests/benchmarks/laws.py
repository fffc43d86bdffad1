"""What each law costs to sample: seconds of the same fit again, once compiled, against Chinchilla's in the same run.

300 runs are simulated from the law itself at its priors' medians, conditions spread over their domain, and fitted with
the law alone and with drift.

    python tests/benchmarks/laws.py
"""

from __future__ import annotations

import time

import jax
import numpy as np
import pandas as pd

import bayescale as bs
from bayescale.posterior.inputs import COUNTS

RUNS, NOISE, LOSS = 300, 0.005, 2.6
SPREAD = {  # values of conditions that tables have
    "n_unique_tokens": (1e8, 3e9, 1e11),
    "n_experts": (1, 8, 64),
    "granularity": (1, 4, 16),
    "weight_bits": (4, 8, 16),
    "activation_bits": (4, 8, 16),
    "cache_bits": (4, 8, 16),
    "other_share": (0, 0.5, 1),
    "decay_left": (0, 0.75, 1),
}


def table(law: bs.laws.Law) -> bs.Runs:
    """300 runs over three decades of size and two of tokens per parameter."""
    rng = np.random.default_rng(1)
    run = {law.size: np.exp(rng.uniform(*np.log([3e7, 3e10]), RUNS))}
    run["n_tokens"] = run[law.size] * np.exp(rng.uniform(*np.log([3, 300]), RUNS))
    run |= {name: rng.choice(SPREAD[name], RUNS) for name in law.conditions}
    values = {p.name: np.asarray(p.prior.at(LOSS).constrain(p.prior.at(LOSS).loc, np)) for p in law.parameters}
    reference = {k: float(np.exp(np.log(run[k]).mean())) for k in law.spent} | dict(law.conditions)
    with jax.enable_x64(True):
        loss = np.asarray(law.loss(law.to_coefficients(values, reference), run))
    rows = pd.DataFrame({**run, "loss": loss * np.exp(NOISE * rng.standard_normal(RUNS))})
    counts = COUNTS.get(law.size, (None,))[0]
    return bs.read_runs(rows.rename(columns={law.size: "n_params"}), counts=counts)


def main() -> None:
    """One row a law and model."""
    bs.use_compile_cache()
    rows = []
    for name in ("chinchilla", *(n for n in bs.laws.names() if n != "chinchilla")):
        law = bs.laws.get(name)
        for model, drift in (("law alone", None), ("with drift", bs.Drift())):
            runs = table(law)
            bs.fit(runs, law, drift=drift, seed=1)
            began = time.perf_counter()
            posterior = bs.fit(runs, law, drift=drift, seed=1)
            seconds = time.perf_counter() - began
            found = {c.name: c.value for c in posterior.checks}
            steps = posterior.info["leapfrogs"]["draws"] / posterior.info["chains"] / posterior.info["draws"]
            first = next((r["seconds"] for r in rows if r["model"] == model), seconds)
            rows.append({"law": name, "model": model, "seconds": seconds, "x chinchilla": seconds / first,
                         "leapfrogs a draw": steps, "metric": posterior.info["metric"], "status": posterior.status,
                         "divergences": found["divergences"], "ess_bulk": found["ess_bulk"]})  # fmt: skip
            print(rows[-1], flush=True)
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.2f"))


if __name__ == "__main__":
    main()
