"""The iso-FLOP curve C(N, D) = C, element by element: its slope, its lowest valley, its bottom.

With u = log N and d = log D, a step in u along the curve changes the loss by what the parameters gain
and what the tokens given up for them cost,

    gain  = -dL/du at fixed D,        price = -dL/dd at fixed N  x  (dC/du) / (dC/dd),

and the optimum is where the two balance. Three properties make finding it exact and quick:

- the sign of gain - price stays exact where the loss itself no longer changes in double precision
  (a reducible part far below the floor), so brackets are found by it, not by comparing losses;
- log gain - log price is a straight line in u for power laws, so that a Newton step on it lands on
  the optimum from anywhere, and it is nearly straight for the laws built from them;
- each Newton step that leaves its bracket, or is not half its predecessor, is replaced by a halving.

Every function takes flat arrays of one length, an element being one draw at one budget: ``letters``
(with the values at which conditions are held), ``flop`` (FLOPs), ``low`` and ``high`` (ends of the
curve in log N) and ``u``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bayescale.laws._law import Law, held_at
from bayescale.model.drift import Drifted
from bayescale.runs.flops import ComputeRule

SCAN = 64  # steps of the scan over the domain: .43 in log N for twelve decades, finer than any law's valleys
LEEWAY = 0.25  # how far in log N an optimum may lie from where it is expected
NEAR = 1e-6  # a Newton step this small leaves an error of its square
TINY = 1e-12  # a halving step this small is at the resolution of log N
MAX_STEPS = 120  # 45 halvings reach TINY from the whole domain; Newton steps may come between


def _run(law: Law | Drifted, letters: Any, u: Any, d: Any) -> dict[str, Any]:
    held = {name: letters[held_at(name)] for name in law.conditions}
    return {law.size: jnp.exp(u), "n_tokens": jnp.exp(d), **held}


def _log_tokens(rule: ComputeRule, flop: Any, u: Any) -> Any:
    return jnp.log(rule.tokens(flop, jnp.exp(u), xp=jnp))


def _marginal(law: Law | Drifted, rule: ComputeRule, letters: Any, u: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Gain, price, rate (-dlogD/dlogN at fixed C) and reach (dlogD/dlogC at fixed N).

    ``tokens`` itself is never differentiated, so a rule may invert ``flop`` by any iteration.
    """
    one, zero = jnp.ones_like(u), jnp.zeros_like(u)

    def loss(u: Any, d: Any) -> Any:
        return law.loss(letters, _run(law, letters, u, d))

    def cost(u: Any, d: Any) -> Any:
        return rule.flop(jnp.exp(u), jnp.exp(d), xp=jnp)

    (loss_u, loss_d), (cost_u, cost_d) = (
        (jax.jvp(f, (u, d), (one, zero))[1], jax.jvp(f, (u, d), (zero, one))[1]) for f in (loss, cost)
    )
    return -loss_u, -loss_d * cost_u / cost_d, cost_u / cost_d, cost(u, d) / cost_d


def _balance(law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, u: Any) -> tuple[Any, Any]:
    """Value and slope of log gain - log price along the curve; of gain - price, without slope, where one is no gain.

    Positive to the left of a minimum. NaN where nothing changes the loss at all.
    """
    d = _log_tokens(rule, flop, u)
    marginal = partial(_marginal, law, rule, letters)
    rate = marginal(u, d)[2]
    (gain, price, *_), (gain_slope, price_slope, *_) = jax.jvp(marginal, (u, d), (jnp.ones_like(u), -rate))
    log_ratio = jnp.log(gain / price)
    sound = jnp.isfinite(log_ratio) & (gain > 0)
    flat = (gain == 0) & (price == 0)
    value = jnp.where(sound, log_ratio, jnp.where(flat, jnp.nan, gain - price))
    return value, jnp.where(sound, gain_slope / gain - price_slope / price, jnp.nan)


def _fall_to_zero(evaluate: Callable[[Any], tuple[Any, Any]], left: Any, right: Any, start: Any) -> Any:
    """Root of a function that is positive left of it: safeguarded Newton from ``start``.

    ``evaluate(u)`` gives value and slope. NaN where the bracket is empty or the value undefined.
    Without a root between ``left`` and ``right`` the result is one of the two.
    """

    def unfinished(state: Any) -> Any:
        count, *_, done = state
        return (count < MAX_STEPS) & ~jnp.all(done)

    def step(state: Any) -> Any:
        count, u, left, right, stride, done = state
        value, slope = evaluate(u)
        left, right = jnp.where(value > 0, u, left), jnp.where(value > 0, right, u)
        newton = u - value / slope
        sound = (slope < 0) & (newton >= left) & (newton <= right) & (jnp.abs(newton - u) < stride / 2)
        following = jnp.where(sound, newton, (left + right) / 2)
        stride = jnp.abs(following - u)
        settled = stride < jnp.where(sound, NEAR, TINY)
        following = jnp.where(jnp.isnan(value), jnp.nan, following)
        u = jnp.where(done, u, following)
        return count + 1, u, left, right, stride, done | settled | jnp.isnan(u)

    first = (0, start, left, right, 4 * (right - left), ~(left < right) | jnp.isnan(start))
    _, u, *_, done = jax.lax.while_loop(unfinished, step, first)
    return jnp.where(done & (left < right), u, jnp.nan)


@partial(jax.jit, static_argnums=(0, 1))
def bottom(law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, low: Any, high: Any) -> tuple[Any]:
    """log N of the lowest minimum inside the curve's ends; NaN where there is none, or an end is lower."""
    first, second, width, edge = _deepest_valleys(law, rule, letters, flop, low, high)
    balance = partial(_balance, law, rule, letters, flop)

    def descend(left: Any) -> tuple[Any, Any]:
        u = _fall_to_zero(balance, left, left + width, left + width / 2)
        loss = law.loss(letters, _run(law, letters, u, _log_tokens(rule, flop, u)))
        return u, jnp.where(jnp.isnan(loss), jnp.inf, loss)

    (u, loss), (other, other_loss) = descend(first), descend(second)
    u, loss = jnp.where(other_loss < loss, other, u), jnp.minimum(loss, other_loss)
    return (jnp.where(loss <= edge, u, jnp.nan),)


@partial(jax.jit, static_argnums=(0, 1))
def bottom_near(
    law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, low: Any, high: Any, start: Any
) -> tuple[Any]:
    """log N of the minimum within ``LEEWAY`` of ``start``; NaN where it is not there."""
    left, right = jnp.maximum(start - LEEWAY, low), jnp.minimum(start + LEEWAY, high)
    u = _fall_to_zero(partial(_balance, law, rule, letters, flop), left, right, start)
    inside = jnp.minimum(u - left, right - u) > 1e-3 * LEEWAY  # at an end, the root lies elsewhere
    return (jnp.where(inside, u, jnp.nan),)


def _deepest_valleys(
    law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, low: Any, high: Any
) -> tuple[Any, Any, Any, Any]:
    """Left ends and width of the scan steps that hold the two lowest minima; the loss at a lowest end.

    NaN for a minimum that there is not, infinity for an end that is no minimum.
    """
    width = (high - low) / SCAN

    def look(j: Any) -> tuple[Any, Any, Any]:
        u = low + j * width
        d = _log_tokens(rule, flop, u)
        gain, price, *_ = _marginal(law, rule, letters, u, d)
        return u, law.loss(letters, _run(law, letters, u, d)), price - gain

    def step(j: Any, state: Any) -> Any:
        (u, loss, slope), (best, first), (next_best, second) = state
        following = look(j)
        valley = (slope < 0) & (following[2] >= 0)
        # Lowest point of the parabola through the two slopes: close enough to rank valleys, not to decide a near tie.
        bottom = loss - slope * slope / jnp.where(valley, following[2] - slope, 1.0) * width / 2
        wins, places = valley & (bottom < best), valley & (bottom < next_best)
        runner_up = jnp.where(wins, best, jnp.where(places, bottom, next_best))
        second = jnp.where(wins, first, jnp.where(places, u, second))
        winner = jnp.where(wins, bottom, best), jnp.where(wins, u, first)
        return following, winner, (runner_up, second)

    start, nothing = look(0), (jnp.full_like(low, jnp.inf), jnp.full_like(low, jnp.nan))
    end, (_, first), (_, second) = jax.lax.fori_loop(1, SCAN + 1, step, (start, nothing, nothing))
    edge = jnp.minimum(jnp.where(start[2] > 0, start[1], jnp.inf), jnp.where(end[2] < 0, end[1], jnp.inf))
    return first, second, width, edge


@partial(jax.jit, static_argnums=(0, 1))
def spend(law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, u: Any) -> tuple[Any, Any]:
    """Tokens and loss at ``u``."""
    d = _log_tokens(rule, flop, u)
    return jnp.exp(d), law.loss(letters, _run(law, letters, u, d))


def _excess_slopes(law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, u: Any) -> tuple[Any, Any, Any, Any]:
    """Slopes of gain - price in log N along the curve and in log C at fixed N; rate and reach of ``_marginal``."""
    d = _log_tokens(rule, flop, u)

    def excess(u: Any, d: Any) -> Any:
        gain, price, *_ = _marginal(law, rule, letters, u, d)
        return gain - price

    *_, rate, reach = _marginal(law, rule, letters, u, d)
    along = jax.jvp(excess, (u, d), (jnp.ones_like(u), -rate))[1]
    across = jax.jvp(excess, (u, d), (jnp.zeros_like(u), reach))[1]
    return along, across, rate, reach


@partial(jax.jit, static_argnums=(0, 1))
def exponents(law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, u: Any) -> tuple[Any, Any]:
    """d log N_opt / d log C and d log D_opt / d log C at the optimum ``u``, by implicit differentiation."""
    along, across, rate, reach = _excess_slopes(law, rule, letters, flop, u)
    a = -across / along
    return a, reach - rate * a


@partial(jax.jit, static_argnums=(0, 1), static_argnames="ratio")
def band(
    law: Law | Drifted, rule: ComputeRule, letters: Any, flop: Any, low: Any, high: Any, u: Any, *, ratio: float
) -> tuple[Any, Any]:
    """Ends in log N of the band around the optimum ``u`` in which the loss is below ``ratio`` of its own.

    The root of the excess loss, not the excess, is followed: nearly straight on either side of a minimum.
    """

    def at(u: Any) -> tuple[Any, Any]:
        d = _log_tokens(rule, flop, u)
        gain, price, *_ = _marginal(law, rule, letters, u, d)
        return law.loss(letters, _run(law, letters, u, d)), price - gain

    best, _ = at(u)
    height = jnp.sqrt((ratio - 1) * best)
    parabola = height * jnp.sqrt(-2 / _excess_slopes(law, rule, letters, flop, u)[0])

    def end(sign: int, edge: Any) -> Any:
        def evaluate(u: Any) -> tuple[Any, Any]:
            loss, slope = at(u)
            root = jnp.sqrt(jnp.maximum(loss - best, 0.0))
            return sign * (height - root), -sign * slope / (2 * root)

        left, right = (u, edge) if sign > 0 else (edge, u)
        open_end = at(edge)[0] <= ratio * best
        guess = u + sign * parabola
        start = jnp.where((left < guess) & (guess < right), guess, (u + edge) / 2)
        start = jnp.where(open_end, jnp.nan, start)
        return jnp.where(open_end, sign * jnp.inf, _fall_to_zero(evaluate, left, right, start))

    return end(-1, low), end(1, high)
