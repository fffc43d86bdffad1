"""What people need of the sampling itself: each test is the way to judge one kind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescale as bs

Case, Fitted = Callable[[str], Path], Callable[..., bs.Posterior]
DONE, NOT_PASSED = 0, 3


def n_opt(posterior: bs.Posterior, budget: float = 1e22, group: Any = None) -> float:
    return bs.allocate(posterior, budget, group=group).to_dict()["results"][0]["n_opt_params"]["median"]


# A program that has started jax itself, in float32, before it imports bayescale.
STARTED = """
import json, logging, sys, time
import jax, jax.numpy as jnp
jnp.ones(3).block_until_ready()
import bayescale as bs
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s %(message)s")
bs.use_compile_cache(sys.argv[2])
runs, law = bs.read_runs(sys.argv[1]), bs.laws.get("chinchilla")
bs.fit(runs, law, drift=None, seed=0)  # compiles
logging.info("second fit")
began = time.perf_counter()
posterior = bs.fit(runs, law, drift=None, seed=0)
seconds = time.perf_counter() - began
assert jnp.ones(3).dtype == jnp.float32 and not jax.config.jax_enable_x64
row = bs.allocate(posterior, 1e22).to_dict()["results"][0]
print(json.dumps({"sizes": dict(posterior.tree["posterior"].sizes), "n_opt": row["n_opt_params"], "seconds": seconds}))
"""


@pytest.mark.slow
def test_bayes_01_a_program_that_started_jax_gets_its_chains(case: Case, compile_cache: Path) -> None:
    found = []
    for flags in ("", "--xla_force_host_platform_device_count=4"):
        words = [sys.executable, "-c", STARTED, str(case("bayes-01/clean.csv")), str(compile_cache)]
        done = subprocess.run(words, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        log = [line for line in done.stderr.partition("second fit")[2].splitlines() if line.startswith("bayescale")]
        assert len([line for line in log if "device" in line]) == 1
        found.append(json.loads(done.stdout))
    one, four = found
    assert one["sizes"]["chain"] == four["sizes"]["chain"] == 4
    assert one["n_opt"] == pytest.approx(four["n_opt"], rel=0.02)
    assert one["seconds"] <= 5 * four["seconds"]


@pytest.mark.slow
def test_bayes_04_equal_groups_do_not_diverge(case: Case, fitted: Fitted) -> None:
    posterior = fitted(case("bayes-04/funnel.csv"), bs.Partial("corpus"), chains=2, draws=250)
    assert posterior.tree["sample_stats"]["diverging"].values.mean() < 0.01


@pytest.mark.slow
def test_bayes_04_divergences_are_shown_everywhere(case: Case, bayescale: Any, tmp_path: Path) -> None:
    out = tmp_path / "fit.nc"
    words = ["--group-by", "corpus", "--draws", 100, "--warmup", 50, "--target-accept", 0.6, "--seed", 1]
    done = bayescale("fit", case("bayes-04/funnel.csv"), "-o", out, *words)
    posterior = bs.load(out)
    count = int(posterior.tree["sample_stats"]["diverging"].sum())
    assert count > 0, "nothing was provoked"
    assert done.exit_code == NOT_PASSED
    said = f"{count} of 400 draws diverged"
    assert said in " ".join(done.stderr.split())
    for page in (done.stdout, repr(posterior), posterior._repr_html_()):
        assert said in " ".join(page.split())
    assert f"{count} divergence" in " ".join(repr(posterior).split())
    assert repr(bs.allocate(posterior, 1e22)).startswith("FAIL")
    assert bs.allocate(posterior, 1e22).to_dict()["diagnostics"] == "FAIL"


@pytest.mark.slow
@pytest.mark.parametrize(("chains", "draws"), [(1, 1000), (1, 4), (2, 10)])
def test_bayes_05_too_few_to_judge_never_pass(
    chains: int, draws: int, case: Case, bayescale: Any, tmp_path: Path
) -> None:
    out = tmp_path / "fit.nc"
    done = bayescale("fit", case("bayes-05/clean.csv"), "-o", out, "--chains", chains, "--draws", draws, "--seed", 1)
    assert done.exit_code == NOT_PASSED
    assert len([line for line in done.stderr.splitlines() if line.strip()]) <= 3
    posterior = bs.load(out)
    assert posterior.status in ("UNKNOWN", "FAIL")
    assert done.stdout.startswith(posterior.status)
    r_hat = next(check for check in posterior.checks if check.name == "r_hat")
    if chains == 1:
        assert (r_hat.status, r_hat.value) == ("UNKNOWN", None)
        assert done.stdout.count("R-hat needs at least 2 chains") <= 2  # in the heading and in the list
        assert "R-hat needs at least 2 chains" in done.stderr
    assert not [check for check in posterior.checks if check.value is not None and np.isnan(check.value)]
    assert bayescale("allocate", out, "--budget", "1e20").exit_code == NOT_PASSED


@pytest.mark.slow
def test_bayes_05_what_is_held_fixed_is_not_checked(case: Case, bayescale: Any, tmp_path: Path) -> None:
    out = tmp_path / "fit.nc"
    done = bayescale("fit", case("bayes-05/clean.csv"), "-o", out, "--fix", "beta=0.3658", "--seed", 1)
    assert done.exit_code == DONE, done.stderr
    posterior = bs.load(out)
    assert posterior.status == "PASS"
    assert set(posterior.coefficients()["beta"]) == {0.3658}


METADATA = {
    "note": None,
    "robust": True,
    "units": {"params": "N", "tokens": "D"},
    "budgets": [1e22, 1e24],
    "source": "runs/été.csv",
    "date": "2026-11-30T12:00:00",
    "limit": "inf",
}


def test_bayes_06_any_note_is_kept(case: Case, source: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    notes = METADATA
    if source == "shared":
        notes = json.loads(request.getfixturevalue("shared_case")("bayes-06/attrs.json").read_text("utf-8"))
    given = notes | {"at": pd.Timestamp(notes["date"]), "path": Path("a/b"), "seen": np.float64(0.5)}
    runs = bs.read_runs(case("bayes-06/clean.csv"))
    posterior = bs.fit(runs, bs.laws.get("chinchilla"), engine=bs.FromPrior(draws=50), seed=1, metadata=given)
    kept = bs.load(posterior.save(tmp_path / "fit.nc")).metadata
    assert kept == notes | {"at": notes["date"], "path": os.fspath(Path("a/b")), "seen": 0.5}
    assert [type(kept[key]) for key in notes] == [type(notes[key]) for key in notes]


@pytest.mark.parametrize("value", [{1, 2}, object(), float("inf")])
def test_bayes_06_what_cannot_be_kept_is_refused_before_sampling(value: Any, case: Case) -> None:
    runs = bs.read_runs(case("bayes-06/clean.csv"))
    with pytest.raises(ValueError, match="metadata\\['limit'\\]"):
        bs.fit(runs, bs.laws.get("chinchilla"), drift=None, metadata={"limit": value})


def test_bayes_06_a_failed_save_loses_and_leaves_nothing(case: Case, tmp_path: Path) -> None:
    runs = bs.read_runs(case("bayes-06/clean.csv"))
    posterior = bs.fit(runs, bs.laws.get("chinchilla"), drift=None, engine=bs.FromPrior(draws=50), seed=1)
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "none" / "fit.nc", tmp_path / "taken"):
        with pytest.raises(OSError, match=path.name):
            posterior.save(path)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]
    assert bs.load(posterior.save(tmp_path / "fit.nc")).tree["posterior"].sizes["draw"] == 50


@pytest.mark.slow
def test_bayes_10_a_seed_repeats_and_another_does_not(
    case: Case, compile_cache: Path, fitted: Fitted, caplog: pytest.LogCaptureFixture
) -> None:
    path = case("bayes-10/clean.csv")
    runs, law = bs.read_runs(path), bs.laws.get("chinchilla")
    first, other = fitted(path, seed=7), fitted(path, seed=8)
    for again in (
        bs.fit(runs, law, drift=None, seed=7),
        bs.fit(bs.read_runs(pd.read_csv(path).iloc[:, ::-1]), law, drift=None, seed=7),
    ):
        for name, draws in again.coefficients().items():
            np.testing.assert_array_equal(draws, first.coefficients()[name])
    shuffled = fitted(case("bayes-10/shuffled.csv"), seed=7)
    assert not np.array_equal(other.coefficients()["alpha"], first.coefficients()["alpha"])
    medians = [n_opt(p) for p in (first, other, shuffled)]
    assert max(medians) < 1.015 * min(medians)
    caplog.set_level("INFO", logger="bayescale")
    unseeded = bs.fit(runs, law, drift=None, engine=bs.NUTS(chains=1, draws=10))
    assert f"seed {unseeded.info['seed']}" in caplog.text
    assert f"seed {unseeded.info['seed']}" in repr(unseeded)


# Predict on a grid of 400 x 400, with 4,000 draws 6.4e8 losses: 5.1 GB if held at once.
GRID = r"""
import re, sys
from pathlib import Path
import numpy as np
import bayescale as bs
n, d = (a.ravel() for a in np.meshgrid(np.logspace(7, 12, 400), np.logspace(9, 14, 400), indexing="ij"))
n, d = np.append(n, 1e9), np.append(d, 2e10)
bs.use_compile_cache(sys.argv[2])
forecast = bs.predict(bs.load(sys.argv[1]), {"n_params": n, "n_tokens": d})
assert forecast.mean.shape == (160_001, 3) and np.isfinite(forecast.mean).all() and np.isfinite(forecast.new_run).all()
# Not getrusage: its maximum is that of the process which started this one, if that was larger.
kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]
print(forecast.mean[-1, 0], int(kilobytes) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak memory is read as Linux tells it")
def test_bayes_12_a_big_grid_takes_less_than_2_gb(
    shared_case: Case, compile_cache: Path, fitted: Fitted, tmp_path: Path
) -> None:
    path = fitted(shared_case("bayes-12/clean.csv"), seed=7).save(tmp_path / "fit.nc")
    words = [sys.executable, "-c", GRID, str(path), str(compile_cache)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loss, peak = map(float, done.stdout.split())
    assert loss == pytest.approx(2.5292, rel=0.01)
    assert peak < 2e9


@pytest.mark.slow
@pytest.mark.parametrize("chains", [2, 1])
def test_bayes_15_dimensions_are_named(chains: int, case: Case, fitted: Fitted) -> None:
    table = pd.read_csv(case("bayes-15/one_run_group.csv"))
    plain = fitted(table, bs.Partial("corpus"), chains=chains, draws=300)
    table["corpus"] = pd.Categorical(table["corpus"], categories=["Z", "A", "B", "C"])
    runs = bs.read_runs(table)  # the level Z has no run
    assert runs.labels("corpus")[1] == ("A", "B", "C")
    draws = plain.tree["posterior"].dataset
    assert dict(draws.sizes) == {"chain": chains, "draw": 300, "group": 3}
    assert draws["group"].values.tolist() == ["A", "B", "C"]
    for letter in ("A", "B", "E", "alpha", "beta"):
        assert draws[letter].dims == ("chain", "draw", "group")
        for position, group in enumerate("ABC"):
            np.testing.assert_array_equal(draws[letter].sel(group=group), draws[letter].isel(group=position))
