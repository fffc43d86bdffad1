"""The command line: the same verbs as in Python, from the words of a shell.

Nothing heavy is imported until a command runs; a table that is refused is refused before jax loads.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

import bayescale as bs
from bayescale import _cli_backtest, _cli_ledger, _cli_pilot, _cli_recommend, _cli_report
from bayescale import _cli_options as options
from bayescale._cli_options import (
    RULE,
    TABLES,
    At,
    BytesPerToken,
    Columns,
    Csv,
    Decimal,
    Drifts,
    Encoding,
    Excluded,
    Fit,
    GroupBy,
    Json,
    LawName,
    LeftOut,
    Level,
    LossUnit,
    OfGroup,
    OfMean,
    OfNew,
    Seed,
    Sheet,
    Units,
)
from bayescale._cli_run import command, show, start_logging, to_write, write

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``bayescale`` script."""
    app(prog_name="bayescale")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bayescale {bs.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say what is being done, on standard error.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Bayesian scaling laws: how large a language model to train, on how many tokens, and how sure that is.

    Exit codes: 0 done; 1 an error, with what to do about it; 2 usage; 3 the result rests on a fit whose
    diagnostics are FAIL or UNKNOWN, or lies beyond runs that allow no calibrated forecast; 130 interrupted.
    """
    start_logging(logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING)


@app.command()
@command
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to write.")] = Path("bayescale-demo"),
) -> str:
    """The main job on real runs that come along: fits, plan, forecasts of larger runs against what they reached."""
    from bayescale import _cli_demo

    return _cli_demo.demo(out)


@app.command()
@command
def fit(
    source: Annotated[Path, typer.Argument(metavar="RUNS", help=TABLES)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FIT.nc", help="Where to write the fit.")],
    law: LawName = "chinchilla",
    group_by: GroupBy = None,
    pooling: Annotated[
        Literal["complete", "partial", "separate"] | None,
        typer.Option(help="How groups share the law: partial with --group-by, complete without."),
    ] = None,
    column: Columns = [],
    unit: Units = [],
    flops_per_param_token: Annotated[float, typer.Option(metavar="K", help=RULE)] = 6.0,
    exclude: Excluded = [],
    leave_out: LeftOut = [],
    loss_unit: LossUnit = None,
    bytes_per_token: BytesPerToken = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    on_invalid: Annotated[
        Literal["error", "drop"], typer.Option(help="Stop at rows that break a rule, or leave them out.")
    ] = "error",
    drift: Drifts = "default",
    noise: Annotated[Literal["student-t", "gaussian"], typer.Option(help="Scatter of log loss.")] = "student-t",
    shock: Annotated[
        list[str], typer.Option(metavar="COLUMN[:tilt]", help="Rows of one label share a shock; may be given again.")
    ] = [],
    prior: Annotated[
        list[str], typer.Option(metavar="NAME=CENTER,SPREAD", help="Change a prior: alpha=0.35,0.2.")
    ] = [],
    fix: Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="Hold a parameter at a value: alpha=0.35.")] = [],
    engine: Annotated[
        Literal["nuts", "laplace", "prior", "huber"],
        typer.Option(help="Sample; a quick approximation; draws of the prior; or a bootstrap of Huber's fit."),
    ] = "nuts",
    chains: Annotated[int | None, typer.Option(metavar="K", help="Chains of NUTS, 4 unless given.")] = None,
    draws: Annotated[int | None, typer.Option(metavar="K", help="Draws kept of each chain, 1000 unless given.")] = None,
    warmup: Annotated[int | None, typer.Option(metavar="K", help="Warm-up steps of each chain.")] = None,
    target_accept: Annotated[float | None, typer.Option(metavar="P", help="Acceptance that NUTS aims at.")] = None,
    platform: Annotated[Literal["cpu", "gpu", "tpu"] | None, typer.Option(help="Where to sample.")] = None,
    keep_interrupted: Annotated[
        bool, typer.Option("--keep-interrupted", help="On Ctrl-C, write what was drawn.")
    ] = False,
    seed: Seed = None,
    metadata: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Notes to keep with the fit.")] = None,
    as_json: Json = False,
) -> str:
    """Fit a law to a table of runs, and write the posterior."""
    shared = options.pooling(pooling, group_by)
    said = options.Said(column, unit, leave_out, loss_unit, bytes_per_token, decimal, encoding, sheet)
    runs = options.read(source, said, exclude, on_invalid, flops_per_param_token)
    notes = options.metadata(metadata)
    to_write(out)
    chosen = bs.laws.get(law)
    bs.use_compile_cache()
    scatter = bs.StudentT() if noise == "student-t" else bs.Gaussian()
    drifts = options.drift(drift)
    plain = bs.Model(chosen, shared, scatter, drift=drifts, shocks=options.shocks(shock))
    model = dataclasses.replace(plain, priors=options.priors(plain, fix, prior))
    settings = {"chains": chains, "draws": draws, "warmup": warmup, "target_accept": target_accept}
    settings |= {"platform": platform, "keep_interrupted": keep_interrupted}
    posterior = bs.fit(runs, model, engine=options.engine(engine, settings), seed=seed, metadata=notes)
    posterior.save(out)
    from bayescale import _cli_words as words

    words.show_fit(posterior, runs, out, as_json)
    return posterior.standing


app.command()(command(_cli_backtest.backtest))
app.command()(command(_cli_recommend.recommend))
app.command()(command(_cli_pilot.pilot))
app.command("decision-schema")(command(_cli_recommend.schema))
app.command()(command(_cli_report.report))
app.add_typer(_cli_ledger.app, name="ledger")


@app.command()
@command
def inspect(
    source: Annotated[Path, typer.Argument(metavar="TABLE", help=TABLES)],
    column: Columns = [],
    unit: Units = [],
    exclude: Excluded = [],
    leave_out: LeftOut = [],
    loss_unit: LossUnit = None,
    bytes_per_token: BytesPerToken = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    flops_per_param_token: Annotated[float, typer.Option(metavar="K", help=RULE)] = 6.0,
    as_json: Json = False,
) -> None:
    """Show how a table would be read, without fitting it: columns, units, bad rows, rows that may be no runs."""
    from bayescale.runs.inspection import inspect_runs

    said = options.Said(column, unit, leave_out, loss_unit, bytes_per_token, decimal, encoding, sheet)
    found = inspect_runs(source, **options.settings(said, exclude, flops_per_param_token))
    show(found.to_dict(), [found], as_json)
    if found.message:
        raise ValueError(found.message.splitlines()[0])


@app.command()
@command
def check(source: Fit, as_json: Json = False) -> str:
    """Say whether a fit can be trusted: its sampling, its runs, its model, its design."""
    posterior = bs.load(source)
    from bayescale.report import checks

    bs.use_compile_cache()
    found = checks.checks(posterior)
    show(found, [checks.check_page(posterior, found).text()], as_json)
    return posterior.standing


@app.command()
@command
def allocate(
    source: Fit,
    budget: Annotated[list[str], typer.Option(metavar="FLOP", help="Training compute, FLOPs; may be given again.")],
    group: OfGroup = None,
    new_group: OfNew = False,
    population_mean: OfMean = False,
    level: Level = 0.9,
    flops_per_param_token: Annotated[
        float | None, typer.Option(metavar="K", help=f"{RULE} [default: the fit's]")
    ] = None,
    at: At = [],
    as_json: Json = False,
    csv: Csv = None,
) -> str:
    """Compute-optimal model size, tokens and loss for each budget, with their intervals."""
    chosen, held = options.group(group, new_group, population_mean), options.conditions(at)
    posterior = bs.load(source)
    bs.use_compile_cache()
    rule = None if flops_per_param_token is None else bs.FlopsRule(flops_per_param_token)
    from bayescale import _cli_words as words

    frontier = bs.allocate(posterior, budget, rule=rule, group=chosen, at=held, level=level)
    words.show_plan(frontier, as_json, csv)
    return frontier.standing


@app.command()
@command
def predict(
    source: Fit,
    n_params: Annotated[list[float], typer.Option(metavar="N", help="Parameters of a run; may be given again.")],
    n_tokens: Annotated[list[float], typer.Option(metavar="D", help="Tokens of a run; may be given again.")],
    group: OfGroup = None,
    new_group: OfNew = False,
    population_mean: OfMean = False,
    level: Level = 0.9,
    at: At = [],
    as_json: Json = False,
    csv: Csv = None,
) -> str:
    """Loss of planned runs: of the mean over runs like it, and of one new run."""
    chosen = options.group(group, new_group, population_mean)
    runs, held = options.planned(n_params, n_tokens), options.conditions(at)
    posterior = bs.load(source)
    bs.use_compile_cache()
    from bayescale import _cli_words as words
    from bayescale.posterior.inputs import conditions

    runs[posterior.law.size] = runs.pop("n_params")
    forecast = bs.predict(posterior, runs | conditions(posterior.law, held), group=chosen, level=level)
    words.show_plan(forecast, as_json, csv)
    return forecast.standing


@app.command()
@command
def simulate(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="RUNS.csv", help="Where to write the table.")],
    published: Annotated[str, typer.Option(metavar="NAME", help="Published law behind the losses.")] = "besiroglu-2024",
    budget: Annotated[
        list[float], typer.Option(metavar="FLOP", help="Training compute of a group of runs; may be given again.")
    ] = [1e18, 3e18, 1e19, 3e19, 1e20, 3e20, 1e21],
    per_budget: Annotated[int, typer.Option(metavar="K", help="Runs at each budget.")] = 9,
    noise: Annotated[float, typer.Option(help="Scatter of log loss, a share of the loss.")] = 0.005,
    tail: Annotated[float | None, typer.Option(metavar="NU", help="Degrees of freedom; Normal unless given.")] = None,
    seed: Seed = None,
) -> None:
    """Write a table of runs whose losses are simulated under a published law, and which says so."""
    from bayescale.posterior.simulate import isoflop_design

    to_write(out)
    frame = bs.simulate(bs.published(published), isoflop_design(budget, per_budget), noise=noise, tail=tail, seed=seed)
    write(out, lambda part: frame.round({"loss": 5}).to_csv(part, index=False, float_format="%.10g"))
    typer.echo(f"Wrote {out}: {len(frame)} runs, {frame['origin'].iloc[0]}.")


@app.command()
@command
def laws(as_json: Json = False) -> None:
    """List the laws: formula, inputs, parameters and default priors."""
    from bayescale import _cli_words as words

    show(words.laws(), [words.law_pages()], as_json)
