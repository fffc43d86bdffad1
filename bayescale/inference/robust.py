"""Huber's estimate of a law (Huber 1964), for many weightings of one table in one compiled program.

Hoffmann et al. 2022 (arXiv 2203.15556, section 3.3) fit a law by the smallest sum over runs of

    Huber(r) = r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2),    r = log law - log loss,

with delta = 1e-3. At such a delta most residuals lie beyond the kink and the curvature comes from the few
within it, so that quasi-Newton searches crawl and report success; an averaged sum meets their tolerance
at the start (Besiroglu et al. 2024, arXiv 2404.10102). Here delta falls in stages from one under which
the fit is nearly least squares; every stage is Newton's method, damped by the weighted least squares
that bounds Huber's loss from above, and a search has converged when the pulls of the runs cancel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayescale.model._small import backward, cholesky, forward
from bayescale.model.joint import Joint

# Deltas of the stages as multiples of the last, each with its most steps: the first exceeds a residual of an
# eighth of the loss, and neighbours differ by so little that most runs stay on their side of the kink.
STAGES = ((128.0, 20), (32.0, 10), (8.0, 10), (4.0, 10), (2.0, 20), (1.4, 20), (1.0, 400))
BALANCED = 1e-8  # a sum of pulls over the sum of their sizes, below which they cancel
ROUNDING = 1e-13  # of a residual: runs that a law meets exactly pull by rounding alone
SAME = 1e-6  # relative difference of two sums that are one minimum
LONGEST = 3.0  # of a step, in any unconstrained coordinate: a factor of 20 of an exponent, or of odds
HARDEST = 1e12  # damping at which no step helps any more
FLAT = 1e-6  # slope of a log likelihood, a run, at its maximum: a tail that runs to the Normal ends there


class Estimate(NamedTuple):
    """Minima of k problems: unconstrained values (k, d), sums (k,), whether pulls cancel, how many starts agree."""

    x: Any
    total: Any
    converged: Any
    agree: Any


class _Point(NamedTuple):
    """Sum, gradient, Hessian and an upper bound of the curvature at ``x``, and the size of the pulls there."""

    x: Any
    total: Any
    slope: Any
    curve: Any
    bound: Any
    size: Any


def free(joint: Joint) -> tuple[str, ...]:
    """Names of the law's parameters that are not held fixed."""
    return tuple(p.name for p in joint.law.parameters if p.name not in joint.fixed)


def residuals(joint: Joint, x: Any, data: Mapping[str, Any]) -> Any:
    """Log of the law less log loss of every run, at unconstrained values in the order of `free`."""
    named = dict(zip(free(joint), x, strict=True))
    values = joint.constrained(joint.law.parameters, named, data)
    letters = joint.law.to_coefficients(values, data["reference"])
    return jnp.log(joint.law.loss(letters, data["run"])) - data["log_loss"]


def huber(residual: Any, delta: Any) -> Any:
    """Huber's loss, quadratic within ``delta`` and linear beyond."""
    size = jnp.abs(residual)
    return jnp.where(size <= delta, residual**2 / 2, delta * (size - delta / 2))


@functools.cache
def estimate(joint: Joint) -> Callable[..., Estimate]:
    """The compiled search: weights of the runs (k, rows), starts (k, s, d), data and delta to `Estimate`."""

    def search(weight: Any, x: Any, data: Any, delta: Any) -> tuple[Any, Any, Any]:
        at = functools.partial(_at, functools.partial(residuals, joint, data=data), weight)

        def stage(x: Any, of: Any) -> Any:
            end = _descend(lambda x: at(x, of[0] * delta), x, of[1])
            return end.x, (end.total, _balanced(end))

        x, (totals, balanced) = lax.scan(stage, x, tuple(map(jnp.asarray, zip(*STAGES, strict=True))))
        return x, totals[-1], balanced[-1]

    def problem(weight: Any, starts: Any, data: Any, delta: Any) -> Estimate:
        # One search after another: in lockstep all would take as many steps as the longest.
        x, total, converged = lax.map(lambda x: search(weight, x, data, delta), starts)
        best = jnp.nanargmin(total)
        agree = (total <= total[best] * (1 + SAME)).sum()
        return Estimate(x[best], total[best], converged[best], agree)

    return jax.jit(
        lambda weights, starts, data, delta: lax.map(lambda a: problem(a[0], a[1], data, delta), (weights, starts))
    )


@functools.cache
def scatter(joint: Joint) -> Callable[..., tuple[Any, Any]]:
    """Compiled: the noise's parameters of largest likelihood around a law at ``x``, for weights (k, rows).

    Returns unconstrained values (k, m), in the order of the noise's parameters that are not held fixed,
    and whether each was reached.
    """
    names = [p.name for p in joint.noise.parameters if p.name not in joint.fixed]

    def problem(weight: Any, start: Any, x: Any, data: Any) -> tuple[Any, Any]:
        mean, n = data["log_loss"] + residuals(joint, x, data), weight.sum()

        def total(u: Any) -> Any:
            values = joint.constrained(joint.noise.parameters, dict(zip(names, u, strict=True)), data)
            return -(weight @ joint.noise.distribution(mean, values, data["se"]).log_prob(data["log_loss"]))

        def at(u: Any) -> _Point:
            value, slope = jax.value_and_grad(total)(u)
            return _Point(u, value, slope, jax.hessian(total)(u), n * jnp.eye(len(u)), jnp.full(len(u), FLAT * n))

        end = _descend(at, start, 400)
        return end.x, _balanced(end)

    return jax.jit(lambda weights, start, x, data: lax.map(lambda w: problem(w, start, x, data), weights))


def _at(residual: Callable[[Any], Any], weight: Any, x: Any, delta: Any) -> _Point:
    r, rows = residual(x), jax.jacfwd(residual)(x)
    pull = weight * jnp.clip(r, -delta, delta)
    inside = weight * (jnp.abs(r) <= delta)
    shrunk = weight * jnp.minimum(1.0, delta / jnp.maximum(jnp.abs(r), 1e-300))
    bent = jax.hessian(lambda x: pull @ residual(x))(x)
    size = jnp.abs(pull) @ jnp.abs(rows) * BALANCED + ROUNDING * weight @ jnp.abs(rows)
    squares = [rows.T @ (w[:, None] * rows) for w in (inside, shrunk)]
    return _Point(x, huber(r, delta) @ weight, pull @ rows, squares[0] + bent, squares[1], size)


def _balanced(point: _Point) -> Any:
    return (jnp.abs(point.slope) <= point.size).all()


def _descend(at: Callable[[Any], _Point], x: Any, most: Any) -> _Point:
    """Newton's method with damping, to the minimum or for ``most`` steps."""

    def going(state: Any) -> Any:
        point, damping, step = state
        return ~_balanced(point) & (step < most) & (damping < HARDEST)

    def move(state: Any) -> Any:
        old, damping, step = state
        ridge = jnp.diag(1e-10 * jnp.trace(old.bound) / len(x) + 1e-12 * jnp.diag(old.bound))
        factor = cholesky(old.curve + damping * old.bound + ridge)
        p = -backward(factor, forward(factor, old.slope[:, None]))[:, 0]
        p = p * jnp.minimum(1.0, LONGEST / jnp.abs(p).max())
        new = at(old.x + p)
        told = -(old.slope @ p + p @ old.curve @ p / 2)
        gained = old.total - new.total
        # Near the minimum the gain drowns in rounding; the pulls still tell, so such a step is taken.
        better = (gained >= -1e-14 * jnp.abs(old.total)) & jnp.isfinite(new.slope).all() & jnp.isfinite(new.curve).all()
        good = better & (gained >= 0.25 * told - 1e-14 * jnp.abs(old.total))
        factor_of = jnp.where(good, 0.3, jnp.where(better, 1.0, 4.0))
        point = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
        return point, jnp.maximum(damping * factor_of, 1e-12), step + 1

    return lax.while_loop(going, move, (at(x), jnp.asarray(0.01), 0))[0]
