"""Claims: the density is the product of priors, law and noise that it says it is, on any padding and in any unit."""

import jax
import numpy as np
import pytest
from scipy.stats import norm, t

from bayescale.laws.chinchilla import Chinchilla
from bayescale.model import simulate, table
from bayescale.model.joint import Model, describe, potential, size, unpack
from bayescale.model.noise import Gaussian, StudentT
from bayescale.model.pooling import Partial, Separate
from bayescale.parameter import Fixed, LogitNormal, LogNormal

LAW = Chinchilla()


def runs(n: int = 20, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    n_params, n_tokens = 10 ** rng.uniform(7.5, 9.5, n), 10 ** rng.uniform(9, 11, n)
    loss = 1.8172 + 482.01 * n_params**-0.3478 + 2085.43 * n_tokens**-0.3658
    return {"n_params": n_params, "n_tokens": n_tokens, "loss": loss * np.exp(0.01 * rng.standard_normal(n))}


def arrays(model: Model, r: dict, *, groups: int = 1, se: float = np.nan, unit: float = 1.0) -> dict:
    group = np.arange(len(r["loss"])) % groups
    reference = {k: float(np.exp(np.log(r[k]).mean())) for k in ("n_params", "n_tokens")}
    loss = unit * r["loss"]
    return table.arrays(model, r, loss, np.full(len(loss), se * unit), group, groups, reference, float(np.median(loss)))


def energy(model: Model, z: np.ndarray, data: dict, groups: int = 1) -> float:
    with jax.enable_x64(True):
        return float(potential(model.joint(groups))(z, data))


@pytest.mark.parametrize(("noise", "se"), [(StudentT(), np.nan), (StudentT(), 0.02), (Gaussian(), 0.02)])
def test_the_density_is_priors_times_noise_around_the_law(noise: StudentT | Gaussian, se: float) -> None:
    model, r = Model(LAW, drift=None, noise=noise), runs()
    data = arrays(model, r, se=se)
    joint = model.joint(1)
    rng = np.random.default_rng(3)
    for z in simulate.prior(joint, data, rng, 5):
        x = {k: float(v) for k, v in unpack(joint, z, len(data["mask"])).items()}
        expected = 0.0
        for p in model.parameters:
            prior = p.prior.at(float(np.median(r["loss"])))
            expected += norm.logpdf(x[p.site], prior.loc, prior.spread)
        center, alpha, beta = np.exp(x["log_loss_center"]), np.exp(x["log_alpha"]), np.exp(x["log_beta"])
        floor, share = 1 / (1 + np.exp(-x["logit_floor_share"])), 1 / (1 + np.exp(-x["logit_size_share"]))
        ref = data["reference"]
        mean = center * (
            floor
            + (1 - floor) * share * (r["n_params"] / ref["n_params"]) ** -alpha
            + (1 - floor) * (1 - share) * (r["n_tokens"] / ref["n_tokens"]) ** -beta
        )
        scale = np.hypot(np.exp(x["log_noise"]), np.nan_to_num(se) / r["loss"])
        off = (np.log(r["loss"]) - np.log(mean)) / scale
        density = t.logpdf(off, np.exp(x["log_tail"])) if isinstance(noise, StudentT) else norm.logpdf(off)
        assert -energy(model, z, data) == pytest.approx(expected + (density - np.log(scale)).sum(), rel=1e-9)


def test_padding_and_the_order_of_rows_change_nothing() -> None:
    model, r = Model(LAW, drift=None), runs(30)
    z = np.zeros(7)
    small = energy(model, z, arrays(model, r))
    shuffled = {k: v[::-1] for k, v in r.items()}
    assert energy(model, z, arrays(model, shuffled)) == pytest.approx(small, rel=1e-12)
    more = arrays(model, r)
    wide = {
        **more,
        **{k: np.concatenate([more[k], more[k]]) for k in ("log_loss", "se", "group")},
        "run": {k: np.concatenate([v, v]) for k, v in more["run"].items()},
        "mask": np.concatenate([more["mask"], np.zeros_like(more["mask"])]),
    }
    assert energy(model, z, wide) == pytest.approx(small, rel=1e-12)


def test_another_unit_of_loss_moves_the_density_by_nothing() -> None:
    """Bits per byte for nats per token: the log loss and the prior's centre move together."""
    model, r = Model(LAW, drift=None), runs()
    nats, bits = arrays(model, r), arrays(model, r, unit=0.33)
    rng = np.random.default_rng(0)
    joint = model.joint(1)
    for z in simulate.prior(joint, nats, rng, 3):
        shifted = z.copy()
        at = list(unpack(joint, np.arange(7), len(nats["mask"])).items())
        shifted[dict(at)["log_loss_center"]] += np.log(0.33)
        assert energy(model, shifted, bits) == pytest.approx(energy(model, z, nats), rel=1e-9)


def test_a_fixed_parameter_is_not_sampled_and_holds_its_value() -> None:
    model = Model(LAW, drift=None, priors={"alpha": Fixed(0.31)})
    data, joint = arrays(model, runs()), model.joint(1)
    assert size(joint, len(data["mask"])) == 6
    z = simulate.prior(joint, data, np.random.default_rng(0), 4)
    with jax.enable_x64(True):
        found = describe(joint)(z, data)
    assert np.all(np.asarray(found["letters"]["alpha"]) == 0.31)
    assert "alpha" not in found["log_prior"]


def test_separate_groups_do_not_see_each_other() -> None:
    """The energy is a sum over groups: changing one group's values moves its own part only."""
    model, r = Model(LAW, Separate("g"), drift=None), runs(24)
    data, joint = arrays(model, r, groups=2), model.joint(2)
    z = simulate.prior(joint, data, np.random.default_rng(0), 2)
    index = unpack(joint, np.arange(z.shape[1]), len(data["mask"]))
    first = np.array([v[0] for v in index.values()])
    swapped = np.repeat(z[:1], 2, axis=0)
    swapped[1, first] = z[1, first]
    both = z[1].copy()
    both[first] = z[0, first]
    parts = [energy(model, a, data, 2) for a in (z[0], swapped[1], both, z[1])]
    assert parts[0] - parts[1] == pytest.approx(parts[2] - parts[3], rel=1e-9)


def test_prior_draws_have_the_priors_quantiles() -> None:
    model = Model(LAW, Partial("g"), drift=None)
    data, joint = arrays(model, runs(24), groups=2), model.joint(2)
    z = simulate.prior(joint, data, np.random.default_rng(0), 4000)
    with jax.enable_x64(True):
        found = jax.tree.map(np.asarray, describe(joint)(z, table.without_pilot(joint, data)))
    center = float(np.median(runs(24)["loss"]))
    for p in model.parameters:
        mean = found["x"].get(f"{p.site}_mean", found["x"][p.name])
        prior = p.prior.at(center)
        assert np.quantile(mean, 0.95) == pytest.approx(prior.loc + 1.645 * prior.spread, abs=0.1 * prior.spread)
        if p in joint.partial:
            apart = found["x"][p.name] - mean[:, None]
            assert np.mean(apart**2) == pytest.approx(p.between_groups**2, rel=0.15)


@pytest.mark.parametrize("noise", [StudentT(), Gaussian()])
def test_simulated_scatter_follows_the_density(noise: StudentT | Gaussian) -> None:
    values = {"noise": np.float64(0.02), "tail": np.float64(3.0)}
    drawn = noise.simulate(np.random.default_rng(0), np.full(200_000, 0.9), values, 0.01)
    scale = np.hypot(0.02, 0.01)
    expected = (t(3) if isinstance(noise, StudentT) else norm).ppf([0.01, 0.25, 0.5, 0.9]) * scale + 0.9
    assert np.quantile(drawn, [0.01, 0.25, 0.5, 0.9]) == pytest.approx(expected, abs=2e-3)


def test_a_misspelt_prior_lists_those_there_are() -> None:
    lists = "No parameter is called 'aplha'.*alpha, beta, noise, tail.*Did you mean 'alpha'"
    with pytest.raises(ValueError, match=lists):
        Model(LAW, drift=None, priors={"aplha": LogNormal(0.3, 0.2)})
    with pytest.raises(ValueError, match="alpha takes a LogNormal"):
        Model(LAW, drift=None, priors={"alpha": LogitNormal(0.3, 0.2)})
    with pytest.raises(ValueError, match="positive"):
        Model(LAW, drift=None, priors={"alpha": Fixed(-1.0)})


def test_every_prior_is_shown_in_its_own_unit() -> None:
    shown = repr(Model(LAW, Partial("family"), drift=None, priors={"beta": Fixed(0.37), "alpha": LogNormal(0.3, 0.1)}))
    for name in ("loss_center", "floor_share", "size_share", "alpha", "beta", "noise", "tail"):
        assert f"\n{name} " in shown
    assert "0.254 to 0.354" in shown  # .3 exp(-+1.645 x .1)
    assert "fixed" in shown
    assert "by 'family'" in shown
