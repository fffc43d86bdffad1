"""Public tables and the inputs that people bring, read as they are."""

import logging

import numpy as np
import pandas as pd
import pytest

from bayescale.runs import InvalidRuns, design_findings, read_runs


def found(runs, **settings):
    return {finding.name: finding for finding in design_findings(runs, **settings)}


# Public tables: the row counts and ranges are those of the tables' SOURCE.md.


@pytest.mark.parametrize("name", ["runs.csv", "svg_extracted_data.csv"])
def test_chinchilla_epoch(shared, name):
    runs = read_runs(shared / "data/chinchilla-epoch" / name)
    assert len(runs) == 245
    assert runs.largest == pytest.approx({"n_params": 1.62e10, "n_tokens": 3.18e11, "flop": 1.3e22}, rel=0.005)
    assert runs.table["n_tokens"].min() == pytest.approx(2.45e8, rel=0.005)
    assert design_findings(runs) == ()


def test_chinchilla_epoch_by_headers_and_by_hand_agree(shared):
    folder = shared / "data/chinchilla-epoch"
    by_hand, as_drawn = (read_runs(folder / name).table for name in ("runs.csv", "svg_extracted_data.csv"))
    for name in ("n_params", "n_tokens", "flop", "loss"):
        np.testing.assert_allclose(as_drawn[name], by_hand[name], rtol=1e-9)


def test_chinchilla_epoch_without_the_dropped_rows(shared):
    runs = read_runs(shared / "data/chinchilla-epoch/runs.csv", exclude={"epoch_dropped_outlier": True})
    assert len(runs) == 240
    assert runs.left_out["run"].tolist() == [f"chinchilla-{k:03}" for k in range(5)]
    assert runs.table["loss"].max() < 3.4470


def test_loss_to_loss(shared):
    runs = read_runs(shared / "data/loss-to-loss/runs.csv")
    label, names = runs.labels("group")
    assert len(label) == len(runs) == len(pd.read_csv(shared / "data/loss-to-loss/runs.csv"))
    assert {"fineweb-100b", "fineweb-edu-100b", "slimpajama-chunk1", "smollm-corpus"} <= set(names)
    assert not [note for note in runs.notes if "differs" in note]  # flops = 6 N D exactly, says SOURCE.md
    assert design_findings(runs, by="group") == ()


def test_gadre(shared):
    runs = read_runs(shared / "data/gadre-2024/runs.csv")
    assert len(runs) == 95
    assert runs.labels("group")[1] == ("C4", "RedPajama", "RefinedWeb")


@pytest.mark.parametrize(("name", "rows"), [("gemstones", 619), ("porian-2024", 1745)])
def test_tables_of_many_rows(shared, name, rows):
    assert len(read_runs(shared / "data" / name / "runs.csv")) == rows


def test_datablations_blanks_are_named(shared):
    path = shared / "data/datablations/runs.csv"
    table = pd.read_csv(path)
    blank = (np.flatnonzero(table["n_params"].isna()) + 2).tolist()
    with pytest.raises(InvalidRuns, match="n_params is missing") as caught:
        read_runs(path)
    assert sorted(set(caught.value.problems["line"])) == blank
    assert len(read_runs(path, on_invalid="drop")) == len(table) - len(blank)


@pytest.mark.parametrize("name", ["clark-2022-routing", "steplaw"])
def test_a_table_with_several_sizes_asks_which_is_meant(shared, name):
    with pytest.raises(ValueError, match=r"Perhaps n_params is one of '.*', '"):
        read_runs(shared / "data" / name / "runs.csv")


# Cases


def test_data_01_a_byte_order_mark_changes_nothing(shared):
    folder = shared / "cases/data-01"
    marked, clean = read_runs(folder / "bom.csv"), read_runs(folder / "clean.csv")
    pd.testing.assert_frame_equal(marked.table, clean.table)
    assert marked.table_hash == clean.table_hash


def test_fit_05_tokens_come_from_compute(shared, caplog):
    with caplog.at_level(logging.INFO, logger="bayescale"):
        runs = read_runs(shared / "cases/fit-05/runs_flop.csv")
    assert runs.table["n_tokens"][0] == pytest.approx(3.162e9, rel=1e-3)
    assert "C = 6 N D" in repr(runs)
    assert "n_tokens of every run is derived" in caplog.text


def test_fit_10_all_six_lines_are_named(shared):
    path = shared / "cases/fit-10/bad_losses.csv"
    with pytest.raises(InvalidRuns) as caught:
        read_runs(path)
    assert caught.value.problems["line"].tolist() == [4, 7, 9, 11, 13, 15]
    for line in (4, 7, 9, 11, 13, 15):
        assert f"line {line}:" in str(caught.value)
    runs = read_runs(path, on_invalid="drop")
    assert len(runs) == 10
    assert runs.left_out["line"].tolist() == [4, 7, 9, 11, 13, 15]


def test_fit_13_one_token_count_is_named_with_rows_and_parameters(shared):
    findings = found(read_runs(shared / "cases/fit-13/same_tokens.csv"))
    assert findings["one_token_count"].column == "n_tokens"
    assert findings["few_runs"].figures == "6 runs for 5 parameters of the law and the noise"


def test_fit_14_one_budget_is_named(shared):
    assert "9 runs, all 1e+20 FLOPs" in found(read_runs(shared / "cases/fit-14/one_budget.csv"))["one_budget"].figures


def test_fit_18_tokens_do_vary(shared):
    # That they have no effect is in the losses, not in the design.
    assert found(read_runs(shared / "cases/fit-18/flat_in_D.csv")) == {}


@pytest.mark.parametrize("n", [3, 5, 6])
def test_fit_19_few_runs(shared, n):
    assert f"{n} runs for 5 parameters" in found(read_runs(shared / f"cases/fit-19/n{n}.csv"))["few_runs"].figures


@pytest.mark.parametrize("category", [False, True])
def test_fit_22_and_bayes_15_a_group_of_one_run_and_no_phantom(shared, category):
    table = pd.read_csv(shared / "cases/fit-22/one_run_group.csv")
    if category:
        table["corpus"] = pd.Categorical(table["corpus"], categories=["Z", "A", "B", "C"])
    runs = read_runs(table)
    label, names = runs.labels("corpus")
    assert names == ("A", "B", "C")
    assert [int((label == name).sum()) for name in names] == [12, 12, 1]
    assert found(runs, by="corpus")["single_run_group"].groups == ("C",)


def test_fit_25_diverged_runs_are_kept_and_can_be_named(shared):
    runs = read_runs(shared / "cases/fit-25/two_diverged.csv")
    worst = runs.table.nlargest(2, "loss")
    assert worst["loss"].tolist() == [10.83, 7.91]
    assert worst["run"].tolist() == ["run-17", "run-4"]
    assert len(runs.without(worst["run"].tolist())) == 22


def test_fit_20_compute_of_huge_integer_columns(shared):
    path = shared / "cases/fit-20/huge.csv"
    for source in (path, pd.read_csv(path), pd.read_csv(path).astype(float)):
        runs = read_runs(source)
        assert runs.largest["flop"] == 6e28
        assert runs.table["flop"].min() > 0


def test_fit_11_copies_are_counted(shared, caplog):
    read_runs(shared / "cases/fit-11/ten_times.csv")
    assert "108 of 120 rows repeat an earlier row exactly" in caplog.text


def test_fit_04_and_fit_29_units_and_step_zero_are_refused(shared):
    with pytest.raises(InvalidRuns, match=r"(?s)N runs from 31.623 to 7943.28.*D runs from 3.1623 to 316.228"):
        read_runs(shared / "cases/fit-04/runs_noheader_units.csv")
    with pytest.raises(InvalidRuns, match="tokens is not positive in 4 lines"):
        read_runs(shared / "cases/fit-29/with_step0.csv")


def test_fit_04_units_in_the_header_or_declared(shared):
    folder = shared / "cases/fit-04"
    by_header = read_runs(folder / "runs_M_B.csv")
    declared = read_runs(folder / "runs_noheader_units.csv", units={"n_params": "M", "n_tokens": "B"})
    assert by_header.table["n_params"].min() == pytest.approx(31.623e6)
    assert by_header.table["n_tokens"].max() == pytest.approx(316.2278e9)
    pd.testing.assert_frame_equal(by_header.table, declared.table)


def test_fit_07_two_counts_are_listed_and_the_chosen_one_is_recorded(shared):
    path = shared / "cases/fit-07/two_counts.csv"
    with pytest.raises(ValueError, match="'params_total', 'params_non_embedding'"):
        read_runs(path)
    runs = read_runs(path, columns={"n_params": "params_total"})
    assert any("Sizes count total parameters (by the header 'params_total')" in note for note in runs.notes)


def test_fit_08_perplexities_become_nats(shared):
    folder = shared / "cases/fit-08"
    nats, ppl = read_runs(folder / "nats.csv"), read_runs(folder / "ppl.csv")
    np.testing.assert_allclose(ppl.table["loss"], nats.table["loss"], rtol=1e-5)  # four digits after the point
    bits = read_runs(folder / "bits.csv", loss_unit="bits per token").table["loss"]
    np.testing.assert_allclose(bits * np.log(2), nats.table["loss"], rtol=1e-5)


def test_fit_11_without_copies_the_table_is_that_of_one(shared):
    once, ten = (read_runs(shared / f"cases/fit-11/{k}.csv", leave_out="duplicates") for k in ("once", "ten_times"))
    assert len(once) == len(ten) == 12
    assert sorted(once.table["loss"]) == sorted(ten.table["loss"])


def test_fit_27_repeated_data_is_named_and_can_be_left_out(shared, caplog):
    path = shared / "cases/fit-27/epochs.csv"
    read_runs(path)
    assert "10 of 30 rows may be of runs that saw tokens again" in caplog.text
    fewer = read_runs(path, leave_out="repeated data").table
    assert (fewer["n_tokens"] <= fewer["unique_tokens"].astype(float)).all()
    assert len(fewer) == 20


def test_fit_29_the_warm_up_is_left_out_with_one_option(shared):
    runs = read_runs(shared / "cases/fit-29/with_step0.csv", leave_out="warm-up")
    assert len(runs) == 16
    assert runs.table["n_tokens"].min() >= 1e8


@pytest.mark.parametrize("name", ["us_thousands.csv", "spaces_underscores.csv"])
def test_data_03_thousands(shared, name):
    folder = shared / "cases/data-03"
    pd.testing.assert_frame_equal(read_runs(folder / name).table, read_runs(folder / "clean.csv").table)


def test_data_04_suffixes(shared):
    folder = shared / "cases/data-04"
    runs, expected = read_runs(folder / "suffixes.csv").table, pd.read_csv(folder / "expected.csv")
    np.testing.assert_allclose(runs["n_params"], expected["params_value"], rtol=1e-12)
    np.testing.assert_allclose(runs["n_tokens"], expected["tokens_value"], rtol=1e-12)
    with pytest.raises(InvalidRuns) as caught:
        read_runs(folder / "bad_suffixes.csv")
    assert set(caught.value.problems["line"]) == {3, 4, 5, 6, 7}
    assert caught.value.problems["value"].str.contains("7Bn|approx 8B|~15T|13TT|13b-chat|30").all()


def test_data_06_a_wide_chart_is_explained(shared):
    with pytest.raises(ValueError, match=r"one column a run \(2 runs: gpt-50m, gpt-500m\), one row a step \(6 steps\)"):
        read_runs(shared / "cases/data-06/wandb_chart.csv")


def test_data_08_json_lines_with_a_cut_line(shared):
    path = shared / "cases/data-08/log.jsonl"
    with pytest.raises(InvalidRuns) as caught:
        read_runs(path)
    assert caught.value.problems["line"].tolist() == [5, 9, 18]
    assert len(read_runs(path, on_invalid="drop")) == 14
