"""The commands of the ledger: what they write down, print and refuse, and their exit codes."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import DONE, ERROR, NOT_PASSED, USAGE, bayescale

import bayescale as bs
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.diagnostics import Check

DEMO = Path(bs.__file__).parent / "runs/data/simulated.csv"
PASSED = (Check("r_hat", 1.001, "1.01", "PASS"),)
pytestmark = pytest.mark.usefixtures("no_lasting_cache")
RUN = ["--run", "a-17", "--n-params", 1e9, "--n-tokens", 2e10]

ledger = functools.partial(bayescale, "ledger")


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draws of a prior, as if every check had passed."""
    path = tmp_path_factory.mktemp("ledger") / "fit.nc"
    found = bs.fit(bs.read_runs(DEMO), Chinchilla(), drift=None, engine=bs.FromPrior(draws=200), seed=1)
    return dataclasses.replace(found, checks=PASSED).save(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "forecasts.jsonl"


def test_a_forecast_is_written_lands_and_is_shown(fit: Path, file: Path) -> None:
    written = ledger("write", fit, "--ledger", file, *RUN, "--json")
    assert written.exit_code == DONE, written.stderr
    entry = json.loads(written.stdout)
    assert entry == json.loads(file.read_text("utf-8"))
    assert (entry["run"], entry["n_params"], entry["n_tokens"]) == ("a-17", 1e9, 2e10)
    landed = ledger("land", "--ledger", file, "--run", "a-17", "--loss", 2.5, "--loss-unit", "nats per token", "--json")
    assert landed.exit_code == DONE, landed.stderr
    assert json.loads(landed.stdout)["loss"] == 2.5
    shown = ledger("show", "--ledger", file, "--json")
    assert shown.exit_code == DONE
    found = json.loads(shown.stdout)
    assert found["entries"] == [entry | {"landing": json.loads(landed.stdout)}]
    assert [row["run"] for row in found["scores"]] == ["a-17"]
    assert found == bs.Ledger(file).to_dict()


def test_it_is_told_in_words(fit: Path, file: Path) -> None:
    written = ledger("write", fit, "--ledger", file, *RUN)
    landed = ledger("land", "--ledger", file, "--run", "a-17", "--loss", 9)
    shown = ledger("show", "--ledger", file)
    for done, said in (
        (
            written,
            ("a-17: forecast, to be landed", "90 % equal-tailed", "diagnostics of the fit PASS", "nats per token"),
        ),
        (landed, ("a-17: landed", "9.000", "above")),
        (shown, ("0 open forecasts, 1 landed", "held 0 of 1 run", "How little few runs tell")),
    ):
        assert done.exit_code == DONE
        for part in said:
            assert part in done.stdout, part


def test_a_fit_that_did_not_pass_exits_3_and_is_written_down(fit: Path, file: Path, tmp_path: Path) -> None:
    other = dataclasses.replace(bs.load(fit), checks=()).save(tmp_path / "unknown.nc")
    done = ledger("write", other, "--ledger", file, *RUN)
    assert done.exit_code == NOT_PASSED
    assert "UNKNOWN" in done.stdout
    assert bs.Ledger(file).entries()[0]["diagnostics"] == "UNKNOWN"
    assert ledger("show", "--ledger", file).exit_code == DONE


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["write", "none.nc", *RUN], ERROR, "There is no saved fit none.nc"),
        (["write", "FIT", "--run", "b", "--n-params", -1, "--n-tokens", 2e10], ERROR, "n_params[0] = -1"),
        (["write", "FIT", *RUN], ERROR, "'a-17' was forecast on"),
        (["write", "FIT", *RUN, "--group", "B"], ERROR, "Unknown group 'B'"),
        (["write", "FIT", "--run", "b", "--n-params", 1e9], USAGE, "--n-tokens"),
        (["land", "--run", "b", "--loss", 2.5], ERROR, "open are: a-17"),
        (["land", "--run", "a-17", "--loss", "nan"], ERROR, "positive finite number"),
        (["land", "--run", "a-17", "--loss", 2.5, "--loss-unit", "perplexity"], ERROR, "not in perplexity"),
        (["land", "--run", "a-17"], USAGE, "--loss"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[Any], code: int, said: str, fit: Path, file: Path) -> None:
    assert ledger("write", fit, "--ledger", file, *RUN).exit_code == DONE
    before = file.read_bytes()
    done = ledger(*(fit if word == "FIT" else word for word in words), "--ledger", file)
    assert done.exit_code == code
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == before


def test_a_ledger_that_is_not_there_is_named_and_not_made(file: Path, fit: Path) -> None:
    for words in (["show"], ["land", "--run", "a", "--loss", 2]):
        done = ledger(*words, "--ledger", file)
        assert done.exit_code == ERROR
        assert "There is no ledger" in done.stderr
    done = ledger("write", fit, "--ledger", file.parent / "none" / "l.jsonl", *RUN)
    assert done.exit_code == ERROR
    assert "does not exist" in done.stderr
    assert not list(file.parent.iterdir())


def test_bad_lines_are_named(file: Path) -> None:
    file.write_text("half\n{}\n", "utf-8")
    done = ledger("show", "--ledger", file)
    assert done.exit_code == ERROR
    assert "line 1: not JSON" in done.stderr
    assert "line 2: no entry" in done.stderr
