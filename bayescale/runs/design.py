"""What a table of runs cannot tell, whatever its losses are: known before anything is sampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from bayescale.runs.cells import listed
from bayescale.runs.table import Runs

# Values within 5 % of each other are one value: with exponents near .35 the loss then moves by less than
# 2 % of one term, which is the run-to-run noise of public tables.
SAME = 0.05
# Correlation of log N and log D beyond which they are one direction: the variance of either exponent is
# then inflated more than a hundredfold, 1 / (1 - .995^2).
ONE_LINE = 0.995

# The values are those of Besiroglu et al. 2024 (arXiv 2404.10102), rounded.
HOLD_SIZE = (
    "Add runs of other sizes, hold the exponent of the size fixed (priors={'alpha': Fixed(0.35)} in the Chinchilla "
    "law) or give it an informative prior; nothing is tied silently."
)
HOLD_TOKENS = (
    "Add runs on other token counts, hold the exponent of the tokens fixed (priors={'beta': Fixed(0.37)} in the "
    "Chinchilla law) or give it an informative prior; nothing is tied silently."
)
OFF_LINE = (
    "Size and tokens cannot be told apart: add runs at other ratios, hold one exponent fixed or give it an "
    "informative prior; nothing is tied silently."
)
OTHER_BUDGETS = (
    "The optimum is known at this budget; at others it rests on the priors of the exponents. "
    "Add runs at a second budget, as far from it as can be paid for."
)
MORE_RUNS = "Add runs, pool over groups, or state what is known as an informative prior."


@final
@dataclass(frozen=True)
class Finding:
    """One thing that the design of a table cannot identify.

    Attributes
    ----------
    name : str
        ``one_model_size``, ``one_token_count``, ``one_ratio``, ``one_budget``, ``few_runs`` or
        ``single_run_group``.
    column : str
        The column that it is about.
    groups : tuple of str
        The groups that it holds for; empty where it holds for the whole table.
    figures : str
        The figures that show it.
    advice : str
        What can be done.
    """

    name: str
    column: str
    groups: tuple[str, ...]
    figures: str
    advice: str

    def __str__(self) -> str:
        where = f", group {listed(self.groups)}" if self.groups else ""
        return f"{self.name} ({self.column}{where}): {self.figures}. {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self) | {"groups": list(self.groups)}


def design_findings(runs: Runs, by: str | None = None, n_unknowns: int = 5) -> tuple[Finding, ...]:
    """Name what the design cannot identify, in the whole table and within single groups.

    Parameters
    ----------
    runs : Runs
    by : str, optional
        Grouping column. A group is named where it lacks what the whole table has.
    n_unknowns : int
        Number of the law's parameters (for each group, where they are separate).

    Returns
    -------
    tuple of Finding
        Empty where nothing is found.
    """
    n_params, n_tokens, flop = (runs.table[name].to_numpy() for name in ("n_params", "n_tokens", "flop"))
    found = list(_findings(n_params, n_tokens, flop, n_unknowns))
    if by is None:
        return tuple(found)
    label, names = runs.labels(by)
    in_groups: dict[str, list[tuple[str, Finding]]] = {}
    for name in names:
        here = label == name
        for finding in _group_findings(n_params[here], n_tokens[here], flop[here], n_unknowns, by):
            if finding.name not in {f.name for f in found}:
                in_groups.setdefault(finding.name, []).append((name, finding))
    return (*found, *(_joined(members) for members in in_groups.values()))


def _joined(members: list[tuple[str, Finding]]) -> Finding:
    """One finding that several groups share."""
    first = members[0][1]
    figures = listed([f"{name}: {finding.figures}" for name, finding in members])
    return Finding(first.name, first.column, tuple(name for name, _ in members), figures, first.advice)


def _group_findings(
    n_params: np.ndarray, n_tokens: np.ndarray, flop: np.ndarray, n_unknowns: int, by: str
) -> Iterator[Finding]:
    """A group may be small, since it can lean on the others; it is named where it cannot stand alone."""
    n = len(n_params)
    if n == 1:
        yield Finding(
            "single_run_group",
            by,
            (),
            "1 run",
            "Under partial pooling such a group lies between its run and the other groups, with a wide interval; "
            "fitted separately it is its prior.",
        )
        return
    for finding in _findings(n_params, n_tokens, flop, n_unknowns):
        if finding.name != "few_runs" or n <= n_unknowns:
            yield finding


def _findings(n_params: np.ndarray, n_tokens: np.ndarray, flop: np.ndarray, n_unknowns: int) -> Iterator[Finding]:
    yield from _few_runs(len(n_params), n_unknowns)
    n = len(n_params)
    if n < 2:
        return
    one_size, one_count = _is_one(n_params), _is_one(n_tokens)
    if one_size:
        yield Finding("one_model_size", "n_params", (), f"{n} runs, all {_range(n_params)} parameters", HOLD_SIZE)
    if one_count:
        yield Finding("one_token_count", "n_tokens", (), f"{n} runs, all {_range(n_tokens)} tokens", HOLD_TOKENS)
    if one_size or one_count or n < 3:
        return
    if _is_one(flop):
        yield Finding("one_budget", "flop", (), f"{n} runs, all {_range(flop)} FLOPs", OTHER_BUDGETS)
        return
    correlation = float(np.corrcoef(np.log(n_params), np.log(n_tokens))[0, 1])
    if abs(correlation) > ONE_LINE:
        figures = (
            f"{n} runs, tokens per parameter {_range(n_tokens / n_params)}, correlation of log n_params and "
            f"log n_tokens {correlation:.4f}"
        )
        yield Finding("one_ratio", "n_tokens", (), figures, OFF_LINE)


def _few_runs(n: int, n_unknowns: int) -> Iterator[Finding]:
    if n >= 2 * n_unknowns:
        return
    if n <= n_unknowns - 2:
        advice = f"The answer is the prior with hints from the runs. {MORE_RUNS}"
    elif n <= n_unknowns:
        advice = f"The noise around the law cannot be learned from so few. {MORE_RUNS}"
    else:
        advice = f"Intervals lean on the priors. {MORE_RUNS}"
    figures = f"{n} run{'' if n == 1 else 's'} for {n_unknowns} parameters of the law and the noise"
    yield Finding("few_runs", "run", (), figures, advice)


def _is_one(values: np.ndarray) -> bool:
    return float(np.ptp(np.log(values))) <= SAME


def _range(values: np.ndarray) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
