"""Claims about scores: they reward what is believed, and agree with closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, norm

from bayescale.posterior.entries import PROBABILITIES
from bayescale.posterior.scores import bias, chance, coverage, crps, crps_of_quantiles, interval_score

NUMBERS = st.floats(-1e3, 1e3)
MANY = (np.arange(20_000) + 0.5) / 20_000  # mid-points of equal shares of probability


def normal_crps(mean: float, sd: float, y: float) -> float:
    """Of a Normal forecast (Gneiting & Raftery 2007, below equation 21)."""
    z = (y - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


@given(NUMBERS, NUMBERS, st.integers(1, 5))
def test_the_crps_of_a_point_is_its_absolute_error(x: float, y: float, draws: int) -> None:
    assert crps(np.full(draws, x), y) == pytest.approx(abs(x - y), abs=1e-9)


@given(st.floats(-3, 3), st.floats(0.1, 3), st.floats(-9, 9))
def test_the_crps_of_normal_draws_is_the_closed_form(mean: float, sd: float, y: float) -> None:
    assert crps(norm.ppf(MANY, mean, sd), y) == pytest.approx(normal_crps(mean, sd, y), abs=1e-3 * sd)


@given(arrays(float, st.integers(1, 12), elements=NUMBERS), NUMBERS)
def test_the_crps_is_its_definition_over_all_pairs(x: np.ndarray, y: float) -> None:
    pairs = np.abs(x[:, None] - x[None]).mean() / 2
    assert crps(x, y) == pytest.approx(np.abs(x - y).mean() - pairs, abs=1e-9)


def test_the_crps_keeps_its_digits_far_from_zero() -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    assert crps(x * 1e-6 + 1e6, 1e6) == pytest.approx(1e-6 * crps(x, 0.0), rel=1e-3)


@pytest.mark.parametrize(("mean", "sd"), [(0.4, 1.0), (-0.4, 1.0), (0.0, 1.5), (0.0, 0.6)])
def test_the_crps_is_best_in_expectation_for_the_truth(mean: float, sd: float) -> None:
    y = norm.ppf((np.arange(200) + 0.5) / 200)
    few = MANY[::20]
    true, other = (crps(norm.ppf(few, m, s)[:, None] + 0 * y, y).mean() for m, s in ((0, 1), (mean, sd)))
    assert true < other


@given(st.floats(0.05, 0.95), st.floats(-1, 1), st.floats(-1, 1))
def test_true_quantiles_have_the_best_expected_interval_score(level: float, low: float, high: float) -> None:
    y = norm.ppf(MANY)
    ends = norm.ppf([(1 - level) / 2, (1 + level) / 2])
    moved = np.sort(ends + np.array([low, high]))
    best = interval_score(*ends, y, level).mean()
    assert best <= interval_score(*moved, y, level).mean() + 1e-3
    # Its expectation for a standard Normal is 4 phi(z) / (1 - level), z the upper end.
    assert best == pytest.approx(4 * norm.pdf(ends[1]) / (1 - level), rel=5e-3)


@pytest.mark.parametrize(("y", "wanted"), [(1.5, 1.0), (1.0, 1.0), (2.0, 1.0), (0.9, 3.0), (2.2, 5.0)])
def test_a_miss_costs_twice_its_distance_over_the_tails(y: float, wanted: float) -> None:
    assert interval_score(1.0, 2.0, y, 0.9) == pytest.approx(wanted)


def test_scores_take_many_forecasts_at_once() -> None:
    x, y = np.random.default_rng(0).standard_normal((50, 3, 2)), np.zeros((3, 2))
    assert crps(x, y).shape == (3, 2)
    assert crps(x, y)[1, 0] == pytest.approx(crps(x[:, 1, 0], 0.0))
    assert interval_score([0, 1], [1, 2], [0.5, 0.5]).tolist() == pytest.approx([1.0, 11.0])


def test_coverage_counts_ends_as_held() -> None:
    assert coverage([0, 0, 0, 0], [1, 1, 1, 1], [0.0, 1.0, -0.1, 1.1]) == 0.5
    assert np.isnan(coverage([], [], []))
    y = np.random.default_rng(1).standard_normal(20_000)
    assert coverage(*norm.ppf([0.05, 0.95]), y) == pytest.approx(0.9, abs=0.01)


def test_bias_has_the_sign_of_a_promise_that_is_too_high() -> None:
    assert bias([2.1, 2.3, 9.0], [2.0, 2.1, 2.0]) == pytest.approx(0.2)
    assert bias([1.0], [1.5]) == -0.5


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        crps(np.zeros((0, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="not \\(5, 3\\) and \\(2,\\)"):
        crps(np.zeros((5, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="Interval 1 ends before it begins: 3 to 2"):
        interval_score([0, 3], [1, 2], [0, 0])
    with pytest.raises(ValueError, match="A level"):
        interval_score(0, 1, 0, 1.0)
    with pytest.raises(ValueError, match="leave out those"):
        coverage([0, np.nan], [1, 1], [0, 0])
    with pytest.raises(ValueError, match="at least one forecast"):
        bias([], [])


@given(st.floats(-6, 6), st.floats(-3, 3), st.floats(0.1, 3))
def test_the_crps_of_a_ledgers_quantiles_is_near_that_of_the_normal_they_are_of(y: float, mean: float, sd: float):
    quantiles = norm.ppf(PROBABILITIES, mean, sd)
    assert crps_of_quantiles(PROBABILITIES, quantiles, y) == pytest.approx(normal_crps(mean, sd, y), abs=0.046 * sd)


@given(arrays(float, st.integers(1, 12), elements=NUMBERS), NUMBERS)
def test_the_crps_of_evenly_spaced_quantiles_is_that_of_draws(x: np.ndarray, y: float) -> None:
    """Whose own quantile function is flat around each."""
    middle = (np.arange(len(x)) + 0.5) / len(x)
    assert crps_of_quantiles(middle, np.sort(x), y) == pytest.approx(crps(x, y), abs=1e-9)


def test_the_crps_of_quantiles_takes_many_forecasts() -> None:
    q, y = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([2.5, 1.0])
    found = crps_of_quantiles((0.1, 0.5, 0.9), q, y)
    assert found == pytest.approx([crps_of_quantiles((0.1, 0.5, 0.9), q[i], y[i]) for i in range(2)])


@pytest.mark.parametrize("p", [(), (0.0, 0.5), (0.5, 0.5), (0.9, 0.1), (0.5, 1.0), (np.nan,), ((0.1, 0.2),)])
def test_quantiles_need_probabilities_that_rise(p: tuple) -> None:
    with pytest.raises(ValueError, match="rise between 0 and 1"):
        crps_of_quantiles(p, np.zeros(len(p)), 0.0)


def test_quantiles_fit_their_probabilities() -> None:
    with pytest.raises(ValueError, match=r"of shape \(2,\) here, not \(3,\)"):
        crps_of_quantiles((0.1, 0.9), np.zeros(3), 0.0)


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.9, 0.99]))
def test_chance_is_the_exact_interval_of_a_share(n: int, data: st.DataObject, level: float) -> None:
    held = data.draw(st.integers(0, n))
    exact = binomtest(held, n).proportion_ci(level, "exact")
    assert chance(held, n, level) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize(("held", "n"), [(0, 0), (2, 1), (-1, 3)])
def test_no_share_is_of_nothing(held: int, n: int) -> None:
    with pytest.raises(ValueError, match="cannot have held"):
        chance(held, n)
