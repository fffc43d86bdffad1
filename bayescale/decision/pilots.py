"""What pilots are worth: each candidate, the best of them, the best few together, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.decision.entries import unit
from bayescale.decision.exchange import Exchange
from bayescale.decision.plan import Plan
from bayescale.decision.preposterior import Worth


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pilots:
    """Runs that might be made before a plan is carried out, and what each would be worth.

    Attributes
    ----------
    plan : Plan
        What would be done without any.
    runs : DataFrame
        One row a candidate: the law's inputs, ``replicates``, and ``flop``, the compute of all of them.
    worth : tuple of Worth
        What seeing each would be worth, in the unit of the objective.
    steps : tuple of (tuple of int, Worth)
        Batches: the best run, then that and the best beside it, and so on; places in ``runs``.
    exchange : Exchange
        What a unit of the objective is worth in compute.
    perfect : float
        What it would be worth to know the law, in the unit of the objective: no pilot is worth more, on average
        over draws.
    """

    plan: Plan
    runs: pd.DataFrame
    worth: tuple[Worth, ...]
    steps: tuple[tuple[tuple[int, ...], Worth], ...]
    exchange: Exchange
    perfect: float

    @property
    def batch(self) -> tuple[int, ...]:
        """Places of the runs to make: those of the step that is worth most beyond its cost; () where none is."""
        net = [self.figures(runs, found)["net_flop"] for runs, found in self.steps]
        most = int(np.argmax(net))
        return self.steps[most][0] if net[most] > 0 else ()

    @property
    def stop(self) -> bool:
        """Whether neither a candidate nor a batch is worth what it costs."""
        return not self.batch

    @property
    def dollars_per_flop(self) -> float | None:
        """Mean price of compute on the plan's hardware; None where that is not told."""
        dollars = self.plan.costs.get("dollars")
        return None if dollars is None else float(dollars.mean()) / self.plan.flop

    @property
    def diagnostics(self) -> str:
        """PASS, FAIL or UNKNOWN: whether the fit's sampling may be relied on."""
        return self.plan.diagnostics

    @property
    def warning(self) -> str | None:
        """What is wrong with the plan's intervals, where it lies beyond runs that fail the gate."""
        return self.plan.warning

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether its figures may be relied on."""
        return self.plan.standing

    def figures(self, runs: tuple[int, ...], found: Worth) -> dict[str, Any]:
        """What some runs are worth together, in every currency that is known."""
        cost = float(self.runs["flop"].iloc[list(runs)].sum())
        gain = self.exchange.flop * found.gain
        sizes = np.quantile(found.sizes, [0.05, 0.5, 0.95])
        out: dict[str, Any] = {
            "gain": found.gain,
            "gain_error": found.error,
            "gain_flop": gain,
            "cost_flop": cost,
            "net_flop": gain - cost,
            "gain_per_cost": gain / cost,
            "is_lower_bound": found.wider > 1,
            "effective_draws": found.effective,
            "n_params_then": dict(zip(("lower", "median", "upper"), sizes.tolist(), strict=True)),
        }
        price = self.dollars_per_flop
        if price is not None:
            out |= {f"{name}_dollars": out[f"{name}_flop"] * price for name in ("gain", "cost", "net")}
        return out

    def to_dataframe(self) -> pd.DataFrame:
        """One row a candidate, the best first: inputs, gain, cost and what is left of the gain."""
        rows = [self.figures((i,), found) for i, found in enumerate(self.worth)]
        for row in rows:
            then = row.pop("n_params_then")
            row |= {f"n_params_then_{end}": value for end, value in then.items()}
        table = pd.concat([self.runs.drop(columns="flop"), pd.DataFrame(rows)], axis=1)
        return table.sort_values("net_flop", ascending=False, kind="stable").reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values, units in the keys; null where there is no value."""
        order = np.argsort([-self.figures((i,), w)["net_flop"] for i, w in enumerate(self.worth)], kind="stable")
        return {
            "warning": self.warning,
            "diagnostics": self.diagnostics,
            "stop": self.stop,
            "unit": unit(self.plan),
            "objective": {"name": str(self.plan.problem.objective), "risk": str(self.plan.problem.risk)},
            "plan": {"n_params": self.plan.n_params, "n_tokens": self.plan.n_tokens, "flop": self.plan.flop},
            "unit_worth_flop": self.exchange.flop,
            "unit_worth_from": self.exchange.reason,
            "perfect_information": self.perfect,
            "perfect_information_flop": self.perfect * self.exchange.flop,
            "batch": [self._run(i) for i in self.batch],
            "steps": [{"runs": [self._run(i) for i in runs], **self.figures(runs, w)} for runs, w in self.steps],
            "results": [{**self._run(int(i)), **self.figures((int(i),), self.worth[i])} for i in order],
        }

    def _run(self, i: int) -> dict[str, float]:
        return {str(name): float(value) for name, value in self.runs.drop(columns="flop").iloc[i].items()}

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
