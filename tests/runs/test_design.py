"""What a design cannot tell is named before anything is sampled."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescale.runs import Runs, design_findings

SIZES = np.geomspace(5e7, 5e9, 4)
COUNTS = np.geomspace(2e9, 2e11, 4)
GRID = [(n, d) for n in SIZES for d in COUNTS]


def runs(points, **extra):
    points = np.array(points)
    return Runs(pd.DataFrame({"n_params": points[:, 0], "n_tokens": points[:, 1], "loss": 3.0, **extra}))


def names(table, **settings):
    return {finding.name for finding in design_findings(table, **settings)}


def test_a_grid_of_sizes_and_tokens_has_no_finding():
    assert design_findings(runs(GRID)) == ()


@pytest.mark.parametrize(
    ("points", "name", "column"),
    [
        ([(1e8 * (1 + 0.01 * i), d) for i in range(3) for d in COUNTS], "one_model_size", "n_params"),
        ([(n, 4.4e9 * (1 + 0.01 * i)) for i in range(3) for n in SIZES], "one_token_count", "n_tokens"),
        ([(n, 20 * n) for n in np.geomspace(1e7, 1e10, 12)], "one_ratio", "n_tokens"),
        ([(n, n**1.2) for n in np.geomspace(1e7, 1e10, 12)], "one_ratio", "n_tokens"),
        ([(n, 1e20 / (6 * n)) for n in np.geomspace(1e7, 1e10, 12)], "one_budget", "flop"),
    ],
)
def test_a_design_along_one_line_is_named_with_its_column(points, name, column):
    (finding,) = design_findings(runs(points))
    assert (finding.name, finding.column, finding.groups) == (name, column, ())
    assert "12 runs" in finding.figures
    assert finding.advice


def test_two_budgets_and_two_ratios_are_no_finding():
    budgets = [(n, c / (6 * n)) for c in (1e19, 1e20) for n in np.geomspace(1e8, 1e9, 6)]
    ratios = [(n, ratio * n) for ratio in (5, 80) for n in np.geomspace(1e8, 1e9, 6)]
    assert design_findings(runs(budgets)) == ()
    assert design_findings(runs(ratios)) == ()


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (1, "the prior with hints"),
        (3, "the prior with hints"),
        (4, "noise around the law cannot be learned"),
        (5, "noise around the law cannot be learned"),
        (6, "lean on the priors"),
        (9, "lean on the priors"),
    ],
)
def test_few_runs_say_how_many_for_how_many_parameters(n, said):
    # A shuffled grid, so that no other line is drawn by so few points.
    table = runs([GRID[i] for i in (0, 6, 9, 15, 3, 12, 5, 10, 1)][:n])
    finding = next(f for f in design_findings(table) if f.name == "few_runs")
    assert f"{n} run{'s' if n > 1 else ''} for 5 parameters of the law and the noise" in str(finding)
    assert said in finding.advice


def test_ten_runs_for_five_parameters_are_enough_and_for_six_are_few():
    table = runs(GRID[:3] + GRID[5:12])
    assert "few_runs" not in names(table)
    assert "few_runs" in names(table, n_unknowns=6)


def test_a_group_with_one_run_is_named():
    table = runs([*GRID, *GRID, (1e9, 1e10)], corpus=["A"] * 16 + ["B"] * 16 + ["C"])
    (finding,) = design_findings(table, by="corpus")
    assert (finding.name, finding.column, finding.groups) == ("single_run_group", "corpus", ("C",))
    assert "C: 1 run" in finding.figures


def test_groups_that_lack_what_the_table_has_share_one_finding():
    points = [(n, d) for n in SIZES for d in np.geomspace(1e9, 1e12, 6)]
    table = runs(points, size=np.repeat(["a", "b", "c", "d"], 6))
    (finding,) = design_findings(table, by="size")
    assert (finding.name, finding.groups) == ("one_model_size", ("a", "b", "c", "d"))


def test_what_holds_for_the_whole_table_is_not_repeated_for_its_groups():
    table = runs([(n, 4.4e9) for n in np.geomspace(1e7, 1e10, 12)], corpus=["A", "B"] * 6)
    (finding,) = design_findings(table, by="corpus")
    assert finding.groups == ()


def test_a_small_group_is_named_only_where_it_cannot_stand_alone():
    table = runs([*GRID, *GRID[2:10:2], *GRID[1:16:2]], corpus=["A"] * 16 + ["four"] * 4 + ["eight"] * 8)
    few = [f for f in design_findings(table, by="corpus") if f.name == "few_runs"]
    assert [f.groups for f in few] == [("four",)]


@given(st.lists(st.tuples(st.floats(1e6, 1e12), st.floats(1e8, 1e15)), min_size=1, max_size=12))
def test_every_design_gets_findings_that_are_json(points):
    found = design_findings(runs(points))
    assert len({f.name for f in found}) == len(found)
    json.dumps([f.to_dict() for f in found], allow_nan=False)
