"""What a person reads of a backtest: where it fails first, how little it shows, and a figure that says the same."""

import dataclasses
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from report_names import EVIL

from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.scorecard import ALL, ALONE, DRIFTS, LEVELS, Backtest, score
from bayescale.report.plots import plot_calibration, plot_calibration_data

SPLITS = (("A", 3.0, 2.0), (EVIL, 3.0, 2.0), (EVIL, 10.0, 8.0))


def forecasts(sd: float, seed: int) -> list[pd.DataFrame]:
    """Forecasts of five runs a split, each of them wide by so much of log loss."""
    rng = np.random.default_rng(seed)
    out = []
    for group, factor, times in SPLITS:
        size = np.full(5, 1e9)
        runs = {"run": [f"r{i}" for i in range(5)], "n_params": size, "n_tokens": 20 * size, "flop": 1e20 * times}
        table = pd.DataFrame(runs | {"loss": np.exp(1 + 0.02 * rng.standard_normal(5))})
        draws = 1 + sd * rng.standard_normal((200, 5))
        out.append(score(draws, table, 1e20, 0.9).assign(group=group, factor=factor))
    return out


def backtested(gate: tuple[str, ...] = ("PASS",) * 3, diagnostics: tuple[str, ...] = ("PASS",) * 3) -> Backtest:
    """Three splits of two groups, one of an evil name."""
    of = ((DRIFTS, 0.02), (ALONE, 0.005))
    rows = [f.assign(forecaster=name) for i, (name, sd) in enumerate(of) for f in forecasts(sd, i)]
    splits = [
        {
            "group": group,
            "factor": factor,
            "trained_on": 10,
            "forecast": 5,
            "largest_flop": 1e20,
            "gate": passed,
            "gate_failed": "" if passed == "PASS" else "steepening",
            "diagnostics_drift": diagnosed,
            "diagnostics_alone": "PASS",
            "diagnostics_bootstrap": None,
        }
        for (group, factor, _), passed, diagnosed in zip(SPLITS, gate, diagnostics, strict=True)
    ]
    predictions = pd.concat(rows, ignore_index=True)
    return Backtest(predictions, pd.DataFrame(splits), 0.9, 10, 1, f"{EVIL}.csv", "nats per token")


@pytest.fixture(scope="module")
def good() -> Backtest:
    return backtested()


@pytest.fixture(scope="module")
def bad() -> Backtest:
    """The last split fails the gate; the first, its sampler's checks."""
    return backtested(("PASS", "PASS", "FAIL"), ("FAIL", "UNKNOWN", "PASS"))


def flat(found: Backtest) -> str:
    return " ".join(repr(found).split())


def test_a_gate_that_failed_is_the_first_word_and_named_with_its_split(bad: Backtest, good: Backtest) -> None:
    assert flat(bad).startswith(
        f"GATE: {HOLLOW} for 1 of 3 splits, named below. FAIL: the fits of 1 of 3 splits failed their diagnostics; "
        "named below. UNKNOWN: the fits of 1 of 3 splits are approximations or lack their diagnostics; named below. "
        "Backtest of"
    )
    assert f"The gate did not pass - group {EVIL}, r = 10, trained on 10 runs: steepening" in flat(bad)
    assert flat(good).startswith(f"Backtest of {EVIL}.csv: 3 splits of 2 groups")
    assert "GATE" not in repr(good)
    assert "did not pass" not in repr(good)


def test_diagnostics_that_did_not_pass_are_named_with_their_split(bad: Backtest) -> None:
    assert "Diagnostics that did not pass - group A, r = 3, trained on 10 runs: FAIL of drift - group" in flat(bad)
    assert flat(bad).count("FAIL of") == flat(bad).count("UNKNOWN of drift") == 1


def test_the_page_says_how_little_one_table_can_show(good: Backtest) -> None:
    said = flat(good).split("How little one table can show")[1]
    assert "3 splits, of which at most 2 are independent" in said
    assert "15 forecasts of 3 budgets" in said  # r0 to r4 at 2e20 in either group, and at 8e20
    assert "a 90 % interval may hold all or none of them" in said


def test_the_page_shows_the_summary_with_kind_and_level(good: Backtest) -> None:
    assert "90 % equal-tailed" in flat(good)
    assert max(map(len, repr(good).splitlines())) <= 80
    overall = good.summary().set_index(["forecaster", "bin"]).loc[(ALONE, ALL)]
    line = next(line for line in repr(good).splitlines() if line.startswith(ALONE))
    shown = [float(cell) for cell in line.removeprefix(ALONE).split()]
    names = [*(f"coverage_{100 * p:g}" for p in LEVELS), "width_percent", "interval_score", "crps", "bias_percent"]
    assert shown == pytest.approx([overall[name] for name in names], rel=0.01, abs=0.006)


def test_names_are_text_in_html(bad: Backtest) -> None:
    page = bad._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.index("GATE") < page.index("Backtest of")


def test_a_backtest_without_a_drift_has_no_gate_on_its_page(good: Backtest) -> None:
    plain = good.splits.assign(gate=None, gate_failed="", diagnostics_drift=None, group=None)
    own = good.predictions[good.predictions["forecaster"] == ALONE].assign(group=None)
    text = flat(dataclasses.replace(good, splits=plain, predictions=own))
    assert text.startswith("Backtest of")
    assert "group None" not in text
    assert DRIFTS not in text


def test_calibration_is_drawn_from_the_summarys_means(good: Backtest) -> None:
    found, summary = plot_calibration_data(good), good.summary().set_index(["forecaster", "bin"])
    assert list(zip(found["forecaster"], found["level"], strict=True)) == [
        (f, p) for f in (DRIFTS, ALONE) for p in LEVELS
    ]
    rows: Any = found.itertuples()
    for row in rows:
        name = f"{100 * row.level:g}"
        assert row.coverage == summary.loc[(row.forecaster, ALL), f"coverage_{name}"]
        own: Any = good.predictions[good.predictions["forecaster"] == row.forecaster]
        means = own.groupby(["group", "factor"])[f"covered_{name}"].mean()
        assert (row.lowest, row.highest) == (means.min(), means.max())


def test_splits_of_a_table_without_groups_are_drawn(good: Backtest) -> None:
    third = good.predictions["factor"] == 10
    own = good.predictions[third].assign(group=None)
    found = plot_calibration_data(dataclasses.replace(good, predictions=own))
    assert found["lowest"].tolist() == found["coverage"].tolist() == found["highest"].tolist()


def test_calibration_is_drawn_into_the_axes_given(good: Backtest) -> None:
    figure = Figure()
    given = figure.subplots()
    assert plot_calibration(good, ax=given) is given
    assert plt.get_fignums() == []
    figure.canvas.draw()
    found = plot_calibration_data(good)
    for name in (DRIFTS, ALONE):
        line = next(line for line in given.lines if line.get_label() == name)
        np.testing.assert_array_equal(line.get_ydata(), found.loc[found["forecaster"] == name, "coverage"])
    assert "equal-tailed" in given.get_xlabel()


def test_a_figure_of_its_own_is_made_only_without_axes_and_tells_of_the_gate(bad: Backtest, good: Backtest) -> None:
    def words(found: Backtest) -> str:
        figure = plot_calibration(found).get_figure()
        assert isinstance(figure, Figure)
        return " ".join(t.get_text() for t in figure.findobj(Text))

    assert f"gate: {HOLLOW} for 1 of 3 splits" in words(bad)
    assert HOLLOW not in words(good)
    assert len(plt.get_fignums()) == 2
