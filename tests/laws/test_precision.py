"""Claims: low precision costs what Kumar et al. 2024 (arXiv 2411.04330) print, and can be learned from runs."""

import math
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from recovery import learned, worst
from scipy.optimize import minimize_scalar

from bayescale import laws
from bayescale.laws._published import CONSTANTS
from bayescale.laws.precision import share_that_counts

LAW = laws.get("precision")
KUMAR = CONSTANTS["kumar-2024"].letters
NO_OFFSETS = {**KUMAR, "n_w": 0.0, "n_a": 0.0, "n_kv": 0.0}
ORDINARY = {"n_params": 1e9, "n_tokens": 2e10, **LAW.conditions}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def loss(letters: dict, **changed: float) -> float:
    return float(LAW.loss(letters, ORDINARY | changed))


def counts(part: str, bits: float, letters: dict = KUMAR) -> float:
    return float(share_that_counts(letters, f"{part}_bits", bits))


def bits_that_are_best(letters: dict) -> float:
    """Where weights, activations and cache of P bits each leave most parameters a bit of compute."""

    def waste(p: float) -> float:
        return p / math.prod(counts(part, p, letters) for part in ("weight", "activation", "cache"))

    return minimize_scalar(waste, bounds=(3.2, 20), method="bounded", options={"xatol": 1e-6}).x


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ("weight", {3: 0.55869, 4: 0.69636, 8: 0.93195}),
        ("activation", {4: 0.33141, 8: 0.89056}),
        ("cache", {4: 0.82757, 8: 0.99735}),
    ],
)
def test_share_of_the_parameters_that_counts(part: str, wanted: dict[int, float]) -> None:
    assert {bits: counts(part, bits) for bits in wanted} == pytest.approx(wanted, abs=6e-6)


def test_without_offsets_more_would_count() -> None:
    """The formula of the main text, which the paper did not fit."""
    weights = {bits: counts("weight", bits, NO_OFFSETS) for bits in (3, 4, 8)}
    assert weights == pytest.approx({3: 0.67428, 4: 0.77589, 8: 0.94977}, abs=6e-6)
    for bits, wanted in ((4, 0.63892), (8, 0.92411)):
        product = math.prod(counts(part, bits, NO_OFFSETS) for part in ("weight", "activation", "cache"))
        assert product == pytest.approx(wanted, abs=6e-6)


def test_three_bits_of_activation_leave_nothing() -> None:
    """With the sign +n_x, as the paper says; so the domain ends at 4."""
    assert counts("activation", 3) < 0 < counts("activation", 4)
    assert LAW.domain["activation_bits"][0] == 4


@pytest.mark.parametrize(("letters", "wanted"), [(KUMAR, 7.0021), (NO_OFFSETS, 3.4688)])
def test_seven_bits_are_best(letters: dict, wanted: float) -> None:
    """The published 7 to 8 bits, which the main text's formula misses."""
    assert bits_that_are_best(letters) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(("letters", "bits", "wanted"), [(KUMAR, 4, 3.078502), (NO_OFFSETS, 4, 3.069357)])
def test_loss_with_weights_of_four_bits(letters: dict, bits: float, wanted: float) -> None:
    """Other parts exact, as 16 bits are not quite: their N_eff is left out by comparing at 1e6 bits."""
    exact = {"weight_bits": 1e6, "activation_bits": 1e6, "cache_bits": 1e6}
    assert loss(letters, **exact) == pytest.approx(3.049731, abs=1e-6)
    assert loss(letters, **(exact | {"weight_bits": bits})) == pytest.approx(wanted, abs=1e-6)


def test_parameters_are_those_of_a_run_of_16_bits() -> None:
    """So that a table without a column of bits means the same: its Chinchilla letters are the law's at 16 bits."""
    found = LAW.to_parameters(KUMAR, ORDINARY)
    assert found["loss_center"] == pytest.approx(loss(KUMAR))
    made = LAW.to_coefficients({**found, "kept_w": 0.2, "kept_a": 0.2, "kept_kv": 0.2}, ORDINARY)
    assert loss(made) == pytest.approx(loss(KUMAR), rel=1e-9)
    assert loss(made, weight_bits=4.0) > loss(KUMAR, weight_bits=4.0)


def test_precision_is_learned_from_its_runs() -> None:
    rng = np.random.default_rng(3)
    runs = {
        "n_params": np.exp(rng.uniform(*np.log([3e7, 1.7e9]), 80)),
        "n_tokens": np.exp(rng.uniform(*np.log([1.5e9, 2.6e10]), 80)),
        **{name: rng.choice([low, low + 1, 6.0, 8.0, 16.0], 80) for name, (low, _) in list(LAW.domain.items())[2:]},
    }
    assert worst(LAW, KUMAR, learned(LAW, KUMAR, runs), runs) < 0.005
