"""From draws of a law to a table of plans."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from frontier_stand_in import B24, StandIn, letters, one, spread

from bayescale.frontier import solve
from bayescale.frontier.frontier import allocate
from bayescale.frontier.intervals import quantiles
from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.runs.flops import FlopsRule

DRAWS = spread(500)
STATISTICS = ("median", "lower", "upper")


@pytest.fixture(scope="module")
def frontier():
    """500 draws around Besiroglu et al.'s constants."""
    return allocate(one(**DRAWS), ["1e21", 10**24, 3.8e25])


def test_medians_are_the_published_plan():
    """A point posterior gives the closed form's plan (literature.md section 4) as median and as both ends."""
    row = allocate(one(**letters(B24)), 1e24).to_dict()["results"][0]
    for key, expected in (
        ("n_opt_params", 9.58607e10), ("d_opt_tokens", 1.73863e12), ("tokens_per_parameter", 18.137),
        ("loss", 1.959712), ("a", 0.512612), ("b", 1 - 0.512612),
    ):  # fmt: skip
        assert [row[key][s] for s in STATISTICS] == pytest.approx([expected] * 3, rel=1e-5)


def test_intervals_are_quantiles_of_the_draws(frontier):
    """Every interval in the table is the equal-tailed one of the draws that the frontier gives."""
    frame, draws = frontier.to_dataframe(), frontier.draws().merge(frontier.exponents())
    for name in ("n_opt_params", "d_opt_tokens", "tokens_per_parameter", "loss", "a", "b"):
        assert draws[name].dims == ("draw", "budget_flop")
        for statistic, q in (("lower", 0.05), ("median", 0.5), ("upper", 0.95)):
            assert frame[f"{name}_{statistic}"].to_numpy() == pytest.approx(
                draws[name].quantile(q, "draw").to_numpy(), rel=1e-12
            )


def test_draws_spend_the_budget_and_are_labelled_with_units(frontier):
    """6 N D = C for every draw, D / N is tokens per parameter, and the loss is the law's there."""
    n, d = frontier.n_opt(), frontier.d_opt()
    assert (6 * n * d / n.budget_flop).to_numpy() == pytest.approx(1.0, rel=1e-12)
    assert (d / n).to_numpy() == pytest.approx(frontier.tokens_per_parameter().to_numpy())
    law = DRAWS["E"] + DRAWS["A"] / n[:, 1] ** DRAWS["alpha"] + DRAWS["B"] / d[:, 1] ** DRAWS["beta"]
    assert frontier.loss()[:, 1].to_numpy() == pytest.approx(law.to_numpy())
    assert [x.attrs["unit"] for x in (n, d, frontier.loss())] == ["parameters", "tokens", "nats per token"]


def test_level_widens_the_interval_and_keeps_the_median(frontier):
    """Changing the level needs no new solution; 50 % lies strictly inside 90 %."""
    wide, narrow = (x.to_dict()["results"][1]["n_opt_params"] for x in (frontier, replace(frontier, level=0.5)))
    assert wide["lower"] < narrow["lower"] < narrow["median"] == wide["median"] < narrow["upper"] < wide["upper"]


def test_uncertainty_grows_with_extrapolation():
    """The interval of log N_opt widens from 1e21 to 1e29 FLOP; beyond 100 times the largest run it is marked far."""
    posterior = replace(one(**DRAWS), largest={"n_params": 5e9, "n_tokens": 1e11, "flop": 9e20})
    frame = allocate(posterior, [1e19, 1e21, 1e23, 1e25, 1e29]).to_dataframe()
    width = np.log10(frame["n_opt_params_upper"] / frame["n_opt_params_lower"])
    assert (width.diff()[1:] > 0).all()
    assert frame["extrapolation_factor"].to_numpy() == pytest.approx(frame["budget_flop"] / 9e20)
    assert frame["n_opt_extrapolation_factor"].to_numpy() == pytest.approx(frame["n_opt_params_median"] / 5e9)
    assert frame["d_opt_extrapolation_factor"].to_numpy() == pytest.approx(frame["d_opt_tokens_median"] / 1e11)
    assert frame["extrapolates"].tolist() == [False, True, True, True, True]
    assert frame["far"].tolist() == [False, False, True, True, True]


def test_a_plan_outside_the_sizes_seen_is_marked_within_the_compute_seen():
    """A budget below the largest run's still extrapolates if its N_opt is beyond every size that was run."""
    posterior = replace(one(**letters(B24)), largest={"n_params": 1e8, "n_tokens": 1e13, "flop": 1e22})
    row = allocate(posterior, 1e21).to_dict()["results"][0]
    assert row["extrapolation_factor"] < 1 < row["n_opt_extrapolation_factor"]
    assert row["extrapolates"]


@pytest.mark.parametrize(("without", "given"), [(0, True), (5, True), (6, False), (100, False)])
def test_intervals_are_null_beyond_5_percent_without_optimum(without, given):
    """Quantiles over the draws with an optimum up to a share of 5 % without; null beyond; the share always."""
    draws = spread(100)
    draws["B"][:without] = 0.0
    result = allocate(one(**draws), [1e22, 1e23])
    row = result.to_dict()["results"][1]
    assert row["no_optimum_share"] == pytest.approx(without / 100)
    for key in ("n_opt_params", "d_opt_tokens", "tokens_per_parameter", "loss", "a", "b"):
        assert [row[key][s] is not None for s in STATISTICS] == [given] * 3
    assert [value is not None for value in row["n_within_1_percent_params"].values()] == [given] * 2
    if given:
        others = result.n_opt()[without:, 1]
        assert row["n_opt_params"]["median"] == pytest.approx(float(others.median()))
    assert result.to_dataframe()["n_opt_params_median"].notna().tolist() == [given] * 2


@pytest.mark.parametrize("draws", [DRAWS, DRAWS | {"B": np.zeros(500)}], ids=["sound", "no optimum"])
def test_to_dict_is_json_with_plain_numbers(draws):
    """Strict JSON: no NaN, no numpy scalars, no numbers as text; the stated top-level keys."""
    table = allocate(one(**draws), [1e22, 1e25]).to_dict()
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    assert (table["level"], table["kind"], table["diagnostics"]) == (0.9, "eti", "PASS")
    for row in table["results"]:
        assert row.pop("group") is None
        assert {type(row.pop(flag)) for flag in ("extrapolates", "far")} == {bool}
        ratio, determined = row["tokens_per_parameter"], row.pop("determined")
        assert determined is (None if ratio["lower"] is None else ratio["upper"] <= 10 * ratio["lower"])
        assert (row.pop("compute_wasted") is not None) == (determined is False)
        values = [v for entry in row.values() for v in (entry.values() if isinstance(entry, dict) else [entry])]
        assert {type(v) for v in values} <= {float, type(None)}


def test_dataframe_has_the_dictionarys_numbers(frontier):
    """One row a budget, numeric columns with units in their names, and how the intervals were made."""
    frame, table = frontier.to_dataframe(), frontier.to_dict()
    assert frame["budget_flop"].tolist() == [1e21, 1e24, 3.8e25]
    assert frame["n_within_1_percent_params_upper"].tolist() == [
        row["n_within_1_percent_params"]["upper"] for row in table["results"]
    ]
    assert frame.attrs == {"warning": None, "level": 0.9, "kind": "eti", "diagnostics": "PASS", "drift": False,
                           "beyond_data": None, "rule": "C = 6 N D", "loss_unit": "nats per token",
                           "conditions": {}}  # fmt: skip
    numeric = frame.drop(columns=["group", "extrapolates", "far", "determined"])
    assert {str(t) for t in numeric.dtypes} == {"float64"}


def test_band_is_the_median_of_the_draws_own_bands():
    """Up to 400 draws, all of them count; the summary is the median of each end."""
    draws, budgets = spread(101), np.array([1e22])
    result = allocate(one(**draws), budgets)
    lower, upper = solve.band(result.law, result.rule, draws, budgets, result.log_n[None])
    band = result.within_1_percent()
    assert float(band["lower"][0]) == pytest.approx(np.exp(np.median(lower)))
    assert float(band["upper"][0]) == pytest.approx(np.exp(np.median(upper)))
    assert band["lower"] < result.n_opt().median() < band["upper"]


def test_groups_a_new_one_and_the_population():
    """All groups unless asked; one or some by name; the new group and the population mean by their values."""
    posterior = StandIn({
        "web": spread(50, seed=1), "code": spread(50, seed=2, B=1000.0),
        "new group": spread(50, seed=3), "population mean": spread(50, seed=4),
    })  # fmt: skip
    every = allocate(posterior, [1e22, 1e24])
    assert every.groups == ("web", "code")
    assert every.to_dataframe()["group"].tolist() == ["web", "web", "code", "code"]
    assert every.draws().sizes == {"group": 2, "draw": 50, "budget_flop": 2}
    chosen = allocate(posterior, 1e22, group=["code", NewGroup(), PopulationMean()])
    assert chosen.groups == ("code", "new group", "population mean")
    assert chosen.n_opt("code").to_numpy() == pytest.approx(every.n_opt("code")[:, :1].to_numpy())
    assert chosen.n_opt(NewGroup()).equals(allocate(posterior, 1e22, group=NewGroup()).n_opt())
    with pytest.raises(ValueError, match="web, code"):
        every.n_opt()
    with pytest.raises(ValueError, match="the groups are web, code"):
        allocate(posterior, 1e22, group="book")
    with pytest.raises(ValueError, match="twice: web"):
        allocate(posterior, 1e22, group=["web", "web"])
    with pytest.raises(ValueError, match="empty"):
        allocate(posterior, 1e22, group=[])


def test_another_rule_moves_the_plan_and_not_the_fit():
    """k = 8 at 1e24 FLOP: 8.27171e10 parameters on 1.51117e12 tokens (literature.md section 4)."""
    row = allocate(one(**letters(B24)), 1e24, rule=FlopsRule(8.0)).to_dict()["results"][0]
    assert row["n_opt_params"]["median"] == pytest.approx(8.27171e10, rel=1e-5)
    assert row["d_opt_tokens"]["median"] == pytest.approx(1.51117e12, rel=1e-5)


@dataclass(frozen=True)
class Untouchable(StandIn):
    """A posterior whose draws must not be read."""

    def coefficients(self, group=None):
        raise AssertionError("the draws were read before the request was checked")


@pytest.mark.parametrize("budgets", [0, -1e22, np.inf, np.nan, "abc", "10^22", "1e22FLOP", True, [], [1e22, -1], 1e-5])
def test_bad_budgets_are_refused_before_anything_is_computed(budgets):
    """Nothing is read from the posterior for a budget that is none."""
    with pytest.raises(ValueError, match="budget"):
        allocate(Untouchable({None: {}}), budgets)


@pytest.mark.parametrize("level", [0, 1, 90, -0.1, np.nan, True])
def test_level_is_a_probability(level):
    """90 for 90 % is refused."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        allocate(Untouchable({None: {}}), 1e22, level=level)


def test_rule_is_a_rule():
    """A bare 6 is refused with the way to write it."""
    with pytest.raises(TypeError, match=r"FlopsRule\(6.0\), not 6.0"):
        allocate(Untouchable({None: {}}), 1e22, rule=6.0)  # type: ignore[arg-type]


def test_quantiles_leave_nan_out_and_keep_infinity():
    """As numpy's for the finite columns; an infinite half is infinite; a column of NaN is NaN."""
    rng = np.random.default_rng(0)
    values, q = rng.standard_normal((101, 4)), np.array([0.05, 0.37, 0.5, 1.0])
    values[:7, 1], values[60:, 2], values[:, 3] = np.nan, np.inf, np.nan
    found = quantiles(values, q)
    assert found[:, 0] == pytest.approx(np.quantile(values[:, 0], q))
    assert found[:, 1] == pytest.approx(np.quantile(values[7:, 1], q))
    assert np.isfinite(found[2, 2])
    assert found[3, 2] == np.inf
    assert np.isnan(found[:, 3]).all()
