"""Tables that come with the package: real runs of small models, and a simulated table that says so.

``stdlib`` has byte-level language models trained on Python's own library; the README beside this file is its
data card, ``notebooks/stdlib_campaign.py`` the script that trained them. No loss of ``simulated`` is of a
trained model.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.resources
from collections.abc import Sequence
from typing import Any

import pandas as pd

from bayescale.runs.read import read_runs
from bayescale.runs.table import Runs

__all__ = ["load", "names"]

FILES = {"simulated": "simulated.csv", "stdlib": "stdlib.csv"}

SIMULATED = (
    "SIMULATED under the law of Besiroglu et al. 2024: none of these losses is of a trained model.",
    "`bayescale simulate --published besiroglu-2024 --tail 5 --seed 1` makes the same table.",
)
TRAINED = (
    "Byte-level language models trained on Python's own library by notebooks/stdlib_campaign.py; tokens are bytes.",
    "n_params counts the six layers' weights, 54 width^2; embeddings, gains and the head are not among them.",
)


def names() -> list[str]:
    """Names of the tables that come with the package."""
    return sorted(FILES)


def load(name: str, role: str | Sequence[str] | None = None, *, group: str | Sequence[str] | None = None) -> Runs:
    """Runs of a table that comes with the package.

    Parameters
    ----------
    name : str
        ``stdlib``: trained. ``simulated``: not.
    role : str or sequence of str, optional
        Of ``stdlib`` only: ``fit`` (unless another is named), ``held-out`` (cells between those of the fit,
        and larger runs), ``seed``, ``epochs``, ``interrupted``, ``stress``.
    group : str or sequence of str, optional
        Of ``stdlib`` only, the corpus: ``stdlib`` (unless another is named), ``docstrings``.

    Returns
    -------
    Runs
        ``notes`` end with what the table is.

    Raises
    ------
    ValueError
        If there is no such table, role or group, or no run has both.
    """
    if name not in FILES:
        near = difflib.get_close_matches(str(name), FILES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"No table called {name!r} comes with the package; known: {', '.join(names())}.{hint} "
            "Tables that others publish are in bayescale.public, one of your own is read by read_runs."
        )
    file = importlib.resources.files("bayescale.runs") / "data" / FILES[name]
    with file.open(encoding="utf-8") as lines:
        table = pd.read_csv(lines)
    table.index += 2  # a row is named by its line of the file, below the header
    if name == "simulated":
        if role is not None or group is not None:
            raise ValueError("The simulated table has neither roles nor groups: load it by its name alone.")
        return _told(read_runs(table), FILES[name], SIMULATED)
    role, group = role or "fit", group or "stdlib"
    chosen = table[_one_of(table, "role", role) & _one_of(table, "group", group)]
    if chosen.empty:
        raise ValueError(f"No run has role {role!r} and group {group!r}.")
    return _told(read_runs(chosen, loss_unit="nats per byte"), FILES[name], TRAINED)


def _one_of(table: pd.DataFrame, column: str, wanted: str | Sequence[str]) -> Any:
    """Rows that have one of the values; ValueError for a value that no row has."""
    values = [wanted] if isinstance(wanted, str) else list(wanted)
    known = sorted(table[column].unique())
    unknown = [value for value in values if value not in known]
    if unknown:
        raise ValueError(f"No run has the {column} {unknown[0]!r}; known: {', '.join(known)}.")
    return table[column].isin(values)


def _told(runs: Runs, file: str, said: Sequence[str]) -> Runs:
    return dataclasses.replace(runs, source=f"bayescale/runs/data/{file}", notes=(*runs.notes, *said))
