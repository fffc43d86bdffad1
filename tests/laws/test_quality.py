"""Claims: tokens of the other source count as q of the reference source, and q can be learned from runs."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from recovery import learned, worst

from bayescale import laws
from bayescale.laws._published import CONSTANTS

LAW, ONE_SOURCE = laws.get("quality"), laws.get("chinchilla")
BESIROGLU = CONSTANTS["besiroglu-2024"].letters


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def loss(q: float, share: float, tokens: float = 2e10) -> float:
    return float(LAW.loss({**BESIROGLU, "q": q}, {"n_params": 1e9, "n_tokens": tokens, "other_share": share}))


def one_source(tokens: float) -> float:
    return float(ONE_SOURCE.loss(BESIROGLU, {"n_params": 1e9, "n_tokens": tokens}))


@pytest.mark.parametrize(
    ("q", "share", "worth"),
    [(1.0, 0.7, 2e10), (0.3, 0.0, 2e10), (0.5, 1.0, 1e10), (2.0, 1.0, 4e10), (0.5, 0.5, 1.5e10), (3.0, 0.25, 3e10)],
)
def test_tokens_of_the_other_source_count_as_q(q: float, share: float, worth: float) -> None:
    assert loss(q, share) == pytest.approx(one_source(worth), rel=1e-12)


def test_a_better_source_helps_and_a_worse_one_hurts() -> None:
    """So nothing is promised about a larger share."""
    assert loss(2.0, 0.5) < loss(1.0, 0.5) < loss(0.5, 0.5)
    assert loss(2.0, 0.9) < loss(2.0, 0.1)
    assert loss(0.5, 0.9) > loss(0.5, 0.1)
    assert "other_share" not in LAW.monotone


def test_no_source_is_taken_to_be_the_better_one() -> None:
    """The prior of q says the same of q and of 1 / q, and of either direction at any group."""
    q = next(p for p in LAW.parameters if p.name == "q")
    low, median, high = q.prior.interval()
    assert (median, low * high) == pytest.approx((1.0, 1.0))
    assert q.between_groups == q.prior.spread  # groups' sources differ as much as any two may


@pytest.mark.parametrize("q", [0.4, 2.5])
def test_q_is_learned_from_runs_of_different_shares(q: float) -> None:
    rng = np.random.default_rng(4)
    runs = {
        "n_params": np.exp(rng.uniform(*np.log([5e7, 3e9]), 80)),
        "n_tokens": np.exp(rng.uniform(*np.log([1e9, 1e11]), 80)),
        "other_share": rng.choice([0.0, 0.25, 0.5, 1.0], 80),
    }
    truth = {**BESIROGLU, "q": q}
    found = learned(LAW, truth, runs)
    assert worst(LAW, truth, found, runs) < 0.004
    assert found["q"] == pytest.approx(q, rel=0.1)
