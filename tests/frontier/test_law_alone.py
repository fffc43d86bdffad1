"""Plans with drift: the law alone beside them, the share that is drift, and what a choice of size wastes."""

import dataclasses
import math

import numpy as np
import pytest
from frontier_stand_in import B24
from scipy.optimize import brentq

from bayescale.frontier.frontier import Frontier, allocate
from bayescale.frontier.waste import wasted
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.published import published
from bayescale.posterior.simulate import isoflop_design, simulate
from bayescale.posterior.store import load, save
from bayescale.runs.flops import FlopsRule
from bayescale.runs.read import read_runs

BUDGETS = [1e20, 1e23]


@pytest.fixture(scope="module")
def drifting() -> Posterior:
    frame = simulate(published("besiroglu-2024"), isoflop_design([1e18, 1e19, 1e20], 6), noise=0.005, seed=1)
    return fit(read_runs(frame), Chinchilla(), engine=FromPrior(draws=200), seed=1)


@pytest.fixture(scope="module")
def frontier(drifting: Posterior) -> Frontier:
    return allocate(drifting, BUDGETS)


def best_loss(flop: float) -> float:
    """Of Besiroglu et al.'s law with C = 6 N D: Hoffmann et al. 2022, equation 4."""
    a, b, alpha, beta = (B24[k] for k in ("A", "B", "alpha", "beta"))
    n = (alpha * a / (beta * b)) ** (1 / (alpha + beta)) * (flop / 6) ** (beta / (alpha + beta))
    return B24["E"] + a / n**alpha + b / (flop / 6 / n) ** beta


@pytest.mark.parametrize("n_params", [1e9, 5e9, 9e9, 3e10, 1e11])
def test_waste_is_the_compute_that_the_best_size_would_have_saved(n_params: float) -> None:
    flop = 1e22
    chosen = B24["E"] + B24["A"] / n_params ** B24["alpha"] + B24["B"] / (flop / 6 / n_params) ** B24["beta"]
    ends = math.log(1e-3 * flop), math.log(flop * (1 + 1e-9))
    saved = brentq(lambda log_c: best_loss(math.exp(log_c)) - chosen, *ends)
    letters = {k: np.full(3, v) for k, v in B24.items()}
    found = wasted(Chinchilla(), FlopsRule(6.0), letters, flop, np.array([n_params]))
    assert found[:, 0] == pytest.approx(1 - math.exp(saved) / flop, abs=2e-3)


def test_a_draw_without_an_optimum_has_no_waste_and_spoils_no_others() -> None:
    letters = {k: np.full(2, v) for k, v in B24.items()} | {"B": np.array([0.0, B24["B"]])}
    found = wasted(Chinchilla(), FlopsRule(6.0), letters, 1e22, np.array([1e9]))[:, 0]
    assert np.isnan(found).tolist() == [True, False]


def test_each_entry_has_the_law_alone_of_the_same_form(drifting: Posterior, frontier: Frontier) -> None:
    alone = allocate(drifting.law_alone, BUDGETS).to_dict()["results"]  # type: ignore[arg-type]
    for row, own in zip(frontier.to_dict()["results"], alone, strict=True):
        assert row["law_alone"] == own
        assert set(row) == {*own, "law_alone", "drift_share"}


def test_the_share_of_drift_is_of_the_widths_of_logs(frontier: Frontier) -> None:
    for row in frontier.to_dict()["results"]:
        for name, share in row["drift_share"].items():
            width, alone = (math.log(of[name]["upper"] / of[name]["lower"]) for of in (row, row["law_alone"]))
            assert share == pytest.approx(max(0.0, 1 - alone / width))


def test_another_level_is_the_law_alones_too(drifting: Posterior, frontier: Frontier) -> None:
    again = dataclasses.replace(frontier, level=0.5).to_dict()["results"][0]["law_alone"]
    assert again == allocate(drifting.law_alone, BUDGETS, level=0.5).to_dict()["results"][0]  # type: ignore[arg-type]


def test_where_the_ratio_is_not_determined_the_waste_of_each_choice_is_said(frontier: Frontier) -> None:
    """Draws of the prior determine nothing; a plan that is determined carries no waste."""
    for row in frontier.to_dict()["results"]:
        ratio = row["tokens_per_parameter"]
        assert ratio["upper"] > 10 * ratio["lower"]
        assert row["determined"] is False
        sizes = [row["compute_wasted"][k]["n_params"] for k in ("lower", "median", "upper")]
        assert sizes == [row["n_opt_params"][k] for k in ("lower", "median", "upper")]
        assert all(0 <= w["median"] <= w["upper"] <= 1 for w in row["compute_wasted"].values())
    sure = allocate(published("besiroglu-2024"), 1e22).to_dict()["results"][0]
    assert (sure["determined"], sure["compute_wasted"]) == (True, None)


def test_a_forecast_has_the_law_alone_of_the_same_form(drifting: Posterior) -> None:
    runs = {"n_params": [1e9, 2e9], "n_tokens": 2e10}
    alone = predict(drifting.law_alone, runs).to_dict()["results"]  # type: ignore[arg-type]
    found = predict(drifting, runs).to_dict()
    assert [row["law_alone"] for row in found["results"]] == alone
    assert found["drift"] is True
    assert "law_alone" not in predict(drifting.law_alone, runs).to_dict()["results"][0]  # type: ignore[arg-type]


def test_a_saved_fit_keeps_the_law_alone_and_the_gate(drifting: Posterior, frontier: Frontier, tmp_path) -> None:
    again = load(save(drifting, tmp_path / "fit.nc"))
    assert allocate(again, BUDGETS).to_dict() == frontier.to_dict()
    assert [c.to_dict() for c in again.gate] == [c.to_dict() for c in drifting.gate]
    assert again.to_dict()["results"] == drifting.to_dict()["results"]
    assert "law_alone" in again.to_dict()["results"][0]
