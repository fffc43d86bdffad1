"""Claims: groups share a path as stated, and the coordinates in which paths are sampled do not change the posterior."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model import path, table
from bayescale.model.drift import DEPARTURE, Drift
from bayescale.model.joint import Joint, Model, describe, potential, size
from bayescale.model.pooling import Complete, NewGroup, Partial, Pooling, PopulationMean, Separate
from bayescale.posterior.fitting import arrays_of, fit
from bayescale.posterior.surface import weights
from bayescale.runs.read import read_runs

POOLINGS = [Complete(), Partial("group"), Separate("group"), Partial("group", {"path": "complete"})]


@pytest.fixture(scope="module")
def runs() -> Any:
    rows = [(n, d, g) for n in (1e8, 4e8, 1.6e9) for d in (2e9, 8e9) for g in ("a", "b")]
    losses = [1.8 + 480 / n**0.35 + 2085 / d**0.37 + 0.05 * (g == "b") for n, d, g in rows]
    return read_runs(pd.DataFrame(rows, columns=["n_params", "n_tokens", "group"]).assign(loss=losses))


def model(pooling: Pooling) -> Model:
    return Model(Chinchilla(), pooling, drift=Drift(shared=0.3))


def told(joint: Joint, data: Any) -> dict[str, Any]:
    """The data with the pilot of runs that scatter by a percent, some less, some more."""
    rng = np.random.default_rng(0)
    precision = 1e4 * rng.uniform(0.1, 2.0, len(data["mask"]))
    away = path.pilot(joint.path or "complete", joint.n_groups, data, precision, 1e-4)
    return {**data, "pilot": {**data["pilot"], "path": away}}


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_any_pilot_gives_the_same_density(runs: Any, pooling: Pooling) -> None:
    """The density of the weights differs from that of u by the Jacobian's determinant alone."""
    joint, data = arrays_of(model(pooling), runs)
    piloted = told(joint, data)
    rng = np.random.default_rng(1)
    z = 0.5 * rng.standard_normal((6, size(joint, len(data["mask"]))))
    with jax.enable_x64(True):
        found = describe(joint)(z, piloted)
        weights = path.count(joint.path or "complete", 2) * path.WEIGHTS
        if isinstance(pooling, Complete) or pooling.per_parameter:
            w = np.asarray(found["paths"]["path"])
        elif isinstance(pooling, Separate):
            w = np.asarray(found["paths"]["path"]).reshape(6, -1)
        else:
            common = np.asarray(found["paths"]["path_mean"]) / np.sqrt(0.3)
            own = (np.asarray(found["paths"]["path"]) - np.sqrt(0.3) * common[:, None]) / np.sqrt(0.7)
            w = np.concatenate([common[:, None], own], 1).reshape(6, -1)
        plain = z.copy()
        plain[:, -weights:] = w @ data["pilot"]["path"]["vectors"]
        s = np.exp(np.log(np.asarray(found["values"][DEPARTURE.name]).reshape(6, -1)).mean(1))
        noise = np.asarray(found["values"]["noise"]).reshape(6, -1)
        sharper = np.exp(np.log(1e-4 / noise**2).mean(1))
        volume = 0.5 * np.log1p((s**2 * sharper)[:, None] * piloted["pilot"]["path"]["values"]).sum(1)
        pairs = zip(z, plain, strict=True)
        gained = [float(potential(joint)(a, piloted)) - float(potential(joint)(b, data)) for a, b in pairs]
    assert np.asarray(gained) - volume == pytest.approx(0.0, abs=1e-6)


def test_given_the_law_u_is_standard_normal_where_noise_is_normal(runs: Any) -> None:
    """The energy along u is |u|^2 / 2 about 0, whatever the law: the runs have been integrated out."""
    from bayescale.model.noise import Gaussian

    joint, data = arrays_of(replace(model(Partial("group", {"noise": "complete"})), noise=Gaussian()), runs)
    z = 0.3 * np.random.default_rng(2).standard_normal(size(joint, len(data["mask"])))
    n = path.count("partial", 2) * path.WEIGHTS
    precise = np.full(len(data["mask"]), 1e4)
    data = {**data, "pilot": {**data["pilot"], "path": path.pilot("partial", 2, data, precise, 1e-4)}}
    with jax.enable_x64(True):
        at = [float(potential(joint)(np.concatenate([z[:-n], u]), data)) for u in (np.zeros(n), *np.eye(n)[[0, 3, 50]])]
    assert np.subtract(at[1:], at[0]) == pytest.approx(0.5, abs=1e-6)


def test_a_group_shares_a_part_of_its_paths_variance(runs: Any) -> None:
    posterior = fit(runs, model(Partial("group")), engine=FromPrior(draws=4000), seed=1)
    drawn = {
        g: weights(posterior.tree["posterior"].dataset, g, Drift(shared=0.3), 1)
        for g in (*posterior.groups, NewGroup(), PopulationMean())
    }
    for one, other, expected in (
        ("a", "a", 1.0),
        ("a", "b", 0.3),
        ("a", NewGroup(), 0.3),
        (NewGroup(), NewGroup(), 1.0),
        (PopulationMean(), PopulationMean(), 0.3),
    ):
        assert (drawn[one] * drawn[other]).mean() == pytest.approx(expected, abs=0.02)


def test_separate_groups_have_no_population_of_paths(runs: Any) -> None:
    apart = Partial("group", {"path": "separate"})
    posterior = fit(runs, model(apart), engine=FromPrior(draws=10), seed=1)
    with pytest.raises(ValueError, match="no population to draw a new group from"):
        posterior.surface(NewGroup())


def test_the_weights_that_runs_do_not_see_are_left_alone(runs: Any) -> None:
    """Seen columns alone rebuild what every path adds to every run."""
    joint, data = arrays_of(model(Partial("group")), runs)
    design = path.design("partial", 2, data)
    away = table.without_pilot(joint, data)["pilot"]["path"]
    w = np.random.default_rng(3).standard_normal(design.shape[1])
    seen = away["seen"] @ (away["vectors"].T @ w)[: away["seen"].shape[1]]
    assert seen[data["mask"]] == pytest.approx((design @ w)[data["mask"]])
