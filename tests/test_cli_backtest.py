"""The command `backtest`: what it prints where, and its exit codes."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import DONE, ERROR, bayescale, strict

import bayescale as bs
from bayescale import _cli_options

pytestmark = pytest.mark.usefixtures("no_lasting_cache")
CHEAP = ("--engine", "laplace", "--draws", 200, "--resamples", 0, "--factor", 3, "--seed", 1)

backtest = functools.partial(bayescale, "backtest")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of Besiroglu et al.'s law (arXiv 2404.10102), five at each of three budgets."""
    flop = np.repeat([1e18, 1e19, 1e20], 5)
    size = np.sqrt(flop / 120) * np.tile(np.geomspace(0.4, 2.5, 5), 3)
    tokens = flop / 6 / size
    scatter = 0.005 * np.random.default_rng(0).standard_normal(15)
    loss = (1.8172 + 482.01 * size**-0.3478 + 2085.43 * tokens**-0.3658) * np.exp(scatter)
    path = tmp_path_factory.mktemp("backtest") / "runs.csv"
    pd.DataFrame({"n_params": size, "n_tokens": tokens, "loss": loss}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def done(table: Path) -> Any:
    """With drift and without, as JSON and as ``forecasts.csv``; of the prior, whose draws need no compiling."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cli_options, "engine", lambda name, settings: bs.FromPrior(settings["draws"]))
        return backtest(table, *CHEAP, "--json", "--csv", table.with_name("forecasts.csv"))


def test_the_command_prints_json_and_nothing_else(done: Any) -> None:
    """Exit code 0, though an approximation is never PASS."""
    assert done.exit_code == DONE, done.stderr
    found = strict(done.stdout)
    assert (found["level"], found["least"], found["seed"], found["loss_unit"]) == (0.9, 10, 1, "nats per token")
    (split,) = found["splits"]
    assert (split["factor"], split["trained_on"], split["forecast"], split["group"]) == (3, 10, 5, None)
    assert (split["gate"], split["diagnostics_alone"], split["diagnostics_bootstrap"]) == ("PASS", "UNKNOWN", None)
    assert [row["forecaster"] for row in found["predictions"]] == ["with drift"] * 5 + ["law alone"] * 5
    rows = [(row["forecaster"], row["bin"], row["runs"]) for row in found["summary"]]
    assert rows == [(name, b, 5) for name in ("with drift", "law alone") for b in ("3 to 10", "all")]


def test_the_csv_has_one_row_a_forecast(done: Any, table: Path) -> None:
    written, told = pd.read_csv(table.with_name("forecasts.csv")), strict(done.stdout)["predictions"]
    assert len(written) == len(told) == 10
    assert list(written) == list(told[0])
    for name in ("median", "lower", "upper", "loss", "crps"):
        np.testing.assert_allclose(written[name], [row[name] for row in told], rtol=1e-12)


def test_without_drift_only_the_law_alone_is_told_in_words(table: Path) -> None:
    plain = backtest(table, *CHEAP, "--drift", "none")
    assert plain.exit_code == DONE, plain.stderr
    assert plain.stdout.startswith("UNKNOWN: the fits of 1 of 1 split are approximations")
    for said in ("law alone", "90 % equal-tailed", "How little one table can show"):
        assert said in plain.stdout, said
    assert "with drift" not in plain.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--least", 11], "10 of 15 runs have so little. Allow fewer, least=10"),
        (["--factor", 0.5], "above 1"),
        (["--level", 90], "between 0 and 1"),
        (["--group-by", "corpus"], "no column 'corpus'"),
        (["--csv", "none/forecasts.csv"], "folder none does not exist"),
        (["--resamples", -1], "resamples"),
    ],
)
def test_errors_end_in_one_line_before_any_sampling(
    words: list[object], said: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sampled(*args: object) -> None:
        raise AssertionError("it was sampled")

    monkeypatch.setattr(bs.Laplace, "draw", sampled)
    refused = backtest(table, *CHEAP, *words)
    assert refused.exit_code == ERROR
    assert refused.stdout == ""
    assert said in refused.stderr
    assert [line.startswith("error: ") for line in refused.stderr.splitlines()] == [True]
