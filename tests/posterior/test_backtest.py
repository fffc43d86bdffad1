"""Claims about the rolling origin: which splits a table makes, and what their forecasts' scores are."""

import dataclasses
import itertools
import json
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_fits import B24, Never, loss

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference.huber import Huber
from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Joint
from bayescale.posterior.backtest import FACTORS, backtest, origins
from bayescale.posterior.scorecard import ALONE, BOOTSTRAP, DRIFTS, Backtest
from bayescale.runs.table import Runs

LAW = Chinchilla()


def budgets(*each: float, per: int = 4, seed: int = 0, **columns: Any) -> pd.DataFrame:
    """Runs of B24's law, so many at each compute budget, with .5 % scatter."""
    rng = np.random.default_rng(seed)
    flop = np.repeat(each, per)
    size = np.sqrt(flop / 120) * np.tile(np.geomspace(0.4, 2.5, per), len(each))
    tokens = flop / 6 / size
    reached = loss(B24, size, tokens) * np.exp(0.005 * rng.standard_normal(len(flop)))
    return pd.DataFrame({"n_params": size, "n_tokens": tokens, "flop": flop, "loss": reached}).assign(**columns)


def found(runs: pd.DataFrame, **settings: Any) -> Backtest:
    """A backtest that costs little: forecasts are the prior's unless an engine is given."""
    cheap: dict[str, Any] = {"engine": FromPrior(draws=60), "bootstrap": None, "least": 4, "seed": 1}
    return backtest(Runs(runs), LAW, **cheap | settings)


def sizes(flop: Any, **settings: Any) -> dict[float, int]:
    """Training runs of each split, by factor."""
    return {factor: int(train.sum()) for factor, train in origins(flop, **settings)}


def test_a_split_trains_on_what_its_factor_leaves() -> None:
    flop = [1e18] * 3 + [1e19] * 4 + [1e20] * 5 + [1e21]
    assert sizes(flop, factors=(10, 100, 1000), least=3) == {10: 12, 100: 7, 1000: 3}
    assert sizes(flop, factors=(10, 100, 1000), least=4) == {10: 12, 100: 7}
    assert sizes(flop, factors=(1000, 10, 100), least=13) == {}
    assert [factor for factor, _ in origins(flop, (1000, 10, 100), 3)] == [10, 100, 1000]
    assert dict(origins(flop, (100,), 3))[100].tolist() == [True] * 7 + [False] * 6


def test_splits_that_train_on_the_same_runs_count_once_at_the_nearest_factor() -> None:
    assert sizes([1e18] * 3 + [1e20], factors=FACTORS, least=3) == {3: 3}
    assert sizes([1e18] * 3 + [1e19] * 3 + [1e20], factors=(5, 30, 20, 4, 11), least=3) == {4: 6, 11: 3}


def test_a_table_of_one_budget_makes_no_split() -> None:
    assert sizes([1e20] * 30, factors=(2, 3), least=1) == {}


@pytest.mark.parametrize("off", [1 + 1e-15, 1 - 1e-15, 1 + 3e-16, 1 + 5e-10])
def test_a_budget_at_the_limit_trains_whole_whatever_products_were_rounded(off: float) -> None:
    """C = 6 N D of one budget differs in the last digits."""
    assert sizes([1e19 * off, 1e19, 1e19 / off, 1e20], factors=(10,), least=1) == {10: 3}
    assert sizes([1e19 * (1 + 1e-6), 1e19, 1e20], factors=(10,), least=1) == {10: 1}


@given(
    st.lists(st.floats(18, 24), min_size=1, max_size=30),
    st.lists(st.floats(1.01, 1e4), min_size=1, max_size=6),
    st.integers(1, 8),
)
def test_every_split_is_nested_trains_enough_and_forecasts_only_larger_runs(
    exponents: list[float], factors: list[float], least: int
) -> None:
    flop = 10 ** np.array(exponents)
    found = list(origins(flop, factors, least))
    for factor, train in found:
        assert least <= train.sum() < len(flop)
        assert flop[train].max() < flop[~train].min()
        assert flop[train].max() <= flop.max() / factor * (1 + 1e-8)
    for (_, larger), (_, smaller) in itertools.pairwise(found):
        assert (smaller <= larger).all()
        assert smaller.sum() < larger.sum()
    possible = {int((flop <= flop.max() / f * (1 + 1e-9)).sum()) for f in factors}
    assert {int(train.sum()) for _, train in found} == {n for n in possible if least <= n < len(flop)}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"factors": (3, 1.0)}, r"numbers above 1, as \(3, 10, 30\), not \[1.0\]"),
        ({"factors": (0.3,)}, "above 1"),
        ({"factors": (float("nan"), 3.0)}, r"above 1.*not \[nan\]"),
        ({"factors": (float("inf"),)}, r"above 1.*not \[inf\]"),
        ({"factors": ()}, r"above 1.*not \(\)"),
        ({"least": 0}, "1 or more, not 0"),
        ({"level": 90}, "between 0 and 1, as 0.9, not 90"),
        ({"level": 0.0}, "between 0 and 1"),
        ({"seed": -1}, "A seed is an integer"),
        ({"group_by": "copus"}, "no column 'copus'.*Did you mean 'corpus'"),
    ],
)
def test_what_cannot_be_backtested_is_refused_before_sampling(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        found(budgets(1e19, 1e20, corpus="A"), engine=Never(), **settings)


def test_a_table_without_a_split_is_told_what_would_do() -> None:
    """Eight runs of 12 may train; what is advised makes a split."""
    frame = budgets(1e18, 1e19, 1e20)
    with pytest.raises(ValueError, match=r"at least 10 runs with at most 1 / 3 .*8 of 12 runs .*least=8, or") as told:
        found(frame, engine=Never(), least=10, factors=(30, 3))
    assert "smaller factor" in str(told.value)
    assert sizes(frame["flop"], least=8, factors=(30, 3)) == {3: 8}
    with pytest.raises(ValueError, match=r"4 of 8 runs .*Add 6 smaller runs"):
        found(budgets(1e19, 1e20), engine=Never(), least=10)
    assert sizes(pd.concat([budgets(1e19, 1e20), budgets(1e18, per=6)])["flop"], least=10) == {3: 10}


def test_a_grouped_table_without_a_split_names_the_group_with_most() -> None:
    frame = pd.concat([budgets(1e19, 1e20, corpus="A"), budgets(1e19, 1e20, per=7, corpus="B")])
    with pytest.raises(ValueError, match=r"7 of 14 runs .*in 'B', which has most of 2 groups.*least=7"):
        found(frame, engine=Never(), least=10, group_by="corpus")


@pytest.mark.parametrize(
    ("bootstrap", "least", "said"),
    [
        (Huber(resamples=4), 4, r"trains on 4 runs.*5 unknowns without priors.*bootstrap=None.*least=6"),
        (
            Huber(resamples=4, cluster="budget"),
            6,
            r"trains on 6 runs.*'budget' puts 6 runs in 1 cluster.*bootstrap=None",
        ),
        (Huber(resamples=4, cluster="bugdet"), 6, "no column 'bugdet'"),
    ],
)
def test_a_bootstrap_that_a_later_split_refuses_is_refused_before_sampling(
    bootstrap: Huber, least: int, said: str
) -> None:
    per = 4 if least == 4 else 6
    frame = budgets(1e18, 1e19, 1e20, per=per, budget=np.repeat(["a", "b", "c"], per))
    assert len(sizes(frame["flop"], least=least)) == 2
    with pytest.raises(ValueError, match=said):
        found(frame, engine=Never(), bootstrap=bootstrap, least=least)


@pytest.fixture(scope="module")
def grouped() -> Backtest:
    """Two recipes, the second with half of the losses, and its two splits against one of the first."""
    a = budgets(1e19, 1e20, corpus="A")
    b = budgets(1e19, 1e20, 1e21, corpus="B", seed=1)
    b["loss"] /= 2
    return found(pd.concat([a, b], ignore_index=True), group_by="corpus", factors=(3, 30))


def test_groups_are_backtested_by_themselves(grouped: Backtest) -> None:
    splits = grouped.splits[["group", "factor", "trained_on", "forecast", "largest_flop"]].to_numpy().tolist()
    assert splits == [["A", 3, 4, 4, 1e19], ["B", 3, 8, 4, 1e20], ["B", 30, 4, 8, 1e19]]
    assert grouped.predictions.groupby(["forecaster", "group", "factor"], sort=False).size().tolist() == [
        4,
        4,
        4,
        4,
        8,
        8,
    ]
    alone = found(budgets(1e19, 1e20), factors=(3, 30)).predictions
    first: Any = grouped.predictions[grouped.predictions["group"] == "A"]
    for name in ("median", "lower", "upper", "crps"):
        np.testing.assert_allclose(first[name].to_numpy(), alone[name].to_numpy(), rtol=1e-12)


def test_with_drift_and_the_law_alone_forecast_the_same_runs_and_the_gate_is_told(grouped: Backtest) -> None:
    assert grouped.predictions["forecaster"].unique().tolist() == [DRIFTS, ALONE]
    runs = [own["run"].tolist() for _, own in grouped.predictions.groupby("forecaster")]
    assert runs[0] == runs[1]
    assert grouped.splits["gate"].tolist() == ["FAIL", "PASS", "FAIL"]  # one budget spans no compute
    assert grouped.splits["gate_failed"].tolist() == ["span_decades", "", "span_decades"]
    assert grouped.splits["diagnostics_drift"].tolist() == ["UNKNOWN"] * 3
    assert grouped.splits["diagnostics_bootstrap"].tolist() == [None] * 3


def test_a_backtest_is_strict_json_with_null_where_there_is_none(grouped: Backtest) -> None:
    told = json.loads(json.dumps(grouped.to_dict(), allow_nan=False))
    assert (told["level"], told["kind"], told["least"], told["seed"]) == (0.9, "eti", 4, 1)
    assert told["splits"][0]["diagnostics_bootstrap"] is None
    assert len(told["predictions"]) == len(grouped.predictions)
    assert {type(row["covered_90"]) for row in told["predictions"]} == {bool}
    bins = [row["bin"] for row in told["summary"] if row["forecaster"] == ALONE]
    assert bins == ["3 to 10", "over 30", "all"]
    endless = grouped.predictions.assign(upper=np.inf)
    told = dataclasses.replace(grouped, predictions=endless).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False))["predictions"][0]["upper"] is None


def test_what_is_returned_as_a_table_is_a_copy(grouped: Backtest) -> None:
    mine = grouped.to_dataframe()
    mine["loss"] = 0.0
    assert not np.any(grouped.predictions["loss"].to_numpy() == 0)


def test_without_drift_the_law_alone_is_forecast_and_there_is_no_gate() -> None:
    plain = found(budgets(1e18, 1e19, 1e20), factors=(3,), drift=None, engine=FromPrior(draws=20))
    assert plain.predictions["forecaster"].unique().tolist() == [ALONE]
    row = plain.splits.iloc[0]
    assert row[["gate", "gate_failed", "diagnostics_drift"]].tolist() == [None, "", None]
    assert row["diagnostics_alone"] == "UNKNOWN"
    json.dumps(plain.to_dict(), allow_nan=False)


def test_a_seed_repeats_everything() -> None:
    settings: dict[str, Any] = {"drift": None, "engine": Laplace(draws=200), "factors": (3,)}
    one, two, other = (found(budgets(1e18, 1e19, 1e20), seed=seed, **settings) for seed in (7, 7, 8))
    pd.testing.assert_frame_equal(one.predictions, two.predictions)
    assert one.seed == 7
    assert set(other.predictions["median"]).isdisjoint(one.predictions["median"])
    assert np.abs(one.predictions["error_percent"].to_numpy()).max() < 10  # of a table that the law made


def test_the_bootstrap_forecasts_the_same_runs() -> None:
    frame, few = budgets(1e18, 1e19, 1e20), FromPrior(draws=20)
    both = found(frame, factors=(3,), drift=None, engine=few, bootstrap=Huber(resamples=20, starts=1))
    assert both.predictions["forecaster"].unique().tolist() == [ALONE, BOOTSTRAP]
    runs = [own["run"].tolist() for _, own in both.predictions.groupby("forecaster")]
    assert runs[0] == runs[1] == [f"run-{k}" for k in (9, 10, 11, 12)]
    assert both.splits["diagnostics_bootstrap"].tolist() != ["PASS"]  # by its nature


@final
@dataclasses.dataclass(frozen=True)
class Interrupted(Engine):
    """The prior's draws, recorded as those of a sampler that was stopped."""

    name: ClassVar[str] = "prior"
    approximate: ClassVar[bool] = True

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        drawn = FromPrior(draws=20).draw(joint, data, seed)
        return dataclasses.replace(drawn, info={**drawn.info, "interrupted": True})


def test_a_fit_with_drift_that_was_interrupted_is_not_taken_for_the_law_alone() -> None:
    stopped = found(budgets(1e18, 1e19, 1e20), factors=(3,), engine=Interrupted())
    assert stopped.predictions["forecaster"].unique().tolist() == [DRIFTS]
    assert stopped.splits["gate"].tolist() == ["PASS"]
