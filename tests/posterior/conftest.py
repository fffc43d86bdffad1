"""Fits that take no sampling, made once: an approximation at the mode, and draws of the prior."""

import pytest
from simulated_fits import Sampled, grouped_table, table

from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.pooling import Partial, Separate
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.runs.table import Runs


@pytest.fixture(scope="session")
def one_table() -> Runs:
    """24 runs of one law."""
    return Runs(table())


@pytest.fixture(scope="session")
def grouped_runs() -> Runs:
    """Three groups of 12 runs."""
    return Runs(grouped_table(), source="été.csv", notes=("a note",)).without(["läuf 35"])


@pytest.fixture(scope="session")
def laplace(one_table: Runs) -> Posterior:
    """One law, at the mode."""
    return fit(one_table, Chinchilla(), engine=Laplace(draws=400), seed=1)


@pytest.fixture(scope="session")
def partial(grouped_runs: Runs) -> Posterior:
    """Three laws and their population, at the mode."""
    return fit(grouped_runs, Chinchilla(), pooling=Partial("corpus"), engine=Laplace(draws=400), seed=1)


@pytest.fixture(scope="session")
def partial_prior(grouped_runs: Runs) -> Posterior:
    """The same before any run."""
    return fit(grouped_runs, Chinchilla(), pooling=Partial("corpus"), engine=FromPrior(draws=300), seed=1)


@pytest.fixture(scope="session")
def separate(grouped_runs: Runs) -> Posterior:
    """Three laws, each a group's own; the scatter and its tail are common."""
    pooling = Separate("corpus", {"noise": "complete", "tail": "complete"})
    return fit(grouped_runs, Chinchilla(), pooling=pooling, engine=FromPrior(draws=60), seed=1)


@pytest.fixture(scope="session")
def passed(one_table: Runs) -> Posterior:
    """Draws that a sampler could have made, with every check passed."""
    return fit(one_table, Chinchilla(), engine=Sampled(), seed=1)
