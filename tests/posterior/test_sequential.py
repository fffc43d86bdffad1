"""More runs for a fit, and a run in progress beside its forecast."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import bayescale as bs
from bayescale.laws.chinchilla import Chinchilla

LAPLACE = bs.Laplace(draws=300)
RUN = {"n_params": 2e9, "n_tokens": 4e10}


def frame() -> pd.DataFrame:
    runs = bs.data.load("simulated").table[["n_params", "n_tokens", "loss"]]
    return runs.sample(30, random_state=0).reset_index(drop=True)


@pytest.fixture(scope="module")
def early() -> bs.Posterior:
    found = bs.read_runs(frame()[:24])
    return bs.fit(found, Chinchilla(), drift=None, engine=LAPLACE, seed=3, metadata={"project": "a"})


def test_an_updated_fit_is_the_fit_of_all_runs(early: bs.Posterior) -> None:
    updated = bs.update(early, bs.read_runs(frame()[24:]))
    whole = bs.fit(bs.read_runs(frame()), Chinchilla(), drift=None, engine=LAPLACE, seed=3)
    for name, draws in whole.coefficients().items():
        np.testing.assert_allclose(updated.coefficients()[name], draws, rtol=1e-12)
    assert len(updated.runs) == 30
    assert updated.metadata == {"project": "a"}
    assert updated.info["draws"] == 300


def test_more_of_the_same_law_narrows_its_forecast(early: bs.Posterior) -> None:
    width = [np.ptp(bs.predict(fit, RUN).mean[0]) for fit in (early, bs.update(early, bs.read_runs(frame()[24:])))]
    assert width[1] < width[0]


def test_runs_of_another_kind_or_twice_are_refused(early: bs.Posterior) -> None:
    more = frame()[24:]
    with pytest.raises(ValueError, match="unit of the loss"):
        bs.update(early, bs.read_runs(more, loss_unit="bits per token"))
    with pytest.raises(ValueError, match="FLOP rule"):
        bs.update(early, bs.read_runs(more, rule=bs.FlopsRule(7.0)))
    with pytest.raises(ValueError, match="Already in the fit"):
        bs.update(early, bs.read_runs(frame()[20:]))
    with pytest.raises(ValueError, match="no table"):
        bs.update(bs.published("besiroglu-2024"), bs.read_runs(more))


def test_a_checkpoint_lies_where_forecasts_have_it(early: bs.Posterior) -> None:
    ends = bs.predict(early, RUN).new_run[0]
    found = bs.follow(early, {"n_params": 2e9, "n_tokens": 4e10, "loss": [ends[0]]})
    assert found.rows["share_above"][0] == pytest.approx(0.5, abs=0.1)
    losses = [0.97 * ends[1], ends[0], 1.03 * ends[2]]
    shares = [bs.follow(early, RUN | {"loss": loss}).rows["share_above"][0] for loss in losses]
    assert shares == sorted(shares, reverse=True)
    assert [shares[0] > 0.95, shares[2] < 0.05] == [True, True]
    pages = [" ".join(repr(bs.follow(early, RUN | {"loss": loss})).split()) for loss in losses]
    for page, place in zip(pages, ("below", "within", "above"), strict=True):
        assert f"the last one {place} the interval" in page
        assert "learning rate has decayed" in page


@pytest.mark.parametrize("loss", [-1.0, np.nan, [2.0, 2.1]])
def test_what_is_no_loss_is_refused(early: bs.Posterior, loss: object) -> None:
    with pytest.raises(ValueError, match="positive number for each of 1"):
        bs.follow(early, RUN | {"loss": loss})


def test_a_run_without_a_loss_or_a_fit_without_scatter_is_refused(early: bs.Posterior) -> None:
    with pytest.raises(ValueError, match="loss seen so far"):
        bs.follow(early, RUN)
    with pytest.raises(ValueError, match="how runs scatter"):
        bs.follow(bs.published("besiroglu-2024"), RUN | {"loss": 2.0})
    assert dataclasses.is_dataclass(bs.follow(early, RUN | {"loss": 2.0}))
