"""Tables that need a word before they are fitted: units, conventions, copies, rows that are no runs."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescale as bs

Case, Fitted = Callable[[str], Path], Callable[..., bs.Posterior]
ERROR = 1


def plan(posterior: bs.Posterior, budget: float) -> dict[str, Any]:
    return bs.allocate(posterior, budget).to_dict()["results"][0]


def decades(row: dict[str, Any]) -> float:
    """Width of the 90 % interval of log10 N_opt."""
    return np.log10(row["n_opt_params"]["upper"] / row["n_opt_params"]["lower"])


@pytest.mark.slow
def test_fit_04_with_units_the_plan_is_that_of_plain_counts(shared_case: Case, fitted: Fitted) -> None:
    by_header = bs.read_runs(shared_case("fit-04/runs_M_B.csv"))
    declared = bs.read_runs(shared_case("fit-04/runs_noheader_units.csv"), units={"n_params": "M", "n_tokens": "B"})
    assert by_header.table_hash == declared.table_hash
    row = plan(fitted(by_header), 1e22)["n_opt_params"]
    assert row["median"] == pytest.approx(9.28e9, rel=0.03)
    assert [row["lower"], row["upper"]] == pytest.approx([8.18e9, 1.05e10], rel=0.06)


def test_fit_04_without_units_no_plan_is_made(shared_case: Case, bayescale: Any, tmp_path: Path) -> None:
    done = bayescale("fit", shared_case("fit-04/runs_noheader_units.csv"), "-o", tmp_path / "fit.nc")
    assert done.exit_code == ERROR
    for said in ("N runs from 31.623 to 7943.28", "D runs from", "units={'n_params': 'M'}"):
        assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "alpha", "a"), [("params_total", 0.355, 0.508), ("params_non_embedding", 0.105, 0.778)]
)
def test_fit_07_each_count_has_its_exponents_and_is_named(
    header: str, alpha: float, a: float, shared_case: Case, fitted: Fitted
) -> None:
    posterior = fitted(bs.read_runs(shared_case("fit-07/two_counts.csv"), columns={"n_params": header}))
    letters = posterior.coefficients()
    assert np.median(letters["alpha"]) == pytest.approx(alpha, rel=0.08)
    assert np.median(letters["beta"] / (letters["alpha"] + letters["beta"])) == pytest.approx(a, rel=0.08)
    assert f"'{header}'" in repr(posterior)


def test_fit_07_the_command_asks_which_count_is_meant(shared_case: Case, bayescale: Any) -> None:
    done = bayescale("inspect", shared_case("fit-07/two_counts.csv"))
    assert done.exit_code == ERROR
    assert "'params_total', 'params_non_embedding'" in done.stderr


@pytest.mark.slow
def test_fit_08_bits_scale_the_loss_and_leave_the_plan(shared_case: Case, fitted: Fitted) -> None:
    nats = fitted(bs.read_runs(shared_case("fit-08/nats.csv")))
    bits = fitted(bs.read_runs(shared_case("fit-08/bits.csv"), loss_unit="bits per token"))
    ppl = fitted(bs.read_runs(shared_case("fit-08/ppl.csv")))
    rows = [plan(posterior, 1e22)["n_opt_params"] for posterior in (nats, bits, ppl)]
    for row in rows:
        assert row["median"] == pytest.approx(1.07e10, rel=0.03)
        assert [row["lower"], row["upper"]] == pytest.approx([9.22e9, 1.23e10], rel=0.06)
    assert rows[0]["median"] == pytest.approx(rows[1]["median"], rel=0.03)
    floors = [np.median(posterior.coefficients()["E"]) for posterior in (nats, bits)]
    assert floors[1] / floors[0] == pytest.approx(1.4427, abs=0.02)


@pytest.mark.slow
def test_fit_11_copies_left_out_give_the_interval_of_one(shared_case: Case, fitted: Fitted) -> None:
    once, ten = (bs.read_runs(shared_case(f"fit-11/{k}.csv"), leave_out="duplicates") for k in ("once", "ten_times"))
    widths = [decades(plan(fitted(runs), 1e22)) for runs in (once, ten)]
    assert widths[0] == pytest.approx(0.27, rel=0.15)
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


@pytest.mark.slow
def test_fit_20_huge_whole_numbers_give_the_plan_of_floats(shared_case: Case, fitted: Fitted) -> None:
    path = shared_case("fit-20/huge.csv")
    runs = bs.read_runs(path)
    assert runs.table_hash == bs.read_runs(pd.read_csv(path).astype(float)).table_hash
    posterior = fitted(runs)
    letters = posterior.coefficients()
    assert np.median(letters["E"]) == pytest.approx(1.8205, abs=0.01)
    assert np.median(letters["alpha"]) == pytest.approx(0.382, rel=0.05)
    assert plan(posterior, 1e26)["n_opt_params"]["median"] == pytest.approx(9.19e11, rel=0.1)
    assert "6e28 FLOP" in repr(posterior)


@pytest.mark.slow
def test_fit_20_the_same_whatever_the_user_set_for_jax(shared_case: Case, tmp_path: Path) -> None:
    code = (
        "import sys, bayescale as bs; runs = bs.read_runs(sys.argv[1]);"
        "fit = bs.fit(runs, bs.laws.get('chinchilla'), drift=None, engine=bs.Laplace(), seed=1);"
        "print(repr(bs.allocate(fit, 1e26).to_dict()['results']), runs.largest['flop'])"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, str(shared_case("fit-20/huge.csv"))],
            env=os.environ | {"JAX_ENABLE_X64": x64},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for x64 in ("0", "1")
    ]
    assert said[0] == said[1]
    assert said[0].strip().endswith("6e+28")


def test_fit_25_inspecting_names_both_diverged_rows(shared_case: Case, bayescale: Any) -> None:
    """Data rows 4 and 17, in lines 5 and 18."""
    path = shared_case("fit-25/two_diverged.csv")
    done = bayescale("inspect", path)
    assert done.exit_code == 0
    assert "diverged: 2 kept (at 5, 18)" in done.stdout
    assert "24 of 24 rows can be used" in done.stdout
    kept = bs.read_runs(path)
    assert any(note.startswith("2 of 24 rows may be diverged") and "They are kept" in note for note in kept.notes)
    fewer = bs.read_runs(path, leave_out="diverged")
    assert fewer.left_out["run"].tolist() == ["run-4", "run-17"]
    assert fewer.left_out["reason"].tolist() == ["left out by rule: diverged"] * 2


@pytest.mark.slow
def test_fit_27_without_repeated_data_the_plan_is_that_of_one_epoch(shared_case: Case, fitted: Fitted) -> None:
    runs = bs.read_runs(shared_case("fit-27/epochs.csv"), leave_out="repeated data")
    assert plan(fitted(runs), 1e22)["n_opt_params"]["median"] == pytest.approx(7.65e9, rel=0.1)


@pytest.mark.slow
def test_fit_29_without_the_warm_up_the_plan_is_that_of_the_useful_rows(shared_case: Case, fitted: Fitted) -> None:
    runs = bs.read_runs(shared_case("fit-29/with_step0.csv"), leave_out="warm-up")
    assert plan(fitted(runs), 1e22)["n_opt_params"]["median"] == pytest.approx(7.53e9, rel=0.1)


@pytest.fixture(scope="module")
def log_of_steps(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 runs of 1,000 checkpoints each, by the case's own script."""
    folder = tmp_path_factory.mktemp("log")
    script = shared / "cases/data-10/make_log.py"
    subprocess.run([sys.executable, str(script)], cwd=folder, check=True)
    return folder / "big.csv"


def test_data_10_reading_a_log_takes_less_than_five_seconds(log_of_steps: Path) -> None:
    began = time.process_time()  # of this process, whatever else keeps the machine busy
    assert len(bs.read_runs(log_of_steps)) == 100_000
    assert time.process_time() - began < 5


def test_data_10_a_log_of_every_step_is_named_and_not_sampled(
    log_of_steps: Path, bayescale: Any, tmp_path: Path
) -> None:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = bayescale("fit", log_of_steps, "-o", tmp_path / "fit.nc")
    assert time.perf_counter() - began < 60
    assert done.exit_code == ERROR
    assert "99900 of 100000 rows are checkpoints before the end of a run" in done.stderr
    assert "100000 rows belong to 100 runs" in done.stderr
    assert "100,000 rows with 4,000 draws need 12.8 GB" in done.stderr
    for way_out in ("leave_out='intermediate checkpoints'", "leave_out=Thinned(20)", "draws=100 would do"):
        assert way_out in done.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1e6  # kB
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_data_10_the_last_rows_of_a_log_are_fitted_as_runs(log_of_steps: Path, fitted: Fitted) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    posterior = fitted(bs.read_runs(log_of_steps, leave_out="intermediate checkpoints"))
    assert posterior.info["n_runs"] == 100
    assert posterior.status == "PASS"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1e6  # kB
