"""Many tables, each fitted by itself, here or on a cluster."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from bayescale.inference import many
from bayescale.inference._engine import Progress
from bayescale.inference._progress import bar
from bayescale.laws._law import Law
from bayescale.model.joint import Model
from bayescale.posterior.fitting import chosen, fit
from bayescale.posterior.posterior import Posterior
from bayescale.runs.table import Runs


def fit_many(
    tables: Sequence[Runs],
    law: Law | Model,
    *,
    seed: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    **settings: Any,
) -> list[Posterior]:
    """Fit a law to each of many tables: simulated ones, with one group left out, under other choices.

    Parameters
    ----------
    tables : sequence of Runs
        Each is fitted by itself. Tables that are padded to one length share a compiled program.
    law : Law or Model
        As in `fit`, with its other ``settings``.
    seed : int, optional
        Of everything random; each table has a seed of its own, whatever the order in which fits end.
    client : dask.distributed.Client, optional
        A cluster to fit on (``bayescale[distributed]``); a worker that dies loses nothing. Here unless given.
    progress : callable, optional
        Told ``(done, total)``, of tables.

    Returns
    -------
    list of Posterior
        In the order of the tables.
    """
    seed = chosen(seed)
    own = list(zip(tables, many.seeds(seed, len(tables)), strict=True))
    found: dict[int, Posterior] = {}
    with bar() if progress is None else contextlib.nullcontext(progress) as told:
        for place, posterior in many.spread(functools.partial(_one_of, law, settings), own, client):
            found[place] = posterior
            if told:
                told(len(found), len(own))
    return [found[place] for place in range(len(own))]


def _one_of(law: Law | Model, settings: Mapping[str, Any], table: tuple[Runs, int]) -> Posterior:
    return fit(table[0], law, seed=table[1], progress=lambda done, total: None, **settings)
