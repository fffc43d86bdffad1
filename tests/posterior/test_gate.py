"""The conditions on a table before a forecast beyond it, and what is said where one fails."""

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescale.frontier.frontier import allocate
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import Drift
from bayescale.model.pooling import Partial, Separate
from bayescale.parameter import LogNormal
from bayescale.posterior.fitting import fit
from bayescale.posterior.gate import HOLLOW, envelope, gate, steepening
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.report.show import page
from bayescale.runs.read import read_runs

LAW = Chinchilla()


def rows(decades: float = 2.0, bend: float = 0.0, scale: float = 1.0, n: int = 24) -> pd.DataFrame:
    """Runs of a power law in compute, 20 tokens a parameter; with a bend the log-log slope steepens with compute."""
    flop = np.geomspace(1e19, 1e19 * 10**decades, n)
    size = np.sqrt(flop / 120)
    x = np.log(flop / flop[0])
    loss = scale * 3 * np.exp(-0.05 * x - bend * 0.05 * x**2 / np.ptp(x))
    return pd.DataFrame({"run": [f"r{i}" for i in range(n)], "n_params": size, "n_tokens": 20 * size, "loss": loss})


def fitted(frame: pd.DataFrame, **settings: Any) -> Posterior:
    runs = read_runs(frame, **settings.pop("read", {}))
    return fit(runs, LAW, engine=FromPrior(draws=50), seed=1, **settings)


@pytest.fixture(scope="module")
def ordinary() -> Posterior:
    return fitted(rows())


def found(posterior: Posterior) -> dict[str, tuple[str, float | None]]:
    return {c.name: (c.status, c.value) for c in posterior.gate}


def test_an_ordinary_table_passes_every_condition(ordinary: Posterior) -> None:
    assert {status for status, _ in found(ordinary).values()} == {"PASS"}
    assert ordinary.beyond == "PASS"
    assert found(ordinary)["span_decades"][1] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("frame", "failing"),
    [
        (rows(bend=0.5), "steepening"),
        (rows(decades=0.25), "span_decades"),
        (rows(scale=0.2), "bounded_metric"),
    ],
)
def test_a_table_of_another_kind_fails_by_name_and_says_what_to_do(frame: pd.DataFrame, failing: str) -> None:
    posterior = fitted(frame)
    assert [c.name for c in posterior.gate if c.status == "FAIL"] == [failing]
    assert all(c.advice for c in posterior.gate if c.status == "FAIL")
    assert (posterior.beyond, posterior.standing) == ("FAIL", "FAIL")


def test_a_loss_of_bytes_may_be_below_one_nat() -> None:
    posterior = fitted(rows(scale=0.2), read={"loss_unit": "nats per byte"})
    assert found(posterior)["bounded_metric"][0] == "PASS"


@pytest.mark.parametrize(("pooling", "fails"), [(Partial("group"), False), (Separate("group"), True)])
def test_groups_that_share_a_law_share_their_span(pooling: Any, fails: bool) -> None:
    """One group spans a quarter of a decade; the other, two."""
    frame = pd.concat([rows().assign(group="wide"), rows(0.25).assign(group="narrow")], ignore_index=True)
    frame["run"] = [f"r{i}" for i in range(len(frame))]
    status = found(fitted(frame, pooling=pooling))["span_decades"][0]
    assert (status == "FAIL") is fails


def test_steepening_is_of_the_lower_envelopes_slopes() -> None:
    """Slopes -.05 below the middle and -.08 above; worse runs of the same compute do not count."""
    x = np.linspace(0, 8, 17)
    y = np.where(x <= 4, -0.05 * x, -0.2 - 0.08 * (x - 4))
    assert steepening(x, y) == pytest.approx(0.6)
    worse = np.concatenate([y, y + np.linspace(0.5, 0.0, 17) + 0.01])
    assert steepening(np.concatenate([x, x]), worse) == pytest.approx(0.6)
    assert steepening(x, -0.05 * x) == pytest.approx(0.0, abs=1e-12)
    assert steepening(x[:3], y[:3]) is not None
    assert steepening(x[:2], y[:2]) is None


def test_runs_of_one_budget_make_no_slope() -> None:
    """Four budgets of a power law, each of five sizes whose compute differs by rounding."""
    budgets = np.log([1e18, 4e18, 1.6e19, 6.4e19])
    x = (budgets[:, None] + np.linspace(0, 1e-3, 5)).ravel()
    y = (-0.05 * budgets[:, None] + np.linspace(0.02, 0.0, 5)).ravel()
    assert steepening(x, y) == pytest.approx(0.0, abs=1e-3)


def test_the_envelope_holds_what_no_cheaper_run_undercuts() -> None:
    log_c, log_l = np.array([1.0, 2.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.9, 0.8, 0.85, 0.7])
    assert envelope(log_c, log_l).tolist() == [0, 2, 4]


def test_a_conflict_with_the_prior_is_named_and_does_not_fail(ordinary: Posterior) -> None:
    """Draws of alpha's prior at .26, judged as if the prior had been about .9."""
    far = {**Drift().priors, "alpha": LogNormal(0.9, 0.2)}
    model = dataclasses.replace(ordinary.model, drift=Drift(priors=far))
    check = next(c for c in gate(dataclasses.replace(ordinary, model=model)) if c.name == "prior_data_conflict")
    assert check.value == pytest.approx(np.log(0.9 / 0.26) / 0.2, rel=0.2)
    assert check.status == "PASS"
    assert check.advice.startswith("alpha lies")


@pytest.fixture(scope="module")
def failing() -> Posterior:
    return fitted(rows(decades=0.25))


def test_beyond_the_data_every_answer_of_a_failed_gate_begins_with_it(failing: Posterior) -> None:
    beyond, inside = allocate(failing, 1e22), allocate(failing, 1e19)
    for result in (beyond, predict(failing, {"n_params": 1e10, "n_tokens": 2e11}), failing):
        shown = page(result)
        assert shown.text().lower().startswith(HOLLOW)
        assert HOLLOW in shown.html().lower()
        told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert next(iter(told.items())) == ("warning", HOLLOW)
        assert result.standing == "FAIL"
    assert inside.warning is None
    assert HOLLOW not in page(inside).text()
    assert inside.to_dict()["warning"] is None


def test_the_law_alone_has_no_gate() -> None:
    posterior = fitted(rows(decades=0.25), drift=None)
    assert (posterior.gate, posterior.beyond, posterior.warning) == ((), None, None)
