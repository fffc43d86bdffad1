"""What a law reads of runs: conditions by name, sizes by what they count, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescale as bs
from bayescale.laws import Law
from bayescale.posterior import inputs

REPEATED = bs.laws.get("data_constrained")
EXPERTS = bs.laws.get("experts")
DENSE = bs.laws.get("chinchilla")
PRIOR = bs.FromPrior(draws=200)


def table(**extra: Any) -> pd.DataFrame:
    """Twelve runs on three sizes and four token counts."""
    n, d = (a.ravel() for a in np.meshgrid([1e8, 4e8, 1.6e9], [2e9, 8e9, 3.2e10, 1.28e11]))
    rows = pd.DataFrame({"n_params": n, "n_tokens": d, "loss": 1.8 + 480 / n**0.35 + 2085 / d**0.366})
    return rows.assign(**extra)


def unfitted(law: Law, drift: bs.Drift | None = None, **extra: Any) -> bs.Posterior:
    """Draws of the prior on those runs."""
    return bs.fit(bs.read_runs(table(**extra), counts=None), law, drift=drift, engine=PRIOR, seed=1)


@pytest.fixture(scope="module")
def repeated() -> bs.Posterior:
    return unfitted(REPEATED, n_unique_tokens=8e9)


def test_a_condition_of_the_runs_is_read_from_its_column() -> None:
    runs = bs.read_runs(table(n_unique_tokens=[f"{k}e9" for k in range(1, 13)]))
    found = inputs.of_runs(REPEATED, runs)
    np.testing.assert_allclose(found["n_unique_tokens"], 1e9 * np.arange(1, 13))
    assert list(found) == ["n_params", "n_tokens", "n_unique_tokens"]


def test_parameters_are_defined_at_the_standard_of_conditions() -> None:
    """Whatever conditions the runs had: loss_center is what the centre loses with one expert."""
    runs = bs.read_runs(table(n_experts=8), counts="active")
    posterior = bs.fit(runs, EXPERTS, drift=None, engine=PRIOR, seed=1)
    assert posterior.reference["n_experts"] == 1
    loss = bs.predict(posterior, {k: posterior.reference[k] for k in ("n_active_params", "n_tokens")}).mean[0, 0]
    assert loss == pytest.approx(np.median(posterior.values()["loss_center"]), rel=1e-9)


def test_a_table_without_a_condition_is_told_what_to_add() -> None:
    with pytest.raises(ValueError, match=r"DataConstrained reads n_unique_tokens.*no such column.*= 1e\+17"):
        unfitted(REPEATED)


def test_all_cells_that_a_law_does_not_hold_for_are_named_at_once() -> None:
    cells = [1e9] * 10 + ["many", 1.0]
    with pytest.raises(ValueError, match=r"n_unique_tokens of run-11 many, run-12 1\.?0? \(it takes 1000 to 1e\+17\)"):
        unfitted(REPEATED, n_unique_tokens=cells)


def test_a_law_of_active_parameters_asks_what_sizes_count() -> None:
    with pytest.raises(ValueError, match=r"reads n_active_params.*read_runs\(\.\.\., counts='active'\)"):
        unfitted(EXPERTS, n_experts=8)
    rows = table(n_experts=8)
    for runs in (bs.read_runs(rows, counts="active"), bs.read_runs(rows.rename(columns={"n_params": "active params"}))):
        assert runs.counts == "active"
        found = bs.fit(runs, EXPERTS, drift=None, engine=PRIOR, seed=1)
        assert set(found.reference) == {"n_active_params", "n_tokens", "n_experts"}


def test_what_sizes_count_is_kept_with_a_saved_fit(tmp_path: Any) -> None:
    runs = bs.read_runs(table(n_experts=8), counts="active")
    saved = bs.fit(runs, EXPERTS, drift=None, engine=PRIOR, seed=1).save(tmp_path / "fit.nc")
    again = bs.load(saved)
    assert again.runs is not None
    assert again.runs.counts == "active"
    np.testing.assert_array_equal(inputs.of_runs(EXPERTS, again.runs)["n_experts"], 8.0)


@pytest.mark.parametrize("drift", [None, bs.Drift()], ids=["law alone", "with drift"])
def test_a_condition_moves_forecasts_and_optima_as_the_law_says(drift: bs.Drift | None) -> None:
    """Unlimited text is Hoffmann et al.'s law up to the best size; little of it makes a larger model the better buy."""
    posterior = unfitted(REPEATED, drift, n_unique_tokens=8e9)
    little, standard = ({"n_unique_tokens": v} for v in (1e9, REPEATED.conditions["n_unique_tokens"]))
    run = {"n_params": 1e9, "n_tokens": 1e11}
    losses = [bs.predict(posterior, run | at).mean[0, 0] for at in (little, {})]
    assert losses[0] > losses[1]
    assert losses[1] == bs.predict(posterior, run | standard).mean[0, 0]
    plans = [bs.allocate(posterior, 1e22, at=at) for at in (little, standard, None)]
    assert [plan.conditions for plan in plans] == [little, standard, standard]
    tokens = [np.nanmedian(plan.d_opt().to_numpy()) for plan in plans]
    assert tokens[0] < tokens[1] == tokens[2]
    assert plans[0].to_dict()["conditions"] == little
    assert "n_unique_tokens = 1e9" in repr(plans[0])


def test_at_the_standard_a_law_is_the_one_that_it_contains(repeated: bs.Posterior) -> None:
    """N_opt by Hoffmann et al.'s closed form (arXiv 2203.15556, equation 4) of the same letters."""
    c = repeated.coefficients()
    a, b = c["alpha"], c["beta"]
    best = (a * c["A"] / (b * c["B"])) ** (1 / (a + b)) * (1e22 / 6) ** (b / (a + b))
    found = bs.allocate(repeated, 1e22).n_opt().to_numpy()[:, 0]
    inside = np.isfinite(found)
    assert inside.mean() > 0.9
    np.testing.assert_allclose(found[inside], best[inside], rtol=1e-6)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"n_experts": 8}, "DataConstrained has no condition n_experts; it has n_unique_tokens"),
        ({"n_unique_tokens": 1.0}, r"n_unique_tokens = 1 \(1000 to 1e\+17\)"),
    ],
)
def test_conditions_that_are_none_are_refused(repeated: bs.Posterior, at: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bs.allocate(repeated, 1e22, at=at)


def test_a_law_without_conditions_says_so() -> None:
    with pytest.raises(ValueError, match="Chinchilla has no condition n_experts; it has none"):
        bs.allocate(bs.published("besiroglu-2024"), 1e22, at={"n_experts": 8})


def test_a_law_without_tokens_forecasts_and_has_no_optimum() -> None:
    routed = bs.laws.get("routed")
    runs = bs.read_runs(table(n_experts=[1, 8, 64] * 4), counts="active")
    posterior = bs.fit(runs, routed, drift=bs.Drift(), engine=PRIOR, seed=1)
    forecast = bs.predict(posterior, {"n_active_params": 1e9, "n_tokens": 1.3e11, "n_experts": 64})
    assert np.isfinite(forecast.mean).all()
    assert forecast.runs["flop"].iloc[0] == pytest.approx(7.8e20)
    with pytest.raises(ValueError, match="Routed reads no tokens"):
        bs.allocate(posterior, 1e22)


def test_a_published_law_with_conditions_is_used_as_any_other() -> None:
    """Muennighoff et al.'s forecast (arXiv 2305.16264; literature's own figure), conditions by name."""
    law = bs.published("muennighoff-2023")
    forecast = bs.predict(law, {"n_params": 6.34e9, "n_tokens": 242e9, "n_unique_tokens": 25e9})
    assert forecast.mean[0, 0] == pytest.approx(2.2256440889984477, rel=1e-12)
    assert forecast.standing == "UNKNOWN"
