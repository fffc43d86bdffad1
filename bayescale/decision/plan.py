"""A recommendation: what was chosen, what follows from it, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.decision import consequences, entries, scored, uncertain
from bayescale.decision.budget import Budget
from bayescale.decision.constraint import Constraint
from bayescale.decision.cost import CURRENCIES, training_cost
from bayescale.decision.hardware import Hardware
from bayescale.decision.outlook import Choices
from bayescale.decision.rivals import rivals
from bayescale.decision.search import Infeasible, Problem, best
from bayescale.decision.target import Target
from bayescale.frontier.intervals import flat, interval, quantiles
from bayescale.posterior.diagnostics import overall
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.score_forecast import MEAN

if TYPE_CHECKING:
    from bayescale.posterior.linked import Linked
    from bayescale.posterior.posterior import Posterior


@final
@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What to train, with its intervals, its risks and its rivals; all but the choice is computed when asked for.

    Attributes
    ----------
    problem : Problem
        Joint draws, objective, constraints and risk.
    choice : Choices
        The recommended run: one size, its tokens, and its training compute.
    goal : Budget or Constraint
        What may be spent, or what has to be reached.
    hardware : Hardware or None
        On what it is trained, for hours, dollars and energy.
    compared : tuple of float
        Sizes to set beside it, parameters.
    level : float
        Probability inside the equal-tailed intervals.
    alternatives : sequence of dict
        The best run of each combination of the options, with its risk.
    """

    problem: Problem
    choice: Choices
    goal: Budget | Constraint
    hardware: Hardware | None
    compared: tuple[float, ...]
    level: float
    alternatives: Sequence[Mapping[str, Any]]

    @property
    def posterior(self) -> Posterior:
        """The fit that it rests on."""
        return self.problem.outlook.posterior

    @property
    def n_params(self) -> float:
        """Recommended size, parameters (what the law's ``size`` counts)."""
        return float(self.choice.size[0])

    @property
    def n_tokens(self) -> float:
        """Recommended tokens."""
        return float(self.choice.tokens[0])

    @property
    def flop(self) -> float:
        """Training compute, FLOPs."""
        return float(self.choice.flop[0])

    @property
    def tokens_per_parameter(self) -> float:
        """Recommended tokens per parameter."""
        return self.n_tokens / self.n_params

    @property
    def conditions(self) -> dict[str, Any]:
        """Conditions of the law that were settled or chosen."""
        return dict(self.problem.outlook.settled)

    @property
    def target(self) -> Target | None:
        """What has to be reached, where that is asked."""
        return next((c for c in self.problem.constraints if isinstance(c, Target)), None)

    @property
    def extrapolation(self) -> dict[str, float]:
        """Compute, size and tokens, each over the largest of the fitted runs."""
        own = {"flop": self.flop, "n_params": self.n_params, "n_tokens": self.n_tokens}
        return {name: value / self.posterior.largest[name] for name, value in own.items()}

    @property
    def warning(self) -> str | None:
        """What is wrong with its intervals, where it lies beyond runs that fail the gate."""
        return HOLLOW if self.extrapolation["flop"] > 1 and self.posterior.beyond == "FAIL" else None

    @property
    def diagnostics(self) -> str:
        """PASS, FAIL or UNKNOWN: whether the sampling of the fit, and of a link that is read, may be relied on."""
        return overall((*self.posterior.checks, *(c for linked, _ in self._scored for c in linked.checks)))

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether the recommendation may be relied on."""
        return "FAIL" if self.warning else self.diagnostics

    @cached_property
    def risk(self) -> float:
        """The risk measure of the recommended run, in the objective's unit."""
        return float(self.problem.risk.of(self.problem.outcomes(self.choice))[0])

    @cached_property
    def reach(self) -> dict[str, np.ndarray]:
        """Draws (S,) of the mean loss at the choice, and of the loss of the run that is made."""
        mean, run = consequences.reached(self.problem.outlook, self.choice)
        return {"mean": mean, "new_run": run}

    @property
    def _scored(self) -> list[tuple[Linked, str | None]]:
        return scored.asked(self.problem.objective, self.problem.constraints)

    @cached_property
    def scores(self) -> dict[str, dict[str, np.ndarray]]:
        """By task that objective or constraints read: draws (S,) of its mean score at the choice, and of the run's."""
        found = {}
        for linked, task in self._scored:
            found[task or MEAN] = scored.scores(self.problem.outlook, self.choice, linked, task)
        return found

    @cached_property
    def optima(self) -> dict[str, np.ndarray]:
        """Draws (S,) of the compute-optimal size and tokens at the plan's compute, constraints aside."""
        size, tokens = consequences.optima(self.problem.outlook, self.choice)
        return {"n_opt_params": size, "d_opt_tokens": tokens}

    @cached_property
    def regret(self) -> np.ndarray:
        """Draws (S,) of the loss given up against each draw's own best choice within the constraints."""
        return consequences.regret(self.problem, self.choice)

    @cached_property
    def wasted(self) -> np.ndarray:
        """Draws of the share of the compute that the best size would save for the same loss, constraints aside."""
        return consequences.waste(self.problem.outlook, self.choice, self.choice.size)[:, 0]

    @cached_property
    def flat_band(self) -> tuple[float, float] | None:
        """Sizes that waste under 1 % of the compute with probability ``level``; None where none does."""
        return consequences.flat_band(self.problem.outlook, self.choice, self.level)

    @cached_property
    def caution(self) -> consequences.Caution | None:
        """What the risk measure gives up on average, and what it saves by its own measure; None if it is the mean."""
        return consequences.caution(self.problem, self.choice)

    @cached_property
    def monte_carlo_error(self) -> float | None:
        """Standard error of log n_params that is due to the number of draws."""
        return consequences.monte_carlo(self.problem, self.choice)

    @cached_property
    def tornado(self) -> list[dict[str, Any]]:
        """What would be chosen if an unknown were known to be low, or high; the most moving first."""
        return consequences.tornado(self.problem)

    @cached_property
    def binding(self) -> list[tuple[Constraint, Choices | None]]:
        """Constraints that bind, each with what would be chosen without it."""
        return consequences.binding(self.problem, self.choice)

    @cached_property
    def rivals(self) -> list[dict[str, Any]]:
        """The same figures of the rules that people would use instead: one entry each, as in `to_dict`."""
        found = rivals(self.problem, self.compared)
        return [entries.rival(self, name, choice) for name, choice in found.items()]

    @cached_property
    def costs(self) -> dict[str, np.ndarray]:
        """Draws (S,) of accelerator hours, dollars, energy, carbon and days: those that the hardware tells."""
        hardware = self.hardware
        if hardware is None or hardware.utilisation is None:
            return {}
        drawn = {k: self.problem.outlook.draws(k, v)[:, 0] for k, v in hardware.inputs().items()}
        told = {
            currency: needs
            for currency, (_, needs) in CURRENCIES.items()
            if all(getattr(hardware, n, None) is not None or getattr(hardware.chip, n, None) is not None for n in needs)
        }
        return {currency: training_cost(currency, self.flop, hardware, drawn) for currency in told}

    @cached_property
    def needed(self) -> np.ndarray | None:
        """Draws (S,) of the compute with which each draw's own best run reaches the target; None without one."""
        return self.target and consequences.needed(self.problem.outlook, self.target, self.flop)

    @cached_property
    def law_alone(self) -> Plan | None:
        """Of a fit with drift: the same decision, were the law exact; None too where it then has no solution."""
        alone = self.posterior.law_alone
        if alone is None:
            return None
        outlook = replace(self.problem.outlook, posterior=alone, drawn={})
        problem = replace(self.problem, outlook=outlook)
        try:
            return replace(self, problem=problem, choice=best(problem), alternatives=())
        except Infeasible:
            return None

    @property
    def assumptions(self) -> list[str]:
        """What it takes for granted, beside what the fit does."""
        outlook = self.problem.outlook
        drawn = {**(self.hardware.describe() if self.hardware else {})}
        drawn |= {k: uncertain.describe(v) for k, v in outlook.settled.items()}
        return [
            f"a run costs {outlook.rule}",
            f"as small as possible: {self.problem.objective}; spread weighed by: {self.problem.risk}",
            *(f"kept: {each}" for each in self.problem.constraints),
            *(f"score, {task or MEAN}: {linked.basis}" for linked, task in self._scored),
            *([f"sizes to choose from: {len(self.problem.shapes)}"] if self.problem.shapes is not None else []),
            *([f"hardware: {self.hardware.chip.name}, {self.hardware.chip.source}"] if self.hardware else []),
            *(f"{name}: {said}" for name, said in drawn.items()),
            f"{outlook.size:,} joint draws, seed {outlook.seed}",
        ]

    def interval(self, draws: np.ndarray) -> dict[str, float | None]:
        """Median and ends of the plan's interval over draws (S,), NaN left out."""
        ends = np.array([(1 - self.level) / 2, 0.5, (1 + self.level) / 2])
        return interval(*quantiles(draws[:, None], ends)[:, 0])

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values, units in the keys; null where there is no value."""
        return entries.plan_entry(self)

    def to_dataframe(self) -> pd.DataFrame:
        """The recommendation and its rivals, one row each."""
        own = entries.rival(self, "recommended", self.choice)
        return pd.DataFrame([flat(each) for each in (own, *self.rivals)])

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
