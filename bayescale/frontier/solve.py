"""Where the optimum is, for every draw and budget: "spend C" becomes "N and D".

One path for every law and every FLOP rule alike; ``curve`` does the arithmetic of one element, this
file lays draws x budgets out over it. Few budgets are all scanned. Many are followed: the curve is
scanned at a few budgets (knots), the optima between two of them start from the straight line in
log C, and those that do not settle near it (a jump between two valleys, an optimum that runs off the
domain) are scanned on their own.

An optimum on the edge of the law's domain is none: NaN.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bayescale.frontier import curve
from bayescale.laws._law import Law, held_at
from bayescale.model.drift import Drifted
from bayescale.runs.flops import ComputeRule

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Posterior
    from bayescale.posterior.surface import Surface

Letters = Mapping[str, np.ndarray]
Step = Callable[..., tuple[jax.Array, ...]]
Chunk = tuple[np.ndarray, np.ndarray]  # draws and budgets, two index arrays that broadcast

KNOTS = 64  # budgets that are scanned; between two of them the optimum is followed
CHUNKS = (1 << 8, 1 << 13, 1 << 15)  # elements a call, the last one a quarter of a megabyte an array


def domain(law: Law | Drifted) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of N (parameters) and D (tokens) in which optima are sought: the law's, from 1 up.

    Raises
    ------
    ValueError
        If the law reads no tokens, so that there is nothing to trade.
    """
    if "n_tokens" not in law.inputs:
        raise ValueError(
            f"{type(law).__name__} reads no tokens: a larger model always loses less, and a budget has no optimum."
        )
    (n_low, n_high), (d_low, d_high) = law.domain[law.size], law.domain["n_tokens"]
    return (max(1.0, n_low), n_high), (max(1.0, d_low), d_high)


def optimum(law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Compute-optimal size, for every draw and budget.

    Parameters
    ----------
    law, rule
        The loss of a run, and what a run costs.
    letters : mapping of str to array (S,) or (S, K)
        The law's coefficients, one value a draw; or what `Surface.at` gives at the budgets.
    budgets : array (K,)
        Training compute, FLOPs.

    Returns
    -------
    log_n : array (S, K)
        Natural log of N_opt (parameters); NaN where the loss has no minimum inside the domain.
    interior : bool array (S, K)
        Where it has one.
    """
    letters = {name: np.asarray(value, float) for name, value in letters.items()}
    budgets = np.asarray(budgets, float)
    # A path is rough in compute: between two budgets, one along it does not lie on a line.
    rough = any(value.ndim > 1 for value in letters.values())
    log_n = (_search if rough or budgets.size <= KNOTS else _follow)(law, rule, letters, budgets)
    return log_n, ~np.isnan(log_n)


def fitted_compute(posterior: Posterior, rule: ComputeRule, surface: Surface, budgets: np.ndarray) -> np.ndarray:
    """Compute by the fit's own rule, along which paths run, of the runs that the law alone plans (median): (K,)."""
    law, fitted = posterior.law, posterior.rule
    if rule == fitted or surface.path is None:
        return budgets
    read = [*(q.name for q in law.coefficients), *map(held_at, law.conditions)]
    log_n, interior = optimum(law, rule, {name: surface.letters[name] for name in read}, budgets)
    planned = interior.any(axis=0)
    n = np.exp(np.nanmedian(log_n[:, planned], axis=0))
    own = np.array(budgets, float)
    own[planned] = fitted.flop(n, rule.tokens(budgets[planned], n))
    return own


def spend(
    law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray, log_n: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Tokens that each budget leaves at size e^log_n, and the loss there: two arrays (S, K)."""
    return _on_grid(curve.spend, 2, law, rule, letters, budgets, log_n)


def exponents(
    law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray, log_n: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Local exponents a = d log N_opt / d log C and b = d log D_opt / d log C: two arrays (S, K).

    By implicit differentiation of the balance at the optimum ``log_n``.
    """
    return _on_grid(curve.exponents, 2, law, rule, letters, budgets, log_n)


def band(
    law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray, log_n: np.ndarray, ratio: float = 1.01
) -> tuple[np.ndarray, ...]:
    """Sizes around the optimum at which the loss is ``ratio`` times the optimal one.

    Returns
    -------
    lower, upper : arrays (S, K)
        Natural logs of N; -inf or +inf where the loss stays below that up to the edge of the domain,
        NaN where there is no optimum.
    """
    low, high = _range(law, rule, budgets)
    return _on_grid(partial(curve.band, ratio=ratio), 2, law, rule, letters, budgets, log_n, low, high)


def _search(law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray) -> np.ndarray:
    """Scan and polish every draw and budget: (S, K)."""
    low, high = _range(law, rule, budgets)
    return _on_grid(curve.bottom, 1, law, rule, letters, budgets, None, low, high)[0]


def _follow(law: Law | Drifted, rule: ComputeRule, letters: Letters, budgets: np.ndarray) -> np.ndarray:
    """Scan at the knots, follow in between, and search where following fails: (S, K)."""
    knots = np.geomspace(budgets.min(), budgets.max(), KNOTS)
    spacing = math.log(knots[-1] / knots[0]) / (KNOTS - 1)
    at_knots = _search(law, rule, letters, knots)
    none = np.isnan(at_knots)
    # N_opt rises no faster than C where D_opt does not fall: a longer stride is a jump between valleys.
    smooth = np.abs(np.diff(at_knots)) <= 1.5 * spacing + 0.1
    place = np.log(budgets / knots[0]) / spacing if spacing else np.zeros(budgets.size)
    slot = np.clip(place.astype(int), 0, KNOTS - 2)
    share = place - slot
    low, high = _range(law, rule, budgets)

    def near_line(draw: np.ndarray, budget: np.ndarray) -> tuple[Any, ...]:
        before, part = slot[budget], share[budget]
        line = (1 - part) * at_knots[draw, before] + part * at_knots[draw, before + 1]
        start = np.where(smooth[draw, before], line, np.nan)
        return _take(letters, draw, budget), budgets[budget], low[budget], high[budget], start

    def alone(draw: np.ndarray, budget: np.ndarray) -> tuple[Any, ...]:
        return _take(letters, draw, budget), budgets[budget], low[budget], high[budget]

    shape = len(at_knots), budgets.size
    log_n = _in_chunks(partial(curve.bottom_near, law, rule), 1, shape, _tiles(*shape), near_line)[0]
    draw, budget = np.nonzero(np.isnan(log_n))
    lost = ~(none[draw, slot[budget]] & none[draw, slot[budget] + 1])
    chunks = _lists(draw[lost], budget[lost])
    found = _in_chunks(partial(curve.bottom, law, rule), 1, shape, chunks, alone)[0] if chunks else log_n
    return np.where(np.isnan(log_n), found, log_n)


def _on_grid(
    step: Step,
    n_out: int,
    law: Law | Drifted,
    rule: ComputeRule,
    letters: Letters,
    budgets: np.ndarray,
    log_n: np.ndarray | None,
    *per_budget: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Call a compiled step on every draw and budget: ``n_out`` arrays (S, K)."""

    def element(draw: np.ndarray, budget: np.ndarray) -> tuple[Any, ...]:
        own = () if log_n is None else (log_n[draw, budget],)
        return _take(letters, draw, budget), budgets[budget], *(values[budget] for values in per_budget), *own

    shape = len(next(iter(letters.values()))), budgets.size
    return _in_chunks(partial(step, law, rule), n_out, shape, _tiles(*shape), element)


def _tiles(n_draws: int, n_budgets: int) -> list[Chunk]:
    """Cut the plane of draws x budgets into rectangles of at most the largest chunk."""
    columns = min(n_budgets, CHUNKS[-1])
    rows = CHUNKS[-1] // columns
    return [
        (np.arange(s, min(s + rows, n_draws))[:, None], np.arange(k, min(k + columns, n_budgets))[None, :])
        for s in range(0, n_draws, rows)
        for k in range(0, n_budgets, columns)
    ]


def _lists(draw: np.ndarray, budget: np.ndarray) -> list[Chunk]:
    """Cut single elements into lists of at most the largest chunk."""
    cuts = range(0, draw.size, CHUNKS[-1])
    return [(draw[i : i + CHUNKS[-1]], budget[i : i + CHUNKS[-1]]) for i in cuts]


def _in_chunks(
    step: Step,
    n_out: int,
    shape: tuple[int, int],
    chunks: list[Chunk],
    arguments: Callable[[np.ndarray, np.ndarray], tuple[Any, ...]],
) -> tuple[np.ndarray, ...]:
    """Run ``step`` over chunks of the plane, one thread a core; NaN where no chunk lies.

    A chunk is filled up to one of a few lengths with copies of its last element, so that a few
    compiled programs serve any number of draws and budgets. XLA releases the interpreter's lock, and
    memory is bounded by the chunk.
    """
    outputs = tuple(np.full(shape, np.nan) for _ in range(n_out))

    def work(chunk: Chunk) -> None:
        extent = np.broadcast_shapes(chunk[0].shape, chunk[1].shape)
        size = math.prod(extent)
        padding = (0, next(length for length in CHUNKS if size <= length) - size)

        def flat(values: np.ndarray) -> np.ndarray:
            return np.pad(np.broadcast_to(values, extent).ravel(), padding, mode="edge")

        with jax.enable_x64(True):  # the switch is each thread's own
            results = step(*jax.tree.map(flat, arguments(*chunk)))
            for output, result in zip(outputs, results, strict=True):
                output[chunk] = np.asarray(result)[:size].reshape(extent)

    work(chunks[0])  # compiles once, before the threads ask for it
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(work, chunks[1:]))
    return outputs


def _take(letters: Letters, draw: np.ndarray, budget: np.ndarray) -> dict[str, np.ndarray]:
    return {name: value[draw] if value.ndim == 1 else value[draw, budget] for name, value in letters.items()}


def _range(law: Law | Drifted, rule: ComputeRule, budgets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Ends in log N of each iso-FLOP curve inside the law's domain, (K,) each; NaN where it misses it."""
    (n_low, n_high), (d_low, d_high) = domain(law)

    def size_at(tokens: float) -> np.ndarray:
        low, high = np.full(budgets.shape, math.log(n_low)), np.full(budgets.shape, math.log(n_high))
        for _ in range(60):
            middle = (low + high) / 2
            too_large = rule.flop(np.exp(middle), tokens, xp=np) >= budgets
            low, high = np.where(too_large, low, middle), np.where(too_large, middle, high)
        return (low + high) / 2

    low, high = size_at(d_high), size_at(d_low)
    outside = ~(low < high)
    return np.where(outside, np.nan, low), np.where(outside, np.nan, high)
