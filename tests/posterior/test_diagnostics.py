"""Claims: nothing passes that was not computed, and every failure is named with its figure and a way out."""

import json
import logging

import numpy as np
import pytest
import xarray as xr
from simulated_fits import Sampled

from bayescale.inference.laplace import Laplace
from bayescale.laws.chinchilla import Chinchilla
from bayescale.parameter import Fixed
from bayescale.posterior import diagnostics
from bayescale.posterior.diagnostics import Check, overall
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.runs.table import Runs

FULL = (4, 1000)


def draws(shape: tuple[int, int] = FULL, **more: np.ndarray) -> xr.Dataset:
    """Independent Normal draws of ``x`` and of ``y`` of two groups, and what else is given."""
    rng = np.random.default_rng(0)
    of_groups = (("chain", "draw", "group"), rng.standard_normal((*shape, 2)))
    x = {"x": (("chain", "draw"), rng.standard_normal(shape)), "y": of_groups}
    return xr.Dataset(x | {k: (("chain", "draw"), v) for k, v in more.items()}, {"group": ["books", "code"]})


def stats(shape: tuple[int, int] = FULL, **changed: np.ndarray) -> xr.Dataset:
    """A sampler's record without a fault, but for what is given."""
    sound = {
        "diverging": np.zeros(shape, bool),
        "energy": np.random.default_rng(1).standard_normal(shape),
        "reached_max_tree_depth": np.zeros(shape, bool),
    }
    return xr.Dataset({k: (("chain", "draw"), v) for k, v in (sound | changed).items()})


def found(sampled: xr.Dataset, record: xr.Dataset, **info: object) -> dict[str, Check]:
    return {c.name: c for c in diagnostics.sampler(sampled, record, info)}


def test_independent_draws_pass() -> None:
    checks = found(draws(), stats())
    assert {c.status for c in checks.values()} == {"PASS"}
    assert set(checks) == {"r_hat", "ess_bulk", "ess_tail", "divergences", "e_bfmi", "tree_depth"}
    assert not any(c.advice for c in checks.values())
    assert checks["r_hat"].value == pytest.approx(1, abs=0.01)
    assert checks["e_bfmi"].value == pytest.approx(2, abs=0.2)  # E (e_t - e_(t-1))^2 / var e of independent draws


def test_one_chain_is_unknown_in_one_sentence() -> None:
    checks = found(draws((1, 4000)), stats((1, 4000)))
    assert checks["r_hat"] == Check(
        "r_hat", None, "1.01", "UNKNOWN", "R-hat needs at least 2 chains; fit with NUTS(chains=4)"
    )
    assert [c.name for c in checks.values() if c.status != "PASS"] == ["r_hat"]
    assert overall(tuple(checks.values())) == "UNKNOWN"


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 3), (2, 10), (4, 50)])
def test_few_draws_never_pass(shape: tuple[int, int]) -> None:
    checks = found(draws(shape), stats(shape))
    assert overall(tuple(checks.values())) != "PASS"
    assert {checks[k].status for k in ("ess_bulk", "ess_tail")} <= {"FAIL", "UNKNOWN"}
    assert all(c.value is None or np.isfinite(c.value) for c in checks.values())


@pytest.mark.parametrize("odd", ["nan", "one nan", "inf", "constant"])
def test_a_variable_without_a_figure_is_named_and_never_passes(odd: str) -> None:
    z = np.random.default_rng(2).standard_normal(FULL)
    if odd == "one nan":
        z[2, 3] = np.nan
    else:
        z = np.full(FULL, {"nan": np.nan, "inf": np.inf, "constant": 0.3}[odd])
    checks = found(draws(odd=z), stats())
    assert checks["r_hat"].status == "UNKNOWN"
    assert checks["r_hat"].value is None
    assert checks["r_hat"].advice == "R-hat of odd is not a number"
    assert overall(tuple(checks.values())) != "PASS"
    json.dumps([c.to_dict() for c in checks.values()], allow_nan=False)


def test_chains_that_disagree_fail_with_the_variable_and_its_group() -> None:
    d = draws()
    d["y"].loc[{"chain": 0, "group": "code"}] += 2
    check = found(d, stats())["r_hat"]
    assert check.status == "FAIL"
    assert check.value is not None
    assert check.value > 1.1
    assert "chains disagree about y[code]" in check.advice


def test_draws_that_hardly_move_fail() -> None:
    """An autoregression of .99 is worth (1 - .99) / (1 + .99) of its length: 20 of 4,000 draws."""
    rng, z = np.random.default_rng(3), np.zeros(FULL)
    for i in range(1, FULL[1]):
        z[:, i] = 0.99 * z[:, i - 1] + rng.standard_normal(4)
    check = found(draws(slow=z), stats())["ess_bulk"]
    assert check.status == "FAIL"
    assert check.value == pytest.approx(20, rel=0.7)
    assert "fewest for slow" in check.advice


@pytest.mark.parametrize("count", [1, 37])
def test_every_divergence_counts(count: int) -> None:
    diverging = (np.arange(4000) < count).reshape(FULL)
    check = found(draws(), stats(diverging=diverging))["divergences"]
    assert (check.status, check.value) == ("FAIL", count)
    assert check.advice.startswith(f"{count} of 4000 draws diverged")
    assert "target_accept" in check.advice


def test_energy_that_wanders_fails() -> None:
    walk = np.random.default_rng(4).standard_normal(FULL).cumsum(1)
    check = found(draws(), stats(energy=walk))["e_bfmi"]
    expected = min((np.diff(e) ** 2).sum() / ((e - e.mean()) ** 2).sum() for e in walk)
    assert check.status == "FAIL"
    assert check.value == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_energy_that_says_nothing_is_unknown(value: float) -> None:
    energy = stats()["energy"].values
    energy[1] = value
    check = found(draws(), stats(energy=energy))["e_bfmi"]
    assert (check.status, check.value) == ("UNKNOWN", None)


@pytest.mark.parametrize(("share", "status"), [(0.005, "PASS"), (0.05, "FAIL")])
def test_trajectories_may_end_early_now_and_then(share: float, status: str) -> None:
    reached = (np.arange(4000) < share * 4000).reshape(FULL)
    check = found(draws(), stats(reached_max_tree_depth=reached))["tree_depth"]
    assert (check.status, check.value) == (status, pytest.approx(share))


def test_an_interrupted_run_is_unknown_though_all_else_passes() -> None:
    checks = found(draws(), stats(), interrupted=True, draws=1000)
    assert checks["interrupted"].status == "UNKNOWN"
    assert "after 1000 draws a chain" in checks["interrupted"].advice
    assert overall(tuple(checks.values())) == "UNKNOWN"
    assert "interrupted" not in found(draws(), stats(), interrupted=False, draws=1000)


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        ("", "UNKNOWN"),
        ("P", "PASS"),
        ("PPP", "PASS"),
        ("PU", "UNKNOWN"),
        ("PF", "FAIL"),
        ("UF", "FAIL"),
        ("FU", "FAIL"),
    ],
)
def test_the_worst_check_decides(statuses: str, wanted: str) -> None:
    words = {"P": "PASS", "F": "FAIL", "U": "UNKNOWN"}
    assert overall(tuple(Check("x", None, "1", words[s]) for s in statuses)) == wanted  # type: ignore[arg-type]


def test_a_check_is_a_line() -> None:
    assert str(Check("r_hat", 1.23456, "1.01", "FAIL", "draw more")) == "FAIL    r_hat: 1.235 (limit 1.01) - draw more"
    assert str(Check("r_hat", None, "1.01", "UNKNOWN")) == "UNKNOWN r_hat: - (limit 1.01)"


def test_what_is_not_sampled_never_passes(laplace: Posterior, partial_prior: Posterior) -> None:
    for posterior in (laplace, partial_prior, published("hoffmann-2022")):
        assert posterior.status == "UNKNOWN"
        (check,) = posterior.checks
        assert check.value is None
        assert check.advice


def test_a_sampled_fit_is_judged_by_its_draws(passed: Posterior) -> None:
    assert passed.status == "PASS"
    assert [c.name for c in passed.checks] == ["r_hat", "ess_bulk", "ess_tail", "divergences", "e_bfmi", "tree_depth"]


def test_a_failed_fit_is_returned_and_said_so(one_table: Runs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bayescale"):
        posterior = fit(one_table, Chinchilla(), drift=None, engine=Sampled(diverging=3), seed=1)
    assert posterior.status == "FAIL"
    assert "diagnostics FAIL: divergences 3 of 2000 draws diverged" in caplog.text
    assert len(posterior.coefficients()["A"]) == 2000


def test_an_interrupted_fit_is_unknown(one_table: Runs) -> None:
    assert fit(one_table, Chinchilla(), drift=None, engine=Sampled(interrupted=True), seed=1).status == "UNKNOWN"


def test_what_is_held_fixed_is_not_checked(one_table: Runs) -> None:
    """Its draws do not vary, so it has no R-hat."""
    posterior = fit(one_table, Chinchilla(), drift=None, priors={"alpha": Fixed(0.35)}, engine=Sampled(), seed=1)
    assert set(posterior.coefficients()["alpha"]) == {0.35}
    assert posterior.status == "PASS"


def test_one_chain_says_one_thing(one_table: Runs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bayescale"):
        posterior = fit(one_table, Chinchilla(), drift=None, engine=Sampled(chains=1, draws=1000), seed=1)
    assert posterior.status == "UNKNOWN"
    assert posterior.tree["posterior"].sizes["chain"] == 1
    assert [r.message for r in caplog.records] == [
        "diagnostics UNKNOWN: r_hat R-hat needs at least 2 chains; fit with NUTS(chains=4)"
    ]


def test_an_approximation_says_so(one_table: Runs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bayescale"):
        fit(one_table, Chinchilla(), drift=None, engine=Laplace(draws=10), seed=1)
    assert "UNKNOWN" in caplog.text
    assert "fit with NUTS before deciding" in caplog.text
