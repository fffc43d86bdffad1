"""The main job on real runs that come with the package: a fit, a plan, and forecasts against what was reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import bayescale as bs
from bayescale._cli_run import write
from bayescale.report.tables import Notes, Table
from bayescale.report.words import kind, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bayescale.frontier.frontier import Frontier
    from bayescale.posterior.posterior import Posterior
    from bayescale.runs.table import Runs

SEED = 1
BUDGETS = (1.27e12, 1.27e13, 1.27e14)  # the largest run of the fit, ten and a hundred times as much
CURVE = [10 ** (10.75 + k / 4) for k in range(15)]  # from the smallest run to the largest budget, for the figures
ALONE, DRIFTS = "law alone", "with drift"


def demo(folder: Path) -> str:
    """Fit the runs, plan, and hold forecasts against larger runs; the worse of the diagnostics."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, held = bs.data.load("stdlib"), bs.data.load("stdlib", "held-out")
    typer.echo(
        f"{len(runs)} byte-level language models, trained on Python's own library with at most "
        f"{number(runs.largest['flop'])} FLOP.\n"
        f"{len(held)} further runs, up to {number(held.largest['flop'])} FLOP, are held out to see what the forecasts "
        "are worth.\n"
    )
    bs.use_compile_cache()
    posterior = bs.fit(runs, bs.laws.get("chinchilla"), seed=SEED)
    frontier = bs.allocate(posterior, BUDGETS)
    typer.echo(f"{posterior}\n\n{frontier}\n")
    found = held_out(posterior, held)
    typer.echo(f"{_table(found, held.loss_unit).text()}\n\n{_verdict(found).text()}\n")
    written = _write(posterior, frontier, runs, found, folder)
    typer.echo("\n".join(["Files written:", *(f"  {path}" for path in written)]))
    alone = posterior.law_alone.status if posterior.law_alone else posterior.status
    return max((posterior.standing, alone), key=["PASS", "UNKNOWN", "FAIL"].index)


def held_out(posterior: Posterior, held: Runs) -> pd.DataFrame:
    """One row a run and form: 90 % interval of a new run, what the run reached, whether the interval holds it."""
    import pandas as pd

    found, parts = bs.predict(posterior, held).to_dataframe(), []
    for name, prefix in ((ALONE, "law_alone_"), (DRIFTS, "")):
        columns = {"run": held.table["run"], "fit": name, "extrapolation_factor": found["extrapolation_factor"]}
        columns |= {end: found[f"{prefix}loss_new_run_{end}"] for end in ("median", "lower", "upper")}
        parts.append(pd.DataFrame(columns | {"reached": held.table["loss"]}))
    table = pd.concat(parts, ignore_index=True)
    table["off"] = table["median"] / table["reached"] - 1
    table["holds"] = table["reached"].between(table["lower"], table["upper"])
    return table.sort_values(["extrapolation_factor", "fit"], ignore_index=True)


def _table(found: pd.DataFrame, unit: str) -> Table:
    def cells(name: str, rows: pd.DataFrame) -> tuple[str, ...]:
        first, by_fit = rows.iloc[0], rows.set_index("fit")
        ends = (
            f"{r['lower']:.3f} to {r['upper']:.3f}\n{_percent(r['off'])}, {'holds' if r['holds'] else 'MISSES'} it"
            for r in (by_fit.loc[fit] for fit in (ALONE, DRIFTS))
        )
        return (name, number(first["extrapolation_factor"]), f"{first['reached']:.3f}", *ends)

    return Table(
        f"What held-out runs reached, in {unit}; {kind(0.9)} interval of a new run, by how much its median is off, "
        "and whether it holds what was reached",
        ("run", "x largest\nof the fit", "reached", ALONE, DRIFTS),
        tuple(cells(str(name), rows) for name, rows in found.groupby("run", sort=False)),
    )


def _verdict(found: pd.DataFrame) -> Notes:
    """How many intervals held, beyond the runs and between them, in sentences."""
    larger = found["extrapolation_factor"] > 1
    lines = []
    for name in (ALONE, DRIFTS):
        out, inside = (found[(found["fit"] == name) & where] for where in (larger, ~larger))
        lines.append(
            f"{name}: {out['holds'].sum()} of {len(out)} intervals hold what the larger runs "
            f"reached, and {inside['holds'].sum()} of {len(inside)} between the runs of the fit; medians of the "
            f"larger ones are off by {_percent(min(out['off']))} to {_percent(max(out['off']))}."
        )
    return Notes("In short", tuple(lines))


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _write(posterior: Posterior, frontier: Frontier, runs: Runs, found: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the runs and the results, each under a temporary name first."""
    import matplotlib as mpl

    mpl.use("agg")  # files only: no window is opened
    from bayescale.report import plots

    # A header that says the unit, so that `bayescale fit` reads the file as it is.
    table = runs.to_dataframe().drop(columns=["line", "loss_se"]).rename(columns={"loss": f"loss ({runs.loss_unit})"})
    curve = bs.allocate(posterior, CURVE)
    files: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda part: table.to_csv(part, index=False),
        "fit.nc": posterior.save,
        "held-out.csv": lambda part: found.to_csv(part, index=False),
        "frontier.csv": lambda part: frontier.to_dataframe().to_csv(part, index=False),
        "frontier.json": lambda part: part.write_text(json.dumps(frontier.to_dict(), indent=2) + "\n", "utf-8"),
        "fit.png": lambda part: _save(plots.plot_fit(posterior), part),
        "posterior.png": lambda part: _save(plots.plot_posterior(posterior).flat[0], part),
        "frontier.png": lambda part: _save(plots.plot_frontier(curve), part),
        "tokens-per-parameter.png": lambda part: _save(plots.plot_tokens_per_parameter(curve), part),
    }
    for name, writer in files.items():
        write(folder / name, writer)
    return [folder / name for name in files]


def _save(axes: Axes, path: Path) -> None:
    axes.get_figure(root=True).savefig(path, format="png", dpi=150)  # type: ignore[union-attr]
