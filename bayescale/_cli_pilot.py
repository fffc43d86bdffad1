"""The command `pilot`: which run to make before a plan is carried out, or that none is worth its cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import bayescale as bs
from bayescale import _cli_options as options
from bayescale._cli_options import Csv, Fit, Json, OfGroup, OfMean, OfNew
from bayescale._cli_recommend import decide
from bayescale._cli_run import show, to_write, write

FORM = "N,D: parameters and tokens of a run, as 1e9,2e10"


def pilot(
    source: Fit,
    decision: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="The decision, as `recommend` reads it.")
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="FLOP", help="Training compute of the plan, FLOPs.")] = None,
    risk: Annotated[str | None, typer.Option(metavar="NAME[:LEVEL]", help="mean, cvar:0.1, entropic:1, ...")] = None,
    candidate: Annotated[
        list[str], typer.Option(metavar="N,D", help="Parameters and tokens of a run; may be given again.")
    ] = [],
    most: Annotated[
        float | None,
        typer.Option(metavar="FLOP", help="Or a grid of runs that cost at most so much."),
    ] = None,
    replicates: Annotated[int, typer.Option(metavar="K", help="How often each run is made.")] = 1,
    batch: Annotated[int, typer.Option(metavar="K", help="Runs that may be made at once.")] = 1,
    unit_worth: Annotated[
        float | None, typer.Option(metavar="FLOP", help="What a unit of the objective is worth; told by the plan.")
    ] = None,
    group: OfGroup = None,
    new_group: OfNew = False,
    population_mean: OfMean = False,
    seed: Annotated[int | None, typer.Option(help="Of uncertain inputs and of the runs' scatter; 0.")] = None,
    as_json: Json = False,
    csv: Csv = None,
) -> str:
    """Which run would improve a plan most for what it costs; or that none is worth it."""
    chosen = options.group(group, new_group, population_mean)
    if candidate and most is not None:
        raise typer.BadParameter("--candidate names runs and --most asks for a grid of them; give one.")
    pairs = [options.numbers("--candidate", text, 2, FORM) for text in candidate]
    said: dict[str, Any] = {} if budget is None else {"goal": {"budget": {"flop": budget}}}
    name, colon, level = (risk or "").partition(":")
    said |= {"risk": {name: level} if colon else name} if risk else {}
    said |= {} if seed is None else {"seed": seed}
    if csv:
        to_write(csv)
    worth = None if unit_worth is None else bs.Budget(flop=unit_worth)
    plan = decide(source, decision, said, chosen)
    pilots = bs.next_pilot(plan, pairs or most, replicates=replicates, batch=batch, unit_worth=worth)
    if csv:
        write(csv, lambda part: pilots.to_dataframe().to_csv(part, index=False))
    show(pilots.to_dict(), [pilots], as_json)
    return pilots.standing
