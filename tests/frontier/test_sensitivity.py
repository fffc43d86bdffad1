"""Claims: the answer's sensitivity is to what it leans on: the runs where they are told, the prior where it insists."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayescale.frontier.sensitivity import sensitivity
from bayescale.inference.laplace import Laplace
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import LogNormal, Prior
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.runs.table import Runs

PARAMETERS = ("loss_center", "floor_share", "size_share", "alpha", "beta", "noise", "tail")


def at_mode(priors: dict[str, Prior]) -> Posterior:
    """24 runs of Besiroglu et al.'s law (arXiv 2404.10102), draws of the Normal at the mode."""
    rng = np.random.default_rng(0)
    n_params, n_tokens = 10 ** rng.uniform(7.5, 9.5, 24), 10 ** rng.uniform(9, 11, 24)
    loss = 1.8172 + 482.01 / n_params**0.3478 + 2085.43 / n_tokens**0.3658
    loss *= np.exp(0.005 * rng.standard_normal(24))
    runs = Runs(pd.DataFrame({"n_params": n_params, "n_tokens": n_tokens, "loss": loss}))
    return fit(runs, Chinchilla(), drift=None, priors=priors, engine=Laplace(draws=1000), seed=1)


def as_sampled(fitted: Posterior, groups: Mapping[str, xr.Dataset] | None = None) -> Posterior:
    """The same draws under a sampler's name, with other groups where given."""
    kept = {name: group.to_dataset() for name, group in fitted.tree.children.items()}
    tree = xr.DataTree.from_dict({**kept, **(groups or {})})
    return dataclasses.replace(fitted, tree=tree, info={**fitted.info, "engine": "nuts"})


@pytest.fixture(scope="module")
def default() -> Posterior:
    """Under the default priors."""
    return at_mode({})


@pytest.fixture(scope="module")
def insistent() -> Posterior:
    """Under a prior of alpha that the runs contradict."""
    return at_mode({"alpha": LogNormal(0.45, 0.05)})


def test_runs_that_tell_the_law_outweigh_the_default_priors(default: Posterior) -> None:
    found = sensitivity(as_sampled(default), 1e20)
    assert (found["likelihood"] > 2 * found["prior"]).all()


def test_a_prior_that_insists_is_named(insistent: Posterior) -> None:
    for _, row in sensitivity(as_sampled(insistent), [1e20, 1e24]).iterrows():
        alone = {p: row[f"prior:{p}"] for p in PARAMETERS}
        assert max(alone, key=alone.__getitem__) == "alpha"
        assert row["prior"] > 0.05
        assert row["diagnosis"] == "potential prior-data conflict"


def test_a_row_is_a_budget_and_quantity(default: Posterior) -> None:
    found = sensitivity(as_sampled(default), [1e20, 1e24])
    assert list(zip(found["budget_flop"], found["quantity"], strict=True)) == [
        (budget, name) for budget in (1e20, 1e24) for name in ("n_opt_params", "tokens_per_parameter")
    ]
    assert set(found.columns) == {"budget_flop", "quantity", "prior", "likelihood", "diagnosis"} | {
        f"prior:{p}" for p in PARAMETERS
    }
    # D / N is (C / 6) / N^2: the same draws on another scale, equally sensitive.
    n, ratio = (
        found[found["quantity"] == q].set_index("budget_flop") for q in ("n_opt_params", "tokens_per_parameter")
    )
    np.testing.assert_allclose(n["likelihood"], ratio["likelihood"], rtol=0.2)


@pytest.mark.parametrize("alone", ["alpha", "beta"])
def test_each_prior_is_scaled_alone(default: Posterior, alone: str) -> None:
    """With every other prior all but flat, scaling all is scaling that one, and scaling another moves nothing."""
    prior = default.tree["log_prior"].to_dataset()
    flat = xr.Dataset({k: v if k == alone else 1e-9 * v for k, v in prior.items()})
    (_, row), *_ = sensitivity(as_sampled(default, {"log_prior": flat}), 1e21).iterrows()
    assert row["prior"] == pytest.approx(row[f"prior:{alone}"], rel=1e-3)
    assert row["prior"] > 0
    assert all(row[f"prior:{p}"] == pytest.approx(0, abs=1e-4) for p in PARAMETERS if p != alone)


def test_what_was_not_sampled_has_no_sensitivity(default: Posterior) -> None:
    for posterior in (default, published("besiroglu-2024")):
        with pytest.raises(ValueError, match="sampled from runs, by NUTS"):
            sensitivity(posterior, 1e22)


def test_a_draw_without_an_optimum_has_no_sensitivity(default: Posterior) -> None:
    """A law whose size does not matter is trained smallest."""
    draws = default.tree["posterior"].to_dataset().copy(deep=True)
    draws["A"][0, 3] = 0.0
    with pytest.raises(ValueError, match=r"At 1e\+22 FLOP some draws have no interior optimum"):
        sensitivity(as_sampled(default, {"posterior": draws}), 1e22)
