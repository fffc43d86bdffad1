"""From the words of a command line to the values that the verbs take."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import bayescale as bs

if TYPE_CHECKING:
    from bayescale.inference._engine import Engine
    from bayescale.model.drift import Drift
    from bayescale.model.joint import Model
    from bayescale.model.pooling import Pooling
    from bayescale.model.shocks import Shocks
    from bayescale.parameter import Fixed, Prior
    from bayescale.posterior.posterior import Group
    from bayescale.runs.table import Runs

# Options that several commands share.
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]
Level = Annotated[float, typer.Option(help="Probability inside the equal-tailed intervals.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random; drawn and stated unless given.")]
TABLES = "Table of finished runs: CSV, TSV, JSON lines, Parquet or Excel."
Columns = Annotated[list[str], typer.Option("--column", metavar="MEANING=HEADER", help="Header: n_params=Params.")]
At = Annotated[list[str], typer.Option("--at", metavar="NAME=NUMBER", help="Condition of the law: n_experts=8.")]
Units = Annotated[list[str], typer.Option("--unit", metavar="MEANING=UNIT", help="Unit of a column: n_params=M.")]
Excluded = Annotated[list[str], typer.Option("--exclude", metavar="COLUMN=VALUE|RUN", help="Leave rows out.")]
LeftOut = Annotated[list[str], typer.Option("--leave-out", metavar="RULE", help="Leave out what a rule doubts.")]
LossUnit = Annotated[str | None, typer.Option(metavar="UNIT", help="Unit of the loss: perplexity, bits per byte.")]
BytesPerToken = Annotated[str | None, typer.Option(metavar="NUMBER|HEADER", help="Gives bits per byte.")]
Decimal = Annotated[Literal[".", ","] | None, typer.Option(help="Decimal mark; told from the cells unless given.")]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Of a text file; UTF-8 unless it says another.")]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Of an Excel workbook with several.")]
RULE = "FLOPs to train one parameter on one token: the rule C = k N D."
LawName = Annotated[str, typer.Option(metavar="NAME", help="Scaling law; `bayescale laws` lists them.")]
Drifts = Annotated[
    Literal["default", "none"], typer.Option("--drift", help="How the law fails beyond its runs; none: it is exact.")
]
GroupBy = Annotated[str | None, typer.Option(metavar="COLUMN", help="Groups of runs, each with its own law.")]

Fit = Annotated[Path, typer.Argument(metavar="FIT.nc", help="A fit that `bayescale fit` wrote.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table as CSV too.")]
OfGroup = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="One group; all of the fit's unless given.")
]
OfNew = Annotated[
    bool, typer.Option("--new-group", help="A group that is not in the table, drawn from the population.")
]
OfMean = Annotated[bool, typer.Option("--population-mean", help="The population's mean, which is not a group.")]


def pairs(option: str, given: Iterable[str], form: str) -> list[tuple[str, str]]:
    """Split ``NAME=VALUE`` at the first ``=``; a usage error where there is none."""
    split = [text.partition("=") for text in given]
    for name, equals, value in split:
        if not (name and equals and value):
            raise typer.BadParameter(f"{option} takes {form}, not {name + equals + value!r}.")
    return [(name, value) for name, _, value in split]


def numbers(option: str, text: str, count: int, form: str) -> list[float]:
    """So many numbers, separated by commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        raise typer.BadParameter(f"{option} takes {form}, not {text!r}.")
    return found


@dataclasses.dataclass(frozen=True)
class Said:
    """What a person says about a table of runs."""

    columns: Iterable[str] = ()
    units: Iterable[str] = ()
    leave_out: Iterable[str] = ()
    loss_unit: str | None = None
    bytes_per_token: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None


def settings(said: Said, exclude: Iterable[str], flops_per_param_token: float) -> dict[str, Any]:
    """The settings of ``read_runs``; of rows to leave out, those named by a column where there are both kinds."""
    by_column: dict[str, list[str]] = {}
    for name, value in pairs("--exclude", [e for e in exclude if "=" in e], "COLUMN=VALUE or RUN"):
        by_column.setdefault(name, []).append(value)
    ratio = said.bytes_per_token
    return {
        "columns": dict(pairs("--column", said.columns, "MEANING=HEADER, as n_params=Params")),
        "units": dict(pairs("--unit", said.units, "MEANING=UNIT, as n_params=M")),
        "rule": bs.FlopsRule(flops_per_param_token),
        "exclude": by_column or _named(exclude) or None,
        "leave_out": tuple(said.leave_out),
        "loss_unit": said.loss_unit,
        "bytes_per_token": float(ratio) if ratio and ratio.replace(".", "", 1).isdigit() else ratio,
        "decimal": said.decimal,
        "encoding": said.encoding,
        "sheet": said.sheet,
    }


def _named(exclude: Iterable[str]) -> list[str]:
    return [e for e in exclude if "=" not in e]


def read(source: Path, said: Said, exclude: Iterable[str], on_invalid: Any, flops_per_param_token: float) -> Runs:
    """The table of runs, without the rows left out by choice."""
    chosen = settings(said, exclude, flops_per_param_token)
    runs = bs.read_runs(source, on_invalid=on_invalid, **chosen)
    named = _named(exclude)
    return runs.without(named) if named and isinstance(chosen["exclude"], dict) else runs


def pooling(kind: str | None, by: str | None) -> Pooling:
    """Partial pooling where there is a grouping column, unless said otherwise."""
    kind = kind or ("partial" if by else "complete")
    if kind == "complete":
        return bs.Complete()
    if not by:
        raise typer.BadParameter(f"--pooling {kind} needs the grouping column: --group-by COLUMN.")
    return bs.Partial(by) if kind == "partial" else bs.Separate(by)


def drift(name: str) -> Drift | None:
    """What other tables say about a law beyond its runs, or nothing."""
    return bs.Drift() if name == "default" else None


def shocks(given: Iterable[str]) -> list[Shocks]:
    """What rows share, as ``COLUMN`` or ``COLUMN:tilt``."""
    return [bs.Shocks(text.removesuffix(":tilt"), text.endswith(":tilt")) for text in given]


def priors(plain: Model, fix: Iterable[str], prior: Iterable[str]) -> dict[str, Prior | Fixed]:
    """Changes to a model's default priors; each keeps the kind that its parameter's range needs."""
    kinds = {p.name: type(p.prior) for p in plain.parameters}
    changed: dict[str, Prior | Fixed] = {}
    for name, text in pairs("--prior", prior, "NAME=CENTER,SPREAD, as alpha=0.35,0.2"):
        center, spread = numbers("--prior", text, 2, "NAME=CENTER,SPREAD, as alpha=0.35,0.2")
        changed[name] = kinds.get(name, bs.LogNormal)(center, spread)  # a name that is unknown is the model's to refuse
    for name, text in pairs("--fix", fix, "NAME=VALUE, as alpha=0.35"):
        if name in changed:
            raise typer.BadParameter(f"{name} is given a prior and held fixed; choose one.")
        changed[name] = bs.Fixed(*numbers("--fix", text, 1, "NAME=VALUE, as alpha=0.35"))
    return changed


def engine(name: str, settings: Mapping[str, Any]) -> Engine:
    """The engine with the settings that were given; a usage error for one that it does not have."""
    kind = {"nuts": bs.NUTS, "laplace": bs.Laplace, "prior": bs.FromPrior, "huber": bs.Huber}[name]
    given = {k: v for k, v in settings.items() if v is not None and v is not False}
    for setting in given.keys() - {f.name for f in dataclasses.fields(kind)}:
        raise typer.BadParameter(f"--{setting.replace('_', '-')} is no setting of the engine {name!r}.")
    return kind(**given)


def metadata(path: Path | None) -> dict[str, Any]:
    """Notes to keep with a fit: a JSON object."""
    try:
        notes = json.loads(path.read_text("utf-8")) if path else {}
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path} is not JSON: {problem}.") from None
    if not isinstance(notes, dict):
        raise ValueError(f'{path} must hold a JSON object, as {{"project": "a"}}, not a {type(notes).__name__}.')
    return notes


def group(name: str | None, new_group: bool, population_mean: bool) -> Group:
    """Whose law: one choice at most."""
    if sum((name is not None, new_group, population_mean)) > 1:
        raise typer.BadParameter("--group, --new-group and --population-mean exclude one another.")
    return bs.NewGroup() if new_group else bs.PopulationMean() if population_mean else name


def conditions(given: Iterable[str]) -> dict[str, float]:
    """Values of a law's conditions, by name."""
    return {name: numbers("--at", value, 1, "NAME=NUMBER")[0] for name, value in pairs("--at", given, "NAME=NUMBER")}


def planned(n_params: list[float], n_tokens: list[float]) -> dict[str, list[float]]:
    """Runs as pairs of size and tokens; one of either may stand for all."""
    if len(n_params) != len(n_tokens) and 1 not in (len(n_params), len(n_tokens)):
        raise typer.BadParameter(
            f"--n-params is given {len(n_params)} times and --n-tokens {len(n_tokens)} times: "
            "give as many of each, or one that stands for all."
        )
    return {"n_params": n_params, "n_tokens": n_tokens}
