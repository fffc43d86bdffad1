"""What `inspect` shows of a table: every column, every refusal, every doubt, and nothing fitted."""

import json

import pandas as pd
import pytest

from bayescale.runs import inspect_runs, read_runs

FRAME = pd.DataFrame(
    {
        "params (M)": [100, 300, "?", 1000],
        "tokens": [2e9, 6e9, 2e10, 0],
        "loss": [3.2, 2.9, 2.7, 2.6],
        "corpus": list("abab"),
    }
)


def test_every_column_is_shown_with_what_it_means_and_what_was_refused():
    found = inspect_runs(FRAME)
    rows = found.recognised.set_index("column")
    assert rows["meaning"]["params (M)"] == "n_params: the model size, in parameters"
    assert rows["unit"]["params (M)"] == "M parameters"
    assert rows["meaning"]["corpus"] == "column of the source, kept as it is"
    assert rows["used"].tolist() == [2] * 5
    assert rows["refused"].to_dict() == {"params (M)": 1, "tokens": 1, "loss": 0, "corpus": 0, "(derived)": 0}
    assert "is not positive (1)" in rows["why"]["tokens"]
    assert (found.n_rows, found.n_used) == (4, 2)
    for said in ("2 of 4 rows can be used", "row 2: '?'", "row 3: 0", "M parameters"):
        assert said in repr(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["is_readable"] is False


def test_what_is_shown_is_what_is_stored():
    good = FRAME.iloc[:2].reset_index(drop=True)
    runs = read_runs(good)
    pd.testing.assert_frame_equal(runs.recognised, inspect_runs(good).recognised)
    assert runs.notes == inspect_runs(good).notes
    assert runs.to_dict()["recognised"][0]["column"] == "params (M)"


def test_doubts_are_rows_with_their_rule():
    frame = pd.concat([FRAME.iloc[[0, 1, 1]]], ignore_index=True)
    (doubt,) = inspect_runs(frame).to_dict()["doubts"]
    assert (doubt["rule"], doubt["rows"], doubt["lines"], doubt["left_out"]) == ("duplicates", 1, [2], False)
    assert inspect_runs(frame, leave_out="duplicates").n_used == 2


def test_html_is_escaped():
    assert "<script>" not in inspect_runs(FRAME.assign(**{"<script>": 1}))._repr_html_()


@pytest.fixture
def bayescale(monkeypatch):
    import logging

    from typer.testing import CliRunner

    from bayescale.cli import app

    log = logging.getLogger("bayescale")
    handlers, level = log.handlers, log.level
    yield lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    log.handlers = handlers
    log.setLevel(level)


def test_the_command_shows_a_table_and_says_whether_it_can_be_read(bayescale, tmp_path):
    path = tmp_path / "runs.csv"
    FRAME.to_csv(path, index=False)
    done = bayescale("inspect", path, "--json")
    assert done.exit_code == 1
    assert "2 lines cannot be used" in done.stderr
    assert json.loads(done.stdout)["n_used"] == 2
    path.write_text("size;D;L\n100;2;3,2\n300;6;2,9\n", "utf-8")
    done = bayescale("inspect", path, "--unit", "n_params=M", "--unit", "n_tokens=B")
    assert done.exit_code == 0
    assert "2 of 2 rows can be used" in done.stdout
    done = bayescale("inspect", path, "--unit", "n_params")
    assert done.exit_code == 2


def test_a_column_in_a_wrong_unit_is_refused_in_every_row():
    table = pd.DataFrame({"params": [30.0, 70, 400], "tokens": [2e9, 6e9, 2e10], "loss": [3.2, 2.9, 2.6]})
    found = inspect_runs(table).recognised.set_index("column")
    assert found["used"].tolist() == [0, 0, 0, 0]
    assert found.loc["params", "refused"] == 3
