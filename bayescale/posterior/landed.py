"""A ledger's entries as tables, and the scores of those whose runs landed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayescale.posterior import scores
from bayescale.posterior.entries import PROBABILITIES
from bayescale.posterior.scorecard import LEVELS, MEANS, averaged, bins, judged

LEVEL = 0.9  # of the intervals that are shown and scored
AT = {p: i for i, p in enumerate(PROBABILITIES)}
SIDES = {0.5: (0.25, 0.75), 0.8: (0.1, 0.9), 0.9: (0.05, 0.95), 0.95: (0.025, 0.975)}
KEPT = ("run", "group", "n_params", "n_tokens", "flop", "extrapolation_factor")


def interval(entry: dict[str, Any], forecaster: str) -> tuple[float, float, float]:
    """Median, lower and upper end of a forecast's 90 % interval."""
    q = entry["quantiles"][forecaster]
    return (q[AT[0.5]], *(q[AT[p]] for p in SIDES[LEVEL]))  # type: ignore[return-value]


def table(entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """See `Ledger.to_dataframe`."""
    rows = []
    for e in entries:
        landing = e["landing"] or {}
        row = {k: e[k] for k in KEPT} | {"forecast": e["written"], "landed": landing.get("written")}
        row |= {"fit": e["fit"]["fingerprint"], "diagnostics": e["diagnostics"], "beyond_data": e["beyond_data"]}
        row |= {"loss_unit": e["loss_unit"], "loss": landing.get("loss", np.nan)}
        for name in e["quantiles"]:
            ends = zip(("median", "lower", "upper"), interval(e, name), strict=True)
            row |= {f"{name.replace(' ', '_')}_{end}": value for end, value in ends}
        rows.append(row)
    return pd.DataFrame(rows)


def scored(entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """See `Ledger.scores`."""
    of = [(e, name) for e in entries if e["landing"] for name in e["quantiles"]]
    q = np.log(np.array([e["quantiles"][name] for e, name in of], float).reshape(-1, len(PROBABILITIES)))
    y = np.log(np.array([e["landing"]["loss"] for e, _ in of], float))
    ends = {level: tuple(q[:, AT[p]] for p in SIDES[level]) for level in LEVELS}
    crps = scores.crps_of_quantiles(PROBABILITIES, q, y)
    head: dict[str, Any] = {"forecaster": [name for _, name in of]}
    head |= {"fit": [e["fit"]["fingerprint"] for e, _ in of], **{k: [e[k] for e, _ in of] for k in KEPT}}
    reached = np.array(head["extrapolation_factor"], float)
    return pd.DataFrame({**head, "bin": bins(reached), **judged(y, q[:, AT[0.5]], ends, LEVEL, crps)})


def summed(scored: pd.DataFrame) -> pd.DataFrame:
    """See `Ledger.summary`."""
    covered = [c for c in scored if str(c).startswith("covered")]
    cells: Any = scored[["forecaster", "bin", *covered, *MEANS]]
    cells = cells.rename(columns={c: str(c).replace("covered", "coverage") for c in covered})
    return averaged(cells.assign(bias_percent=scored["error_percent"], runs=1))
