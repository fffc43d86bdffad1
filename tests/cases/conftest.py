"""Inputs that people bring, as files, each from the shared cases and made here; fits of them, made once."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from case_tables import OWN
from typer.testing import CliRunner

import bayescale as bs
from bayescale.model.pooling import Pooling


@pytest.fixture(scope="session", params=["shared", "own"])
def source(request: pytest.FixtureRequest) -> str:
    """Whose inputs: those of the shared cases, or those made here."""
    return request.param


@pytest.fixture(scope="session")
def case(source: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Path of an input by its name, as ``fit-01/runs.csv``."""
    if source == "shared":
        shared: Path = request.getfixturevalue("shared")
        return lambda name: shared / "cases" / name
    made = tmp_path_factory.mktemp("own")

    def own(name: str) -> Path:
        path = made / name.replace("/", "-")
        if not path.exists():
            OWN[name]().to_csv(path, index=False)
        return path

    return own


@pytest.fixture(scope="session")
def shared_case(shared: Path) -> Callable[[str], Path]:
    """Path of an input whose reference values hold for it alone."""
    return lambda name: shared / "cases" / name


@pytest.fixture(scope="session")
def fitted(compile_cache: Path) -> Callable[..., bs.Posterior]:
    """Fit a table, or hand back the fit of an equal table with the same settings."""
    kept: dict[Any, bs.Posterior] = {}

    def fit(
        table: Path | pd.DataFrame | bs.Runs, pooling: Pooling | None = None, seed: int = 1, **nuts: Any
    ) -> bs.Posterior:
        runs, engine = table if isinstance(table, bs.Runs) else bs.read_runs(table), bs.NUTS(**nuts)
        key = (runs.table_hash, str(pooling), seed, dataclasses.astuple(engine))
        if key not in kept:
            kept[key] = bs.fit(runs, bs.laws.get("chinchilla"), drift=None, pooling=pooling, engine=engine, seed=seed)
        return kept[key]

    return fit


@pytest.fixture
def bayescale(compile_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Run a command in this process: exit_code, stdout, stderr."""
    from bayescale.cli import app

    monkeypatch.setattr(bs, "use_compile_cache", lambda: None)  # the user's own folder is left alone
    log = logging.getLogger("bayescale")
    handlers, level = log.handlers, log.level
    yield lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    log.handlers = handlers  # a command logs to its own standard error, which is closed by now
    log.setLevel(level)
