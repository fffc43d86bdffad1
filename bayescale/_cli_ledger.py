"""The commands `ledger write | land | show`: forecasts written down before the runs, and what the runs reached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bayescale as bs
from bayescale._cli_options import Json, LossUnit
from bayescale._cli_run import command, show, to_write

File = Annotated[Path, typer.Option("--ledger", metavar="FILE", help="The ledger: JSON lines, only ever added to.")]
Run = Annotated[str, typer.Option("--run", metavar="NAME", help="Name of the run.")]
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def _about() -> None:
    """Forecasts written down before the runs, what the runs reached, and how well they were forecast."""


@app.command()
@command
def write(
    source: Annotated[Path, typer.Argument(metavar="FIT.nc", help="A fit that `bayescale fit` wrote.")],
    ledger: File,
    run: Run,
    n_params: Annotated[float, typer.Option(metavar="N", help="Parameters of the run.")],
    n_tokens: Annotated[float, typer.Option(metavar="D", help="Tokens of the run.")],
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Whose law, of a fit with groups.")] = None,
    as_json: Json = False,
) -> str:
    """Write down what a fit says of a run that is to be trained, before it is."""
    to_write(ledger)
    posterior = bs.load(source)
    bs.use_compile_cache()
    entry = bs.Ledger(ledger).write(posterior, run, n_params=n_params, n_tokens=n_tokens, group=group)
    from bayescale.posterior.ledger import standing
    from bayescale.report.ledgers import entry_page

    show(entry, [entry_page(entry).text()], as_json)
    return standing(entry)


@app.command()
@command
def land(
    ledger: File,
    run: Run,
    loss: Annotated[float, typer.Option(metavar="L", help="Its final loss, in the unit of the forecast.")],
    loss_unit: LossUnit = None,
    as_json: Json = False,
) -> None:
    """Write down what a forecast run reached."""
    found = bs.Ledger(ledger)
    line = found.land(run, loss, loss_unit=loss_unit)
    if as_json:
        return show(line, [], as_json)
    from bayescale.report.ledgers import entry_page

    (entry,) = (e for e in found.entries() if e["run"] == run)
    return show(line, [entry_page(entry).text()], as_json)


@app.command("show")
@command
def show_ledger(ledger: File, as_json: Json = False) -> None:
    """Show open forecasts, those that landed, and their calibration by how far they reached.

    Diagnostics and gates of the fits behind them are in what is printed; the exit code is 0.
    """
    if not ledger.is_file():
        raise FileNotFoundError(f"There is no ledger {ledger}; `bayescale ledger write FIT.nc --ledger` makes one.")
    found = bs.Ledger(ledger)
    show(found.to_dict(), [found], as_json)
