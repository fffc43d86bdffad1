"""IsoFLOP minima of real tables against published exponents: Porian et al. 2024 (arXiv 2406.19146).

Their exponents (``bs_median_weighted`` of their repository's results) lie in our 95 % intervals for ten of
fifteen tables. The other five have a cause that is not the runs. Porian et al. take each budget's minimum from
an Akima spline through every run; that spline through these runs gives their exponents, as a test below
shows. A parabola cannot follow that losses rise faster to one side; at small budgets sizes are a factor of
two and more apart, windows reach 10 to 28 % above the lowest loss instead of 5, and the vertex moves there by up
to a tenth of a decade and hardly at large ones. A cubic through the same windows moves four of the five
(.543, .546, .563, .506) most of the way back (.565, .566, .574, .515; published .574, .571, .577, .518). The
fifth, tuned with a long warm-up, it leaves at .686 (published .711), perhaps because the spline goes through the
scatter of runs that a parabola smooths. No interval of the parabola holds its bias, and `isoflop_minima` says so.

The parabola's window, the five lowest runs where fewer lie within 5 %, was chosen among four with these tables in
view, and the five tables outside are listed as they were found. So what follows holds the estimator to what it
does now; it is no independent evidence for it. That is the coverage on simulated tables.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import Akima1DInterpolator

import bayescale as bs

pytestmark = pytest.mark.slow

SAME_RUNS = {
    "without the last layer": ("rw/base/long-warmup/kaplan/kaplan-count", 0.835),
    "with it": ("rw/base/long-warmup/kaplan/standard-count", 0.706),
    "with attention": ("rw/base/long-warmup/kaplan/attention-count", 0.717),
}
"""Kaplan et al.'s recipe reproduced on RefinedWeb, counted by three conventions; from their repository's results."""

ASYMMETRIC = {
    "owt2/base/short-warmup/chinchilla/standard-count",
    "owt2/tuned/short-warmup/const/standard-count",
    "rw/base/short-warmup/chinchilla/attention-count",
    "rw/base/short-warmup/chinchilla/standard-count",
    "rw/tuned/long-warmup/const/kaplan-count",
}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "data/porian-2024"


@pytest.fixture(scope="module")
def table(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "runs.csv")


@pytest.fixture(scope="module")
def minima(table: pd.DataFrame) -> bs.Minima:
    columns = {"run_id": "run", "flops": "flop"}
    runs = bs.Runs(table.rename(columns=columns)[["run", "flop", "n_params", "n_tokens", "loss", "group"]])
    return bs.isoflop_minima(runs, group_by="group", level=0.95)


@pytest.fixture(scope="module")
def published(folder: Path) -> pd.DataFrame:
    fits = pd.read_csv(folder / "published_power_law_fits.csv")
    return fits.pivot_table(index="group", columns="method", values="n_exponent")


def exponents(minima: bs.Minima) -> dict[str, dict[str, float]]:
    return {r["group"]: r["power_law"]["a"] for r in minima.to_dict()["results"]}


@pytest.mark.parametrize("convention", SAME_RUNS)
def test_three_ways_to_count_the_same_runs(minima: bs.Minima, convention: str) -> None:
    group, a = SAME_RUNS[convention]
    found = exponents(minima)[group]
    assert found["lower"] <= a <= found["upper"]


def test_leaving_out_the_last_layer_makes_sizes_grow_faster(minima: bs.Minima) -> None:
    """Their first correction of Kaplan et al.: the intervals of the two ways to count do not meet."""
    without, counted = (exponents(minima)[SAME_RUNS[k][0]] for k in ("without the last layer", "with it"))
    assert counted["upper"] < without["lower"]


def test_published_exponents_are_inside_but_for_the_asymmetric_tables(
    minima: bs.Minima, published: pd.DataFrame
) -> None:
    """Ten of fifteen, the five outside found here first: a table more outside would be news."""
    found, theirs = exponents(minima), published["bs_median_weighted"]
    assert len(found) == len(theirs) == 15
    outside = {g for g, a in found.items() if not a["lower"] <= theirs[g] <= a["upper"]}
    assert outside <= ASYMMETRIC
    assert max(abs(found[g]["estimate"] - theirs[g]) for g in found) < 0.035


@pytest.mark.parametrize("group", sorted(ASYMMETRIC))
def test_a_spline_through_the_same_runs_gives_their_exponents(
    table: pd.DataFrame, published: pd.DataFrame, group: str
) -> None:
    """So what differs in those tables is the estimator, not the runs or the budgets."""
    best = []
    for flops, budget in table[table["group"] == group].groupby("flops"):
        y = np.log(budget.groupby("n_params")["loss"].mean())
        x = np.log(y.index.to_numpy(float))
        grid = np.linspace(x.min(), x.max(), 5001)
        best.append((np.log(flops), grid[np.argmin(Akima1DInterpolator(x, y.to_numpy())(grid))]))
    a = np.polyfit(*np.array(best).T, 1)[0]
    assert a == pytest.approx(published.loc[group, "basic"], abs=0.003)


def test_minima_lie_near_the_published_ones(folder: Path, minima: bs.Minima) -> None:
    """Budget by budget, their spline's minimum: the median gap is less than a quarter of the distance of sizes."""
    theirs = pd.read_csv(folder / "published_isoflop_optima.csv").assign(at=lambda t: np.log2(t["flops"]).round(2))
    ours = minima.table.assign(at=lambda t: np.log2(t["budget_flop"]).round(2))
    both = ours.merge(theirs, on=["group", "at"])
    assert len(both) > 150
    gap = np.abs(np.log10(both["n_opt_params"] / both["n_opt"]))
    assert gap.median() < 0.05
    assert gap.quantile(0.95) < 0.15
