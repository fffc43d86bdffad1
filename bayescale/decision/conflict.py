"""Constraints that no choice keeps: which of them are in conflict, and how far each would have to give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayescale.decision.constraint import MINUTE, Constraint
from bayescale.decision.search import Infeasible, Problem

MOST = 1e9  # how many times looser a limit is tried
CLOSE = 1e-4  # of the factor by which it has to give
ROUNDS = 4  # of the search for the size at which the constraints leave most room


def explained(problem: Problem) -> Infeasible:
    """The error that says which constraints are in conflict, and the nearest value at which each could be kept."""
    conflict = _smallest(problem)
    listed = "; ".join(map(str, conflict))
    if len(conflict) == 1:
        return Infeasible(f"No choice within the law's domain keeps this: {listed}.{_ways_out(problem, conflict)}")
    return Infeasible(f"No choice keeps all of these: {listed}.{_ways_out(problem, conflict)}")


def feasible(problem: Problem) -> bool:
    """Whether any choice keeps all constraints."""
    return _room(problem) >= -MINUTE


def _smallest(problem: Problem) -> Sequence[Constraint]:
    """The first of the smallest sets of constraints that cannot be kept together."""
    everything = problem.constraints
    for count in range(1, len(everything)):
        for some in itertools.combinations(everything, count):
            if not feasible(replace(problem, constraints=some)):
                return some
    return everything


def _ways_out(problem: Problem, conflict: Sequence[Constraint]) -> str:
    found = [_nearest(problem, conflict, i) for i in range(len(conflict))]
    said = [str(each) for each in found if each is not None]
    return f" Any one of these, the others kept, would do: {'; '.join(said)}." if said else ""


def _nearest(problem: Problem, conflict: Sequence[Constraint], i: int) -> Constraint | None:
    """The constraint, as little relaxed as lets the set be kept; None where no relaxation does."""

    def at(log_factor: float) -> Constraint:
        return conflict[i].relaxed(math.exp(log_factor))

    def kept(log_factor: float) -> bool:
        return feasible(replace(problem, constraints=[*conflict[:i], at(log_factor), *conflict[i + 1 :]]))

    low, high = 0.0, math.log(MOST)
    if not kept(high):
        return None
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return at(high)


def _room(problem: Problem) -> float:
    """Log of the most over the fewest tokens allowed, at the size where they are farthest apart; negative: none are."""
    if problem.shapes is not None:
        return float(_rooms(problem, problem.shapes).max())
    least, largest = problem.ends
    if not least <= largest:
        return -math.inf
    low, high = math.log(least), math.log(largest)
    for _ in range(ROUNDS):
        places = np.linspace(low, high, 65)
        rooms = _rooms(problem, np.exp(places))
        at = int(rooms.argmax())
        low, high = places[max(at - 1, 0)], places[min(at + 1, 64)]
    return float(rooms[at])


def _rooms(problem: Problem, size: np.ndarray) -> np.ndarray:
    fewest, most = problem.window(size)
    least, largest = problem.ends
    with np.errstate(divide="ignore", invalid="ignore"):
        rooms = np.log(most) - np.log(fewest)
    outside = np.isnan(rooms) | (size < least / (1 + MINUTE)) | (size > largest * (1 + MINUTE))
    return np.where(outside, -math.inf, rooms)
