"""Real tables of runs against what their papers published, and against independent fits of the same runs.

Expected values: Besiroglu et al. 2024 (arXiv 2404.10102) for the runs of Hoffmann et al. 2022, with an
independent Bayesian fit for tokens per parameter; Brandfonbrener et al. 2024 (arXiv 2411.12925) for the
four corpora, their Huber fits reproduced from these rows.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescale as bs

pytestmark = pytest.mark.slow
LAW = bs.laws.get("chinchilla")
GOPHER = 5.76e23  # FLOP

CORPORA = {
    "fineweb-100b": (1636.58, 4198.64, 2.14718, 0.426722, 0.421206),
    "fineweb-edu-100b": (2517.51, 7160.56, 2.00219, 0.454019, 0.449472),
    "slimpajama-chunk1": (2048.35, 6018.81, 2.00685, 0.440916, 0.438491),
    "smollm-corpus": (2439.83, 6916.03, 1.55151, 0.447699, 0.443643),
}
SMALL = "slimpajama-chunk1"


def quantiles(posterior: bs.Posterior, name: str, group: str | None = None, *, level: float = 0.9) -> np.ndarray:
    """Lower end, median and upper end of a letter's equal-tailed interval."""
    draws = posterior.coefficients(group)[name]
    return np.quantile(draws, [(1 - level) / 2, 0.5, (1 + level) / 2])


def tokens_per_parameter(posterior: bs.Posterior) -> dict[str, float]:
    return bs.allocate(posterior, GOPHER).to_dict()["results"][0]["tokens_per_parameter"]


@pytest.fixture(scope="module")
def dropped(shared: Path, compile_cache: Path) -> bs.Posterior:
    """The 240 runs that Besiroglu et al. keep."""
    runs = bs.read_runs(shared / "data/chinchilla-epoch/runs.csv", exclude={"epoch_dropped_outlier": True})
    return bs.fit(runs, LAW, drift=None, seed=1)


@pytest.fixture(scope="module")
def whole(shared: Path, compile_cache: Path) -> bs.Posterior:
    return bs.fit(bs.read_runs(shared / "data/chinchilla-epoch/runs.csv"), LAW, drift=None, seed=1)


@pytest.mark.parametrize(
    ("name", "value", "within"), [("alpha", 0.348, 0.015), ("beta", 0.366, 0.02), ("E", 1.817, 0.026)]
)
def test_the_240_runs_give_the_published_law(dropped: bs.Posterior, name: str, value: float, within: float) -> None:
    assert dropped.status == "PASS"
    assert quantiles(dropped, name)[1] == pytest.approx(value, abs=within)


def test_the_240_runs_give_the_published_exponent_of_size(dropped: bs.Posterior) -> None:
    draws = dropped.coefficients()
    assert np.median(draws["beta"] / (draws["alpha"] + draws["beta"])) == pytest.approx(0.513, abs=0.02)


def test_tokens_per_parameter_of_the_240_runs(dropped: bs.Posterior) -> None:
    found = tokens_per_parameter(dropped)
    assert 12 <= found["lower"] <= 15
    assert 23 <= found["upper"] <= 30


def test_five_bad_rows_do_not_move_the_plan_and_are_named(whole: bs.Posterior) -> None:
    """Least squares on the 245 rows gives 2 tokens per parameter, and the Huber fit 6.8."""
    assert 14 <= tokens_per_parameter(whole)["median"] <= 22
    flagged = {str(run) for run in bs.outliers(whole).query("flagged")["run"]}
    assert {f"chinchilla-{k:03}" for k in range(5)} <= flagged


def test_a_drift_is_sampled_well_and_widens_what_lies_beyond(
    dropped: bs.Posterior, shared: Path, compile_cache: Path
) -> None:
    """At the largest budget of the table and at forty times it: wider everywhere, and by far more beyond."""
    runs = bs.read_runs(shared / "data/chinchilla-epoch/runs.csv", exclude={"epoch_dropped_outlier": True})
    drifting = bs.fit(runs, LAW, drift=bs.Drift(), seed=1)
    assert drifting.status == "PASS"

    def width(posterior: bs.Posterior) -> np.ndarray:
        found = bs.allocate(posterior, [1.3e22, GOPHER]).to_dict()["results"]
        return np.array([np.log(row["loss"]["upper"] / row["loss"]["lower"]) for row in found])

    ratio = width(drifting) / width(dropped)
    assert (ratio > 1).all()
    assert ratio[1] > 3


@pytest.fixture(scope="module")
def corpora(shared: Path) -> pd.DataFrame:
    return pd.read_csv(shared / "data/loss-to-loss/runs.csv")


@pytest.fixture(scope="module")
def fit_corpora(compile_cache: Path) -> Callable[..., bs.Posterior]:
    return lambda table, pooling=None: bs.fit(bs.read_runs(table), LAW, drift=None, pooling=pooling, seed=1)


@pytest.fixture(scope="module")
def apart(corpora: pd.DataFrame, fit_corpora: Callable[..., bs.Posterior]) -> bs.Posterior:
    return fit_corpora(corpora, bs.Separate("group"))


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize(("i", "letter"), list(enumerate(("A", "B", "E", "alpha", "beta"))))
def test_separate_fits_cover_the_published_laws(apart: bs.Posterior, corpus: str, i: int, letter: str) -> None:
    lower, _, upper = quantiles(apart, letter, corpus, level=0.95)
    assert lower <= CORPORA[corpus][i] <= upper


def eight_runs(table: pd.DataFrame) -> pd.DataFrame:
    """The whole table, with one corpus cut to the four best runs at each of its two smallest budgets."""
    small = table[table["group"] == SMALL]
    budgets = sorted(small["flops"].unique())[:2]
    kept = pd.concat([small[small["flops"] == b].nsmallest(4, "loss") for b in budgets])
    return pd.concat([table[table["group"] != SMALL], kept], ignore_index=True)


def test_eight_runs_of_a_corpus_lean_on_the_others(
    corpora: pd.DataFrame, apart: bs.Posterior, fit_corpora: Callable[..., bs.Posterior]
) -> None:
    """Pooled, they cover what the whole corpus says, in intervals at most half those of the eight runs alone."""
    cut = eight_runs(corpora)
    pooled = fit_corpora(cut, bs.Partial("group"))
    alone = fit_corpora(cut[cut["group"] == SMALL])
    assert pooled.status == "PASS"
    assert int(pooled.tree["sample_stats"]["diverging"].sum()) == 0

    def answers(posterior: bs.Posterior, group: str | None) -> dict[str, np.ndarray]:
        row = bs.allocate(posterior, 1e20, group=group).to_dict()["results"][0]["n_opt_params"]
        n_opt = np.log([row["lower"], row["median"], row["upper"]])
        return {"log N_opt": n_opt, **{name: quantiles(posterior, name, group) for name in ("alpha", "beta")}}

    leaning, single, full = answers(pooled, SMALL), answers(alone, None), answers(apart, SMALL)
    for name, (lower, _, upper) in leaning.items():
        assert lower <= full[name][1] <= upper, name
        assert upper - lower <= (single[name][2] - single[name][0]) / 2, name
