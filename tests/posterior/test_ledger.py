"""Claims about the ledger: what was written is neither lost nor changed, what does not fit is refused, scores hold."""

import dataclasses
import hashlib
import itertools
import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_fits import NOISE, table

from bayescale.inference.huber import Huber
from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.drift import Drift
from bayescale.model.pooling import NewGroup
from bayescale.parameter import LogNormal
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.entries import PROBABILITIES, added, headed
from bayescale.posterior.fitting import fit
from bayescale.posterior.ledger import Ledger, standing
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.published import published
from bayescale.posterior.store import fingerprint, load, recipe
from bayescale.runs.table import Runs

EVIL = "<script>alert('$x_1$')</script>"
RUN = {"n_params": 3e9, "n_tokens": 6e10}
SIDES = {50: (0.25, 0.75), 80: (0.1, 0.9), 90: (0.05, 0.95), 95: (0.025, 0.975)}


@pytest.fixture(scope="module")
def drifting(one_table: Runs) -> Posterior:
    """A fit with drift whose table fails the gate; draws of the prior."""
    found = fit(one_table, Chinchilla(), drift=Drift(), engine=FromPrior(draws=200), seed=1)
    return dataclasses.replace(found, gate=(Check("span_decades", 0.1, "0.5", "FAIL", "train larger runs"),))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that is not there yet."""
    return Ledger(tmp_path / "forecasts.jsonl")


def text(ledger: Ledger) -> bytes:
    return Path(ledger.path).read_bytes()


def strict(line: bytes) -> Any:
    """JSON as any parser reads it: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(line.decode(), parse_constant=refuse)


def many(ledger: Ledger, posterior: Posterior, n: int) -> None:
    """Open forecasts of runs named 0, 1, ...: one, and copies of its line."""
    entry = ledger.write(posterior, "0", **RUN)
    lines = [json.dumps(entry | {"run": str(i)}) + "\n" for i in range(n)]
    Path(ledger.path).write_text("".join(lines), "utf-8")


def test_a_forecast_is_written_down_as_it_was_made(ledger: Ledger, laplace: Posterior) -> None:
    entry = ledger.write(laplace, "läuf 1", **RUN, seed=4)
    assert strict(text(ledger)) == entry
    assert ledger.entries() == [entry | {"landing": None}]
    assert (entry["run"], entry["n_params"], entry["n_tokens"], entry["group"]) == ("läuf 1", 3e9, 6e10, None)
    assert entry["flop"] == pytest.approx(6 * 3e9 * 6e10)
    assert entry["extrapolation_factor"] == pytest.approx(entry["flop"] / laplace.largest["flop"])
    assert (entry["loss_unit"], entry["diagnostics"], entry["beyond_data"]) == ("nats per token", "UNKNOWN", None)
    assert entry["checks"] == [c.to_dict() for c in laplace.checks]
    assert entry["written"].endswith("+00:00")


def test_its_quantiles_are_those_of_predict(ledger: Ledger, laplace: Posterior) -> None:
    quantiles = ledger.write(laplace, "a", **RUN, seed=4)["quantiles"]
    assert list(quantiles) == ["law alone"]
    at = dict(zip(PROBABILITIES, quantiles["law alone"], strict=True))
    for percent, (low, high) in SIDES.items():
        found = predict(laplace, RUN, level=percent / 100, seed=4).new_run[0]
        np.testing.assert_allclose([at[0.5], at[low], at[high]], found, rtol=1e-12)


def test_the_law_alone_stands_beside_a_drift(ledger: Ledger, drifting: Posterior) -> None:
    entry, found = ledger.write(drifting, "a", **RUN), predict(drifting, RUN)
    assert found.law_alone is not None
    for name, forecast in (("with drift", found), ("law alone", found.law_alone)):
        assert entry["quantiles"][name][4] == pytest.approx(forecast.new_run[0, 0], rel=1e-12)
    assert (entry["drift"], entry["beyond_data"]) == (True, "FAIL")
    assert [c["name"] for c in entry["gate"]] == ["span_decades"]


def test_a_bootstrap_is_called_one(ledger: Ledger, laplace: Posterior) -> None:
    posterior = dataclasses.replace(laplace, info={**laplace.info, "engine": Huber.name})
    assert list(ledger.write(posterior, "a", **RUN)["quantiles"]) == ["Huber bootstrap"]


@pytest.mark.parametrize(("group", "name"), [("C d", "C d"), (NewGroup(), "new group")])
def test_a_group_is_forecast_by_its_own_law(ledger: Ledger, partial_prior: Posterior, group: Any, name: str) -> None:
    entry = ledger.write(partial_prior, "a", **RUN, group=group)
    assert entry["group"] == name
    wanted = predict(partial_prior, RUN, group=group).new_run[0, 0]
    assert entry["quantiles"]["law alone"][4] == pytest.approx(wanted, rel=1e-12)


def test_the_fingerprint_is_the_hash_of_the_recipe_beside_it(
    ledger: Ledger, laplace: Posterior, tmp_path: Path
) -> None:
    told = ledger.write(laplace, "a", **RUN)["fit"]
    plain = json.dumps(told["recipe"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert told["fingerprint"] == hashlib.sha256(plain.encode()).hexdigest()
    assert fingerprint(recipe(load(laplace.save(tmp_path / "fit.nc")))) == told["fingerprint"]


def test_fits_differ_in_fingerprint_if_in_anything_that_was_given(one_table: Runs, grouped_runs: Runs) -> None:
    def of(runs: Runs = one_table, draws: int = 20, seed: int = 1, **settings: Any) -> str:
        engine = settings.pop("engine", FromPrior(draws=draws))
        return fingerprint(recipe(fit(runs, Chinchilla(), drift=None, engine=engine, seed=seed, **settings)))

    first = of()
    assert of() == first
    t = one_table.table.assign(loss=one_table.table["loss"] * (1 + 1e-12))
    others = [
        of(seed=2),
        of(draws=21),
        of(engine=Laplace(draws=20)),
        of(priors={"alpha": LogNormal(0.3, 0.1)}),
        of(dataclasses.replace(one_table, table=t)),
        of(grouped_runs),
    ]
    assert len({first, *others}) == 7


def test_fits_differ_in_fingerprint_if_runs_are_grouped_otherwise(grouped_runs: Runs, partial_prior: Posterior) -> None:
    """Two runs change places: every group has as many as before, and the table's numbers are the same."""
    label = grouped_runs.table["corpus"].to_numpy().copy()
    label[[0, 1]] = label[[1, 0]]
    other = dataclasses.replace(grouped_runs, table=grouped_runs.table.assign(corpus=label))
    assert other.table_hash == grouped_runs.table_hash
    assert fingerprint(recipe(dataclasses.replace(partial_prior, runs=other))) != fingerprint(recipe(partial_prior))


def test_what_a_run_reached_is_added_and_the_forecast_stays(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    before = text(ledger)
    line = ledger.land("a", np.float64(2.25), loss_unit="nats per token")
    assert text(ledger) == before + json.dumps(line).encode() + b"\n"
    assert line["forecast"] == hashlib.sha256(before.strip()).hexdigest()
    (entry,) = ledger.entries()
    assert entry["landing"] == line
    assert line["loss"] == 2.25


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", 7, None])
def test_a_run_needs_a_name(ledger: Ledger, laplace: Posterior, name: Any) -> None:
    with pytest.raises(ValueError, match="named by text on one line"):
        ledger.write(laplace, name, **RUN)
    assert not Path(ledger.path).exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_params": -1.0}, r"n_params\[0\] = -1"),
        ({"n_tokens": float("nan")}, r"n_tokens\[0\] = nan"),
        ({"n_params": "large"}, "must be numbers"),
        ({"n_params": [1e9, 2e9]}, "one run"),
        ({"n_params": []}, "one run"),
        ({"group": "A"}, "Unknown group 'A'"),
    ],
)
def test_what_is_no_run_of_the_fit_is_not_written(ledger: Ledger, laplace: Posterior, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ledger.write(laplace, "a", **(RUN | given))
    assert not Path(ledger.path).exists()


def test_what_forecasts_no_new_run_is_refused(ledger: Ledger, partial_prior: Posterior) -> None:
    with pytest.raises(ValueError, match="published law"):
        ledger.write(published("besiroglu-2024"), "a", **RUN)
    with pytest.raises(ValueError, match="This fit has groups"):
        ledger.write(partial_prior, "a", **RUN)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Ledger(Path(ledger.path).parent / "none" / "l.jsonl").write(partial_prior, "a", **RUN, group="A")
    assert not Path(ledger.path).exists()


def test_a_run_is_forecast_once_and_never_after_it_landed(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    for since in ("is open", "and landed on"):
        before = text(ledger)
        with pytest.raises(ValueError, match=rf"'a' was forecast on .*{since}"):
            ledger.write(laplace, "a", **RUN)
        assert text(ledger) == before
        if since == "is open":
            ledger.land("a", 2.3)


@pytest.mark.parametrize("loss", [0, -2.3, float("nan"), float("inf"), True, "2.3", None, [2.3], 10**400])
def test_only_a_positive_number_is_a_loss(ledger: Ledger, laplace: Posterior, loss: Any) -> None:
    ledger.write(laplace, "a", **RUN)
    before = text(ledger)
    with pytest.raises(ValueError, match="A loss is a positive finite number"):
        ledger.land("a", loss)
    assert text(ledger) == before


def test_what_cannot_land_is_refused(ledger: Ledger, laplace: Posterior) -> None:
    with pytest.raises(FileNotFoundError, match="There is no ledger"):
        ledger.land("a", 2.3)
    assert not Path(ledger.path).exists()
    ledger.write(laplace, "a", **RUN)
    with pytest.raises(ValueError, match="No forecast of 'b' was written; open are: a"):
        ledger.land("b", 2.3)
    with pytest.raises(ValueError, match="forecast in nats per token, not in bits per byte"):
        ledger.land("a", 2.3, loss_unit="bits per byte")
    ledger.land("a", 2.3)
    before = text(ledger)
    with pytest.raises(ValueError, match=r"'a' landed on .* at 2\.3"):
        ledger.land("a", 2.2)
    assert text(ledger) == before


APPENDS = """
import pathlib, sys
from bayescale._files import append
path, name = pathlib.Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for i in range(25):
    append(path, lambda data: f"{len(data.splitlines())} {name} {i} {'x' * 500 * i}\\n".encode())
"""


def test_eight_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each line says how many stood above it when its process looked: none came between."""
    path = tmp_path / "lines"
    words = [[sys.executable, "-c", APPENDS, str(path), str(k)] for k in range(8)]
    started = [subprocess.Popen(w, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for w in words]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    lines = [line.split(" ") for line in path.read_text("utf-8").splitlines()]
    assert [int(line[0]) for line in lines] == list(range(200))
    assert {(int(k), int(i)) for _, k, i, _ in lines} == set(itertools.product(range(8), range(25)))
    assert all(rest == "x" * 500 * int(i) for _, _, i, rest in lines)


@pytest.mark.slow
def test_eight_processes_land_no_run_twice(ledger: Ledger, laplace: Posterior) -> None:
    """Every run is landed by two processes at the same time, of which one is refused."""
    many(ledger, laplace, 64)
    forecasts = text(ledger)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bayescale.posterior.ledger"])
    with context.Pool(8) as pool:
        asked = [pool.apply_async(ledger.land, (str(i // 2), 1 + i)) for i in range(128)]
        done: dict[int, Any] = {}
        for i, each in enumerate(asked):
            try:
                done[i] = each.get(timeout=60)
            except ValueError as refused:
                assert "landed on" in str(refused)  # noqa: PT017  (either of two processes may be refused)
    assert sorted(i // 2 for i in done) == list(range(64))
    assert text(ledger).startswith(forecasts)
    assert len(text(ledger).splitlines()) == 128
    assert {e["run"]: e["landing"] for e in ledger.entries()} == {str(i // 2): line for i, line in done.items()}


def test_of_many_who_forecast_one_run_one_is_first(ledger: Ledger, laplace: Posterior) -> None:
    def tried(seed: int) -> dict[str, Any] | None:
        try:
            return ledger.write(laplace, "a", **RUN, seed=seed)
        except ValueError:
            return None

    with ThreadPoolExecutor(8) as pool:
        written = [entry for entry in pool.map(tried, range(16)) if entry]
    assert len(written) == 1
    assert ledger.entries() == [written[0] | {"landing": None}]


def test_a_file_that_was_replaced_while_a_writer_waited_is_written_to(ledger: Ledger, laplace: Posterior) -> None:
    """As a version control system does when it brings in what others wrote."""
    from bayescale import _files

    entry = ledger.write(laplace, "a", **RUN)
    path, waited = Path(ledger.path), []

    def replaced(fd: int) -> None:
        if not waited:
            other = path.with_name("other")
            other.write_bytes(text(ledger) + json.dumps(entry | {"run": "theirs"}).encode() + b"\n")
            other.replace(path)
        waited.append(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "_wait", replaced)
        ledger.write(laplace, "mine", **RUN)
    assert [e["run"] for e in ledger.entries()] == ["a", "theirs", "mine"]


@pytest.mark.parametrize("left", [1, 20, 0.5, -2])
def test_a_last_line_that_was_cut_off_is_passed_over_and_kept(
    ledger: Ledger, laplace: Posterior, left: float, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.write(laplace, "a", **RUN)
    whole = text(ledger)
    ledger.write(laplace, "läuf", **RUN)
    last = text(ledger)[len(whole) :]
    torn = whole + last[: int(left * len(last)) if left == 0.5 else int(left)]
    Path(ledger.path).write_bytes(torn)
    assert [e["run"] for e in ledger.entries()] == ["a"]
    assert "last line, 2, was cut off" in caplog.text
    ledger.write(laplace, "b", **RUN)
    ledger.land("a", 2.3)
    ledger.write(laplace, "läuf", **RUN)
    assert [e["run"] for e in ledger.entries()] == ["a", "b", "läuf"]
    assert text(ledger).startswith(torn + b"\n")


def test_a_line_cut_inside_a_letter_is_one_that_was_cut_off(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "läuf", **RUN)
    at = text(ledger).index("ä".encode()) + 1
    Path(ledger.path).write_bytes(text(ledger)[:at])
    assert ledger.entries() == []
    ledger.write(laplace, "b", **RUN)
    assert [e["run"] for e in ledger.entries()] == ["b"]


def test_a_last_line_that_lacks_its_end_alone_is_whole(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    Path(ledger.path).write_bytes(text(ledger)[:-1])
    ledger.write(laplace, "b", **RUN)
    assert [e["run"] for e in ledger.entries()] == ["a", "b"]
    assert len(text(ledger).splitlines()) == 2


def test_line_ends_of_another_system_change_nothing(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    ledger.land("a", 2.3)
    wanted = ledger.entries()
    Path(ledger.path).write_bytes(text(ledger).replace(b"\n", b"\r\n\r\n"))
    assert ledger.entries() == wanted


def landing(entry: dict[str, Any], **other: Any) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(entry).encode()).hexdigest()
    return headed("landing", run=entry["run"], loss=2.3, loss_unit=entry["loss_unit"], forecast=digest) | other


BAD = {
    "not JSON": lambda e: b"half of a line",
    "NaN is not JSON": lambda e: e | {"flop": float("nan")},
    "not a JSON object": lambda e: [1],
    "recursion": lambda e: b"[" * 100_000,
    "no entry of a ledger": lambda e: {"run": "b"},
    "of a later version, 2": lambda e: e | {"ledger": 2, "run": "b"},
    "needs a run and its kind": lambda e: e | {"kind": "other", "run": "b"},
    "forecast again, after line 1": lambda e: e,
    "no line above forecasts it": lambda e: landing(e, run="b"),
    "was changed after this landing": lambda e: landing(e, forecast="0" * 64),
    "at no positive loss": lambda e: landing(e, loss=-1),
    "landed in 'perplexity'": lambda e: landing(e, loss_unit="perplexity"),
    "unlikely, n_params": lambda e: e | {"run": "b", "n_params": "1e9"},
    "unlikely, quantiles": lambda e: e | {"run": "b", "quantiles": {"law alone": [3.0, 2.0]}},
    "or with an unlikely, quantiles": lambda e: (
        e | {"run": "b", "quantiles": {k: q[::-1] for k, q in e["quantiles"].items()}}
    ),
    "unlikely, probabilities": lambda e: e | {"run": "b", "probabilities": [0.5]},
    "unlikely, fit": lambda e: e | {"run": "b", "fit": None},
    "unlikely, gate": lambda e: e | {"run": "b", "gate": [1]},
    "unlikely, group": lambda e: {k: v for k, v in e.items() if k != "group"} | {"run": "b"},
}


@pytest.mark.parametrize("said", list(BAD))
def test_a_line_that_does_not_belong_is_named_and_nothing_is_added(
    ledger: Ledger, laplace: Posterior, said: str
) -> None:
    entry = ledger.write(laplace, "a", **RUN)
    bad = BAD[said](entry)
    line = bad if isinstance(bad, bytes) else json.dumps(bad).encode()
    Path(ledger.path).write_bytes(text(ledger) + b"\n" + line + b"\n")
    before = text(ledger)
    for use in (ledger.entries, lambda: ledger.land("a", 2.3), lambda: ledger.write(laplace, "c", **RUN)):
        with pytest.raises(ValueError, match=f"line 3: .*{said}"):
            use()
    assert text(ledger) == before


def test_a_second_landing_is_named(ledger: Ledger, laplace: Posterior) -> None:
    """Two branches may each land a run, and then be merged."""
    ledger.write(laplace, "a", **RUN)
    forecast = text(ledger)
    ledger.land("a", 2.3)
    Path(ledger.path).write_bytes(text(ledger) + text(ledger)[len(forecast) :])
    with pytest.raises(ValueError, match="line 3: 'a' landed again"):
        ledger.entries()


def test_every_bad_line_is_in_one_message(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    Path(ledger.path).write_bytes(b"x\n" + text(ledger) + b"y\n" * 12)
    with pytest.raises(ValueError, match=r"line 1: .*line 3: .*and 3 more lines"):
        ledger.entries()


def test_a_forecast_that_was_changed_after_it_landed_is_found(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    ledger.land("a", 2.3)
    Path(ledger.path).write_bytes(text(ledger).replace(b'"n_tokens": 60000000000.0', b'"n_tokens": 60000000001.0'))
    with pytest.raises(ValueError, match="line 2: the forecast of 'a', line 1, was changed after"):
        ledger.entries()


def test_reading_runs_nothing(ledger: Ledger, laplace: Posterior, tmp_path: Path) -> None:
    code = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    ledger.write(laplace, code, **RUN)
    Path(ledger.path).write_bytes(text(ledger) + code.encode() + b"\n")
    with pytest.raises(ValueError, match="line 2"):
        ledger.entries()
    assert not (tmp_path / "ran").exists()


def scored(ledger: Ledger, posterior: Posterior) -> list[dict[str, Any]]:
    """Forecasts inside the data and beyond, each landed at another place of its quantiles; the last is open."""
    for i, factor in enumerate((0.5, 1.5, 5.0, 20.0, 50.0, 2.0, 100.0)):
        n = np.sqrt(posterior.largest["flop"] * factor / 120)
        entry = ledger.write(posterior, f"run {i}", n_params=n, n_tokens=20 * n)
        q = next(iter(entry["quantiles"].values()))
        if i < 6:
            ledger.land(f"run {i}", (q[0] * 0.9, q[1] * 1.0001, q[3], q[4], q[7], q[8] * 1.1)[i])
    return [e for e in ledger.entries() if e["landing"]]


def test_scores_are_what_their_definitions_say(ledger: Ledger, laplace: Posterior) -> None:
    entries = scored(ledger, laplace)
    found = ledger.scores().to_dict("records")
    assert [row["run"] for row in found] == [e["run"] for e in entries]
    assert [row["bin"] for row in found] == ["inside", "1 to 3", "3 to 10", "10 to 30", "over 30", "1 to 3"]
    for row, e in zip(found, entries, strict=True):
        y, q = np.log(e["landing"]["loss"]), dict(zip(PROBABILITIES, np.log(e["quantiles"]["law alone"]), strict=True))
        for percent, (low, high) in SIDES.items():
            assert row[f"covered_{percent}"] == (q[low] <= y <= q[high])
        missed = max(q[0.05] - y, 0) + max(y - q[0.95], 0)
        assert row["interval_score"] == pytest.approx(100 * (q[0.95] - q[0.05] + 20 * missed))
        assert row["error_percent"] == pytest.approx(100 * (q[0.5] - y), abs=1e-9)
        assert row["fit"] == e["fit"]["fingerprint"]
        edges = [0, *((a + b) / 2 for a, b in itertools.pairwise(PROBABILITIES)), 1]
        pinball = [2 * (p - (y < x)) * (y - x) for p, x in q.items()]
        assert row["crps"] == pytest.approx(100 * np.dot(np.diff(edges), pinball))
    assert [row["covered"] for row in found] == [False, True, True, True, True, False]


def test_the_summary_counts_each_run_once(ledger: Ledger, laplace: Posterior) -> None:
    scored(ledger, laplace)
    summary, found = ledger.summary().set_index("bin"), ledger.scores()
    assert list(summary.index) == ["inside", "1 to 3", "3 to 10", "10 to 30", "over 30", "all"]
    assert list(summary["runs"]) == [1, 2, 1, 1, 1, 6]
    assert summary.loc["all", "coverage_90"] == pytest.approx(4 / 6)
    assert summary.loc["1 to 3", "coverage_90"] == 0.5
    assert summary.loc["all", "bias_percent"] == pytest.approx(found["error_percent"].mean())


def test_good_forecasts_are_covered_as_often_as_they_say(ledger: Ledger, laplace: Posterior) -> None:
    """Runs of the law behind the table, among the runs of the fit, 40 of them."""
    new = table(40, seed=9, noise=NOISE)
    for i, row in new.iterrows():
        ledger.write(laplace, f"{i}", n_params=row["n_params"], n_tokens=row["n_tokens"], seed=int(str(i)))
        ledger.land(f"{i}", row["loss"])
    coverage = ledger.summary().set_index("bin").loc["all"]
    for percent in (50, 80, 90, 95):
        p = percent / 100
        assert coverage[f"coverage_{percent}"] == pytest.approx(p, abs=3.5 * np.sqrt(p * (1 - p) / 40))


def test_everything_is_json_and_a_table(ledger: Ledger, laplace: Posterior, drifting: Posterior) -> None:
    assert ledger.to_dict()["entries"] == []
    assert len(ledger.to_dataframe()) == len(ledger.scores()) == len(ledger.summary()) == 0
    scored(ledger, laplace)
    ledger.write(drifting, "drift", **RUN)
    found = json.loads(json.dumps(ledger.to_dict(), allow_nan=False))
    assert len(found["entries"]) == 8
    assert len(found["scores"]) == 6
    frame = ledger.to_dataframe()
    assert frame["loss"].notna().tolist() == [True] * 6 + [False] * 2
    assert frame["with_drift_median"].notna().tolist() == [False] * 7 + [True]
    assert frame["law_alone_lower"][0] == found["entries"][0]["quantiles"]["law alone"][1]
    for line in text(ledger).splitlines():
        strict(line)


def test_the_page_says_what_is_open_what_landed_and_how_little_it_shows(ledger: Ledger, laplace: Posterior) -> None:
    assert "no forecast has landed" in " ".join(repr(ledger).split())
    scored(ledger, laplace)
    page = " ".join(repr(ledger).split())
    assert "1 open forecast, 6 landed" in page
    for said in (
        "90 % equal-tailed",
        "held 4 of 6 runs",
        "from 0.27 to 0.94",
        "1 forecast not scored",
        "UNKNOWN: run 0",
    ):
        assert said in page, said
    assert page.count("inside") >= 4
    assert "GATE" not in page


def test_forecasts_beyond_a_gate_that_failed_are_said_first(ledger: Ledger, drifting: Posterior) -> None:
    inside = ledger.write(drifting, "inside", n_params=3e7, n_tokens=1e9)
    beyond = ledger.write(drifting, "beyond", n_params=3e11, n_tokens=1e13)
    assert (standing(inside), standing(beyond)) == ("UNKNOWN", "FAIL")
    page = " ".join(repr(ledger).split())
    assert page.startswith("GATE: no calibrated forecast beyond the data for 1 of 2 forecasts")
    assert "beyond: span_decades" in page
    ledger.land("beyond", 2.0)
    assert list(ledger.summary()["forecaster"].unique()) == ["with drift", "law alone"]
    assert max(map(len, repr(ledger).splitlines()[2:])) <= 80


def test_forecasters_that_did_not_forecast_the_same_runs_stand_side_by_side(
    ledger: Ledger, drifting: Posterior, laplace: Posterior
) -> None:
    for name, posterior, n in (("a", drifting, 3e7), ("b", laplace, 3e7), ("c", laplace, 3e12)):
        ledger.write(posterior, name, n_params=n, n_tokens=1e9)
        ledger.land(name, 4.0)
    held = " ".join(repr(ledger).partition("Share of new runs that the 90 %")[2].partition("Interval score")[0].split())
    assert "inside 1, 2 " in held
    assert "over 30 0, 1 - 0.00" in held


def test_long_ledgers_show_the_latest(ledger: Ledger, laplace: Posterior) -> None:
    many(ledger, laplace, 200)
    page = repr(ledger)
    assert "190 more forecasts" in page
    assert "\n199 " in page
    assert "\n150 " not in page


def test_names_are_text_in_html(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, EVIL, **RUN)
    ledger.land(EVIL, 2.3)
    assert "<script" not in ledger._repr_html_()
    assert "&lt;script&gt;" in ledger._repr_html_()


def test_the_calibration_of_a_ledger_is_drawn(ledger: Ledger, laplace: Posterior) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from bayescale.report.plots import plot_calibration, plot_calibration_data

    with pytest.raises(ValueError, match="nothing to draw yet"):
        plot_calibration(ledger)
    scored(ledger, laplace)
    drawn = plot_calibration_data(ledger).set_index("level")
    assert drawn.loc[0.9, "coverage"] == pytest.approx(4 / 6)
    assert drawn.loc[0.9, "lowest"] == pytest.approx(0.271, abs=1e-3)  # Clopper & Pearson's tables: 4 of 6
    ax = plot_calibration(ledger)
    assert list(ax.lines[1].get_ydata()) == drawn["coverage"].tolist()
    plt.close("all")


def test_what_is_added_after_whole_lines_is_the_line_alone() -> None:
    assert added(b"", {"a": 1}) == b'{"a": 1}\n'
    assert added(b"{}\n", {"a": 1}) == b'{"a": 1}\n'
    assert added(b"{}", {"a": 1}) == b'\n{"a": 1}\n'
