"""Claims: draws are labelled, the letters are the closed form of what was sampled, and a group is asked for by name."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import kstest
from simulated_fits import GROUPS, grouped_table, letters, loss, table

from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.pooling import NewGroup, Partial, PopulationMean
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.runs.table import Runs

MAPS = {"log": np.exp, "logit": expit}
PARAMETERS = ("loss_center", "floor_share", "size_share", "alpha", "beta", "noise", "tail")
SITES = {p: f"{'logit' if p.endswith('share') else 'log'}_{p}" for p in PARAMETERS}


def constrained(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parameters' values from those on the unconstrained scale."""
    return {p: MAPS[SITES[p].split("_")[0]](v) for p, v in x.items()}


def center(posterior: Posterior) -> tuple[float, float]:
    """Geometric means of N and D."""
    assert posterior.runs is not None
    t = posterior.runs.table
    return tuple(np.exp(np.log(t[k].to_numpy()).mean()) for k in ("n_params", "n_tokens"))  # type: ignore[return-value]


def close(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)


def test_letters_are_the_closed_form_of_what_was_sampled(laplace: Posterior) -> None:
    draws = laplace.tree["unconstrained_posterior"]
    values = constrained({p: draws[SITES[p]].values.ravel() for p in PARAMETERS})
    close(laplace.coefficients(), letters(values, *center(laplace)))
    close(laplace.values(), values)
    assert laplace.reference == pytest.approx(dict(zip(("n_params", "n_tokens"), center(laplace), strict=True)))


def test_groups_are_drawn_from_their_population(partial_prior: Posterior) -> None:
    """Before any run, a group's value is mean + sd x offset, and the mean its prior's."""
    draws = partial_prior.tree["unconstrained_posterior"]
    assert partial_prior.groups == tuple(sorted(GROUPS))
    for i, group in enumerate(partial_prior.groups):
        x = {}
        for p in partial_prior.model.parameters:
            if p.name == "tail":  # the tail is common to all groups
                x["tail"] = draws["log_tail"].values.ravel()
                continue
            prior = p.prior.at(partial_prior.info["loss_center"])
            mean = prior.loc + prior.spread * draws[f"{p.site}_mean_offset"].values
            sd = np.exp(draws[f"{p.site}_sd"].values)
            x[p.name] = (mean + sd * draws[f"{p.site}_offset"].values[..., i]).ravel()
        values = constrained(x)
        close(partial_prior.values(group), values)
        close(partial_prior.coefficients(group), letters(values, *center(partial_prior)))


def test_the_populations_mean_is_its_closed_form(partial: Posterior) -> None:
    draws = partial.tree["posterior"]
    x = {p: draws[f"{SITES[p]}_mean"].values.ravel() for p in PARAMETERS if p != "tail"}
    values = constrained(x) | {"tail": draws["tail"].values.ravel()}
    close(partial.values(PopulationMean()), values)
    close(partial.coefficients(PopulationMean()), letters(values, *center(partial)))


def test_a_new_group_is_drawn_from_the_population(partial: Posterior) -> None:
    """Standardised by the population's mean and sd it is standard Normal, draw by draw and parameter by parameter."""
    draws, values = partial.tree["posterior"], partial.values(NewGroup())
    z = {}
    for p in partial.model.parameters:
        if p.name == "tail":
            continue
        x = np.log(values[p.name] / (1 - values[p.name])) if p.name.endswith("share") else np.log(values[p.name])
        z[p.name] = (x - draws[f"{p.site}_mean"].values.ravel()) / draws[f"{p.site}_sd"].values.ravel()
        assert kstest(z[p.name], "norm").pvalue > 1e-3, p.name
    off_diagonal = np.corrcoef(list(z.values())) - np.eye(len(z))
    assert np.abs(off_diagonal).max() < 4 / np.sqrt(len(z["alpha"]))
    close(partial.coefficients(NewGroup()), letters(values, *center(partial)))


def test_a_new_group_is_less_certain_than_the_populations_mean(partial: Posterior) -> None:
    for name in ("alpha", "beta", "E"):
        new, mean = (np.log(partial.coefficients(g)[name]) for g in (NewGroup(), PopulationMean()))
        assert np.subtract(*np.quantile(new, [0.95, 0.05])) > 1.2 * np.subtract(*np.quantile(mean, [0.95, 0.05]))


def test_a_new_group_is_the_same_each_time_and_another_under_another_seed(partial: Posterior) -> None:
    again = dataclasses.replace(partial)
    other = dataclasses.replace(partial, info={**partial.info, "seed": 2})
    first = partial.coefficients(NewGroup())["alpha"]
    np.testing.assert_array_equal(again.coefficients(NewGroup())["alpha"], first)
    assert not np.any(other.coefficients(NewGroup())["alpha"] == first)


def test_each_group_has_its_own_runs_law(partial: Posterior) -> None:
    """Losses of the groups differ by 10 and 25 %; each one's law lies within a percent of its own runs."""
    assert partial.runs is not None
    for group, rows in partial.runs.table.groupby("corpus"):
        c = partial.coefficients(str(group))
        mean = loss({k: v[:, None] for k, v in c.items()}, rows["n_params"].to_numpy(), rows["n_tokens"].to_numpy())
        np.testing.assert_allclose(np.median(mean, 0), rows["loss"], rtol=0.03)


def test_groups_are_named_dimensions(partial: Posterior) -> None:
    draws = partial.tree["posterior"]
    assert draws["alpha"].dims == ("chain", "draw", "group")
    assert dict(draws.sizes) == {"chain": 1, "draw": 400, "group": 3}
    for i, name in enumerate(sorted(GROUPS)):
        np.testing.assert_array_equal(draws["alpha"].sel(group=name), draws["alpha"].isel(group=i))
        np.testing.assert_array_equal(
            partial.coefficients(name)["alpha"], draws["alpha"].sel(group=name).values.ravel()
        )
    assert list(partial.tree["constant_data"]["run_group"].values) == list(grouped_table()["corpus"][:35])
    assert list(partial.tree["observed_data"]["run"].values) == [f"läuf {i}" for i in range(35)]


def test_draws_of_one_law_have_no_group(laplace: Posterior) -> None:
    assert laplace.groups == ()
    assert laplace.tree["posterior"]["alpha"].dims == ("chain", "draw")
    assert laplace.tree["log_likelihood"]["log_loss"].dims == ("chain", "draw", "run")


def test_a_category_that_no_run_has_is_no_group() -> None:
    t = grouped_table()
    t["corpus"] = pd.Categorical(t["corpus"], categories=[*GROUPS, "Z"])
    posterior = fit(Runs(t), Chinchilla(), drift=None, pooling=Partial("corpus"), engine=FromPrior(draws=2), seed=1)
    assert posterior.groups == tuple(sorted(GROUPS))


@pytest.mark.parametrize(
    ("fixture", "group", "message"),
    [
        (
            "partial",
            None,
            r"This fit has groups; name one of A, C d, b/é, or ask for NewGroup\(\) or PopulationMean\(\)",
        ),
        ("partial", "c D", r"Unknown group 'c D'; known: A, C d, b/é\. Did you mean 'C d'\? .*NewGroup\(\) explicitly"),
        ("partial", "c4", r"Unknown group 'c4'; known: A, C d, b/é\."),
        ("partial", 3, r"Unknown group 3; known: A, C d, b/é\."),
        ("laplace", "A", "this fit has no groups"),
        ("laplace", NewGroup(), "A new group needs partial pooling"),
        ("separate", NewGroup(), "A new group needs partial pooling"),
        ("separate", PopulationMean(), "A population mean needs partial pooling"),
        ("separate", "Z", "Unknown group 'Z'"),
    ],
)
def test_a_group_that_the_fit_does_not_have_is_refused(
    fixture: str, group: Any, message: str, request: pytest.FixtureRequest
) -> None:
    posterior = request.getfixturevalue(fixture)
    for ask in (posterior.named, posterior.coefficients, posterior.values):
        with pytest.raises(ValueError, match=message):
            ask(group)


def test_a_parameter_without_a_population_has_no_new_group(changed: Posterior) -> None:
    with pytest.raises(ValueError, match="size_share is pooled separately"):
        changed.coefficients(NewGroup())
    assert changed.coefficients("A")["E"].shape == (20,)


def test_letters_are_those_of_the_group_where_only_some_parameters_differ(separate: Posterior) -> None:
    """The scatter is common to all groups, the letters are not."""
    assert separate.tree["posterior"]["noise"].dims == ("chain", "draw")
    np.testing.assert_array_equal(separate.values("A")["noise"], separate.values("C d")["noise"])
    assert not np.any(separate.values("A")["alpha"] == separate.values("C d")["alpha"])
    draws = separate.tree["unconstrained_posterior"]
    for i, group in enumerate(separate.groups):
        x = {p: draws[SITES[p]].values for p in PARAMETERS}
        values = constrained({p: (v[..., i] if v.ndim > 2 else v).ravel() for p, v in x.items()})
        close(separate.coefficients(group), letters(values, *center(separate)))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_are_quantiles_of_the_draws_and_json_safe(partial: Posterior, level: float) -> None:
    page = json.loads(json.dumps(partial.to_dict(level), allow_nan=False))
    assert (page["level"], page["kind"], page["diagnostics"]) == (level, "eti", "UNKNOWN")
    assert [(r["group"], r["n_runs"]) for r in page["results"]] == [("A", 12), ("C d", 11), ("b/é", 12)]
    for row in page["results"]:
        assert list(row["quantities"]) == ["A", "B", "E", "alpha", "beta", "noise", "tail"]
        for name in ("E", "alpha"):
            drawn = partial.coefficients(row["group"])[name]
            ends = np.quantile(drawn, [0.5, 0.5 - level / 2, 0.5 + level / 2])
            assert [row["quantities"][name][k] for k in ("median", "lower", "upper")] == pytest.approx(list(ends))
        assert row["quantities"]["E"]["unit"] == "nats per token"
        assert row["quantities"]["A"]["unit"] == "nats per token x parameters^alpha"


def test_a_published_law_is_json_safe_too() -> None:
    page = json.loads(json.dumps(published("besiroglu-2024").to_dict(), allow_nan=False))
    assert page["results"][0]["quantities"]["E"] == {
        "median": 1.8172,
        "lower": 1.8172,
        "upper": 1.8172,
        "unit": "nats per token",
    }


def test_the_summary_has_every_variable_and_the_interval_of_the_level(passed: Posterior) -> None:
    found = passed.summary(0.8)
    assert set(found.index) == {"A", "B", "E", *PARAMETERS}
    lower, upper = (found.loc["alpha", c] for c in found.columns if c.startswith("eti80"))
    assert [lower, upper] == pytest.approx(list(np.quantile(passed.coefficients()["alpha"], [0.1, 0.9])), rel=1e-6)
    assert {"mean", "sd", "r_hat", "ess_bulk", "ess_tail"} <= set(found.columns)


def test_draws_as_a_table_have_a_row_a_draw_and_group(partial: Posterior, tmp_path: Path) -> None:
    t = partial.to_dataframe()
    assert len(t) == 1 * 400 * 3
    own = t[t["group"] == "C d"]
    np.testing.assert_array_equal(own["E"], partial.coefficients("C d")["E"])
    csv = pd.read_csv(partial.write_draws(tmp_path / "draws.csv"))
    pd.testing.assert_frame_equal(csv, t, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(partial.write_draws(tmp_path / "d.parquet")), t, check_dtype=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.parquet", "draws.csv"]


def test_draws_that_cannot_be_written_leave_nothing(
    laplace: Posterior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"as \.csv or \.parquet, not '\.xlsx'"):
        laplace.write_draws(tmp_path / "draws.xlsx")

    def half(self: pd.DataFrame, to: Path, **_: Any) -> None:
        to.write_text("chain,draw")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    (tmp_path / "draws.csv").write_text("older")
    with pytest.raises(OSError, match="No space left"):
        laplace.write_draws(tmp_path / "draws.csv")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["older"]


def test_a_posterior_knows_its_table(laplace: Posterior) -> None:
    t = table()
    assert laplace.largest == {
        "n_params": t["n_params"].max(),
        "n_tokens": t["n_tokens"].max(),
        "flop": (6 * t["n_params"] * t["n_tokens"]).max(),
    }
    assert laplace.loss_unit == "nats per token"
    np.testing.assert_array_equal(laplace.tree["observed_data"]["loss"], t["loss"])
