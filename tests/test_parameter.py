"""Claims: a prior is Normal on the unconstrained scale, in the quantity's unit, and refuses what is out of range."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm, norm

from bayescale.parameter import Fixed, LogitNormal, LogNormal, Normal, Parameter, Prior

REAL = st.floats(-30, 30)


@given(REAL)
@pytest.mark.parametrize("kind", [Normal, LogNormal, LogitNormal])
def test_unconstrain_undoes_constrain(kind: type[Prior], x: float) -> None:
    prior = kind(0.5, 1.0)
    value = prior.constrain(x)
    # 1 - value is exact to 1e-16, which is a share of e^-x of the log odds.
    assert prior.unconstrain(value) == pytest.approx(x, abs=1e-9 + 1e-15 * math.exp(abs(x))) or value == 1.0


@given(REAL)
@pytest.mark.parametrize("kind", [Normal, LogNormal, LogitNormal])
def test_all_array_modules_agree(kind: type[Prior], x: float) -> None:
    prior = kind(0.5, 1.0)
    with jax.enable_x64(True):
        assert float(prior.constrain(jnp.asarray(x), jnp)) == pytest.approx(prior.constrain(x), rel=1e-12)
    assert prior.constrain(np.array([x]), np)[0] == pytest.approx(prior.constrain(x), rel=1e-12)


@given(st.floats(0.01, 0.99), st.floats(0.05, 3))
def test_the_interval_is_the_median_and_the_5_and_95_percent_quantiles(center: float, spread: float) -> None:
    p = [0.05, 0.5, 0.95]
    assert Normal(center, spread).interval() == pytest.approx(norm(center, spread).ppf(p), rel=1e-9)
    assert LogNormal(center, spread).interval() == pytest.approx(lognorm(spread, scale=center).ppf(p), rel=1e-9)
    odds = lognorm(spread, scale=center / (1 - center)).ppf(p)
    assert LogitNormal(center, spread).interval() == pytest.approx(odds / (1 + odds), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "center"),
    [(Normal, math.inf), (Normal, math.nan)]
    + [(LogNormal, x) for x in (0.0, -1.0, math.inf, math.nan)]
    + [(LogitNormal, x) for x in (0.0, 1.0, -0.1, 1.1, math.nan)],
)
def test_a_median_outside_the_range_is_refused(kind: type[Prior], center: float) -> None:
    with pytest.raises(ValueError, match=r"not (-?[\d.]+|inf|nan)\."):
        kind(center, 1.0)


@pytest.mark.parametrize("spread", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("kind", [Normal, LogNormal, LogitNormal])
def test_a_spread_that_is_no_spread_is_refused(kind: type[Prior], spread: float) -> None:
    with pytest.raises(ValueError, match="the spread must be positive and finite"):
        kind(0.5, spread)


def test_a_median_left_to_the_table_is_filled_in_once() -> None:
    open_ended = LogNormal(None, 0.5)
    with pytest.raises(ValueError, match="takes its median from a table"):
        _ = open_ended.loc
    assert open_ended.at(2.5) == LogNormal(2.5, 0.5)
    assert open_ended.at(2.5).loc == pytest.approx(math.log(2.5))
    assert LogNormal(0.35, 0.5).at(2.5) == LogNormal(0.35, 0.5)
    assert open_ended.center is None


@pytest.mark.parametrize(
    ("prior", "site"), [(Normal(0, 1), "raw_x"), (LogNormal(1, 1), "log_x"), (LogitNormal(0.5, 1), "logit_x")]
)
def test_a_site_is_named_by_its_scale(prior: Prior, site: str) -> None:
    """The site holds the unconstrained value, and a site called by the bare name would break arviz."""
    assert Parameter("x", "$x$", "something", "1", prior).site == site


def test_priors_are_values() -> None:
    assert LogNormal(0.35, 0.5) == LogNormal(0.35, 0.5) != LogitNormal(0.35, 0.5)
    assert len({Fixed(0.3), Fixed(0.3), Fixed(0.4)}) == 2
