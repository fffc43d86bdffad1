"""Units and conventions: said in a header or by argument, converted once, and never guessed."""

import numpy as np
import pandas as pd
import pytest

from bayescale.runs import FlopsRule, InvalidRuns, read_runs
from bayescale.runs.units import LOSS_UNITS, PF_DAY, loss_unit_of, scale_of

ROWS = [(1e8, 2e9, 3.2), (3e8, 6e9, 2.9), (1e9, 2e10, 2.6), (2e9, 9e10, 2.4)]


def frame(**extra):
    return pd.DataFrame(ROWS, columns=["n_params", "n_tokens", "loss"]).assign(**extra)


def numbers(runs):
    return runs.table[["n_params", "n_tokens", "loss"]].to_numpy()


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ("params_M", "tokens_B"),
        ("params (M)", "tokens (B)"),
        ("N [millions]", "D (billions of tokens)"),
        ("Parameters (in millions)", "Training Tokens (1e9)"),
        ("model size M", "tokens (10^9)"),
        ("params (M params)", "tokens-B"),
    ],
)
def test_a_unit_in_a_header_is_read_and_said(size, tokens):
    table = pd.DataFrame({size: [100, 300, 1000, 2000], tokens: [2, 6, 20, 90], "loss": frame()["loss"]})
    runs = read_runs(table)
    np.testing.assert_allclose(numbers(runs), ROWS, rtol=1e-14)
    assert any(note.startswith("n_params is read in") and repr(size) in note for note in runs.notes)


def test_a_unit_by_argument_goes_before_the_header():
    table = pd.DataFrame({"params (M)": [0.1, 0.3, 1, 2], "D": [2e3, 6e3, 2e4, 9e4], "loss": frame()["loss"]})
    runs = read_runs(table, units={"n_params": "B", "n_tokens": "millions"})
    np.testing.assert_allclose(numbers(runs), ROWS, rtol=1e-14)
    assert any("as declared" in note for note in runs.notes)


@pytest.mark.parametrize(
    ("units", "said"),
    [
        ({"loss": "bits"}, "units: 'loss' is none of n_params, n_tokens, flop; the unit of the loss is loss_unit="),
        ({"n_params": "kg"}, "units: 'kg' is no unit of n_params; write M, billions"),
        ({"flop": "TFLOP"}, "units: flop has a unit and no column"),
    ],
)
def test_a_unit_that_cannot_be_is_refused(units, said):
    with pytest.raises(ValueError, match=said):
        read_runs(frame(), units=units)


def test_a_suffix_in_a_column_of_millions_is_no_number():
    with pytest.raises(InvalidRuns, match="'70B'"):
        read_runs(pd.DataFrame({"params (M)": ["100", "70B"], "tokens": ["2e9", "3e9"], "loss": [3, 2.9]}))


@pytest.mark.parametrize(
    ("name", "word", "scale"),
    [
        ("n_params", "M", 1e6),
        ("n_tokens", "Billion tokens", 1e9),
        ("n_tokens", "tokens", 1),
        ("flop", "GFLOPs", 1e9),
        ("flop", "ZFLOP", 1e21),
        ("flop", "PF-days", PF_DAY),
        ("flop", "petaflop/s-days", PF_DAY),
        ("flop", "x1e18", 1e18),
        ("flop", "M", None),
        ("n_params", "Mio", None),
    ],
)
def test_words_of_units(name, word, scale):
    assert scale_of(name, word) == scale


def test_kaplan_s_pf_day_is_a_petaflop_a_second_for_a_day():
    assert PF_DAY == 1e15 * 24 * 3600
    table = frame(**{"compute (PF-days)": [6 * n * d / 8.64e19 for n, d, _ in ROWS]}).drop(columns="n_tokens")
    np.testing.assert_allclose(numbers(read_runs(table)), ROWS, rtol=1e-12)


# What a size counts


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        ("params_total", "total"),
        ("n_params_non_embedding", "non-embedding"),
        ("non-embedding params", "non-embedding"),
        ("active parameters (B)", "active"),
        ("N_nonembedding_and_head", "non-embedding and head"),
    ],
)
def test_what_a_size_counts_is_recorded(header, counts):
    scale = 1e9 if "(B)" in header else 1
    runs = read_runs(frame().assign(n_params=lambda f: f["n_params"] / scale).rename(columns={"n_params": header}))
    np.testing.assert_allclose(numbers(runs), ROWS, rtol=1e-14)
    assert any(f"Sizes count {counts} parameters (by the header {header!r})." in note for note in runs.notes)
    assert f"({counts})" in runs.recognised.set_index("column")["unit"][header]


def test_two_counts_are_never_chosen_between():
    table = frame(params_total=1e9, params_non_embedding=8e8).drop(columns="n_params")
    with pytest.raises(ValueError, match="Perhaps n_params is one of 'params_total', 'params_non_embedding'"):
        read_runs(table)
    runs = read_runs(table, columns={"n_params": "params_non_embedding"})
    assert any("Sizes count non-embedding parameters" in note for note in runs.notes)


def test_what_sizes_count_can_be_declared():
    assert any(
        "Sizes count total parameters (as declared)" in note for note in read_runs(frame(), counts="total").notes
    )
    with pytest.raises(ValueError, match="counts is one of 'total', 'non-embedding'"):
        read_runs(frame(), counts="all of them")


# Losses


def test_bits_per_byte_of_the_literature():
    nats, bits = LOSS_UNITS["nats per token"], LOSS_UNITS["bits per byte"]
    assert nats.convert(2.0, bits, 4.3) == pytest.approx(0.67102, abs=5e-6)
    assert nats.convert(1.97388, bits, 4.0) == pytest.approx(0.71193, abs=5e-6)
    with pytest.raises(ValueError, match="needs the bytes per token"):
        nats.convert(2.0, bits)


@pytest.mark.parametrize("start", LOSS_UNITS.values(), ids=str)
@pytest.mark.parametrize("end", LOSS_UNITS.values(), ids=str)
def test_every_conversion_is_undone_by_its_opposite(start, end):
    value = np.array([1.5, 2.5, 3.5])
    np.testing.assert_allclose(end.convert(start.convert(value, end, 4.2), start, 4.2), value, rtol=1e-13)


@pytest.mark.parametrize("header", ["perplexity", "ppl", "val_ppl", "Validation Perplexity", "loss (ppl)"])
def test_a_perplexity_is_converted_where_the_header_says_so(header):
    table = frame().assign(loss=lambda f: np.exp(f["loss"])).rename(columns={"loss": header})
    runs = read_runs(table)
    np.testing.assert_allclose(numbers(runs), ROWS, rtol=1e-14)
    assert runs.loss_unit == "nats per token"
    assert any("loss is converted from perplexity" in note for note in runs.notes)


def test_a_perplexity_is_converted_where_the_reader_says_so_and_refused_below_one():
    table = frame(loss_se=0.01).assign(loss=lambda f: np.exp(f["loss"]), loss_se=lambda f: 0.01 * f["loss"])
    runs = read_runs(table, loss_unit="perplexity")
    np.testing.assert_allclose(numbers(runs), ROWS, rtol=1e-14)
    np.testing.assert_allclose(runs.table["loss_se"], 0.01, rtol=1e-6)
    with pytest.raises(InvalidRuns, match=r"loss is not positive in 2 rows \(row 1: 0\.9, row 2: -3"):
        read_runs(frame(loss=[20, 0.9, -3, 10]), loss_unit="perplexity")


def test_bits_per_token_stay_and_their_limits_are_those_of_nats():
    bits = frame().assign(loss=lambda f: f["loss"] / np.log(2))
    runs = read_runs(bits.rename(columns={"loss": "loss (bits)"}))
    assert runs.loss_unit == "bits per token"
    np.testing.assert_array_equal(runs.table["loss"], bits["loss"])
    with pytest.raises(InvalidRuns, match=r"median 22, read as bits per token: guessing evenly loses at most 18\.8"):
        read_runs(frame(loss=[20, 22, 22, 24]), loss_unit="bits per token")
    with pytest.raises(InvalidRuns, match="read as bits per byte"):
        read_runs(frame(loss=[9, 10, 11, 12]), loss_unit="bits per byte")


def test_runs_with_different_tokenizers_stand_in_one_table():
    nats_per_byte = np.array([0.8, 0.75, 0.7, 0.65])
    ratio = np.array([4.0, 4.4, 3.9, 4.2])
    table = frame(loss=nats_per_byte * ratio, bpt=ratio)
    runs = read_runs(table, bytes_per_token="bpt")
    np.testing.assert_allclose(runs.table["loss"], nats_per_byte / np.log(2), rtol=1e-14)
    assert runs.loss_unit == "bits per byte"
    for wrong, said in ((-1, "a positive number"), ("gone", "no column 'gone'")):
        with pytest.raises(ValueError, match=said):
            read_runs(table, bytes_per_token=wrong)
    with pytest.raises(ValueError, match="From 'furlongs' no bits per byte"):
        read_runs(table, bytes_per_token=4.0, loss_unit="furlongs")


def test_names_of_loss_units():
    assert {str(loss_unit_of(word)) for word in ("bpb", "bits/byte", "Bits per byte")} == {"bits per byte"}
    assert loss_unit_of("furlongs") is None


# Compute that is not near k N D


@pytest.mark.parametrize(("unit", "scale"), [("GFLOP", 1e9), ("TFLOP", 1e12), ("PFLOP", 1e15), ("PF-days", PF_DAY)])
def test_compute_in_another_unit_is_named_with_it(unit, scale):
    flop = np.array([6 * n * d for n, d, _ in ROWS]) * 1e22 / scale
    table = frame(flop=flop).assign(n_tokens=lambda f: f["n_tokens"] * 1e10, n_params=lambda f: f["n_params"] * 1e12)
    with pytest.raises(InvalidRuns, match=rf"flop is .* times what the rule C = 6 N D gives.*in {unit}.*'{unit}'"):
        read_runs(table, on_invalid="drop")
    np.testing.assert_allclose(read_runs(table, units={"flop": unit}).table["flop"], flop * scale)


@pytest.mark.parametrize(
    ("factor", "said"),
    [(2, "as the forward pass alone costs (2 N D)"), (8, "as with recomputation of the forward pass (8 N D)")],
)
def test_compute_of_another_rule_is_named_with_the_cause(factor, said):
    (note,) = [n for n in read_runs(frame(flop=[factor * n * d for n, d, _ in ROWS])).notes if "differs" in n]
    assert said in note
    assert not [
        n for n in read_runs(frame(flop=[8 * n * d for n, d, _ in ROWS]), rule=FlopsRule(8)).notes if "differ" in n
    ]


def test_compute_that_counts_more_for_small_models_is_named():
    flop = [6 * (n + 3e4 * n ** (1 / 3)) * d for n, d, _ in ROWS]
    (note,) = [n for n in read_runs(frame(flop=flop)).notes if "differs" in n]
    assert "leave out embeddings" in note


# Tokens by the bytes of their text


@pytest.mark.parametrize(
    ("header", "settings", "scale"),
    [
        ("tokens (bytes)", {}, 1),
        ("train tokens (GB)", {}, 1e9),
        ("tokens_MB", {}, 1e6),
        ("text", {"columns": {"n_tokens": "text"}, "units": {"n_tokens": "bytes"}}, 1),
        ("text", {"columns": {"n_tokens": "text"}, "units": {"n_tokens": "GB"}}, 1e9),
    ],
)
def test_bytes_of_text_are_tokens_once_the_bytes_of_a_token_are_known(header, settings, scale):
    ratio = np.array([4.0, 4.4, 3.9, 4.2])
    text = np.array([d for _, d, _ in ROWS]) * ratio / scale
    table = frame(bpt=ratio).assign(n_tokens=text).rename(columns={"n_tokens": header})
    runs = read_runs(table, bytes_per_token="bpt", **settings)
    np.testing.assert_allclose(runs.table["n_tokens"], [d for _, d, _ in ROWS], rtol=1e-14)
    np.testing.assert_allclose(runs.table["flop"], [6 * n * d for n, d, _ in ROWS], rtol=1e-14)
    assert any(note.startswith("n_tokens is read in") and note.endswith(", as tokens.") for note in runs.notes)
    with pytest.raises(ValueError, match=f"'{header.replace('(', '.').replace(')', '.')}' is in .*bytes_per_token="):
        read_runs(table, **settings)


def test_bytes_are_no_unit_of_a_size():
    with pytest.raises(ValueError, match="'GB' is no unit of n_params"):
        read_runs(frame(), units={"n_params": "GB"})


def test_compute_in_gflop_is_named_by_size_and_tokens_and_the_way_out_is_one():
    table = frame(flop=lambda t: 6e-9 * t["n_params"] * t["n_tokens"])
    with pytest.raises(InvalidRuns, match=r"in GFLOP. Say so: units=\{'flop': 'GFLOP'\}"):
        read_runs(table)
    with pytest.raises(
        InvalidRuns, match=r"n_tokens .derived. runs from 2 to 90 tokens, which no run has.*units=\{'flop': 'GFLOP'\}"
    ):
        read_runs(table.drop(columns="n_tokens"))
    np.testing.assert_allclose(numbers(read_runs(table, units={"flop": "GFLOP"})), ROWS)
    with pytest.raises(InvalidRuns, match=r"GFLOP, PF-days or another multiple.*units=\{'flop': 'GFLOP'\}"):
        read_runs(table.drop(columns="n_tokens").iloc[:3])
