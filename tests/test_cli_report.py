"""The command `report`."""

from pathlib import Path

import pytest
from command_line import ERROR, NOT_PASSED, USAGE, bayescale

import bayescale as bs

pytestmark = pytest.mark.usefixtures("no_lasting_cache")
DECISION = "goal: {budget: {flop: 1e22}}\nrisk: mean\n"


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = bs.data.load("simulated")
    found = bs.fit(runs, bs.laws.get("chinchilla"), drift=None, engine=bs.Laplace(draws=400), seed=1)
    return found.save(tmp_path_factory.mktemp("fit") / "fit.nc")


def test_a_report_is_written_and_the_exit_code_is_that_of_the_fit(fit: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = bayescale("report", fit, "-o", out, "--budget", "1e22", "--level", "0.8")
    assert done.exit_code == NOT_PASSED  # a Laplace preview is UNKNOWN
    assert done.stdout == f"Wrote {out}.\n"
    assert "80 % equal-tailed" in out.read_text("utf-8")


def test_a_decision_is_reported_as_its_plan(fit: Path, tmp_path: Path) -> None:
    (tmp_path / "decision.yaml").write_text(DECISION, "utf-8")
    done = bayescale("report", fit, "-o", tmp_path / "plan.md", "--decision", tmp_path / "decision.yaml")
    assert done.exit_code == NOT_PASSED
    text = (tmp_path / "plan.md").read_text("utf-8")
    assert text.startswith("**UNKNOWN: ")
    assert "\nTrain " in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-o", "r.html", "--budget", "1e22", "--decision", "d.yaml"], USAGE, "two questions"),
        (["-o", "r.html", "--level", "0.5"], USAGE, "are of a --budget"),
        (["-o", "r.docx"], ERROR, "written as .html"),
        (["-o", "nowhere/r.html"], ERROR, "does not exist"),
    ],
)
def test_what_is_asked_wrongly_is_said(
    words: list[str], code: int, said: str, fit: Path, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bayescale("report", fit, *words)
    assert done.exit_code == code
    assert said in done.stderr
