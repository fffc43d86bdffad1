"""The frontier without a law: minima that are known in closed form, what is refused, how often intervals hold."""

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isoflop_tables import ALPHA, BUDGETS, A, B, E, best, parabolas, profile, runs, symmetric

from bayescale.frontier import envelope, parabola
from bayescale.frontier.envelope import compute_envelope
from bayescale.frontier.isoflop import Minima, isoflop_minima
from bayescale.frontier.isoflop_check import isoflop_check
from bayescale.runs.table import Runs


@pytest.fixture(scope="module")
def exact() -> Minima:
    return isoflop_minima(runs(symmetric()))


@pytest.fixture(scope="module")
def noisy() -> Minima:
    """Three tables of .5 % scatter."""
    return isoflop_minima(Runs(parabolas(0.6, 0.04, 0.005, 0.0, 3, seed=5)), group_by="table")


def test_a_symmetric_law_has_its_own_minima(exact: Minima) -> None:
    """With alpha = beta and centred sizes, the vertex is the closed form's N_opt and a is one half."""
    table, n_opt = exact.table, np.array([best(c) for c in BUDGETS])
    assert table["budget_flop"].to_numpy() == pytest.approx(BUDGETS)
    assert table["n_opt_params"].to_numpy() == pytest.approx(n_opt, rel=1e-9)
    assert table["d_opt_tokens"].to_numpy() == pytest.approx(np.array(BUDGETS) / (6 * n_opt), rel=1e-9)
    least = E + A * n_opt**-ALPHA + B * (np.array(BUDGETS) / (6 * n_opt)) ** -ALPHA
    assert table["loss"].to_numpy() == pytest.approx(least, rel=1e-3)
    law = exact.to_dict()["results"][0]["power_law"]
    assert law["a"]["estimate"] == pytest.approx(0.5, abs=1e-9)
    assert law["b"]["estimate"] == pytest.approx(0.5, abs=1e-9)
    assert law["n_opt_at_center_params"]["estimate"] == pytest.approx(best(law["center_flop"]), rel=1e-9)


def test_noiseless_parabolas_are_found_exactly_and_without_width() -> None:
    found = isoflop_minima(Runs(parabolas(0.7, 0.03, 0.0, 0.0, 1, seed=0)))
    assert found.table["n_opt_params"].to_numpy() == pytest.approx(3e8 * (np.geomspace(1e18, 1e22, 6) / 1e20) ** 0.7)
    assert found.table["loss"].to_numpy() == pytest.approx(np.exp(1 - 0.05 * np.log(np.geomspace(0.01, 100, 6))))
    a = found.to_dict()["results"][0]["power_law"]["a"]
    assert list(a.values()) == pytest.approx([0.7] * 3, abs=1e-9)


def test_order_of_rows_does_not_matter() -> None:
    table = parabolas(0.6, 0.04, 0.005, 0.0, 1, seed=5)
    shuffled = table.sample(frac=1, random_state=1)
    found = [isoflop_minima(Runs(t)).table["n_opt_params"].to_numpy() for t in (table, shuffled)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


BAD = 1e15  # far from the other budgets
CENTER = np.geomspace(1 / 3, 3, 7)


def bent(sign: float, scatter: float = 0.0) -> pd.DataFrame:
    own = profile(BAD, best(BAD) * CENTER)
    noise = scatter * np.random.default_rng(0).standard_normal(len(own))
    return own.assign(loss=3 * np.exp(sign * 0.02 * np.log(CENTER) ** 2 + noise))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (bent(-1.0), "not convex"),
        (profile(BAD, best(BAD) * np.geomspace(1.5, 3, 7)), "not bracketed"),
        (profile(BAD, best(BAD) * np.geomspace(1 / 3, 0.7, 7)), "not bracketed"),
        (profile(BAD, best(BAD) * np.geomspace(1 / 3, 3, 4)), "4 runs, a parabola with an error needs 5"),
        (bent(0.05, scatter=0.02), "scatter hides the minimum"),
        (
            pd.concat([profile(BAD * f, best(BAD) * CENTER[[i]]) for i, f in enumerate(np.geomspace(1, 1.3, 7))]),
            "not one budget",
        ),
    ],
    ids=["concave", "too large", "too small", "few", "scatter", "spread"],
)
def test_a_budget_without_a_minimum_is_named_with_the_reason(bad: pd.DataFrame, reason: str, exact: Minima) -> None:
    found = isoflop_minima(runs(symmetric(), bad))
    assert len(found.refused) == 1
    assert reason in found.refused["reason"].iloc[0]
    assert found.refused["budget_flop"].iloc[0] == pytest.approx(BAD, rel=0.2)
    assert found.table["n_opt_params"].to_numpy() == pytest.approx(exact.table["n_opt_params"].to_numpy())


def test_fewer_than_two_minima_is_an_error_that_says_what_to_do() -> None:
    one = runs(symmetric(budgets=BUDGETS[:1]), profile(BAD, best(BAD) * np.geomspace(1.5, 3, 7)))
    with pytest.raises(ValueError, match=r"1 budgets .* not bracketed.* Train at least 5 sizes .* compute_envelope"):
        isoflop_minima(one)
    with pytest.raises(ValueError, match=r"Train at least 5 sizes"):
        isoflop_minima(runs(*(profile(c, np.array([best(c)])) for c in np.geomspace(1e17, 1e21, 9))))


@pytest.mark.parametrize(
    "setting", [{"tolerance": 1.0}, {"near": 0.5}, {"level": 1.0}, {"level": 0.0}, {"resamples": 10}]
)
def test_a_setting_that_means_nothing_is_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        isoflop_minima(runs(symmetric()), **setting)


@given(st.lists(st.floats(1e15, 1e17), min_size=1, max_size=40), st.floats(1.01, 2.0))
def test_runs_are_of_one_budget_where_compute_is_close(flop: list[float], tolerance: float) -> None:
    """Neighbours in compute share a budget exactly where they differ by at most the factor."""
    c = np.array(flop)
    label = parabola.budgets(c, tolerance)
    order = np.argsort(c)
    ratio, step = c[order][1:] / c[order][:-1], np.diff(label[order])
    assert label.min() == 0
    clear = np.abs(np.log(ratio) - np.log(tolerance)) > 1e-9
    assert (step[clear] == (ratio > tolerance)[clear]).all()
    assert set(step.tolist()) <= {0, 1}


@given(st.lists(st.floats(0.5, 1.5), min_size=5, max_size=30), st.floats(1.001, 1.5))
def test_the_window_is_near_the_lowest_or_the_five_lowest(log_loss: list[float], near: float) -> None:
    y = np.array(log_loss)
    inside = parabola.window(y[None], near)[0]
    expected = [v <= max(y.min() + np.log(near), sorted(y)[4]) for v in y]
    assert inside.tolist() == expected


@pytest.mark.parametrize(("scatter", "seed"), [(0.0, 1), (0.15, 2)], ids=["own errors", "scatter between budgets"])
def test_nine_in_ten_intervals_hold_the_truth(scatter: float, seed: int) -> None:
    """200 tables: 90 % of the intervals, give or take three binomial standard deviations; too wide is wrong too."""
    found = isoflop_minima(
        Runs(parabolas(0.55, 0.04, 0.004, scatter, 200, seed)), group_by="table", resamples=500, near=1.2
    )
    laws = [r["power_law"] for r in found.to_dict()["results"]]
    held = np.mean([law["a"]["lower"] <= 0.55 <= law["a"]["upper"] for law in laws])
    assert 0.9 - 3 * np.sqrt(0.09 / 200) <= held <= 0.9 + 3 * np.sqrt(0.09 / 200)
    if not scatter:
        frame = found.to_dataframe()
        truth = 3e8 * (frame["budget_flop"] / 1e20) ** 0.55
        inside = frame["n_opt_params_lower"].le(truth) & frame["n_opt_params_upper"].ge(truth)
        assert inside.mean() == pytest.approx(0.9, abs=3 * np.sqrt(0.09 / len(frame)))


def test_standard_errors_are_those_of_repeated_tables() -> None:
    """The bootstrap's error of log10 N_opt against the spread of 200 tables' estimates."""
    table = Runs(parabolas(0.55, 0.04, 0.004, 0.0, 200, seed=3))
    found = isoflop_minima(table, group_by="table", near=1.2, resamples=200).table
    spread = found.groupby("budget_flop")["n_opt_params"].agg(lambda n: np.log10(n).std())
    assert found["log10_n_opt_se"].median() == pytest.approx(spread.mean(), rel=0.15)


def test_each_group_has_its_own(noisy: Minima) -> None:
    alone = isoflop_minima(Runs(parabolas(0.6, 0.04, 0.005, 0.0, 3, seed=5).query("table == '001'")))
    assert noisy.groups == ("000", "001", "002")
    own = noisy.table[noisy.table["group"] == "001"]
    assert own["n_opt_params"].to_numpy() == pytest.approx(alone.table["n_opt_params"].to_numpy())


def test_level_changes_intervals_and_a_seed_repeats_them(noisy: Minima) -> None:
    again = isoflop_minima(Runs(parabolas(0.6, 0.04, 0.005, 0.0, 3, seed=5)), group_by="table")
    assert again.to_dict() == noisy.to_dict()
    both = [m.to_dict()["results"][0] for m in (noisy, replace(noisy, level=0.5))]
    for of in (lambda r: r["power_law"]["a"], lambda r: r["minima"][0]["loss"]):
        wide, narrow = map(of, both)
        assert wide["lower"] < narrow["lower"] < wide["estimate"] == narrow["estimate"] < narrow["upper"]
        assert narrow["upper"] < wide["upper"]


def test_the_dictionary_is_json_and_agrees_with_the_frame(noisy: Minima) -> None:
    found, frame = noisy.to_dict(), noisy.to_dataframe()
    json.dumps(found, allow_nan=False)
    first = found["results"][0]["minima"][0]
    assert frame.loc[0, "loss_upper"] == first["loss"]["upper"]
    expected = np.exp(np.nanquantile(noisy.draws["000"]["log_n"][:, 0], [0.05, 0.95]))
    assert [first["n_opt_params"][k] for k in ("lower", "upper")] == pytest.approx(list(expected), rel=1e-3)
    for name in ("n_opt_params", "d_opt_tokens", "tokens_per_parameter", "loss"):
        assert first[name]["lower"] < first[name]["estimate"] < first[name]["upper"]
        assert first[name]["estimate"] == noisy.table[name][0]
    spent = 6 * frame["n_opt_params_estimate"] * frame["d_opt_tokens_estimate"] / frame["budget_flop"]
    assert spent.to_numpy() == pytest.approx(1.0)


def test_where_compute_is_not_k_n_d_no_b_is_said() -> None:
    table = symmetric()
    attention = table.assign(flop=table["flop"] * (table["n_params"] / 1e8) ** 0.02)
    assert isoflop_minima(Runs(attention), tolerance=1.2).to_dict()["results"][0]["power_law"]["b"] is None


@given(st.lists(st.floats(0.5, 1.5), min_size=1, max_size=20))
def test_a_run_is_on_the_envelope_when_no_cheaper_one_beats_it(log_loss: list[float]) -> None:
    on = envelope.lowest(np.array([log_loss]))[0]
    assert on.tolist() == [all(v < w for w in log_loss[:i]) for i, v in enumerate(log_loss)]


def dense(noise: float) -> Runs:
    """40 budgets, sizes a fifth apart at each."""
    n = np.geomspace(1e7, 1e10, 38)
    table = pd.concat([profile(c, n) for c in np.geomspace(1e18, 1e21, 40)], ignore_index=True)
    return Runs(table.assign(loss=table["loss"] * np.exp(noise * np.random.default_rng(0).standard_normal(len(table)))))


def test_the_envelope_of_dense_sizes_is_the_closed_form() -> None:
    """Each size on it is the nearest to the optimum that was trained, so a is one half."""
    found = compute_envelope(dense(0.0))
    off = np.log(found.table["n_params"] / [best(c) for c in found.table["flop"]])
    assert np.abs(off).max() <= np.log(10) * 3 / 37 / 2 * (1 + 1e-9)
    a = found.to_dict()["results"][0]["power_law"]["a"]
    assert a["estimate"] == pytest.approx(0.5, abs=0.01)
    assert a["lower"] <= a["estimate"] <= a["upper"]


def test_the_envelope_of_noisy_runs_has_an_interval_that_holds_the_closed_form() -> None:
    found = compute_envelope(dense(0.003))
    json.dumps(found.to_dict(), allow_nan=False)
    a = found.to_dict()["results"][0]["power_law"]["a"]
    assert a["lower"] < 0.5 < a["upper"]
    assert (np.diff(found.table["loss"]) < 0).all()
    assert (np.diff(found.table["flop"]) > 0).all()


def test_an_envelope_of_one_size_is_an_error_that_says_what_to_do() -> None:
    one = runs(*(profile(c, np.array([1e9])) for c in np.geomspace(1e18, 1e21, 9)))
    with pytest.raises(ValueError, match=r"Add runs at more compute levels, each with several sizes"):
        compute_envelope(one)


@dataclass(frozen=True)
class Fitted:
    """A posterior as the check reads it, its predictive losses (chain, draw, run) given."""

    runs: Runs | None
    losses: np.ndarray
    status: str = "PASS"
    groups: tuple[str, ...] = ()
    by: str | None = None

    @property
    def model(self) -> Any:
        return SimpleNamespace(pooling=SimpleNamespace(by=self.by))

    @property
    def tree(self) -> dict[str, Any]:
        return {"posterior_predictive": SimpleNamespace(dataset={"loss": self.losses})}


def replicated(table: pd.DataFrame, shift: float = 0.0, draws: int = 400) -> np.ndarray:
    """Losses of the symmetric law with its optimum moved by so much of log N, and .3 % scatter."""
    n = table["n_params"].to_numpy() * np.exp(-shift)
    mean = E + A * n**-ALPHA + B * (table["flop"].to_numpy() / (6 * n)) ** -ALPHA
    return mean * np.exp(0.003 * np.random.default_rng(1).standard_normal((2, draws // 2, len(table))))


def test_a_fit_that_made_the_table_holds_its_minima_and_one_that_did_not_does_not() -> None:
    table = symmetric()
    right = isoflop_check(Fitted(Runs(table), replicated(table))).to_dict()["results"][0]
    assert all(b["inside"] for b in right["budgets"])
    assert right["a"]["inside"]
    assert right["a"]["predictive_a"]["median"] == pytest.approx(0.5, abs=0.01)
    wrong = isoflop_check(Fitted(Runs(table), replicated(table, shift=0.4))).to_dict()["results"][0]
    assert not any(b["inside"] for b in wrong["budgets"])
    ratio = [b["predictive_n_opt_params"]["median"] / b["observed_n_opt_params"] for b in wrong["budgets"]]
    assert ratio == pytest.approx([np.exp(0.4)] * 4, rel=0.1)


def test_replicates_go_through_the_same_procedure() -> None:
    """Replicated losses that are the observed ones have the observed minima, window and all."""
    table = parabolas(0.6, 0.04, 0.005, 0.0, 2, seed=5)
    same = np.broadcast_to(table["loss"].to_numpy(), (1, 10, len(table)))
    found = isoflop_check(Fitted(Runs(table), same, groups=("000", "001"), by="table")).to_dict()
    assert [r["group"] for r in found["results"]] == ["000", "001"]
    for r in found["results"]:
        assert r["a"]["predictive_a"]["median"] == pytest.approx(r["a"]["observed_a"])
        for b in r["budgets"]:
            assert b["predictive_n_opt_params"]["lower"] == pytest.approx(b["observed_n_opt_params"])


def test_replicates_without_a_minimum_are_counted_and_half_of_them_leave_no_interval() -> None:
    table = symmetric()
    losses = replicated(table)
    losses[0, :, :7] = np.inf  # the smallest budget, in half of the draws
    losses[1, :1, :7] = 0.0
    found = isoflop_check(Fitted(Runs(table), losses))
    json.dumps(found.to_dict(), allow_nan=False)
    first, second = found.to_dict()["results"][0]["budgets"][:2]
    assert first["no_minimum_share"] == pytest.approx(201 / 400)
    assert first["inside"] is None
    assert first["predictive_n_opt_params"] == {"median": None, "lower": None, "upper": None}
    assert second["inside"]
    assert len(found.to_dataframe()) == 4


def test_a_published_law_has_no_table_to_check() -> None:
    with pytest.raises(ValueError, match="not fitted to runs"):
        isoflop_check(Fitted(None, np.ones((1, 1, 1))))
