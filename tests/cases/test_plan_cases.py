"""Tables and budgets that people bring to a plan: each test is the way to judge one kind."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from case_tables import n_opt

import bayescale as bs

Case, Fitted = Callable[[str], Path], Callable[..., bs.Posterior]


def test_data_01_a_byte_order_mark_changes_nothing(case: Case, tmp_path: Path) -> None:
    clean = case("data-01/clean.csv")
    rows = [line.split(",") for line in clean.read_text("utf-8").splitlines()]
    quoted = "".join(",".join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    marked, plain = bs.read_runs(tmp_path / "bom.csv"), bs.read_runs(clean)
    pd.testing.assert_frame_equal(marked.table, plain.table, check_exact=True)


@pytest.mark.slow
def test_data_01_the_fit_of_the_marked_file_is_the_same(shared_case: Case, compile_cache: Path, fitted: Fitted) -> None:
    marked = bs.fit(bs.read_runs(shared_case("data-01/bom.csv")), bs.laws.get("chinchilla"), drift=None, seed=7)
    clean = fitted(shared_case("data-01/clean.csv"), seed=7)
    for name, draws in clean.coefficients().items():
        np.testing.assert_array_equal(marked.coefficients()[name], draws)
    row = bs.allocate(marked, 1e22).to_dict()["results"][0]["n_opt_params"]
    # A posterior with weak priors made elsewhere; its ends are known to its own two or three digits.
    assert row == pytest.approx({"median": 9.9e9, "lower": 7.1e9, "upper": 1.34e10}, rel=0.05)
    assert row["lower"] < 9.06e9 < row["upper"]


@pytest.mark.slow
def test_plan_02_far_budgets_say_how_far_and_grow_wide(
    case: Case, fitted: Fitted, bayescale: Any, tmp_path: Path
) -> None:
    posterior = fitted(case("plan-02/clean.csv"), seed=7)
    budgets = [1e19, 1e21, 1e23, 1e25, 1e29]
    frontier = bs.allocate(posterior, budgets)
    rows = frontier.to_dict()["results"]
    largest = posterior.runs.table["flop"].max()
    assert [row["extrapolation_factor"] for row in rows] == pytest.approx([b / largest for b in budgets])
    widths = [math.log(row["n_opt_params"]["upper"] / row["n_opt_params"]["lower"]) for row in rows[1:]]
    assert widths == sorted(set(widths))
    for row in rows:
        assert row["n_opt_extrapolation_factor"] > 0
        assert row["d_opt_extrapolation_factor"] > 0
    page = " ".join(repr(frontier).split())
    words = [word for b in budgets for word in ("--budget", b)]
    done = bayescale("allocate", posterior.save(tmp_path / "fit.nc"), *words)
    for said in (page, done.stderr):
        assert "1e19 FLOP" not in said
        for budget in ("1e25 FLOP", "1e29 FLOP"):
            line = said[said.index(budget) :]
            assert "times the largest run: far outside the data" in line[:120]


@pytest.mark.slow
def test_plan_07_a_tight_posterior_plans_near_its_law(case: Case, fitted: Fitted) -> None:
    rows = bs.allocate(fitted(case("plan-07/exact_law.csv")), [10**22, 10**24, "1e22"]).to_dict()["results"]
    assert rows[0] == rows[2]
    for row, budget in zip(rows, (1e22, 1e24), strict=False):
        assert row["budget_flop"] == budget
        assert row["n_opt_params"]["median"] == pytest.approx(n_opt(budget), rel=0.03)
        assert row["n_opt_params"]["lower"] < n_opt(budget) < row["n_opt_params"]["upper"]


@pytest.mark.slow
def test_plan_07_the_intervals_are_those_of_the_reference(shared_case: Case, fitted: Fitted) -> None:
    rows = bs.allocate(fitted(shared_case("plan-07/exact_law.csv")), [1e22, 1e24]).to_dict()["results"]
    wanted = [
        {"median": 9.08e9, "lower": 8.83e9, "upper": 9.32e9},
        {"median": 9.64e10, "lower": 9.19e10, "upper": 1.01e11},
    ]
    for row, reference in zip(rows, wanted, strict=True):
        assert row["n_opt_params"] == pytest.approx(reference, rel=0.01)


BAD = {
    "0": 0,
    "-1e22": -1e22,
    "inf": math.inf,
    "nan": math.nan,
    "10^22": "10^22",
    "abc": "abc",
    "1e22FLOP": "1e22FLOP",
    "1e-5": 1e-5,
}


@pytest.mark.parametrize("word", BAD)
def test_plan_07_what_is_no_budget_is_refused_by_value(word: str) -> None:
    law = bs.published("besiroglu-2024")
    for budgets in (BAD[word], [1e22, BAD[word]]):
        with pytest.raises(ValueError, match="one positive, finite number such as 1e22") as caught:
            bs.allocate(law, budgets)
        assert repr(BAD[word]) in str(caught.value)
    assert "budget 2 of 2" in str(caught.value)


def test_plan_07_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="no budget"):
        bs.allocate(bs.published("besiroglu-2024"), [])


def test_plan_07_integers_of_any_length_are_budgets() -> None:
    rows = bs.allocate(bs.published("besiroglu-2024"), [10**22, 10**24, "1e22"]).to_dict()["results"]
    assert [row["budget_flop"] for row in rows] == [1e22, 1e24, 1e22]
    assert rows[0]["n_opt_params"]["median"] == pytest.approx(9.06e9, rel=0.002)
    assert rows[1]["n_opt_params"]["median"] == pytest.approx(9.6e10, rel=0.002)
    json.dumps(rows, allow_nan=False)
