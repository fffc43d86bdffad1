"""What is not known when a choice is made, drawn jointly: the law, the run's own scatter, and uncertain inputs.

Every choice is judged on the same draws, so that choices differ by what was chosen and not by chance.
Arrays are (S, M): one row a draw, one column a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from bayescale.decision import uncertain
from bayescale.laws._law import Law, held_at
from bayescale.posterior.inputs import conditions
from bayescale.posterior.predict import losses, scattered
from bayescale.runs.flops import ComputeRule

if TYPE_CHECKING:
    from bayescale.posterior.posterior import Group, Posterior
    from bayescale.posterior.surface import Surface

ELEMENTS, MOST = 1 << 16, 512  # draws x choices evaluated at a time, and choices: one program serves any number


@final
@dataclass(frozen=True)
class Choices:
    """Runs that could be made.

    Attributes
    ----------
    size, tokens, flop : arrays (M,)
        Parameters (what the law's ``size`` counts), tokens, and the training compute that they cost, FLOPs.
    """

    size: np.ndarray
    tokens: np.ndarray
    flop: np.ndarray

    def __getitem__(self, keep: Any) -> Choices:
        return Choices(self.size[keep], self.tokens[keep], self.flop[keep])


@final
@dataclass(frozen=True, eq=False)
class Outlook:
    """Joint draws behind a decision.

    Attributes
    ----------
    posterior : Posterior
        The fit.
    group : str, NewGroup, PopulationMean or None
        Whose law.
    rule : ComputeRule
        What a run costs.
    settled : mapping of str to number, Prior or distribution
        Conditions of the law that are not at their standard.
    seed : int
        Of uncertain inputs and of the run's scatter.
    spending : float or None
        FLOPs that are there to be spent, if that is what limits the choice.
    held : float or None
        FLOPs, by the fit's own rule, at which a path's departure is held, where all choices cost about that:
        the path is rough, and two choices must not differ by where each of them happens to meet it. None
        lets each meet it at its own compute.
    some : array of int or None
        The draws that are looked at, all unless given.
    drawn : dict of str to array
        Draws of the uncertain inputs that have been asked for, by name.
    """

    posterior: Posterior
    group: Group
    rule: ComputeRule
    settled: Mapping[str, Any]
    seed: int
    spending: float | None = None
    held: float | None = None
    some: np.ndarray | None = None
    drawn: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def law(self) -> Law:
        """The law."""
        return self.posterior.law

    @property
    def size(self) -> int:
        """Number of draws looked at."""
        return self.total if self.some is None else len(self.some)

    @cached_property
    def surface(self) -> Surface:
        """The mean loss, draw by draw."""
        plain = {k: float(v) for k, v in self.settled.items() if isinstance(v, Real)}
        surface = self.posterior.surface(self.group, conditions(self.law, plain))
        drawn = {held_at(k): self.drawn_all(k, v) for k, v in self.settled.items() if k not in plain}
        letters = {k: self.kept(v) for k, v in {**surface.letters, **drawn}.items()}
        return replace(surface, letters=letters, path=None if surface.path is None else self.kept(surface.path))

    @cached_property
    def scatter(self) -> np.ndarray:
        """How far the run that will be made ends from its mean, in log loss: (S, 1), 0 where a fit has no noise.

        With new shocks of its own, as at the centre of the table's sizes: what they tilt with size is not in it.
        """
        values = self.posterior.values(self.group)
        if "noise" not in values:
            return np.zeros((self.size, 1))
        rng = np.random.default_rng([self.seed, 3])
        return self.kept(scattered(self.posterior, values, np.zeros((self.total, 1)), None, rng))

    @cached_property
    def total(self) -> int:
        """Number of the posterior's draws."""
        return len(next(iter(self.posterior.coefficients(self.group).values())))

    def draws(self, name: str, value: Any) -> np.ndarray:
        """Draws (S, 1) of an uncertain input, the same for one name wherever it is asked."""
        return self.kept(self.drawn_all(name, value))[:, None]

    def drawn_all(self, name: str, value: Any) -> np.ndarray:
        """The same for all draws, (S,)."""
        if name not in self.drawn:
            self.drawn[name] = uncertain.draws(name, value, self.total, self.seed)
        return self.drawn[name]

    def among(self, some: np.ndarray) -> Outlook:
        """The same, looking at some of the posterior's draws only."""
        return replace(self, some=some)

    def few(self, most: int) -> Outlook:
        """The same with at most so many draws, evenly spaced."""
        if self.size <= most:
            return self
        picked = np.unique(np.linspace(0, self.size - 1, most).round().astype(int))
        return self.among(picked if self.some is None else self.some[picked])

    def choices(self, size: Any, tokens: Any) -> Choices:
        """Runs of these sizes and tokens, with what they cost."""
        size, tokens = np.broadcast_arrays(np.asarray(size, float), np.asarray(tokens, float))
        return Choices(size, tokens, np.asarray(self.rule.flop(size, tokens), float))

    def letters(self, choices: Choices) -> dict[str, np.ndarray]:
        """What the mean loss reads at each choice: arrays (S, 1), and (S, M) or (S, 1) along a path."""
        rule = self.posterior.rule
        own = rule.flop(choices.size, choices.tokens) if self.held is None else np.array([self.held])
        return {k: v if v.ndim > 1 else v[:, None] for k, v in self.surface.at(own).items()}

    def loss(self, choices: Choices) -> np.ndarray:
        """Mean loss of each choice: (S, M)."""
        block = min(MOST, max(1, ELEMENTS // self.size))
        parts = range(0, choices.size.size, block)
        return np.concatenate([self._losses(choices[i : i + block], block) for i in parts], axis=1)

    def _losses(self, choices: Choices, block: int) -> np.ndarray:
        """A block of choices, filled up with copies of its last one to the length that is compiled."""
        n = choices.size.size
        filled = choices[np.minimum(np.arange(block), n - 1)]
        letters, shape = self.letters(filled), (self.size, block)
        run = {k: np.broadcast_to(letters[held_at(k)], shape) for k in self.law.conditions}
        run |= {self.law.size: filled.size, "n_tokens": filled.tokens}
        with jax.enable_x64(True):
            return np.broadcast_to(np.asarray(losses(self.surface.law)(letters, run)), shape)[:, :n]

    def kept(self, values: np.ndarray) -> np.ndarray:
        """Of an array over all draws, those that are looked at."""
        return values if self.some is None else values[self.some]
