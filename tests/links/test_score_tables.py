"""Claims: scores are read as what they are said to be, and what nobody said is refused or noted, never guessed."""

import numpy as np
import pandas as pd
import pytest
from scored_runs import TASKS, runs, table

import bayescale as bs
from bayescale.model import score

RUNS = runs(12)


def read(frame: pd.DataFrame, tasks: object, **settings: object) -> bs.Scores:
    return bs.read_scores(bs.read_runs(frame), tasks, **settings)  # type: ignore[arg-type]


def test_columns_of_the_runs_own_table_are_scores() -> None:
    found = read(table(12), {"hella": {"column": "easy", "chance": 0.25, "questions": 2000}, "flat": 0.25})
    own = found.table[found.table["task"] == "hella"]
    np.testing.assert_allclose(own["score"], table(12)["easy"])
    np.testing.assert_allclose(own["loss"], table(12)["loss"])
    assert (own["questions"] == 2000).all()
    assert found.table.loc[found.table["task"] == "flat", "questions"].isna().all()
    assert found.tasks["flat"].chance == 0.25
    assert any("hella: easy read as shares of 1 (assumed: none exceeds 1)" in note for note in found.notes)


def test_a_long_table_says_the_same() -> None:
    wide = table(12)
    long = wide.melt(id_vars="run", value_vars=list(TASKS), var_name="task", value_name="score")
    a, b = read(wide, TASKS), read(wide, TASKS, table=long)
    pd.testing.assert_frame_equal(a.table, b.table, check_dtype=False)


def test_a_long_table_may_tell_the_questions_of_each_score(tmp_path) -> None:
    long = pd.DataFrame({"run": ["r0", "r1"], "task": "easy", "score": [0.5, 0.6], "questions": [100, 200]})
    long.to_csv(tmp_path / "scores.csv", index=False)
    assert read(table(12), {"easy": 0.25}, table=tmp_path / "scores.csv").table["questions"].tolist() == [100, 200]


def test_percent_is_said_and_never_guessed() -> None:
    percent = table(12).assign(easy=lambda t: 100 * t["easy"])
    with pytest.raises(ValueError, match=r"easy exceeds 1, read as a share: percent\? Say \{'unit': 'percent'\}"):
        read(percent, {"easy": 0.25})
    said = read(percent, {"easy": {"chance": 0.25, "unit": "percent"}})
    headed = read(percent.rename(columns={"easy": "easy (%)"}), {"easy": {"column": "easy (%)", "chance": 0.25}})
    for found in (said, headed):
        np.testing.assert_allclose(found.table["score"], table(12)["easy"])
    assert "easy: easy read as percent (given)" in said.notes
    assert "easy: easy (%) read as percent (told by the header)" in headed.notes


def test_a_run_without_a_score_is_noted() -> None:
    found = read(table(12).assign(easy=lambda t: t["easy"].where(t["run"] != "r3")), {"easy": 0.25})
    assert len(found.table) == 11
    assert "easy: no score of r3" in found.notes


def test_every_fault_is_named_in_one_message() -> None:
    bad = table(12).assign(easy=["x", "-0.1", *["0.5"] * 10])
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(bad, {"easy": 0.25, "chois": 0.25, "pairs": {}, "flat": 1.0, "written": {"chance": 0, "colum": "x"}})
    message = str(caught.value)
    for said in (
        "holds what is no number (row 0: 'x')",
        "is below 0, which no score is (row 1: '-0.1')",
        "no column 'chois'. Did you mean 'choice'?",
        "pairs: chance is missing",
        "flat: chance is a share, 0 or more and below 1",
        "written: no setting 'colum'; there are column, chance, questions, unit. Did you mean 'column'?",
    ):
        assert said in message


def test_every_fault_of_a_long_table_is_named() -> None:
    long = pd.DataFrame({"run": ["r0", "r0", "zz"], "task": ["easy", "easy", "easy"], "score": [0.5, 0.6, 0.7]})
    with pytest.raises(ValueError, match=r"(?s)no such runs.*zz.*stands twice \(row 1: r0, easy\).*pears: no row"):
        read(table(12), {"easy": 0.25, "pears": 0.5}, table=long)


def test_half_a_question_either_way_is_the_empirical_log_odds() -> None:
    """log((k + 1/2) / (n - k + 1/2)), with the variance 1 / (k + 1/2) + 1 / (n - k + 1/2) (Gart & Zweifel 1967)."""
    right, asked = np.array([0.0, 3.0, 40.0]), np.array([10.0, 10.0, 40.0])
    share, h = right / asked, score.half(asked)
    np.testing.assert_allclose(score.to_log_odds(share, h), np.log((right + 0.5) / (asked - right + 0.5)), rtol=1e-6)
    np.testing.assert_allclose(score.sampling(share, asked) ** 2, 1 / (right + 0.5) + 1 / (asked - right + 0.5))
    np.testing.assert_allclose(score.from_log_odds(np.asarray(score.to_log_odds(share, h)), h), share, atol=1e-6)
    assert (score.sampling(share, np.full(3, np.nan)) == 0).all()
