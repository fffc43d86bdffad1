"""Public tables of training runs, by name: fetched from where their authors keep them, never copied into the package.

Each table is one file of one commit, known by its SHA-256: what arrives is that file or an error. It is
kept in the user's own cache folder. Licence and citation go into the log and into the notes of the runs.
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pandas as pd
import platformdirs

from bayescale.runs.read import read_runs
from bayescale.runs.table import Runs

__all__ = ["PublicTable", "get", "load", "names"]

log = logging.getLogger("bayescale")

ORIGIN = "https://raw.githubusercontent.com"  # serves a repository's file at a commit


@final
@dataclass(frozen=True)
class PublicTable:
    """A table that others publish.

    Attributes
    ----------
    name : str
        By which it is loaded.
    about : str
        What the rows are, and how they are read.
    repository, commit, file : str
        Where the file is: owner and name, the commit's full hash, the path in it.
    sha256 : str
        Of the file, in hexadecimal.
    licence : str
        As the repository states it.
    citation : str
        What to cite.
    read : callable
        From the file's path to the runs.
    """

    name: str
    about: str
    repository: str
    commit: str
    file: str
    sha256: str
    licence: str
    citation: str
    read: Callable[[Path], Runs] = dataclasses.field(repr=False, compare=False)

    @property
    def url(self) -> str:
        """Where the file is fetched from."""
        return f"{ORIGIN}/{self.repository}/{self.commit}/{self.file}"


CLARK_TOKENS_PER_STEP = 256 * 2048  # sequences and their length (Clark et al. 2022: 130e9 tokens in 250,000 steps)


def _clark(path: Path) -> Runs:
    """The last checkpoint of each run; the file has one every 10,000 steps."""
    rows = pd.read_csv(path, compression="gzip")
    last = rows.loc[rows.groupby("hyper_id")["step"].idxmax()].sort_values("hyper_id")
    table = pd.DataFrame(
        {
            "run": [f"clark-{k}" for k in last["hyper_id"]],
            "n_params": last["dense_parameter_count"].to_numpy(),
            "n_tokens": last["step"].to_numpy(float) * CLARK_TOKENS_PER_STEP,
            "loss": last["loss_validation"].to_numpy(),
        }
    )
    kept = ("router_type", "num_experts", "k", "routing_frequency", "seed", "step")
    return read_runs(
        table.assign(**{name: last[name].to_numpy() for name in kept}),
        columns={name: name for name in ("run", "n_params", "n_tokens", "loss")},
    )


TABLES = {
    table.name: table
    for table in (
        PublicTable(
            name="chinchilla-epoch",
            about="245 runs of Hoffmann et al. 2022, read off their figure 4; tokens are FLOP / 6N, as in the fit "
            "of Besiroglu et al. 2024, who leave out the five with the largest losses.",
            repository="epoch-research/analyzing-chinchilla",
            commit="92258837425e1b5f2851d624287f0120583a3d0e",
            file="data/svg_extracted_data.csv",
            sha256="193478df4e90f040016431996c45682659306840ecdadf83cfb9cd5ca0aa1b30",
            licence="none stated in the repository",
            citation="Besiroglu, Erdil, Barnett and You 2024, Chinchilla Scaling: A replication attempt, "
            "arXiv:2404.10102; the runs are those of Hoffmann et al. 2022, arXiv:2203.15556",
            read=read_runs,
        ),
        PublicTable(
            name="clark-2022-routing",
            about="223 dense and routed (mixture of experts) models, last checkpoint each; n_params are those that "
            "one token meets in the dense model of that size, and every run saw about 130e9 tokens, so the table "
            "says nothing about tokens (256 sequences of 2048 a step).",
            repository="google-deepmind/scaling_laws_for_routing",
            commit="42da0c392b127df2c01fa7b705f72396050d05e5",
            file="data/curves.csv.gz",
            sha256="c03e7531add85e594f368d33bac4a0220280be858a7ed12d147cf73af6a3819f",
            licence="CC-BY 4.0 (Copyright 2022 DeepMind Technologies Limited)",
            citation="Clark, de las Casas, Guy, Mensch et al. 2022, Unified Scaling Laws for Routed Language "
            "Models, arXiv:2202.01169",
            read=_clark,
        ),
    )
}


def names() -> list[str]:
    """Names of the public tables."""
    return sorted(TABLES)


def get(name: str) -> PublicTable:
    """What is known about a table without fetching it: origin, licence, citation.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    if name not in TABLES:
        near = difflib.get_close_matches(str(name), TABLES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"No public table is called {name!r}; known: {', '.join(names())}.{hint} "
            "A table of your own is read by read_runs."
        )
    return TABLES[name]


def load(name: str, *, path: str | os.PathLike[str] | None = None) -> Runs:
    """Fetch a public table, once, and read its runs.

    Parameters
    ----------
    name : str
        One of `names`.
    path : path, optional
        The same file, downloaded by hand: nothing is fetched then. Its checksum is verified too.

    Returns
    -------
    Runs
        ``source`` is the address it came from; ``notes`` end with licence and citation.

    Raises
    ------
    ValueError
        If no table has that name, or the file is not the one that the name stands for.
    OSError
        If it cannot be fetched; the message says how to go on without a network.
    """
    table = get(name)
    file = _fetched(table) if path is None else _verified(table, Path(path))
    runs = table.read(file)
    said = (f"Licence of {name}: {table.licence}.", f"Please cite: {table.citation}.")
    for sentence in said:
        log.info("%s: %s", table.url, sentence)
    return dataclasses.replace(runs, source=table.url, notes=(*runs.notes, table.about, *said))


def folder() -> Path:
    """Where fetched tables are kept: in the user's own cache folder."""
    return Path(platformdirs.user_cache_dir("bayescale")) / "public"


def _fetched(table: PublicTable) -> Path:
    import pooch
    import requests  # what pooch fetches with

    kept = f"{table.name}-{table.sha256[:12]}-{Path(table.file).name}"
    try:
        return Path(pooch.retrieve(table.url, f"sha256:{table.sha256}", fname=kept, path=folder()))
    except requests.RequestException as reason:
        raise ConnectionError(
            f"{table.name!r} could not be fetched from {table.url} ({reason}). Without a network: download that "
            f"file by hand and give its path, load({table.name!r}, path={Path(table.file).name!r})."
        ) from reason
    except ValueError as reason:
        raise ValueError(
            f"What {table.url} serves is not the file that {table.name!r} stands for: its SHA-256 is not "
            f"{table.sha256}. Nothing was kept. Something on the way may answer in its place (a proxy, a login "
            f"page): download the file by hand and give its path, load({table.name!r}, path=...)."
        ) from reason


def _verified(table: PublicTable, path: Path) -> Path:
    import pooch

    if not path.is_file():
        raise FileNotFoundError(f"No file is at {path}. Download {table.url} and give the path of what you saved.")
    found = pooch.file_hash(str(path), alg="sha256")
    if found != table.sha256:
        raise ValueError(
            f"{path} is not the file that {table.name!r} stands for: its SHA-256 is {found}, not {table.sha256}. "
            f"Download it untouched from {table.url}, or read the file as it is with read_runs."
        )
    return path
