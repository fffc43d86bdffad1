"""Many fits of one kind, one after another here or at once on a cluster.

Tables are padded to a few lengths, so that one compiled program serves all that are alike; a fit spreads its
chains over the cores or devices of its machine by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bayescale.inference.devices import use_compile_cache


def spread[T, R](work: Callable[[T], R], items: Sequence[T], client: Any = None) -> Iterator[tuple[int, R]]:
    """Apply ``work`` to every item; yield each one's place and result as they end.

    Parameters
    ----------
    work : callable
        A function of a module, or a ``functools.partial`` of one, where there is a client.
    items : sequence
        What it is applied to.
    client : dask.distributed.Client, optional
        A cluster whose workers have this package installed; this process unless given.

    Raises
    ------
    Exception
        What ``work`` raised. An item whose worker died is given to another.
    """
    if client is None:
        for place, item in enumerate(items):
            yield place, work(item)
        return
    from dask.distributed import as_completed

    futures = client.map(_Cached(work), items, pure=False)
    places = {future.key: place for place, future in enumerate(futures)}
    for future, result in as_completed(futures, with_results=True):
        yield places[future.key], result


class _Cached[T, R]:
    """The work on a worker, whose compiled programs are kept between tasks and workers of one machine."""

    def __init__(self, work: Callable[[T], R]) -> None:
        self.work = work

    def __call__(self, item: T) -> R:
        use_compile_cache()
        return self.work(item)


def seeds(seed: int, n: int) -> list[int]:
    """A seed for each of ``n`` fits, whatever the order in which they end."""
    return [int(s) for s in np.random.SeedSequence(seed).generate_state(n, np.uint64) >> np.uint64(1)]
