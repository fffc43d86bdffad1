"""The command line: what it prints where, and the exit code that a program may rely on."""

import contextlib
import dataclasses
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from command_line import DONE, ERROR, INTERRUPTED, NOT_PASSED, USAGE, bayescale, strict

import bayescale as bs
from bayescale import _cli_demo
from bayescale.cli import app
from bayescale.posterior.diagnostics import Check

DEMO = Path(bs.__file__).parent / "runs/data/simulated.csv"
FAILED = (Check("r_hat", 1.23, "1.01", "FAIL", "draw more"),)
pytestmark = pytest.mark.usefixtures("no_lasting_cache")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def fitted(folder: Path) -> Any:
    """`fit --json` of the demonstration's table; the file is in ``folder / "fit.nc"``."""
    return bayescale("fit", DEMO, "-o", folder / "fit.nc", "--chains", 2, "--seed", 2, "--json")


@pytest.fixture(scope="module")
def fit(fitted: Any, folder: Path) -> Path:
    assert fitted.exit_code == DONE, fitted.stderr
    return folder / "fit.nc"


@pytest.fixture(scope="module")
def grouped(folder: Path) -> Path:
    """A fit in groups A, B, C; draws of the prior, since only names matter here."""
    frame = pd.read_csv(DEMO).assign(corpus=["A", "B", "C"] * 21)
    frame.to_csv(folder / "groups.csv", index=False)
    words = ["--group-by", "corpus", "--engine", "prior", "--draws", 500]
    done = bayescale("fit", folder / "groups.csv", "-o", folder / "g.nc", *words)
    assert done.exit_code == NOT_PASSED
    return folder / "g.nc"


def test_fit_prints_json_and_nothing_else(fitted: Any) -> None:
    found = strict(fitted.stdout)
    assert found["diagnostics"] == "PASS"
    assert found["kind"] == "eti"
    assert found["info"]["seed"] == 2
    assert found["info"]["chains"] == 2
    letters = found["results"][0]["quantities"]
    assert letters["alpha"]["lower"] < letters["alpha"]["median"] < letters["alpha"]["upper"]
    assert letters["E"]["unit"] == "nats per token"
    assert found["runs"]["rule"] == {"rule": "FlopsRule", "k": 6.0}
    assert Path(found["file"]).is_file()


def test_fit_recovers_the_law_behind_the_simulated_table(fitted: Any) -> None:
    """Constants of Besiroglu et al. 2024, within six posterior standard deviations of the medians."""
    letters = strict(fitted.stdout)["results"][0]["quantities"]
    for name, truth in {"E": 1.8172, "alpha": 0.3478, "beta": 0.3658}.items():
        sd = (letters[name]["upper"] - letters[name]["lower"]) / (2 * 1.645)
        assert abs(letters[name]["median"] - truth) < 6 * sd


def test_fit_says_in_words_what_was_read_and_assumed(folder: Path) -> None:
    done = bayescale("fit", DEMO, "-o", folder / "words.nc", "--engine", "laplace", "--seed", 5)
    assert done.exit_code == NOT_PASSED
    assert done.stdout.startswith("UNKNOWN")
    for said in ("63 runs", "C = 6 N D", "90 % equal-tailed", "nats per token", "LogNormal(0.35", "seed 5", "words.nc"):
        assert said in done.stdout, said


def test_check_shows_every_check_and_what_the_model_misses(fit: Path) -> None:
    done = bayescale("check", fit)
    assert done.exit_code == DONE
    names = ("r_hat", "ess_bulk", "ess_tail", "divergences", "e_bfmi", "tree_depth", "PSIS-LOO", "Outliers", "p-value")
    for said in (*names, "Predictive check, 90 % equal-tailed interval"):
        assert said in done.stdout, said
    found = strict(bayescale("check", fit, "--json").stdout)
    assert found["diagnostics"] == "PASS"
    assert len(found["predictive_check"]) >= 5
    assert found["psis_loo"]["largest_pareto_k"] < 0.7


def test_allocate_gives_the_agreed_json(fit: Path, folder: Path) -> None:
    done = bayescale("allocate", fit, "--budget", "1e20", "--budget", "1e21", "--json", "--csv", folder / "plan.csv")
    assert done.exit_code == DONE
    found = strict(done.stdout)
    assert (found["level"], found["kind"], found["diagnostics"]) == (0.9, "eti", "PASS")
    assert [row["budget_flop"] for row in found["results"]] == [1e20, 1e21]
    for row in found["results"]:
        assert row["group"] is None
        assert row["no_optimum_share"] == 0
        assert isinstance(row["extrapolation_factor"], float)
        for name in ("n_opt_params", "d_opt_tokens", "tokens_per_parameter", "loss"):
            entry = row[name]
            assert {type(entry[end]) for end in ("median", "lower", "upper")} == {float}
            assert entry["lower"] < entry["median"] < entry["upper"]
        spent = 6 * row["n_opt_params"]["median"] * row["d_opt_tokens"]["median"]
        assert spent == pytest.approx(row["budget_flop"], rel=1e-6)
    assert pd.read_csv(folder / "plan.csv")["n_opt_params_median"].tolist() == [
        row["n_opt_params"]["median"] for row in found["results"]
    ]


def test_a_higher_level_gives_a_wider_interval(fit: Path) -> None:
    widths = []
    for level in (0.5, 0.9, 0.99):
        row = strict(bayescale("allocate", fit, "--budget", "1e22", "--level", level, "--json").stdout)["results"][0]
        widths.append(row["n_opt_params"]["upper"] / row["n_opt_params"]["lower"])
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


@pytest.mark.parametrize("budget", ["0", "-1e22", "inf", "nan", "10^22", "abc", "1e22FLOP", "1e-5", ""])
def test_what_is_no_budget_is_refused_by_name(budget: str, fit: Path) -> None:
    done = bayescale("allocate", fit, "--budget", "1e22", "--budget", budget, "--json")
    assert done.exit_code == ERROR
    assert done.stdout == ""
    assert f"budget 2 of 2, {budget!r}" in done.stderr
    assert "1e22" in done.stderr


def test_a_whole_number_of_any_length_is_a_budget(fit: Path) -> None:
    rows = strict(bayescale("allocate", fit, "--budget", "1e22", "--budget", 10**22, "--json").stdout)["results"]
    assert rows[0] == rows[1]


def test_a_missing_budget_is_a_usage_error(fit: Path) -> None:
    done = bayescale("allocate", fit)
    assert done.exit_code == USAGE
    assert "--budget" in done.stderr
    assert done.stdout == ""


def test_far_budgets_are_warned_of_and_their_intervals_grow(fit: Path) -> None:
    """The table ends at 1e21 FLOP."""
    budgets = ["1e20", "1e21", "1e23", "1e25", "1e27"]
    done = bayescale("allocate", fit, "--json", *(word for b in budgets for word in ("--budget", b)))
    assert done.exit_code == DONE
    rows = strict(done.stdout)["results"]
    assert [round(math.log10(row["extrapolation_factor"])) for row in rows] == [-1, 0, 2, 4, 6]
    widths = [row["n_opt_params"]["upper"] / row["n_opt_params"]["lower"] for row in rows[1:]]
    assert widths == sorted(set(widths))
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert ["far" in line for line in warnings if "1e23" not in line] == [True, True]
    assert "1e20" not in done.stderr


def test_predict_gives_the_mean_and_a_new_run(fit: Path) -> None:
    done = bayescale("predict", fit, "--n-params", "1e9", "--n-tokens", "2e10", "--n-tokens", "4e10", "--json")
    assert done.exit_code == DONE
    rows = strict(done.stdout)["results"]
    assert [(row["n_params"], row["n_tokens"]) for row in rows] == [(1e9, 2e10), (1e9, 4e10)]
    for row in rows:
        mean, new = row["loss"]["mean"], row["loss"]["new_run"]
        assert new["lower"] < mean["lower"] < mean["median"] < mean["upper"] < new["upper"]
    assert rows[1]["loss"]["mean"]["median"] < rows[0]["loss"]["mean"]["median"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--n-params", "1e9"], USAGE),
        (["--n-params", "1e9", "--n-params", "2e9", *["--n-tokens", "1e10"] * 3], USAGE),
        (["--n-params", "-1", "--n-tokens", "1e10"], ERROR),
        (["--n-params", "nan", "--n-tokens", "1e10"], ERROR),
        (["--n-params", "1e9", "--n-tokens", "1e10", "--level", "90"], ERROR),
        (["--n-params", "1e9", "--n-tokens", "1e10", "--group", "A"], ERROR),
    ],
)
def test_what_cannot_be_predicted_is_refused(words: list[str], code: int, fit: Path) -> None:
    done = bayescale("predict", fit, *words)
    assert done.exit_code == code
    assert done.stdout == ""
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "hint"), [("D", ""), ("a", "Did you mean 'A'?")])
def test_an_unknown_group_is_refused_with_the_known_ones(name: str, hint: str, grouped: Path) -> None:
    done = bayescale("allocate", grouped, "--budget", "1e22", "--group", name)
    assert done.exit_code == ERROR
    assert f"Unknown group {name!r}; known: A, B, C." in done.stderr
    assert hint in done.stderr
    assert "--new-group" in done.stderr or "NewGroup" in done.stderr


def test_every_group_is_answered_unless_one_is_named(grouped: Path) -> None:
    every = bayescale("allocate", grouped, "--budget", "1e20", "--json")
    assert every.exit_code == NOT_PASSED
    assert strict(every.stdout)["diagnostics"] == "UNKNOWN"
    assert [row["group"] for row in strict(every.stdout)["results"]] == ["A", "B", "C"]
    for words, label in (
        (["--group", "B"], "B"),
        (["--new-group"], "new group"),
        (["--population-mean"], "population mean"),
    ):
        rows = strict(bayescale("allocate", grouped, "--budget", "1e20", *words, "--json").stdout)["results"]
        assert [row["group"] for row in rows] == [label]


def test_only_one_choice_of_group_at_a_time(grouped: Path) -> None:
    done = bayescale("allocate", grouped, "--budget", "1e20", "--group", "A", "--new-group")
    assert done.exit_code == USAGE


@pytest.mark.parametrize(
    "words",
    [
        ["--pooling", "partial"],
        ["--pooling", "all"],
        ["--column", "n_params"],
        ["--fix", "alpha"],
        ["--fix", "alpha=x"],
        ["--prior", "alpha=0.35"],
        ["--prior", "alpha=0.35,0.2", "--fix", "alpha=0.35"],
        ["--engine", "laplace", "--chains", "4"],
        ["--nonsense"],
    ],
)
def test_wrong_usage_of_fit_exits_2(words: list[str], tmp_path: Path) -> None:
    done = bayescale("fit", DEMO, "-o", tmp_path / "fit.nc", *words)
    assert done.exit_code == USAGE
    assert done.stdout == ""
    assert words[0].lstrip("-") in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--law", "chinchila"], "Did you mean 'chinchilla'?"),
        (["--fix", "alhpa=0.35"], "Did you mean 'alpha'?"),
        (["--prior", "alpha=0.35,-1"], "spread"),
        (["--group-by", "origins"], "Did you mean 'origin'?"),
        (["--exclude", "no-such-run"], "no-such-run"),
        (["--exclude", "origin=nothing"], "nothing"),
        (["--column", "loss=losses"], "Did you mean 'loss'?"),
        (["--chains", "0"], "chains"),
        (["--seed", "-1"], "seed"),
        (["--flops-per-param-token", "0"], "positive"),
    ],
)
def test_errors_of_a_user_exit_1_with_a_way_out(words: list[str], said: str, tmp_path: Path) -> None:
    done = bayescale("fit", DEMO, "-o", tmp_path / "fit.nc", *words)
    assert done.exit_code == ERROR
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_missing_files_and_folders_are_named_before_any_work(tmp_path: Path) -> None:
    for words in (
        ("fit", tmp_path / "none.csv", "-o", tmp_path / "fit.nc"),
        ("fit", DEMO, "-o", tmp_path / "none" / "fit.nc"),
        ("check", tmp_path / "none.nc"),
        ("allocate", tmp_path / "none.nc", "--budget", "1e20"),
        ("check", DEMO),
    ):
        done = bayescale(*words)
        assert done.exit_code == ERROR
        assert "none" in done.stderr or "simulated.csv" in done.stderr
        assert done.stdout == ""


def test_debug_shows_where_an_error_arose(tmp_path: Path) -> None:
    done = bayescale("--debug", "check", tmp_path / "none.nc")
    assert done.exit_code == ERROR
    assert "Traceback" in done.stderr


def test_bad_losses_are_all_named(shared: Path, tmp_path: Path) -> None:
    table = shared / "cases/fit-10/bad_losses.csv"
    done = bayescale("fit", table, "-o", tmp_path / "fit.nc")
    assert done.exit_code == ERROR
    for line in (4, 7, 9, 11, 13, 15):
        assert f"line {line}" in done.stderr
    assert not list(tmp_path.iterdir())
    kept = bayescale("fit", table, "-o", tmp_path / "fit.nc", "--on-invalid", "drop", "--engine", "prior", "--json")
    assert kept.exit_code == NOT_PASSED
    assert [row["line"] for row in strict(kept.stdout)["runs"]["left_out"]] == [4, 7, 9, 11, 13, 15]


def test_choices_of_a_fit_are_kept_in_its_file(folder: Path) -> None:
    (folder / "notes.json").write_text('{"project": "a"}', "utf-8")
    words = ["--exclude", "run-1", "--flops-per-param-token", 8, "--fix", "beta=0.37", "--prior", "alpha=0.3,0.1"]
    words += ["--noise", "gaussian", "--metadata", folder / "notes.json", "--engine", "prior", "--seed", 11]
    assert bayescale("fit", DEMO, "-o", folder / "chosen.nc", *words).exit_code == NOT_PASSED
    found = bs.load(folder / "chosen.nc")
    assert found.runs is not None
    assert found.runs.left_out["run"].tolist() == ["run-1"]
    assert found.rule == bs.FlopsRule(8.0)
    assert dict(found.model.priors) == {"beta": bs.Fixed(0.37), "alpha": bs.LogNormal(0.3, 0.1)}
    assert found.model.noise == bs.Gaussian()
    assert found.metadata == {"project": "a"}
    assert found.info["seed"] == 11


def test_the_same_seed_gives_the_same_draws(fit: Path, fitted: Any, folder: Path) -> None:
    again = bayescale("fit", DEMO, "-o", folder / "again.nc", "--chains", 2, "--seed", 2, "--json")
    assert strict(again.stdout)["results"] == strict(fitted.stdout)["results"]


@pytest.mark.parametrize(("chains", "draws"), [(1, 1000), (1, 4), (2, 10)])
def test_too_few_chains_or_draws_never_pass(chains: int, draws: int, folder: Path) -> None:
    out = folder / f"{chains}x{draws}.nc"
    done = bayescale("fit", DEMO, "-o", out, "--chains", chains, "--draws", draws, "--seed", 1)
    assert done.exit_code == NOT_PASSED
    assert done.stdout.startswith(("UNKNOWN", "FAIL"))
    assert len([line for line in done.stderr.splitlines() if line.strip()]) <= 3
    if chains == 1:
        assert "R-hat needs at least 2 chains" in done.stderr
    later = bayescale("check", out, "--json")
    assert later.exit_code == NOT_PASSED
    assert strict(later.stdout)["diagnostics"] in ("UNKNOWN", "FAIL")
    assert bayescale("predict", out, "--n-params", 1e9, "--n-tokens", 2e10).stdout.startswith(("UNKNOWN", "FAIL"))


def test_divergences_are_counted_everywhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """In the summary, on standard error, in the file, and in what is made from it later."""
    sampled = bs.NUTS.draw

    def diverging(self: bs.NUTS, *words: Any) -> Any:
        found = sampled(self, *words)
        stats = {**found.stats, "diverging": np.zeros_like(found.stats["diverging"])}
        stats["diverging"][:, :20] = True
        return dataclasses.replace(found, stats=stats)

    monkeypatch.setattr(bs.NUTS, "draw", diverging)
    done = bayescale("fit", DEMO, "-o", folder / "diverging.nc", "--chains", 2, "--seed", 2)
    assert done.exit_code == NOT_PASSED
    assert done.stdout.startswith("FAIL: divergences 40")
    assert "40 of 2000 draws diverged" in done.stderr
    assert int(bs.load(folder / "diverging.nc").tree["sample_stats"]["diverging"].sum()) == 40
    later = bayescale("allocate", folder / "diverging.nc", "--budget", "1e20")
    assert later.exit_code == NOT_PASSED
    assert later.stdout.startswith("FAIL")
    assert "FAIL    divergences: 40" in bayescale("check", folder / "diverging.nc").stdout


def test_an_interrupt_ends_in_one_line(fit: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*args: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bs, "fit", interrupted)
    done = bayescale("fit", DEMO, "-o", tmp_path / "fit.nc")
    assert done.exit_code == INTERRUPTED
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_was_drawn_before_an_interrupt_is_written_on_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raised: list[int] = []

    def told(done: int, total: int) -> None:
        if done >= 4 and not raised:  # blocks of 100 steps, the first two of them warm-up
            raised.append(done)
            raise KeyboardInterrupt

    monkeypatch.setattr("bayescale.posterior.fitting.bar", lambda: contextlib.nullcontext(told))
    words = ["--chains", 1, "--draws", 600_000, "--keep-interrupted", "--seed", 1, "--json"]
    done = bayescale("fit", DEMO, "-o", tmp_path / "fit.nc", *words)
    assert done.exit_code == NOT_PASSED, done.stderr
    assert strict(done.stdout)["info"]["interrupted"] is True
    draws = bs.load(tmp_path / "fit.nc").tree["posterior"].sizes["draw"]
    assert 200 <= draws < 600_000


def test_laws_are_listed_with_their_priors() -> None:
    found = strict(bayescale("laws", "--json").stdout)
    assert [law["name"] for law in found] == bs.laws.names()
    chinchilla = next(law for law in found if law["name"] == "chinchilla")
    assert chinchilla["formula"] == "L(N, D) = E + A / N^alpha + B / D^beta."
    assert {p["name"] for p in chinchilla["parameters"]} >= {"alpha", "beta", "floor_share", "noise"}
    assert "chinchilla" in bayescale("laws").stdout


def test_simulate_makes_a_table_that_says_so(tmp_path: Path) -> None:
    """Without noise, the losses are those of the paper's constants."""
    words = ["--published", "besiroglu-2024", "--budget", "1e20", "--per-budget", 3, "--noise", 0, "--seed", 1]
    done = bayescale("simulate", "-o", tmp_path / "runs.csv", *words)
    assert done.exit_code == DONE
    frame = pd.read_csv(tmp_path / "runs.csv")
    law = 1.8172 + 482.01 * frame["n_params"] ** -0.3478 + 2085.43 * frame["n_tokens"] ** -0.3658
    assert frame["loss"].to_numpy() == pytest.approx(law.to_numpy(), abs=5.1e-6)
    assert frame["flop"].to_numpy() == pytest.approx(1e20, rel=1e-6)
    assert frame["origin"].str.startswith("simulated: besiroglu-2024, noise 0, seed 1").all()
    assert len(bs.read_runs(tmp_path / "runs.csv")) == 3


@pytest.mark.parametrize(
    "words", [["--published", "besiroglu"], ["--noise", "-1"], ["--per-budget", "1"], ["--tail", "0"]]
)
def test_what_cannot_be_simulated_is_refused(words: list[str], tmp_path: Path) -> None:
    done = bayescale("simulate", "-o", tmp_path / "runs.csv", *words)
    assert done.exit_code == ERROR
    assert not list(tmp_path.iterdir())


def test_the_simulated_table_is_made_by_the_command_that_it_names(tmp_path: Path) -> None:
    recipe = re.search("`bayescale (simulate .*?)`", bs.data.load("simulated").notes[-1])
    assert recipe
    assert bayescale(*recipe[1].split(), "-o", tmp_path / "runs.csv").exit_code == DONE
    assert (tmp_path / "runs.csv").read_text("utf-8") == DEMO.read_text("utf-8")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Any:
    """The demonstration; its files are in ``folder / "demo"``."""
    return bayescale("demo", "--out", folder / "demo")


def test_the_demonstration_names_its_files(demo: Any, folder: Path) -> None:
    assert demo.exit_code == DONE, demo.stderr
    named = [Path(line.strip()) for line in demo.stdout.split("Files written:")[1].splitlines() if line.strip()]
    assert sorted(named) == sorted((folder / "demo").iterdir())
    assert {path.suffix for path in named} == {".csv", ".json", ".nc", ".png"}
    assert strict((folder / "demo/frontier.json").read_text("utf-8"))["diagnostics"] == "PASS"
    fitted = bs.load(folder / "demo/fit.nc")
    assert fitted.law_alone
    assert (fitted.standing, fitted.law_alone.status) == ("PASS", "PASS")
    again = bs.read_runs(folder / "demo/runs.csv")
    assert (len(again), again.loss_unit) == (22, "nats per byte")


def test_the_demonstration_ends_with_what_held_out_runs_reached(demo: Any, folder: Path) -> None:
    """The losses and the computes of the runs stand in the table that the package brings."""
    table = pd.read_csv(DEMO.with_name("stdlib.csv"))
    largest = table.loc[(table["role"] == "fit") & (table["group"] == "stdlib"), "flops"].max()
    held = table[table["role"] == "held-out"].set_index("run")
    found = pd.read_csv(folder / "demo/held-out.csv")
    for name in ("law alone", "with drift"):
        assert sorted(found.loc[found["fit"] == name, "run"]) == sorted(held.index)
    of_run = held.loc[found["run"]]
    assert found["reached"].tolist() == of_run["loss"].tolist()
    np.testing.assert_allclose(found["extrapolation_factor"], of_run["flops"] / largest)
    holds = (found["lower"] <= found["reached"]) & (found["reached"] <= found["upper"])
    assert found["holds"].tolist() == holds.tolist()
    told = demo.stdout[demo.stdout.index("What held-out runs reached") : demo.stdout.index("Files written:")]
    assert (told.count("holds it"), told.count("MISSES it")) == (holds.sum(), (~holds).sum())
    assert max(map(len, told.splitlines())) <= 80
    for name, rows in found[found["extrapolation_factor"] > 1].groupby("fit"):
        assert f"{name}: {rows['holds'].sum()} of 3 intervals hold" in told


@pytest.mark.parametrize("failing", ["law alone", "with drift"])
def test_the_demonstration_fails_where_one_of_its_fits_does(
    failing: str, demo: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def saved(*words: Any, **settings: Any) -> bs.Posterior:
        found = bs.load(folder / "demo/fit.nc")
        if failing == "with drift":
            return dataclasses.replace(found, checks=FAILED)
        return dataclasses.replace(found, law_alone=dataclasses.replace(found.law_alone, checks=FAILED))  # type: ignore[type-var]

    monkeypatch.setattr(bs, "fit", saved)
    monkeypatch.setattr(_cli_demo, "_write", lambda *words: [])
    assert bayescale("demo", "--out", tmp_path).exit_code == NOT_PASSED


def test_the_page_of_laws_is_what_the_command_prints() -> None:
    page = Path(__file__).parents[1] / "docs/laws.md"
    assert page.read_text("utf-8") == bayescale("laws").stdout


def commands(of: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command, and every one of a group's, under the words that call it."""
    for word, command in of.commands.items():
        called = f"{name} {word}".strip()
        yield called, command
        yield from commands(command, called) if hasattr(command, "commands") else ()


def test_every_command_and_option_is_in_the_page_of_the_command_line() -> None:
    """Those of a group of commands in its own section."""
    page = (Path(__file__).parents[1] / "docs/cli.md").read_text("utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    for name, command in commands(typer.main.get_command(app)):
        first, *rest = name.split()
        assert first in sections
        where = sections[first] if rest else page
        assert not rest or f"bayescale {name} " in where
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert option in where, f"{name} {option}"
