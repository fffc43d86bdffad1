"""Any two of size, tokens and compute settle the third, by the FLOP rule; a third that is given is compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayescale.runs.cells import listed
from bayescale.runs.columns import SIZES
from bayescale.runs.flops import ComputeRule
from bayescale.runs.number import Column

DISAGREE = 0.1  # share by which a given compute may differ from the rule's without a warning

Note = tuple[int, str]  # level of logging, and a sentence


def settle(given: Mapping[str, Column], rule: ComputeRule, word: str, lines: Sequence[Any]) -> tuple[dict, list[Note]]:
    """Fill in the blanks of N, D and C that the other two settle.

    Parameters
    ----------
    given : mapping of str to Column
        At least two of ``n_params``, ``n_tokens`` and ``flop``.

    Returns
    -------
    columns : dict of str to Column
        All three; a cell is NaN where it is neither given nor settled.
    notes : list
        What was derived, and where the three disagree.
    """
    n = len(lines)
    start = {name: given[name].values if name in given else np.full(n, np.nan) for name in SIZES}
    usable = {name: np.isfinite(v) & (v > 0) for name, v in start.items()}
    settled, notes = {}, []
    for name in SIZES:
        others = [other for other in SIZES if other != name]
        blank = given[name].is_blank if name in given else np.ones(n, dtype=bool)
        fill = blank & usable[others[0]] & usable[others[1]]
        values = start[name].copy()
        values[fill] = _solve(name, rule)(*(start[other][fill] for other in others))
        if name in given:
            settled[name] = replace(given[name], values=values, needed=blank & ~fill)
        else:
            no = np.zeros(n, dtype=bool)
            settled[name] = Column(f"{name} (derived)", values.tolist(), values, no, no)
        if fill.any():
            notes.append((logging.INFO, _derived(name, others, fill, rule, word, lines)))
    return settled, notes + _disagreement(start, usable, rule, word, lines)


def _solve(name: str, rule: ComputeRule) -> Callable[..., np.ndarray]:
    return {
        "n_params": lambda tokens, flop: rule.params(flop, tokens),
        "n_tokens": lambda params, flop: rule.tokens(flop, params),
        "flop": lambda params, tokens: rule.flop(params, tokens),
    }[name]


def _derived(name: str, others: list[str], fill: np.ndarray, rule: ComputeRule, word: str, lines: Sequence[Any]) -> str:
    which = "every run"
    if not fill.all():
        rows = listed([lines[row] for row in np.flatnonzero(fill).tolist()])
        which = f"{fill.sum()} of {len(fill)} runs ({word}s {rows})"
    return f"{name} of {which} is derived from {others[0]} and {others[1]} by the rule {rule}."


def _disagreement(
    values: dict, usable: dict, rule: ComputeRule, word: str, lines: Sequence[Any]
) -> list[tuple[int, str]]:
    given = np.flatnonzero(usable["n_params"] & usable["n_tokens"] & usable["flop"])
    ratio = values["flop"][given] / rule.flop(values["n_params"][given], values["n_tokens"][given])
    off = np.abs(np.log(ratio)) > np.log1p(DISAGREE)
    if not off.any():
        return []
    worst = np.argsort(-np.abs(np.log(ratio)))[: min(5, int(off.sum()))].tolist()
    rows = listed([f"{word} {lines[int(given[row])]}: {ratio[row]:.3g}" for row in worst])
    return [
        (
            logging.WARNING,
            f"flop as given differs by more than {DISAGREE:.0%} from the rule {rule} in {off.sum()} of {len(given)} "
            f"runs: given over rule has the median {np.median(ratio):.3g}, and the largest differences are {rows}. "
            "n_params and n_tokens are used as given; flop keeps the given figure.",
        )
    ]
