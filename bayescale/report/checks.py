"""Everything that tells whether a fit can be trusted, as JSON values and as a page."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayescale.posterior import checks as found_by
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import amount, number, status
from bayescale.runs.design import Finding

if TYPE_CHECKING:
    import pandas as pd

    from bayescale.posterior.posterior import Posterior

LOO_DRAWS = 100  # a fifth of the draws is the tail that is smoothed (Vehtari et al. 2024), and 20 are few


def outliers(posterior: Posterior) -> list[dict[str, Any]]:
    """Runs that are more probably off the law than on it; none where no run was used."""
    return [row for row in _records(found_by.outliers(posterior)) if row["flagged"]] if used_runs(posterior) else []


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
        "design": list(posterior.info.get("design", ())),
    }
    if not used_runs(posterior):
        return found
    return found | {
        "psis_loo": _loo(posterior),
        "outliers": outliers(posterior),
        "predictive_check": _records(found_by.predictive_check(posterior)),
    }


def _loo(posterior: Posterior) -> dict[str, float] | None:
    """The figures of PSIS-LOO; None where there are too few draws to smooth their tail."""
    size = posterior.tree["posterior"].sizes
    if size["chain"] * size["draw"] < LOO_DRAWS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a large Pareto k, which is shown
        loo = found_by.loo(posterior)
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
    return Page(
        status(posterior.status, posterior.checks, posterior.warning),
        f"Diagnostics {posterior.status}",
        (),
        [*sampling(posterior), *design(found), *model_checks(found), *flagged(found)],
    )


def sampling(posterior: Posterior) -> list[Notes]:
    """The checks of the draws, and of what lies beyond the data."""
    parts = [Notes("Sampling", tuple(map(str, posterior.checks)))]
    return parts + ([Notes("Forecasts beyond the data", tuple(map(str, posterior.gate)))] if posterior.gate else [])


def design(found: Mapping[str, Any]) -> list[Notes]:
    """What the table cannot tell, by its design."""
    lines = tuple(str(Finding(**{**finding, "groups": tuple(finding["groups"])})) for finding in found["design"])
    return [Notes("The design cannot tell", lines)] if lines else []


def model_checks(found: Mapping[str, Any]) -> list[Table | Notes]:
    """Whether the model makes tables like this one."""
    if "psis_loo" not in found:
        return []
    return [
        Notes("PSIS-LOO of log loss", (_loo_line(found["psis_loo"]),)),
        Table(
            "Predictive check, 90 % equal-tailed interval of tables that the fit would make",
            ("statistic", "observed", "lower", "upper", "p-value"),
            tuple(
                (row["statistic"], *(number(row[name]) for name in ("observed", "lower", "upper", "p_value")))
                for row in found["predictive_check"]
            ),
        ),
    ]


def flagged(found: Mapping[str, Any]) -> list[Notes]:
    """Runs that are more probably off the law than on it."""
    return [outlier_notes(found["outliers"])] if "outliers" in found else []


def _loo_line(loo: Mapping[str, float] | None) -> str:
    if loo is None:
        return f"needs at least {LOO_DRAWS} draws"
    reliable = "reliable" if loo["largest_pareto_k"] <= loo["good_pareto_k"] else "NOT RELIABLE"
    k = f"largest Pareto k {loo['largest_pareto_k']:.2f}, good up to {loo['good_pareto_k']:.2f}"
    return f"{reliable}: elpd {loo['elpd']:.1f} (se {loo['se']:.1f}), p {loo['p']:.1f}; {k}"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(str(frame.to_json(orient="records", double_precision=15)))


def used_runs(posterior: Posterior) -> bool:
    """Whether runs made it what it is."""
    return posterior.info["engine"] in ("nuts", "laplace", "huber")
