"""Claims about a ledger's file: what was written is neither lost nor changed, and what is no entry is named."""

import hashlib
import itertools
import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from written_ledgers import RUN, many, text

from bayescale.posterior.entries import added, headed
from bayescale.posterior.ledger import Ledger
from bayescale.posterior.posterior import Posterior

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


def test_what_is_added_after_whole_lines_is_the_line_alone() -> None:
    assert added(b"", {"a": 1}) == b'{"a": 1}\n'
    assert added(b"{}\n", {"a": 1}) == b'{"a": 1}\n'
    assert added(b"{}", {"a": 1}) == b'\n{"a": 1}\n'
