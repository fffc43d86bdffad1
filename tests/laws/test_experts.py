"""Claims: the laws with experts print what their papers print, and can be learned from runs.

Clark et al. 2022 (arXiv 2202.01169), Krajewski et al. 2024 (arXiv 2402.07871), Ludziejewski et al. 2025
(arXiv 2502.05172).
"""

import math
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from recovery import learned, worst
from scipy.optimize import brentq, minimize_scalar

from bayescale import laws
from bayescale.laws._published import CONSTANTS

ROUTED, EXPERTS, FINE = (laws.get(name) for name in ("routed", "experts", "fine_grained"))
S_BASE, RL_R, HASH = (CONSTANTS[f"clark-2022-{router}"].letters for router in ("s-base", "rl-r", "hash"))
LUDZIEJEWSKI, KRAJEWSKI = (CONSTANTS[name].letters for name in ("ludziejewski-2025", "krajewski-2024"))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def routed(n: float, experts: float, letters: dict = S_BASE) -> float:
    return float(ROUTED.loss(letters, {"n_active_params": n, "n_experts": experts}))


def joint(n: float, tokens: float, experts: float) -> float:
    return float(EXPERTS.loss(LUDZIEJEWSKI, {"n_active_params": n, "n_tokens": tokens, "n_experts": experts}))


@pytest.mark.parametrize(("experts", "wanted"), [(1, 2.23736), (64, 2.04978), (512, 1.98234)])
def test_loss_of_routed_models_of_1_3_billion(experts: float, wanted: float) -> None:
    assert routed(1.3e9, experts) == pytest.approx(wanted, rel=1e-5)


def test_64_experts_are_worth_three_times_the_parameters() -> None:
    """Effective parameter count: the dense model of the same loss, by search and by the paper's closed form."""
    found = brentq(lambda log_n: routed(math.exp(log_n), 1) - routed(1.3e9, 64), math.log(1e9), math.log(1e11))
    assert math.exp(found) == pytest.approx(3.905e9, rel=2e-4)
    a, b, c, start, most = (S_BASE[k] for k in ("a", "b", "c", "E_start", "E_max"))
    effective = 1 / (1 / (63 + 1 / (1 / start - 1 / most)) + 1 / most)
    more = (b + c * math.log10(1.3e9)) * math.log10(effective / start) / (a + c * math.log10(start))
    assert math.exp(found) == pytest.approx(1.3e9 * 10**more, rel=1e-9)


@pytest.mark.parametrize(("letters", "cutoff"), [(S_BASE, 1e12), (RL_R, 10**10.5), (HASH, 10 ** (0.136 / 0.012))])
def test_beyond_the_cutoff_experts_hurt(letters: dict, cutoff: float) -> None:
    """10^(-b / c): so nothing is promised about more experts."""
    assert routed(cutoff / 2, 64, letters) < routed(cutoff / 2, 1, letters)
    assert routed(cutoff * 2, 64, letters) > routed(cutoff * 2, 1, letters)
    assert "n_experts" not in ROUTED.monotone


def test_routing_knows_nothing_of_tokens() -> None:
    assert "n_tokens" not in ROUTED.inputs


# Table 2 of Krajewski et al.: active parameters, tokens, granularity, FLOPs and loss as printed; and the loss
# that the printed constants give.
TABLE_2 = [
    (1e8, 4.37e9, 8, 2.95e18, 3.133, 3.1097),
    (1e9, 28.94e9, 16, 1.93e20, 2.491, 2.4714),
    (3e9, 72.90e9, 16, 1.41e21, 2.245, 2.2264),
    (7e9, 137.60e9, 32, 6.46e21, 2.076, 2.0596),
    (70e9, 941.07e9, 32, 4.16e23, 1.694, 1.6802),
    (300e9, 2.96e12, 64, 5.69e24, 1.503, 1.4903),
    (1e12, 7.94e12, 64, 4.97e25, 1.367, 1.3558),
]


@pytest.mark.parametrize(("active", "tokens", "granularity", "flop", "printed", "wanted"), TABLE_2)
def test_optimal_fine_grained_models(
    active: float, tokens: float, granularity: float, flop: float, printed: float, wanted: float
) -> None:
    """N is the total: the printed FLOPs come out by their formula, the losses .75 to 1 % low by rounding."""
    blocks = (active / (12 * 64**2)) ** (1 / 3)
    width = 64 * blocks
    assert (72 * width**2 + 14 * width * 64 * granularity) * tokens * blocks == pytest.approx(flop, rel=5e-3)
    run = {"n_total_params": width**2 * (8 * 64 + 4) * blocks, "n_tokens": tokens, "granularity": granularity}
    loss = float(FINE.loss(KRAJEWSKI, run))
    assert loss == pytest.approx(wanted, abs=6e-5)
    assert 0.0073 < 1 - loss / printed < 0.0101


@pytest.mark.parametrize(
    ("experts", "m", "mu", "n", "nu"),
    [
        (1, 30.364, -0.1817, 53.9838, -0.1965),
        (8, 21.833, -0.1676, 119.9126, -0.2338),
        (32, 16.5424, -0.1557, 234.6726, -0.2652),
    ],
)
def test_the_joint_law_reduces_to_the_one_printed_for_each_number_of_experts(
    experts: float, m: float, mu: float, n: float, nu: float
) -> None:
    """A size or number of tokens of 1 leaves a term's coefficient, and of e its exponent; to the printed rounding."""
    endless, floor = 1e90, LUDZIEJEWSKI["c"]
    sizes, tokens = ([joint(*(x, endless)[::order], experts) - floor for x in (1, math.e)] for order in (1, -1))
    assert sizes[0] == pytest.approx(m, rel=2e-3)
    assert tokens[0] == pytest.approx(n, rel=3e-3)
    assert math.log(sizes[1] / sizes[0]) == pytest.approx(mu, abs=2e-4)
    assert math.log(tokens[1] / tokens[0]) == pytest.approx(nu, abs=2e-4)


def test_one_expert_counts_as_two() -> None:
    """Ê is E_start = 2.0732 with one expert, not 1: the law printed for E = 1 is met, and that for Ê = 1 is not."""
    found = joint(1.73e9, 9.65e9, 1)
    assert found == pytest.approx(30.364 * 1.73e9**-0.1817 + 53.9838 * 9.65e9**-0.1965 + 1.3637, abs=1e-3)
    assert abs(found - (35.91 * 1.73e9**-0.1889 + 35.98 * 9.65e9**-0.1775 + 1.3637)) > 0.01


@pytest.mark.parametrize(
    ("flop", "experts", "size", "tokens"),
    [
        (1e20, 1, 1.73e9, 9.65e9),
        (1e20, 8, 0.99e9, 17e9),
        (1e20, 32, 669e6, 24.9e9),
        (1e21, 1, 5.7e9, 29.3e9),
        (1e21, 8, 3.8e9, 44.3e9),
        (1e21, 32, 2.85e9, 58.4e9),
        (1e22, 1, 18.8e9, 88.6e9),
        (1e22, 8, 14.4e9, 115.8e9),
        (1e22, 32, 12.2e9, 136.9e9),
    ],
)
def test_optimal_active_parameters(flop: float, experts: float, size: float, tokens: float) -> None:
    """Table 1, 6 N D FLOPs."""
    best = minimize_scalar(
        lambda x: joint(math.exp(x), flop / 6 / math.exp(x), experts), bounds=np.log([1e8, 1e11]), method="bounded"
    )
    assert math.exp(best.x) == pytest.approx(size, rel=0.02)
    assert flop / 6 / math.exp(best.x) == pytest.approx(tokens, rel=0.02)


def test_loss_of_the_optimal_dense_model_of_1e20_flop() -> None:
    best = minimize_scalar(
        lambda x: joint(math.exp(x), 1e20 / 6 / math.exp(x), 1), bounds=np.log([1e8, 1e11]), method="bounded"
    )
    assert math.exp(best.x) == pytest.approx(1.73e9, rel=3e-3)
    assert 1e20 / 6 / math.exp(best.x) == pytest.approx(9.65e9, rel=1e-3)
    assert best.fun == pytest.approx(2.5897, abs=5e-5)


@pytest.mark.parametrize("letters", [S_BASE, RL_R, HASH])
def test_a_routed_law_is_learned_from_its_runs(letters: dict) -> None:
    rng = np.random.default_rng(1)
    runs = {
        "n_active_params": np.exp(rng.uniform(*np.log([1.5e7, 1.3e9]), 80)),
        "n_experts": 2.0 ** rng.integers(0, 10, 80),
    }
    assert worst(ROUTED, letters, learned(ROUTED, letters, runs), runs) < 0.004


@pytest.mark.parametrize(
    ("law", "letters", "condition"),
    [(EXPERTS, LUDZIEJEWSKI, ("n_experts", 6)), (FINE, KRAJEWSKI, ("granularity", 5))],
)
def test_a_law_of_experts_is_learned_from_its_runs(law: laws.Law, letters: dict, condition: tuple[str, int]) -> None:
    rng = np.random.default_rng(2)
    runs = {
        law.size: np.exp(rng.uniform(*np.log([5e7, 3e9]), 80)),
        "n_tokens": np.exp(rng.uniform(*np.log([1e9, 1e11]), 80)),
        condition[0]: 2.0 ** rng.integers(0, condition[1], 80),
    }
    assert worst(law, letters, learned(law, letters, runs), runs) < 0.005


@pytest.mark.parametrize(
    "name",
    ["clark-2022-s-base", "clark-2022-rl-r", "clark-2022-hash", "ludziejewski-2025", "krajewski-2024", "kumar-2024"],
)
def test_priors_hold_what_was_published(name: str) -> None:
    """Within 2.5 standard deviations of every prior, at a run in the middle of the published ones."""
    found = CONSTANTS[name]
    law = laws.get(found.law)
    reference = {law.size: found.largest["n_params"] / 5, "n_tokens": found.largest["n_tokens"] / 5, **law.conditions}
    values = law.to_parameters(found.letters, reference)
    priors = {p.name: p.prior.at(3.0) for p in law.parameters}
    away = {k: (prior.unconstrain(float(values[k])) - prior.loc) / prior.spread for k, prior in priors.items()}
    assert {k: z for k, z in away.items() if abs(z) > 2.5} == {}
