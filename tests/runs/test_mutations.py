"""A damaged file ends in a clear error or in a right table: no other error, no hang, no memory without end."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs import InvalidRuns, read_runs

N_ROWS = 6
TABLE = pd.DataFrame(
    {
        "run": [f"r{k}" for k in range(N_ROWS)],
        "params": [10**8, 3 * 10**8, 10**9, 2 * 10**9, 7 * 10**9, 13 * 10**9],
        "tokens": [2 * 10**9, 6 * 10**9, 2 * 10**10, 4 * 10**10, 14 * 10**10, 26 * 10**10],
        "loss": [3.20141, 2.90233, 2.61877, 2.50129, 2.33361, 2.28713],
    }
)
LINES = "\n".join(json.dumps(row) for row in TABLE.to_dict("records"))


def files():
    """The same table in several kinds of file: (suffix, bytes)."""
    text = TABLE.to_csv(index=False)
    return [
        ("csv", text.encode()),
        ("tsv", TABLE.to_csv(index=False, sep="\t").encode("utf-8-sig")),
        ("csv", TABLE.to_csv(index=False, sep=";", decimal=",").encode()),
        ("csv", text.encode("utf-16")),
        ("jsonl", LINES.encode()),
    ]


def binary_files(folder):
    TABLE.to_parquet(folder / "a.parquet")
    TABLE.to_excel(folder / "a.xlsx", index=False)
    return [(kind, (folder / f"a.{kind}").read_bytes()) for kind in ("parquet", "xlsx")]


def mutated(rng, content):
    """Bytes flipped, cut, doubled, moved, or replaced by what breaks parsers."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, kind = int(rng.integers(len(data) or 1)), int(rng.integers(6))
        if kind == 0 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 30))]
        elif kind == 3:
            data[at:at] = data[at : at + int(rng.integers(1, 80))]
        elif kind == 4:
            pieces = [
                b'"',
                b"\x00",
                b",",
                b";",
                b"\n",
                b"\r",
                b"1e999",
                b"-",
                b"NaN",
                b"\xff",
                b"9" * 5000,
                b"[" * 3000,
            ]
            data[at:at] = pieces[int(rng.integers(len(pieces)))]
        else:
            lines = bytes(data).split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def survive(path, **options):
    """Read, and say whether it was read; any error but those that a person can act on is a failure."""
    try:
        runs = read_runs(path, **options)
    except (ValueError, OSError):
        return False
    numbers = runs.table[["n_params", "n_tokens", "flop", "loss"]].to_numpy()
    assert np.isfinite(numbers).all()
    assert (numbers > 0).all()
    assert (runs.table["n_params"] >= 1e3).all()
    return True


def mutate_many(folder, count, seed):
    rng = np.random.default_rng(seed)
    kinds = [*files(), *binary_files(folder)]
    read = 0
    for k in range(count):
        kind, content = kinds[k % len(kinds)]
        path = folder / f"m.{kind}"
        path.write_bytes(mutated(rng, content))
        read += survive(path, on_invalid=("error", "drop")[k % 2])
    return read


def test_hundreds_of_damaged_files(tmp_path, caplog):
    caplog.set_level(logging.ERROR, "bayescale")
    assert 0 < mutate_many(tmp_path, 350, seed=1) < 300


@pytest.mark.parametrize("error", [KeyError("name"), RecursionError("deep"), OSError("cut")])
def test_whatever_a_library_raises_of_a_damaged_file_is_said(tmp_path, monkeypatch, error):
    def damaged(*args, **options):
        raise error

    binary_files(tmp_path)
    monkeypatch.setattr(pd, "read_parquet", damaged)
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_runs(tmp_path / "a.parquet")


@pytest.mark.slow
def test_ten_thousand_damaged_files(tmp_path, caplog):
    import resource

    caplog.set_level(logging.ERROR, "bayescale")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mutate_many(tmp_path, 10_000, seed=2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


@pytest.mark.parametrize(("kind", "content"), files(), ids=["csv", "tsv", "semicolon", "utf-16", "jsonl"])
def test_columns_may_stand_in_any_order(tmp_path, kind, content):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(content)
    np.testing.assert_array_equal(read_runs(path).table["loss"], TABLE["loss"])


CORRUPT = st.one_of(
    st.sampled_from(["", "nan", "inf", "-1", "0", "diverged", "1,5e9", "2.5.1", "١٢", "7Bn", "0x1F", "1e400", "–3"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='",'), max_size=8),
    st.floats(1e-9, 1e30).map(str),
)


@settings(max_examples=150)
@given(row=st.integers(0, N_ROWS - 1), column=st.sampled_from(["params", "tokens", "loss"]), cell=CORRUPT)
def test_one_corrupt_cell_is_harmless_or_named_by_row_and_column(tmp_path_factory, row, column, cell):
    table = TABLE.astype(object)
    table.loc[row, column] = cell
    path = tmp_path_factory.mktemp("cell") / "a.csv"
    path.write_text("\n".join(",".join(f'"{c}"' for c in line) for line in [table.columns, *table.to_numpy()]), "utf-8")
    try:
        runs = read_runs(path)
    except InvalidRuns as refused:
        problems = refused.problems
    else:
        problems = None
    if problems is not None:
        here = problems["line"].isna() | (problems["line"] == row + 2)
        assert (problems["column"][here] == column).any()
        return
    others = runs.table["line"] != row + 2
    canonical = {"params": "n_params", "tokens": "n_tokens", "loss": "loss"}
    for header, name in canonical.items():
        np.testing.assert_array_equal(runs.table.loc[others, name], TABLE[header][others.to_numpy()])
        if header != column:
            np.testing.assert_array_equal(runs.table[name], TABLE[header])
