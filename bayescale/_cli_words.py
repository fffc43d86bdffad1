"""What the commands say beyond a result itself: as JSON values, and as pages for a person."""

from __future__ import annotations

import json
import logging
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bayescale as bs
from bayescale._cli_run import show, write
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, number, reach, status
from bayescale.runs.design import Finding

if TYPE_CHECKING:
    import pandas as pd

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
LOO_DRAWS = 100  # a fifth of the draws is the tail that is smoothed (Vehtari et al. 2024), and 20 are few


def outliers(posterior: Posterior) -> list[dict[str, Any]]:
    """Runs that are more probably off the law than on it; none where no run was used."""
    return [row for row in _records(bs.outliers(posterior)) if row["flagged"]] if _used_runs(posterior) else []


def outlier_notes(flagged: Sequence[Mapping[str, Any]]) -> Notes:
    """The flagged runs, in words."""
    lines = tuple(
        f"{row['run']} (line {row['line']}): loss {number(row['loss'], 4)}, expected "
        f"{number(row['loss_expected'], 4)}; an outlier with probability {row['probability_outlier']:.2f}"
        for row in flagged
    )
    if not flagged:
        return Notes("Outliers", ("no run is more probably off the law than on it",))
    without = " ".join(f"--exclude '{row['run']}'" for row in flagged)
    way_out = f"all are used; to see how much the answer leans on them, fit again with {without}"
    return Notes(f"Outliers: {amount(len(flagged), 'run')} more probably off the law than on it", (*lines, way_out))


def checks(posterior: Posterior) -> dict[str, Any]:
    """Everything that tells whether a fit can be trusted, as JSON values."""
    found: dict[str, Any] = {
        "warning": posterior.warning,
        "diagnostics": posterior.status,
        "checks": [check.to_dict() for check in posterior.checks],
        "beyond_data": posterior.beyond,
        "gate": [check.to_dict() for check in posterior.gate],
        "design": list(posterior.info["design"]),
    }
    if not _used_runs(posterior):
        return found
    return found | {
        "psis_loo": _loo(posterior),
        "outliers": outliers(posterior),
        "predictive_check": _records(bs.predictive_check(posterior)),
    }


def _loo(posterior: Posterior) -> dict[str, float] | None:
    """The figures of PSIS-LOO; None where there are too few draws to smooth their tail."""
    size = posterior.tree["posterior"].sizes
    if size["chain"] * size["draw"] < LOO_DRAWS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a large Pareto k, which is shown
        loo = bs.loo(posterior)
    names = {
        "elpd": loo.elpd,
        "se": loo.se,
        "p": loo.p,
        "largest_pareto_k": loo.pareto_k.max(),
        "good_pareto_k": loo.good_k,
    }
    return {name: float(value) for name, value in names.items()}


def check_page(posterior: Posterior, found: Mapping[str, Any]) -> Page:
    """The same for a person."""
    design = tuple(str(Finding(**{**finding, "groups": tuple(finding["groups"])})) for finding in found["design"])
    parts: list[Table | Notes] = [Notes("Sampling", tuple(map(str, posterior.checks)))]
    parts += [Notes("Forecasts beyond the data", tuple(map(str, posterior.gate)))] if posterior.gate else []
    parts += [Notes("The design cannot tell", design)] if design else []
    if "psis_loo" in found:
        parts += [
            Notes("PSIS-LOO of log loss", (_loo_line(found["psis_loo"]),)),
            outlier_notes(found["outliers"]),
            Table(
                "Predictive check, 90 % equal-tailed interval of tables that the fit would make",
                ("statistic", "observed", "lower", "upper", "p-value"),
                tuple(
                    (row["statistic"], *(number(row[name]) for name in ("observed", "lower", "upper", "p_value")))
                    for row in found["predictive_check"]
                ),
            ),
        ]
    first = status(posterior.status, posterior.checks, posterior.warning)
    return Page(first, f"Diagnostics {posterior.status}", (), parts)


def _loo_line(loo: Mapping[str, float] | None) -> str:
    if loo is None:
        return f"needs at least {LOO_DRAWS} draws"
    reliable = "reliable" if loo["largest_pareto_k"] <= loo["good_pareto_k"] else "NOT RELIABLE"
    k = f"largest Pareto k {loo['largest_pareto_k']:.2f}, good up to {loo['good_pareto_k']:.2f}"
    return f"{reliable}: elpd {loo['elpd']:.1f} (se {loo['se']:.1f}), p {loo['p']:.1f}; {k}"


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


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(str(frame.to_json(orient="records", double_precision=15)))


def _used_runs(posterior: Posterior) -> bool:
    return posterior.info["engine"] in ("nuts", "laplace", "huber")
