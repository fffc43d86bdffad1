"""The page of a run in progress: each checkpoint beside what is expected of finished runs."""

from __future__ import annotations

from typing import Any

from bayescale.posterior.follow import Followed
from bayescale.report.plans import NUMBERS_OF, ROWS, left_over, notes
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, count, interval, kind, number, reach, status

DECAY = (
    "the law is of finished runs: before its learning rate has decayed a run lies a few percent above them, so that "
    "'above' is no alarm until then, and 'below' is better than the fit allows for"
)


def followed_page(followed: Followed) -> Page:
    """Newest checkpoints last; the caveat about schedules always."""
    found = followed.to_dict()["results"]
    shown = found[-ROWS:]
    inputs = [name for name in shown[0] if name in NUMBERS_OF]
    header = (
        *("\n".join(NUMBERS_OF[name]) for name in inputs),
        "loss\nseen",
        "finished runs\n",
        "end higher\n",
        "seen is\n",
    )
    far = [f"{count(row['n_tokens'])} tokens: {reach(row['extrapolation_factor'])}" for row in shown if _is_far(row)]
    return Page(
        status(followed.status, warning=followed.warning),
        f"A run in progress, diagnostics {followed.status}: {amount(len(found), 'checkpoint')}, the last one "
        f"{_place(shown[-1])} the interval",
        (f"loss in {followed.loss_unit}; of finished runs median and {kind(followed.level)} interval",),
        [
            Table("", header, tuple((*(count(row[name]) for name in inputs), *_cells(row)) for row in shown)),
            *left_over(len(found) - len(shown), "earlier checkpoint", "to_dataframe()"),
            Notes("Mind", (DECAY,)),
            *notes("Beyond the data", far),
        ],
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ends = interval(row["median"], row["lower"], row["upper"], between="\n")
    return number(row["loss"], 4), ends, f"{100 * row['share_above']:.1f} %", _place(row)


def _place(row: dict[str, Any]) -> str:
    return "above" if row["loss"] > row["upper"] else "below" if row["loss"] < row["lower"] else "within"


def _is_far(row: dict[str, Any]) -> bool:
    return row["extrapolation_factor"] > 1
