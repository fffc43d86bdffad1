"""Fits that take no sampling, made once: an approximation at the mode, and draws of the prior."""

import dataclasses
from pathlib import Path

import pytest
from simulated_fits import METADATA, Sampled, grouped_table, table

from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import Drift
from bayescale.model.joint import Model
from bayescale.model.noise import Gaussian
from bayescale.model.pooling import Partial, Separate
from bayescale.parameter import Fixed, LogitNormal, LogNormal
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.fitting import fit
from bayescale.posterior.ledger import Ledger
from bayescale.posterior.posterior import Posterior
from bayescale.runs.flops import FlopsRule
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
    return fit(one_table, Chinchilla(), drift=None, engine=Laplace(draws=400), seed=1)


@pytest.fixture(scope="session")
def partial(grouped_runs: Runs) -> Posterior:
    """Three laws and their population, at the mode."""
    return fit(grouped_runs, Chinchilla(), drift=None, pooling=Partial("corpus"), engine=Laplace(draws=400), seed=1)


@pytest.fixture(scope="session")
def partial_prior(grouped_runs: Runs) -> Posterior:
    """The same before any run."""
    return fit(grouped_runs, Chinchilla(), drift=None, pooling=Partial("corpus"), engine=FromPrior(draws=300), seed=1)


@pytest.fixture(scope="session")
def separate(grouped_runs: Runs) -> Posterior:
    """Three laws, each a group's own; the scatter and its tail are common."""
    pooling = Separate("corpus", {"noise": "complete", "tail": "complete"})
    return fit(grouped_runs, Chinchilla(), drift=None, pooling=pooling, engine=FromPrior(draws=60), seed=1)


@pytest.fixture(scope="session")
def passed(one_table: Runs) -> Posterior:
    """Draws that a sampler could have made, with every check passed."""
    return fit(one_table, Chinchilla(), drift=None, engine=Sampled(), seed=1)


@pytest.fixture(scope="session")
def changed(grouped_runs: Runs) -> Posterior:
    """Every setting another than the default."""
    model = Model(
        Chinchilla(),
        Partial("corpus", {"alpha": "complete", "size_share": "separate"}),
        Gaussian(),
        {"beta": Fixed(0.3658), "alpha": LogNormal(0.3, 0.1), "floor_share": LogitNormal(0.5, 0.7)},
    )
    rows = dataclasses.replace(grouped_runs, rule=FlopsRule(6.5), loss_unit="bits per byte")
    return fit(rows, model, engine=FromPrior(draws=20), seed=2**63 - 1, metadata=METADATA)


@pytest.fixture(scope="session")
def drifting(one_table: Runs) -> Posterior:
    """A fit with drift whose table fails the gate; draws of the prior."""
    found = fit(one_table, Chinchilla(), drift=Drift(), engine=FromPrior(draws=200), seed=1)
    return dataclasses.replace(found, gate=(Check("span_decades", 0.1, "0.5", "FAIL", "train larger runs"),))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that is not there yet."""
    return Ledger(tmp_path / "forecasts.jsonl")
