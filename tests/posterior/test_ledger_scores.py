"""Claims about what a ledger shows: scores are their definitions, and the page says how little they tell."""

import itertools
import json

import numpy as np
import pytest
from command_line import strict
from simulated_fits import NOISE, table
from written_ledgers import RUN, SIDES, many, scored, text

from bayescale.posterior.entries import PROBABILITIES
from bayescale.posterior.ledger import Ledger, standing
from bayescale.posterior.posterior import Posterior

EVIL = "<script>alert('$x_1$')</script>"


def test_scores_are_what_their_definitions_say(ledger: Ledger, laplace: Posterior) -> None:
    entries = scored(ledger, laplace)
    found = ledger.scores().to_dict("records")
    assert [row["run"] for row in found] == [e["run"] for e in entries]
    assert [row["bin"] for row in found] == ["inside", "1 to 3", "3 to 10", "10 to 30", "over 30", "1 to 3"]
    for row, e in zip(found, entries, strict=True):
        y, q = np.log(e["landing"]["loss"]), dict(zip(PROBABILITIES, np.log(e["quantiles"]["law alone"]), strict=True))
        for percent, (low, high) in SIDES.items():
            assert row[f"covered_{percent}"] == (q[low] <= y <= q[high])
        missed = max(q[0.05] - y, 0) + max(y - q[0.95], 0)
        assert row["interval_score"] == pytest.approx(100 * (q[0.95] - q[0.05] + 20 * missed))
        assert row["error_percent"] == pytest.approx(100 * (q[0.5] - y), abs=1e-9)
        assert row["fit"] == e["fit"]["fingerprint"]
        edges = [0, *((a + b) / 2 for a, b in itertools.pairwise(PROBABILITIES)), 1]
        pinball = [2 * (p - (y < x)) * (y - x) for p, x in q.items()]
        assert row["crps"] == pytest.approx(100 * np.dot(np.diff(edges), pinball))
    assert [row["covered"] for row in found] == [False, True, True, True, True, False]


def test_the_summary_counts_each_run_once(ledger: Ledger, laplace: Posterior) -> None:
    scored(ledger, laplace)
    summary, found = ledger.summary().set_index("bin"), ledger.scores()
    assert list(summary.index) == ["inside", "1 to 3", "3 to 10", "10 to 30", "over 30", "all"]
    assert list(summary["runs"]) == [1, 2, 1, 1, 1, 6]
    assert summary.loc["all", "coverage_90"] == pytest.approx(4 / 6)
    assert summary.loc["1 to 3", "coverage_90"] == 0.5
    assert summary.loc["all", "bias_percent"] == pytest.approx(found["error_percent"].mean())


def test_good_forecasts_are_covered_as_often_as_they_say(ledger: Ledger, laplace: Posterior) -> None:
    """Runs of the law behind the table, among the runs of the fit, 40 of them."""
    new = table(40, seed=9, noise=NOISE)
    for i, row in new.iterrows():
        ledger.write(laplace, f"{i}", n_params=row["n_params"], n_tokens=row["n_tokens"], seed=int(str(i)))
        ledger.land(f"{i}", row["loss"])
    coverage = ledger.summary().set_index("bin").loc["all"]
    for percent in (50, 80, 90, 95):
        p = percent / 100
        assert coverage[f"coverage_{percent}"] == pytest.approx(p, abs=3.5 * np.sqrt(p * (1 - p) / 40))


def test_everything_is_json_and_a_table(ledger: Ledger, laplace: Posterior, drifting: Posterior) -> None:
    assert ledger.to_dict()["entries"] == []
    assert len(ledger.to_dataframe()) == len(ledger.scores()) == len(ledger.summary()) == 0
    scored(ledger, laplace)
    ledger.write(drifting, "drift", **RUN)
    found = json.loads(json.dumps(ledger.to_dict(), allow_nan=False))
    assert len(found["entries"]) == 8
    assert len(found["scores"]) == 6
    frame = ledger.to_dataframe()
    assert frame["loss"].notna().tolist() == [True] * 6 + [False] * 2
    assert frame["with_drift_median"].notna().tolist() == [False] * 7 + [True]
    assert frame["law_alone_lower"][0] == found["entries"][0]["quantiles"]["law alone"][1]
    for line in text(ledger).splitlines():
        strict(line)


def test_the_page_says_what_is_open_what_landed_and_how_little_it_shows(ledger: Ledger, laplace: Posterior) -> None:
    assert "no forecast has landed" in " ".join(repr(ledger).split())
    scored(ledger, laplace)
    page = " ".join(repr(ledger).split())
    assert "1 open forecast, 6 landed" in page
    for said in (
        "90 % equal-tailed",
        "held 4 of 6 runs",
        "from 0.27 to 0.94",
        "1 forecast not scored",
        "UNKNOWN: run 0",
    ):
        assert said in page, said
    assert page.count("inside") >= 4
    assert "GATE" not in page


def test_forecasts_beyond_a_gate_that_failed_are_said_first(ledger: Ledger, drifting: Posterior) -> None:
    inside = ledger.write(drifting, "inside", n_params=3e7, n_tokens=1e9)
    beyond = ledger.write(drifting, "beyond", n_params=3e11, n_tokens=1e13)
    assert (standing(inside), standing(beyond)) == ("UNKNOWN", "FAIL")
    page = " ".join(repr(ledger).split())
    assert page.startswith("GATE: no calibrated forecast beyond the data for 1 of 2 forecasts")
    assert "beyond: span_decades" in page
    ledger.land("beyond", 2.0)
    assert list(ledger.summary()["forecaster"].unique()) == ["with drift", "law alone"]
    # A path has no place to break at, however long it is.
    assert max(len(line) for line in repr(ledger).splitlines() if str(ledger.path) not in line) <= 80


def test_forecasters_that_did_not_forecast_the_same_runs_stand_side_by_side(
    ledger: Ledger, drifting: Posterior, laplace: Posterior
) -> None:
    for name, posterior, n in (("a", drifting, 3e7), ("b", laplace, 3e7), ("c", laplace, 3e12)):
        ledger.write(posterior, name, n_params=n, n_tokens=1e9)
        ledger.land(name, 4.0)
    held = " ".join(repr(ledger).partition("Share of new runs that the 90 %")[2].partition("Interval score")[0].split())
    assert "inside 1, 2 " in held
    assert "over 30 0, 1 - 0.00" in held


def test_long_ledgers_show_the_latest(ledger: Ledger, laplace: Posterior) -> None:
    many(ledger, laplace, 200)
    page = repr(ledger)
    assert "190 more forecasts" in page
    assert "\n199 " in page
    assert "\n150 " not in page


def test_names_are_text_in_html(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, EVIL, **RUN)
    ledger.land(EVIL, 2.3)
    assert "<script" not in ledger._repr_html_()
    assert "&lt;script&gt;" in ledger._repr_html_()


def test_the_calibration_of_a_ledger_is_drawn(ledger: Ledger, laplace: Posterior) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from bayescale.report.plots import plot_calibration, plot_calibration_data

    with pytest.raises(ValueError, match="nothing to draw yet"):
        plot_calibration(ledger)
    scored(ledger, laplace)
    drawn = plot_calibration_data(ledger).set_index("level")
    assert drawn.loc[0.9, "coverage"] == pytest.approx(4 / 6)
    assert drawn.loc[0.9, "lowest"] == pytest.approx(0.271, abs=1e-3)  # Clopper & Pearson's tables: 4 of 6
    ax = plot_calibration(ledger)
    assert list(ax.lines[1].get_ydata()) == drawn["coverage"].tolist()
    plt.close("all")
