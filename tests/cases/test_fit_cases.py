"""Tables that people bring to a fit: each test is the way to judge one kind."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from case_tables import LAW, n_opt
from scipy.optimize import least_squares

import bayescale as bs

Case, Fitted = Callable[[str], Path], Callable[..., bs.Posterior]
ERROR = 1
SURE = 0.998  # an interval that holds the truth of any table that a test meets


def plans(posterior: bs.Posterior, *budgets: float, group: Any = None) -> list[dict[str, Any]]:
    return bs.allocate(posterior, budgets, group=group).to_dict()["results"]


def decades(row: dict[str, Any]) -> float:
    """Width of the 90 % interval of log10 N_opt."""
    return np.log10(row["n_opt_params"]["upper"] / row["n_opt_params"]["lower"])


def r_hat(posterior: bs.Posterior) -> float:
    return next(check.value for check in posterior.checks if check.name == "r_hat")


def least_squares_n_opt(path: Path, budget: float) -> float:
    """N_opt by least squares on log loss, best of several starts, scaled so that the optimum is reached."""
    table = pd.read_csv(path)
    n, d = np.log(table["params"] / 5e8), np.log(table["tokens"] / 2e10)

    def residuals(x: np.ndarray) -> np.ndarray:
        law = np.exp(x[0]) + np.exp(x[1] - x[3] * n) + np.exp(x[2] - x[4] * d)
        return np.asarray(np.log(law) - np.log(table["loss"]))

    starts = [(np.log(e), np.log(0.4), np.log(0.4), a, a) for e in (1.5, 1.9) for a in (0.25, 0.5)]
    best = min((least_squares(residuals, s, xtol=1e-15, ftol=1e-15, gtol=1e-15) for s in starts), key=lambda f: f.cost)
    _, size, tokens, alpha, beta = best.x
    # alpha A' (N / N0)^-alpha = beta B' (D / D0)^-beta, and 6 N D = budget
    ratio = np.log(budget / (6 * 5e8 * 2e10))
    return 5e8 * np.exp((np.log(alpha / beta) + size - tokens + beta * ratio) / (alpha + beta))


@pytest.mark.slow
def test_fit_01_every_seed_finds_the_optimum_that_least_squares_finds(case: Case, source: str, fitted: Fitted) -> None:
    path = case("fit-01/runs.csv")
    wanted = least_squares_n_opt(path, 1e24)
    if source == "shared":
        assert wanted == pytest.approx(9.57e10, rel=0.005)
    rows = []
    for seed in (1, 2, 3):
        posterior = fitted(path, seed=seed)
        assert r_hat(posterior) <= 1.01
        rows += plans(posterior, 1e24)
    medians = [row["n_opt_params"]["median"] for row in rows]
    assert medians == pytest.approx([wanted] * 3, rel=0.05)
    assert max(medians) < 1.02 * min(medians)
    assert all(row["n_opt_params"]["lower"] < n_opt(1e24) < row["n_opt_params"]["upper"] for row in rows)


@pytest.mark.slow
def test_fit_01_the_order_of_the_rows_does_not_matter(case: Case, fitted: Fitted) -> None:
    path = case("fit-01/runs.csv")
    shuffled = pd.read_csv(path).sample(frac=1, random_state=0)
    medians = [plans(fitted(t), 1e24)[0]["n_opt_params"]["median"] for t in (path, shuffled)]
    assert medians[0] == pytest.approx(medians[1], rel=0.02)


def test_fit_05_tokens_are_compute_over_six_and_the_rule_is_said(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    path = case("fit-05/runs_flop.csv")
    with caplog.at_level(logging.INFO, logger="bayescale"):
        runs = bs.read_runs(path)
    given = pd.read_csv(path)
    assert runs.table["n_tokens"].to_numpy() == pytest.approx(given["Training FLOP"] / (6 * given["Model Size"]))
    assert runs.table["n_tokens"][0] == pytest.approx(3.162e9, rel=0.02)
    assert "n_tokens of every run is derived from n_params and flop by the rule C = 6 N D" in caplog.text
    with pytest.raises(ValueError, match=r"(?s)n_tokens.*Model Size"):
        bs.read_runs(given.drop(columns="Training FLOP"))


@pytest.mark.slow
def test_fit_05_the_plan_is_that_of_the_table_with_tokens(case: Case, fitted: Fitted, tmp_path: Path) -> None:
    path = case("fit-05/runs_flop.csv")
    table = pd.read_csv(path)
    table["tokens"] = table.pop("Training FLOP") / (6 * table["Model Size"])
    posterior = fitted(path)
    row, same = plans(posterior, 1e22)[0], plans(fitted(table), 1e22)[0]
    assert row["n_opt_params"]["median"] == pytest.approx(same["n_opt_params"]["median"], rel=0.02)
    assert "C = 6 N D" in repr(posterior)
    assert bs.load(posterior.save(tmp_path / "fit.nc")).rule == bs.FlopsRule(6.0)


@pytest.mark.slow
def test_fit_05_the_plan_is_within_3_percent_of_the_reference(shared_case: Case, fitted: Fitted) -> None:
    row = plans(fitted(shared_case("fit-05/runs_flop.csv")), 1e22)[0]
    assert row["n_opt_params"]["median"] == pytest.approx(9.28e9, rel=0.03)


def test_fit_10_the_command_names_every_bad_row_and_stops(case: Case, bayescale: Any, tmp_path: Path) -> None:
    done = bayescale("fit", case("fit-10/bad_losses.csv"), "-o", tmp_path / "fit.nc")
    assert done.exit_code == ERROR
    assert [line for line in range(2, 18) if f"line {line}:" in done.stderr] == [4, 7, 9, 11, 13, 15]
    assert "initial parameters" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_fit_10_dropping_leaves_out_the_same_rows(case: Case) -> None:
    runs = bs.read_runs(case("fit-10/bad_losses.csv"), on_invalid="drop")
    assert len(runs) == 10
    assert runs.left_out["line"].tolist() == [4, 7, 9, 11, 13, 15]


@pytest.mark.slow
def test_fit_13_one_token_count_leaves_the_plan_open(
    case: Case, fitted: Fitted, caplog: pytest.LogCaptureFixture
) -> None:
    posterior = fitted(case("fit-13/same_tokens.csv"), seed=13)
    row = plans(posterior, 1e20)[0]
    assert decades(row) >= 1.5
    assert row["n_opt_params"]["lower"] < n_opt(1e20) < row["n_opt_params"]["upper"]
    for said in (caplog.text, " ".join(repr(posterior).split())):  # before sampling, and in the result
        assert "6 runs for 5 parameters" in said
        assert "(n_tokens): 6 runs, all 4.4e+09 tokens" in said
        assert "nothing is tied silently" in said


@pytest.mark.slow
def test_fit_14_one_budget_plans_for_itself_only(case: Case, fitted: Fitted) -> None:
    posterior = fitted(case("fit-14/one_budget.csv"))
    rows = plans(posterior, 1e20, 1e22, 1e24)
    assert decades(rows[2]) >= 5 * decades(rows[0])
    wide = bs.allocate(posterior, [1e20, 1e22, 1e24], level=SURE).to_dict()["results"]
    assert all(row["n_opt_params"]["lower"] < n_opt(row["budget_flop"]) < row["n_opt_params"]["upper"] for row in wide)
    assert [row["extrapolation_factor"] for row in rows] == pytest.approx([1, 100, 1e4], rel=1e-6)
    assert [row["extrapolates"] for row in rows[1:]] == [True, True]
    assert f"r_hat: {r_hat(posterior):.4g}" in repr(posterior)
    assert "one_budget" in repr(posterior)


@pytest.mark.slow
def test_fit_14_the_optimum_at_the_budget_is_known(shared_case: Case, fitted: Fitted) -> None:
    """A reference posterior gives 8.55e8 [8.1e8, 9.0e8]."""
    row = plans(fitted(shared_case("fit-14/one_budget.csv")), 1e20)[0]["n_opt_params"]
    assert row == pytest.approx({"median": 8.55e8, "lower": 8.1e8, "upper": 9.0e8}, rel=0.02)


@pytest.mark.slow
def test_fit_18_a_plan_that_no_token_effect_supports_is_marked(
    case: Case, fitted: Fitted, bayescale: Any, tmp_path: Path
) -> None:
    posterior = fitted(case("fit-18/flat_in_D.csv"))
    low, median, high = np.quantile(posterior.coefficients()["alpha"], [(1 - SURE) / 2, 0.5, (1 + SURE) / 2])
    assert low < LAW["alpha"] < high  # the size's exponent is learned
    assert high - low < 0.3 * median
    frontier = bs.allocate(posterior, 1e22)
    row = frontier.to_dict()["results"][0]
    assert row["far"]
    assert row["n_opt_extrapolation_factor"] > 100
    assert "times the largest size" in " ".join(repr(frontier).split())
    path = posterior.save(tmp_path / "fit.nc")
    done = bayescale("allocate", path, "--budget", "1e22", "--json")
    assert "times the largest size" in done.stderr


@pytest.mark.slow
def test_fit_19_fewer_runs_give_wider_plans(case: Case, fitted: Fitted) -> None:
    widths = []
    for n, said in ((3, "prior with hints"), (5, "noise around the law cannot be learned"), (6, "lean on the priors")):
        posterior = fitted(case(f"fit-19/n{n}.csv"))
        page = " ".join(repr(posterior).split())
        assert f"{n} runs for 5 parameters" in page
        assert said in page
        row = plans(posterior, 1e22)[0]
        assert row["n_opt_params"]["lower"] < n_opt(1e22) < row["n_opt_params"]["upper"]
        assert np.quantile(posterior.values()["noise"], 0.05) > 5e-4
        widths.append(decades(row))
    assert min(widths) >= 0.3
    assert widths[0] >= 0.8 * widths[1]
    assert widths[1] >= 0.8 * widths[2]


@pytest.fixture(scope="module")
def with_single(case: Case, fitted: Fitted) -> bs.Posterior:
    """Groups A and B of twelve runs, C of one."""
    return fitted(case("fit-22/one_run_group.csv"), bs.Partial("corpus"))


@pytest.mark.slow
def test_fit_22_a_group_of_one_run_leans_on_the_others(with_single: bs.Posterior) -> None:
    width = {group: decades(plans(with_single, 1e22, group=group)[0]) for group in "ABC"}
    assert np.isfinite(width["C"])
    assert width["C"] > max(width["A"], width["B"])
    assert "C: 1 run" in repr(with_single)
    assert with_single.tree["sample_stats"]["diverging"].values.mean() < 0.01


@pytest.mark.slow
def test_fit_22_the_other_groups_are_not_disturbed(with_single: bs.Posterior, case: Case, fitted: Fitted) -> None:
    table = pd.read_csv(case("fit-22/one_run_group.csv")).query("corpus != 'C'")
    without = fitted(table, bs.Partial("corpus"))
    for group in "AB":
        medians = [plans(p, 1e22, group=group)[0]["n_opt_params"]["median"] for p in (with_single, without)]
        assert medians[0] == pytest.approx(medians[1], rel=0.03)


@pytest.mark.slow
def test_fit_23_a_group_never_seen_is_asked_for_explicitly(with_single: bs.Posterior) -> None:
    with pytest.raises(ValueError, match=r"Unknown group 'D'; known: A, B, C\."):
        bs.allocate(with_single, 1e22, group="D")
    with pytest.raises(ValueError, match=r"known: A, B, C\. Did you mean 'A'\?"):
        bs.predict(with_single, {"n_params": 1e9, "n_tokens": 1e10}, group="a")
    rows = plans(with_single, 1e22, group=["A", "B", bs.NewGroup(), bs.PopulationMean()])
    assert [row["group"] for row in rows] == ["A", "B", "new group", "population mean"]
    a, b, new, mean = map(decades, rows)
    assert new > max(a, b, mean)


@pytest.mark.slow
def test_fit_25_two_diverged_runs_are_named_and_do_not_bend_the_law(case: Case, fitted: Fitted) -> None:
    path = case("fit-25/two_diverged.csv")
    posterior = fitted(path)
    clean = fitted(pd.read_csv(path).drop(index=[3, 16]))
    row, wanted = (plans(p, 1e22)[0]["n_opt_params"]["median"] for p in (posterior, clean))
    assert row == pytest.approx(wanted, rel=0.1)
    found = bs.outliers(posterior).set_index("run")
    assert found.loc[["run-4", "run-17"], "probability_outlier"].min() > 0.99
    assert found.loc[["run-4", "run-17"], "flagged"].all()
    assert len(posterior.runs.table) == 24  # all are used


@pytest.mark.slow
def test_fit_25_the_plan_is_that_of_the_clean_runs(shared_case: Case, fitted: Fitted) -> None:
    """Clean runs give 8.7e9, a Normal fit of all 3.22e8."""
    row = plans(fitted(shared_case("fit-25/two_diverged.csv")), 1e22)[0]
    assert row["n_opt_params"]["median"] == pytest.approx(8.7e9, rel=0.1)
