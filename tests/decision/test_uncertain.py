"""Uncertain inputs: drawn by name, precise in the mean, never out of their range."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma, norm, poisson, truncnorm, uniform

from bayescale.decision.uncertain import (
    OUTERMOST,
    Input,
    describe,
    draw_all,
    draws,
    is_certain,
    median,
    quantiles,
    read_inputs,
)
from bayescale.parameter import LogitNormal, LogNormal, Normal

SHARE = Input("share of the day", high=1.0, is_share=True, advice="Write 0.4 or '40%'.")
COUNT = Input("tokens served", "tokens", has_low=True)
DISTRIBUTIONS = [
    (LogNormal(2.0, 0.3), 2.0 * np.exp(0.3**2 / 2)),
    (Normal(5.0, 2.0), 5.0),
    (gamma(3.0, scale=2.0), 6.0),
    (poisson(8.0), 8.0),
]


@pytest.mark.parametrize(("value", "mean"), DISTRIBUTIONS, ids=lambda v: describe(v) if not is_certain(v) else "")
def test_one_draw_falls_in_each_stratum_so_that_means_are_precise(value, mean):
    n = 1000
    edges = quantiles(value, np.clip(np.arange(n + 1) / n, OUTERMOST, 1 - OUTERMOST))
    drawn = np.array([draws("x", value, n, seed) for seed in range(30)])
    assert (np.sort(drawn) >= edges[:-1] - 1e-9).all()
    assert (np.sort(drawn) <= edges[1:] + 1e-9).all()
    # Independent draws would miss by 3 % of the spread.
    assert np.sqrt(np.mean((drawn.mean(axis=1) - mean) ** 2)) < 3e-3 * drawn.std()


def test_equal_names_share_their_draws_and_other_names_or_seeds_are_independent():
    n = 4000
    price = draws("price", LogNormal(2.0, 0.3), n, 7)
    np.testing.assert_array_equal(price, draw_all({"other": 1.0, "price": LogNormal(2.0, 0.3)}, n, 7)["price"])
    for other in (draws("prices", LogNormal(2.0, 0.3), n, 7), draws("price", LogNormal(2.0, 0.3), n, 8)):
        assert abs(np.corrcoef(price, other)[0, 1]) < 4 / np.sqrt(n)


def test_draws_do_not_depend_on_the_process():
    """Python's own hash of a text differs from process to process."""
    script = """
from bayescale.decision.uncertain import draws
from bayescale.parameter import Normal
print(draws('a', Normal(0.0, 1.0), 3, 1).tolist())"""
    run = [sys.executable, "-c", script]
    done = [
        subprocess.run(run, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": str(k)}).stdout
        for k in (1, 2)
    ]
    assert done[0] == done[1] == f"{draws('a', Normal(0.0, 1.0), 3, 1).tolist()}\n"


@given(st.floats(-1e300, 1e300), st.integers(1, 50))
def test_a_number_is_repeated_exactly(value, n):
    np.testing.assert_array_equal(draws("x", value, n, 0), np.full(n, value))
    assert median(value) == value


@given(st.floats(0.01, 0.99), st.floats(0.01, 3.0), st.integers(0, 1000))
def test_what_passes_its_check_is_never_drawn_out_of_range(center, width, seed):
    lower, upper = center - width, center + width
    value = uniform(lower, upper - lower)
    try:
        SHARE.read(value)
    except ValueError:
        assert lower < 2e-6 * width or upper > 1 - 2e-6 * width
    else:
        drawn = draws("x", value, 200, seed)
        assert ((drawn > 0) & (drawn <= 1)).all()


def test_nothing_further_out_than_one_in_a_million_is_drawn():
    drawn = draws("x", Normal(0.0, 1.0), 1_000_000, 0)
    assert (drawn.min(), drawn.max()) == pytest.approx((-4.753424, 4.753424), abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "written", "read"),
    [
        (SHARE, 0.4, 0.4),
        (SHARE, 1, 1.0),
        (SHARE, "40%", 0.4),
        (SHARE, " 40.0 % ", 0.4),
        (SHARE, np.float32(0.5), 0.5),
        (COUNT, 0, 0.0),
        (COUNT, 10**24, 1e24),
    ],
)
def test_a_value_in_its_range_is_read_as_a_float(rule, written, read):
    assert rule.read(written) == read
    assert type(rule.read(written)) is float


@pytest.mark.parametrize("value", [LogitNormal(0.4, 0.5), truncnorm(-2, 2, 0.4, 0.1), uniform(0.1, 0.9)])
def test_a_distribution_in_its_range_is_kept(value):
    assert SHARE.read(value) is value


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        (SHARE, 40, "above 0 and at most 1, not 40. Write 0.4 or '40%'."),
        (SHARE, 1.2, "not 1.2"),
        (SHARE, 0, "not 0"),
        (SHARE, "0%", "not 0.0"),
        (SHARE, "140%", "not 1.4"),
        (SHARE, "40", "not '40'"),
        (SHARE, True, "not True"),
        (SHARE, None, "not None"),
        (SHARE, float("nan"), "not nan"),
        (COUNT, float("inf"), "not inf"),
        (COUNT, 10**400, "not 1000"),
        (COUNT, "40%", "not '40%'"),
        (COUNT, -1, "tokens served in tokens, at least 0, not -1"),
        (SHARE, norm(0.4, 0.1), "norm, median 0.4, 90 % 0.2355 to 0.5645, one draw in a million is -0.0753"),
        (SHARE, LogNormal(0.4, 0.3), "one draw in a million is 1.66; truncate it"),
        (SHARE, uniform([0.1, 0.2], 0.1), "not of an array"),
        (COUNT, gamma(-1.0), "is nan"),
        (COUNT, LogNormal(None, 1.0), "takes its median from a table"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_a_value_out_of_its_range_is_refused_with_the_rule_and_the_value(rule, value, words):
    with pytest.raises(ValueError, match="Thing\\(share\\)") as refused:
        read_inputs("Thing", {"share": rule}, {"share": value})
    assert words in str(refused.value)


def test_all_faults_come_in_one_message():
    with pytest.raises(ValueError, match="Thing") as refused:
        read_inputs("Thing", {"a": SHARE, "b": COUNT, "c": SHARE}, {"a": 2, "b": 1, "c": -1})
    assert [line[:8] for line in str(refused.value).splitlines()] == ["Thing(a)", "Thing(c)"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2.0, "2 dollars"),
        (2e6, "2e+06 dollars"),
        (LogNormal(2.0, 0.1), "lognormal, median 2, 90 % 1.697 to 2.358 dollars"),
        (LogitNormal(0.4, 0.2), "logitnormal, median 0.4, 90 % 0.3242 to 0.4809 dollars"),
        (gamma(3.0), "gamma, median 2.674, 90 % 0.8177 to 6.296 dollars"),
    ],
)
def test_an_input_in_words(value, words):
    assert describe(value, "dollars") == words
    assert describe(value) == words.removesuffix(" dollars")
