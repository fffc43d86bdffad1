"""Claims about the sampler: it repeats itself from a seed, recovers the truth, and stops when it is told to."""

import _thread
import threading

import numpy as np
import pandas as pd
import pytest

from bayescale.inference.nuts import NUTS
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Model
from bayescale.model.pooling import Partial
from bayescale.posterior.fitting import fit
from bayescale.runs.read import read_runs
from bayescale.runs.table import Runs

TRUTH = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}  # Besiroglu et al. 2024
LAW = Chinchilla()
ALONE = Model(LAW, drift=None)


def simulated(groups: int = 1, seed: int = 0, noise: float = 0.004) -> Runs:
    """Runs of one law on a grid of sizes and tokens, 4 x 4 a group."""
    rng = np.random.default_rng(seed)
    n, d = (a.ravel() for a in np.meshgrid(np.geomspace(5e7, 2e9, 4), np.geomspace(2e9, 1e11, 4)))
    c = TRUTH
    mean = c["E"] + c["A"] * n ** -c["alpha"] + c["B"] * d ** -c["beta"]
    table = pd.DataFrame({"n_params": n, "n_tokens": d})
    scatter = np.exp(noise * rng.standard_normal((groups, 16)))
    tables = [table.assign(loss=mean * scatter[i], g=f"g{i}") for i in range(groups)]
    return read_runs(pd.concat(tables, ignore_index=True))


@pytest.mark.slow
def test_a_seed_gives_the_same_draws_bit_for_bit_and_another_seed_others() -> None:
    engine = NUTS(chains=2, draws=200)
    first, again, other = (fit(simulated(), ALONE, engine=engine, seed=s).coefficients()["alpha"] for s in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.slow
def test_chains_of_one_fit_are_different() -> None:
    draws = fit(simulated(), ALONE, engine=NUTS(chains=2, draws=200), seed=1).tree["posterior"]["alpha"].values
    assert not np.array_equal(draws[0], draws[1])


@pytest.mark.slow
def test_the_truth_is_recovered_and_diagnostics_pass() -> None:
    posterior = fit(simulated(), ALONE, seed=3)
    assert posterior.status == "PASS"
    for name, value in TRUTH.items():
        low, high = np.quantile(posterior.coefficients()[name], [0.005, 0.995])
        assert low < value < high, name


@pytest.mark.slow
def test_equal_groups_are_sampled_without_divergences() -> None:
    """Group sds near zero are where hierarchies diverge; here all groups follow one law."""
    posterior = fit(simulated(groups=4), Model(LAW, Partial("g"), drift=None), seed=1)
    diverging = posterior.tree["sample_stats"]["diverging"].values
    assert diverging.mean() < 0.001
    assert max(c.value for c in posterior.checks if c.name == "r_hat") <= 1.01  # type: ignore[type-var]
    sd = posterior.tree["posterior"]["log_alpha_sd"].values
    assert np.quantile(sd, 0.05) < 0.03  # the posterior reaches down to groups that are alike


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupt_ends_cleanly_with_what_was_drawn_when_asked(keep: bool) -> None:
    engine = NUTS(chains=2, draws=200_000, keep_interrupted=keep)
    fit(simulated(), ALONE, engine=NUTS(chains=2, draws=200), seed=1)  # compiled now, so that draws come at once

    told = []

    def interrupt_later(done: int, total: int) -> None:
        told.append(done)
        if len(told) == 1:
            threading.Timer(1.5, _thread.interrupt_main).start()

    if not keep:
        with pytest.raises(KeyboardInterrupt):
            fit(simulated(), ALONE, engine=engine, seed=1, progress=interrupt_later)
        return
    posterior = fit(simulated(), ALONE, engine=engine, seed=1, progress=interrupt_later)
    assert posterior.info["interrupted"]
    assert 0 < posterior.info["draws"] < 200_000
    assert posterior.status != "PASS"
    assert posterior.coefficients()["alpha"].shape == (2 * posterior.info["draws"],)


@pytest.mark.parametrize(
    "settings", [{"chains": 0}, {"draws": 0}, {"warmup": -1}, {"target_accept": 1.0}, {"max_tree_depth": 0}]
)
def test_settings_out_of_range_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        NUTS(**settings)
