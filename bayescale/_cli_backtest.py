"""The command `backtest`: what forecasts from a table's smaller runs were worth on its larger ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import bayescale as bs
from bayescale import _cli_options as options
from bayescale._cli_options import (
    RULE,
    TABLES,
    BytesPerToken,
    Columns,
    Decimal,
    Drifts,
    Encoding,
    Excluded,
    GroupBy,
    Json,
    LawName,
    LeftOut,
    Level,
    LossUnit,
    Seed,
    Sheet,
    Units,
)
from bayescale._cli_run import show, to_write, write


def backtest(
    source: Annotated[Path, typer.Argument(metavar="RUNS", help=TABLES)],
    law: LawName = "chinchilla",
    group_by: GroupBy = None,
    factor: Annotated[
        list[float], typer.Option(metavar="R", help="Train on at most 1/R of the largest compute; may be given again.")
    ] = [3.0, 10.0, 30.0, 100.0, 300.0],
    least: Annotated[int, typer.Option(metavar="K", help="Runs that a split trains on at least.")] = 10,
    drift: Drifts = "default",
    resamples: Annotated[int, typer.Option(metavar="K", help="Of the Huber bootstrap; 0 leaves it out.")] = 200,
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
    engine: Annotated[Literal["nuts", "laplace"], typer.Option(help="Sample, or a quick approximation.")] = "nuts",
    chains: Annotated[int | None, typer.Option(metavar="K", help="Chains of NUTS.")] = None,
    draws: Annotated[int | None, typer.Option(metavar="K", help="Draws kept of each chain.")] = None,
    level: Level = 0.9,
    seed: Seed = None,
    as_json: Json = False,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write every forecast as CSV too.")] = None,
) -> None:
    """Forecast a table's larger runs from its smaller ones: coverage, scores and bias, with drift and without.

    Its splits' own diagnostics and gates are in what is printed; the exit code is 0.
    """
    said = options.Said(column, unit, leave_out, loss_unit, bytes_per_token, decimal, encoding, sheet)
    runs = options.read(source, said, exclude, on_invalid, flops_per_param_token)
    if csv:
        to_write(csv)
    bs.use_compile_cache()
    found = bs.backtest(
        runs,
        bs.laws.get(law),
        factors=factor,
        group_by=group_by,
        drift=options.drift(drift),
        engine=options.engine(engine, {"chains": chains, "draws": draws}),
        bootstrap=bs.Huber(resamples=resamples) if resamples else None,
        least=least,
        level=level,
        seed=seed,
    )
    if csv:
        write(csv, lambda part: found.to_dataframe().to_csv(part, index=False))
    show(found.to_dict(), [found], as_json)
