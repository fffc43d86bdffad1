"""The main job on a table that comes with the package: from runs to a diagnosed fit, a frontier and figures."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import bayescale as bs
from bayescale._cli_run import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayescale.frontier.frontier import Frontier
    from bayescale.posterior.posterior import Posterior

LAW, SEED = "besiroglu-2024", 1
# The command that makes the table, but for -o FILE: its losses are simulated, none is of a trained model.
RECIPE = ("simulate", "--published", LAW, "--tail", "5", "--seed", "1")
BUDGETS = (1e21, 1e22, 1e23)  # the largest of the table, ten and a hundred times as much
CURVE = [10 ** (18 + k / 4) for k in range(21)]  # 1e18 to 1e23, for the figures


def demo(folder: Path) -> str:
    """Fit the table, allocate budgets, write everything into the folder; the fit's diagnostics."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "runs.csv"
    embedded = importlib.resources.files("bayescale.runs") / "data" / "demo.csv"
    write(table, lambda part: part.write_bytes(embedded.read_bytes()))
    runs = bs.read_runs(table)
    typer.echo(
        f"The losses of these {len(runs)} runs are SIMULATED under the law of Besiroglu et al. 2024: none is of a\n"
        f"trained model. `bayescale {' '.join(RECIPE)} -o {table}` makes the same table.\n"
    )
    bs.use_compile_cache()
    posterior = bs.fit(runs, bs.laws.get("chinchilla"), seed=SEED)
    frontier = bs.allocate(posterior, BUDGETS)
    typer.echo(f"{posterior}\n\n{frontier}\n\n{_truth(frontier)}\n")
    written = [table, *_write(posterior, frontier, folder)]
    typer.echo("\n".join(["Files written:", *(f"  {path}" for path in written)]))
    return posterior.status


def _truth(frontier: Frontier) -> str:
    """What only a simulated table can tell: whether the intervals hold the law that made it."""
    known = bs.allocate(bs.published(LAW), BUDGETS).to_dict()["results"]
    found = frontier.to_dict()["results"]
    held = [
        row["n_opt_params"]["lower"] <= true["n_opt_params"]["median"] <= row["n_opt_params"]["upper"]
        for row, true in zip(found, known, strict=True)
    ]
    sizes = ", ".join(f"{row['n_opt_params']['median']:.3g}" for row in known)
    return (
        f"N_opt of the law behind the table at these budgets: {sizes} parameters; "
        f"{sum(held)} of {len(held)} intervals hold it."
    )


def _write(posterior: Posterior, frontier: Frontier, folder: Path) -> list[Path]:
    """Write the results, each under a temporary name first."""
    import matplotlib as mpl

    mpl.use("agg")  # files only: no window is opened
    from bayescale.report import plots

    curve = bs.allocate(posterior, CURVE)
    files: dict[str, Callable[[Path], object]] = {
        "fit.nc": posterior.save,
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
