"""`Runs` keeps what was measured, and says what it is."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs import FlopsRule, InvalidRuns, Runs, read_runs

TABLE = pd.DataFrame(
    {
        "n_params": [1e8, 4e8, 1.6e9],
        "n_tokens": [2e9, 8e9, 3.2e10],
        "loss": [3.2, 2.8, 2.5],
        "corpus": ["B", "A", "B"],
    }
)


def test_the_constructor_fills_in_what_may_be_left_out():
    runs = Runs(TABLE)
    assert list(runs.table) == ["run", "n_params", "n_tokens", "flop", "loss", "loss_se", "line", "corpus"]
    assert runs.table["run"].tolist() == ["run-1", "run-2", "run-3"]
    np.testing.assert_array_equal(runs.table["flop"], 6 * TABLE["n_params"] * TABLE["n_tokens"])
    assert runs.table["loss_se"].isna().all()
    assert len(runs) == 3


def test_the_constructor_checks_the_rules():
    with pytest.raises(InvalidRuns, match=r"(?s)run is not unique.*loss is not positive"):
        Runs(TABLE.assign(loss=[3, 0, 2], run=["a", "b", "a"]))
    with pytest.raises(ValueError, match="n_tokens, loss lacks"):
        Runs(TABLE[["n_params"]])
    with pytest.raises(ValueError, match="no rows"):
        Runs(TABLE.iloc[:0])


def test_center_and_largest():
    runs = Runs(TABLE)
    # Geometric means of 1, 4, 16 and of 2, 8, 32 are 4 and 8.
    assert runs.center == pytest.approx({"n_params": 4e8, "n_tokens": 8e9})
    assert runs.largest == {"n_params": 1.6e9, "n_tokens": 3.2e10, "flop": 6 * 1.6e9 * 3.2e10}


# Groups


def test_labels_are_text_and_sorted():
    label, names = Runs(TABLE).labels("corpus")
    assert label.tolist() == ["B", "A", "B"]
    assert label.dtype.kind == "U"
    assert names == ("A", "B")


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (pd.Categorical(["B", "A", "B"], categories=["A", "B", "Z"]), ("A", "B")),
        ([2048, 512, 2048], ("2048", "512")),
        ([2048.0, 512.0, 2048.0], ("2048", "512")),
        ([0.5, 1.0, 0.5], ("0.5", "1")),
        (pd.array([1, 2, 1], dtype="Int64"), ("1", "2")),
        ([True, False, True], ("False", "True")),
        ([" A", "A ", "B"], ("A", "B")),
        (pd.Categorical([3, 1, 3], categories=[1, 2, 3]), ("1", "3")),
    ],
)
def test_labels_of_any_type_make_the_groups_that_have_runs(cells, names):
    assert read_runs(TABLE.assign(group=cells)).labels("group")[1] == names


def test_a_header_of_the_source_may_be_grouped_by():
    runs = read_runs(TABLE.rename(columns={"n_params": "Model Size"}))
    assert runs.labels("Model Size")[1] == ("100000000", "1600000000", "400000000")


def test_an_unknown_grouping_column_lists_the_columns():
    with pytest.raises(ValueError, match=r"no column 'corpsu'.*n_params.*corpus.*Did you mean 'corpus'"):
        Runs(TABLE).labels("corpsu")


@pytest.mark.parametrize("blank", [None, np.nan, "", "  "])
def test_blank_labels_list_their_rows(blank):
    runs = Runs(TABLE.assign(corpus=["A", blank, "B"]))
    with pytest.raises(ValueError, match=r"1 of 3 runs have no label in 'corpus': run-2 \(at 2\)"):
        runs.labels("corpus")


# The hash


@settings(max_examples=25)
@given(st.permutations([0, 1, 2, 3]), st.permutations([5, 8, 13]), st.sampled_from(["float64", "object", "str"]))
def test_order_of_columns_row_labels_and_types_leave_the_hash(order, labels, dtype):
    table = TABLE.iloc[:, list(order)].set_axis(list(labels), axis=0).assign(seed=1)
    table["loss"] = table["loss"].astype(dtype)
    assert read_runs(table).table_hash == Runs(TABLE).table_hash


@pytest.mark.parametrize(
    "changed",
    [
        lambda: read_runs(TABLE.assign(loss=[3.2, 2.8, np.nextafter(2.5, 3)])),
        lambda: read_runs(TABLE.assign(n_tokens=TABLE["n_tokens"] + 1)),
        lambda: read_runs(TABLE.assign(loss_se=0.01)),
        lambda: read_runs(TABLE.iloc[::-1]),
        lambda: read_runs(TABLE.iloc[:2]),
        lambda: read_runs(TABLE.assign(run=["a", "b", "c"])),
        lambda: read_runs(TABLE, rule=FlopsRule(5.9)),
        lambda: read_runs(TABLE, loss_unit="bits per token"),
    ],
)
def test_the_hash_changes_with_the_content(changed):
    assert changed().table_hash != Runs(TABLE).table_hash


# Rows left out


def test_without_keeps_the_rows_with_the_reason():
    runs = read_runs(TABLE.assign(run=["a", "b", "c"]))
    fewer = runs.without(["b"]).without({"n_params": 1e8})
    assert fewer.table["run"].tolist() == ["c"]
    assert fewer.left_out.to_dict("records") == [
        {"line": 1, "run": "b", "reason": "left out by choice: named"},
        {"line": 0, "run": "a", "reason": "left out by choice: n_params = 100000000"},
    ]
    assert (len(runs), len(runs.left_out)) == (3, 0)


def test_without_refuses_what_is_not_there_and_to_leave_nothing():
    runs = read_runs(TABLE.assign(run=["a", "b", "c"]))
    with pytest.raises(ValueError, match="All 3 runs are left out"):
        runs.without(["a", "b", "c"])
    with pytest.raises(ValueError, match="no run or line 'z'"):
        runs.without(["z"])


# A saved table


def test_runs_survive_their_dict_and_columns():
    runs = read_runs(
        TABLE.assign(name=["a", "b", "c"], loss=[3.2, np.nan, 2.5], loss_se=[0.01, 0.01, np.nan]),
        on_invalid="drop",
        rule=FlopsRule(6.5),
        loss_unit="bits per byte",
    )
    saved = json.loads(json.dumps(runs.to_dict(), allow_nan=False))
    columns = {name: np.asarray(runs.table[name]) for name in runs.table}
    again = Runs.from_dict(saved, pd.DataFrame(columns))
    pd.testing.assert_frame_equal(again.table, runs.table)
    pd.testing.assert_frame_equal(again.left_out, runs.left_out)
    assert again.to_dict() == runs.to_dict()


def test_another_table_is_not_taken_for_the_saved_one():
    runs = Runs(TABLE)
    with pytest.raises(ValueError, match="is not the one that was saved"):
        Runs.from_dict(runs.to_dict(), TABLE.assign(loss=[3.2, 2.8, 2.4]))


def test_to_dataframe_is_a_copy():
    runs = Runs(TABLE)
    copy = runs.to_dataframe()
    copy.loc[0, "loss"] = 9.0
    assert runs.table["loss"][0] == 3.2


# What a person sees


def test_repr_states_units_rule_and_notes():
    text = repr(read_runs(TABLE, rule=FlopsRule(6.5), exclude=[1]))
    for said in ("Runs: 2 from DataFrame", "parameters", "tokens", "FLOPs", "nats per token", "C = 6.5 N D"):
        assert said in text
    assert "left out: 1 of 3 rows" in text


def test_html_is_escaped():
    page = read_runs(TABLE.assign(corpus="<script>x</script>", **{"<b>": 1}))._repr_html_()
    assert "<script>" not in page
    assert "<b>:" not in page
    assert "&lt;script&gt;" in page
