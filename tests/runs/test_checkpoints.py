"""Which rows are runs: each rule names its rows and nothing is dropped unless asked."""

import time

import numpy as np
import pandas as pd
import pytest

from bayescale.runs import InvalidRuns, read_runs
from bayescale.runs.checkpoints import ROW_RULES, Diverged, Thinned, WarmUp, row_rules


def finished(**extra):
    """Twelve finished runs of three sizes; their losses fall with both."""
    n, d = (v.ravel() for v in np.meshgrid([1e8, 4e8, 1.6e9], [2e9, 8e9, 3.2e10, 1.3e11], indexing="ij"))
    loss = 1.8 + 480 * n**-0.35 + 2000 * d**-0.37
    return pd.DataFrame({"params": n, "tokens": d, "loss": loss}).assign(**extra)


def log_of(runs=3, rows=50, named=True):
    """A log with a row per step: ``rows`` checkpoints of each run, from step 0."""
    step = np.tile(np.arange(rows) * 100, runs)
    n = np.repeat(np.geomspace(1e8, 1e9, runs), rows)
    tokens = step * 1e6
    with np.errstate(divide="ignore"):
        loss = np.where(tokens > 0, 1.8 + 480 * n**-0.35 + 2000 * tokens**-0.37, 10.8)
    frame = pd.DataFrame({"step": step, "params": n, "tokens": tokens, "loss": loss})
    return frame.assign(run=np.repeat([f"r{k}" for k in range(runs)], rows)) if named else frame


def doubts(frame, name, **settings):
    """Lines that the rule of this name doubts, by the note; they are all used."""
    runs = read_runs(frame, **settings)
    assert len(runs) == len(frame)
    notes = [note for note in runs.notes if f"leave_out=['{name}']" in note]
    assert len(notes) <= 1
    if not notes:
        return []
    left = read_runs(frame, leave_out=name, **settings).left_out
    assert set(left["reason"]) == {f"left out by rule: {name}"}
    return left["line"].tolist()


def test_a_clean_table_is_not_doubted():
    frame = finished(lr=1e-3, status="finished", epochs=1, planned_tokens=finished()["tokens"])
    assert not [note for note in read_runs(frame).notes if "leave_out" in note]


def test_every_rule_has_a_name_and_says_what_it_doubts():
    assert len({rule.name for rule in ROW_RULES}) == len(ROW_RULES)
    for rule in ROW_RULES:
        assert rule.meaning
        assert row_rules(rule.name) == (rule,)


CASES = {
    "duplicates": (lambda f: pd.concat([f, f.iloc[[2, 2]]], ignore_index=True), [12, 13]),
    "diverged": (lambda f: f.assign(loss=f["loss"].mask(f.index == 7, 7.9)), [7]),
    "crashed": (lambda f: f.assign(State=["Crashed", "finished", "failed", *["finished"] * 9]), [0, 2]),
    "unfinished decay": (lambda f: f.assign(planned_tokens=f["tokens"].mask(f.index == 3, 5e11)), [3]),
    "repeated data": (lambda f: f.assign(unique_tokens=f["tokens"].clip(upper=3.2e10)), [3, 7, 11]),
    "not the best setting": (
        lambda f: pd.concat([f.assign(lr=1e-3), f.assign(lr=2e-3, loss=f["loss"] + 0.1)], ignore_index=True),
        list(range(12, 24)),
    ),
    "other scale": (lambda f: f.assign(tokens=f["tokens"].mask(f.index == 5, 8e3)), [5]),
    "intermediate checkpoints": (lambda f: f.assign(is_final_checkpoint=f.index != 4), [4]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_doubts_its_rows_and_leaves_them_out_only_when_asked(name):
    change, wanted = CASES[name]
    assert doubts(change(finished()), name) == wanted


def test_the_other_ways_to_end_too_early_and_to_repeat():
    frame = finished(lr=1e-3, final_lr=[1e-4] * 11 + [9e-4])
    assert doubts(frame, "unfinished decay") == [11]
    assert doubts(finished(step=9000, planned_steps=[9000] * 10 + [12000, 9001]), "unfinished decay") == [10]
    assert doubts(finished(epochs=[1, 2, *[1] * 10]), "repeated data") == [1]


def test_replicates_with_another_seed_are_not_doubted():
    frame = pd.concat([finished(seed=k).assign(loss=lambda f: f["loss"] * (1 + k / 1e4)) for k in range(3)])  # noqa: B023
    assert not [note for note in read_runs(frame.reset_index(drop=True)).notes if "leave_out" in note]


def test_runs_of_another_corpus_are_not_compared():
    frame = pd.concat([finished(corpus="a"), finished(corpus="b").assign(loss=lambda f: f["loss"] * 1.4)])
    assert doubts(frame.reset_index(drop=True), "diverged") == []


def test_a_run_that_rises_again_has_diverged():
    frame = log_of().query("step > 0")
    frame.loc[frame.index[48], "loss"] = 6.0
    assert doubts(frame, "diverged") == [49]


# Logs


@pytest.mark.parametrize("named", [True, False])
def test_checkpoints_of_one_run_are_recognised_and_the_last_can_be_kept(named, caplog):
    frame = log_of(named=named).query("step > 0").reset_index(drop=True)
    runs = read_runs(frame)
    assert len(runs) == 147
    assert "144 of 147 rows are checkpoints before the end of a run" in caplog.text
    assert "147 rows belong to 3 runs" in caplog.text
    last = read_runs(frame, leave_out="intermediate checkpoints")
    assert last.table["line"].tolist() == [48, 97, 146]
    assert len(last.left_out) == 144
    if named:
        assert runs.table["run"].tolist()[:2] == ["r0 @ step 100", "r0 @ step 200"]
        assert runs.labels("trajectory")[1] == ("r0", "r1", "r2")
        assert last.table["run"].tolist() == ["r0", "r1", "r2"]


def test_rows_of_step_0_and_of_the_warm_up_are_left_out_together():
    frame = log_of(rows=300)
    with pytest.raises(InvalidRuns, match="tokens is not positive in 3 rows"):
        read_runs(frame)
    assert read_runs(frame, leave_out="warm-up").left_out["line"].tolist() == [
        k + 300 * run for run in range(3) for k in (0, 1, 2)
    ]
    assert read_runs(frame, leave_out=WarmUp(tokens=1e10)).table["n_tokens"].min() == 1.01e10


@pytest.mark.parametrize("most", [1, 2, 10, 1000])
def test_thinning_keeps_so_many_of_each_run_and_the_last(most):
    frame = log_of().query("step > 0").reset_index(drop=True)
    runs = read_runs(frame, leave_out=Thinned(most))
    counts = runs.table.groupby("n_params").size()
    assert (counts <= most).all()
    assert counts.min() >= min(most, 49) / 2
    assert (runs.table.groupby("n_params")["n_tokens"].max() == 4.9e9).all()


def test_a_name_used_for_two_things_is_still_not_unique():
    frame = finished(run=["a", "a", *map(str, range(10))]).assign(params=np.geomspace(1e8, 1e9, 12))
    with pytest.raises(InvalidRuns, match="run is not unique in 2 rows"):
        read_runs(frame)


def test_a_step_written_twice_is_named():
    frame = log_of().query("step > 0")
    again = frame.iloc[[3]].assign(loss=3.3)
    with pytest.raises(InvalidRuns, match=r"run is not unique in 2 rows .*'r0 @ step 400'"):
        read_runs(pd.concat([frame, again], ignore_index=True))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("dupes", r"no rule 'dupes'; the rules are duplicates, .*"),
        (["duplicate"], "Did you mean 'duplicates'"),
        ("repeated data", r"'repeated data' needs a column of unique_tokens or epochs.*columns=\{'unique_tokens'"),
    ],
)
def test_a_rule_that_cannot_be_applied_says_why(choice, said):
    with pytest.raises(ValueError, match=said):
        read_runs(finished(), leave_out=choice)


def test_a_rule_with_other_settings_is_given_by_value():
    frame = finished().assign(loss=lambda f: f["loss"].mask(f.index == 7, f["loss"][3] * 1.02))
    assert doubts(frame, "diverged") == []
    assert read_runs(frame, leave_out=Diverged(0.05)).left_out["line"].tolist() == [7]
    with pytest.raises(ValueError, match="at least one checkpoint"):
        Thinned(0)


def test_a_log_of_100_000_rows_is_read_in_seconds(tmp_path):
    frame = log_of(runs=100, rows=1001).query("step > 0").round({"loss": 5})
    frame.astype({"tokens": "int64", "params": "int64"}).to_csv(tmp_path / "log.csv", index=False)
    began = time.process_time()
    runs = read_runs(tmp_path / "log.csv", leave_out="intermediate checkpoints")
    assert time.process_time() - began < 5
    assert len(runs) == 100
    assert len(runs.left_out) == 99_900
