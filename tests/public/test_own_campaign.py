"""The package's own runs, fitted: the law alone is that of least squares, and is wrong beyond them in the same way."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import bayescale as bs

CENTER = (8e4, 1.5e6)  # parameters and bytes, amid the runs


@pytest.fixture(scope="module")
def squares() -> np.ndarray:
    """E, log of both terms at the centre, alpha, beta, by least squares on log loss."""
    table = bs.data.load("stdlib").table

    def residuals(x: np.ndarray) -> np.ndarray:
        return np.log(law(x, table["n_params"], table["n_tokens"]) / table["loss"].to_numpy())

    starts = [(e, np.log(0.3), np.log(0.3), a, a) for e in (0.8, 1.2) for a in (0.3, 0.5)]
    best = min((least_squares(residuals, start, xtol=1e-15, ftol=1e-15) for start in starts), key=lambda f: f.cost)
    return best.x


def law(x: np.ndarray, n_params, n_tokens) -> np.ndarray:
    n, d = (np.asarray(v, float) / c for v, c in zip((n_params, n_tokens), CENTER, strict=True))
    return x[0] + np.exp(x[1]) * n ** -x[3] + np.exp(x[2]) * d ** -x[4]


@pytest.fixture(scope="module")
def fitted(compile_cache) -> bs.Posterior:
    return bs.fit(bs.data.load("stdlib"), bs.laws.get("chinchilla"), drift=None, engine=bs.Laplace(), seed=1)


def test_the_law_alone_is_that_of_least_squares(fitted, squares):
    """Within half a standard deviation, since the Student-t noise weighs runs a little differently."""
    letters = fitted.coefficients()
    for name, at in {"E": 0, "alpha": 3, "beta": 4}.items():
        assert np.median(letters[name]) == pytest.approx(squares[at], abs=0.5 * np.std(letters[name])), name


def test_beyond_the_runs_both_promise_too_high_a_loss(fitted, squares):
    held = bs.data.load("stdlib", "held-out").table
    held = held[held["flop"] > fitted.largest["flop"]]
    found = bs.predict(fitted, held).to_dataframe()
    reached = held["loss"].to_numpy()
    by_squares = law(squares, held["n_params"], held["n_tokens"]) / reached - 1
    assert (by_squares > 0.015).all()
    np.testing.assert_allclose(found["loss_mean_median"] / reached - 1, by_squares, atol=0.003)
    assert (found["loss_new_run_lower"] > reached).all()
