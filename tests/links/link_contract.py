"""The contract of a link as functions, so that a link that breaks it can be seen to fail them.

Each draws values from the link's own priors, and references and losses over the range that links are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from bayescale.links import Link
from bayescale.links._link import LOSSES

Arrays = dict[str, np.ndarray]
DRAWS = 2000
LOSS = 3.0  # where a prior leaves its median to the table: nats per token of a small language model


def values(link: Link, seed: int = 0) -> Arrays:
    """Draws of the parameters' priors, in their own units."""
    rng = np.random.default_rng(seed)
    priors = {p.name: p.prior.at(LOSS) for p in link.parameters}
    return {
        name: np.asarray(prior.constrain(prior.loc + prior.spread * rng.standard_normal(DRAWS), np))
        for name, prior in priors.items()
    }


def references() -> Arrays:
    """Median losses of tables of language models, and chances from none to one of two."""
    rng = np.random.default_rng(2)
    return {"loss": rng.uniform(1.5, 5.0, DRAWS), "chance": rng.choice([0.0, 0.1, 0.25, 0.5], DRAWS)}


def losses(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(*LOSSES, DRAWS)


def letters(link: Link) -> Arrays:
    return {name: np.asarray(a) for name, a in link.to_coefficients(values(link), references()).items()}


def a_lower_loss_never_scores_less(link: Link) -> None:
    """By a step or by a leap."""
    drawn, loss = letters(link), losses()
    for lower in (0.99 * loss, np.minimum(loss, losses(3))):
        worse = np.asarray(link.score(drawn, lower)) < np.asarray(link.score(drawn, loss)) - 1e-12
        assert not worse.any(), f"a lower loss scores less in {worse.sum()} of {DRAWS} draws"


def score_lies_between_floor_and_one(link: Link) -> None:
    drawn = letters(link)
    floor, score = np.broadcast_arrays(np.asarray(link.floor(drawn)), np.asarray(link.score(drawn, losses())))
    assert (floor >= 0).all()
    assert (score >= floor - 1e-12).all(), f"{(score < floor).sum()} of {DRAWS} scores lie below the floor"
    assert (score <= 1).all(), f"{(score > 1).sum()} of {DRAWS} scores exceed 1"


def score_tends_to_its_floor(link: Link) -> None:
    """At a loss beyond any, where nothing has been learnt."""
    drawn = letters(link)
    np.testing.assert_allclose(
        link.score(drawn, np.full(DRAWS, 1e6)), np.broadcast_to(link.floor(drawn), DRAWS), atol=1e-9
    )


def gradient_is_finite(link: Link) -> None:
    """In every parameter and in the loss, in float64."""

    def total(value: Arrays, loss: np.ndarray) -> jax.Array:
        return link.score(link.to_coefficients(value, references()), loss).sum()

    slopes, slope = jax.grad(total, argnums=(0, 1))(values(link), losses())
    for name, a in (slopes | {"loss": slope}).items():
        assert a.dtype == jnp.float64
        assert np.isfinite(a).all(), f"the slope in {name} is not finite"


def all_methods_broadcast(link: Link) -> None:
    """Draws along one axis and losses along another give the table of each with each."""
    drawn, loss = letters(link), losses()
    table = np.asarray(link.score({k: v[:7, None] for k, v in drawn.items()}, loss[:5]))
    assert table.shape == (7, 5)
    one = link.score({k: v[3] for k, v in drawn.items()}, loss[2])
    assert np.ndim(one) == 0
    np.testing.assert_allclose(table[3, 2], one, rtol=1e-12)
    reference = {k: v[:5] for k, v in references().items()}
    grid = link.to_coefficients({k: v[:7, None] for k, v in values(link).items()}, reference)
    for a in (*grid.values(), *link.to_parameters(grid, reference).values()):
        assert np.broadcast_shapes(np.shape(a), (7, 5)) == (7, 5)


def parameters_come_back(link: Link) -> None:
    """``to_parameters`` undoes ``to_coefficients`` at every reference."""
    drawn = values(link)
    back = link.to_parameters(link.to_coefficients(drawn, references()), references())
    assert set(back) == set(drawn)
    for name, a in drawn.items():
        np.testing.assert_allclose(np.broadcast_to(back[name], a.shape), a, rtol=1e-7, atol=1e-9, err_msg=name)


def numpy_and_jax_agree(link: Link) -> None:
    """The same numbers from numpy arrays, from jax arrays and from a compiled call."""

    def both(value: Arrays, loss: np.ndarray, reference: Arrays) -> Mapping[str, jax.Array]:
        drawn = link.to_coefficients(value, reference)
        return {**drawn, "score": link.score(drawn, loss), "floor_": link.floor(drawn)}

    plain = values(link), losses(), references()
    expected = both(*plain)
    for found in (both(*jax.tree.map(jnp.asarray, plain)), jax.jit(both)(*plain)):
        for name, a in expected.items():
            np.testing.assert_allclose(found[name], a, rtol=1e-9, atol=1e-12, err_msg=name)


def shared_names_are_one_quantity(link: Link) -> None:
    """A letter that is also a parameter is that parameter."""
    drawn = values(link)
    made = link.to_coefficients(drawn, references())
    assert set(made) == {q.name for q in link.coefficients}
    for name in set(made) & set(drawn):
        np.testing.assert_array_equal(np.asarray(made[name]), drawn[name])


CLAIMS = {
    claim.__name__: claim
    for claim in (
        a_lower_loss_never_scores_less,
        score_lies_between_floor_and_one,
        score_tends_to_its_floor,
        gradient_is_finite,
        all_methods_broadcast,
        parameters_come_back,
        numpy_and_jax_agree,
        shared_names_are_one_quantity,
    )
}
