"""What pilots are worth: against conjugate Normals, at their limits, under each risk, and what is refused."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from decision_stand_in import cloud, posterior
from scipy.stats import norm

import bayescale as bs
from bayescale.decision.objective import Custom, Loss, Regret
from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Worst
from bayescale.decision.target import Target
from bayescale.decision.weighted import weighted

FLOP = 1e23
RUNS = [(1e9, 2e11), (1e10, 2e10), (2e9, 4e10), (1e8, 2e9)]
RISKS = [Mean(), CVaR(0.1), Quantile(0.9), Entropic(5.0), MeanDeviation(1.0), Worst()]


def noisy(letters: dict, noise: float = 0.005) -> bs.Posterior:
    """Draws of a law, and Normal scatter of log loss."""
    size = len(letters["A"])
    found = posterior({**letters, "noise": np.full(size, noise)})
    return dataclasses.replace(found, model=dataclasses.replace(found.model, noise=bs.Gaussian()))


@pytest.fixture(scope="module")
def uncertain() -> bs.Posterior:
    return noisy(cloud(4000))


def gains(pilots: bs.Pilots) -> np.ndarray:
    return np.array([each.gain for each in pilots.worth])


def hoffmann(c: dict, n: float) -> float:
    """What size and tokens add to the floor, at a budget of ``FLOP``."""
    return float((c["A"] * n ** -c["alpha"] + c["B"] * (FLOP / 6 / n) ** -c["beta"])[0])


@pytest.mark.parametrize("alternative", [1.99, 2.0, 2.02])
@pytest.mark.parametrize("noise", [0.002, 0.01])
def test_two_choices_meet_the_conjugate_normals(alternative: float, noise: float) -> None:
    """A run of Normal loss against one of a known loss (Raiffa & Schlaifer 1961, 5.3): sd phi(z) - |gap| Phi(-z)."""
    known = cloud(1, spread=0.0)
    sd, strata = 0.02, (np.arange(4000) + 0.5) / 4000
    order = np.random.default_rng(0).permutation(4000)
    letters = {name: np.repeat(value, 4000) for name, value in known.items()}
    letters["E"] = letters["E"] + sd * norm.ppf(strata)[order]
    at = {n: hoffmann(known, n) for n in (1e9, 3e10)}
    loss = 1.8172 + at[3e10]
    plan = bs.recommend(
        noisy(letters, noise),
        FLOP,
        sizes=[1e9, 3e10],
        objective=Custom(lambda d: np.where(d["n_params"] > 2e9, d["loss"] - loss + 2.0, alternative)),
    )
    run = (1e9, FLOP / 6 / 1e9)
    scatter = noise * (1.8172 + at[1e9])
    spread = sd**2 / np.hypot(sd, scatter)
    gap = abs(alternative - 2.0)
    exact = spread * norm.pdf(gap / spread) - gap * norm.cdf(-gap / spread)
    found = bs.next_pilot(plan, [run], unit_worth=bs.Budget(flop=1e24))
    error = found.worth[0].error
    assert found.worth[0].gain == pytest.approx(exact, abs=2.5 * error + 0.02 * exact)
    assert error < 0.1 * exact
    assert found.perfect == pytest.approx(sd * norm.pdf(gap / sd) - gap * norm.cdf(-gap / sd), rel=0.01)


@pytest.mark.parametrize("risk", RISKS, ids=str)
def test_integer_weights_repeat_draws(risk: object) -> None:
    rng = np.random.default_rng(1)
    x, times = rng.gamma(2.0, size=(300, 3)), rng.integers(1, 4, 300)
    again = np.repeat(x, times, axis=0)
    found = weighted(risk, x)(np.stack([times / times.sum(), np.full(300, 1 / 300)]))
    assert found[0] == pytest.approx(risk.of(again), rel=0.02 if isinstance(risk, Quantile) else 1e-9)
    assert found[1] == pytest.approx(risk.of(x), rel=1e-9)


@pytest.mark.parametrize("risk", RISKS[:-1], ids=str)
def test_a_pilot_is_never_worth_less_than_nothing(uncertain: bs.Posterior, risk: object) -> None:
    found = bs.next_pilot(bs.recommend(uncertain, FLOP, risk=risk), RUNS)
    assert (gains(found) >= 0).all()
    assert gains(found).max() > 0
    if isinstance(risk, Mean):
        assert gains(found).max() < found.perfect


def test_where_nothing_is_uncertain_nothing_is_worth_knowing() -> None:
    found = bs.next_pilot(bs.recommend(noisy(cloud(200, spread=0.0)), FLOP), RUNS)
    assert gains(found) == pytest.approx(0.0, abs=1e-7)
    assert found.perfect == pytest.approx(0.0, abs=1e-7)
    assert found.stop
    assert repr(found).startswith("UNKNOWN")
    assert "Stop: another pilot costs more than it is worth" in repr(found)


def test_a_run_that_scatters_more_tells_less_and_repeats_tell_more() -> None:
    by_noise = [
        gains(bs.next_pilot(bs.recommend(noisy(cloud(4000), noise), FLOP), RUNS[:2])) for noise in (0.005, 0.02, 1.0)
    ]
    assert (by_noise[0] > by_noise[1]).all()
    assert (by_noise[1] > by_noise[2]).all()
    assert by_noise[2] == pytest.approx(0.0, abs=1e-5)
    plan = bs.recommend(noisy(cloud(4000), 0.02), FLOP)
    repeated = [gains(bs.next_pilot(plan, RUNS[:2], replicates=k)) for k in (1, 4, 16)]
    assert (np.diff(repeated, axis=0) > 0).all()


def test_regret_is_worth_what_its_loss_is(uncertain: bs.Posterior) -> None:
    """Each draw's own best loss is no choice's: it drops out of the difference."""
    found = [bs.next_pilot(bs.recommend(uncertain, FLOP, objective=o), RUNS) for o in (Loss(), Regret(Loss()))]
    assert gains(found[1]) == pytest.approx(gains(found[0]), rel=0.02, abs=1e-7)
    assert found[1].exchange.flop == pytest.approx(found[0].exchange.flop, rel=1e-3)


def test_a_batch_is_its_steps_best_and_the_price_decides() -> None:
    plan = bs.recommend(noisy(cloud(4000), 0.02), FLOP)
    dear, cheap = (bs.next_pilot(plan, RUNS, batch=3, unit_worth=bs.Budget(flop=w)) for w in (1e28, 1e20))
    assert len(dear.batch) > 1
    assert [len(runs) for runs, _ in dear.steps] == [1, 2, 3]
    assert cheap.stop
    assert cheap.batch == ()
    told = [each.gain for _, each in dear.steps]
    assert told == sorted(told)


def test_a_unit_is_worth_the_compute_that_buys_it(uncertain: bs.Posterior) -> None:
    """The slope of the mean loss of a plan, between budgets five percent apart."""
    plans = [bs.recommend(uncertain, flop) for flop in (FLOP, 1.05 * FLOP)]
    slope = (plans[0].risk - plans[1].risk) / np.log(1.05)
    assert bs.next_pilot(plans[0], RUNS).exchange.flop == pytest.approx(FLOP / slope, rel=1e-4)


def test_pilots_say_it_in_json_table_and_words(uncertain: bs.Posterior) -> None:
    h100 = bs.Hardware("H100 SXM", utilisation=0.4, price_per_hour=2)
    found = bs.next_pilot(bs.recommend(uncertain, bs.Budget(dollars=1e5, hardware=h100)), bs.Budget(flop=1e21))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["results"][0]["gain"] > 0
    table = found.to_dataframe()
    assert (table["net_flop"].diff().dropna() <= 0).all()
    assert (table["cost_flop"] <= 1.01e21).all()
    assert table["cost_dollars"].iloc[0] == pytest.approx(table["cost_flop"].iloc[0] / (3600 * 0.4 * 989.4e12) * 2)
    assert "is worth" in repr(found)
    assert max(map(len, repr(found).splitlines())) <= 80
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize(
    ("candidates", "settings", "said"),
    [
        ([], {}, "no candidate"),
        ("many", {}, "cost at most"),
        ([(1e9, -1)], {}, "outside the range"),
        ([1e9], {}, "candidates are runs"),
        (RUNS, {"replicates": 0}, "replicates=0"),
        (RUNS, {"unit_worth": 1e24}, "Budget"),
    ],
)
def test_what_is_wrong_is_said(uncertain: bs.Posterior, candidates: object, settings: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bs.next_pilot(bs.recommend(uncertain, FLOP), candidates, **settings)


def test_a_law_without_scatter_and_a_target_are_refused(uncertain: bs.Posterior) -> None:
    with pytest.raises(ValueError, match="how runs scatter"):
        bs.next_pilot(bs.recommend(bs.published("besiroglu-2024"), FLOP), RUNS)
    with pytest.raises(ValueError, match="for a budget"):
        bs.next_pilot(bs.recommend(uncertain, Target(2.1, 0.9)), RUNS)


def test_a_fit_with_shocks_is_refused(uncertain: bs.Posterior) -> None:
    """A pilot shares a shock with no run yet, which its likelihood would have to know."""
    model = dataclasses.replace(uncertain.model, shocks=(bs.Shocks("seed"),))
    scales = dict(uncertain.tree["posterior"].data_vars)
    tree = uncertain.tree.copy()
    tree["posterior"] = xr.DataTree(xr.Dataset({**scales, "seed_shock": 0 * scales["noise"] + 0.01}))
    shocked = dataclasses.replace(uncertain, model=model, tree=tree)
    with pytest.raises(ValueError, match="no fit with shocks"):
        bs.next_pilot(bs.recommend(shocked, FLOP), RUNS)


def test_a_grid_stays_at_or_above_the_fits_own_runs(uncertain: bs.Posterior) -> None:
    frame = pd.DataFrame({"n_params": [3e8, 1e9], "n_tokens": [5e9, 4e10], "loss": [2.9, 2.5]})
    plan = bs.recommend(dataclasses.replace(uncertain, runs=bs.read_runs(frame)), FLOP)
    found = bs.next_pilot(plan, 1e21).runs
    assert [found["n_params"].min() >= 0.99 * 3e8, found["n_tokens"].min() >= 0.99 * 5e9] == [True, True]
    with pytest.raises(ValueError, match=r"as large as the fit's smallest, 3e\+08 parameters and 5e\+09 tokens"):
        bs.next_pilot(plan, 1e18)


def test_the_figure_shows_every_candidate_against_its_cost(uncertain: bs.Posterior) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    found = bs.next_pilot(bs.recommend(uncertain, FLOP), RUNS)
    ax = bs.plot_pilots(found, ax=Figure().subplots())
    ax.figure.canvas.draw()
    dots = ax.collections[-1].get_offsets()
    assert len(dots) == len(RUNS)
    np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(found.to_dataframe()["cost_flop"]))
    assert "UNKNOWN" in ax.get_title(loc="left")
