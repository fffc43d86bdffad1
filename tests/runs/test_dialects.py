"""A table means the same in every dialect that people's programs write; what may be two things is refused."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs import InvalidRuns, read_runs
from bayescale.runs.number import Form, decimal_mark, number

ROWS = [(1e8, 2e9, 3.2014), (3e8, 6e9, 2.9), (1e9, 2e10, 2.61873)]
NUMBERS = ["n_params", "n_tokens", "loss"]


def written(tmp_path, content, name="runs.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def numbers(runs):
    return runs.table[NUMBERS].to_numpy()


def said(runs, words):
    return [note for note in runs.notes if words in note]


# Separators, marks, encodings


@pytest.mark.parametrize(
    "text",
    [
        "params;tokens;loss\n100000000;2000000000;3,2014\n300000000;6000000000;2,9\n1e9;2e10;2,61873\n",
        "params;tokens;loss\n100.000.000;2.000.000.000;3,2014\n300.000.000;6.000.000.000;2,9\n1E9;20.000.000.000;2,61873\n",
        'params,tokens,loss\n"100,000,000","2,000,000,000",3.2014\n300M,6B,2.9\n1b,20B,2.61873\n',
        "params,tokens,loss\n100_000_000,2 000 000 000,3.2014\n300 M,6e9,2.9\n1B,.02T,2.61873\n",
        'params,tokens,loss\n"0,1B","2B","3,2014"\n"0,3B","6B","2,9"\n"1B","20B","2,61873"\n',
        "params|tokens|loss\n1e8|2e9|3.2014\n3e8|6e9|2.9\n1e9|2e10|2.61873\n",
        "sep=;\nparams;tokens;loss\n1e8;2e9;3,2014\n3e8;6e9;2,9\n1e9;2e10;2,61873\n",
    ],
    ids=["comma", "German", "English", "underscores", "comma-suffix", "bars", "declared"],
)
def test_the_numbers_are_read_whoever_wrote_them(tmp_path, text):
    np.testing.assert_array_equal(numbers(read_runs(written(tmp_path, text))), ROWS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_file_that_says_its_encoding_is_read(tmp_path, encoding):
    text = "params,tokens,loss,corpus\n1e8,2e9,3.2014,été\n3e8,6e9,2.9,été\n1e9,2e10,2.61873,x\n"
    runs = read_runs(written(tmp_path, text.encode(encoding)))
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.labels("corpus")[1] == ("x", "été")


def test_an_encoding_that_is_not_said_is_asked_for(tmp_path):
    text = "params;tokens;loss;corpus\n1e8;2e9;3,2014;été\n3e8;6e9;2,9;été\n1e9;2e10;2,61873;x\n"
    path = written(tmp_path, text.encode("cp1252"))
    with pytest.raises(ValueError, match=r"line 2: byte 0xe9 is not UTF-8.*encoding='cp1252'"):
        read_runs(path)
    assert read_runs(path, encoding="cp1252").labels("corpus")[1] == ("x", "été")
    with pytest.raises(ValueError, match="'klingon' is no encoding"):
        read_runs(path, encoding="klingon")
    with pytest.raises(ValueError, match=r"zero bytes, as UTF-16.*encoding='utf-16-le'"):
        read_runs(written(tmp_path, text.encode("utf-16-le")))


# One decimal mark a table


def test_what_both_marks_explain_is_refused_with_the_way_out(tmp_path):
    path = written(tmp_path, "params;tokens;loss\n50000000;2000000000;3,201\n80000000;4000000000;2,935\n")
    with pytest.raises(
        InvalidRuns, match=r'(?s)loss may be two numbers.*decimal="\." or ",".*line 2: \'3,201\''
    ) as caught:
        read_runs(path)
    assert caught.value.problems["line"].tolist() == [2, 3]
    assert read_runs(path, decimal=",").table["loss"].tolist() == [3.201, 2.935]
    with pytest.raises(InvalidRuns, match="loss has the median 3068, read as nats per token"):
        read_runs(path, decimal=".")
    with pytest.raises(ValueError, match=r"decimal is '\.' or ','"):
        read_runs(path, decimal="'")


def test_one_cell_settles_the_mark_of_the_others(tmp_path):
    text = "params;tokens;loss\n50000000;2000000000;3,201\n80000000;4000000000;2,93\n"
    runs = read_runs(written(tmp_path, text))
    assert runs.table["loss"].tolist() == [3.201, 2.93]
    assert said(runs, "decimal comma")


def test_a_single_cell_in_the_other_mark_is_named(tmp_path):
    text = "params;tokens;loss\n5e7;2e9;3.201\n8e7;4e9;2,93\n9e7;4e9;2.9\n1e8;8e9;2.8\n"
    with pytest.raises(InvalidRuns, match=r"loss is not a plain number .*line 3: '2,93'"):
        read_runs(written(tmp_path, text))
    all_three = text.replace("2.9\n", "2.900\n").replace("2.8\n", "2.800\n")
    with pytest.raises(InvalidRuns, match=r"line 3: '2,93'"):
        read_runs(written(tmp_path, all_three))


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("1,234", 1234, 1.234),
        ("1.234", 1.234, 1234),
        ("1,234.5", 1234.5, None),
        ("1.234,5", None, 1234.5),
        ("12,34", None, 12.34),
        ("1.234.567", None, 1234567),
        ("1 234,5", None, 1234.5),
        ("-1'234.5", -1234.5, None),
        ("1.5e3", 1500, None),
        ("1,5E+3", None, 1500),
        ("0,123", None, 0.123),
        ("1,23,456", None, None),
        ("1__000", None, None),
        ("1 2345", None, None),
        ("", np.nan, np.nan),
        ("N/A", np.nan, np.nan),
        ("0x10", None, None),
        ("١٢", None, None),
        ("1.4T", None, None),
    ],
)
def test_a_cell_by_each_mark(cell, point, comma):
    np.testing.assert_equal(number(cell, Form(".")), point)
    np.testing.assert_equal(number(cell, Form(",")), comma)


def test_nothing_to_go_by_is_no_mark():
    assert decimal_mark([pd.Series(["1,234", "5,678"])]) is None
    assert decimal_mark([pd.Series(["1,234", "5"]), pd.Series([2.5])]) == "."
    assert decimal_mark([pd.Series(["12", "a,b", "3,4,5"])]) == "."


SIZES = st.integers(1_000_000, 10**13)
COUNTS = st.integers(10_000_000, 10**15)
LOSSES = st.integers(50_000, 499_999).filter(lambda k: k % 10).map(lambda k: k / 1e5)


def grouped(value, mark):
    return f"{value:,}".replace(",", mark)


STYLES = {
    "plain": lambda v, mark: str(v),
    "comma": lambda v, mark: grouped(v, "." if mark == "," else ","),
    "space": lambda v, mark: grouped(v, " "),
    "underscore": lambda v, mark: grouped(v, "_"),
    "narrow": lambda v, mark: grouped(v, "\u202f"),
    "scientific": lambda v, mark: f"{v:.16e}".replace(".", mark),
    "suffix": lambda v, mark: f"{v // 1000}{mark}{v % 1000:03}k",
}


@settings(max_examples=150)
@given(
    rows=st.lists(st.tuples(SIZES, COUNTS, LOSSES), min_size=1, max_size=6),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    mark=st.sampled_from([".", ","]),
    style=st.sampled_from(sorted(STYLES)),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be-mark"]),
    end=st.sampled_from(["\n", "\r\n"]),
    order=st.permutations([0, 1, 2]),
    space=st.sampled_from(["", " "]),
)
def test_a_table_written_in_any_dialect_reads_back_the_same(
    tmp_path_factory, rows, separator, mark, style, encoding, end, order, space
):
    head = ["params", "tokens", "loss"]
    lines = [
        head,
        *([STYLES[style](n, mark), STYLES[style](d, mark), f"{x:.5f}".replace(".", mark)] for n, d, x in rows),
    ]
    text = end.join(separator.join(f'"{line[k]}{space}"' for k in order) for line in lines) + end
    content = b"\xfe\xff" + text.encode("utf-16-be") if encoding.endswith("mark") else text.encode(encoding)
    runs = read_runs(written(tmp_path_factory.mktemp("dialect"), content))
    np.testing.assert_allclose(numbers(runs), np.array(rows, dtype=float), rtol=1e-15)
    assert runs.table["line"].tolist() == list(range(2, len(rows) + 2))


# JSON lines


def test_json_lines_are_read_with_nested_records_and_keys_that_come_late(tmp_path):
    lines = [
        {"run": "a", "config": {"params": 10**8}, "tokens": 2 * 10**9, "loss": 3.2014},
        {"run": "b", "config": {"params": 3 * 10**8}, "tokens": 6e9, "loss": 2.9, "note": "x"},
        {"run": "c", "config": {"params": "1B"}, "tokens": "2e10", "loss": 2.61873, "note": None},
    ]
    path = written(tmp_path, "\n\n".join(map(json.dumps, lines)), "runs.jsonl")
    runs = read_runs(path, columns={"n_params": "config.params"})
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.table["line"].tolist() == [1, 3, 5]
    assert runs.table["note"].tolist() == ["", "x", ""]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"params": 1e8, "tok', "is no JSON record: the line may be cut"),
        ("[1, 2]", "is JSON, but no record"),
        ('{"params": 1e8, "params": 2e8}', "has a key twice"),
        ("[" * 100_000, "is no JSON record|is nested too deep"),
        ('{"a":' * 100_000, "is no JSON record|is nested too deep"),
    ],
    ids=["cut", "list", "twice", "deep", "deep records"],
)
def test_a_line_that_is_no_record_is_named_and_can_be_left_out(tmp_path, line, why):
    good = [json.dumps(dict(zip(["params", "tokens", "loss"], row, strict=True))) for row in ROWS]
    path = written(tmp_path, "\n".join([*good[:2], line, good[2]]), "runs.jsonl")
    with pytest.raises(InvalidRuns, match=rf"1 line cannot be used.*\n  ({why}) \(line 3:"):
        read_runs(path)
    runs = read_runs(path, on_invalid="drop")
    assert runs.table["line"].tolist() == [1, 2, 4]
    assert runs.left_out["line"].tolist() == [3]
    assert said(runs, "could not be read and are not used: 1 (line 3")


def test_a_file_without_a_record_shows_one(tmp_path):
    with pytest.raises(ValueError, match=r'no line is a JSON record such as {"params": 7e9'):
        read_runs(written(tmp_path, "params,tokens\n", "runs.jsonl"))


# Workbooks


def book(tmp_path, **sheets):
    path = tmp_path / "runs.xlsx"
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return path


def test_a_workbook_is_read_by_its_only_sheet_or_by_the_name_of_one(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["params", "tokens", "loss"]).astype({"params": "int64"})
    runs = read_runs(book(tmp_path, runs=frame))
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.table["line"].tolist() == [2, 3, 4]
    path = book(tmp_path, notes=pd.DataFrame({"a": [1]}), runs=frame)
    with pytest.raises(ValueError, match=r"2 sheets with cells in them \(notes, runs\).*sheet='notes'"):
        read_runs(path)
    np.testing.assert_array_equal(numbers(read_runs(path, sheet="runs")), ROWS)
    with pytest.raises(ValueError, match="no sheet 'x' with cells in it; there is notes, runs"):
        read_runs(path, sheet="x")


def test_a_workbook_that_cannot_be_read_says_so(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="cannot be read as an Excel workbook"):
        read_runs(written(tmp_path, b"PK\x03\x04 no", "runs.xlsx"))
    monkeypatch.setattr("bayescale.runs.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"bayescale\[excel\]"):
        read_runs(tmp_path / "runs.xlsx")


# Tables of other libraries


class Interchange:
    """A table that only speaks the DataFrame interchange protocol."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, **options):
        return self.table.__dataframe__(**options)


class Stream:
    """A table that only speaks the Arrow stream protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("wrap", [lambda table: table, Interchange, Stream], ids=["pyarrow", "interchange", "stream"])
def test_a_table_of_another_library_is_read(wrap):
    import pyarrow as pa

    columns = [pa.array(column) for column in zip(*ROWS, strict=True)]
    table = pa.table([*columns, pa.array(["x", "y", "x"]).dictionary_encode()], [*NUMBERS, "corpus"])
    runs = read_runs(wrap(table))
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.labels("corpus")[1] == ("x", "y")


def test_an_object_that_hands_over_no_table_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="hands over no table of columns"):
        read_runs(Interchange(Interchange(None)))
    monkeypatch.setattr("bayescale.runs.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"is read with pyarrow: pip install 'bayescale\[parquet\]'"):
        read_runs(Stream(None))


# Charts of experiment trackers


def test_a_wide_chart_is_explained(tmp_path):
    text = (
        "Step,a - loss,a - loss__MIN,a - loss__MAX,b - loss,b - loss__MIN,b - loss__MAX\n1,3,3,3,2,2,2\n2,2,2,2,1,1,1\n"
    )
    with pytest.raises(ValueError, match="one column a run") as caught:
        read_runs(written(tmp_path, text))
    for words in ("2 runs: a, b", "2 steps", "4 columns __MIN and __MAX that are copies", "a - loss__MIN"):
        assert words in str(caught.value)


def test_a_long_export_of_a_tracker_is_read():
    text = (
        "Name,State,Runtime,num_params,tokens_seen,val/loss,lr\n"
        "a,finished,10,1e8,2e9,3.2014,.001\nb,crashed,11,3e8,6e9,2.9,.001\nc,finished,12,1e9,2e10,2.61873,.001\n"
    )
    runs = read_runs(pd.read_csv(io.StringIO(text)))
    np.testing.assert_array_equal(numbers(runs), ROWS)
    assert runs.table["run"].tolist() == ["a", "b", "c"]


def test_reading_text_needs_no_optional_library(monkeypatch, tmp_path):
    for name in ("openpyxl", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    path = written(tmp_path, "params,tokens,loss\n1e8,2e9,3.2\n")
    assert len(read_runs(path)) == 1
