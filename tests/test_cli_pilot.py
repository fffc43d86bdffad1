"""The command `pilot`: its words, its file, what it refuses, its exit codes."""

import dataclasses
from pathlib import Path

import pytest
from command_line import DONE, ERROR, USAGE, bayescale, strict

import bayescale as bs
from bayescale.decision.risk import CVaR
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.diagnostics import Check

DEMO = Path(bs.__file__).parent / "runs/data/simulated.csv"
pytestmark = pytest.mark.usefixtures("no_lasting_cache")


@pytest.fixture(scope="module")
def posterior() -> bs.Posterior:
    """Draws around a law, as if every check had passed."""
    found = bs.fit(bs.read_runs(DEMO), Chinchilla(), drift=None, engine=bs.Laplace(draws=400), seed=1)
    return dataclasses.replace(found, checks=(Check("r_hat", 1.001, "1.01", "PASS"),))


@pytest.fixture(scope="module")
def fit(posterior: bs.Posterior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return posterior.save(tmp_path_factory.mktemp("pilot") / "fit.nc")


def test_words_and_a_file_say_what_python_says(fit: Path, posterior: bs.Posterior, tmp_path: Path) -> None:
    file = tmp_path / "decision.yaml"
    file.write_text("goal: {budget: {flop: 1e21}}\nrisk: {cvar: 0.2}\n", "utf-8")
    words = ["--budget", 1e24, "--candidate", "1e8,2e10", "--candidate", "1e9,2e9", "--replicates", 2, "--batch", 2]
    done = bayescale("pilot", fit, "--decision", file, *words, "--json", "--csv", tmp_path / "pilots.csv")
    assert done.exit_code == DONE, done.stderr
    plan = bs.recommend(posterior, bs.Budget(flop=1e24), risk=CVaR(0.2))
    same = bs.next_pilot(plan, [(1e8, 2e10), (1e9, 2e9)], replicates=2, batch=2)
    assert strict(done.stdout) == strict(bayescale("pilot", fit, "--decision", file, *words, "--json").stdout)
    assert strict(done.stdout)["results"][0]["gain"] == pytest.approx(same.to_dict()["results"][0]["gain"], rel=1e-6)
    assert (tmp_path / "pilots.csv").read_text("utf-8").startswith("n_params,n_tokens,replicates,gain")


def test_a_grid_costs_at_most_what_it_may(fit: Path) -> None:
    done = bayescale("pilot", fit, "--budget", 1e24, "--most", 1e21)
    assert done.exit_code == DONE, done.stderr
    assert "What a pilot is worth" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], ERROR, "goal: is missing"),
        (["--budget", 1e24, "--candidate", "1e9"], USAGE, "--candidate takes N,D"),
        (["--budget", 1e24, "--candidate", "1e9,2e9", "--most", 1e20], USAGE, "give one"),
        (["--budget", 1e24, "--batch", 0], ERROR, "batch=0"),
        (["--budget", 1e24, "--risk", "cvr:0.1"], ERROR, "did you mean cvar"),
    ],
)
def test_what_is_wrong_is_said(fit: Path, words: list[object], code: int, said: str) -> None:
    done = bayescale("pilot", fit, *words)
    assert done.exit_code == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert not done.stdout
