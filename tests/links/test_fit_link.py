"""Claims: a link is found for each task that follows the loss, and none for one that does not."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scored_runs import LETTERS, TASKS, runs, sigmoid, table

import bayescale as bs
from bayescale.posterior.linking import _shared
from bayescale.posterior.score_forecast import MEAN

RUNS = runs()
SIGMOID = bs.links.get("sigmoid")


@pytest.fixture(scope="module")
def law() -> bs.Posterior:
    return bs.fit(RUNS, bs.laws.get("chinchilla"), drift=None, engine=bs.Laplace(draws=400), seed=1)


@pytest.fixture(scope="module")
def linked(law: bs.Posterior) -> bs.Linked:
    """At the mode: no sampling."""
    return bs.fit_link(law, SIGMOID, scores=TASKS, engine=bs.Laplace(draws=400), seed=1)


def test_a_task_that_follows_no_loss_is_unpredictable(linked: bs.Linked) -> None:
    assert linked.tasks == ("easy", "choice", "pairs", "written")
    assert "does not rise as the loss falls" in linked.unpredictable["flat"]
    with pytest.raises(ValueError, match="flat is unpredictable"):
        linked.named("flat")
    with pytest.raises(ValueError, match="No task is called 'esy'; those with a link are easy"):
        linked.named("esy")


def test_the_way_from_loss_to_score_is_found_inside_the_data(linked: bs.Linked) -> None:
    loss = np.array([2.6, 3.0, 3.4])
    found = np.median(linked.shares(linked.values(), np.repeat(loss[None], 400, 0)), axis=0)
    for at, name in enumerate(linked.tasks):
        np.testing.assert_allclose(found[:, at], sigmoid(LETTERS[name], loss), atol=0.03, err_msg=name)


def test_letters_of_a_task_are_those_of_its_scores(linked: bs.Linked) -> None:
    """`coefficients` and `shares` are one link."""
    letters = linked.coefficients("choice")
    own = sigmoid(tuple(letters[k] for k in ("a", "b", "k", "L0")), 2.8)  # type: ignore[arg-type]
    both = linked.shares(linked.values(), np.full((400, 1), 2.8))[:, 0, linked.tasks.index("choice")]
    np.testing.assert_allclose(own, both, rtol=1e-9)


def test_a_forecast_carries_law_and_link(linked: bs.Linked, law: bs.Posterior) -> None:
    """The square of its width is the sum of those with the law's loss known, and with the link known."""
    plan = {"n_params": [1e10], "n_tokens": [2e11]}
    groups = {name: group.to_dataset() for name, group in linked.tree.items()}
    groups["posterior"] = groups["posterior"].map(lambda a: 0 * a + a.median(("chain", "draw")))
    known_link = dataclasses.replace(linked, tree=xr.DataTree.from_dict(groups))
    both, by_law = linked.predict(plan), known_link.predict(plan)
    by_link = linked.predict({"loss": bs.predict(law, plan).mean[:, 0]})
    width, of_law, of_link = (np.ptp(found.mean[0, :, 1:], axis=-1) for found in (both, by_law, by_link))
    assert (of_law > 0).all()
    np.testing.assert_allclose(np.hypot(of_law, of_link), width, rtol=0.1)
    assert (np.ptp(both.new_run[0, :, 1:], axis=-1) > width).all()


def test_no_interval_is_given_to_an_unpredictable_task(linked: bs.Linked) -> None:
    found = linked.predict({"n_params": 1e10, "n_tokens": 2e11})
    frame = found.to_dataframe().set_index("task")
    ends = [c for c in frame if c.startswith("score_")]
    assert len(ends) == 6
    assert frame.loc["flat", ends].isna().all()
    assert not frame.loc["flat", "predictable"]
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))["results"][0]
    assert told["tasks"]["flat"]["score"] is None
    assert "does not rise" in told["tasks"]["flat"]["reason"]
    assert told["mean_over_tasks"]["tasks"] == list(linked.tasks)
    text = repr(found)
    assert "flat" in text
    assert "unpredictable: no interval is given" in text
    assert "flat" in repr(linked)
    assert json.loads(json.dumps(linked.to_dict(), allow_nan=False))["results"][-1]["quantities"] is None


def test_the_mean_over_tasks_is_of_those_with_a_link(linked: bs.Linked) -> None:
    found = linked.predict({"loss": [2.8]}).to_dataframe().set_index("task")["score_mean_median"]
    assert found[MEAN] == pytest.approx(found[list(linked.tasks)].mean(), abs=0.003)


def test_scores_are_shares_and_more_is_better_at_lower_loss(linked: bs.Linked) -> None:
    found = linked.predict({"loss": [3.5, 2.5, 1.9]})
    assert ((found.new_run >= 0) & (found.new_run <= 1)).all()
    assert (np.diff(found.mean[:, :, 0], axis=0) > 0).all()
    assert found.runs["below_scored"].tolist()[-1] == 1.0


def test_a_failed_check_is_the_first_thing_said(linked: bs.Linked) -> None:
    assert linked.status == "UNKNOWN"
    assert repr(linked).startswith("UNKNOWN:")
    assert repr(linked.predict({"loss": [2.8]})).startswith("UNKNOWN:")


def test_names_are_escaped(law: bs.Posterior) -> None:
    tasks = {"<b>x": {"column": "easy", "chance": 0.25}, "flat<i>": {"column": "flat", "chance": 0.25}}
    found = bs.fit_link(law, SIGMOID, scores=tasks, engine=bs.Laplace(draws=50), seed=1)
    for html in (found._repr_html_(), found.predict({"loss": [2.8]})._repr_html_()):
        assert "&lt;b&gt;x" in html
        assert "flat&lt;i&gt;" in html
        assert "<b>x" not in html
        assert "<i>" not in html


def test_a_saved_link_comes_back_whole(linked: bs.Linked, tmp_path: Path) -> None:
    """One file holds link, law and scores; the same forecast bit for bit."""
    found = bs.load_link(linked.save(tmp_path / "link.nc"))
    assert found.model == linked.model
    assert (found.verdicts, found.checks, found.unpredictable) == (linked.verdicts, linked.checks, linked.unpredictable)
    assert found.to_dict() == linked.to_dict()
    plan = {"n_params": 1e10, "n_tokens": 2e11}
    np.testing.assert_array_equal(found.predict(plan).new_run, linked.predict(plan).new_run)
    assert repr(found) == repr(linked)


def test_a_link_is_no_fit_and_a_fit_no_link(linked: bs.Linked, law: bs.Posterior, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds a link.*read it with load_link"):
        bs.load(linked.save(tmp_path / "link.nc"))
    with pytest.raises(ValueError, match=r"holds a fit and no link; read it with load\(path\)"):
        bs.load_link(law.save(tmp_path / "fit.nc"))
    with pytest.raises(FileNotFoundError):
        linked.save(tmp_path / "none" / "link.nc")


def test_runs_alone_give_scores_of_losses_only() -> None:
    found = bs.fit_link(RUNS, SIGMOID, scores={"easy": TASKS["easy"]}, engine=bs.Laplace(draws=50), seed=1)
    assert found.tasks == ("easy",)
    with pytest.raises(ValueError, match="fitted without a law: give it losses"):
        found.predict({"n_params": 1e9, "n_tokens": 1e10})


def test_what_cannot_be_fitted_says_why() -> None:
    with pytest.raises(ValueError, match=r"(?s)No task follows the loss.*flat: its score does not rise"):
        bs.fit_link(RUNS, SIGMOID, scores={"flat": 0.25}, seed=1)
    falling = bs.read_runs(table().assign(error=lambda t: 1 - t["easy"]))
    with pytest.raises(ValueError, match="its score falls as the loss does: is it an error"):
        bs.fit_link(falling, SIGMOID, scores={"error": 0.25}, seed=1)
    with pytest.raises(ValueError, match=r"3 scores, where 6 are the fewest"):
        bs.fit_link(bs.read_runs(table().head(3)), SIGMOID, scores={"easy": 0.25}, seed=1)
    with pytest.raises(ValueError, match="a published law has none"):
        bs.fit_link(bs.published("besiroglu-2024"), SIGMOID, scores={"easy": 0.25})
    with pytest.raises(ValueError, match=r"No parameter is called 'gane'.*Did you mean 'gain'"):
        bs.fit_link(RUNS, SIGMOID, scores={"easy": 0.25}, priors={"gane": bs.Fixed(0.5)}, seed=1)


def test_the_correlation_of_scatter_between_tasks_is_told() -> None:
    """Of residuals that share a fifth of their variance, whatever each task's scatter."""
    rng = np.random.default_rng(0)
    run, task = (a.ravel() for a in np.meshgrid(np.arange(2000), np.arange(8), indexing="ij"))
    own = np.sqrt(0.8) * rng.standard_normal((2000, 8)) + np.sqrt(0.2) * rng.standard_normal((2000, 1))
    residual = (own * np.geomspace(0.01, 1, 8)).ravel()
    assert _shared(residual, run.astype(str), task) == pytest.approx(0.2, abs=0.02)
    assert _shared(rng.standard_normal(16000), run.astype(str), task) == pytest.approx(0.0, abs=0.02)


@pytest.mark.slow
def test_nuts_recovers_the_links_of_simulated_tasks() -> None:
    """Sixteen tasks of one population: of their scores at losses in and beyond the data, 90 % intervals hold 90 %."""
    rng = np.random.default_rng(5)
    letters = {}
    for i in range(16):
        floor = rng.choice([0.0, 0.25, 0.5])
        top = floor + (1 - floor) * rng.uniform(0.7, 0.95)
        letters[f"t{i}"] = (
            floor - top,
            top,
            2.5 * np.exp(0.3 * rng.standard_normal()),
            2.8 + 0.25 * rng.standard_normal(),
        )
    tasks = {name: {"chance": max(0.0, own[0] + own[1]), "questions": 2000} for name, own in letters.items()}
    found = bs.fit_link(bs.read_runs(table(36, 7, letters)), SIGMOID, scores=tasks, seed=1)
    assert found.status == "PASS", found
    assert len(found.tasks) >= 14
    loss = np.array([2.2, 2.5, 3.0, 3.5])
    said = found.predict({"loss": loss})
    true = np.stack([sigmoid(letters[name], loss) for name in found.tasks], -1)
    _, lower, upper = np.moveaxis(said.mean[:, :-1], -1, 0)
    held = ((lower <= true) & (true <= upper)).mean()
    assert 0.8 <= held <= 1.0, held
