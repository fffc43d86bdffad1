"""Claims: outliers, leave-one-out and predictive checks are what their definitions say, computed here once more."""

import dataclasses
from math import erf, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import rankdata, spearmanr
from scipy.stats import t as student
from simulated_fits import loss, table

from bayescale.inference.laplace import Laplace
from bayescale.laws.chinchilla import Chinchilla
from bayescale.posterior.checks import loo, outliers, predictive_check
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.runs.table import Runs

PLANTED = 7


@pytest.fixture(scope="module")
def planted() -> Posterior:
    """24 runs, one of which ended 10 % too high: 20 noise scales."""
    t = table()
    t.loc[PLANTED, "loss"] *= 1.1
    return fit(Runs(t), Chinchilla(), drift=None, engine=Laplace(draws=400), seed=1)


def fitted(posterior: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean log loss, noise scale and tail of every run, draws x runs: run by run, each by its group's law."""
    assert posterior.runs is not None
    columns = []
    for _, run in posterior.runs.table.iterrows():
        group = run["corpus"] if posterior.groups else None
        c, v = posterior.coefficients(group), posterior.values(group)
        se = 0.0 if np.isnan(run["loss_se"]) else run["loss_se"] / run["loss"]
        mean = np.log(loss(c, run["n_params"], run["n_tokens"]))
        columns.append((mean, np.sqrt(v["noise"] ** 2 + se**2), v["tail"]))
    return tuple(np.stack(x, 1) for x in zip(*columns, strict=True))  # type: ignore[return-value]


def observed(posterior: Posterior) -> np.ndarray:
    assert posterior.runs is not None
    return np.log(posterior.runs.table["loss"].to_numpy())


@pytest.mark.parametrize("name", ["planted", "laplace", "partial"])
def test_an_outlier_lies_where_no_run_of_a_table_should(name: str, request: pytest.FixtureRequest) -> None:
    """Chaloner & Brant 1988: k such that n Normal runs all lie within k scales with probability .95."""
    posterior = request.getfixturevalue(name)
    mean, scale, _ = fitted(posterior)
    n = mean.shape[1]
    k = brentq(lambda k: erf(k / sqrt(2)) ** n - 0.95, 1, 9)
    off = np.abs(observed(posterior) - mean)
    found = outliers(posterior)
    np.testing.assert_allclose(found["probability_outlier"], (off > k * scale).mean(0), atol=1 / 400)
    np.testing.assert_allclose(found["loss_expected"], np.exp(np.median(mean, 0)), rtol=1e-10)
    np.testing.assert_allclose(found["residual"], observed(posterior) - np.median(mean, 0), atol=1e-10)
    assert list(found["run"]) == list(posterior.runs.table["run"])
    assert list(found["flagged"]) == list(found["probability_outlier"] > 0.5)


def test_the_planted_outlier_alone_is_flagged(planted: Posterior, laplace: Posterior) -> None:
    assert list(np.flatnonzero(outliers(planted)["flagged"])) == [PLANTED]
    assert outliers(planted)["probability_outlier"][PLANTED] > 0.99
    assert not outliers(laplace)["flagged"].any()


def test_a_run_with_a_wide_standard_error_is_no_outlier(planted: Posterior) -> None:
    assert planted.runs is not None
    unsure = planted.runs.table["loss_se"].to_numpy(copy=True)
    unsure[PLANTED] = 0.3
    runs = Runs(planted.runs.table.assign(loss_se=unsure))
    assert not outliers(dataclasses.replace(planted, runs=runs))["flagged"].any()


def log_density(posterior: Posterior) -> np.ndarray:
    """Student-t density of each run's log loss."""
    mean, scale, tail = fitted(posterior)
    return student.logpdf((observed(posterior) - mean) / scale, tail) - np.log(scale)


@pytest.mark.parametrize("name", ["laplace", "partial"])
def test_the_likelihood_of_a_run_is_its_noise_around_its_groups_law(name: str, request: pytest.FixtureRequest) -> None:
    """Standard errors included, where the table gives them."""
    posterior = request.getfixturevalue(name)
    kept = posterior.tree["log_likelihood"]["log_loss"].values
    np.testing.assert_allclose(kept.reshape(-1, kept.shape[-1]), log_density(posterior), atol=1e-7)


def test_leaving_one_out_agrees_with_plain_importance_sampling(laplace: Posterior) -> None:
    """Where no run is influential: 1 / mean over draws of 1 / p(run), Gelfand, Dey & Chang 1992."""
    density = log_density(laplace)
    plain = np.log(len(density)) - logsumexp(-density, axis=0)
    found = loo(laplace)
    easy = np.asarray(found.pareto_k) < 0.5
    assert easy.sum() > 10
    np.testing.assert_allclose(np.asarray(found.elpd_i)[easy], plain[easy], atol=0.1)
    assert found.n_data_points == len(plain)
    assert found.elpd == pytest.approx(float(np.sum(found.elpd_i)))


def test_leaving_one_out_predicts_a_run_that_was_left_out(laplace: Posterior) -> None:
    """The three runs nearest the centre: their density under fits that have not seen them."""
    assert laplace.runs is not None
    t = laplace.runs.table
    away = sum(np.log(t[k] / laplace.reference[k]) ** 2 for k in ("n_params", "n_tokens"))
    for i in np.argsort(away.to_numpy())[:3]:
        left = fit(laplace.runs.without([t["run"][i]]), Chinchilla(), drift=None, engine=Laplace(draws=400), seed=1)
        density = log_density(dataclasses.replace(left, runs=laplace.runs))[:, i]
        exact = logsumexp(density) - np.log(len(density))
        assert float(loo(laplace).elpd_i[i]) == pytest.approx(exact, abs=0.15)


def test_the_planted_outlier_is_predicted_worst(planted: Posterior) -> None:
    assert int(np.argmin(np.asarray(loo(planted).elpd_i))) == PLANTED


def residuals(posterior: Posterior) -> np.ndarray:
    return observed(posterior) - np.median(fitted(posterior)[0], 0)


@pytest.mark.parametrize("name", ["laplace", "partial"])
def test_statistics_are_those_of_the_residuals(name: str, request: pytest.FixtureRequest) -> None:
    posterior = request.getfixturevalue(name)
    found, r, t = predictive_check(posterior).set_index("statistic"), residuals(posterior), posterior.runs.table
    assert found.loc["sd of log residuals", "observed"] == pytest.approx(r.std())
    assert found.loc["largest log residual", "observed"] == pytest.approx(np.abs(r).max())
    for letter, column in (("N", "n_params"), ("D", "n_tokens"), ("C", "flop")):
        wanted = spearmanr(r, t[column]).statistic
        assert found.loc[f"rank correlation with log {letter}", "observed"] == pytest.approx(wanted)
    assert ((found["p_value"] > 0) & (found["p_value"] <= 1)).all()
    assert (found["lower"] <= found["upper"]).all()


def test_a_table_of_the_law_looks_like_its_replicates(laplace: Posterior) -> None:
    assert (predictive_check(laplace)["p_value"] > 0.05).all()


def with_losses(posterior: Posterior, log_loss: np.ndarray) -> Posterior:
    """The same fit, shown other losses of the same runs."""
    assert posterior.runs is not None
    return dataclasses.replace(posterior, runs=Runs(posterior.runs.table.assign(loss=np.exp(log_loss))))


def test_a_trend_that_the_law_does_not_have_is_seen(laplace: Posterior) -> None:
    """Losses that rise with the number of parameters, by a noise scale from the middle to either end."""
    assert laplace.runs is not None
    rank = rankdata(laplace.runs.table["n_params"]) / 12 - 1
    trend = with_losses(laplace, observed(laplace) - residuals(laplace) + 0.005 * rank)
    found = predictive_check(trend).set_index("statistic")["p_value"]
    assert found["rank correlation with log N"] < 0.01
    assert found["rank correlation with log D"] > 0.05


@pytest.mark.parametrize(
    ("factor", "statistic"),
    [(8.0, "sd of log residuals"), (8.0, "share of runs inside 90 %"), (0.05, "sd of log residuals")],
)
def test_scatter_of_another_size_is_seen(laplace: Posterior, factor: float, statistic: str) -> None:
    other = with_losses(laplace, observed(laplace) + (factor - 1) * residuals(laplace))
    assert predictive_check(other).set_index("statistic")["p_value"][statistic] < 0.06


def test_one_odd_run_is_seen(laplace: Posterior) -> None:
    log_loss = observed(laplace)
    log_loss[3] += 0.5
    found = predictive_check(with_losses(laplace, log_loss)).set_index("statistic")["p_value"]
    assert found["largest log residual"] < 0.02
    assert found["robust sd of log residuals"] > 0.05


@pytest.mark.parametrize("check", [outliers, loo, predictive_check])
def test_a_published_law_has_no_runs_to_check(check: object) -> None:
    with pytest.raises(ValueError, match="was not fitted to runs"):
        check(published("hoffmann-2022"))  # type: ignore[operator]
