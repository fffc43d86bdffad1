"""The command `report`: a fit, its frontier or a decision as one file that goes to other people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import bayescale as bs
from bayescale import _cli_options as options
from bayescale._cli_options import At, Fit, Level, OfGroup, OfMean, OfNew
from bayescale._cli_recommend import decide
from bayescale._cli_run import to_write


def report(
    source: Fit,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="REPORT", help="Where to: .html or .md.")],
    budget: Annotated[
        list[str], typer.Option(metavar="FLOP", help="Training compute, FLOPs; may be given again.")
    ] = [],
    decision: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="A decision, as of `recommend`, in place of budgets.")
    ] = None,
    group: OfGroup = None,
    new_group: OfNew = False,
    population_mean: OfMean = False,
    level: Level = 0.9,
    at: At = [],
) -> str:
    """One file with the answer, what it rests on and how to make it again; of a fit, its budgets, or a decision."""
    chosen, held = options.group(group, new_group, population_mean), options.conditions(at)
    if decision and budget:
        raise typer.BadParameter("--budget and --decision are two questions; give one, and the budget in the file.")
    if not (decision or budget) and (chosen is not None or held or level != 0.9):
        raise typer.BadParameter("--group, --at and --level are of a --budget; a fit without one is reported whole.")
    to_write(out)
    found = _found(source, budget, decision, chosen, held, level)
    bs.write_report(found, out)
    typer.echo(f"Wrote {out}.")
    return found.standing


def _found(source: Path, budget: list[str], decision: Path | None, group: Any, at: Any, level: float) -> Any:
    if decision:
        own = {} if level == 0.9 else {"level": level}
        return decide(source, decision, own, group)
    posterior = bs.load(source)
    bs.use_compile_cache()
    return bs.allocate(posterior, budget, group=group, at=at, level=level) if budget else posterior
