"""The contract of a law as functions, so that a law that breaks it can be seen to fail them.

Each takes a law and draws from it: values from its own priors, runs and reference runs log-uniform
over its own domain.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from bayescale.laws import Law

Arrays = dict[str, np.ndarray]
DRAWS = 2000
LOSS = 3.0  # where a prior leaves its median to the table: nats per token of a small language model


def values(law: Law, seed: int = 0) -> Arrays:
    """Draws of the parameters' priors, in their own units."""
    rng = np.random.default_rng(seed)
    priors = {p.name: p.prior.at(LOSS) for p in law.parameters}
    return {
        name: np.asarray(prior.constrain(prior.loc + prior.spread * rng.standard_normal(DRAWS), np))
        for name, prior in priors.items()
    }


def runs(law: Law, seed: int = 1) -> Arrays:
    """Runs over the whole domain of the law: log-uniform, and uniform where an input may be 0."""
    rng = np.random.default_rng(seed)
    draws = {k: rng.uniform(*(np.log(ends) if ends[0] else ends), DRAWS) for k, ends in law.domain.items()}
    return {k: np.exp(v) if law.domain[k][0] else v for k, v in draws.items()}


def references(law: Law) -> Arrays:
    """Reference runs anywhere in the domain, conditions at their standard."""
    return runs(law, 2) | {k: np.full(DRAWS, v) for k, v in law.conditions.items()}


def letters(law: Law) -> Arrays:
    """The letters of ``values`` at ``references``."""
    return {name: np.asarray(a) for name, a in law.to_coefficients(values(law), references(law)).items()}


def spending_more_never_hurts(law: Law, name: str) -> None:
    """A larger value of an input named monotone never raises the mean loss, by a step or by a leap."""
    drawn, run = letters(law), runs(law)
    for other in (1.01 * run[name], np.maximum(run[name], runs(law, 3)[name])):
        more = run | {name: np.minimum(other, law.domain[name][1])}
        before, after = np.asarray(law.loss(drawn, run)), np.asarray(law.loss(drawn, more))
        worse = after > before * (1 + 1e-12)
        assert not worse.any(), f"more {name} raises the loss of {worse.sum()} of {DRAWS} draws"


def loss_stays_above_its_floor(law: Law) -> None:
    """No run goes below the floor, and no floor below zero."""
    drawn = letters(law)
    floor, loss = np.broadcast_arrays(np.asarray(law.floor(drawn)), np.asarray(law.loss(drawn, runs(law))))
    assert (floor >= 0).all()
    assert (loss >= floor * (1 - 1e-12)).all(), f"{(loss < floor).sum()} of {DRAWS} losses lie below the floor"


def loss_is_finite_and_positive(law: Law) -> None:
    """Its log is taken."""
    loss = np.asarray(law.loss(letters(law), runs(law)))
    assert np.isfinite(loss).all()
    assert (loss > 0).all()


def gradient_is_finite(law: Law) -> None:
    """In every parameter and every input, in float64."""

    def log_loss(value: Arrays, run: Arrays, reference: Arrays) -> jax.Array:
        return jnp.log(law.loss(law.to_coefficients(value, reference), run)).sum()

    slopes = jax.grad(log_loss, argnums=(0, 1))(values(law), runs(law), references(law))
    for name, slope in (slopes[0] | slopes[1]).items():
        assert slope.dtype == jnp.float64
        assert np.isfinite(slope).all(), f"the slope in {name} is not finite"


def all_methods_broadcast(law: Law) -> None:
    """Draws along one axis and runs along another give the table of each with each."""
    drawn, run = letters(law), runs(law)
    some = {k: v[:7, None] for k, v in drawn.items()}, {k: v[:5] for k, v in run.items()}
    table = np.asarray(law.loss(*some))
    assert table.shape == (7, 5)
    one = law.loss({k: v[3] for k, v in drawn.items()}, {k: v[2] for k, v in run.items()})
    assert np.ndim(one) == 0
    np.testing.assert_allclose(table[3, 2], one, rtol=1e-12)
    grid = law.to_coefficients({k: v[:7, None] for k, v in values(law).items()}, {k: v[:5] for k, v in run.items()})
    back = law.to_parameters(grid, {k: v[:5] for k, v in run.items()})
    for a in (*grid.values(), *back.values()):
        assert np.broadcast_shapes(np.shape(a), (7, 5)) == (7, 5)


def parameters_come_back(law: Law) -> None:
    """``to_parameters`` undoes ``to_coefficients`` at every reference run."""
    drawn, reference = values(law), references(law)
    back = law.to_parameters(law.to_coefficients(drawn, reference), reference)
    assert set(back) == set(drawn)
    for name, a in drawn.items():
        np.testing.assert_allclose(np.broadcast_to(back[name], a.shape), a, rtol=1e-9, err_msg=name)


def numpy_and_jax_agree(law: Law) -> None:
    """The same numbers from numpy arrays, from jax arrays and from a compiled call."""

    def both(value: Arrays, run: Arrays, reference: Arrays) -> Mapping[str, jax.Array]:
        drawn = law.to_coefficients(value, reference)
        return {**drawn, "loss": law.loss(drawn, run), "floor": law.floor(drawn)}

    plain = values(law), runs(law), references(law)
    expected = both(*plain)
    for found in (both(*jax.tree.map(jnp.asarray, plain)), jax.jit(both)(*plain)):
        for name, a in expected.items():
            np.testing.assert_allclose(found[name], a, rtol=1e-10, err_msg=name)


def shared_names_are_one_quantity(law: Law) -> None:
    """A letter that is also a parameter is that parameter: a posterior keeps one of the two."""
    drawn = values(law)
    made = law.to_coefficients(drawn, references(law))
    assert set(made) == {q.name for q in law.coefficients}
    for name in set(made) & set(drawn):
        np.testing.assert_array_equal(np.asarray(made[name]), drawn[name])


CLAIMS = {
    claim.__name__: claim
    for claim in (
        loss_stays_above_its_floor,
        loss_is_finite_and_positive,
        gradient_is_finite,
        all_methods_broadcast,
        parameters_come_back,
        numpy_and_jax_agree,
        shared_names_are_one_quantity,
    )
}
