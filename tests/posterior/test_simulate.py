"""Claims: a simulated table follows its law, scatters as asked, and says that it is simulated."""

import numpy as np
import pandas as pd
import pytest

import bayescale as bs
from bayescale.posterior.simulate import isoflop_design

LAW = bs.published("besiroglu-2024")
MANY = {"n_params": np.full(20_000, 1e9), "n_tokens": np.full(20_000, 2e10)}
MEAN = 1.8172 + 482.01 * 1e9**-0.3478 + 2085.43 * 2e10**-0.3658  # Besiroglu et al. 2024, as printed


def test_the_scatter_of_log_loss_is_the_noise_asked_for() -> None:
    residual = np.log(bs.simulate(LAW, MANY, noise=0.01, seed=1)["loss"] / MEAN)
    assert residual.mean() == pytest.approx(0, abs=5 * 0.01 / np.sqrt(len(residual)))
    assert residual.std() == pytest.approx(0.01, rel=0.03)


def test_a_tail_is_students() -> None:
    """Quartiles of Student's t with 2 degrees of freedom lie at .816 scales, and 13.0 % of it beyond 2.5."""
    residual = np.abs(np.log(bs.simulate(LAW, MANY, noise=0.01, tail=2, seed=1)["loss"] / MEAN)) / 0.01
    assert np.median(residual) == pytest.approx(0.816, rel=0.03)
    assert np.mean(residual > 2.5) == pytest.approx(0.1296, abs=0.01)


def test_the_same_seed_gives_the_same_table_and_origin_says_how() -> None:
    design = isoflop_design([1e19, 1e20], 5)
    first, again = (bs.simulate(LAW, design, seed=4) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert not first["loss"].equals(bs.simulate(LAW, design, seed=5)["loss"])
    assert first["origin"].unique().tolist() == ["simulated: besiroglu-2024, noise 0.005, seed 4"]
    unseeded = bs.simulate(LAW, design)
    named = int(unseeded["origin"].iloc[0].split("seed ")[1])
    pd.testing.assert_frame_equal(unseeded, bs.simulate(LAW, design, seed=named))


def test_a_simulated_table_is_read_without_a_warning() -> None:
    runs = bs.read_runs(bs.simulate(LAW, isoflop_design([1e19, 1e20], 5), seed=4))
    assert len(runs) == 10
    assert not [note for note in runs.notes if "differs" in note]


def test_a_design_spends_each_budget_on_models_either_side_of_the_optimum() -> None:
    design = isoflop_design([1e19, 1e21], 7)
    flop = 6 * design["n_params"] * design["n_tokens"]
    assert flop.to_numpy() == pytest.approx(np.repeat([1e19, 1e21], 7), rel=1e-6)
    ratio = design["n_tokens"] / design["n_params"]
    assert (ratio.min(), ratio.max()) == pytest.approx((2, 200), rel=0.01)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"noise": -0.1}, "noise"), ({"noise": np.nan}, "noise"), ({"tail": 0}, "tail"), ({"group": "A"}, "group")],
)
def test_what_cannot_be_simulated_is_refused(settings: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bs.simulate(LAW, isoflop_design([1e20], 3), **settings)


@pytest.mark.parametrize(("budgets", "per_budget"), [([], 3), ([0.0], 3), ([np.inf], 3), ([1e20], 1)])
def test_what_is_no_design_is_refused(budgets: list[float], per_budget: int) -> None:
    with pytest.raises(ValueError, match="A design needs"):
        isoflop_design(budgets, per_budget)
