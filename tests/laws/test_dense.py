"""Claims: the laws of model size and tokens give their papers' numbers, and one contains the others.

Kaplan et al. 2020 (arXiv 2001.08361) print two or three digits of each constant, Gadre et al. 2024
(arXiv 2403.08540) five; the losses below are worked out from these by hand.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import law_contract
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import bayescale as bs
from bayescale.laws import get
from bayescale.laws._published import CONSTANTS

CHINCHILLA, TIED, COUPLED, KAPLAN = (get(name) for name in ("chinchilla", "chinchilla_tied", "coupled", "kaplan"))
GADRE = {  # E, a, b and eta as printed, and the best tokens per parameter that they imply
    "gadre-2024-c4": ((1.5083, 141.277, 189.516, 0.12124), 3.4),
    "gadre-2024-redpajama": ((1.8366, 212.236, 366.687, 0.13643), 7.4),
    "gadre-2024-refinedweb": ((1.7345, 157.116, 246.207, 0.12720), 5.8),
}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def over_trained(constants: tuple[float, ...], flop: Any, ratio: Any) -> Any:
    """L(C, M) as Gadre et al. write it."""
    E, a, b, eta = constants
    return E + (a * ratio**eta + b * ratio**-eta) * flop**-eta


def close(found: Any, wanted: Any, rel: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=rel)


@pytest.mark.parametrize(("run", "wanted"), [((1e9, 1e10), 2.419652), ((1.5e9, 22e9), 2.312548)])
def test_kaplans_joint_law(run: tuple[float, float], wanted: float) -> None:
    found = KAPLAN.loss(CONSTANTS["kaplan-2020"].letters, dict(zip(KAPLAN.inputs, run, strict=True)))
    assert float(found) == pytest.approx(wanted, abs=1e-6)


def test_kaplans_joint_law_is_not_made_of_the_constants_of_one_variable() -> None:
    """With those of L(N) and L(D) a run loses .064 more."""
    mixed = {"N_c": 8.8e13, "D_c": 5.4e13, "alpha_N": 0.076, "alpha_D": 0.095}
    assert float(KAPLAN.loss(mixed, {"n_params": 1e9, "n_tokens": 1e10})) == pytest.approx(2.483844, abs=1e-6)
    assert CONSTANTS["kaplan-2020"].letters["D_c"] == 1.8e13


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        ({"n_params": 1e9, "n_tokens": 1e300}, 2.375640),  # L(N)
        ({"n_params": 1e300, "n_tokens": 23e9}, 2.090322),  # L(D)
    ],
)
def test_kaplans_laws_of_one_variable_are_its_ends(run: dict[str, float], wanted: float) -> None:
    constants = {"N_c": 8.8e13, "D_c": 5.4e13, "alpha_N": 0.076, "alpha_D": 0.095}
    assert float(KAPLAN.loss(constants, run)) == pytest.approx(wanted, abs=1e-6)


def test_kaplans_law_has_no_floor() -> None:
    assert float(KAPLAN.floor(CONSTANTS["kaplan-2020"].letters)) == 0
    assert float(KAPLAN.loss(CONSTANTS["kaplan-2020"].letters, {"n_params": 1e80, "n_tokens": 1e80})) < 1e-3


@pytest.mark.parametrize(("size", "ratio", "wanted"), [(1.4e9, 640, 2.52487), (6.9e9, 20, 2.44230)])
def test_losses_that_gadre_predict(size: float, ratio: float, wanted: float) -> None:
    run = {"n_params": size, "n_tokens": ratio * size}
    found = float(TIED.loss(CONSTANTS["gadre-2024-redpajama"].letters, run))
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(("size", "ratio", "wanted"), [(1.4e9, 640, 2.54182), (6.9e9, 20, 2.45862)])
def test_rounding_moves_the_losses_that_gadre_predict(size: float, ratio: float, wanted: float) -> None:
    """To three digits, by .017: the law in the letters of L(C, M), rounded, is not the published one."""
    rounded = (1.84, 212, 367, 0.136)
    assert over_trained(rounded, 6 * ratio * size**2, ratio) == pytest.approx(wanted, abs=1e-5)
    run = {"n_params": size, "n_tokens": ratio * size}
    assert float(TIED.loss(CONSTANTS["gadre-2024-redpajama"].letters, run)) < wanted - 0.016


@pytest.mark.parametrize("name", GADRE)
def test_gadres_law_is_read_in_size_and_tokens(name: str) -> None:
    rng = np.random.default_rng(0)
    run = {"n_params": 10 ** rng.uniform(6, 13, 200), "n_tokens": 10 ** rng.uniform(8, 15, 200)}
    flop, ratio = 6 * run["n_params"] * run["n_tokens"], run["n_tokens"] / run["n_params"]
    close(TIED.loss(CONSTANTS[name].letters, run), over_trained(GADRE[name][0], flop, ratio))


@pytest.mark.parametrize("name", GADRE)
def test_the_best_tokens_per_parameter_that_gadre_imply_are_one_at_every_budget(name: str) -> None:
    """(b / a)^(1 / (2 eta)), read off fits with all but one run at 20 tokens per parameter."""
    (_, a, b, eta), printed = GADRE[name]
    ratios = bs.allocate(bs.published(name), [1e19, 1e24]).to_dict()["results"]
    for row in ratios:
        assert row["tokens_per_parameter"]["median"] == pytest.approx((b / a) ** (1 / (2 * eta)), rel=1e-5)
        assert row["tokens_per_parameter"]["median"] == pytest.approx(printed, abs=0.05)


def test_tied_exponents_are_hoffmanns_law_with_one() -> None:
    letters, run = law_contract.letters(TIED), law_contract.runs(TIED)
    close(TIED.loss(letters, run), CHINCHILLA.loss({**letters, "beta": letters["alpha"]}, run))


def test_a_coupling_of_1_is_hoffmanns_law() -> None:
    """In the loss, and in every parameter that the two share."""
    letters, run, at = (draw(CHINCHILLA) for draw in (law_contract.letters, law_contract.runs, law_contract.references))
    one = {**letters, "coupling": 1.0}
    close(COUPLED.loss(one, run), CHINCHILLA.loss(letters, run))
    parameters = COUPLED.to_parameters(one, at)
    for name, wanted in CHINCHILLA.to_parameters(letters, at).items():
        close(parameters[name], wanted)


@pytest.mark.parametrize("E", [0.0, 1.5])
def test_a_coupling_of_beta_is_kaplans_law_above_a_floor(E: float) -> None:
    c, run = law_contract.letters(KAPLAN), law_contract.runs(KAPLAN)
    coupled = {
        "A": c["N_c"] ** c["alpha_N"],
        "B": c["D_c"] ** c["alpha_D"],
        "E": E,
        "alpha": c["alpha_N"],
        "beta": c["alpha_D"],
        "coupling": c["alpha_D"],
    }
    bracket = (c["N_c"] / run["n_params"]) ** (c["alpha_N"] / c["alpha_D"]) + c["D_c"] / run["n_tokens"]
    written_out = np.isfinite(bracket) & (bracket > 0)
    assert written_out.mean() > 0.9
    close(COUPLED.loss(coupled, run)[written_out], (E + bracket ** c["alpha_D"])[written_out])
    close(COUPLED.loss(coupled, run), E + KAPLAN.loss(c, run))


def test_without_a_floor_kaplans_parameters_are_the_coupled_laws() -> None:
    """The centre's loss and the share of the size in what limits it mean the same in both."""
    c, at = law_contract.letters(KAPLAN), law_contract.references(KAPLAN)
    coupled = {
        "A": c["N_c"] ** c["alpha_N"],
        "B": c["D_c"] ** c["alpha_D"],
        "E": 0.0,
        "alpha": c["alpha_N"],
        "beta": c["alpha_D"],
        "coupling": c["alpha_D"],
    }
    found, wanted = COUPLED.to_parameters(coupled, at), KAPLAN.to_parameters(c, at)
    for name in ("loss_center", "size_share"):
        close(found[name], wanted[name])


def test_a_coupling_towards_0_leaves_the_scarcer_of_the_two() -> None:
    c, run = law_contract.letters(CHINCHILLA), law_contract.runs(CHINCHILLA)
    of_size, of_tokens = c["A"] * run["n_params"] ** -c["alpha"], c["B"] * run["n_tokens"] ** -c["beta"]
    found = COUPLED.loss({**c, "coupling": 1e-12}, run)
    close(found, c["E"] + np.maximum(of_size, of_tokens))


def test_the_coupling_does_not_move_the_slopes_at_the_centre() -> None:
    """So that size_share, alpha and beta mean what they mean in Hoffmann et al.'s law."""
    values, at = law_contract.values(COUPLED), law_contract.references(COUPLED)

    def log_reducible(n: Any, d: Any) -> Any:
        c = COUPLED.to_coefficients(values, at)
        return jnp.log(COUPLED.loss({**c, "E": 0.0}, {"n_params": jnp.exp(n), "n_tokens": jnp.exp(d)})).sum()

    of_size, of_tokens = jax.grad(log_reducible, (0, 1))(np.log(at["n_params"]), np.log(at["n_tokens"]))
    close(of_size, -values["alpha"] * values["size_share"])
    close(of_tokens, -values["beta"] * (1 - values["size_share"]))


@pytest.mark.parametrize("k", [0.3, 1.0, 2.5])
def test_the_best_size_of_the_coupled_law(k: float) -> None:
    """Solves (A / N^alpha) / (B / D^beta) = (beta / alpha)^k at every budget."""
    c = {"A": 480.0, "B": 2100.0, "E": 1.8, "alpha": 0.4, "beta": 0.3, "coupling": k}
    for product in (1e18, 1e22):

        def loss(n: float, product: float = product) -> float:
            return float(COUPLED.loss(c, {"n_params": np.exp(n), "n_tokens": product / np.exp(n)}))

        size = np.exp(minimize_scalar(loss, bracket=(20, 24), tol=1e-10).x)
        odds = c["A"] * size ** -c["alpha"] / (c["B"] * (product / size) ** -c["beta"])
        assert odds == pytest.approx((c["beta"] / c["alpha"]) ** k, rel=1e-5)
