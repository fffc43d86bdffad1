"""The best size within the constraints: a search in log N, at each N with the tokens that the constraints leave.

An outcome that tokens improve is best at the most that is allowed, one that they worsen at the fewest;
where it may go either way, how far to go from the fewest to the most is searched as well. The scan is as
fine as that of `bayescale.frontier.curve`; then the bracket around the lowest point shrinks, and where
the risk is smooth a parabola of fourth order through five points ends the search: it tells the lowest
point to where the risk itself no longer differs in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from bayescale.decision.constraint import MINUTE, Constraint
from bayescale.decision.objective import Objective
from bayescale.decision.outlook import Choices, Outlook
from bayescale.decision.risk import Risk

GLANCE = 256  # draws that say where to look
SCAN = 96  # sizes over the domain: .43 in log N for eighteen decades, as fine as the frontier's scan
ROUND = 14  # steps of a further round: each bracket is a seventh of the one before
SMOOTH = 0.02  # spacing in log N from which a parabola of fourth order is exact to 1e-9
TRUST = 1e-3  # share of the rise over the stencil by which it may miss the risk at its own lowest point
CLOSE = 1e-8  # in log N: at a kink, the bracket at which the search ends
ROUNDS = 60
WIDE = 0.1  # the same for a risk that draws make rough: a parabola is fitted to points this far apart
SHARES = np.linspace(0.0, 1.0, 9)  # of the way, in log, from the fewest tokens allowed to the most


class Infeasible(ValueError):
    """No choice keeps all constraints."""


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """What is chosen: the draws, the objective, the constraints, the risk, and the sizes to choose from.

    Attributes
    ----------
    shapes : array (M,) or None
        Sizes to choose from, parameters; any within the constraints unless given.
    """

    outlook: Outlook
    objective: Objective
    constraints: Sequence[Constraint]
    risk: Risk
    shapes: np.ndarray | None = None

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Least and largest size that law and constraints allow, parameters."""
        low, high = self.outlook.law.domain[self.outlook.law.size]
        each = [c.sizes(self.outlook) for c in self.constraints]
        return max(1.0, low, *(e[0] for e in each)), min(high, *(e[1] for e in each), math.inf)

    def fewest(self, size: np.ndarray) -> np.ndarray:
        """Fewest tokens by each constraint, and by the law last: (constraints + 1, M)."""
        law = max(1.0, self.outlook.law.domain["n_tokens"][0])
        return _stacked([c.fewest(self.outlook, size) for c in self.constraints], law, size)

    def most(self, size: np.ndarray) -> np.ndarray:
        """Most tokens by each constraint, and by the law last: (constraints + 1, M)."""
        law = self.outlook.law.domain["n_tokens"][1]
        return _stacked([c.most(self.outlook, size) for c in self.constraints], law, size)

    def window(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fewest and most tokens allowed at each size: two arrays (M,); the first is larger where none are."""
        return self.fewest(size).max(axis=0), self.most(size).min(axis=0)

    def binding(self, size: np.ndarray, share: float) -> list[np.ndarray]:
        """Which constraint, by its place, sets the tokens at each size: arrays (M,), the law's place being last."""
        fewest = [] if share == 1 else [self.fewest(size).argmax(axis=0)]
        return fewest if share == 0 else [*fewest, self.most(size).argmin(axis=0)]

    def _tokens(self, size: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Tokens ``share`` of the way, in log, from the fewest to the most allowed: (M,)."""
        if (share == 1).all():
            return self.most(size).min(axis=0)
        if (share == 0).all():
            return self.fewest(size).max(axis=0)
        fewest, most = self.window(size)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.exp((1 - share) * np.log(fewest) + share * np.log(most))
        return np.where(fewest <= most * (1 + MINUTE), np.where(share == 1, most, between), np.nan)

    def allowed(self, size: np.ndarray, share: Any) -> tuple[np.ndarray, Choices]:
        """Which sizes are allowed, and the runs of those that lie ``share`` of the way to the most tokens."""
        tokens = self._tokens(size, np.broadcast_to(share, size.shape))
        keep = self.keep(size, tokens, MINUTE)
        return keep, self.outlook.choices(size[keep], tokens[keep])

    def keep(self, size: np.ndarray, tokens: np.ndarray, slack: float) -> np.ndarray:
        """Which runs keep all constraints and stay within the law's domain, to a share: bool array (M,)."""
        (low, high), (least, largest), near = self.outlook.law.domain["n_tokens"], self.ends, 1 + slack
        keep = (size >= least / near) & (size <= largest * near)
        keep &= (tokens >= max(1.0, low) / near) & (tokens <= high * near)
        for each in self.constraints:
            if keep.any():
                keep[keep] = each.kept(self.outlook, size[keep], tokens[keep])
        return keep

    def risks(self, size: np.ndarray, share: Any) -> np.ndarray:
        """The risk at each size, infinite where none is allowed: (M,)."""
        keep, choices = self.allowed(size, share)
        out = np.full(size.shape, math.inf)
        if keep.any():
            out[keep] = self.risk.of(self.settled.outcomes(self.outlook, choices))
        return out

    def outcomes(self, choices: Choices) -> np.ndarray:
        """Outcomes of given choices, kept or not: (S, M)."""
        return self._drawn(self.settled, choices)

    def _drawn(self, objective: Objective, choices: Choices) -> np.ndarray:
        return np.broadcast_to(objective.outcomes(self.outlook, choices), (self.outlook.size, choices.size.size))

    @cached_property
    def settled(self) -> Objective:
        """The objective, told each draw's own best outcome where it is relative to that."""
        if not self.objective.relative:
            return self.objective
        places, least = self.own_best(self.scan)
        if self.shapes is None:  # once more, where the best sizes of all draws lie
            step = self.scan[1] / self.scan[0]
            least = np.minimum(least, self.own_best(np.geomspace(places.min() / step, places.max() * step, SCAN))[1])
        return self.objective.against(least[:, None])

    def own_best(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each draw's own best of given sizes, and its outcome: two arrays (S,)."""
        size, share = self.grid_of(sizes)
        keep, choices = self.allowed(size, share)
        if not keep.any():
            raise Infeasible
        outcomes = self._drawn(self.objective, choices)
        best = lowest(outcomes) if len(self.shares) == 1 else outcomes.min(axis=1)
        return choices.size[outcomes.argmin(axis=1)], best

    def grid_of(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size, share = np.meshgrid(sizes, self.shares, indexing="ij")
        return size.ravel(), share.ravel()

    @cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Sizes and shares that are looked at first, two arrays of one length: the shares of a size side by side."""
        return self.grid_of(self.scan)

    @cached_property
    def scan(self) -> np.ndarray:
        """Sizes that are looked at first, (M,)."""
        if self.shapes is not None:
            return np.sort(self.shapes)
        least, largest = self.ends
        if not least <= largest:
            raise Infeasible
        coarse = np.exp(np.linspace(math.log(least), math.log(largest), SCAN))
        fewest, most = self.window(coarse)
        open_ = np.flatnonzero(fewest <= most * (1 + MINUTE))
        first, last = (open_[0], open_[-1]) if open_.size else (self._widest(coarse),) * 2
        return np.geomspace(coarse[max(first - 1, 0)], coarse[min(last + 1, SCAN - 1)], SCAN)

    def _widest(self, size: np.ndarray) -> int:
        fewest, most = self.window(size)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.log(most) - np.log(fewest)
        return int(np.nanargmax(np.where(np.isnan(gap), -math.inf, gap)))

    @cached_property
    def shares(self) -> np.ndarray:
        """How far towards the most tokens allowed a choice may lie."""
        ends = {"better": np.ones(1), "worse": np.zeros(1)}
        return ends.get(self.objective.tokens, SHARES)


def best(problem: Problem) -> Choices:
    """The choice of least risk: one run.

    A few draws say about where it lies, all of them where.

    Raises
    ------
    Infeasible
        If no choice keeps all constraints.
    """
    glance = replace(problem, outlook=problem.outlook.few(GLANCE)) if problem.shapes is None else problem
    try:
        return _from(glance, problem)
    except Infeasible:  # of the few, or where they say
        return _from(problem, problem)


def _from(glance: Problem, problem: Problem) -> Choices:
    """The choice of least risk near where another look at the problem has it."""
    size, share = glance.grid
    risks = glance.risks(size, share)
    at = int(risks.argmin())
    if not math.isfinite(risks[at]):
        raise Infeasible
    found = float(size[at]), float(share[at])
    if problem.shapes is None:
        width = 2 * math.log(glance.scan[1] / glance.scan[0])
        found = _narrow(problem, math.log(found[0]), found[1], width, 0.0 if len(problem.shares) == 1 else 0.25)
    return problem.allowed(np.array([found[0]]), found[1])[1]


def _narrow(problem: Problem, u: float, share: float, width: float, step: float) -> tuple[float, float]:
    """Shrink the bracket, ``width`` in log N and ``step`` in the share to each side; move it where it is left."""
    for _ in range(ROUNDS):
        if width <= CLOSE:
            break
        if width <= SMOOTH and not step:
            done = _polished(problem, u, share)
            if done is not None and problem.allowed(np.exp([done]), share)[0].all():
                return math.exp(done), share
        sizes = np.linspace(u - width, u + width, ROUND + 1)
        shares = np.clip(np.linspace(share - step, share + step, 9), 0, 1) if step else np.array([share])
        grid = [each.ravel() for each in np.meshgrid(sizes, shares, indexing="ij")]
        risks = problem.risks(np.exp(grid[0]), grid[1])
        at = int(risks.argmin())
        if not math.isfinite(risks[at]):
            raise Infeasible
        row, column = divmod(at, len(shares))
        left = row in (0, ROUND) or (step > 0 and column in (0, 8) and 0 < shares[column] < 1)
        u, share = (float(each[at]) for each in grid)
        width, step = (width, step) if left else (2 * width / ROUND, step / 3)
    return math.exp(u), share


def _polished(problem: Problem, u: float, share: float) -> float | None:
    """Lowest point of a parabola of fourth order, in log N; None where the risk does not follow one.

    A convex risk that does not has its lowest point at a kink, which the search closes in on. A quantile
    passes from draw to draw as the size changes, so that its own lowest point is anybody's; where the same
    constraints bind all about, it is a parabola fitted to many points that says where it lies.
    """
    found = _turn(problem, u, share, np.arange(-2, 3) * SMOOTH / 2)
    if found is not None and _miss(problem, share, found) <= TRUST:
        return found.place
    if problem.risk.is_convex:
        return None
    wide = np.arange(-7, 8) * WIDE
    if any(np.ptp(which) for which in problem.binding(np.exp(u + wide), share)):
        return None
    found = _turn(problem, u, share, wide)
    again = found and _turn(problem, found.place, share, wide)  # so that it leans on no start
    return again.place if again else None


@final
@dataclass(frozen=True)
class Turn:
    """Lowest point of a parabola about ``center``: its place in log N, and the risk's rise over the points."""

    place: float
    center: float
    parabola: np.polynomial.Polynomial
    rise: float


def _turn(problem: Problem, u: float, share: float, places: np.ndarray) -> Turn | None:
    """The parabola of fourth order through the risk at ``u + places``; None where it has not one lowest point there."""
    values = problem.risks(np.exp(u + places), share)
    if not np.isfinite(values).all():
        return None
    fitted = np.polynomial.Polynomial.fit(places, values, 4)
    turns = fitted.deriv().roots()
    turns = np.sort(turns[np.isreal(turns)].real)
    inside = turns[(np.abs(turns) < places[-1]) & (fitted.deriv(2)(turns) > 0)]
    return Turn(u + float(inside[0]), u, fitted, float(np.ptp(values))) if inside.size == 1 else None


def _miss(problem: Problem, share: float, turn: Turn) -> float:
    """By which share of its rise the risk misses the parabola, near the lowest point and between the points."""
    near = turn.place + np.array([-0.5, 0.0, 0.5]) * SMOOTH / 2
    misses = np.abs(problem.risks(np.exp(near), share) - turn.parabola(near - turn.center))
    return float(misses.max() / (turn.rise or 1.0))


def _stacked(each: list[Any], law: float, size: np.ndarray) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*each, law, size)[:-1])


def lowest(outcomes: np.ndarray) -> np.ndarray:
    """Least outcome of each draw over sizes of one spacing in log, (S,): by the parabola through the three lowest."""
    if outcomes.shape[1] < 3:
        return outcomes.min(axis=1)
    at = np.clip(outcomes.argmin(axis=1), 1, outcomes.shape[1] - 2)
    left, middle, right = (np.take_along_axis(outcomes, (at + k)[:, None], 1)[:, 0] for k in (-1, 0, 1))
    bend = left + right - 2 * middle
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = middle - (right - left) ** 2 / (8 * bend)
    inside = (bend > 0) & (np.abs(right - left) < 2 * bend)
    return np.where(inside, turn, np.minimum(np.minimum(left, middle), right))
