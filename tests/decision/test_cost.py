"""What training and inference cost, against model cards and the table of inference-aware optima."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from bayescale.decision.cost import (
    CURRENCIES,
    Inference,
    LifetimeCost,
    carbon_kg,
    dollars,
    kwh,
    training_cost,
    training_hours,
)
from bayescale.decision.hardware import Accelerator, Hardware
from bayescale.decision.uncertain import draw_all
from bayescale.parameter import LogNormal
from bayescale.runs.costs import AttentionRule, RecomputeRule

FULL = Hardware("H100 SXM", 1024, 0.4, 2.0, 1.2, 0.4, 0.1)


class Law:
    """E + A N^-alpha + B D^-beta of one set of constants; Sardana et al.'s unless given."""

    def __init__(self, A=406.4, B=410.7, E=1.69, alpha=0.336, beta=0.283):
        self.A, self.B, self.E, self.alpha, self.beta = A, B, E, alpha, beta

    def loss(self, n, d):
        return self.E + self.A * n**-self.alpha + self.B * d**-self.beta

    def tokens(self, n, loss):
        return (self.B / (loss - self.E - self.A * n**-self.alpha)) ** (1 / self.beta)

    def smallest(self, loss):
        return (self.A / (loss - self.E)) ** (1 / self.alpha)

    def training_optimal_tokens(self, n):
        """alpha A N^-alpha = beta B D^-beta."""
        return (self.beta * self.B / (self.alpha * self.A * n**-self.alpha)) ** (1 / self.beta)

    def cheapest(self, loss, cost):
        """Size, tokens and cost of the cheapest run of that loss."""
        draws = draw_all(cost.inputs(), 1, 0)

        def total(log_n):
            n = np.exp(log_n)
            d = self.tokens(n, loss)
            return np.asarray(cost.of(n, d, 6 * n * d, draws)).item()

        low = np.log(self.smallest(loss))
        found = minimize_scalar(total, bounds=(low + 1e-6, low + 7), method="bounded", options={"xatol": 1e-10})
        n = np.exp(found.x)
        return n, self.tokens(n, loss), found.fun


LAW = Law()
FLOP = LifetimeCost("flop")


def paid(n, d, cost):
    return np.asarray(cost.of(n, d, 6 * n * d, draw_all(cost.inputs(), 1, 0))).item()


def test_inference_aware_optimum_at_a_loss():
    """Sardana et al. 2024: loss 1.947, 2e12 tokens of inference."""
    cost = LifetimeCost("flop", inference=Inference(tokens_out=2e12))
    n, d, total = LAW.cheapest(1.947, cost)
    n0, d0, _ = LAW.cheapest(1.947, FLOP)
    assert (n, d) == pytest.approx((2.418e10, 2.657e12), rel=5e-3)
    assert (n / n0, d / d0, total / paid(n0, d0, cost)) == pytest.approx((0.7096, 1.4677, 0.9522), rel=5e-4)


@pytest.mark.parametrize(
    ("quality", "demand", "n", "d", "saved"),
    [
        (13e9, 2e12, 7e9, None, 0.1745),
        (30e9, 5e12, 1.641e10, 3.265e12, 0.1628),
        (70e9, 10e12, 4.155e10, 7.923e12, 0.1195),
        (7e9, 2e12, 3.08e9, None, 0.302),
    ],
)
def test_inference_aware_optimum_at_the_quality_of_a_model(quality, demand, n, d, saved):
    tokens = LAW.training_optimal_tokens(quality)
    loss = LAW.loss(quality, tokens)
    cost = LifetimeCost("flop", inference=Inference(tokens_in=0.3 * demand, tokens_out=0.7 * demand))
    best_n, best_d, total = LAW.cheapest(loss, cost)
    assert best_n == pytest.approx(n, rel=5e-3 if d else 0.02)  # 7B is printed to one digit
    assert d is None or best_d == pytest.approx(d, rel=5e-3)
    assert 1 - total / paid(quality, tokens, cost) == pytest.approx(saved, rel=5e-3)


def test_the_training_optimal_30b_model():
    tokens = LAW.training_optimal_tokens(30e9)
    assert tokens == pytest.approx(1.556e12, rel=1e-3)
    assert LAW.loss(30e9, tokens) == pytest.approx(1.958253, rel=1e-6)
    assert paid(30e9, tokens, FLOP) == pytest.approx(2.801e23, rel=1e-3)


def test_the_cost_form_with_its_prices():
    """Trained in bf16 on A100-80GB at $1.40, served in int8 on A100-40GB at $0.60: 1e10 requests of 1000 + 250."""
    inference = Inference(1000, 250, 1e10, 0.4, 0.2, Hardware("A100-40GB", price_per_hour=0.6), bits=8)
    cost = LifetimeCost("dollars", Hardware("A100-80GB", utilisation=0.5, price_per_hour=1.4), inference)
    n, d, total = LAW.cheapest(1.947, cost)
    n0, d0, _ = LAW.cheapest(1.947, FLOP)
    assert (n, d) == pytest.approx((2.053e10, 3.302e12), rel=5e-3)
    assert (n / n0, d / d0, total / paid(n0, d0, cost)) == pytest.approx((0.6023, 1.8241, 0.8876), rel=5e-4)
    assert (total, paid(n0, d0, cost)) == pytest.approx((1.425e6, 1.606e6), rel=1e-3)


@pytest.mark.parametrize(
    ("law", "demand", "n", "d", "total"),
    [
        ("original_law", 2e12, 7.12e9, 1.3e12, 8.38e22),
        ("law", 2e12, 6.09e9, 7.36e11, 5.13e22),
        ("law", 1e15, 2.43e9, 3.44e13, None),
    ],
)
def test_plan_05_inference_demand_decides_the_size(shared, law, demand, n, d, total):
    read = json.loads((shared / f"cases/plan-05/{law}.json").read_text("utf-8"))
    fixed = Law(*(read[key] for key in ("A", "B", "E", "alpha", "beta")))
    loss = fixed.loss(13e9, fixed.training_optimal_tokens(13e9))
    best = fixed.cheapest(loss, LifetimeCost("flop", inference=Inference(tokens_out=demand)))
    assert best[:2] == pytest.approx((n, d), rel=5e-3)
    assert total is None or best[2] == pytest.approx(total, rel=5e-3)


@given(st.floats(1e9, 1e12), st.floats(0, 1e16))
def test_the_optimum_meets_sardanas_first_order_condition_and_falls_with_demand(quality, demand):
    """(beta B / alpha + B) D^-beta + (T beta B / (3 alpha)) D^(-beta - 1) + E - loss = 0."""
    loss = LAW.loss(quality, LAW.training_optimal_tokens(quality))
    share = LAW.beta * LAW.B / LAW.alpha

    def condition(log_d):
        d = np.exp(log_d)
        return (share + LAW.B) * d**-LAW.beta + demand / 3 * share * d ** (-LAW.beta - 1) + LAW.E - loss

    d = np.exp(brentq(condition, np.log(1e6), np.log(1e25)))
    n, best_d, _ = LAW.cheapest(loss, LifetimeCost("flop", inference=Inference(tokens_out=demand)))
    assert best_d == pytest.approx(d, rel=1e-3)
    assert n <= quality * (1 + 1e-4)


# GPU-hours x watts -> MWh, and tCO2 by the implied kg/kWh; the cards say that the power holds the site's losses.
CARDS = [
    ("Llama 2 70B", "A100-80GB", 1_720_320, 688.1, 0.4236, 291.42),
    ("Llama 3.1 8B", "H100 SXM", 1.46e6, 1022, 0.411, 420),
    ("Llama 3.1 405B", "H100 SXM", 30.84e6, 21_588, 0.41366, 8930),
    ("Llama 4 Scout", "H100 SXM", 5.0e6, 3500, 0.38686, 1354),
]


@pytest.mark.parametrize(("card", "chip", "hours", "mwh", "carbon", "tonnes"), CARDS, ids=[c[0] for c in CARDS])
def test_energy_and_carbon_of_the_model_cards(card, chip, hours, mwh, carbon, tonnes):
    hardware = Hardware(chip, utilisation=0.4, carbon=carbon)
    draws = draw_all(hardware.inputs(), 1, 0)
    assert kwh(hours, hardware, draws) / 1000 == pytest.approx(mwh, rel=5e-4)
    assert carbon_kg(hours, hardware, draws) / 1000 == pytest.approx(tonnes, rel=1e-3)


@pytest.mark.parametrize(
    ("chip", "n", "d", "hours", "utilisation"),
    [
        ("A100-80GB", 70e9, 2e12, 1_720_320, 0.435),
        ("H100 SXM", 405e9, 15.6e12, 30.84e6, 0.345),
        ("H100 SXM", 70.6e9, 15e12, 7.0e6, 0.255),
        ("H100 SXM", 8e9, 15e12, 1.46e6, 0.139),
    ],
)
def test_hours_of_the_model_cards_imply_their_utilisation(chip, n, d, hours, utilisation):
    """6 N D over hours x peak."""
    hardware = Hardware(chip, utilisation=utilisation)
    assert training_hours(6 * n * d, hardware, draw_all(hardware.inputs(), 1, 0)) == pytest.approx(hours, rel=5e-3)


def test_a_million_hours_cost_two_million_dollars():
    hardware = Hardware(Accelerator("H100", 989e12), utilisation=0.4, price_per_hour=2)
    draws = draw_all(hardware.inputs(), 1, 0)
    hours = training_hours(1.42416e24, hardware, draws)
    assert hours == pytest.approx(1e6)
    assert dollars(hours, hardware, draws) == pytest.approx(2e6)


def test_every_currency_by_hand():
    draws = draw_all(FULL.inputs(), 1, 0)
    hours = 1.1 * 1e24 / (3600 * 989.4e12 * 0.4)
    by_hand = {
        "accelerator_hours": hours,
        "dollars": 2 * hours,
        "kwh": hours * 0.7 * 1.2,
        "carbon_kg": hours * 0.7 * 1.2 * 0.4,
        "days": hours / 1024 / 24,
    }
    assert set(by_hand) == set(CURRENCIES)
    for currency, cost in by_hand.items():
        assert training_cost(currency, 1e24, FULL, draws) == pytest.approx(cost)


POSITIVE = st.floats(1e6, 1e14)


@pytest.mark.parametrize("currency", ["flop", *sorted(set(CURRENCIES) - {"days"})])
@given(n=POSITIVE, d=POSITIVE, t=POSITIVE, factor=st.floats(1.5, 10))
def test_cost_is_linear_in_training_and_in_demand(currency, n, d, t, factor):
    def cost(flop, requests):
        served = Inference(0.3 * t, 0.7 * t, requests, 0.5, 0.02)
        priced = LifetimeCost(currency, FULL, served)
        return priced.of(n, d, flop, draw_all(priced.inputs(), 1, 0))

    flop = 6 * n * d
    both = cost(flop, 1)
    assert cost(factor * flop, factor) == pytest.approx(factor * both)
    assert cost(factor * flop, 1) + cost(flop, factor) == pytest.approx((1 + factor) * both)
    # With equal arithmetic in 8 bits twice as fast, the same served tokens cost half as much.
    if currency != "flop":
        halved = LifetimeCost(currency, FULL, Inference(0.3 * t, 0.7 * t, 1, 0.5, 0.02, bits=8))
        part = halved.of(n, d, 0.0, draw_all(halved.inputs(), 1, 0))
        assert part == pytest.approx(cost(0.0, 1) * 989.4 / 1978.9)


def test_no_demand_is_training_alone():
    for currency in ("flop", "dollars"):
        idle = LifetimeCost(currency, FULL, Inference(tokens_out=0))
        alone = LifetimeCost(currency, FULL)
        draws = draw_all(idle.inputs(), 3, 0)
        np.testing.assert_array_equal(idle.of(1e9, 1e10, 6e19, draws), alone.of(1e9, 1e10, 6e19, draws))


def test_sizes_are_on_leading_axes_and_draws_on_the_last():
    served = Inference(LogNormal(1e12, 0.5), LogNormal(1e11, 0.5), 1, 0.5, 0.05)
    cost = LifetimeCost("dollars", Hardware("H200", 64, 0.4, LogNormal(2.0, 0.2)), served)
    draws = draw_all(cost.inputs(), 50, 3)
    assert set(draws) == {
        "utilisation",
        "overhead",
        "price_per_hour",
        "tokens_in",
        "tokens_out",
        "requests",
        "prefill_utilisation",
        "decode_utilisation",
    }
    size, tokens = np.geomspace(1e8, 1e12, 7)[:, None], np.geomspace(1e9, 1e12, 50)
    many = cost.of(size, tokens, 6 * size * tokens, draws)
    assert many.shape == (7, 50)
    one = {name: column[9:10] for name, column in draws.items()}
    assert many[4, 9] == pytest.approx(cost.of(size[4], tokens[9], 6 * size[4] * tokens[9], one).item())
    by_hand = 6 * size[4] * tokens[9] / 0.4 + 2 * size[4] * (one["tokens_in"] / 0.5 + one["tokens_out"] / 0.05)
    assert many[4, 9] == pytest.approx((by_hand * one["price_per_hour"] / (3600 * 989e12)).item())
    assert cost.of(size, tokens[:1], 6 * size * tokens[:1], draws).shape == (7, 50)


def test_one_price_where_one_hardware_trains_and_serves_and_two_where_two_do():
    train = Hardware("H200", 64, 0.4, LogNormal(2.0, 0.2))
    served = Inference(1e12, 0, 1, 0.5)
    same = LifetimeCost("dollars", train, Inference(1e12, 0, 1, 0.5, hardware=train))
    assert same.inputs() == LifetimeCost("dollars", train, served).inputs()
    assert "decode_utilisation" not in same.inputs()
    other = Hardware("A100-40GB", price_per_hour=LogNormal(2.0, 0.2))
    two = LifetimeCost("dollars", train, Inference(1e12, 0, 1, 0.5, hardware=other))
    draws = draw_all(two.inputs(), 4000, 0)
    assert abs(np.corrcoef(draws["price_per_hour"], draws["inference_price_per_hour"])[0, 1]) < 0.1
    serving = two.of(1e9, 1e10, 0.0, draws)
    assert serving == pytest.approx(2e9 * 1e12 / 0.5 / (3600 * 312e12) * draws["inference_price_per_hour"])
    assert two.describe()["inference_price_per_hour"].endswith("dollars per hour")


def test_attention_adds_what_the_rule_of_training_adds():
    """A forward pass is a third of training, so a served token costs a third of what the rule counts."""
    cost = LifetimeCost("flop", inference=Inference(tokens_out=1.0, context=4096))
    n = np.geomspace(1e8, 1e12, 5)[:, None]
    served = cost.of(n, 1.0, 0.0, draw_all(cost.inputs(), 1, 0))
    np.testing.assert_allclose(served, AttentionRule(4096, ratio=128).flop(n, 1.0) / 3, rtol=1e-12)


def test_the_fits_flop_rule_counts_the_training():
    rule, draws = RecomputeRule(), draw_all(FULL.inputs(), 1, 0)
    ratio = training_cost("dollars", rule.flop(7e9, 2e12), FULL, draws) / training_cost(
        "dollars", 6 * 14e21, FULL, draws
    )
    assert ratio == pytest.approx(8 / 6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LifetimeCost("euros", FULL), "one of flop, accelerator_hours.*not 'euros'"),
        (lambda: LifetimeCost("dollars"), "dollars needs hardware"),
        (lambda: LifetimeCost("days", FULL, Inference(1e12)), "Days are those of training"),
        (lambda: LifetimeCost("dollars", Hardware("H200", 1, 0.4)), "price_per_hour="),
        (lambda: LifetimeCost("carbon_kg", Hardware("TPU v4", 1, 0.4)), r"carbon=.*power="),
        (lambda: LifetimeCost("dollars", FULL, Inference(1e12, 1e12)), "decode_utilisation=.*prefill_utilisation="),
        (
            lambda: LifetimeCost("dollars", FULL, Inference(1e12, 0, 1, 0.5, hardware=Hardware("A100-40GB"))),
            "Inference in dollars needs .*price_per_hour=",
        ),
        (
            lambda: LifetimeCost(
                "accelerator_hours", Hardware(Accelerator("own", 1e15), 1, 0.4), Inference(1e12, 0, 1, 0.5, bits=8)
            ),
            "peak_8bit=...\\) of own",
        ),
        (lambda: Inference(bits=4), "16 or 8, not 4"),
        (lambda: Inference(tokens_in=-1, decode_utilisation=50), r"(?s)tokens_in.*not -1.*decode_utilisation.*not 50"),
    ],
)
def test_what_a_cost_lacks_is_said(make, words):
    with pytest.raises(ValueError, match=words):
        make()
