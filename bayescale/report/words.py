"""Numbers to text: significant digits, magnitudes in words, intervals, and how far a plan reaches.

A number alone has three significant digits, an interval as many as show its width. What is not there is
written as ``-``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bayescale.frontier.frontier import Frontier
from bayescale.frontier.rows import FAR
from bayescale.laws._law import Law
from bayescale.model.joint import Model
from bayescale.model.pooling import Pooling
from bayescale.parameter import Fixed, Parameter, Prior
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.posterior import Posterior

NONE = "-"
# Names of magnitudes end at the trillion: beyond it they mean different things in different languages.
MAGNITUDES = ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1e3, " K"))
PLAIN = (1e-4, 1e6)  # between these a number is written out, elsewhere with an exponent
ENGINES = {
    "nuts": "sampled by NUTS",
    "laplace": "APPROXIMATE: Laplace's Normal at the mode, not the posterior",
    "prior": "PRIOR: no run has been used",
    "published": "PUBLISHED: one point, without uncertainty",
    "huber": "BOOTSTRAP: Huber's fit to resamples, not a posterior; no prior used",
}
MOST_NAMED = 4  # of the names in one sentence


def number(value: float | None, significant: int = 3) -> str:
    """A number to so many significant digits: ``0.348``, ``1,230``, ``5.76e23``."""
    if value is None or math.isnan(value):
        return NONE
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{significant - 1}e}".split("e")
    rounded = float(f"{mantissa}e{exponent}")
    if PLAIN[0] <= abs(rounded) < PLAIN[1]:
        return f"{rounded:,.{max(0, significant - 1 - int(exponent))}f}"
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"


def count(value: float | None, significant: int = 3) -> str:
    """A number of parameters or tokens: ``96.0 B``, ``1.40 T``; with an exponent from 1e15 on."""
    if value is None or not math.isfinite(value):
        return number(value, significant)
    rounded = float(f"{value:.{significant - 1}e}")
    if abs(rounded) >= 1e15:
        return number(rounded, significant)
    for size, name in MAGNITUDES:
        if abs(rounded) >= size:
            return number(rounded / size, significant) + name
    return number(rounded, significant)


def interval(
    median: float | None,
    lower: float | None,
    upper: float | None,
    write: Callable[[float | None, int], str] = number,
    between: str = " ",
) -> str:
    """``72.2 B [48.1 B, 110 B]``: each number with its own magnitude, so that none is misread."""
    if median is None or math.isnan(median):
        return NONE
    n = digits(median, lower, upper)
    return f"{write(median, n)}{between}[{write(lower, n)}, {write(upper, n)}]"


def digits(median: float | None, lower: float | None, upper: float | None) -> int:
    """Significant digits, 3 to 5, that cut the interval into 4 to 40 steps where they can; 5 for a point."""
    if median is None or lower is None or upper is None or not math.isfinite(upper - lower):
        return 3
    width, size = upper - lower, max(abs(lower), abs(median), abs(upper))
    if width <= 0 or size == 0:
        return 5
    return min(5, max(3, math.floor(math.log10(size)) - math.floor(math.log10(width / 4)) + 1))


def kind(level: float) -> str:
    """Kind and level of every interval of this package: ``90 % equal-tailed``."""
    return f"{100 * level:g} % equal-tailed"


def amount(n: int, noun: str) -> str:
    """``1 run``, ``24 runs``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def some(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def printable(text: str) -> str:
    """Text on one line without control characters: names in a user's table may hold any."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def reach(factor: float) -> str:
    """Compute against the largest fitted run: ``inside the data``, ``77.4 times the largest run``."""
    if factor <= 1:
        return "inside the data"
    return f"{number(factor)} times the largest run" + (": far outside the data" if factor > FAR else "")


def status(found: str, checks: Sequence[Check] = (), warning: str | None = None) -> str | None:
    """The first line of a result that is not to be relied on; None where it passed.

    ``checks`` are named where the result carries them; ``warning`` is of its intervals beyond the data.
    """
    gate = f"{warning.capitalize()}: the table fails the gate, whatever the intervals say." if warning else None
    return " ".join(filter(None, [gate, _diagnosed(found, checks)])) or None


def _diagnosed(found: str, checks: Sequence[Check]) -> str | None:
    if found == "PASS":
        return None
    worst = [c for c in checks if c.status == found]
    if found == "FAIL":
        failing = "; ".join(f"{c.name} {c.value:.4g} (limit {c.limit})" for c in worst)
        return f"FAIL: {failing or 'the fit behind this failed its diagnostics'}; do not decide on this fit."
    unknown = "; ".join(c.advice if c.name == "engine" else f"{c.name}: {c.advice}" for c in worst)
    return f"UNKNOWN: {unknown or 'the fit behind this was not checked'}; no decision should rest on this alone."


def prior_cells(parameter: Parameter, prior: Prior | Fixed) -> tuple[str, ...]:
    """Name, distribution, median and 90 % interval of a prior, in the parameter's own unit."""
    if isinstance(prior, Fixed):
        return parameter.name, "fixed", f"{prior.value:.4g}", "-"
    low, mid, high = prior.at(1.0).interval()
    unit = " x median loss" if prior.center is None else ""
    of = "table" if prior.center is None else f"{prior.center:g}"
    written = f"{type(prior).__name__}({of}, {prior.spread:g})"
    return parameter.name, written, f"{mid:.3g}{unit}", f"{low:.3g} to {high:.3g}{unit}"


def between(parameter: Parameter, pooling: Pooling) -> str:
    """How groups share a parameter, in brackets; nothing where there are no groups."""
    kind_of = pooling.kind(parameter)
    scale = f", sd between groups ~ HalfNormal({parameter.between_groups:g}) of its log or log odds"
    return "" if not pooling.by else f" ({kind_of}{scale if kind_of == 'partial' else ''})"


def law_name(law: Law, drifts: bool) -> str:
    """The law, and whether what is shown admits that it is not exact."""
    return type(law).__name__ + (" with drift" if drifts else "")


def drawn_from(posterior: Posterior) -> str:
    """What the draws are called: those of a posterior, or the replicates of a bootstrap."""
    return "bootstrap" if "resampled" in posterior.info else "posterior"


def resampled(info: Mapping[str, Any]) -> str:
    """How a bootstrap was made: ``500 resamples of 9 clusters by 'budget', seed 1``."""
    by = info["resampled"]["by"]
    units = amount(info["resampled"]["units"], "run" if by is None else "cluster") + (f" by {by!r}" if by else "")
    return f"{amount(info['draws'], 'resample')} of {units}, seed {info['seed']}"


def estimate(info: Mapping[str, Any]) -> str:
    """The one fit to all runs that a bootstrap is about."""
    letters = ", ".join(f"{name} {number(value, 4)}" for name, value in info["estimate"].items())
    return f"fit to all runs: {letters}; sum of Huber's loss {number(info['objective'], 7)}"


def scatter(model: Model) -> str:
    """How runs scatter around the law of a model, and which rows share a shock."""
    shared = [f"{s.by!r}{' tilting with size' if s.tilt else ''}" for s in model.shocks]
    beside = f"; shocks shared by rows of one {', of one '.join(shared)}" if shared else ""
    return f"noise on log loss: {type(model.noise).__name__}{beside}"


def equation(model: Model) -> str:
    """The law of a model by name and formula."""
    return (
        f"{law_name(model.law, model.drift is not None)}, {(type(model.law).__doc__ or '').splitlines()[0].rstrip('.')}"
    )


def problem(frontier: Frontier) -> str:
    """What a frontier minimised, and by which rule it spends."""
    return f"{law_name(frontier.law, frontier.mean is not frontier.law)}, {frontier.rule}"
