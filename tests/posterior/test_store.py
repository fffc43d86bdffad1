"""Claims: a saved fit comes back as it was, a failed save harms nothing, and opening a file runs no code."""

import dataclasses
import datetime as dt
import json
import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from simulated_fits import METADATA, Never, Outside

from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Model
from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.posterior.store import SCHEMA, load
from bayescale.runs.table import Runs


@pytest.fixture(scope="session")
def slim(laplace: Posterior) -> Posterior:
    """A fit of which only the draws are kept: quick to write."""
    tree = xr.DataTree.from_dict({"posterior": laplace.tree["posterior"].to_dataset()})
    return dataclasses.replace(laplace, tree=tree, metadata=METADATA)


@pytest.fixture(scope="session")
def slim_file(slim: Posterior, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What `save` wrote of it."""
    return slim.save(tmp_path_factory.mktemp("slim") / "fit.nc").read_bytes()


@pytest.fixture(scope="session")
def partial_file(partial: Posterior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole fit with groups, saved."""
    return partial.save(tmp_path_factory.mktemp("partial") / "fit.nc")


def assert_same(loaded: Posterior, saved: Posterior) -> None:
    assert set(loaded.tree.children) == set(saved.tree.children)
    for name, group in saved.tree.children.items():
        xr.testing.assert_identical(loaded.tree[name].to_dataset(), group.to_dataset())
        kinds = {k: v.dtype.kind for k, v in group.variables.items()}
        assert {k: v.dtype.kind for k, v in loaded.tree[name].variables.items()} == kinds
    assert saved.runs is not None
    assert loaded.runs is not None
    pd.testing.assert_frame_equal(loaded.runs.table, saved.runs.table)
    pd.testing.assert_frame_equal(loaded.runs.left_out, saved.runs.left_out)
    for field in ("rule", "source", "columns", "notes", "loss_unit", "table_hash"):
        assert getattr(loaded.runs, field) == getattr(saved.runs, field)
    for field in ("model", "law", "rule", "checks", "status", "info", "metadata", "groups", "reference", "largest"):
        assert getattr(loaded, field) == getattr(saved, field)


@pytest.mark.parametrize("name", ["passed", "changed"])
def test_a_fit_comes_back_as_it_was(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    saved = request.getfixturevalue(name)
    assert_same(load(saved.save(tmp_path / "fit.nc")), saved)


def test_a_fit_with_groups_comes_back_bit_for_bit(partial: Posterior, partial_file: Path) -> None:
    """With the draws of a group that is not in the table, which are made when asked for."""
    loaded = load(partial_file)
    assert_same(loaded, partial)
    for group in (*partial.groups, NewGroup(), PopulationMean()):
        for name, values in partial.coefficients(group).items():
            np.testing.assert_array_equal(loaded.coefficients(group)[name], values)


def test_what_was_loaded_can_be_saved(slim: Posterior, slim_file: bytes, tmp_path: Path) -> None:
    (tmp_path / "fit.nc").write_bytes(slim_file)
    again = load(load(tmp_path / "fit.nc").save(tmp_path / "again.nc"))
    assert_same(again, slim)


def test_metadata_come_back(slim: Posterior, tmp_path: Path) -> None:
    """Dates and paths as text, numbers of numpy as plain ones."""
    more = {
        **METADATA,
        "day": dt.date(2026, 11, 30),
        "time": dt.datetime(2026, 11, 30, 12, 0, 0),
        "path": Path("runs") / "été.csv",
        "count": np.int64(3),
        "array": np.array([1.5, 2.5]),
        "deep": {"list": [{"a": [None, True, "ü\n\"'"]}, []], "empty": {}},
        "": "a key without a name",
    }
    loaded = load(dataclasses.replace(slim, metadata=more).save(tmp_path / "fit.nc")).metadata
    assert loaded == {
        **more,
        "day": "2026-11-30",
        "time": "2026-11-30T12:00:00",
        "path": os.fspath(more["path"]),
        "count": 3,
        "array": [1.5, 2.5],
    }


@pytest.mark.parametrize("value", [float("nan"), {"deep": [float("inf")]}, object(), {1, 2}, b"bytes", 1j, "\ud800"])
def test_metadata_that_no_file_holds_are_refused_before_sampling(one_table: Runs, value: Any) -> None:
    with pytest.raises(ValueError, match=r"metadata\['odd'\]"):
        fit(one_table, Chinchilla(), drift=None, engine=Never(), metadata={"note": "fine", "odd": value})


@pytest.mark.parametrize("fault", ["write", "replace"])
@pytest.mark.parametrize("older", [False, True])
def test_a_failed_save_leaves_what_was_there(
    slim: Posterior, slim_file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, older: bool
) -> None:
    path = tmp_path / "fit.nc"
    if older:
        path.write_bytes(slim_file)

    def half(self: xr.DataTree, filepath: Any, **_: Any) -> None:
        Path(filepath).write_bytes(b"\x89HDF half a file")
        raise OSError("No space left on device")

    def moved(*_: Any) -> None:
        raise PermissionError("not allowed")

    with monkeypatch.context() as patch:
        if fault == "write":
            patch.setattr(xr.DataTree, "to_netcdf", half)
        else:
            patch.setattr(os, "replace", moved)
        with pytest.raises(OSError, match=r"No space left|not allowed"):
            slim.save(path)
    assert [p.name for p in tmp_path.iterdir()] == (["fit.nc"] if older else [])
    if older:
        assert path.read_bytes() == slim_file
    assert_same(load(slim.save(path)), slim)  # the draws in memory are none the worse


def test_saving_changes_nothing_in_memory(slim: Posterior, tmp_path: Path) -> None:
    slim.save(tmp_path / "fit.nc")
    assert set(slim.tree.children) == {"posterior"}
    assert not slim.tree.dataset.variables


def test_a_folder_that_is_not_there_is_named(laplace: Posterior, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"results does not exist; fit\.nc was not written"):
        laplace.save(tmp_path / "results" / "fit.nc")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no saved fit .*none\.nc"):
        load(tmp_path / "none.nc")


def test_a_file_that_is_no_fit_is_refused(slim_file: bytes, tmp_path: Path) -> None:
    other = tmp_path / "other.nc"
    xr.Dataset({"temperature": ("x", [1.0, 2.0])}).to_netcdf(other, engine="h5netcdf")
    files = {
        "empty": b"",
        "text": b"n_params,n_tokens,loss\n1e9,2e10,2.5\n",
        "random": np.random.default_rng(0).bytes(20_000),
        "another": other.read_bytes(),
        "pickled": pickle.dumps({"A": 482.01}),
        **{f"cut at {share}": slim_file[: int(share * len(slim_file))] for share in (0.001, 0.1, 0.5, 0.9, 0.999)},
    }
    path = tmp_path / "broken.nc"
    for name, content in files.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"broken\.nc is not a fit saved by bayescale, or is damaged"):
            pytest.fail(f"{name}: {load(path)}")


def edited(saved: bytes, path: Path, change: Any) -> Path:
    """A saved fit whose settings were edited by hand."""
    path.write_bytes(saved)
    with h5py.File(path, "a") as file:
        settings = json.loads(file["bayescale"][()])
        change(settings)
        file["bayescale"][()] = json.dumps(settings)
    return path


def test_a_later_schema_is_refused(slim_file: bytes, tmp_path: Path) -> None:
    path = edited(slim_file, tmp_path / "fit.nc", dict.clear)  # where it differs is not known here
    with h5py.File(path, "a") as file:
        file.attrs["schema_version"] = SCHEMA + 1
    with pytest.raises(ValueError, match=rf"schema version {SCHEMA + 1}; this bayescale reads up to {SCHEMA}"):
        load(path)


@pytest.mark.parametrize("key", ["model", "rule", "runs", "table", "checks", "info", "metadata"])
def test_missing_settings_are_damage(slim_file: bytes, tmp_path: Path, key: str) -> None:
    path = edited(slim_file, tmp_path / "fit.nc", lambda settings: settings.pop(key))
    with pytest.raises(ValueError, match=rf"fit\.nc is damaged .*{key}"):
        load(path)


def test_settings_that_are_not_json_are_damage(slim_file: bytes, tmp_path: Path) -> None:
    path = edited(slim_file, tmp_path / "fit.nc", lambda settings: None)
    with h5py.File(path, "a") as file:
        file["bayescale"][()] = '{"model": '
    with pytest.raises(ValueError, match=r"fit\.nc is damaged"):
        load(path)


def test_an_edited_table_is_refused(slim_file: bytes, tmp_path: Path) -> None:
    path = edited(slim_file, tmp_path / "fit.nc", lambda settings: None)
    with h5py.File(path, "a") as file:
        settings = json.loads(file["bayescale"][()])
        file["runs"][f"column_{list(settings['table']).index('loss')}"][3] *= 1.0001
    with pytest.raises(ValueError, match="not the one that was saved"):
        load(path)


@pytest.mark.parametrize("name", ["os", "../../evil", "bayescale.laws.chinchilla", "_law"])
def test_only_laws_of_the_folder_are_opened(slim_file: bytes, tmp_path: Path, name: str) -> None:
    path = edited(slim_file, tmp_path / "fit.nc", lambda settings: settings["model"].update(law=name))
    with pytest.raises(ValueError, match=r"Unknown law .*known: chinchilla"):
        load(path)


def test_a_saved_fit_holds_numbers_and_text_only(
    partial: Posterior, partial_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a pickle was read")

    kinds = set()

    def look(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            kinds.add("text" if h5py.check_string_dtype(item.dtype) else item.dtype.kind)

    with h5py.File(partial_file) as file:
        file.visititems(look)
    assert kinds <= {"text", "f", "i", "u", "b"}
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refused)
    assert load(partial_file).groups == partial.groups


def test_a_published_law_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"had by its name, published\(name\)"):
        published("besiroglu-2024").save(tmp_path / "law.nc")
    assert not list(tmp_path.iterdir())


def test_a_law_from_elsewhere_is_not_saved(laplace: Posterior, tmp_path: Path) -> None:
    """A file names its law, and only those in the folder can be found by name."""
    other = dataclasses.replace(laplace, model=Model(Outside(), drift=None))
    with pytest.raises(ValueError, match=r"Outside is not in the folder bayescale\.laws"):
        other.save(tmp_path / "law.nc")
    assert not list(tmp_path.iterdir())
