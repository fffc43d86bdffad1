"""Claims: the law of repeated text gives the numbers of Muennighoff et al. 2023 (arXiv 2305.16264), section 6.1.

What repeats and parameters in excess are worth, D' and N', is read off the loss: the law says nothing else.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import law_contract
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bayescale.laws import get
from bayescale.laws._published import CONSTANTS

LAW, CHINCHILLA = get("data_constrained"), get("chinchilla")
C = CONSTANTS["muennighoff-2023"].letters
SMALL = 1e5  # parameters: none in excess, whatever the text below
G = (C["alpha"] * C["A"] / (C["beta"] * C["B"])) ** (1 / (C["alpha"] + C["beta"]))
SUPPORTED = G * G ** (C["beta"] / C["alpha"])  # parameters that each distinct token supports, where alpha = beta


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def loss(n_params: Any, n_tokens: Any, n_unique_tokens: Any) -> Any:
    return LAW.loss(C, {"n_params": n_params, "n_tokens": n_tokens, "n_unique_tokens": n_unique_tokens})


def tokens_worth(n_tokens: float, n_unique_tokens: float) -> float:
    """D' from the loss of a model too small to have parameters in excess."""
    of_tokens = loss(SMALL, n_tokens, n_unique_tokens) - C["E"] - C["A"] * SMALL ** -C["alpha"]
    return float((of_tokens / C["B"]) ** (-1 / C["beta"]))


def size_worth(n_params: float, n_tokens: float) -> float:
    """N' from the loss of a run that repeats nothing."""
    of_size = loss(n_params, n_tokens, n_tokens) - C["E"] - C["B"] * n_tokens ** -C["beta"]
    return float((of_size / C["A"]) ** (-1 / C["alpha"]))


def test_the_constants() -> None:
    assert {name: C[name] for name in "ABE"} == pytest.approx({"A": 520.825, "B": 1487.716, "E": 1.869144}, rel=1e-6)
    assert C["alpha"] == C["beta"]


@pytest.mark.parametrize(
    ("run", "wanted"),
    [((6.34e9, 242e9, 25e9), 2.2256440889984477), ((8.67e9, 178e9, 25e9), 2.2269634075087867)],
)
def test_losses_of_the_authors_own_code(run: tuple[float, float, float], wanted: float) -> None:
    assert float(loss(*run)) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(("epochs", "share"), [(2, 0.98410), (4, 0.93142), (8, 0.82801), (16, 0.66140), (40, 0.37919)])
def test_share_of_the_tokens_that_counts(epochs: float, share: float) -> None:
    assert tokens_worth(epochs * 1e9, 1e9) / (epochs * 1e9) == pytest.approx(share, abs=1e-5)


def test_repeats_and_excess_without_end() -> None:
    assert tokens_worth(1e17, 1e9) / 1e9 == pytest.approx(16.3878, abs=1e-4)
    assert size_worth(1e15, 1e10) / (SUPPORTED * 1e10) == pytest.approx(6.3097, abs=1e-4)


@pytest.mark.parametrize(("repeats", "worth"), [(15, 0.377), (15.387756, np.exp(-1)), (10.67, 0.5)])
def test_what_one_more_repeat_is_worth(repeats: float, worth: float) -> None:
    """R_D is a 1/e point; the half-life is R_D ln 2 = 10.67 repeats."""
    low, high = (tokens_worth((1 + repeats + x) * 1e9, 1e9) for x in (-0.01, 0.01))
    assert (high - low) / 0.02e9 == pytest.approx(worth, abs=5e-4)


@pytest.mark.parametrize(("epochs", "wanted"), [(4, 0.0148), (16, 0.0895), (44, 0.2267)])
def test_four_epochs_are_almost_free(epochs: float, wanted: float) -> None:
    """Of the model of 8.67e9 parameters on 178e9 tokens."""
    once = loss(8.67e9, 178e9, 178e9)
    assert float(loss(8.67e9, 178e9, 178e9 / epochs) - once) == pytest.approx(wanted, abs=5e-5)


def test_the_size_that_text_supports_is_the_compute_optimal_one() -> None:
    """.051 parameters a token: up to there a parameter counts in full, and no longer beyond."""

    def along_budget(n: float) -> float:
        return float(loss(np.exp(n), 1e19 / np.exp(n), LAW.conditions["n_unique_tokens"]))

    size = np.exp(minimize_scalar(along_budget, bracket=(19, 22), tol=1e-10).x)
    assert size / (1e19 / size) == pytest.approx(0.051, abs=5e-4)
    assert size / (1e19 / size) == pytest.approx(SUPPORTED, rel=1e-4)
    tokens = 1e11
    assert size_worth(0.999 * SUPPORTED * tokens, tokens) == pytest.approx(0.999 * SUPPORTED * tokens, rel=1e-9)
    assert size_worth(2 * SUPPORTED * tokens, tokens) < 0.99 * 2 * SUPPORTED * tokens


def test_untied_exponents_support_g_times_g_u_to_the_power_beta_over_alpha() -> None:
    """N_opt(U_D) = G (G U_D)^(beta / alpha): up to there the law is Hoffmann et al.'s, and above it beyond."""
    c = {**C, "alpha": 0.3, "beta": 0.4}
    g = (c["alpha"] * c["A"] / (c["beta"] * c["B"])) ** (1 / (c["alpha"] + c["beta"]))
    tokens = np.geomspace(1e8, 1e13, 11)
    for factor, above in ((0.99, False), (1.5, True)):
        run = {"n_params": factor * g * (g * tokens) ** (c["beta"] / c["alpha"]), "n_tokens": tokens}
        found = np.asarray(LAW.loss(c, {**run, "n_unique_tokens": tokens}))
        plain = np.asarray(CHINCHILLA.loss(c, run))
        assert (found > plain * (1 + 1e-6)).all() if above else found == pytest.approx(plain, rel=1e-12)


def test_without_repeats_and_excess_the_law_is_hoffmanns() -> None:
    letters, run = law_contract.letters(LAW), law_contract.runs(LAW)
    fresh = {**run, "n_unique_tokens": np.maximum(run["n_unique_tokens"], run["n_tokens"])}
    endless = {**letters, "R_D": 1e9, "R_N": 1e9}
    wanted = np.asarray(CHINCHILLA.loss(letters, run))
    assert (np.asarray(LAW.loss(letters, fresh)) >= wanted * (1 - 1e-12)).all()
    log_best = (
        np.log(letters["alpha"] * letters["A"] / (letters["beta"] * letters["B"]))
        + letters["beta"] * np.log(run["n_tokens"])
    ) / letters["alpha"]
    small = np.log(run["n_params"]) < log_best
    assert 0.1 < small.mean() < 0.9
    np.testing.assert_allclose(LAW.loss(endless, fresh)[small], wanted[small], rtol=1e-9)


def test_more_distinct_text_never_hurts() -> None:
    """Though the law does not name it among what is spent."""
    assert "n_unique_tokens" not in LAW.monotone
    law_contract.spending_more_never_hurts(LAW, "n_unique_tokens")


def test_runs_at_the_kinks_have_a_slope() -> None:
    """Where a run sees all its text once, and where its size is the one that its text supports."""

    def log_loss(n: Any, d: Any, u: Any, c: Any) -> Any:
        return jnp.log(LAW.loss(c, {"n_params": n, "n_tokens": d, "n_unique_tokens": u}))

    for n, d, u in ((1e9, 1e10, 1e10), (SUPPORTED * 1e10, 1e10, 1e10), (SUPPORTED * 1e10, 4e10, 1e10)):
        slopes = jax.grad(log_loss, (0, 1, 2, 3))(n, d, u, dict(C))
        assert all(np.isfinite(slope) for slope in jax.tree.leaves(slopes))
    step = 1e-5  # more tokens of a run that sees its text once: as if new, and in the first repeat as well
    of_tokens = float(jax.grad(log_loss, 1)(SMALL, 1e10, 1e10, dict(C)) * 1e10)
    ends = [float(log_loss(SMALL, 1e10 * np.exp(x), 1e10, dict(C))) for x in (-step, step)]
    assert of_tokens == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-4)
