"""The package's own runs: what the table says about itself holds, and its losses behave as losses do."""

import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescale as bs

SCRIPT = Path(__file__).parents[2] / "notebooks/stdlib_campaign.py"
FOLDER = importlib.resources.files("bayescale.runs") / "data"
ROWS = {"fit": 32, "held-out": 5, "epochs": 4, "interrupted": 3, "stress": 4, "seed": 6}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    with (FOLDER / "stdlib.csv").open(encoding="utf-8") as lines:
        return pd.read_csv(lines)


@pytest.fixture(scope="module")
def fit(table) -> pd.DataFrame:
    return table[table["role"] == "fit"]


def cell(table: pd.DataFrame, width: int, n_tokens: int) -> float:
    """Loss of the run of the fit that has this width and these bytes."""
    found = table[(table["width"] == width) & (table["n_tokens"] == n_tokens) & (table["group"] == "stdlib")]
    (loss,) = found.loc[found["role"] == "fit", "loss"]
    return loss


def test_rows_by_role(table):
    assert table["role"].value_counts().to_dict() == ROWS
    assert table.loc[table["role"] == "fit", "group"].value_counts().to_dict() == {"stdlib": 22, "docstrings": 10}


def test_the_table_is_what_the_script_would_train(table):
    """In a process of its own: the script settles how jax runs."""
    code = f"""
import json, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import stdlib_campaign as c
print(json.dumps([[r.name, r.group, r.role, r.width, r.units * c.UNIT, r.seed, r.schedule] for r in c.campaign()]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    columns = ["run", "group", "role", "width", "n_tokens", "seed", "schedule"]
    assert table[columns].to_numpy(object).tolist() == json.loads(done.stdout)


def test_sizes_bytes_and_compute_agree_exactly(table):
    assert (table["n_params"] == 54 * table["width"] ** 2).all()
    assert (table["n_params_with_head"] == table["n_params"] + 128 * table["width"]).all()
    assert (table["n_params_total"] > table["n_params_with_head"]).all()
    assert (table["n_tokens"] == 64 * table["batch"] * table["steps"]).all()
    assert (table["flops"] == 6 * table["n_params"] * table["n_tokens"]).all()
    np.testing.assert_allclose(table["epochs"], table["n_tokens"] / table["unique_tokens"], atol=1e-4)
    assert (table["unique_tokens"] <= table["n_tokens"]).all()
    assert (table["epochs"] == 1).equals(table["role"] != "epochs")


def test_the_learning_rate_is_the_rule_s(table):
    np.testing.assert_allclose(
        table["lr"], 7e-3 * np.sqrt(32 / table["width"]) * np.sqrt(table["batch"] / 4), atol=1e-6
    )
    assert (table["decay_done"] == (table["schedule"] != "constant")).all()


def test_one_python_and_one_stream_a_corpus(table):
    assert table["python"].nunique() == 1
    assert table.groupby("group")["stream_sha256"].nunique().to_dict() == {"docstrings": 1, "stdlib": 1}
    assert table["stream_sha256"].str.fullmatch("[0-9a-f]{64}").all()
    card = (FOLDER / "README.md").read_text("utf-8")
    for said in (table["python"].iloc[0], *table["stream_sha256"].unique()):
        assert said in card


@pytest.mark.parametrize(("held", "rises"), [("width", "n_tokens"), ("n_tokens", "width")])
def test_more_data_or_a_wider_model_lowers_the_loss(fit, held, rises):
    for _, rows in fit.groupby(["group", held]):
        losses = rows.sort_values(rises)["loss"].to_numpy()
        assert (np.diff(losses) < 0).all()


def test_losses_are_those_of_models_that_learnt(table):
    """Equal odds over 128 symbols give log 128 = 4.85 nats a byte."""
    assert table["loss"].between(1.0, 3.0).all()
    assert (table["window_se"] / table["loss"]).between(0.001, 0.02).all()


def test_the_larger_held_out_runs_lie_beyond_the_fit(table, fit):
    fit, held = fit[fit["group"] == "stdlib"], table[table["role"] == "held-out"]
    times = held["flops"] / fit["flops"].max()
    assert (times > 1).sum() == 3
    assert times[times > 1].between(5, 14).all()
    assert held.loc[times > 1, "loss"].max() < fit["loss"].min()


def test_repeated_data_teach_less_than_fresh_ones(table):
    repeated = table[table["role"] == "epochs"]
    assert sorted(repeated["epochs"].unique()) == [2, 4, 8, 16]
    assert repeated["unique_tokens"].nunique() == 1
    for row in repeated[repeated["epochs"] == 16].itertuples():
        assert row.loss > 1.01 * cell(table, row.width, row.n_tokens)
    for row in repeated[repeated["epochs"] == 2].itertuples():
        assert row.loss == pytest.approx(cell(table, row.width, row.n_tokens), rel=0.01)


def test_an_interrupted_run_is_worse_than_its_finished_end(table):
    for width, rows in table[table["role"] == "interrupted"].groupby("width"):
        half, stopped = rows[rows["schedule"] == "constant"].sort_values("n_tokens").itertuples()
        (end,) = rows[rows["schedule"] == "cooldown"].itertuples()
        assert half.loss > stopped.loss > 1.005 * end.loss
        assert stopped.n_tokens == end.n_tokens
        assert end.loss == pytest.approx(cell(table, width, end.n_tokens), rel=0.02)


def test_seeds_scatter_by_less_than_a_percent(table):
    for row in table[table["role"] == "seed"].itertuples():
        assert row.loss == pytest.approx(cell(table, row.width, row.n_tokens), rel=0.01)


def test_fit_and_held_out_runs_are_loaded_apart(table):
    fit, held = bs.data.load("stdlib"), bs.data.load("stdlib", "held-out")
    assert (len(fit), len(held)) == (22, 5)
    assert not set(fit.table["run"]) & set(held.table["run"])
    assert fit.loss_unit == held.loss_unit == "nats per byte"
    assert fit.table["loss_se"].isna().all()  # the error of the windows is one for all runs
    assert fit.table["flop"].tolist() == (6 * fit.table["n_params"] * fit.table["n_tokens"]).tolist()


@pytest.mark.parametrize(("name", "file"), [("stdlib", "stdlib.csv"), ("simulated", "simulated.csv")])
def test_a_row_is_named_by_its_line_of_the_file(name, file):
    lines = (FOLDER / file).read_text("utf-8").splitlines()
    for row in bs.data.load(name).table.itertuples():
        assert str(row.loss) in lines[row.line - 1].split(",")


def test_other_roles_and_corpora_by_name(table):
    assert len(bs.data.load("stdlib", ["fit", "seed"])) == 28
    both = bs.data.load("stdlib", group=["stdlib", "docstrings"])
    assert both.labels("group")[1] == ("docstrings", "stdlib")
    assert len(both) == 32


def test_the_simulated_table_is_labelled(table):
    runs = bs.data.load("simulated")
    assert len(runs) == 63
    assert any("SIMULATED" in note for note in runs.notes)
    assert runs.table["origin"].str.startswith("simulated").all()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("stdlb",), "known: simulated, stdlib. Did you mean 'stdlib'"),
        (("stdlib", "heldout"), "No run has the role 'heldout'; known: epochs, fit, held-out"),
        (("simulated", "fit"), "neither roles nor groups"),
    ],
)
def test_an_unknown_name_says_what_is_known(argv, message):
    with pytest.raises(ValueError, match=message):
        bs.data.load(*argv)


def test_a_role_that_a_corpus_lacks_is_named():
    with pytest.raises(ValueError, match="No run has role 'epochs' and group 'docstrings'"):
        bs.data.load("stdlib", "epochs", group="docstrings")


@pytest.mark.parametrize("name", ["data", "public"])
def test_the_roof_opens_it_in_a_new_process(name):
    code = f"import bayescale as bs; print(bs.{name}.names())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "stdlib" in done.stdout or "chinchilla-epoch" in done.stdout
