"""How a fit is made again: what has to be the same, and the command that does it."""

from __future__ import annotations

import shlex
from typing import Any

from bayescale.model.drift import Drift
from bayescale.model.noise import StudentT
from bayescale.parameter import Fixed
from bayescale.posterior.posterior import Posterior
from bayescale.report.tables import Notes, Table
from bayescale.report.words import ENGINES, amount, printable
from bayescale.runs.flops import FlopsRule

SAMPLED = ("chains", "draws", "warmup", "target_accept")
MOST = 12  # runs that a command leaves out by name


def provenance(posterior: Posterior) -> list[Table | Notes]:
    """Table, seed, settings and versions."""
    info, runs = posterior.info, posterior.runs
    rows = [("law", type(posterior.law).__name__), ("engine", ENGINES[info["engine"]])]
    if "source" in info:
        rows.append(("source", info["source"]))
    if runs is not None:
        rows += [("table", runs.source), ("SHA-256 of the table", info["table_hash"])]
    rows += [(name, str(info[name])) for name in ("seed", "chains", "draws", "warmup", "target_accept") if name in info]
    rows += [(f"{name} (s)", str(value)) for name, value in _seconds(info).items()]
    rows += [("machine", info["machine"])] if "machine" in info else []
    rows += [(f"version of {name}", version) for name, version in info.get("versions", {}).items()]
    rows += [(f"note: {printable(str(k))}", str(v)) for k, v in posterior.metadata.items()]
    return [Table("", ("what", "value"), tuple((k, printable(v)) for k, v in rows)), *_again(posterior)]


def _seconds(info: Any) -> dict[str, Any]:
    found = info.get("seconds", {})
    return {"time to fit": found["total"]} if "total" in found else {}


def _again(posterior: Posterior) -> list[Notes]:
    if posterior.runs is None:
        return []
    command, unsaid = fit_command(posterior)
    lines = [command, *(f"not said by this command: {each}" for each in unsaid)]
    lines.append("the table is the same where the SHA-256 above is, which `bayescale fit` writes and --json prints")
    return [Notes("To make the fit again", tuple(lines))]


def fit_command(posterior: Posterior) -> tuple[str, list[str]]:
    """The command that makes a fit again, and what it does not say."""
    runs, model, info = posterior.runs, posterior.model, posterior.info
    assert runs is not None
    law = type(posterior.law).__module__.rpartition(".")[2]
    words = ["bayescale", "fit", runs.source, "--law", law]
    if model.pooling.by:
        words += ["--group-by", model.pooling.by, "--pooling", type(model.pooling).__name__.lower()]
    words += ["--noise", "student-t" if isinstance(model.noise, StudentT) else "gaussian"]
    words += [w for s in model.shocks for w in ("--shock", f"{s.by}:tilt" if s.tilt else s.by)]
    words += ["--drift", "default" if model.drift else "none", "--engine", info["engine"]]
    words += [w for name in ("chains", "draws") if info["engine"] == "nuts" for w in (f"--{name}", str(info[name]))]
    out = [str(run) for run in runs.left_out["run"]]
    words += [w for run in out[:MOST] for w in ("--exclude", run)] if len(out) <= MOST else []
    words += [w for meaning, header in runs.columns.items() for w in ("--column", f"{meaning}={header}")]
    words += ["--flops-per-param-token", f"{runs.rule.k:g}"] if isinstance(runs.rule, FlopsRule) else []
    for name, prior in model.priors.items():
        if isinstance(prior, Fixed):
            words += ["--fix", f"{name}={prior.value:g}"]
        elif prior.center is not None:
            words += ["--prior", f"{name}={prior.center:g},{prior.spread:g}"]
    words += ["--seed", str(info["seed"]), "--out", "fit.nc"]
    return " ".join(map(shlex.quote, map(printable, words))), _unsaid(posterior, len(out))


def _unsaid(posterior: Posterior, left_out: int) -> list[str]:
    """What was chosen in Python, or about the table."""
    runs, model = posterior.runs, posterior.model
    assert runs is not None
    said = [] if model.drift in (None, Drift()) else [f"drift={model.drift}"]
    said += [] if isinstance(runs.rule, FlopsRule) else [f"compute: {runs.rule}"]
    said += [f"{name} pooled {chosen}" for name, chosen in model.pooling.per_parameter.items()]
    said += [f"{amount(left_out, 'row')} left out, named under Data"] if left_out > MOST else []
    said += ["the table was a DataFrame in memory"] if runs.source == "DataFrame" else []
    return said
