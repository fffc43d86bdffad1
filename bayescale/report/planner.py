"""The planner of a report: what to train, by budget and by how spread is weighed, from draws that the page holds.

The page looks at one loss curve a draw, along sizes of one budget, and chooses the size whose risk is least, as
`bayescale.recommend` does for a budget without further limits. Budgets are those of a list: along a path away from
the law, a draw between two of them does not lie on a line.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from bayescale.frontier import solve
from bayescale.frontier.frontier import Frontier
from bayescale.frontier.rows import MOST_WITHOUT
from bayescale.report.tables import escaped
from bayescale.report.words import amount, kind

STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # budgets of a decade
SIZES = 41  # of a curve: a parabola through three neighbours then tells the best to a share of a percent
TAIL, WIDER = 0.005, 3.0  # the sizes looked at: all but this share of the optima at either end, and a factor more
DRAWS, FEWER = 300, 150  # of one group, and of each of several: a page of one to three megabytes
GROUPS = 4
TAILS = (1.0, 0.5, 0.25, 0.1)  # of `CVaR`; 1 is the mean


def round_budgets(lowest: float, highest: float) -> list[float]:
    """Round numbers of FLOPs, from the last not above ``lowest`` to the first not below ``highest``."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    found = [float(f"{m:g}e{k}") for k in range(first, last + 1) for m in STEPS]
    low = max((c for c in found if c <= lowest * (1 + 1e-9)), default=found[0])
    high = min((c for c in found if c >= highest * (1 - 1e-9)), default=found[-1])
    return [c for c in found if low <= c <= high]


@final
@dataclass(frozen=True)
class Planner:
    """A form whose numbers the page's script computes.

    Attributes
    ----------
    frontier : Frontier
        At round budgets.
    asked : float
        The budget that is shown first, FLOPs.
    """

    frontier: Frontier
    asked: float

    def html(self) -> str:
        """The form, and the draws that it reads; hidden until the script runs."""
        groups = self._groups()
        if not groups:
            return "<p>No budget has a compute-optimal size that can be told.</p>"
        says, data = self._says(groups), json.dumps(self._data(groups)).replace("<", "\\u003c")
        names = "".join(f'<option value="{i}">{escaped(str(g["name"]))}</option>' for i, g in enumerate(groups))
        which = f'<label for="planner-group">Group</label><select id="planner-group">{names}</select>'
        tails = "".join(f'<option value="{t:g}">{_weighed(t)}</option>' for t in TAILS)
        rows = "".join(
            f'<tr><th scope="row">{name}</th><td id="planner-{key}"></td></tr>' for key, name in ROWS.items()
        )
        return (
            "<noscript><p>Without JavaScript the tables below say the same at some budgets.</p></noscript>"
            f'<form id="planner" hidden>{which if len(groups) > 1 else ""}'
            '<label for="planner-budget">Training compute</label><input id="planner-budget" type="range" min="0" '
            'step="1"><output id="planner-flop" for="planner-budget"></output>'
            f'<label for="planner-risk">Smallest loss, weighed by its</label><select id="planner-risk">{tails}</select>'
            '<label for="planner-size">Or a size of your own (parameters, as 70B)</label>'
            '<input id="planner-size" type="text" inputmode="text" autocomplete="off" spellcheck="false">'
            '<p id="planner-wrong" role="alert"></p></form>'
            f'<div id="planner-found" hidden><table aria-live="polite"><tbody>{rows}</tbody></table>'
            '<svg id="planner-curve" viewBox="0 0 420 230" role="img" aria-label="Loss given up against size"></svg>'
            f"<p>{says}</p></div>"
            f'<script type="application/json" id="planner-data">{data}</script>'
        )

    def _says(self, groups: Sequence[dict[str, Any]]) -> str:
        whole = len(next(iter(self.frontier.log_n.values())))
        left = len(self.frontier.groups) - len(groups)
        few = ", so that sizes may differ from the tables' by some percent" if len(groups[0]["draws"]) < whole else ""
        more = f" {amount(left, 'group')} not shown." if left else ""
        return (
            f"From {len(groups[0]['draws']):,} of {amount(whole, 'draw')}{few}. "
            f"Median and {kind(self.frontier.level)} interval. Limits and costs of a decision aside. The curve: loss "
            "given up against each draw's own best size, on average (full line) and at the "
            f"{_upper(self.frontier)} "
            f"quantile.{more}"
        )

    def _groups(self) -> list[dict[str, Any]]:
        labels = self.frontier.groups[:GROUPS]
        most = DRAWS if len(labels) == 1 else FEWER
        return [found for label in labels if (found := _group(self.frontier, label, most))]

    def _data(self, groups: list[dict[str, Any]]) -> dict[str, Any]:
        for each in groups:
            near = np.abs(np.log(each["budgets"]) - math.log(self.asked))
            each["start"] = int(near.argmin())
            each["draws"] = len(each["draws"])
        return {
            "level": self.frontier.level,
            "unit": self.frontier.loss_unit,
            "largest": self.frontier.largest["flop"],
            "groups": groups,
        }


ROWS = {
    "n": "N, parameters",
    "d": "D, tokens",
    "ratio": "tokens per parameter",
    "loss": "mean loss",
    "regret": "loss given up against the best size, were the law known",
    "best": "best size, were the law known, parameters",
    "factor": "compute against the largest fitted run",
}


def _weighed(tail: float) -> str:
    return "average over the draws" if tail == 1 else f"average over the worst {100 * tail:g} % of the draws"


def _upper(frontier: Frontier) -> str:
    return f"{100 * (1 + frontier.level) / 2:g} %"


def _group(frontier: Frontier, label: str | None, most: int) -> dict[str, Any] | None:
    """Curves of a group, at the budgets where it has an optimum, of draws that have one at all of them."""
    log_n = frontier.log_n[label]
    told = np.isnan(log_n).mean(axis=0) <= MOST_WITHOUT
    whole = np.flatnonzero(np.isfinite(log_n[:, told]).all(axis=1))
    if not told.any() or not whole.size:
        return None
    some = whole[np.unique(np.linspace(0, len(whole) - 1, most).round().astype(int))]
    budgets, best = frontier.budgets[told], log_n[np.ix_(some, told)]
    letters = {k: v[some] if v.ndim == 1 else v[np.ix_(some, told)] for k, v in frontier.letters[label].items()}
    lowest = solve.spend(frontier.mean, frontier.rule, letters, budgets, best)[1]
    ends = np.quantile(log_n[np.ix_(whole, told)], [TAIL, 1 - TAIL], axis=0)
    low, high = ends[0] - math.log(WIDER), ends[1] + math.log(WIDER)
    grid = low + (high - low) * np.linspace(0, 1, SIZES)[:, None]  # (sizes, budgets)
    shape = best.shape
    found = [solve.spend(frontier.mean, frontier.rule, letters, budgets, np.broadcast_to(x, shape)) for x in grid]
    tokens, loss = np.array([d[0] for d, _ in found]), np.array([each for _, each in found])
    return {
        "name": "all runs" if label is None else label,
        "budgets": budgets.tolist(),
        "low": low.tolist(),
        "step": ((high - low) / (SIZES - 1)).tolist(),
        "sizes": SIZES,
        "draws": some,
        "tokens": _packed(np.log(tokens).T),
        "loss": _packed(loss.transpose(2, 0, 1)),  # budgets, sizes, draws
        "lowest": _packed(lowest.T),
        "best": _packed(best.T),
    }


def _packed(values: np.ndarray) -> str:
    """Numbers of single precision, lowest byte first, as text."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
