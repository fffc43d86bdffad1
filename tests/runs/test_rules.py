"""Every rule of a valid table is checked, all at once, and a row is never changed."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs import InvalidRuns, read_runs


def table(**cells):
    """Four good runs, with the cells of row 2 replaced."""
    good = {
        "run_id": ["a", "b", "c", "d"],
        "n_params": [1e8, 2e8, 4e8, 8e8],
        "n_tokens": [2e9, 4e9, 8e9, 1e10],
        "loss": [3.2, 3.0, 2.8, 2.7],
        "loss_se": [0.01, 0.01, np.nan, 0.02],
    }
    frame = pd.DataFrame(good).astype(object)
    for name, value in cells.items():
        frame.loc[2, name] = value
    return frame


BROKEN = [
    ("loss", float("nan"), "is missing"),
    ("loss", None, "is missing"),
    ("loss", pd.NA, "is missing"),
    ("loss", "", "is missing"),
    ("loss", "n/a", "is missing"),
    ("loss", float("inf"), "is not finite"),
    ("loss", "-Infinity", "is not finite"),
    ("loss", 0, "is not positive"),
    ("loss", -0.31, "is not positive"),
    ("loss", "diverged", "is not a plain number"),
    ("loss", "3,21", "is not a plain number"),
    ("loss", True, "is not a plain number"),
    ("loss", 3 + 1j, "is not a plain number"),
    ("loss", [3.0], "is not a plain number"),
    ("loss", pd.Timestamp("2024-01-01"), "is not a plain number"),
    ("loss", 60.0, "is above 50 nats per token"),
    ("n_params", "7Bn", "is not a plain number"),
    ("n_params", "approx 8B", "is not a plain number"),
    ("n_params", "13b-chat", "is not a plain number"),
    ("n_params", "1e3B", "is not a plain number"),
    ("n_params", "1,50,000,000", "is not a plain number"),
    ("n_tokens", "13TT", "is not a plain number"),
    ("n_tokens", "~15T", "is not a plain number"),
    ("loss", "3k", "is not a plain number"),
    ("n_params", "1e400", "is not finite"),
    ("n_params", 10**400, "is not finite"),
    ("n_params", 0, "is not positive"),
    ("n_params", 7, "is below 1,000 parameters"),
    ("n_params", None, "is missing"),
    ("n_tokens", 0, "is not positive"),
    ("n_tokens", 0.5, "is below one token"),
    ("n_tokens", "", "is missing"),
    ("loss_se", 0, "is not positive"),
    ("loss_se", -0.01, "is not positive"),
    ("loss_se", "small", "is not a plain number"),
    ("run_id", "", "is missing"),
    ("run_id", None, "is missing"),
]


@pytest.mark.parametrize(("name", "value", "rule"), BROKEN)
def test_a_broken_cell_is_named_with_row_column_and_value(name, value, rule):
    with pytest.raises(InvalidRuns, match=rule) as caught:
        read_runs(table(**{name: value}) if not isinstance(value, list) else listed_cell(name, value))
    (problem,) = caught.value.problems.to_dict("records")
    assert (problem["line"], problem["column"]) == (2, name)
    assert rule in problem["rule"]
    assert f"row 2: {problem['value']}" in str(caught.value)


def listed_cell(name, value):
    frame = table()
    frame.at[2, name] = value
    return frame


@pytest.mark.parametrize(
    "value",
    [
        *(
            4e8,
            400_000_000,
            "4e8",
            " 400000000 ",
            "4.E+08",
            Decimal("4e8"),
            np.float32(4e8),
            "400M",
            "0.4 b",
            "400000k",
        ),
        *("400,000,000", "400 000 000", "400_000_000", "400'000'000", "400\u00a0000\u00a0000", "400,000,000.0"),
    ],
)
def test_a_plain_number_is_read_however_it_is_written(value):
    assert read_runs(table(n_params=value)).table["n_params"][2] == 4e8


def test_a_blank_standard_error_is_not_given():
    assert np.isnan(read_runs(table()).table["loss_se"][2])


def test_names_given_twice_are_named_at_every_row():
    with pytest.raises(InvalidRuns, match="run_id is not unique in 2 rows") as caught:
        read_runs(table(run_id="a"))
    assert caught.value.problems["line"].tolist() == [0, 2]


@pytest.mark.parametrize("name", ["a\x00b", "a\x1b[31m", "\ud800"])
def test_a_name_that_no_file_can_hold_is_refused_before_a_fit(name):
    with pytest.raises(InvalidRuns, match="run_id holds a character that files and terminals cannot show") as caught:
        read_runs(table(run_id=name))
    assert caught.value.problems["line"].tolist() == [2]
    str(caught.value).encode()


def test_all_problems_come_in_one_message_and_dropping_drops_the_same_rows(caplog):
    frame = table(loss=0, n_tokens="many")
    frame.loc[0, "n_params"] = -1
    with pytest.raises(InvalidRuns, match="2 rows cannot be used") as caught:
        read_runs(frame)
    named = caught.value.problems[["line", "column"]].itertuples(index=False, name=None)
    assert set(named) == {(0, "n_params"), (2, "n_tokens"), (2, "loss")}
    runs = read_runs(frame, on_invalid="drop")
    assert runs.table["line"].tolist() == [1, 3]
    assert runs.left_out["line"].tolist() == sorted(set(caught.value.problems["line"]))
    assert "loss is not positive: 0" in runs.left_out["reason"][1]
    assert "2 of 4 rows are not used, invalid (rows 0, 2)" in caplog.text


def test_a_long_list_is_cut_and_counted():
    frame = pd.DataFrame({"n_params": 1e8, "n_tokens": 2e9, "loss": [0.0] * 50 + [3.0]})
    with pytest.raises(InvalidRuns, match=r"in 50 rows .* and 40 more") as caught:
        read_runs(frame)
    assert len(caught.value.problems) == 50


def test_a_blank_is_no_problem_where_the_other_two_settle_it():
    frame = table(n_tokens=None).assign(flop=[6 * 2e17, 6 * 8e17, 6 * 32e17, 6 * 8e18])
    assert read_runs(frame).table["n_tokens"][2] == 8e9


def test_tokens_derived_below_one_are_named():
    frame = table().drop(columns="n_tokens").assign(flop=[1e18, 1e18, 100.0, 1e19])
    with pytest.raises(InvalidRuns, match=r"n_tokens \(derived\) is below one token"):
        read_runs(frame)


@pytest.mark.parametrize(
    ("name", "scale", "said"),
    [
        ("n_params", 1e-6, "n_params runs from 100 to 800, read as parameters: it looks as if it were in millions"),
        ("n_params", 1e-9, "read as parameters"),
        ("n_tokens", 1e-9, "n_tokens runs from 2 to 10, read as tokens"),
        ("flop", 1e-15, r"flop is 1e-15 times .* in PFLOP. Say so: units=\{'flop': 'PFLOP'\}"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["error", "drop"])
def test_a_column_in_millions_or_billions_is_refused_once(name, scale, said, on_invalid):
    frame = table().assign(flop=lambda t: 6 * t["n_params"] * t["n_tokens"])
    frame[name] = frame[name] * scale
    with pytest.raises(InvalidRuns, match=said) as caught:
        read_runs(frame, on_invalid=on_invalid)
    assert len(caught.value.problems.query("column == @name")) == 1


def test_perplexities_are_not_fitted_as_losses_unless_the_unit_says_so():
    frame = table().assign(loss=[44.0, 30.0, 14.0, 9.0])
    with pytest.raises(InvalidRuns, match=r"median 22, read as nats per token.*perplexity"):
        read_runs(frame)
    assert read_runs(frame, loss_unit="centinats").table["loss"][0] == 44


@settings(max_examples=25)
@given(st.sets(st.integers(0, 19), min_size=1, max_size=19), st.sampled_from([np.nan, np.inf, -1.0, 0.0]))
def test_strict_and_drop_agree_on_the_bad_rows(bad, value):
    loss = np.linspace(3.5, 2.5, 20)
    loss[list(bad)] = value
    frame = pd.DataFrame({"N": np.geomspace(1e7, 1e9, 20), "D": 1e10, "loss": loss})
    with pytest.raises(InvalidRuns) as caught:
        read_runs(frame)
    assert set(caught.value.problems["line"]) == bad
    runs = read_runs(frame, on_invalid="drop")
    assert set(runs.left_out["line"]) == bad
    np.testing.assert_array_equal(runs.table["loss"], np.delete(loss, list(bad)))
