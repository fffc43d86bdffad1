"""Claims: whitened chains that diverge or do not agree are run again in coordinates that their draws tell."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from test_nuts import ALONE, simulated

from bayescale.inference.mode import Mode
from bayescale.inference.nuts import NUTS, POPULATION, _Pass
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior

ENGINE = NUTS(chains=2, draws=1000)
RUNS = simulated(groups=4)


def chains(u: np.ndarray, **stats: np.ndarray) -> _Pass:
    """Draws (chains, draws, d) after no warm-up."""
    steps = {"u": u, "diverging": np.zeros(u.shape[:2], bool)} | stats
    mode = Mode(np.zeros(u.shape[2]), np.eye(u.shape[2]), {}, 1, 1, whitens=True)
    return _Pass(mode, steps, 0, 0.8, interrupted=False)


def normal(seed: int = 0, draws: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, draws, 5))


def test_chains_of_one_normal_agree() -> None:
    assert not any(chains(normal(seed)).unsettled() for seed in range(20))


@pytest.mark.parametrize("other", [lambda x: x + 0.5, lambda x: 1.5 * x], ids=["elsewhere", "wider"])
def test_a_chain_elsewhere_or_of_another_width_does_not_agree(other: Any) -> None:
    u = normal()
    u[1, :, 2] = other(u[1, :, 2])
    assert chains(u).unsettled()


def test_a_chain_that_wanders_off_does_not_agree_with_itself() -> None:
    assert chains(normal(draws=2000)[:1] + np.linspace(-1, 1, 2000)[:, None]).unsettled()


def test_one_divergence_unsettles() -> None:
    diverging = np.zeros((4, 1000), bool)
    diverging[3, 7] = True
    assert chains(normal(), diverging=diverging).unsettled()


def test_few_draws_tell_no_covariance() -> None:
    assert not chains(normal(draws=499) + np.arange(4)[:, None, None]).unsettled()
    assert chains(normal(draws=500) + np.arange(4)[:, None, None]).unsettled()


def test_draws_whiten_themselves() -> None:
    """In the new coordinates they have mean 0 and covariance 1, whatever they were in the old."""
    mix = np.random.default_rng(1).standard_normal((5, 5))
    old = chains(normal() @ mix.T + 3)
    told = old.whitened()
    z = old.steps["u"].reshape(-1, 5)
    again = np.linalg.solve(told.factor, (z - told.center).T)
    np.testing.assert_allclose(again.mean(1), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(again), np.eye(5), atol=1e-10)


def unsettled_once(monkeypatch: pytest.MonkeyPatch) -> list[_Pass]:
    """Every first pass is unsettled; keeps what each pass did."""
    passes: list[_Pass] = []
    sample = NUTS._sample
    monkeypatch.setattr(_Pass, "unsettled", lambda self: True)

    def kept(self: NUTS, *args: Any) -> _Pass:
        passes.append(sample(self, *args))
        return passes[-1]

    monkeypatch.setattr(NUTS, "_sample", kept)
    return passes


@pytest.fixture
def plain() -> Posterior:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Pass, "unsettled", lambda self: False)
        found = fit(RUNS, ALONE, engine=ENGINE, seed=1)
    assert found.info["metric"] == "curvature at the mode"
    return found


def test_a_second_pass_is_told_and_draws_the_same_posterior(plain: Posterior, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first drew counts as warm-up; means agree within the Monte Carlo error of few draws."""
    passes = unsettled_once(monkeypatch)
    found = fit(RUNS, ALONE, engine=ENGINE, seed=1)
    first, second = passes
    assert (found.info["metric"], found.info["warmup"]) == ("covariance of a first pass", POPULATION[0])
    steps = [p.steps["num_steps"] for p in (first, second)]
    assert found.info["leapfrogs"]["warmup"] == steps[0].sum() + steps[1][:, : POPULATION[0]].sum()
    for name in ("alpha", "beta", "E"):
        a, b = (p.coefficients()[name] for p in (plain, found))
        assert not np.array_equal(a, b)
        assert abs(a.mean() - b.mean()) < 0.2 * a.std(), name
        assert 0.8 < b.std() / a.std() < 1.25, name


@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupt_of_the_second_pass_keeps_the_first_when_asked(
    keep: bool, plain: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, asked = NUTS._sample, []
    monkeypatch.setattr(_Pass, "unsettled", lambda self: True)

    def interrupted(self: NUTS, *args: Any) -> _Pass:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return sample(self, *args)

    monkeypatch.setattr(NUTS, "_sample", interrupted)
    engine = dataclasses.replace(ENGINE, keep_interrupted=keep)
    if not keep:
        with pytest.raises(KeyboardInterrupt):
            fit(RUNS, ALONE, engine=engine, seed=1)
        return
    found = fit(RUNS, ALONE, engine=engine, seed=1)
    assert found.info["interrupted"]
    assert found.status != "PASS"
    np.testing.assert_array_equal(found.coefficients()["alpha"], plain.coefficients()["alpha"])
