"""What the commands say beyond a result itself: as JSON values, and as pages for a person."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bayescale as bs
from bayescale._cli_run import show, write
from bayescale.report.checks import outlier_notes, outliers
from bayescale.report.words import number, reach

if TYPE_CHECKING:
    from bayescale.frontier.frontier import Frontier
    from bayescale.posterior.posterior import Posterior
    from bayescale.posterior.predict import Forecast
    from bayescale.runs.table import Runs

log = logging.getLogger("bayescale")
# A plan inside the fitted compute may still ask for a size or for tokens that no run had.
BEYOND = {
    "n_opt_extrapolation_factor": ("N_opt", "the largest size"),
    "d_opt_extrapolation_factor": ("D_opt", "the most tokens"),
}


def warn_far(rows: Iterable[Mapping[str, Any]]) -> None:
    """Say for each row of a frontier or a forecast that it leaves the fitted runs behind, and in what."""
    for row in rows:
        beyond = [reach(row["extrapolation_factor"])] if row["extrapolation_factor"] > 1 else []
        for name, words in BEYOND.items():
            factor = row.get(name)
            beyond += [f"{words[0]} is {number(factor)} times {words[1]}"] if factor and factor > 1 else []
        if beyond:
            group = f" of group {row['group']}" if row["group"] is not None else ""
            flop = number(row.get("budget_flop", row.get("flop")))
            log.warning("%s FLOP%s: extrapolation, %s.", flop, group, "; ".join(beyond))


def show_fit(posterior: Posterior, runs: Runs, path: Path, as_json: bool) -> None:
    """Print a fit, the runs off its law, and where it was written."""
    flagged = outliers(posterior)
    result = posterior.to_dict() | {"runs": runs.to_dict(), "outliers": flagged, "file": str(path)}
    written = f"Wrote {path}: `bayescale check` and `bayescale allocate` read it."
    show(result, [posterior, posterior.model, outlier_notes(flagged).text(), written], as_json)


def show_plan(result: Frontier | Forecast, as_json: bool, csv: Path | None) -> None:
    """Print plans or forecasts, and write them as CSV where asked; what lies beyond the runs is warned of."""
    found = result.to_dict()
    warn_far(found["results"])
    if csv:
        write(csv, lambda part: result.to_dataframe().to_csv(part, index=False))
    show(found, [result], as_json)


def laws() -> list[dict[str, Any]]:
    """Every law: its formula, what it reads, what is inferred, and the default priors."""
    found = []
    for name in bs.laws.names():
        law = bs.laws.get(name)
        model = bs.Model(law)
        found.append(
            {
                "name": name,
                "formula": (type(law).__doc__ or "").splitlines()[0],
                "inputs": list(law.inputs),
                "conditions": dict(law.conditions),
                "coefficients": [{"name": q.name, "meaning": q.meaning, "unit": q.unit} for q in law.coefficients],
                "parameters": [
                    {"name": p.name, "meaning": p.meaning, "unit": p.unit, "prior": repr(model.prior(p))}
                    for p in model.parameters
                ],
            }
        )
    return found


def law_pages() -> str:
    """Every law as the model that it makes by default, in Markdown."""
    head = "# Laws, with their parameters and default priors"
    laws = ((name, bs.laws.get(name)) for name in bs.laws.names())
    pages = (
        f"## {name}\n\nReads {', '.join(_input(law, k) for k in law.inputs)}.\n\n"
        f"{textwrap.indent(repr(bs.Model(law)), '    ')}"
        for name, law in laws
    )
    return "\n\n".join([head, *pages])


def _input(law: Any, name: str) -> str:
    """An input, and where an ordinary run has it."""
    return f"{name} (a condition, {law.conditions[name]:g} in ordinary runs)" if name in law.conditions else name
