"""The command `recommend`: its words, its file, what it refuses, its exit codes."""

import csv
import dataclasses
from pathlib import Path

import pytest
from command_line import DONE, ERROR, NOT_PASSED, USAGE, bayescale, strict

import bayescale as bs
from bayescale.decision.constraint import Ratio, Tokens
from bayescale.decision.cost import Inference
from bayescale.decision.objective import Cost
from bayescale.decision.risk import CVaR
from bayescale.decision.target import AtMost, Target
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.diagnostics import Check

DEMO = Path(bs.__file__).parent / "runs/data/simulated.csv"
PASSED = (Check("r_hat", 1.001, "1.01", "PASS"),)
pytestmark = pytest.mark.usefixtures("no_lasting_cache")
H100 = ["--accelerator", "H100 SXM", "--utilisation", "40%", "--price", "2"]


@pytest.fixture(scope="module")
def posterior() -> bs.Posterior:
    """Draws around a law, as if every check had passed."""
    found = bs.fit(bs.read_runs(DEMO), Chinchilla(), drift=None, engine=bs.Laplace(draws=400), seed=1)
    return dataclasses.replace(found, checks=PASSED)


@pytest.fixture(scope="module")
def fit(posterior: bs.Posterior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return posterior.save(tmp_path_factory.mktemp("recommend") / "fit.nc")


def plan(fit: Path, *words: object) -> dict:
    done = bayescale("recommend", fit, *words, "--json")
    assert done.exit_code == DONE, done.stderr
    found = strict(done.stdout)
    return found | found["choice"]


def test_words_say_what_python_says(fit: Path, posterior: bs.Posterior) -> None:
    words = ["--budget", 1e22, "--max-tokens", "5e10..2e11", "--max-ratio", 15, "--risk", "cvar:0.2", "--compare", 5e9]
    log_sd = (11.301029995663981 - 10.698970004336019) / 2 / 1.6448536269514722 * 2.302585092994046
    same = bs.recommend(
        posterior,
        bs.Budget(flop=1e22),
        constraints=[Tokens(bs.LogNormal(1e11, log_sd)), Ratio(15)],
        risk=CVaR(0.2),
        compare=[5e9],
    ).to_dict()
    found = plan(fit, *words)
    assert found["n_params"] == pytest.approx(same["choice"]["n_params"], rel=1e-9)
    assert found["assumptions"] == same["assumptions"]


def test_dollars_buy_their_compute(fit: Path) -> None:
    """1e6 dollars at 2 an hour are 1.8e9 s of 0.4 x 989.4e12 FLOP/s."""
    assert plan(fit, "--dollars", 1e6, *H100)["flop"] == pytest.approx(1.8e9 * 0.4 * 989.4e12, rel=1e-6)


def test_a_lifetime_budget_pays_for_inference(fit: Path, posterior: bs.Posterior) -> None:
    found = plan(fit, "--budget", 1e22, "--lifetime", "--tokens-in", 1e12)
    assert found["flop"] + 2 * found["n_params"] * 1e12 == pytest.approx(1e22, rel=1e-6)
    cost = Cost("flop", inference=Inference(tokens_in=1e12))
    assert found["n_params"] == pytest.approx(bs.recommend(posterior, AtMost(cost, 1e22)).n_params, rel=1e-9)


def test_cheapest_in_dollars_for_a_target(fit: Path, posterior: bs.Posterior) -> None:
    found = plan(fit, "--target", 2.3, "--probability", 0.8, "--objective", "dollars", *H100)
    cost = Cost("dollars", bs.Hardware("H100 SXM", utilisation=0.4, price_per_hour=2))
    assert found["flop"] == pytest.approx(bs.recommend(posterior, Target(2.3, 0.8), objective=cost).flop, rel=1e-9)


def test_a_file_and_options_make_one_decision(fit: Path, tmp_path: Path) -> None:
    file = tmp_path / "decision.yaml"
    file.write_text("goal: {budget: {flop: 1e21}}\nconstraints: [{ratio: 10}]\nlevel: 0.8\n", "utf-8")
    from_file, bigger = plan(fit, "--decision", file), plan(fit, "--decision", file, "--budget", 1e22)
    assert from_file["level"] == bigger["level"] == 0.8
    assert from_file["flop"] == pytest.approx(1e21)
    assert bigger["flop"] == pytest.approx(1e22)
    assert from_file["n_tokens"] == pytest.approx(10 * from_file["n_params"])


def test_csv_holds_the_plan_and_its_rivals(fit: Path, tmp_path: Path) -> None:
    done = bayescale("recommend", fit, "--budget", 1e22, "--csv", tmp_path / "plan.csv")
    assert done.exit_code == DONE
    with (tmp_path / "plan.csv").open(encoding="utf-8", newline="") as lines:
        names = [row["rule"] for row in csv.DictReader(lines)]
    assert names[0] == "recommended"
    assert "20 tokens per parameter" in names


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], ERROR, "goal: is missing"),
        (["--budget", 1e22, "--dollars", 5], USAGE, "one currency"),
        (["--budget", 1e22, "--target", 2.0], USAGE, "two goals"),
        (["--budget", 1e22, "--tokens-in", 1e12], USAGE, "--lifetime"),
        (["--budget", 1e22, "--lifetime"], USAGE, "--tokens-in"),
        (["--budget", 1e22, "--risk", "cvr:0.1"], ERROR, "did you mean cvar"),
        (["--budget", 1e22, "--risk", "cvar:1e-5"], ERROR, "effective draws"),
        (["--budget", 1e22, "--max-tokens", "many"], ERROR, "constraints[0].tokens.available"),
        (["--budget", 1e22, "--price", "1..x"], USAGE, "--price takes NUMBER or LOW..HIGH"),
        (["--dollars", 5], ERROR, "hardware"),
        (["--budget", 1e22, "--objective", "dollar"], ERROR, "objective"),
    ],
)
def test_what_is_wrong_is_said(fit: Path, words: list[object], code: int, said: str) -> None:
    done = bayescale("recommend", fit, *words)
    assert done.exit_code == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_fit_that_has_not_passed_is_answered_and_exits_3(posterior: bs.Posterior, tmp_path: Path) -> None:
    failed = dataclasses.replace(posterior, checks=(Check("r_hat", 1.5, "1.01", "FAIL"),))
    done = bayescale("recommend", failed.save(tmp_path / "fit.nc"), "--budget", 1e22)
    assert done.exit_code == NOT_PASSED
    assert "FAIL" in done.stdout.splitlines()[0]


def test_the_schema_is_printed() -> None:
    done = bayescale("decision-schema")
    assert done.exit_code == DONE
    assert strict(done.stdout) == bs.decision_schema()


def test_the_decision_that_the_documentation_shows_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs/cli.md").read_text("utf-8")
    file = tmp_path / "decision.yaml"
    file.write_text(page.split("```yaml\n")[1].split("```")[0], "utf-8")
    found = bs.read_decision(file)
    assert isinstance(found["goal"], bs.Budget)
    assert (found["goal"].currency, found["goal"].amount) == ("dollars", 200e3)
    assert found["constraints"] == [Tokens(1e12, 1), Ratio(at_least=20)]
    assert (found["risk"], found["compare"]) == (CVaR(0.1), [8e9])
