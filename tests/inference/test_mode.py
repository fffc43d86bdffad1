"""Claims: the search ends at the optimum, and the start of a hierarchy rests on the groups' own runs."""

import jax
import numpy as np
import pytest
from scipy.optimize import least_squares
from test_nuts import TRUTH, simulated

from bayescale.inference import groups, mode
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Joint, Model, describe, unpack
from bayescale.model.noise import Gaussian
from bayescale.model.pooling import Partial
from bayescale.model.table import arrays
from bayescale.parameter import LogitNormal, LogNormal

WIDE = {
    "loss_center": LogNormal(None, 10.0),
    "floor_share": LogitNormal(0.6, 10.0),
    "size_share": LogitNormal(0.5, 10.0),
    "alpha": LogNormal(0.35, 10.0),
    "beta": LogNormal(0.35, 10.0),
}


def data_of(model: Model, n_groups: int = 1) -> tuple[Joint, dict]:
    runs = simulated(n_groups)
    t = runs.table
    run = {k: t[k].to_numpy(float) for k in ("n_params", "n_tokens")}
    group = np.arange(len(t)) // 16
    loss, se = t["loss"].to_numpy(float), t["loss_se"].to_numpy(float)
    return model.joint(n_groups), arrays(model, run, loss, se, group, n_groups, runs.center, float(np.median(loss)))


def test_under_flat_priors_and_normal_noise_the_mode_is_least_squares() -> None:
    """scipy's least squares on log loss, from the truth, is the independent answer."""
    joint, data = data_of(Model(Chinchilla(), drift=None, noise=Gaussian(), priors=WIDE))
    t = simulated().table

    def residual(p: np.ndarray) -> np.ndarray:
        a, b, e, alpha, beta = p
        size = np.exp(a - alpha * np.log(t["n_params"].to_numpy(float)))
        tokens = np.exp(b - beta * np.log(t["n_tokens"].to_numpy(float)))
        return np.log(np.exp(e) + size + tokens) - np.log(t["loss"].to_numpy(float))

    start = [np.log(TRUTH["A"]), np.log(TRUTH["B"]), np.log(TRUTH["E"]), TRUTH["alpha"], TRUTH["beta"]]
    best = least_squares(residual, start, xtol=1e-14, ftol=1e-14, gtol=1e-14).x
    with jax.enable_x64(True):
        found = mode.find(joint, data, np.random.default_rng(0))
        letters = jax.tree.map(np.asarray, describe(joint)(found.center[None], data)["letters"])
    assert found.converged >= 2
    for name, value in zip(("alpha", "beta"), best[3:], strict=True):
        assert letters[name][0] == pytest.approx(value, rel=2e-3)
    assert letters["E"][0] == pytest.approx(np.exp(best[2]), rel=2e-3)


def test_a_populations_start_is_at_what_its_groups_say() -> None:
    model = Model(Chinchilla(), Partial("g"), drift=None)
    joint, data = data_of(model, 3)
    with jax.enable_x64(True):
        found = groups.start(joint, data, np.random.default_rng(0))
        x = jax.tree.map(np.asarray, describe(joint)(found.center[None], found.data))
    assert found.whitens
    losses = [np.median(np.exp(data["log_loss"][data["mask"] & (data["group"] == g)])) for g in range(3)]
    assert x["values"]["loss_center"][0] == pytest.approx(losses, rel=0.05)
    assert np.exp(unpack(joint, found.center, len(data["mask"]))["log_loss_center_sd"]) < 0.1  # one law in all groups


def test_the_pilot_is_the_runs_information_without_the_prior() -> None:
    """For Normal runs, precision and shift of the posterior less the prior's are the runs' own."""
    loc, spread = np.array([0.3, -1.0]), np.array([0.5, 2.0])
    root = np.random.default_rng(0).standard_normal((4, 2, 2))
    told, at = root @ root.swapaxes(1, 2), np.random.default_rng(1).standard_normal((4, 2))
    precision = told + np.diag(spread**-2)
    x = np.linalg.solve(precision, (np.einsum("gij,gj->gi", told, at) + loc / spread**2)[..., None])[..., 0]
    found = groups._told(x, np.linalg.inv(precision), loc, spread)
    assert found["precision"] == pytest.approx(told, abs=1e-9)
    assert found["shift"] == pytest.approx(np.einsum("gij,gj->gi", told, at), abs=1e-9)
