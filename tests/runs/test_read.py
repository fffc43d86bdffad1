"""A table is read as its writer meant it, or refused with the reason."""

import logging

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs import FlopsRule, read_runs

ROWS = [(1e8, 2e9, 3.2), (3e8, 6e9, 2.9), (1e9, 2e10, 2.6)]


def frame(**extra):
    return pd.DataFrame(ROWS, columns=["n_params", "n_tokens", "loss"]).assign(**extra)


def written(tmp_path, content, name="runs.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def numbers(runs):
    return runs.table[["n_params", "n_tokens", "loss"]].to_numpy()


# Dialects


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte-order mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
def test_every_dialect_of_a_text_table_reads_the_same(tmp_path, mark, end, separator, quote):
    rows = [("params", "tokens", "loss"), *ROWS]
    text = end.join(separator.join(f"{quote}{cell}{quote}" for cell in row) for row in rows) + end
    runs = read_runs(written(tmp_path, mark + text.encode()))
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.table["line"].tolist() == [2, 3, 4]


def test_lines_are_those_of_the_file_past_blank_lines_and_cells_of_two_lines(tmp_path):
    text = 'params,tokens,loss,note\n\n1e8,2e9,3.2,"two\nlines"\n\n3e8,6e9,2.9,x\n'
    assert read_runs(written(tmp_path, text)).table["line"].tolist() == [3, 6]


def test_parquet_reads_as_the_frame_it_was_written_from(tmp_path):
    table = frame(corpus=["A", "B", "A"])
    table.to_parquet(tmp_path / "runs.parquet")
    runs = read_runs(tmp_path / "runs.parquet")
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.labels("corpus")[0].tolist() == ["A", "B", "A"]
    assert runs.table_hash == read_runs(table).table_hash


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("bayescale.runs.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"bayescale\[parquet\]"):
        read_runs(written(tmp_path, b"PAR1", "runs.parquet"))


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("a", "runs.ods", r"kind of file '.ods' is not read.*\.csv.*\.parquet.*\.xlsx"),
        ("", "runs.csv", "is empty"),
        ("\n\n", "runs.csv", "is empty"),
        ("params,tokens,loss\n", "runs.csv", "a header and no rows"),
        ("params,loss,params,loss\n1,2,3,4\n", "runs.csv", r"'params' \(2 times\), 'loss' \(2 times\)"),
        (
            "params,tokens,loss\n1e8,2e9,3\n1e8,2e9\n1,2,3,4\n",
            "runs.csv",
            "3 columns, separated by commas, but line 3 has 2, line 4 has 4",
        ),
        (
            b"params,tokens,loss\n1e8,2e9,3\n1e8,2e9,\xe9\n",
            "runs.csv",
            r"line 3: byte 0xe9 is not UTF-8.*encoding='cp1252'",
        ),
        ('params,tokens,loss\n1e8,2e9,"3\n', "runs.csv", "from line 2: not a readable row"),
        (b"not parquet", "runs.parquet", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_is_no_table_says_why(tmp_path, content, name, said):
    with pytest.raises(ValueError, match=said):
        read_runs(written(tmp_path, content, name))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file '.*absent\.csv'"):
        read_runs(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_runs(tmp_path)


@pytest.mark.parametrize("source", [None, 3, [1, 2]])
def test_what_is_no_table_is_a_type_error(source):
    with pytest.raises(TypeError, match="a path or a pandas DataFrame"):
        read_runs(source)


def test_a_frame_is_not_changed_and_its_labels_are_the_lines():
    table = frame().set_axis([7, 3, 11], axis=0)
    before = table.copy()
    runs = read_runs(table)
    assert runs.table["line"].tolist() == [7, 3, 11]
    pd.testing.assert_frame_equal(table, before)


def test_a_named_index_is_a_column():
    runs = read_runs(frame(run_id=["a", "b", "c"]).set_index("run_id"))
    assert runs.table["run"].tolist() == ["a", "b", "c"]


def test_frames_without_one_header_or_without_rows_are_refused():
    with pytest.raises(ValueError, match="2 levels"):
        read_runs(pd.concat({"x": frame()}, axis=1))
    with pytest.raises(ValueError, match="no rows"):
        read_runs(frame().iloc[:0])
    with pytest.raises(ValueError, match=r"'loss' \(2 times\)"):
        read_runs(pd.concat([frame(), frame()[["loss"]]], axis=1))


@pytest.mark.parametrize("dtype", ["float64", "int64", "object", "str", "Int64", "string", "category", "uint64"])
def test_columns_of_any_type_give_the_same_numbers(dtype):
    table = frame()
    table[["n_params", "n_tokens"]] = table[["n_params", "n_tokens"]].astype("int64")
    table["n_params"] = table["n_params"].astype(dtype)
    np.testing.assert_array_equal(numbers(read_runs(table)), ROWS)


def test_integers_beyond_64_bits_are_read():
    table = frame()
    table["flop"] = pd.Series([6 * int(n) * int(d) * 10**6 for n, d, _ in ROWS], dtype=object)
    runs = read_runs(table.drop(columns="n_tokens"))
    np.testing.assert_allclose(runs.table["n_tokens"], [d * 1e6 for _, d, _ in ROWS])


# Columns


@pytest.mark.parametrize("size", ["N", "params", "Parameters", "Model Size", "num_params", "model-size", "SIZE"])
@pytest.mark.parametrize("tokens", ["D", "tokens", "Training Tokens", "num tokens"])
@pytest.mark.parametrize("loss", ["L", "Loss", "final_loss", "Validation Loss", "nll", "val loss"])
def test_common_headers_are_recognised(size, tokens, loss):
    runs = read_runs(frame().set_axis([size, tokens, loss], axis=1))
    assert runs.columns == {"n_params": size, "n_tokens": tokens, "loss": loss}


@pytest.mark.parametrize("flop", ["C", "FLOPs", "Training FLOP", "compute", "total_flops", "Training compute (FLOP)"])
def test_common_headers_of_compute_are_recognised(flop):
    table = pd.DataFrame({"N": [1e8, 1e9], flop: [1e19, 1e20], "loss_stderr": [0.01, 0.02], "loss": [3, 2.5]})
    assert read_runs(table).columns == {"n_params": "N", "flop": flop, "loss": "loss", "loss_se": "loss_stderr"}


@pytest.mark.parametrize("header", ["params (Mio)", "params_est", "tokens_B", "n_params_dense"])
def test_a_header_with_more_to_say_is_not_taken_for_the_plain_count(header):
    with pytest.raises(ValueError, match=r"No column is the model size.*Perhaps|No column is") as caught:
        read_runs(frame().rename(columns={"n_params": header}))
    assert header in str(caught.value)


def test_the_canonical_name_wins_over_other_names():
    runs = read_runs(frame(val_loss=1.0, loss_c4_val=2.0))
    assert runs.columns["loss"] == "loss"
    assert "val_loss" in runs.table


def test_two_headers_of_one_meaning_ask_for_a_mapping():
    table = frame(val_loss=1.0).rename(columns={"loss": "train_loss"})
    with pytest.raises(ValueError, match=r"'train_loss', 'val_loss'.*columns=\{'loss': 'train_loss'\}"):
        read_runs(table)
    assert read_runs(table, columns={"loss": "val_loss"}).table["loss"].tolist() == [1.0, 1.0, 1.0]


def test_a_mapping_frees_a_canonical_name_for_what_the_source_has_there():
    runs = read_runs(frame(loss_c4=[3.3, 3.0, 2.7]), columns={"loss": "loss_c4"})
    assert runs.table["loss"].tolist() == [3.3, 3.0, 2.7]
    assert runs.table["loss_in_source"].tolist() == [3.2, 2.9, 2.6]
    assert any("kept as 'loss_in_source'" in note for note in runs.notes)


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"n_parms": "n_params"}, r"'n_parms' is no meaning of a column.*Did you mean 'n_params'"),
        ({"loss": "lss"}, r"'loss' is given the header 'lss', which the table does not have.*Did you mean 'loss'"),
        ({"loss": "n_params", "n_params": "n_params"}, "'loss', 'n_params' are all given the header 'n_params'"),
    ],
)
def test_a_wrong_mapping_says_what_is_wrong(mapping, said):
    with pytest.raises(ValueError, match=said):
        read_runs(frame(), columns=mapping)


def test_wrong_mappings_are_told_in_one_message():
    with pytest.raises(ValueError, match=r"(?s)'nope' is no meaning.*header 'gone'"):
        read_runs(frame(), columns={"nope": "loss", "n_params": "gone"})


def test_with_neither_tokens_nor_compute_the_message_lists_columns_and_the_way_out():
    with pytest.raises(ValueError, match="No column is the tokens") as caught:
        read_runs(frame().rename(columns={"n_tokens": "data"}))
    for said in ("n_tokens", "flop", "n_params, data, loss", "columns={'n_tokens': 'HEADER'}", "--column"):
        assert said in str(caught.value)


def test_a_column_named_model_names_the_runs_only_where_each_has_its_own():
    assert read_runs(frame(model=["s", "m", "l"])).table["run"].tolist() == ["s", "m", "l"]
    families = read_runs(frame(model=["x", "x", "y"]))
    assert families.table["run"].tolist() == ["run-1", "run-2", "run-3"]
    assert families.labels("model")[1] == ("x", "y")


def test_other_columns_of_a_text_file_stay_as_written(tmp_path):
    text = "params,tokens,loss,version,corpus\n1e8,2e9,3.2,1.10,NA\n3e8,6e9,2.9,1.1,None\n"
    runs = read_runs(written(tmp_path, text))
    assert runs.labels("version")[1] == ("1.1", "1.10")
    assert runs.labels("corpus")[1] == ("NA", "None")


# Size, tokens, compute


@settings(max_examples=25)
@given(n=st.floats(1e6, 1e12), d=st.floats(1e8, 1e15), k=st.floats(1, 30), gone=st.sampled_from(["N", "D", "C"]))
def test_any_two_of_size_tokens_and_compute_settle_the_third(n, d, k, gone):
    table = pd.DataFrame({"N": [n, 2 * n], "D": [d, d], "C": [k * n * d, 2 * k * n * d], "loss": [3.0, 2.9]})
    runs = read_runs(table.drop(columns=gone), rule=FlopsRule(k))
    got = runs.table[["n_params", "n_tokens", "flop"]].to_numpy()
    np.testing.assert_allclose(got, table[["N", "D", "C"]].to_numpy(), rtol=1e-12)
    name = {"N": "n_params", "D": "n_tokens", "C": "flop"}[gone]
    assert any(note.startswith(f"{name} of every run is derived") and f"C = {k:g} N D" in note for note in runs.notes)


def test_a_derivation_is_logged_and_a_blank_cell_is_derived_by_name(caplog):
    table = frame(flop=[6 * 1e8 * 2e9, np.nan, 6 * 1e9 * 2e10])
    with caplog.at_level(logging.INFO, logger="bayescale"):
        runs = read_runs(table)
    assert runs.table["flop"].tolist() == [1.2e18, 6 * 3e8 * 6e9, 1.2e20]
    assert "flop of 1 of 3 runs (rows 1) is derived from n_params and n_tokens by the rule C = 6 N D." in caplog.text


def test_compute_that_disagrees_is_a_warning_with_rows_and_ratios(caplog):
    flop = np.array([6.5, 12.0, 5.0]) * [n * d for n, d, _ in ROWS]
    runs = read_runs(frame(flop=flop))
    (note,) = [note for note in runs.notes if "differs" in note]
    assert "in 2 of 3 runs" in note
    assert "row 1: 2" in note
    assert "row 2: 0.833" in note
    assert note in caplog.text
    assert [record.levelname for record in caplog.records if note in record.message] == ["WARNING"]
    np.testing.assert_array_equal(runs.table["flop"], flop)
    np.testing.assert_array_equal(numbers(runs), ROWS)


def test_compute_within_ten_percent_is_no_warning(caplog):
    assert not [n for n in read_runs(frame(flop=[6.5 * n * d for n, d, _ in ROWS])).notes if "differs" in n]
    assert "WARNING" not in caplog.text


# Rows left out


def test_excluded_rows_are_stored_and_need_not_be_valid():
    runs = read_runs(frame(loss=[3.2, np.nan, 2.6], name=["a", "b", "c"]), exclude=["b"])
    assert runs.table["run"].tolist() == ["a", "c"]
    assert runs.left_out.to_dict("records") == [{"line": 1, "run": "b", "reason": "left out by choice: named"}]


@pytest.mark.parametrize("flags", [[False, True, False], ["False", "true", "FALSE"], [0, 1, 0], ["0", "1", "0"]])
@pytest.mark.parametrize("value", [True, "True", "true", 1, [True], [1, "TRUE"]])
def test_truth_is_excluded_however_it_is_written(flags, value):
    runs = read_runs(frame(flag=flags), exclude={"flag": value})
    assert runs.left_out["line"].tolist() == [1]


@pytest.mark.parametrize("choice", [[1], 1, {"n_params": 3e8}, {"N": "300000000"}, {"corpus": "b"}, ["run-2"], "1"])
def test_a_choice_may_name_a_row_in_several_ways(choice):
    table = frame(corpus=["A", "B", "C"]).rename(columns={"n_params": "N"})
    assert read_runs(table, exclude=choice).left_out["run"].tolist() == ["run-2"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (["run-9", 77], r"(?s)no run or line 'run-9'. Did you mean 'run-\d'.*no run or line 77"),
        ({"corpsu": "A"}, r"no column 'corpsu'.*Did you mean 'corpus'"),
        ({"corpus": "Z"}, r"no run has corpus = 'Z'; its values are A, B"),
        ([0, 1, 2], "no run is left"),
    ],
)
def test_a_choice_that_names_nothing_is_an_error(choice, said):
    with pytest.raises(ValueError, match=said):
        read_runs(frame(corpus=["A", "B", "A"]), exclude=choice)


def test_repeated_rows_are_named_and_kept(caplog):
    runs = read_runs(pd.concat([frame(), frame().iloc[:2]], ignore_index=True))
    assert len(runs) == 5
    assert "2 of 5 rows repeat an earlier row exactly (rows 3, 4)" in caplog.text


def test_replicates_with_another_loss_are_no_repeats(caplog):
    read_runs(pd.concat([frame(), frame().assign(loss=lambda t: t["loss"] + 0.01)], ignore_index=True))
    assert "repeat" not in caplog.text


def test_the_loss_unit_is_stated():
    runs = read_runs(frame(), loss_unit="bits per byte")
    assert runs.loss_unit == "bits per byte"
    assert any("loss in bits per byte" in note for note in runs.notes)
    with pytest.raises(ValueError, match="loss_unit is the unit"):
        read_runs(frame(), loss_unit=" ")


def test_on_invalid_is_one_of_two():
    with pytest.raises(ValueError, match="'error' or 'drop', not 'ignore'"):
        read_runs(frame(), on_invalid="ignore")
