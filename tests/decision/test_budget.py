"""A budget in any currency is the training compute that it affords."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import uniform

from bayescale.decision.budget import Budget
from bayescale.decision.cost import CURRENCIES, training_cost
from bayescale.decision.hardware import Accelerator, Hardware
from bayescale.decision.uncertain import draw_all
from bayescale.parameter import LogitNormal, LogNormal

H100 = Accelerator("H100", 989e12, power=700)
PLAIN = Hardware(H100, utilisation=0.4, price_per_hour=2)
FULL = Hardware(H100, 1024, 0.4, 2.0, 1.2, 0.4, 0.1)


@pytest.mark.parametrize(
    "budget",
    [
        Budget(accelerator_hours=1_000_000, hardware=PLAIN),
        Budget(dollars=2e6, hardware=PLAIN),
        Budget(kwh=700_000, hardware=PLAIN),
        Budget(days=1e6 / 24 / 1000, hardware=Hardware(H100, 1000, "40%")),
        Budget(flop=1.42416e24),
        Budget(flop=1.42416e24, hardware=FULL),
    ],
    ids=lambda b: b.currency,
)
def test_a_million_hours_of_an_h100_are_the_same_budget_in_every_currency(budget):
    """1e6 h x 3600 s x 989e12 FLOP/s x 40 %."""
    assert budget.flop() == pytest.approx(1.42416e24, rel=1e-12)


@given(amount=st.floats(1.0, 1e12), currency=st.sampled_from(list(set(CURRENCIES) - {"carbon_kg"})))
def test_what_a_budget_affords_costs_the_budget(amount, currency):
    budget = Budget(**{currency: amount}, hardware=FULL)
    one = draw_all(FULL.inputs(), 1, 0)
    assert training_cost(currency, budget.flop(), FULL, one) == pytest.approx(amount, rel=1e-12)


def test_overhead_is_paid_in_every_currency_but_the_runs_own_flops():
    more = Hardware(H100, 1, 0.4, overhead="10%")
    plain = Hardware(H100, 1, 0.4)
    hours = [Budget(accelerator_hours=1e6, hardware=hardware).flop() for hardware in (plain, more)]
    assert hours[0] / hours[1] == pytest.approx(1.1)
    assert Budget(flop=1e22, hardware=more).flop() == 1e22


@pytest.mark.parametrize("certainty", [0.05, 0.5, 0.9])
def test_certainty_is_the_probability_of_affording_the_compute(certainty):
    """Compute is amount / price: its lower quantile is the amount over the upper quantile of the price."""
    price = uniform(1.0, 3.0)
    hardware = Hardware(H100, utilisation=0.4, price_per_hour=price)
    flop = Budget(dollars=1e6, hardware=hardware, certainty=certainty).flop(n=20_000)
    assert flop == pytest.approx(1e6 / price.ppf(certainty) * 3600 * 989e12 * 0.4, rel=1e-3)


def test_inputs_are_drawn_jointly():
    """The log of hours x peak x utilisation / price is nearly Normal, and variances add."""
    hardware = Hardware(H100, utilisation=0.4, price_per_hour=LogNormal(2.0, 0.3), overhead=0.0)
    wide = Hardware(H100, utilisation=LogitNormal(0.4, 0.3 / 0.6), price_per_hour=LogNormal(2.0, 0.3))
    spread = []
    for each in (hardware, wide):
        affords = [Budget(dollars=1e6, hardware=each, certainty=p).flop(n=20_000) for p in (0.16, 0.84)]
        spread.append(np.log(affords[0] / affords[1]) / 2)
    assert spread == pytest.approx([0.3 * 0.9945, 0.3 * 0.9945 * np.sqrt(2)], rel=0.03)


def test_the_compute_depends_on_the_seed_only_where_something_is_uncertain():
    fuzzy = Budget(dollars=1e6, hardware=Hardware(H100, utilisation=LogitNormal(0.4, 0.2), price_per_hour=2))
    assert fuzzy.flop(seed=1) == fuzzy.flop(seed=1)
    assert fuzzy.flop(seed=1) != fuzzy.flop(seed=2)
    assert fuzzy.flop(seed=1) == pytest.approx(fuzzy.flop(seed=2), rel=1e-3)
    plain = Budget(dollars=1e6, hardware=PLAIN)
    assert plain.flop(seed=1, n=3) == plain.flop(seed=2, n=4000)


@pytest.mark.parametrize("amount", [10**22, 10**24, 2**70, 1e22, np.float32(2.0**80), Fraction(10**22)])
def test_whole_numbers_of_any_length_are_budgets(amount):
    assert Budget(flop=amount).flop() == float(amount)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (0, "is not positive"),
        (-1e22, "is not positive"),
        (float("inf"), "is not finite"),
        (float("nan"), "is not finite"),
        (10**400, "is not finite"),
        ("1e22", "is text; write the number without quotes"),
        ("10^22", "is text"),
        ("abc", "is text"),
        ("1e22FLOP", "is text"),
        (True, "is of type bool"),
        ([], "is of type list"),
        ([1e22, -1], "is of type list"),
        (1e-5, "one parameter on one token"),
    ],
    ids=str,
)
@pytest.mark.parametrize("currency", ["flop", "dollars"])
def test_what_is_no_budget_is_refused_with_the_value_and_the_form(currency, wrong, words):
    with pytest.raises(ValueError, match="budget") as refused:
        Budget(**{currency: wrong}, hardware=PLAIN).flop(n=1) if wrong != 1e-5 else Budget(flop=1e-5)
    assert words in str(refused.value)
    assert repr(wrong) in str(refused.value)
    assert "Budget(flop=1e24)" in str(refused.value)


def test_a_budget_too_small_for_one_parameter_is_refused_in_any_currency():
    with pytest.raises(ValueError, match="one parameter on one token"):
        Budget(dollars=1e-20, hardware=PLAIN).flop()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "in none"),
        ({"flop": 1e22, "dollars": 2.0}, r"in several: flop=1e\+22, dollars=2.0"),
        ({"dollars": 2.0}, "needs hardware"),
        ({"dollars": 2.0, "hardware": Hardware(H100)}, r"utilisation=.*price_per_hour="),
        ({"days": 2.0, "hardware": PLAIN}, "count="),
        ({"kwh": 2.0, "hardware": Hardware("TPU v4", 1, 0.4)}, "power="),
        ({"flop": 1e22, "hardware": "H100 SXM"}, "a Hardware, not 'H100 SXM'"),
        ({"flop": 1e22, "certainty": 1.0}, r"certainty\).*not 1.0"),
        ({"flop": 1e22, "certainty": True}, "not True"),
        ({"flop": 1e22, "certainty": "90%"}, "not '90%'"),
    ],
    ids=str,
)
def test_a_budget_says_what_it_lacks(arguments, words):
    with pytest.raises(ValueError, match=words):
        Budget(**arguments)


def test_a_budget_in_words_and_as_json():
    fuzzy = Budget(dollars=2e6, hardware=Hardware("H200", 8, 0.4, LogNormal(2.0, 0.1)), certainty=0.9)
    assert fuzzy.describe() == "2e+06 dollars, its compute affordable with probability 0.9"
    assert Budget(accelerator_hours=10**6, hardware=PLAIN).describe() == "1e+06 accelerator-hours"
    assert json.loads(json.dumps(fuzzy.to_dict()))["dollars"] == 2e6
    assert repr(Budget(flop=1e24)) == "Budget(flop=1e+24, hardware=None, certainty=0.5)"
