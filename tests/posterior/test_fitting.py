"""Claims: a fit refuses before it samples, says what it did, and depends on the runs and on nothing else."""

import dataclasses
import logging
import math
from typing import Any

import numpy as np
import pytest
from simulated_fits import AtMode, Never, grouped_table, table

from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Model
from bayescale.model.noise import Gaussian
from bayescale.model.pooling import Complete, Partial, Separate
from bayescale.parameter import Fixed, LogitNormal, LogNormal
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.runs.table import Runs

LAW = Chinchilla()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pooling": Partial("corpora")}, r"no column 'corpora'.*columns are .*corpus.*'corpus'"),
        (
            {"priors": {"aplha": LogNormal(0.3, 0.1)}},
            r"'aplha'; this model has loss_center, .*, tail\. Did you mean 'alpha'",
        ),
        ({"priors": {"alpha": LogitNormal(0.3, 0.1)}}, "alpha takes a LogNormal"),
        ({"priors": {"alpha": Fixed(-0.3)}}, "positive, not -0.3"),
        ({"priors": {"floor_share": Fixed(1.0)}}, "between 0 and 1, not 1.0"),
        ({"pooling": Separate("corpus", {"gamma": "complete"})}, "No parameter is called 'gamma'"),
        ({"seed": -1}, "A seed is an integer from 0 .*not -1"),
        ({"seed": 1.5}, "A seed is an integer from 0 .*not 1.5"),
        ({"seed": 2**63}, "A seed is an integer from 0"),
        ({"seed": True}, "A seed is an integer from 0 .*not True"),
        ({"seed": "7"}, "A seed is an integer from 0 .*not '7'"),
        ({"seed": math.nan}, "A seed is an integer from 0 .*not nan"),
    ],
)
def test_what_cannot_be_is_refused_before_sampling(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(Runs(grouped_table()), LAW, drift=None, engine=Never(), **given)


def test_a_model_carries_its_own_settings(one_table: Runs) -> None:
    given = {"pooling": Complete(), "noise": Gaussian(), "priors": {"alpha": Fixed(0.3)}}
    with pytest.raises(ValueError, match=r"A Model carries its own pooling, noise, priors; give them to Model"):
        fit(one_table, Model(LAW, drift=None), engine=Never(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("law", [Chinchilla, "chinchilla"])
def test_a_law_is_a_value(one_table: Runs, law: Any) -> None:
    with pytest.raises(TypeError, match=r"a law is a value such as Chinchilla\(\)"):
        fit(one_table, law, drift=None, engine=Never())


def test_a_model_and_its_parts_are_one_fit(one_table: Runs) -> None:
    priors = {"alpha": LogNormal(0.3, 0.1)}
    engine = FromPrior(draws=20)
    parts = fit(one_table, LAW, drift=None, priors=priors, engine=engine, seed=1)
    whole = fit(one_table, Model(LAW, drift=None, priors=priors), engine=engine, seed=1)
    assert parts.model == whole.model
    np.testing.assert_array_equal(parts.coefficients()["A"], whole.coefficients()["A"])


def test_the_seed_is_drawn_logged_and_stored(one_table: Runs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bayescale"):
        first, second = (fit(one_table, LAW, drift=None, engine=FromPrior(draws=20)) for _ in range(2))
    assert first.info["seed"] != second.info["seed"]
    for posterior in (first, second):
        assert f"seed {posterior.info['seed']};" in caplog.text
        again = fit(one_table, LAW, drift=None, engine=FromPrior(draws=20), seed=posterior.info["seed"])
        assert again.info["seed"] == posterior.info["seed"]
        np.testing.assert_array_equal(again.coefficients()["A"], posterior.coefficients()["A"])


def test_one_seed_is_one_result(one_table: Runs, laplace: Posterior) -> None:
    again, other = (fit(one_table, LAW, drift=None, engine=Laplace(draws=400), seed=s) for s in (1, 2))
    for name, group in laplace.tree.children.items():
        for variable in group.data_vars:
            np.testing.assert_array_equal(again.tree[name][variable], laplace.tree[name][variable])
    assert not np.any(other.coefficients()["alpha"] == laplace.coefficients()["alpha"])
    assert np.median(other.coefficients()["alpha"]) == pytest.approx(
        np.median(laplace.coefficients()["alpha"]), rel=0.02
    )


def mode(runs: Runs, **given: Any) -> dict[str, float]:
    posterior = fit(runs, LAW, drift=None, engine=AtMode(), seed=1, **given)
    return {k: v.item() for k, v in (posterior.values() | posterior.coefficients()).items()}


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    t = table().assign(run=[f"r{i}" for i in range(24)])
    shuffled = t.sample(frac=1, random_state=3)[["loss", "run", "n_tokens", "n_params"]]
    assert mode(Runs(shuffled)) == pytest.approx(mode(Runs(t)), rel=1e-7)


def test_the_unit_of_the_loss_does_not_matter() -> None:
    """Bits for nats: exponents, shares and scatter stay, losses are multiplied."""
    t = table()
    nats = mode(Runs(t))
    bits = mode(Runs(t.assign(loss=t["loss"] / math.log(2)), loss_unit="bits per token"))
    losses = {"A", "B", "E", "loss_center"}
    wanted = {k: v / math.log(2) if k in losses else v for k, v in nats.items()}
    assert bits == pytest.approx(wanted, rel=1e-7)


def test_twice_the_tokens_in_every_run_moves_the_coefficient_of_the_tokens_alone() -> None:
    """B / (2 D)^beta: with tokens counted in halves, B is 2^beta times as large."""
    t = table()
    plain, doubled = mode(Runs(t)), mode(Runs(t.assign(n_tokens=2 * t["n_tokens"])))
    assert doubled == pytest.approx(plain | {"B": plain["B"] * 2 ** plain["beta"]}, rel=1e-7)


def test_a_fixed_parameter_is_held(one_table: Runs) -> None:
    posterior = fit(one_table, LAW, drift=None, priors={"alpha": Fixed(0.35)}, engine=FromPrior(draws=20), seed=1)
    assert set(posterior.coefficients()["alpha"]) == {0.35}
    assert "log_alpha" not in posterior.tree["unconstrained_posterior"]


def test_a_fit_keeps_what_another_needs_to_repeat_it(grouped_runs: Runs, partial: Posterior) -> None:
    info = partial.info
    assert (info["engine"], info["chains"], info["draws"], info["seed"]) == ("laplace", 1, 400, 1)
    assert info["n_runs"] == len(grouped_runs)
    assert info["runs_per_group"] == {"A": 12, "C d": 11, "b/é": 12}
    assert info["table_hash"] == grouped_runs.table_hash
    assert info["loss_center"] == np.median(grouped_runs.table["loss"])
    assert {"bayescale", "numpyro", "jax", "arviz-base", "numpy"} <= info["versions"].keys()
    assert info["seconds"]["total"] > 0
    assert partial.rule == grouped_runs.rule


def test_notes_are_kept(one_table: Runs) -> None:
    notes = {"why": "a test", "budgets": [1e22]}
    posterior = fit(one_table, LAW, drift=None, engine=FromPrior(draws=2), seed=1, metadata=notes)
    assert posterior.metadata == notes
    notes["why"] = "changed later"
    assert posterior.metadata["why"] == "a test"


def test_what_the_design_cannot_tell_is_logged_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Runs of one size say nothing of the exponent of the size."""
    runs = Runs(table().assign(n_params=1e8))
    with caplog.at_level(logging.WARNING, "bayescale"):
        posterior = fit(runs, LAW, drift=None, engine=FromPrior(draws=2), seed=1)
    assert "one_model_size" in caplog.text
    assert "one_model_size" in [finding["name"] for finding in posterior.info["design"]]


def test_the_prior_uses_no_loss_but_the_tables_centre() -> None:
    """Other losses of the same median leave the draws of the prior where they were."""
    t = table()
    other = t.assign(loss=t["loss"].to_numpy()[::-1])
    drawn = [fit(Runs(x), LAW, drift=None, engine=FromPrior(draws=20), seed=1).coefficients() for x in (t, other)]
    for name in drawn[0]:
        np.testing.assert_array_equal(drawn[0][name], drawn[1][name])


def test_predictive_losses_are_the_law_with_scatter(partial: Posterior) -> None:
    """At every run, by its own group's law: their medians are the law's, to the scatter's size."""
    assert partial.runs is not None
    predicted = np.median(partial.tree["posterior_predictive"]["loss"].values, axis=(0, 1))
    np.testing.assert_allclose(predicted, partial.runs.table["loss"], rtol=0.03)


def test_settings_are_frozen(one_table: Runs, laplace: Posterior) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        laplace.checks = ()  # type: ignore[misc]


def test_more_rows_than_memory_holds_are_refused_before_sampling(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match=r"20,000 rows with 4,000 draws need 2\.6 GB.*leave_out=Thinned.*draws=500"):
        fit(Runs(table(20_000)), LAW, drift=None)
    with pytest.raises(AssertionError, match="it was sampled"):
        fit(Runs(table(10_000)), LAW, drift=None, engine=Never())
