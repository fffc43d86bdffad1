"""The optimiser along iso-FLOP curves, against closed forms, scipy, and curves that have no single valley."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frontier_stand_in import B24, H22_ROUNDED, H22_TEX, letters, spread
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from bayescale.frontier import curve, solve
from bayescale.laws._law import Law, Values
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import Parameter, Quantity
from bayescale.runs.flops import ComputeRule, FlopsRule

LAW = Chinchilla()
EXPONENT = st.floats(0.05, 1.5)


def closed_form(c: Mapping[str, Any], budget: Any, k: float = 6.0) -> tuple[Any, Any, Any]:
    """log N*, a and gamma of literature.md section 4."""
    total = c["alpha"] + c["beta"]
    log_g = (np.log(c["alpha"]) + np.log(c["A"]) - np.log(c["beta"]) - np.log(c["B"])) / total
    a = c["beta"] / total
    return log_g + a * np.log(budget / k), a, c["alpha"] * c["beta"] / total


@final
@dataclass(frozen=True)
class Attention(ComputeRule):
    """Only ``flop``: C = 6 N D + 12 layers width context D, N = 12 layers width^2 and width = 128 layers."""

    context: float = 32768.0

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        layers = (n_params / (12 * 128**2)) ** (1 / 3)
        return 6 * n_params * n_tokens + 12 * layers * (128 * layers) * self.context * n_tokens


@final
@dataclass(frozen=True)
class TwoValleys(Law):
    """Two dips in log N, at 1e8 and 1e11; slopes in D and in log N decide between them and the domain's edge."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params", "n_tokens")
    monotone: ClassVar[tuple[str, ...]] = ()
    domain: ClassVar[Mapping[str, tuple[float, float]]] = {"n_params": (1e3, 1e15), "n_tokens": (1e3, 1e17)}
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    coefficients: ClassVar[tuple[Quantity, ...]] = ()

    def loss(self, letters: Values, run: Values) -> Any:
        u = jnp.log(run["n_params"])
        dips = jnp.exp(-((u - np.log(1e8)) ** 2) / 8) + 2 * jnp.exp(-((u - np.log(1e11)) ** 2) / 2)
        edges = jnp.cosh((u - np.log(1e9)) / 8)
        return letters["E"] - dips + edges + letters["B"] * run["n_tokens"] ** -0.1 + letters["tilt"] * u

    def floor(self, letters: Values) -> Any:
        return letters["E"] - 3

    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        return dict(values)

    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        return dict(letters)


def lowest(law: Law, rule: ComputeRule, c: Mapping[str, float], budget: float) -> float:
    """log N of the lowest point, by brute force and scipy's bounded search around it."""

    def loss(u: Any) -> Any:
        return np.asarray(law.loss(c, {"n_params": np.exp(u), "n_tokens": rule.tokens(budget, np.exp(u))}))

    with jax.enable_x64(True):
        us = np.linspace(np.log(1e3), np.log(1e15), 4001)
        best, step = us[np.argmin(loss(us))], us[1] - us[0]
        return minimize_scalar(loss, bounds=(best - step, best + step), options={"xatol": 1e-9}).x


@given(
    alpha=EXPONENT, beta=EXPONENT, size_term=st.floats(1e-3, 10), token_term=st.floats(1e-3, 10),
    floor=st.floats(0, 10), k=st.sampled_from([6.0, 8.0]), budget=st.floats(15, 30).map(lambda x: 10.0**x),
)  # fmt: skip
def test_optimum_is_the_closed_form(alpha, beta, size_term, token_term, floor, k, budget):
    """The optimum, a, b, D = C / (k N) and the loss are those of Hoffmann et al., equation 4."""
    c = {"A": size_term * 1e9**alpha, "B": token_term * 1e11**beta, "E": floor, "alpha": alpha, "beta": beta}
    expected, a, _ = closed_form(c, budget, k)
    log_d = np.log(budget / k) - expected
    assume(np.log(1.01e3) < expected < np.log(0.99e15) and np.log(1.01e3) < log_d < np.log(0.99e17))
    budgets, draw = np.array([budget]), letters(c)
    log_n, interior = solve.optimum(LAW, FlopsRule(k), draw, budgets)
    assert interior.all()
    assert log_n[0, 0] == pytest.approx(expected, rel=1e-10)
    tokens, loss = solve.spend(LAW, FlopsRule(k), draw, budgets, log_n)
    assert tokens[0, 0] == pytest.approx(np.exp(log_d), rel=1e-9)
    assert loss[0, 0] == pytest.approx(
        floor + c["A"] * np.exp(-alpha * expected) + c["B"] * np.exp(-beta * log_d), rel=1e-12
    )
    found_a, found_b = solve.exponents(LAW, FlopsRule(k), draw, budgets, log_n)
    assert (found_a[0, 0], found_b[0, 0]) == (pytest.approx(a, abs=1e-8), pytest.approx(1 - a, abs=1e-8))


@pytest.mark.parametrize(
    ("c", "k", "budget", "n_opt", "d_opt", "ratio", "loss"),
    [
        (B24, 6, 1e21, 2.7785e9, 5.9985e10, 21.589, 2.305529),
        (B24, 6, 5.76e23, 7.2249e10, 1.3287e12, 18.391, 1.974441),
        (B24, 6, 5.88e23, 7.3016e10, None, 18.382, 1.973864),
        (B24, 6, 1e24, 9.58607e10, 1.73863e12, 18.137, 1.959712),
        (B24, 6, 3.8e25, 6.1867e11, None, 16.547, 1.891707),
        (B24, 6.5, 1e24, 9.20070e10, 1.67211e12, None, 1.961761),
        (B24, 8, 1e24, 8.27171e10, 1.51117e12, None, 1.967213),
        (H22_ROUNDED, 6, 5.76e23, 3.219e10, None, 92.65, 1.930748),
        (H22_ROUNDED, 6, 1e24, None, None, 97.73, 1.911195),
        (H22_TEX, 6, 5.76e23, 4.0361e10, 2.3785e12, 58.93, 1.918412),
        (H22_TEX, 6, 1e24, None, None, 61.83, None),
    ],
)
def test_published_optima(c, k, budget, n_opt, d_opt, ratio, loss):
    """Values computed independently from the published constants (Besiroglu et al.; Hoffmann et al.)."""
    budgets, draw = np.array([budget]), letters(c)
    log_n, _ = solve.optimum(LAW, FlopsRule(k), draw, budgets)
    tokens, found = solve.spend(LAW, FlopsRule(k), draw, budgets, log_n)
    n_params = np.exp(log_n[0, 0])
    for value, expected, rel in (
        (n_params, n_opt, 1e-4), (tokens[0, 0], d_opt, 1e-4), (tokens[0, 0] / n_params, ratio, 1e-4),
        (found[0, 0], loss, 1e-6),
    ):  # fmt: skip
        assert expected is None or value == pytest.approx(expected, rel=rel)


def test_hoffmann_at_gophers_budget_needs_the_unrounded_constants():
    """The paper's "40B" (section 4) follows from the constants of its source: 40.4B, where the printed give 32.2B."""
    log_n, _ = solve.optimum(LAW, FlopsRule(), letters(H22_TEX, H22_ROUNDED), np.array([5.76e23]))
    assert np.exp(log_n[:, 0]) / 1e9 == pytest.approx([40.4, 32.2], abs=0.05)


def test_thousands_of_budgets_are_as_exact_as_one():
    """Followed optima equal the closed form from 1e15 to 1e30 FLOP, in any order and for any number of budgets."""
    draws = spread(7)
    budgets = np.random.default_rng(1).permutation(np.geomspace(1e15, 1e30, 501))
    log_n, interior = solve.optimum(LAW, FlopsRule(), draws, budgets)
    expected = np.array([closed_form({n: v[s] for n, v in draws.items()}, budgets)[0] for s in range(7)])
    inside = (expected < np.log(1e15)) & (np.log(budgets / 6) - expected < np.log(1e17))
    assert np.array_equal(interior, inside)
    assert log_n[inside] == pytest.approx(expected[inside], rel=1e-10)


def test_equal_budgets_many_times():
    """A range of no width has no line to follow."""
    log_n, _ = solve.optimum(LAW, FlopsRule(), letters(B24), np.full(200, 1e24))
    assert np.exp(log_n) == pytest.approx(9.58607e10, rel=1e-4)


@pytest.mark.parametrize("budget", [1e17, 1e20, 1e24])
def test_a_rule_with_only_its_flop_written(budget):
    """Attention's FLOPs move the optimum; scipy's bounded search over the same curve finds the same point."""
    log_n, interior = solve.optimum(LAW, Attention(), letters(B24), np.array([budget]))
    assert interior.all()
    assert log_n[0, 0] == pytest.approx(lowest(LAW, Attention(), B24, budget), abs=1e-6)
    assert abs(log_n[0, 0] - closed_form(B24, budget)[0]) > 0.01


def test_exponents_are_the_slopes_of_the_path():
    """For a rule without closed form, a and b equal central differences of log N_opt and log D_opt in log C."""
    h, rule, draw = 1e-4, Attention(), letters(B24)
    budgets = 1e20 * np.exp([-h, 0.0, h])
    log_n, _ = solve.optimum(LAW, rule, draw, budgets)
    log_d = np.log(solve.spend(LAW, rule, draw, budgets, log_n)[0])
    a, b = solve.exponents(LAW, rule, draw, budgets, log_n)
    assert a[0, 1] == pytest.approx((log_n[0, 2] - log_n[0, 0]) / (2 * h), abs=1e-7)
    assert b[0, 1] == pytest.approx((log_d[0, 2] - log_d[0, 0]) / (2 * h), abs=1e-7)
    assert abs(a[0, 1] + b[0, 1] - 1) > 0.01


@pytest.mark.parametrize("rule", [FlopsRule(), Attention()], ids=["6ND", "attention"])
def test_spending_more_never_hurts(rule):
    """Along the optima of a law that more N and D never worsen, the loss falls with the budget."""
    budgets, draws = np.geomspace(1e16, 1e28, 90), spread(5)
    log_n, _ = solve.optimum(LAW, rule, draws, budgets)
    tokens, loss = solve.spend(LAW, rule, draws, budgets, log_n)
    assert (np.diff(loss, axis=1) < 0).all()
    assert (np.diff(log_n, axis=1) > 0).all()
    assert (np.diff(tokens, axis=1) > 0).all()


@pytest.mark.parametrize("rule", [FlopsRule(), Attention()], ids=["6ND", "attention"])
def test_band_ends_lose_exactly_1_percent(rule):
    """At both ends of the band the loss is 1.01 times the optimal one, and the optimum lies between them."""
    budgets, draws = np.geomspace(1e18, 1e24, 5), spread(6)
    log_n, _ = solve.optimum(LAW, rule, draws, budgets)
    best = solve.spend(LAW, rule, draws, budgets, log_n)[1]
    lower, upper = solve.band(LAW, rule, draws, budgets, log_n)
    assert (lower < log_n).all()
    assert (log_n < upper).all()
    for end in (lower, upper):
        assert solve.spend(LAW, rule, draws, budgets, end)[1] / best == pytest.approx(1.01, abs=1e-12)


def test_narrow_band_shows_the_curvature():
    """A narrow band is sqrt(2 excess / curvature) wide each way; B24 at 1e24: curvature .01813117."""
    budgets, draw, ratio = np.array([1e24]), letters(B24), 1 + 1e-6
    log_n, _ = solve.optimum(LAW, FlopsRule(), draw, budgets)
    lower, upper = solve.band(LAW, FlopsRule(), draw, budgets, log_n, ratio)
    excess = 1e-6 * 1.959712
    assert (upper - lower)[0, 0] / 2 == pytest.approx(np.sqrt(2 * excess / 0.01813117), rel=1e-4)


def test_band_open_at_the_edge_of_the_domain():
    """A loss that never worsens by 1 % towards an edge has no end there."""
    draw = letters({"A": 1e3, "B": 1e-2, "E": 2.0, "alpha": 0.5, "beta": 0.1})
    budgets = np.array([1e21])
    log_n, interior = solve.optimum(LAW, FlopsRule(), draw, budgets)
    lower, upper = solve.band(LAW, FlopsRule(), draw, budgets, log_n)
    assert interior.all()
    assert np.isfinite(lower).all()
    assert (upper == np.inf).all()


@pytest.mark.parametrize("n_budgets", [3, 200])
@pytest.mark.parametrize(
    "change",
    [
        {"B": 0.0}, {"A": 0.0}, {"A": 0.0, "B": 0.0}, {"B": 1e-300}, {"A": np.inf}, {"B": np.inf}, {"A": np.nan},
        {"A": np.inf, "B": np.inf}, {"alpha": 0.0}, {"beta": 0.0}, {"alpha": 80.0, "beta": 80.0},
    ],
    ids=str,
)  # fmt: skip
def test_no_interior_optimum_is_nan(change, n_budgets):
    """Without two terms that pull against each other inside the domain there is none, beside draws with one."""
    draw = letters(B24, B24 | change)
    log_n, interior = solve.optimum(LAW, FlopsRule(), draw, np.geomspace(1e18, 1e24, n_budgets))
    assert interior[0].all()
    assert not interior[1].any()
    assert np.isnan(log_n[1]).all()


@pytest.mark.parametrize("reducible", [1.0, 1e-9, 1e-14, 1e-30])
def test_a_reducible_loss_far_below_the_floor(reducible):
    """The optimum does not depend on the scale of A and B, even where the loss no longer changes in float64."""
    draw = letters(B24 | {"A": B24["A"] * reducible, "B": B24["B"] * reducible})
    log_n, _ = solve.optimum(LAW, FlopsRule(), draw, np.array([1e24]))
    assert log_n[0, 0] == pytest.approx(closed_form(B24, 1e24)[0], rel=1e-10)


@pytest.mark.parametrize("c", [H22_ROUNDED | {"B": 1.0}, B24 | {"B": 2e5}], ids=["N", "D"])
def test_an_optimum_that_leaves_the_domain_as_the_budget_grows(c):
    """Optima are followed to where the closed form crosses the domain's edge, N = 1e15 or D = 1e17, and no further."""
    budgets = np.geomspace(1e18, 1e30, 300)
    expected = closed_form(c, budgets)[0]
    log_d = np.log(budgets / 6) - expected
    log_n, interior = solve.optimum(LAW, FlopsRule(), letters(c), budgets)
    inside = (np.log(1e3) < expected) & (expected < np.log(1e15)) & (np.log(1e3) < log_d) & (log_d < np.log(1e17))
    assert 0 < inside.sum() < inside.size
    assert np.array_equal(interior[0], inside)
    assert log_n[0, inside] == pytest.approx(expected[inside], rel=1e-10)


@pytest.mark.parametrize(("offset", "found"), [(0.1, True), (-0.2, True), (0.3, False), (-5.0, False), (9.0, False)])
def test_following_takes_only_what_lies_near(offset, found):
    """A start a quarter of a unit of log N off or more gives no optimum, and so a scan, not a wrong number."""
    expected = closed_form(B24, 1e24)[0]
    low, high, start = (np.array([x]) for x in (np.log(1e3), np.log(1e15), expected + offset))
    with jax.enable_x64(True):
        u = np.asarray(curve.bottom_near(LAW, FlopsRule(), letters(B24), np.array([1e24]), low, high, start)[0])
    assert u == pytest.approx([expected if found else np.nan], nan_ok=True)


@pytest.mark.parametrize("n_budgets", [40, 400])
def test_the_lower_of_two_valleys(n_budgets):
    """Where the optimum jumps from one valley to another, each budget gets the lower one, followed or scanned."""
    law, c = TwoValleys(), {"E": 2.0, "B": 20.0, "tilt": 0.0}
    budgets = np.geomspace(1e16, 1e26, n_budgets)
    log_n, interior = solve.optimum(law, FlopsRule(), letters(c), budgets)
    assert interior.all()
    jumps = np.flatnonzero(np.abs(np.diff(log_n[0])) > 2)
    assert jumps.size == 1
    picked = {0, n_budgets - 1, *range(max(0, jumps[0] - 2), jumps[0] + 4)}
    for k in picked:
        assert log_n[0, k] == pytest.approx(lowest(law, FlopsRule(), c, budgets[k]), abs=1e-6)


def test_a_jump_between_two_close_budgets_is_not_followed():
    """Beside a scanned budget in one valley, the next of many budgets gets the other valley if that is lower."""
    law, c = TwoValleys(), {"E": 2.0, "B": 20.0, "tilt": 0.0}
    low, high = np.log(1e16), np.log(1e26)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if lowest(law, FlopsRule(), c, np.exp(middle)) > np.log(1e10) else (middle, high)
    budgets = np.exp([low, high, *(high + np.linspace(0.1, 15, 98))])
    log_n, _ = solve.optimum(law, FlopsRule(), letters(c), budgets)
    assert log_n[0, :2] == pytest.approx([lowest(law, FlopsRule(), c, b) for b in budgets[:2]], abs=1e-6)
    assert log_n[0, 1] - log_n[0, 0] > 5


def test_a_valley_above_the_edge_is_no_optimum():
    """A minimum inside the domain counts only while the domain's edge is not lower still."""
    draws = letters({"E": 2.0, "B": 0.0, "tilt": 0.0}, {"E": 2.0, "B": 0.0, "tilt": 0.5})
    _, interior = solve.optimum(TwoValleys(), FlopsRule(), draws, np.array([1e22]))
    assert interior[:, 0].tolist() == [True, False]


@dataclass(frozen=True)
class Sized(TwoValleys.__base__):  # type: ignore[misc, name-defined]
    """Reads no tokens."""

    inputs: ClassVar[tuple[str, ...]] = ("n_params",)
    loss = floor = to_coefficients = to_parameters = lambda self, *_: 0.0


def test_a_law_without_tokens_has_no_optimum():
    """Nothing is traded: the message says so."""
    with pytest.raises(ValueError, match="Sized reads no tokens"):
        solve.domain(Sized())


def test_the_callers_precision_is_left_alone():
    """Results are float64; the caller's jax stays in float32."""
    log_n, _ = solve.optimum(LAW, FlopsRule(), letters(B24), np.array([1e24]))
    assert log_n.dtype == np.float64
    assert jnp.ones(1).dtype == jnp.float32


def test_numbers_of_draws_and_budgets_share_compiled_programs():
    """Problems of any shape run on the program of the same chunk length."""
    rule = FlopsRule(7.25)
    before = curve.bottom._cache_size()
    for n_draws, n_budgets in ((1, 1), (1, 64), (3, 7), (4, 64), (256, 1)):
        solve.optimum(LAW, rule, spread(n_draws), np.geomspace(1e20, 1e24, n_budgets))
    assert curve.bottom._cache_size() == before + 1
