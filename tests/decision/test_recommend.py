"""What is recommended: closed forms, limits at their edges, conflicts, refusals."""

import json
import math

import numpy as np
import pytest

import bayescale as bs
from bayescale.decision.constraint import Ratio, Sizes, Tokens
from bayescale.decision.cost import Inference
from bayescale.decision.objective import Compute, Cost, Custom, Loss, Regret
from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Worst, check_draws
from bayescale.decision.target import Target

LAW = "besiroglu-2024"


def hoffmann(flop: float) -> tuple[float, float]:
    """Closed form of the optimum and of its loss (Hoffmann et al. 2022, equation 4), C = 6 N D."""
    c = {k: float(v[0]) for k, v in bs.published(LAW).coefficients().items()}
    a, b = c["alpha"], c["beta"]
    g = (a * c["A"] / (b * c["B"])) ** (1 / (a + b))
    n = g * (flop / 6) ** (b / (a + b))
    return n, c["E"] + c["A"] * n**-a + c["B"] * (flop / 6 / n) ** -b


@pytest.mark.parametrize("flop", [1e19, 1e22, 1e24, 3.8e25])
def test_unconstrained_size_is_hoffmanns(flop: float) -> None:
    assert bs.recommend(bs.published(LAW), flop).n_params == pytest.approx(hoffmann(flop)[0], rel=1e-6)


@pytest.mark.parametrize("flop", [1e22, 1e24])
def test_cheapest_for_a_loss_is_the_frontier(flop: float) -> None:
    n, loss = hoffmann(flop)
    plan = bs.recommend(bs.published(LAW), Target(loss, 0.5))
    assert plan.flop == pytest.approx(flop, rel=1e-6)
    assert plan.n_params == pytest.approx(n, rel=1e-3)  # compute is flat in size at its least


def test_tokens_that_exist_bind() -> None:
    """Case plan-03: the cap takes all that there is, the rest of the compute goes into size."""
    plan = bs.recommend(bs.published(LAW), 1e23, constraints=[Tokens(1e11)])
    assert plan.n_tokens == pytest.approx(1e11, rel=1e-6)
    assert plan.n_params == pytest.approx(1e23 / 6e11, rel=1e-6)
    assert [str(each) for each, _ in plan.binding] == ["1e+11 distinct tokens, each seen once"]


def test_inference_makes_models_smaller() -> None:
    """Case plan-05, with the constants printed there: a 13e9 model's loss, served 2e12 tokens."""
    posterior = bs.published(LAW)
    c = {k: float(v[0]) for k, v in posterior.coefficients().items()}
    n = 13e9
    d = (c["alpha"] * c["A"] * n ** -c["alpha"] / (c["beta"] * c["B"])) ** (-1 / c["beta"])
    loss = c["E"] + c["A"] * n ** -c["alpha"] + c["B"] * d ** -c["beta"]
    sizes = []
    for demand in (0.0, 2e12, 1e13):
        cost = Cost("flop", inference=Inference(tokens_in=demand)) if demand else Compute()
        sizes.append(bs.recommend(posterior, Target(loss, 0.5), objective=cost).n_params)
    assert sizes[0] == pytest.approx(n, rel=1e-3)
    assert sizes[1] == pytest.approx(6.09e9, rel=0.05)
    assert sizes[0] > sizes[1] > sizes[2]


def test_two_way_search_finds_what_compute_is_worth() -> None:
    """Least L*(C) + w C along the frontier, where gamma K (C / 6)^(-gamma - 1) / 6 = w."""
    c = {k: float(v[0]) for k, v in bs.published(LAW).coefficients().items()}
    a, b = c["alpha"], c["beta"]
    g, gamma = (a * c["A"] / (b * c["B"])) ** (1 / (a + b)), a * b / (a + b)
    k = c["A"] * g**-a + c["B"] * g**b
    best = 6 * (gamma * k / 6 / 1e-26) ** (1 / (1 + gamma))
    plan = bs.recommend(bs.published(LAW), 1e26, objective=Custom(lambda d: d["loss"] + 1e-26 * d["flop"]))
    assert plan.flop == pytest.approx(best, rel=1e-2)
    assert plan.n_params == pytest.approx(hoffmann(best)[0], rel=1e-2)


def test_nothing_is_regretted_where_all_is_known() -> None:
    plan = bs.recommend(bs.published(LAW), 1e23, objective=Regret(Loss()), risk=Worst())
    assert plan.regret == pytest.approx(0.0, abs=1e-6)


def test_conflict_names_its_set_and_what_would_do() -> None:
    posterior = bs.published(LAW)
    with pytest.raises(ValueError, match=r"at most 1e\+22 FLOP; a loss of at most 1\.9 ") as refused:
        bs.recommend(posterior, 1e22, constraints=[Ratio(at_most=1e4), Target(1.9, 0.5)])
    nearest = float(str(refused.value).split("would do: training compute of at most ")[1].split(" ")[0])
    bs.recommend(posterior, nearest * 1.01, constraints=[Target(1.9, 0.5)])
    with pytest.raises(ValueError, match="No choice"):
        bs.recommend(posterior, nearest * 0.99, constraints=[Target(1.9, 0.5)])


@pytest.mark.parametrize("bad", [0, -1e22, math.inf, math.nan, "abc", "10^22", "", [], [1e22, 1e23], 1e-5, True])
def test_what_is_no_budget_is_refused(bad: object) -> None:
    """Case plan-07."""
    with pytest.raises(ValueError, match=r"budget|goal"):
        bs.recommend(bs.published(LAW), bad)


def test_whole_numbers_of_any_length_are_budgets() -> None:
    assert bs.recommend(bs.published(LAW), 10**24).flop == pytest.approx(1e24)


def test_sizes_on_offer_and_their_limits() -> None:
    posterior = bs.published(LAW)
    assert bs.recommend(posterior, 1e24, sizes=[1e9, 9e10, 1e12]).n_params == 9e10
    assert bs.recommend(posterior, 1e24, constraints=[Sizes(at_most=5e9)]).n_params == pytest.approx(5e9, rel=1e-6)
    assert bs.recommend(posterior, 1e24, constraints=[Ratio(at_least=50)]).tokens_per_parameter == pytest.approx(50)


def test_a_plan_says_it_in_json_table_and_words() -> None:
    plan = bs.recommend(bs.published(LAW), bs.Budget(flop=1e24), compare=[7e10])
    assert json.loads(json.dumps(plan.to_dict(), allow_nan=False))["choice"]["flop"] == pytest.approx(1e24)
    assert plan.to_dataframe()["rule"].iloc[0] == "recommended"
    assert repr(plan).startswith("UNKNOWN")
    assert "Train 95.9 B parameters" in repr(plan)


@pytest.mark.parametrize("tail", [0.05, 0.1, 0.333, 1.0])
def test_cvar_is_the_mean_of_the_worst(tail: float) -> None:
    x = np.random.default_rng(0).standard_normal((997, 3))
    ordered, count = np.sort(x, axis=0)[::-1], tail * 997
    whole = math.floor(count)
    rest = (count - whole) * ordered[whole] if whole < 997 else 0.0
    assert CVaR(tail).of(x) == pytest.approx((ordered[:whole].sum(axis=0) + rest) / count)


@pytest.mark.parametrize("risk", [Mean(), Quantile(0.9), CVaR(0.1), Worst(), Entropic(2.0), MeanDeviation(1.0)])
def test_a_risk_moves_with_its_outcomes(risk: object) -> None:
    x = np.random.default_rng(1).gamma(2.0, size=(500, 2))
    assert risk.of(x + 3.0) == pytest.approx(risk.of(x) + 3.0)
    assert risk.of(np.full((500, 2), 1.5)) == pytest.approx(1.5)
    assert (risk.of(x) >= x.mean(axis=0) - 1e-12).all()


def test_thin_tails_are_refused_with_the_draws_that_would_do() -> None:
    with pytest.raises(ValueError, match="3,000 effective draws"):
        check_draws(CVaR(0.01), 400.0)
