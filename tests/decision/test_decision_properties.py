"""Decisions as properties over laws and budgets, against a dense grid and closed forms written out here."""

import numpy as np
import pytest
from decision_stand_in import B24, SARDANA, cloud, loss, optimum, posterior

import bayescale as bs
from bayescale.decision.constraint import Ratio, Sizes, Tokens
from bayescale.decision.cost import Inference
from bayescale.decision.objective import Compute, Cost, Loss, Regret
from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Worst
from bayescale.decision.target import Target

RISKS = [Mean(), Quantile(0.9), CVaR(0.1), Entropic(5.0), MeanDeviation(1.0), Worst()]
DRAWS = 400


def by_sorting(risk: object, outcomes: np.ndarray) -> np.ndarray:
    """Risk measures from sorted samples."""
    x = np.sort(outcomes, axis=0)
    match risk:
        case Mean():
            return x.sum(axis=0) / len(x)
        case Quantile(level):
            place = level * (len(x) - 1)
            low = int(place)
            return x[low] + (place - low) * (x[min(low + 1, len(x) - 1)] - x[low])
        case CVaR(tail):
            return x[-round(tail * len(x)) :].mean(axis=0)
        case Entropic(aversion):
            return np.log(np.exp(aversion * x).mean(axis=0)) / aversion
        case MeanDeviation(weight):
            return x.mean(axis=0) + weight * np.sqrt(((x - x.mean(axis=0)) ** 2).mean(axis=0))
        case _:
            return x[-1]


@pytest.mark.parametrize("seed", range(8))
def test_any_law_and_budget_meet_hoffmanns_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.2, 0.6, 2)
    law = {
        "A": rng.uniform(0.05, 0.8) * 1e9**alpha,
        "B": rng.uniform(0.05, 0.8) * 2e10**beta,
        "E": rng.uniform(0.3, 2.5),
        "alpha": alpha,
        "beta": beta,
    }
    flop = 10 ** rng.uniform(19, 26)
    plan = bs.recommend(posterior({k: np.array([v]) for k, v in law.items()}), flop)
    assert plan.n_params == pytest.approx(optimum(law, flop)[0][0], rel=1e-6)
    assert plan.flop == pytest.approx(flop, rel=1e-9)


def gap(risk: object, plan: bs.Plan, letters: dict, flop: float) -> float:
    """By how much the least risk of a dense grid of sizes is below the plan's."""
    sizes = np.geomspace(plan.n_params / 30, plan.n_params * 30, 2001)
    own = by_sorting(risk, loss(letters, np.array([plan.n_params]), np.array([plan.n_tokens])))[0]
    return own - min(by_sorting(risk, loss(letters, part, flop / 6 / part)).min() for part in np.split(sizes[1:], 20))


@pytest.mark.parametrize("risk", [risk for risk in RISKS if not isinstance(risk, Quantile)], ids=str)
@pytest.mark.parametrize("flop", [1e21, 1e24])
def test_the_choice_has_the_least_risk_of_a_dense_grid(risk: object, flop: float) -> None:
    letters = cloud(DRAWS)
    assert gap(risk, bs.recommend(posterior(letters), flop, risk=risk), letters, flop) <= 1e-9


@pytest.mark.parametrize("flop", [1e21, 1e24])
def test_a_quantiles_choice_holds_on_other_draws(flop: float) -> None:
    """On its own draws, anybody's, a grid finds a lower point by luck; on others the choice is as good as any."""
    plan = bs.recommend(posterior(cloud(4000)), flop, risk=Quantile(0.9))
    assert gap(Quantile(0.9), plan, cloud(40_000, seed=1), flop) <= 5e-4


@pytest.mark.parametrize("risk", [Mean(), CVaR(0.1), Worst()], ids=str)
def test_the_least_regret_of_a_dense_grid(risk: object) -> None:
    letters, flop = cloud(DRAWS), 1e23
    best = optimum(letters, flop)[1][:, None]
    plan = bs.recommend(posterior(letters), flop, objective=Regret(Loss()), risk=risk)
    sizes = np.geomspace(plan.n_params / 10, plan.n_params * 10, 4001)
    least = by_sorting(risk, loss(letters, sizes, flop / 6 / sizes) - best).min()
    own = by_sorting(risk, loss(letters, np.array([plan.n_params]), np.array([plan.n_tokens])) - best)[0]
    assert own == pytest.approx(least, abs=1e-7)
    assert float(risk.of(plan.problem.outcomes(plan.choice))[0]) == pytest.approx(own, abs=1e-5)


def test_regret_is_never_negative_and_zero_for_a_certain_law() -> None:
    letters = cloud(DRAWS)
    plan = bs.recommend(posterior(letters), 1e23)
    assert (plan.regret >= 0).all()
    assert plan.regret.mean() > 1e-4
    assert bs.recommend(posterior(cloud(1)), 1e23).regret == pytest.approx(0.0, abs=1e-9)


def test_the_worst_of_every_draw_is_the_mean() -> None:
    letters = posterior(cloud(DRAWS))
    assert bs.recommend(letters, 1e23, risk=CVaR(1.0)).n_params == bs.recommend(letters, 1e23).n_params


def test_size_and_tokens_grow_with_the_budget() -> None:
    letters = posterior(cloud(DRAWS))
    plans = [bs.recommend(letters, flop) for flop in np.geomspace(1e20, 1e26, 13)]
    assert (np.diff([plan.n_params for plan in plans]) > 0).all()
    assert (np.diff([plan.n_tokens for plan in plans]) > 0).all()


@pytest.mark.parametrize("risk", RISKS[:3], ids=str)
@pytest.mark.parametrize(
    "limits",
    [
        [Tokens(4e12), Tokens(1e12), Tokens(2e11)],
        [Ratio(at_least=5.0), Ratio(at_least=40.0), Ratio(at_least=200.0)],
        [Sizes(at_most=5e11), Sizes(at_most=5e10), Sizes(at_most=5e9)],
    ],
    ids=["tokens", "ratio", "sizes"],
)
def test_a_tighter_constraint_never_improves(risk: object, limits: list) -> None:
    letters = posterior(cloud(4000))
    plans = [bs.recommend(letters, 1e24, risk=risk, constraints=each) for each in ([], *([one] for one in limits))]
    risks = [float(risk.of(plan.problem.outcomes(plan.choice))[0]) for plan in plans]
    assert (np.diff(risks) >= (-4e-4 if isinstance(risk, Quantile) else -1e-9)).all()
    assert risks[-1] > risks[0] + 1e-4


@pytest.mark.parametrize("risk", RISKS[:3], ids=str)
def test_lifetime_size_never_rises_with_demand(risk: object) -> None:
    letters = posterior(cloud(DRAWS))
    plans = [
        bs.recommend(letters, Target(2.1, 0.9), objective=Cost("flop", inference=Inference(tokens_in=d)), risk=risk)
        for d in (1e10, 1e11, 1e12, 1e13)
    ]
    sizes = [plan.n_params for plan in plans]
    assert (np.diff(sizes) <= 0).all()
    assert sizes[-1] < sizes[0] / 2


SERVED = Inference(1000, 250, 1e10, 0.4, 0.2, bs.Hardware("A100-40GB", price_per_hour=0.6), bits=8)
PAID = Cost("dollars", bs.Hardware("A100-80GB", utilisation=0.5, price_per_hour=1.4), SERVED)


@pytest.mark.parametrize(
    ("quality", "cost", "n", "d"),
    [
        (1.947, Cost("flop", inference=Inference(tokens_in=2e12)), 2.418e10, 2.657e12),
        (1.947, PAID, 2.053e10, 3.302e12),
        (30e9, Cost("flop", inference=Inference(tokens_in=5e12)), 1.641e10, 3.265e12),
        (70e9, Cost("flop", inference=Inference(tokens_in=1e13)), 4.155e10, 7.923e12),
        (7e9, Cost("flop", inference=Inference(tokens_in=2e12)), 3.08e9, None),
    ],
)
def test_the_published_inference_aware_optima(quality: float, cost: Cost, n: float, d: float | None) -> None:
    """Sardana et al. 2023, through a posterior of one point; a quality is a loss, or that of a model of so many."""
    c = SARDANA
    if quality > 1e6:
        tokens = (c["alpha"] * c["A"] * quality ** -c["alpha"] / (c["beta"] * c["B"])) ** (-1 / c["beta"])
        quality = float(loss(c, np.array([quality]), np.array([tokens]))[0, 0])
    plan = bs.recommend(posterior({k: np.array([v]) for k, v in c.items()}), Target(quality, 0.5), objective=cost)
    assert plan.n_params == pytest.approx(n, rel=5e-3)
    assert d is None or plan.n_tokens == pytest.approx(d, rel=5e-3)


def test_cheapest_for_a_target_with_a_probability_reaches_it_that_often() -> None:
    letters = cloud(2000)
    plan = bs.recommend(posterior(letters), Target(2.1, 0.95), objective=Compute())
    reached = loss(letters, np.array([plan.n_params]), np.array([plan.n_tokens]))[:, 0] <= 2.1
    assert reached.mean() == pytest.approx(0.95, abs=1e-3)


def test_b24_is_what_the_published_posterior_holds() -> None:
    assert {k: float(v[0]) for k, v in bs.published("besiroglu-2024").coefficients().items()} == pytest.approx(B24)
