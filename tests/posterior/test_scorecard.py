"""Claims about the scores of held-out runs: each against its definition, and how they are averaged."""

import numpy as np
import pandas as pd
import pytest

from bayescale.posterior.scorecard import Backtest, score


def held_out(loss: np.ndarray, factor: np.ndarray) -> pd.DataFrame:
    """Runs that reached these losses at these multiples of 1e20 FLOP."""
    n = len(loss)
    columns = {"run": [f"r{i}" for i in range(n)], "n_params": np.full(n, 1e9), "n_tokens": np.full(n, 2e10)}
    return pd.DataFrame(columns | {"flop": 1e20 * factor, "loss": loss})


@pytest.mark.parametrize("level", [0.9, 0.7])
def test_scores_are_those_of_the_draws_by_their_definitions(level: float) -> None:
    """Gneiting & Raftery 2007: equation 43 for the interval, 21 for the CRPS over all pairs."""
    rng = np.random.default_rng(0)
    draws = 0.7 + 0.1 * rng.standard_normal((301, 40))
    reached = np.exp(0.7 + 0.15 * rng.standard_normal(40))
    found = score(draws, held_out(reached, np.full(40, 2.0)), 1e20, level)
    y, alpha = np.log(reached), 1 - level
    for share in (50, 80, 90, 95):
        low, high = np.percentile(draws, [50 - share / 2, 50 + share / 2], axis=0)
        assert found[f"covered_{share}"].tolist() == [a <= b <= c for a, b, c in zip(low, y, high, strict=True)]
    low, high = np.percentile(draws, [100 * alpha / 2, 100 - 100 * alpha / 2], axis=0)
    inside = (low <= y) & (y <= high)
    assert 0 < inside.mean() < 1
    assert found["covered"].tolist() == inside.tolist()
    winkler = (high - low) + 2 / alpha * (low - y) * (y < low) + 2 / alpha * (y - high) * (y > high)
    pairs = np.abs(draws[:, None] - draws[None]).mean((0, 1)) / 2
    median = np.sort(draws, axis=0)[150]
    expected = {
        "interval_score": 100 * winkler,
        "crps": 100 * (np.abs(draws - y).mean(0) - pairs),
        "width_percent": 100 * (high - low),
        "error_percent": 100 * (median - y),
        "median": np.exp(median),
        "lower": np.exp(low),
        "upper": np.exp(high),
        "loss": reached,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)


def test_a_bin_holds_its_upper_edge_whatever_products_were_rounded() -> None:
    factor = np.array([1.2, 3, 3 * (1 + 1e-15), 3.001, 10, 10 * (1 + 1e-15), 10.01, 30, 30 * (1 + 1e-15), 30.1, 1e3])
    found = score(np.zeros((3, 11)), held_out(np.ones(11), factor), 1e20, 0.9)
    assert found["bin"].tolist() == ["1 to 3"] * 3 + ["3 to 10"] * 3 + ["10 to 30"] * 3 + ["over 30"] * 2
    np.testing.assert_allclose(found["extrapolation_factor"], factor)


def test_a_forecast_without_end_is_scored_without_a_warning() -> None:
    found = score(np.array([[0.0], [0.0], [2000.0]]), held_out(np.ones(1), np.full(1, 2.0)), 1e20, 0.9)
    assert found["upper"].tolist() == [np.inf]
    assert found["covered"].tolist() == [True]


HELD = [1, 1, 1, 0, 0, 1, 0]


def by_hand() -> Backtest:
    """Cells of 4, 1 and 2 forecasts: coverage .75, 0 and .5, whose mean is not that of the seven runs."""
    factor, bins = [3.0] * 4 + [10.0] * 3, ["1 to 3"] * 4 + ["1 to 3", "3 to 10", "3 to 10"]
    error = [1.0, 2.0, 3.0, 30.0, -4.0, 1.0, 7.0]
    score = [1.0, 1.0, 1.0, 5.0, 6.0, 2.0, 4.0]
    frame = pd.DataFrame({"forecaster": "law alone", "group": None, "factor": factor, "bin": bins})
    frame = frame.assign(error_percent=error, interval_score=score, crps=score, width_percent=np.arange(7.0))
    covered = {f"covered{end}": np.array(HELD, bool) for end in ("_50", "_80", "_90", "_95", "")}
    splits = pd.DataFrame({"group": [None, None], "factor": [3.0, 10.0]})
    return Backtest(frame.assign(**covered), splits, 0.9, 10, 1, "runs.csv", "nats per token")


def test_cells_are_means_of_their_runs_and_medians_of_their_errors() -> None:
    cells = by_hand().cells().set_index(["factor", "bin"])
    assert cells["runs"].tolist() == [4, 1, 2]
    assert cells["coverage_90"].tolist() == [0.75, 0.0, 0.5]
    assert cells["interval_score"].tolist() == [2.0, 6.0, 3.0]
    assert cells["bias_percent"].tolist() == [2.5, -4.0, 4.0]


def test_a_split_with_many_runs_weighs_no_more_than_one_with_few() -> None:
    summary = by_hand().summary().set_index("bin")
    assert summary.index.tolist() == ["1 to 3", "3 to 10", "all"]
    assert summary["cells"].tolist() == [2, 1, 3]
    assert summary["runs"].tolist() == [5, 2, 7]
    for name in ("coverage", "coverage_50", "coverage_95"):
        assert summary[name].tolist() == pytest.approx([0.375, 0.5, 1.25 / 3])
    assert summary.loc["all", "coverage"] != pytest.approx(np.mean(HELD))
    assert summary["interval_score"].tolist() == pytest.approx([4.0, 3.0, 11 / 3])
    assert summary["bias_percent"].tolist() == pytest.approx([-0.75, 4.0, 2.5 / 3])
    assert summary["width_percent"].tolist() == pytest.approx([(1.5 + 4) / 2, 5.5, (1.5 + 4 + 5.5) / 3])
