"""The density of scatter, for any degrees of freedom."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm, t

from bayescale.model.noise import StudentT

RESIDUALS = np.array([-0.03, 0.0, 0.004, 0.2])


def log_prob(tail: float) -> np.ndarray:
    with jax.enable_x64(True):
        density = StudentT().distribution(0.0, {"noise": 0.01, "tail": jnp.float64(tail)}, 0.0)
        return np.asarray(density.log_prob(RESIDUALS))


@pytest.mark.parametrize("tail", [0.5, 3.0, 30.0, 99.9, 100.1, 400.0])
def test_it_is_students_density(tail: float) -> None:
    np.testing.assert_allclose(log_prob(tail), t(tail, scale=0.01).logpdf(RESIDUALS), rtol=1e-11)


@pytest.mark.parametrize("tail", [1e9, 1e12, 1e16, 1e30])
def test_with_many_degrees_of_freedom_it_is_the_normals(tail: float) -> None:
    """They differ by the fourth power of the scaled residual over the degrees of freedom."""
    np.testing.assert_allclose(log_prob(tail), norm(scale=0.01).logpdf(RESIDUALS), rtol=1e-6)


def test_its_slope_in_the_degrees_of_freedom_is_that_of_the_density() -> None:
    with jax.enable_x64(True):

        def total(tail: float) -> jax.Array:
            return StudentT().distribution(0.0, {"noise": 0.01, "tail": tail}, 0.0).log_prob(RESIDUALS).sum()

        for tail in (3.0, 99.0, 101.0, 1e4):
            near = tail * 1e-4
            slope = sum(sign * t(tail + sign * near, scale=0.01).logpdf(RESIDUALS).sum() for sign in (1, -1)) / (
                2 * near
            )
            assert float(jax.grad(total)(tail)) == pytest.approx(slope, rel=1e-4)
