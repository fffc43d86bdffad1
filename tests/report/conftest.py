"""Results to show: draws of a prior over a small table, which need no sampling."""

import dataclasses
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from report_names import EVIL

from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import Drift
from bayescale.model.pooling import Partial
from bayescale.parameter import LogitNormal, LogNormal
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.runs.table import Runs

PASSED = (Check("r_hat", 1.001, "1.01", "PASS"), Check("divergences", 0.0, "0", "PASS"))
FAILED = (Check("r_hat", 1.23, "1.01", "FAIL", "draw more"), Check("divergences", 17.0, "0", "FAIL", "pool"))
PRIORS = {
    "alpha": LogNormal(0.35, 0.05),
    "beta": LogNormal(0.37, 0.05),
    "floor_share": LogitNormal(0.6, 0.1),
    "size_share": LogitNormal(0.5, 0.1),
    "loss_center": LogNormal(None, 0.02),
    "noise": LogNormal(0.05, 0.3),
    "tail": LogNormal(30.0, 0.1),  # so that no new run loses more than any float holds
}


def table(names: list[str], seed: int = 3) -> Runs:
    """Runs of Besiroglu et al.'s law (arXiv 2404.10102) with 0.4 % scatter; the last group has one run."""
    rng = np.random.default_rng(seed)
    n_params, n_tokens = np.geomspace(1e8, 1e10, 12), np.geomspace(2e9, 2e11, 12)[rng.permutation(12)]
    loss = 1.8172 + 482.01 * n_params**-0.3478 + 2085.43 * n_tokens**-0.3658
    loss *= np.exp(0.004 * rng.standard_normal(12))
    loss[4] *= 1.8  # a run that diverged
    group = [names[i % (len(names) - 1)] if len(names) > 1 else names[0] for i in range(11)] + [names[-1]]
    columns = {"run": [f"r{i}" for i in range(12)], "n_params": n_params, "n_tokens": n_tokens, "loss": loss}
    return Runs(pd.DataFrame(columns | {"corpus": group}))


@pytest.fixture(autouse=True)
def _without_a_screen() -> Iterator[None]:
    """Figures are drawn in memory, and none stays open."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def prior() -> Posterior:
    """One law, draws of a narrow prior: diagnostics UNKNOWN."""
    return fit(table(["A"]), Chinchilla(), drift=None, priors=PRIORS, engine=FromPrior(draws=500), seed=1)


@pytest.fixture(scope="session")
def passed(prior: Posterior) -> Posterior:
    """The same draws, as if a sampler had made them and every check had passed."""
    return dataclasses.replace(prior, checks=PASSED, info={**prior.info, "engine": "nuts"})


@pytest.fixture(scope="session")
def drifting() -> Posterior:
    """The same table with a drift, draws of the prior."""
    return fit(table(["A"]), Chinchilla(), priors=PRIORS, drift=Drift(), engine=FromPrior(draws=500), seed=1)


@pytest.fixture(scope="session")
def failed(passed: Posterior) -> Posterior:
    """The same draws, as if the sampler's checks had failed."""
    return dataclasses.replace(passed, checks=FAILED)


@pytest.fixture(scope="session")
def grouped() -> Posterior:
    """Three groups, one with an evil name and one with a single run."""
    runs = table(["A", EVIL, "C"])
    return fit(
        runs, Chinchilla(), drift=None, pooling=Partial("corpus"), priors=PRIORS, engine=FromPrior(draws=500), seed=1
    )
