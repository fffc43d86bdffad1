"""Claims: paths have the variance of Brownian motion, exponents decline as stated, and plans follow both."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescale.frontier.frontier import allocate
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import DECLINE, DEPARTURE, KNOTS, WEIGHTS, Center, Drift, basis, declining
from bayescale.model.joint import Model
from bayescale.model.path import PATH
from bayescale.parameter import Normal
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.store import load, save
from bayescale.runs.flops import FlopsRule
from bayescale.runs.read import read_runs

RUN = {"n_params": 4e11, "n_tokens": 2e13}


@pytest.fixture(scope="module")
def runs() -> Any:
    rows = [(n, d) for n in (1e8, 4e8, 1.6e9) for d in (2e9, 8e9, 3.2e10)]
    losses = [1.8 + 480 / n**0.35 + 2085 / d**0.37 for n, d in rows]
    return read_runs(pd.DataFrame(rows, columns=["n_params", "n_tokens"]).assign(loss=losses))


@pytest.fixture(scope="module")
def drifting(runs: Any) -> Posterior:
    return fit(runs, Chinchilla(), drift=Drift(), engine=FromPrior(draws=300), seed=1)


def weights(posterior: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of the path, s, and rho, of every draw."""
    path = posterior.tree["posterior"].to_dataset()[PATH.name].to_numpy().reshape(-1, WEIGHTS)
    return path, posterior.values()[DEPARTURE.name], posterior.values()[DECLINE.name]


def by_hand(posterior: Posterior, n: Any, d: Any) -> np.ndarray:
    """Mean loss (draws,) of one run, from the model's formula alone."""
    path, s, rho = weights(posterior)
    c, center = posterior.coefficients(), posterior.info["center"]
    start = posterior.reference
    walk = basis((np.log(6 * n * d) - center["log_flop"]) / np.log(10))
    q = np.log(d / n) - center["log_ratio"]
    delta = s * (path[:, :KNOTS] @ walk + np.sqrt(0.06) * q * (path[:, KNOTS] + path[:, KNOTS + 1 :] @ walk))
    log_n, log_d = (
        x * -np.expm1(-rho * x) / (rho * x) for x in (np.log(n / start["n_params"]), np.log(d / start["n_tokens"]))
    )
    n_seen, d_seen = start["n_params"] * np.exp(log_n), start["n_tokens"] * np.exp(log_d)
    return (c["E"] + c["A"] * n_seen ** -c["alpha"] + c["B"] * d_seen ** -c["beta"]) * np.exp(delta)


@given(st.floats(-6, 12))
def test_a_path_has_the_variance_of_brownian_motion_at_every_compute(decades: float) -> None:
    assert (basis(decades) ** 2).sum() == pytest.approx(abs(decades), rel=1e-9, abs=1e-12)


def test_a_path_is_shared_by_what_lies_on_one_side_of_the_centre() -> None:
    """Covariance of Brownian motion: the smaller distance on one side (at knots), none across."""
    at = basis(np.array([-2.0, -1.0, 1.0, 2.0, 4.0]))
    expected = [[2, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 1, 2, 2], [0, 0, 1, 2, 4]]
    assert at @ at.T == pytest.approx(np.array(expected, float), abs=1e-9)


def test_the_tilt_starts_at_its_own_variance_and_grows_with_compute() -> None:
    """Kernel of the departure: W + w q^2 (1 + W)."""
    center = Center(np.log(1e20), np.log(20.0))
    n, d = np.array([1e9, 3e9]), np.array([2e12, 1e11])
    flop = np.array([1e20, 1e22])
    q, w = np.log(d / n / 20.0), np.array([0.0, 2.0])
    found = (center.columns(flop, n, d, 0.06) ** 2).sum(-1)
    assert found == pytest.approx(w + 0.06 * q**2 * (1 + w))


@pytest.mark.parametrize("rho", [-0.05, 0.0, 1e-9, 0.05, 0.2])
def test_exponents_decline_by_e_to_the_minus_rho_n(rho: float) -> None:
    """The local exponent of N'^-alpha is alpha e^(-rho n); a run at the centre is seen as it is."""
    reference = {"n_params": 1e9}
    with jax.enable_x64(True):

        def seen(n: Any) -> Any:
            return jax.numpy.log(
                declining({"n_params": 1e9 * jax.numpy.exp(n)}, rho, reference, ("n_params",))["n_params"]
            )

        for n in (-8.0, 0.0, 1e-7, 3.0, 12.0):
            assert float(jax.grad(seen)(n)) == pytest.approx(np.exp(-rho * n), rel=1e-5)
        assert float(seen(0.0)) == pytest.approx(np.log(1e9))


def test_a_forecast_is_the_models_formula(drifting: Posterior) -> None:
    found = predict(drifting, RUN, level=0.8).mean[0]
    assert found == pytest.approx(np.quantile(by_hand(drifting, *RUN.values()), [0.5, 0.1, 0.9]), rel=1e-9)


def test_the_optimum_is_the_lowest_point_along_the_budget(drifting: Posterior) -> None:
    budget, step = 1e23, 1.02
    n_opt = allocate(drifting, budget).n_opt().values[:, 0]
    found = np.flatnonzero(np.isfinite(n_opt))
    assert len(found) > 100
    for draw in found[:20]:
        best, *near = (
            by_hand(drifting, n, budget / (6 * n))[draw] for n in (n_opt[draw], n_opt[draw] * step, n_opt[draw] / step)
        )
        assert best < min(near)


def test_one_budget_and_many_read_the_same_paths(drifting: Posterior) -> None:
    many = allocate(drifting, np.geomspace(1e20, 1e26, 100)).n_opt().values
    one = allocate(drifting, float(np.geomspace(1e20, 1e26, 100)[70])).n_opt().values
    np.testing.assert_allclose(one[:, 0], many[:, 70], rtol=1e-9)


def test_another_rule_reads_the_path_by_the_fits_own_compute(drifting: Posterior) -> None:
    """Under C = 12 N D a budget buys the runs that half of it buys under 6 N D, and they lose what they lose."""
    plain, dear = (allocate(drifting, c, rule=FlopsRule(k)).loss().values for c, k in ((1e23, 6.0), (2e23, 12.0)))
    np.testing.assert_allclose(dear, plain, rtol=1e-9)


def test_a_fit_with_drift_comes_back_from_its_file(drifting: Posterior, tmp_path: Any) -> None:
    back = load(save(drifting, tmp_path / "fit.nc"))
    assert back.model.drift == Drift()
    np.testing.assert_array_equal(allocate(back, 1e24).n_opt(), allocate(drifting, 1e24).n_opt())


def test_the_prior_is_the_populations_and_the_users_stands_above_it() -> None:
    model = Model(Chinchilla(), priors={"decline": Normal(0.0, 0.01)})
    told = {p.name: model.prior(p) for p in model.parameters}
    assert told["alpha"].interval()[1] == pytest.approx(0.26)  # type: ignore[union-attr]
    assert told["decline"] == Normal(0.0, 0.01)
    assert {p.name for p in Model(Chinchilla(), drift=None).parameters} == set(told) - {"decline", "departure"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Drift(priors={}), "needs a prior of decline and departure"),
        (lambda: Drift(tilt=-1.0), "0 or more, not -1.0"),
        (lambda: Drift(shared=1.5), "a share, 0 to 1, not 1.5"),
    ],
)
def test_what_cannot_be_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()
