"""Claims: shocks are what rows of a label share, any pilot gives one posterior, and a run's checkpoints are one run."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from bayescale.inference.laplace import Laplace
from bayescale.inference.nuts import NUTS
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import Drift
from bayescale.model.joint import Model, describe, potential, size, unpack
from bayescale.model.noise import Gaussian
from bayescale.model.pooling import Complete, Partial, Pooling, Separate
from bayescale.model.shocks import Shocks
from bayescale.parameter import Fixed, LogNormal
from bayescale.posterior.checks import outliers, predictive_check
from bayescale.posterior.fitting import arrays_of, fit
from bayescale.posterior.predict import predict
from bayescale.posterior.store import load
from bayescale.runs.read import read_runs
from bayescale.runs.table import Runs

LAW, TWO = Chinchilla(), [Shocks("run_id"), Shocks("budget", tilt=True)]


def checkpoints(n_runs: int = 8, each: int = 6, sd: float = 0.02, seed: int = 0) -> pd.DataFrame:
    """Runs whose checkpoints all share one shock of log loss, and scatter by .3 percent around it."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"r{i}", n, n * ratio, f"{i % 3}", "ab"[i % 2])
        for i, n in enumerate(np.geomspace(5e7, 5e9, n_runs))
        for ratio in np.geomspace(3, 150, each)
    ]
    t = pd.DataFrame(rows, columns=["run_id", "n_params", "n_tokens", "budget", "family"])
    mean = 1.8172 + 482.01 * t["n_params"] ** -0.3478 + 2085.43 * t["n_tokens"] ** -0.3658
    shock = np.repeat(sd * rng.standard_normal(n_runs), each)
    return t.assign(loss=mean * np.exp(shock + 0.003 * rng.standard_normal(len(t))))


@pytest.fixture(scope="module")
def runs() -> Runs:
    return read_runs(checkpoints().rename(columns={"run_id": "which"}).assign(run_id=checkpoints()["run_id"]))


def energies(model: Model, runs: Runs, z: np.ndarray, data: Any = None) -> tuple[np.ndarray, Any]:
    joint, own = arrays_of(model, runs)
    data = own if data is None else data
    with jax.enable_x64(True):
        found = jax.tree.map(np.asarray, describe(joint)(z, data))
        return np.array([float(potential(joint)(a, data)) for a in z]), found


def test_the_density_is_normal_shocks_beside_the_plain_density(runs: Runs) -> None:
    """Every shock is Normal with its scale, and the runs scatter around the law times all of theirs."""
    from scipy.stats import norm, t

    model = Model(LAW, drift=None, shocks=TWO)
    joint, data = arrays_of(model, runs)
    z = 0.3 * np.random.default_rng(0).standard_normal((4, size(joint, len(data["mask"]))))
    got, found = energies(model, runs, z)
    d, table = 8 + 3 + 3, runs.table
    lever = np.log(table["n_params"] / np.exp(np.log(table["n_params"]).mean())).to_numpy()
    which, budget = (np.unique(table[k], return_inverse=True)[1] for k in ("trajectory", "budget"))
    letters, values = found["letters"], {k: v[:, None] for k, v in found["values"].items()}
    plain = {k: v[:, None] for k, v in letters.items()}
    mean = np.log(
        plain["E"]
        + plain["A"] / table["n_params"].to_numpy() ** plain["alpha"]
        + plain["B"] / table["n_tokens"].to_numpy() ** plain["beta"]
    )
    own = z[:, -d:] * np.repeat(
        np.concatenate([values[k] for k in ("run_id_shock", "budget_shock", "budget_tilt")], 1), [8, 3, 3], axis=1
    )
    mean += own[:, which] + own[:, 8 + budget] + lever * own[:, 11 + budget]
    np.testing.assert_allclose(found["mean"][:, : len(runs)], mean, rtol=1e-10)
    off = (np.log(table["loss"].to_numpy()) - mean) / values["noise"]
    likelihood = (t.logpdf(off, values["tail"]) - np.log(values["noise"])).sum(1)
    prior = sum(v for v in found["log_prior"].values())
    np.testing.assert_allclose(-got, likelihood + prior + norm.logpdf(z[:, -d:]).sum(1), rtol=1e-9)


def test_without_any_scale_it_is_the_plain_density(runs: Runs) -> None:
    plain, shocked = Model(LAW, drift=None), Model(LAW, drift=None, shocks=TWO, priors=dict.fromkeys(
        ("run_id_shock", "budget_shock", "budget_tilt"), Fixed(1e-12)))  # fmt: skip
    z = 0.3 * np.random.default_rng(0).standard_normal((3, 7))
    without, a = energies(plain, runs, z)
    with_, b = energies(shocked, runs, np.concatenate([z, np.zeros((3, 14))], 1))
    np.testing.assert_allclose(with_ - 14 * 0.5 * np.log(2 * np.pi), without, rtol=1e-9)
    np.testing.assert_allclose(a["mean"], b["mean"], atol=1e-9)


@pytest.mark.parametrize(
    ("pooling", "drift"),
    [(Complete(), Drift(shared=0.3)), (Partial("family"), Drift(shared=0.3)), (Separate("family"), None)],
    ids=str,
)
def test_given_the_law_u_is_standard_normal_where_noise_is_normal(
    runs: Runs, pooling: Pooling, drift: Drift | None
) -> None:
    """With the pilot of the right precision: the energy along u is |u|^2 / 2, so the runs are integrated out."""
    held = {"noise": Fixed(0.01)}
    joint, data = arrays_of(Model(LAW, pooling, Gaussian(), held, drift, TWO), runs)
    from bayescale.model import shocks

    variance, precise = np.full(joint.n_groups, 1e-4), np.full(len(data["mask"]), 1e4)
    told = shocks.pilot(joint.path, joint.shocks, joint.n_groups, data, precise, variance)
    data = {**data, "pilot": {**data["pilot"], "path": told}}
    z = 0.2 * np.random.default_rng(2).standard_normal(size(joint, len(data["mask"])))
    at = unpack(joint, np.arange(len(z)), len(data["mask"]))["raw_effects"].astype(int)
    z[at] = 0.0
    u = np.zeros((4, len(z)))
    u[[1, 2, 3], at[[0, -9, -1]]] = 1.0
    with jax.enable_x64(True):
        energy = [float(potential(joint)(z + step, data)) for step in u]
    assert np.subtract(energy[1:], energy[0]) == pytest.approx(0.5, abs=1e-6)


def test_a_pilot_changes_coordinates_and_not_the_posterior(runs: Runs) -> None:
    """The density of u is that of the shocks in units of their scales, times the volume of the map between them."""
    from bayescale.model import shocks

    joint, plain = arrays_of(Model(LAW, drift=None, shocks=TWO), runs)
    told = shocks.pilot(None, joint.shocks, 1, plain, np.full(len(plain["mask"]), 2e3), np.full(1, 5e-4))
    data = {**plain, "pilot": {**plain["pilot"], "path": told}}
    d, rng = 14, np.random.default_rng(4)

    def weights(z: np.ndarray) -> np.ndarray:
        """Shocks over their scales, (rows of z, d)."""
        found = energies(Model(LAW, drift=None, shocks=TWO), runs, z, data)[1]
        sites = (("run_id_shock", "run_id_shocks"), ("budget_shock", "budget_shocks"), ("budget_tilt", "budget_tilts"))
        return np.concatenate([found["paths"][n] / found["values"][s][:, None] for s, n in sites], axis=1)

    for z in 0.3 * rng.standard_normal((3, size(joint, len(plain["mask"])))):
        steps = np.concatenate([np.zeros((d, len(z) - d)), np.eye(d)], 1)
        w = weights(np.concatenate([z[None], z + steps]))
        volume = np.linalg.slogdet(w[1:] - w[:1])[1]
        in_u, in_w = (
            energies(Model(LAW, drift=None, shocks=TWO), runs, at[None], own)[0][0]
            for at, own in ((z, data), (np.concatenate([z[:-d], w[0]]), plain))
        )
        assert abs(volume) > 1
        assert in_u == pytest.approx(in_w - volume, rel=1e-9)


def test_labels_are_a_groups_own(runs: Runs) -> None:
    posterior = fit(runs, LAW, drift=None, pooling=Partial("family"), shocks=TWO, engine=FromPrior(draws=20), seed=1)
    found = posterior.tree["posterior"].dataset
    assert found["budget_shocks"].sizes["budget_label"] == 6
    assert "0 (a)" in found["budget_label"].values
    assert found["run_id_shock"].dims == ("chain", "draw")


def test_a_fit_with_shocks_is_saved_and_loaded(runs: Runs, tmp_path: Any) -> None:
    posterior = fit(runs, LAW, shocks=TWO, priors={"budget_tilt": LogNormal(0.002, 0.5)}, engine=FromPrior(draws=20))
    again = load(posterior.save(tmp_path / "fit.nc"))
    assert again.model == posterior.model
    assert again.tree["posterior"].dataset.equals(posterior.tree["posterior"].dataset)
    assert "budget_tilt LogNormal(0.002, 0.5)" in " ".join(repr(again.model).split())
    assert "tilting with size" in repr(posterior)


def test_a_new_run_has_a_new_shock_and_the_mean_has_none(runs: Runs) -> None:
    held = {"run_id_shock": Fixed(0.03), "budget_shock": Fixed(1e-6), "budget_tilt": Fixed(0.02), "tail": Fixed(1e3)}
    posterior = fit(runs, LAW, drift=None, shocks=TWO, priors=held, engine=Laplace(draws=4000), seed=1)
    center = posterior.reference["n_params"]
    found = predict(posterior, {"n_params": [center, center * np.e**2], "n_tokens": 1e10})
    wide = np.log(found.new_run[:, 2] / found.new_run[:, 1]) ** 2 - np.log(found.mean[:, 2] / found.mean[:, 1]) ** 2
    expected = 2 * 1.645 * np.hypot(0.03, [0.0, 0.04])
    assert np.sqrt(wide) == pytest.approx(expected, rel=0.08)


def test_outliers_and_predictive_checks_know_of_shocks(runs: Runs) -> None:
    """A shock of two percent is no outlier where rows scatter by .3, once it is known to be shared."""
    posterior = fit(runs, LAW, drift=None, shocks=[Shocks("run_id")], engine=Laplace(draws=400), seed=1)
    assert not outliers(posterior)["flagged"].any()
    assert abs(outliers(posterior)["residual"]).max() < 0.012
    spread = predictive_check(posterior).set_index("statistic").loc["sd of log residuals"]
    assert spread["p_value"] > 0.02


def test_what_is_no_shock_is_refused(runs: Runs) -> None:
    from bayescale.inference.huber import Huber

    for shocks, says in (
        ([Shocks("bugdet")], "no column 'bugdet'.*budget"),
        ([Shocks("line")], "a label of its own for every row"),
        ([Shocks("budget"), Shocks("budget", tilt=True)], "budget is there twice"),
    ):
        with pytest.raises(ValueError, match=says):
            fit(runs, LAW, shocks=shocks, engine=FromPrior(draws=2))
    with pytest.raises(TypeError, match="a list of Shocks"):
        fit(runs, LAW, shocks="budget", engine=FromPrior(draws=2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reads no shocks"):
        fit(runs, LAW, shocks=TWO, engine=Huber())
    with pytest.raises(ValueError, match="not partial"):
        Model(LAW, Partial("family", {"budget_shock": "partial"}), shocks=TWO)


def test_checkpoints_without_a_shock_are_warned_of(runs: Runs, caplog: pytest.LogCaptureFixture) -> None:
    fit(runs, LAW, drift=None, engine=FromPrior(draws=2))
    assert "48 rows are checkpoints of 8 runs" in caplog.text
    caplog.clear()
    fit(runs, LAW, drift=None, shocks=[Shocks("trajectory")], engine=FromPrior(draws=2))
    assert "checkpoints" not in caplog.text


@pytest.mark.slow
def test_the_scale_of_shocks_is_recovered_and_the_law_with_it() -> None:
    """Rows counted as runs are sure of an exponent that is wrong."""
    frame = checkpoints(16, 12, seed=3)
    realised = np.sqrt(np.mean((0.02 * np.random.default_rng(3).standard_normal(16)) ** 2))
    table = read_runs(frame)
    engine = NUTS(chains=2, draws=500)
    plain = fit(table, LAW, drift=None, engine=engine, seed=1)
    own = fit(table, LAW, drift=None, shocks=[Shocks("run_id")], engine=engine, seed=1)
    low, high = np.quantile(own.values()["run_id_shock"], [0.05, 0.95])
    assert low < realised < high
    assert np.median(own.values()["noise"]) == pytest.approx(0.003, rel=0.3)
    ends = [np.quantile(found.coefficients()["alpha"], [0.005, 0.995]) for found in (plain, own)]
    assert [low < 0.3478 < high for low, high in ends] == [False, True]
    assert np.ptp(ends[1]) > np.ptp(ends[0])
    assert own.tree["sample_stats"]["diverging"].sum() == 0
