"""A published law as a posterior of one point: the same verbs, no uncertainty, and it says so."""

from __future__ import annotations

import difflib

import numpy as np
import xarray as xr

from bayescale import laws
from bayescale.laws._published import CONSTANTS
from bayescale.model.joint import Model
from bayescale.posterior import _arviz, diagnostics
from bayescale.posterior.posterior import Posterior
from bayescale.runs.flops import FlopsRule


def names() -> list[str]:
    """Names of the published laws."""
    return sorted(CONSTANTS)


def published(name: str) -> Posterior:
    """The law that a paper printed, as a posterior of one chain and one draw.

    Its ``info`` carries the source and the conventions (what N, C, D and the loss count); its
    ``status`` is UNKNOWN, since a point has no uncertainty to check.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    if name not in CONSTANTS:
        near = difflib.get_close_matches(name, CONSTANTS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"No published law is called {name!r}; known: {', '.join(names())}.{hint}")
    c = CONSTANTS[name]
    letters = _arviz.dataset({k: np.array([[v]]) for k, v in c.letters.items()}, {}, {})
    info = {
        "engine": "published",
        "chains": 1,
        "draws": 1,
        "seed": 0,
        "source": c.source,
        "conventions": dict(c.conventions),
        "largest": dict(c.largest),
        "loss_unit": "nats per token",
    }
    checks = diagnostics.approximate("published", {})
    tree = xr.DataTree.from_dict({"posterior": letters})
    return Posterior(tree, Model(laws.get(c.law), drift=None), None, FlopsRule(6.0), checks, info, {"name": name})
