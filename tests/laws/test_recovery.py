"""Claims: sixty runs of a law give it back, from its own priors.

The mode of the posterior by least squares: runs scatter by .3 % and every prior counts as one more residual.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

import bayescale as bs
from bayescale.laws import Law, get
from bayescale.laws._published import CONSTANTS

NOISE = 0.003
KNOWN: dict[str, Mapping[str, float]] = {
    "chinchilla_tied": CONSTANTS["gadre-2024-redpajama"].letters,
    "coupled": {"A": 480.0, "B": 2100.0, "E": 1.8, "alpha": 0.35, "beta": 0.37, "coupling": 0.5},
    "data_constrained": CONSTANTS["muennighoff-2023"].letters,
    "kaplan": CONSTANTS["kaplan-2020"].letters,
}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def table(law: Law, seed: int) -> dict[str, np.ndarray]:
    """Sixty sizes and tokens over three decades each; distinct text, where it counts, seen 1 to 64 times."""
    rng = np.random.default_rng(seed)
    run = {"n_params": 10 ** rng.uniform(7, 10, 60), "n_tokens": 10 ** rng.uniform(8.5, 11.5, 60)}
    if "n_unique_tokens" in law.inputs:
        run["n_unique_tokens"] = run["n_tokens"] / 2 ** rng.uniform(0, 6, 60)
    return run


@dataclass(frozen=True)
class Fit:
    """Mode and covariance of the unconstrained parameters, beside those behind the runs."""

    mode: np.ndarray
    covariance: np.ndarray
    known: np.ndarray
    loss: Callable[[Mapping[str, np.ndarray]], Any]


def recovered(law: Law, known: Mapping[str, float], seed: int = 0) -> Fit:
    run = table(law, seed)
    rng = np.random.default_rng(seed + 1)
    log_loss = np.log(law.loss(known, run)) + NOISE * rng.standard_normal(60)
    reference = {name: float(np.exp(np.log(x).mean())) for name, x in run.items()} | dict(law.conditions)
    priors = {p.name: p.prior.at(float(np.exp(np.median(log_loss)))) for p in law.parameters}
    loc, spread = (np.array([getattr(p, end) for p in priors.values()]) for end in ("loc", "spread"))

    def letters(x: Any) -> dict[str, Any]:
        values = {name: priors[name].constrain(x[i], jnp) for i, name in enumerate(priors)}
        return law.to_coefficients(values, reference)

    @jax.jit
    def residuals(x: Any) -> Any:
        return jnp.concatenate([(jnp.log(law.loss(letters(x), run)) - log_loss) / NOISE, (x - loc) / spread])

    found = least_squares(residuals, loc, jax.jit(jax.jacfwd(residuals)), x_scale="jac")
    behind = law.to_parameters(known, reference)
    return Fit(
        found.x,
        np.linalg.inv(found.jac.T @ found.jac),
        np.array([priors[name].unconstrain(float(behind[name])) for name in priors]),
        lambda run: law.loss(letters(found.x), run),
    )


@pytest.mark.parametrize("name", KNOWN)
def test_sixty_runs_give_the_losses_of_others(name: str) -> None:
    """Far within their own scatter, for runs of the same range."""
    law = get(name)
    others = table(law, 7)
    away = np.log(recovered(law, KNOWN[name]).loss(others) / law.loss(KNOWN[name], others))
    assert np.sqrt((away**2).mean()) < NOISE / 2


@pytest.mark.parametrize("name", KNOWN)
def test_sixty_runs_give_the_parameters(name: str) -> None:
    """Their distance from those behind the runs is that of as many standard Normals."""
    fits = [recovered(get(name), KNOWN[name], seed) for seed in range(4)]
    z = [(f.mode - f.known) @ np.linalg.inv(f.covariance) @ (f.mode - f.known) / len(f.mode) for f in fits]
    assert 0.2 < np.mean(z) < 2.5


@pytest.mark.parametrize("name", KNOWN)
def test_runs_narrow_every_prior(name: str) -> None:
    law = get(name)
    sd = np.sqrt(np.diag(recovered(law, KNOWN[name]).covariance))
    told = {p.name: s / p.prior.spread for p, s in zip(law.parameters, sd, strict=True)}
    assert max(told.values()) < 0.6, told


@pytest.mark.parametrize("name", ["coupled", "kaplan"])
def test_a_fit_gives_the_letters(name: str, compile_cache: object) -> None:
    """Through the whole library: within the 98 % interval of a preview."""
    law = get(name)
    run = table(law, 0)
    rng = np.random.default_rng(1)
    loss = law.loss(KNOWN[name], run) * np.exp(NOISE * rng.standard_normal(60))
    fit = bs.fit(bs.read_runs(pd.DataFrame({**run, "loss": loss})), law, drift=None, engine=bs.Laplace(), seed=1)
    assert set(fit.coefficients()) >= {q.name for q in law.coefficients}
    found = bs.predict(fit, {"n_params": 3e9, "n_tokens": 6e10}).mean
    wanted = float(law.loss(KNOWN[name], {"n_params": 3e9, "n_tokens": 6e10}))
    assert np.median(found) == pytest.approx(wanted, rel=NOISE)
    for q in law.coefficients:
        low, high = np.quantile(fit.coefficients()[q.name], [0.01, 0.99])
        assert low < KNOWN[name][q.name] < high, q.name
