"""Every figure draws into what it is given, leaves nothing behind, and its table is what the draws say."""

import dataclasses
import inspect
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from report_names import EVIL

from bayescale.frontier.frontier import allocate
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.report import plots

BUDGETS = np.geomspace(1e19, 1e24, 6)
NAMES = ["plot_fit", "plot_residuals", "plot_posterior", "plot_frontier", "plot_tokens_per_parameter"]


def drawn(name: str, posterior: Posterior, **settings) -> Axes | np.ndarray:
    """One figure of a fit."""
    of_frontier = name in ("plot_frontier", "plot_tokens_per_parameter")
    grouped = {"group": posterior.groups[0]} if name == "plot_fit" and posterior.groups else {}
    return getattr(plots, name)(allocate(posterior, BUDGETS) if of_frontier else posterior, **grouped, **settings)


def words(ax: Axes) -> str:
    """All text of the figure that these axes are in."""
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return " ".join(t.get_text() for t in figure.findobj(Text))


def first(found: Axes | np.ndarray) -> Axes:
    return found if isinstance(found, Axes) else found.ravel()[0]


def test_each_figure_has_a_table_twin_and_takes_axes() -> None:
    figures = [n for n in dir(plots) if n.startswith("plot_") and not n.endswith("_data")]
    assert sorted(figures) == sorted([*NAMES, "plot_calibration", "plot_pilots"])
    for name in figures:
        assert callable(getattr(plots, f"{name}_data"))
        assert inspect.signature(getattr(plots, name)).parameters["ax"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", NAMES)
def test_a_new_figure_is_made_only_when_no_axes_are_given(name: str, passed: Posterior) -> None:
    found = drawn(name, passed)
    assert len(plt.get_fignums()) == 1
    first(found).figure.canvas.draw()
    plt.close("all")
    figure = Figure()
    axes = figure.subplots(5, 5) if name == "plot_posterior" else figure.subplots()
    again = drawn(name, passed, ax=axes)
    assert plt.get_fignums() == []
    assert first(again).figure is figure
    assert again is axes if isinstance(axes, Axes) else np.all(again == axes)
    figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_the_current_axes_of_the_caller_stay(name: str, passed: Posterior) -> None:
    mine = plt.figure().subplots()
    figure = Figure()
    drawn(name, passed, ax=figure.subplots(5, 5) if name == "plot_posterior" else figure.subplots())
    assert plt.gca() is mine


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_did_not_pass_says_so_in_the_figure(name: str, passed: Posterior, failed: Posterior) -> None:
    assert "FAIL: do not decide on this fit" in words(first(drawn(name, failed)))
    assert "do not decide" not in words(first(drawn(name, passed)))


@pytest.mark.parametrize("name", NAMES)
def test_the_kind_and_level_of_intervals_stand_in_the_figure(name: str, passed: Posterior) -> None:
    assert "90 % equal-tailed" in words(first(drawn(name, passed)))


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_named_whatever_their_names_hold(name: str, grouped: Posterior) -> None:
    """A dollar sign in a name is no formula."""
    found = plots.plot_fit(grouped, group=EVIL) if name == "plot_fit" else drawn(name, grouped)
    first(found).figure.canvas.draw()
    assert EVIL.replace("$", r"\$") in words(first(found))


def test_axes_carry_units(passed: Posterior) -> None:
    fit, frontier = drawn("plot_fit", passed), drawn("plot_frontier", passed)
    assert (first(fit).get_xlabel(), first(fit).get_ylabel()) == ("training compute (FLOP)", "loss (nats per token)")
    assert "(parameters)" in first(frontier).get_ylabel()
    assert "(tokens per parameter)" in first(drawn("plot_tokens_per_parameter", passed)).get_ylabel()
    assert "nats per token" in drawn("plot_posterior", passed)[4, 2].get_xlabel()


def letters(posterior: Posterior) -> dict[str, np.ndarray]:
    return {k: posterior.tree["posterior"][k].values.ravel() for k in ("A", "B", "E", "alpha", "beta")}


def test_the_frontier_drawn_is_the_closed_form_of_hoffmann_et_al(passed: Posterior) -> None:
    """arXiv 2203.15556, equation 4, draw by draw; quantiles by numpy."""
    c = letters(passed)
    a = c["beta"] / (c["alpha"] + c["beta"])
    g = (c["alpha"] * c["A"] / (c["beta"] * c["B"])) ** (1 / (c["alpha"] + c["beta"]))
    n_opt = g[:, None] * (BUDGETS / 6) ** a[:, None]
    ends = ["lower", "inner_lower", "median", "inner_upper", "upper"]
    quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
    frontier = allocate(passed, BUDGETS[::-1])
    size, ratio = plots.plot_frontier_data(frontier), plots.plot_tokens_per_parameter_data(frontier)
    np.testing.assert_allclose(size["budget_flop"], BUDGETS)
    np.testing.assert_allclose(size[ends].T, np.quantile(n_opt, quantiles, axis=0), rtol=1e-8)
    np.testing.assert_allclose(ratio[ends].T, np.quantile(BUDGETS / 6 / n_opt**2, quantiles, axis=0), rtol=1e-8)
    line = next(line for line in plots.plot_frontier(frontier).lines if len(line.get_xdata()) == len(BUDGETS))
    np.testing.assert_allclose(line.get_ydata(), size["median"])


def test_the_law_drawn_is_the_quantiles_of_its_equation(passed: Posterior) -> None:
    table = plots.plot_fit_data(passed, level=0.8)
    law, runs = table[table["part"] == "law"], table[table["part"] == "run"]
    c = {k: v[:, None] for k, v in letters(passed).items()}
    loss = (
        c["E"] + c["A"] * law["n_params"].to_numpy() ** -c["alpha"] + c["B"] * law["n_tokens"].to_numpy() ** -c["beta"]
    )
    np.testing.assert_allclose(law[["lower", "loss", "upper"]].T, np.quantile(loss, [0.1, 0.5, 0.9], axis=0), rtol=1e-9)
    np.testing.assert_allclose(law["flop"], 6 * law["n_params"] * law["n_tokens"])
    assert list(runs["loss"]) == list(passed.runs.table["loss"])  # type: ignore[union-attr]
    assert runs["flop"].min() <= law["flop"].min() * 2


def test_residuals_are_those_of_log_loss_in_percent(passed: Posterior) -> None:
    c, t = {k: v[:, None] for k, v in letters(passed).items()}, passed.runs.table  # type: ignore[union-attr]
    law = c["E"] + c["A"] * t["n_params"].to_numpy() ** -c["alpha"] + c["B"] * t["n_tokens"].to_numpy() ** -c["beta"]
    found = plots.plot_residuals_data(passed)
    expected = 100 * np.median(np.log(t["loss"].to_numpy()) - np.log(law), axis=0)
    np.testing.assert_allclose(found["residual_percent"], expected, rtol=1e-7)
    assert (found["lower"] < found["upper"]).all()


def test_the_run_that_diverged_is_ringed_by_name(passed: Posterior) -> None:
    found = plots.plot_residuals_data(passed)
    assert list(found.loc[found["flagged"], "run"]) == ["r4"]
    for name in ("plot_fit", "plot_residuals"):
        assert "r4" in words(first(drawn(name, passed)))


def test_the_letters_drawn_are_the_draws(grouped: Posterior) -> None:
    table = plots.plot_posterior_data(grouped)
    assert set(table["group"]) == {"A", EVIL, "C"}
    for name in ("A", "B", "E", "alpha", "beta"):
        expected = grouped.tree["posterior"][name].sel(group="C").values.ravel()
        np.testing.assert_array_equal(table.loc[table["group"] == "C", name], expected)


def test_ninety_percent_of_the_draws_lie_in_the_outer_region(passed: Posterior) -> None:
    """Counted with the contour's own path, which knows nothing of how it was found."""
    grid = plots.plot_posterior(passed, level=0.9)
    outer = grid[4, 3].collections[-1].get_paths()[0]
    c = letters(passed)
    inside = outer.contains_points(np.column_stack([c["alpha"], c["beta"]])).mean()
    assert inside == pytest.approx(0.9, abs=0.06)  # smoothing widens the region a little


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda p, g: plots.plot_fit(g), "name one of"),
        (lambda p, g: plots.plot_fit(published("besiroglu-2024")), "not fitted to runs"),
        (lambda p, g: plots.plot_posterior(published("besiroglu-2024")), "one point"),
        (lambda p, g: plots.plot_posterior(p, ax=Figure().subplots()), r"shape \(5, 5\)"),
        (lambda p, g: plots.plot_residuals(p, against="loss"), "against is one of"),
    ],
)
def test_what_cannot_be_drawn_says_why(draw: Callable, message: str, passed: Posterior, grouped: Posterior) -> None:
    with pytest.raises(ValueError, match=message):
        draw(passed, grouped)
    assert plt.get_fignums() == []


def test_a_single_budget_and_draws_without_optimum_are_drawn(passed: Posterior) -> None:
    plots.plot_frontier(allocate(passed, 1e24)).figure.canvas.draw()
    frontier = allocate(passed, BUDGETS)
    log_n = frontier.log_n[None].copy()
    log_n[:, 0] = np.nan
    partly = dataclasses.replace(frontier, log_n={None: log_n})
    assert plots.plot_frontier_data(partly)["median"].isna().tolist() == [True] + [False] * 5
    plots.plot_tokens_per_parameter(partly).figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_says_whether_what_it_shows_admits_a_drift(name: str, passed: Posterior, drifting: Posterior) -> None:
    assert "Chinchilla" in words(first(drawn(name, passed)))
    assert "with drift" not in words(first(drawn(name, passed)))
    assert "Chinchilla with drift" in words(first(drawn(name, drifting)))
