"""A fit as one netCDF file: draws and table as arrays, everything else as one JSON text.

Opening a file runs no code: it holds numbers and text, and names of laws, priors and rules are
looked up among those that are installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescale import laws
from bayescale._files import put
from bayescale.model import noise, pooling
from bayescale.model.drift import Drift
from bayescale.model.joint import Model
from bayescale.model.shocks import Shocks
from bayescale.parameter import Fixed, LogitNormal, LogNormal, Normal, Prior
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.posterior import Posterior
from bayescale.runs.flops import ComputeRule
from bayescale.runs.table import Runs

SCHEMA = 3  # 1 had no drift and 2 no shocks: a reader of them would take a fit with either for one without
INSIDE = ("runs", "law_alone")  # of a file: what is not a group of draws
# Of `Posterior.info`: what whoever repeats a fit has to give. The rest is found by it, or the machine's.
GIVEN = (
    *("engine", "chains", "draws", "warmup", "target_accept", "max_tree_depth", "interrupted", "delta", "searches"),
    *("resampled", "seed", "loss_unit", "n_runs", "table_hash", "versions"),
)
PRIORS: dict[str, type[Prior] | type[Fixed]] = {c.__name__: c for c in (Normal, LogNormal, LogitNormal, Fixed)}
POOLINGS = {c.__name__: c for c in (pooling.Complete, pooling.Partial, pooling.Separate)}
NOISES = {c.__name__: c for c in (noise.StudentT, noise.Gaussian)}


def json_text(value: Any) -> str:
    """JSON text; dates, paths and the keys of mappings become text, numpy numbers plain ones.

    Raises
    ------
    ValueError
        For a value that JSON does not hold (NaN and infinity among them), or text that UTF-8 does not.
    """

    def plain(v: Any) -> Any:
        if hasattr(v, "isoformat"):
            return v.isoformat()
        if isinstance(v, os.PathLike):
            return os.fspath(v)
        if isinstance(v, np.generic | np.ndarray):
            return v.tolist()
        raise ValueError(f"A {type(v).__name__} ({v!r:.60}) cannot be saved; use text, numbers, lists or mappings.")

    written = json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False)
    written.encode()  # half of a surrogate pair is text to Python, but to no file
    return written


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that `save` could not write, before any sampling; ValueError names the key."""
    for key, value in metadata.items():
        try:
            json_text({key: value})
        except (TypeError, ValueError) as problem:
            raise ValueError(f"metadata[{key!r}]: {problem}") from None


def save(posterior: Posterior, path: str | Path) -> Path:
    """Write a posterior as one netCDF file, to a temporary name first and then moved into place.

    Raises
    ------
    ValueError
        If the posterior has no table (a published law), or its law is not one of this package's.
    FileNotFoundError
        If the folder does not exist.
    """
    return write(as_tree(posterior), path)


def as_tree(posterior: Posterior) -> xr.DataTree:
    """A posterior as it is written; ValueError as in `save`."""
    if posterior.runs is None:
        raise ValueError("A published law is not saved; it is had by its name, published(name).")
    tree = posterior.tree.copy()
    tree.dataset = root(_config(posterior))
    tree["runs"] = xr.DataTree(_columns(posterior.runs.table))
    if posterior.law_alone:
        tree["law_alone"] = posterior.law_alone.tree.copy()
    return tree


def root(config: Mapping[str, Any]) -> xr.Dataset:
    """What stands at the root of a file: all that is no array."""
    return xr.Dataset({"bayescale": ((), json_text(config))}, attrs={"schema_version": SCHEMA})


def write(tree: xr.DataTree, path: str | Path) -> Path:
    """Write to a temporary name, then move into place; FileNotFoundError if the folder does not exist."""
    path = Path(path)
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; {path.name} was not written.")
    with put(path) as part:
        tree.to_netcdf(part, engine="h5netcdf")
    return path


def load(path: str | Path) -> Posterior:
    """Read a posterior that `save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a saved fit, is damaged, or was written by a later version.
    """
    tree, config = read(path)
    if config.get("kind"):
        raise ValueError(f"{path} holds a {config['kind']}, with its law's fit inside; read it with load_link(path).")
    with whole(path):
        return _posterior(tree, config)


def read(path: str | Path) -> tuple[xr.DataTree, dict[str, Any]]:
    """The arrays of a file and what stands at its root; errors as in `load`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no saved fit {path}; `bayescale fit RUNS -o {path}` makes one.")
    try:
        tree = xr.load_datatree(path, engine="h5netcdf")
        text = str(tree.dataset["bayescale"].values)
        version = int(tree.dataset.attrs["schema_version"])
    except (OSError, KeyError, ValueError, TypeError) as problem:
        raise ValueError(f"{path} is not a fit saved by bayescale, or is damaged ({problem}).") from problem
    if version > SCHEMA:
        raise ValueError(f"{path} has schema version {version}; this bayescale reads up to {SCHEMA}. Update bayescale.")
    with whole(path):
        return tree, json.loads(text)


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[None]:
    """ValueError that names the file, where something within it is missing or unreadable."""
    try:
        yield
    except (KeyError, TypeError, json.JSONDecodeError) as problem:
        raise ValueError(f"{path} is damaged ({problem!r}).") from problem


def of_tree(tree: xr.DataTree) -> Posterior:
    """A posterior from what `as_tree` made of it."""
    return _posterior(tree, json.loads(str(tree.dataset["bayescale"].values)))


def _posterior(tree: xr.DataTree, c: Mapping[str, Any]) -> Posterior:
    runs = Runs.from_dict(c["runs"], _table(tree["runs"].to_dataset(), c["table"]))
    rule, beside = ComputeRule.from_dict(c["rule"]), c.get("law_alone")

    def part(within: xr.DataTree, c: Mapping[str, Any]) -> Posterior:
        groups = {name: group.to_dataset() for name, group in within.children.items() if name not in INSIDE}
        checks = tuple(Check(**k) for k in c["checks"])
        gate = tuple(Check(**k) for k in c.get("gate", ()))  # absent from files of the first schema
        return Posterior(xr.DataTree.from_dict(groups), _model(c["model"]), runs, rule, checks, c["info"], gate=gate)

    alone = part(tree["law_alone"], beside) if beside else None  # type: ignore[arg-type]
    return dataclasses.replace(part(tree, c), metadata=c["metadata"], law_alone=alone)


def _config(posterior: Posterior) -> dict[str, Any]:
    return {
        **_fitted(posterior),
        "law_alone": posterior.law_alone and _fitted(posterior.law_alone),
        "rule": posterior.rule.to_dict(),
        "runs": posterior.runs.to_dict() if posterior.runs else None,
        "table": {
            name: "number" if posterior.runs.table[name].dtype.kind in "biuf" else "json"  # type: ignore[union-attr]
            for name in posterior.runs.table  # type: ignore[union-attr]
        },
        "metadata": dict(posterior.metadata),
    }


def _fitted(posterior: Posterior) -> dict[str, Any]:
    """What one model's draws rest on."""
    m = posterior.model
    name = type(m.law).__module__.rsplit(".", 1)[-1]
    if type(m.law).__module__ != f"{laws.__name__}.{name}":
        raise ValueError(
            f"{type(m.law).__name__} is not in the folder {laws.__name__}: a saved fit names its law by file."
        )
    return {
        "model": {
            "law": name,
            "law_settings": dataclasses.asdict(m.law),  # type: ignore[call-overload]
            "pooling": {
                "kind": type(m.pooling).__name__,
                "by": m.pooling.by,
                "per_parameter": dict(m.pooling.per_parameter),
            },
            "noise": type(m.noise).__name__,
            "priors": named_priors(m.priors),
            **({"shocks": [dataclasses.asdict(s) for s in m.shocks]} if m.shocks else {}),
            "drift": m.drift and {**dataclasses.asdict(m.drift), "priors": named_priors(m.drift.priors)},
        },
        "checks": [c.to_dict() for c in posterior.checks],
        "gate": [c.to_dict() for c in posterior.gate],
        "info": dict(posterior.info),
    }


def recipe(posterior: Posterior) -> dict[str, Any]:
    """What a fit was made of, as JSON values: its model, rule, table's hash, engine, seed and versions.

    Whoever fits the same table in the same way with the same versions has the same recipe, on any machine.

    Raises
    ------
    ValueError
        If the posterior has no table (a published law), or its law is not one of this package's.
    """
    runs, by = posterior.runs, posterior.model.pooling.by
    if runs is None:
        raise ValueError("A published law has no recipe: nobody fitted it here.")
    labels = hashlib.sha256(json.dumps(runs.labels(by)[0].tolist()).encode()).hexdigest() if by else None
    given = {name: posterior.info[name] for name in GIVEN if name in posterior.info}
    model = posterior.model
    priors = {p.name: repr(model.prior(p)) for p in model.parameters}  # defaults too: a version may change them
    made = {"model": _fitted(posterior)["model"], "priors": priors, "rule": posterior.rule.to_dict()}
    return json.loads(json_text({**made, "groups_hash": labels, **given}))


def fingerprint(recipe: Mapping[str, Any]) -> str:
    """SHA-256 of a recipe as JSON with its keys in order, without spaces, in UTF-8."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def named_priors(priors: Mapping[str, Prior | Fixed]) -> dict[str, Any]:
    return {k: {"prior": type(v).__name__, **dataclasses.asdict(v)} for k, v in priors.items()}


def priors(named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: PRIORS[settings["prior"]](**{k: v for k, v in settings.items() if k != "prior"})
        for name, settings in named.items()
    }


def _model(c: Mapping[str, Any]) -> Model:
    drift = c.get("drift")  # absent from files of the first schema
    kind = POOLINGS[c["pooling"]["kind"]]
    chosen = kind() if kind is pooling.Complete else kind(c["pooling"]["by"], c["pooling"]["per_parameter"])
    law = dataclasses.replace(laws.get(c["law"]), **c["law_settings"])  # type: ignore[type-var]
    told = Drift(**{**drift, "priors": priors(drift["priors"])}) if drift else None
    shared = [Shocks(**s) for s in c.get("shocks", ())]  # absent where there are none
    return Model(law, chosen, NOISES[c["noise"]](), priors(c["priors"]), told, shared)


def _columns(table: pd.DataFrame) -> xr.Dataset:
    """Numbers as they are, any other cell as JSON; numbered, since a header may hold what netCDF forbids."""
    arrays = {}
    for i, name in enumerate(table):
        cells = table[name]
        number = cells.dtype.kind in "biuf"
        arrays[f"column_{i}"] = (
            cells.to_numpy() if number else np.array([json_text(_plain(v)) for v in cells], dtype=str)
        )
    return xr.Dataset({k: ("row", v) for k, v in arrays.items()})


def _plain(cell: Any) -> Any:
    return None if cell is pd.NA or (isinstance(cell, float) and np.isnan(cell)) else cell


def _table(columns: xr.Dataset, kinds: Mapping[str, str]) -> pd.DataFrame:
    out = {}
    for i, (name, kind) in enumerate(kinds.items()):
        cells = columns[f"column_{i}"].values
        out[name] = cells if kind == "number" else [json.loads(str(v)) for v in cells]
    return pd.DataFrame(out)
