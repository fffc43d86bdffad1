"""A link and the fit of its law as one netCDF file: the same form as a fit alone, which lies within it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescale import links
from bayescale.model import score
from bayescale.model.joint import Model
from bayescale.model.noise import Noise
from bayescale.posterior import store
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.linked import Linked
from bayescale.posterior.predictable import Verdict
from bayescale.runs.scores import Scores, Task

KIND = "link"
INSIDE = ("scores", "law")  # of a file: what is not a group of draws
NUMBERS = ("loss", "score", "questions")


def save(linked: Linked, path: str | Path) -> Path:
    """Write a link, the fit of its law included, as one netCDF file; see `bayescale.posterior.store.save`."""
    name = type(linked.link).__module__.rsplit(".", 1)[-1]
    if type(linked.link).__module__ != f"{links.__name__}.{name}":
        raise ValueError(
            f"{type(linked.link).__name__} is not in the folder {links.__name__}: a saved link is named by its file."
        )
    config = {
        "kind": KIND,
        "link": name,
        "noise": type(linked.model.noise).__name__,
        "priors": store.named_priors(linked.model.priors),
        "scores": linked.scores.to_dict(),
        "verdicts": [dataclasses.asdict(v) for v in linked.verdicts],
        "checks": [c.to_dict() for c in linked.checks],
        "info": dict(linked.info),
        "metadata": dict(linked.metadata),
        "has_law": linked.posterior is not None,
    }
    tree = linked.tree.copy()
    tree.dataset = store.root(config)
    t = linked.scores.table
    columns = {k: ("row", t[k].to_numpy(float if k in NUMBERS else str)) for k in t}
    tree["scores"] = xr.DataTree(xr.Dataset(columns))
    if linked.posterior:
        tree["law"] = store.as_tree(linked.posterior)
    return store.write(tree, path)


def load_link(path: str | Path) -> Linked:
    """Read a link that `Linked.save` wrote, with the fit of its law.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a saved link, is damaged, or was written by a later version.
    """
    tree, config = store.read(path)
    if config.get("kind") != KIND:
        raise ValueError(f"{path} holds a fit and no link; read it with load(path).")
    with store.whole(path):
        return _linked(tree, config)


def _linked(tree: xr.DataTree, c: Mapping[str, Any]) -> Linked:
    verdicts = tuple(Verdict(**v) for v in c["verdicts"])
    noise: Noise = store.NOISES[c["noise"]]()
    n_tasks = sum(v.predictable for v in verdicts)
    model: Model = score.model(links.get(c["link"]), noise, store.priors(c["priors"]), n_tasks)
    groups = {name: group.to_dataset() for name, group in tree.children.items() if name not in INSIDE}
    own = tree["scores"].to_dataset()
    table = pd.DataFrame({k: own[k].values if k in NUMBERS else own[k].values.astype(str) for k in own})
    tasks = {name: Task(**task) for name, task in c["scores"]["tasks"].items()}
    scores = Scores(table.astype(dict.fromkeys(NUMBERS, np.float64)), tasks, tuple(c["scores"]["notes"]),
                    c["scores"]["loss_unit"])  # fmt: skip
    law = store.of_tree(tree["law"]) if c["has_law"] else None  # pyright: ignore[reportArgumentType]
    checks = tuple(Check(**k) for k in c["checks"])
    return Linked(xr.DataTree.from_dict(groups), model, scores, verdicts, checks, c["info"], law, c["metadata"])
