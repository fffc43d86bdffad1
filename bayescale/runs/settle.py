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
from bayescale.runs.units import probable_unit

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
            f"{_cause(ratio, values['n_params'][given])}"
            "n_params and n_tokens are used as given; flop keeps the given figure.",
        )
    ]


# What a given compute over 6 N D is for, where it is nearly the same in every run.
CAUSES = (
    (1 / 3, "as the forward pass alone costs (2 N D)"),
    (2 / 3, "as the backward pass alone costs (4 N D)"),
    (4 / 3, "as with recomputation of the forward pass (8 N D)"),
)


def _cause(ratio: np.ndarray, n_params: np.ndarray) -> str:
    """What the differences look like, in a sentence; nothing where they look like nothing known."""
    middle = float(np.median(ratio))
    steady = np.quantile(ratio, 0.9) / np.quantile(ratio, 0.1) < 1 + DISAGREE
    for factor, words in CAUSES:
        if steady and abs(np.log(middle / factor)) < 0.05:
            return f"It looks {words}. "
    if middle > 1 and len(ratio) > 2 and np.ptp(np.log(n_params)) > 1e-9 and np.ptp(np.log(ratio)) > 1e-9:
        slope = np.corrcoef(np.log(n_params), np.log(ratio))[0, 1]
        if slope < -0.8:
            return (
                "It is the larger the smaller the model, as where sizes leave out embeddings or the rule leaves out "
                "attention and the head. "
            )
    return ""


def scale_slip(given: Mapping[str, Column], rule: ComputeRule) -> tuple[float, str] | None:
    """Compute that is, in the middle of the table, a hundred times off the rule: the ratio, and its probable unit."""
    if any(name not in given for name in SIZES):
        return None
    usable = given["n_params"].is_usable & given["n_tokens"].is_usable & given["flop"].is_usable
    if not usable.any():
        return None
    n, d, c = (given[name].values[usable] for name in SIZES)
    ratio = float(np.median(c / rule.flop(n, d)))
    return None if 0.01 < ratio < 100 else (ratio, probable_unit("flop", ratio))
