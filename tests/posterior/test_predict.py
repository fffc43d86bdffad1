"""Claims: a forecast is the law's equation over the draws, wider for a new run, and the same however it is chunked."""

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from simulated_fits import loss

from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.posterior import predict as module
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.published import published
from bayescale.runs.flops import FlopsRule
from bayescale.runs.table import Runs

PLANNED = {"n_params": np.array([1e8, 1e9, 3e9, 7e10, 1e12]), "n_tokens": np.array([2e9, 2e10, 1e12, 1.4e12, 2e13])}


def mean_losses(posterior: Posterior, group: Any = None) -> np.ndarray:
    """The law at the planned runs, draws x runs."""
    c = {k: v[:, None] for k, v in posterior.coefficients(group).items()}
    return loss(c, PLANNED["n_params"], PLANNED["n_tokens"])


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_mean_is_the_law_over_the_draws(laplace: Posterior, level: float) -> None:
    found = predict(laplace, PLANNED, level=level)
    wanted = np.quantile(mean_losses(laplace), [0.5, 0.5 - level / 2, 0.5 + level / 2], axis=0).T
    np.testing.assert_allclose(found.mean, wanted, rtol=1e-10)


def test_a_new_runs_interval_holds_its_share(laplace: Posterior) -> None:
    """Of the mixture over draws of Student-t scatter of log loss; one scattered loss a draw, 400 in all."""
    found, values = predict(laplace, PLANNED), {k: v[:, None] for k, v in laplace.values().items()}
    for i, share in enumerate((0.5, 0.05, 0.95)):
        off = (np.log(found.new_run[:, i]) - np.log(mean_losses(laplace))) / values["noise"]
        below = student.cdf(off, values["tail"]).mean(0)
        assert below == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 400))


def test_a_new_run_is_less_certain_than_the_mean(laplace: Posterior) -> None:
    """Where the law is known well, among the runs: far beyond them its own spread is the larger."""
    found = predict(laplace, {k: v[:3] for k, v in PLANNED.items()})
    assert (found.new_run[:, 1] < found.mean[:, 1]).all()
    assert (found.new_run[:, 2] > found.mean[:, 2]).all()


def test_a_higher_level_is_a_wider_interval(laplace: Posterior) -> None:
    narrow, middle, wide = (predict(laplace, PLANNED, level=level) for level in (0.5, 0.9, 0.99))
    for inner, outer in ((narrow, middle), (middle, wide)):
        for kind in ("mean", "new_run"):
            a, b = getattr(inner, kind), getattr(outer, kind)
            np.testing.assert_array_equal(a[:, 0], b[:, 0])
            assert (b[:, 1] < a[:, 1]).all()
            assert (b[:, 2] > a[:, 2]).all()


@pytest.mark.parametrize("elements", [1, 800, 1200])
def test_chunks_change_nothing(laplace: Posterior, monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    """Of the mean; a new run's scatter is other random numbers, its interval the same within their error."""
    whole = predict(laplace, PLANNED)
    monkeypatch.setattr(module, "ELEMENTS", elements)
    parts = predict(laplace, PLANNED)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.new_run, whole.new_run, rtol=0.01)


def test_the_same_seed_is_the_same_forecast(laplace: Posterior) -> None:
    first, again, other = (predict(laplace, PLANNED, seed=s).new_run for s in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


def test_every_group_is_forecast_by_its_own_law(partial: Posterior) -> None:
    found = predict(partial, PLANNED).to_dataframe()
    assert list(found["group"]) == [g for g in partial.groups for _ in range(5)]
    for group, rows in found.groupby("group"):
        wanted = np.median(mean_losses(partial, group), 0)
        np.testing.assert_allclose(rows["loss_mean_median"], wanted, rtol=1e-10)


def test_groups_are_asked_for_by_name_or_as_a_list(partial: Posterior) -> None:
    one = predict(partial, PLANNED, group="C d")
    np.testing.assert_allclose(one.mean[:, 0], np.median(mean_losses(partial, "C d"), 0), rtol=1e-10)
    both = predict(partial, PLANNED, group=[NewGroup(), PopulationMean()])
    assert list(both.runs["group"].unique()) == ["new group", "population mean"]
    new, mean = both.mean[:5], both.mean[5:]
    assert (new[:, 2] - new[:, 1] > mean[:, 2] - mean[:, 1]).all()
    with pytest.raises(ValueError, match=r"Unknown group 'Z'; known: A, C d, b/é"):
        predict(partial, PLANNED, group=["A", "Z"])


def test_compute_and_how_far_it_lies_beyond_the_runs(laplace: Posterior) -> None:
    assert laplace.runs is not None
    t = laplace.runs.table
    found = predict(laplace, PLANNED).runs
    np.testing.assert_allclose(found["flop"], 6 * PLANNED["n_params"] * PLANNED["n_tokens"])
    largest = (6 * t["n_params"] * t["n_tokens"]).max()
    np.testing.assert_allclose(found["extrapolation_factor"], found["flop"] / largest)
    other = predict(dataclasses.replace(laplace, rule=FlopsRule(7.5)), PLANNED).runs
    np.testing.assert_allclose(other["flop"], 7.5 * PLANNED["n_params"] * PLANNED["n_tokens"])


def test_runs_are_given_in_any_form(laplace: Posterior) -> None:
    wanted = predict(laplace, PLANNED).mean
    rows = pd.DataFrame(PLANNED)
    for given in (rows, Runs(rows.assign(loss=3.0)), {k: list(v) for k, v in PLANNED.items()}, rows.assign(other="x")):
        np.testing.assert_array_equal(predict(laplace, given).mean, wanted)
    curve = predict(laplace, {"n_params": 1e9, "n_tokens": [1e10, 1e11, 1e12]})
    assert list(curve.runs["n_params"]) == [1e9] * 3
    assert len(predict(laplace, {"n_params": 1_000_000_000, "n_tokens": 2e10}).mean) == 1
    assert predict(laplace, {"n_params": [], "n_tokens": []}).to_dict()["results"] == []


def test_the_table_and_the_page_say_the_same(partial: Posterior) -> None:
    found = predict(partial, PLANNED)
    page = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (page["level"], page["kind"], page["diagnostics"], page["loss_unit"]) == (
        0.9,
        "eti",
        "UNKNOWN",
        "nats per token",
    )
    for row, plain in zip(found.to_dataframe().to_dict("records"), page["results"], strict=True):
        for name in ("n_params", "n_tokens", "flop", "group", "extrapolation_factor"):
            assert plain[name] == row[name]
        for kind in ("mean", "new_run"):
            for end in ("median", "lower", "upper"):
                assert plain["loss"][kind][end] == row[f"loss_{kind}_{end}"]


def test_a_published_law_has_a_mean_and_no_new_run() -> None:
    found = predict(published("besiroglu-2024"), PLANNED)
    page = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    for row, n, d in zip(page["results"], PLANNED["n_params"], PLANNED["n_tokens"], strict=True):
        wanted = 1.8172 + 482.01 / n**0.3478 + 2085.43 / d**0.3658
        assert row["loss"]["mean"] == pytest.approx({"median": wanted, "lower": wanted, "upper": wanted})
        assert row["loss"]["new_run"] == {"median": None, "lower": None, "upper": None}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_params": 1e9}, "missing: n_tokens"),
        ({}, "missing: n_params, n_tokens"),
        ({"N": 1e9, "D": 1e10}, "predict needs n_params, n_tokens; missing: n_params, n_tokens"),
        ({"n_params": "large", "n_tokens": 1e10}, "n_params must be numbers, not 'large'"),
        (
            {"n_params": [1e9, -1.0, np.nan], "n_tokens": [1e10, 0.0, np.inf]},
            r"n_params\[1\] = -1 .*n_params\[2\] = nan .*n_tokens\[1\] = 0 .*n_tokens\[2\] = inf",
        ),
        ({"n_params": None, "n_tokens": 1e10}, r"n_params\[0\] = nan"),
        ({"n_params": 1e200, "n_tokens": 1e200}, r"n_params\[0\] = 1e\+200 \(1000 to 1e\+15\)"),
        ({"n_params": [1e9, 2e9], "n_tokens": [1e10, 2e10, 3e10]}, r"of one length.*'n_params': 2, 'n_tokens': 3"),
        ({"n_params": np.full((2, 3), 1e9), "n_tokens": 1e10}, r"n_params is one list .*shape \(2, 3\)"),
    ],
)
def test_inputs_that_are_no_runs_are_named(laplace: Posterior, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict(laplace, given)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.1, np.nan])
def test_a_level_is_a_probability(laplace: Posterior, level: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1, as 0\.9"):
        predict(laplace, PLANNED, level=level)
