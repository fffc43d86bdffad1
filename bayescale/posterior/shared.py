"""Which rows of a table share which shocks."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from bayescale.model.joint import Model
from bayescale.model.shocks import Levels, Shocks, levels
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)


def shared_by(model: Model, runs: Runs) -> tuple[Levels, ...]:
    """The labels of every column of shocks, in the model's order.

    Raises
    ------
    ValueError
        If there is no such column, a run has no label in it, all have one, or each its own.
    """
    by = model.pooling.by
    label, groups = runs.labels(by) if by else (np.full(len(runs), ""), ("",))
    at = np.searchsorted(groups, label)
    return tuple(levels(s, runs.labels(s.by)[0], at, groups) for s in model.shocks)


def warn_of_checkpoints(runs: Runs, shocks: Sequence[Shocks]) -> None:
    """Rows of one run are not so many runs: say so where the table shows them, and no shock is theirs."""
    if "trajectory" not in runs.table:
        return
    label, names = runs.labels("trajectory")
    theirs = any(np.array_equal(runs.labels(s.by)[0], label) for s in shocks)
    if len(names) < len(runs) and not theirs:
        log.warning(
            "%d rows are checkpoints of %d runs and count as so many runs: intervals come out too narrow. "
            "Give every run a shock: shocks=[Shocks('trajectory')], --shock trajectory.",
            len(runs),
            len(names),
        )
