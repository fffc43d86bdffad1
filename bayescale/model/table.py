"""A table of runs as the arrays that a model reads, padded so that one compiled program serves many tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayescale.model import shocks
from bayescale.model.drift import WEIGHTS
from bayescale.model.joint import Joint, Model, no_pilot
from bayescale.parameter import Fixed

ROWS = (32, 128, 256, 512)  # padded lengths; beyond the last, multiples of it


def padded(n: int) -> int:
    """The padded length for ``n`` rows."""
    return next((r for r in ROWS if r >= n), -(-n // ROWS[-1]) * ROWS[-1])


def arrays(
    model: Model,
    run: Mapping[str, np.ndarray],
    loss: np.ndarray,
    se: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    reference: Mapping[str, float],
    center: float,
    columns: np.ndarray | None = None,
    levels: Sequence[shocks.Levels] = (),
) -> dict[str, Any]:
    """Data for `joint.potential` and `joint.describe`.

    Parameters
    ----------
    run : mapping of str to array (n,)
        The law's inputs, in their own units.
    loss, se : array (n,)
        Loss of each run and its standard error (NaN where none is given), in one unit.
    group : int array (n,)
        Index of each run's group.
    reference : mapping of str to float
        The reference run of the law's parameters.
    center : float
        The loss that priors relative to the table are centred on.
    columns : array (n, WEIGHTS), optional
        Of a model with drift, from `drift.columns`.
    levels : sequence of Levels
        Of a model with shocks, from `shocks.levels`, one for each of them.
    """
    n, rows = len(loss), padded(len(loss))

    def pad(a: np.ndarray, fill: float) -> np.ndarray:
        return np.concatenate([a, np.full(rows - n, fill, a.dtype)])

    priors = {p.name: model.prior(p) for p in model.parameters}
    at = {n: v.at(center) for n, v in priors.items() if not isinstance(v, Fixed)}
    f64 = np.float64
    data = {
        "run": {k: pad(np.asarray(run[k], f64), reference[k]) for k in model.law.inputs},
        "reference": {k: f64(reference[k]) for k in model.law.inputs},
        "log_loss": pad(np.log(np.asarray(loss, f64)), float(np.log(center))),
        "se": pad(np.nan_to_num(np.asarray(se, f64)) / np.asarray(loss, f64), 0.0),
        "group": pad(np.asarray(group, np.int32), 0),
        "mask": np.arange(rows) < n,
        "prior_loc": {k: f64(v.loc) for k, v in at.items()},
        "prior_spread": {k: f64(v.spread) for k, v in at.items()},
        "between_groups": {p.name: f64(p.between_groups) for p in model.parameters},
        "fixed": {k: f64(v.value) for k, v in priors.items() if isinstance(v, Fixed)},
        "columns": np.zeros((rows, WEIGHTS)) if columns is None else np.pad(columns, ((0, rows - n), (0, 0))),
        "shared": f64(model.drift.shared if model.drift else 0.0),
    }
    if levels:
        size = np.log(run[model.law.size] / reference[model.law.size])
        seen = shocks.columns(model.shocks, levels, size)
        data["shocks"] = {**seen, "design": np.pad(seen["design"], ((0, rows - n), (0, 0)))}
    return without_pilot(model.joint(n_groups, [len(each.names) for each in levels]), data)


def without_pilot(joint: Joint, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data in coordinates that owe nothing to the losses."""
    away = {"path": shocks.pilot(joint.path, joint.shocks, joint.n_groups, data)} if joint.path or joint.shocks else {}
    return {**data, "pilot": no_pilot(joint) | away}


def as_one(data: Mapping[str, Any], joint: Joint) -> dict[str, Any]:
    """The data of all groups together, as those of an ungrouped model, ``joint``."""
    return without_pilot(joint, {**data, "group": np.zeros_like(data["group"])})


def of_group(data: Mapping[str, Any], group: int, joint: Joint) -> dict[str, Any]:
    """The data of one group alone, as those of an ungrouped model, ``joint``; all groups padded to one length."""
    counts = np.bincount(data["group"][data["mask"]])
    rows, at = padded(int(counts.max())), np.flatnonzero(data["mask"] & (data["group"] == group))
    pick = np.concatenate([at, np.full(rows - len(at), at[0])])
    by_row = {k: data[k][pick] for k in ("log_loss", "se", "columns")}
    alone = {
        **data,
        **by_row,
        "run": {k: v[pick] for k, v in data["run"].items()},
        "group": np.zeros(rows, np.int32),
        "mask": np.arange(rows) < len(at),
    }
    return without_pilot(joint, alone)
