"""A law from its noisy runs, by least squares on the log loss: whether its letters can be learned at all."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

from bayescale.laws import Law

NOISE = 0.003  # of log loss
Arrays = Mapping[str, np.ndarray]


def center(law: Law, runs: Arrays) -> dict[str, float]:
    """The reference run of a table: the middle of its sizes and tokens, conditions at their standard."""
    spent = (k for k in law.inputs if k not in law.conditions)
    return {**law.conditions, **{k: float(np.exp(np.log(runs[k]).mean())) for k in spent}}


def learned(law: Law, letters: Mapping[str, float], runs: Arrays, seed: int = 0) -> dict[str, float]:
    """The letters found from runs that scatter about those given, from the medians of the priors."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        log_loss = np.log(np.asarray(law.loss(letters, runs)))
        seen = log_loss + NOISE * rng.standard_normal(log_loss.shape)
        priors = [p.prior.at(float(np.exp(np.median(seen)))) for p in law.parameters]
        reference = center(law, runs)

        def made(x: jax.Array) -> dict[str, jax.Array]:
            values = {p.name: priors[k].constrain(x[k], jnp) for k, p in enumerate(law.parameters)}
            return law.to_coefficients(values, reference)

        @jax.jit
        def residuals(x: jax.Array) -> jax.Array:
            # What the runs do not tell stays with the prior, so that an unbounded direction stays finite.
            pull = jnp.array([(x[k] - prior.loc) / prior.spread for k, prior in enumerate(priors)])
            return jnp.concatenate([(jnp.log(law.loss(made(x), runs)) - seen) / NOISE, pull])

        start = np.array([prior.loc for prior in priors])
        found = least_squares(residuals, start, jac=jax.jit(jax.jacfwd(residuals)), x_scale=[p.spread for p in priors])
        assert found.success
        return {name: float(value) for name, value in made(found.x).items()}


def worst(law: Law, letters: Mapping[str, float], found: Mapping[str, float], runs: Arrays) -> float:
    """The largest error of log loss over some runs."""
    with jax.enable_x64(True):
        return float(np.abs(np.log(np.asarray(law.loss(found, runs)) / np.asarray(law.loss(letters, runs)))).max())
