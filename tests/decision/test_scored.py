"""Claims: what a run scores is chosen and reached through law and link together."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import decision_stand_in as stand_in
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayescale as bs
from bayescale.decision.described import read_decision
from bayescale.decision.risk import CVaR
from bayescale.decision.scored import Score, ScoreTarget
from bayescale.decision.target import Target
from bayescale.model import score
from bayescale.model.noise import Gaussian
from bayescale.posterior.diagnostics import Check
from bayescale.posterior.predictable import Verdict
from bayescale.runs.scores import Task

LAW = stand_in.posterior(stand_in.cloud(200))
PLAIN = {"floor_shift": 0.0, "gain": 0.4, "fall": 1.5, "ever_gained": 0.85}
ROWS = pd.DataFrame({"run": "r", "task": ["b", "c"], "loss": 2.5, "score": 0.5, "questions": np.nan})


def linked(noise: float = 1e-9, **letters: Any) -> bs.Linked:
    """A link whose draws are given: tasks b and c, of which c is learnt later, and d that follows nothing."""
    rng = np.random.default_rng(1)
    values = {k: np.full((1, 200, 2), v) for k, v in {**PLAIN, **letters, "noise": noise}.items()}
    values["gain"] = values["gain"] * np.array([1.0, 0.5]) * np.exp(0.02 * rng.standard_normal((1, 200, 2)))
    draws = xr.Dataset({k: (("chain", "draw", "task"), v) for k, v in values.items()})
    verdicts = tuple(Verdict(n, 9, 0.9, 0.9, 0.9, "" if n < "d" else "no rise") for n in "bcd")
    scores = bs.Scores(ROWS, {n: Task(0.25) for n in "bcd"}, (), "nats per token")
    model = score.model(bs.links.get("sigmoid"), Gaussian(), {}, 2)
    info = {"loss_center": 2.5, "shared": 0.0}
    checks = (Check("r_hat", 1.0, "1.01", "PASS"),)
    return bs.Linked(xr.DataTree.from_dict({"posterior": draws}), model, scores, verdicts, checks, info, LAW)


def test_the_mean_score_is_largest_where_the_loss_is_least() -> None:
    """A score that falls with the loss of one known law has one best size: Hoffmann et al.'s."""
    known = stand_in.posterior({k: np.array([v]) for k, v in stand_in.B24.items()})
    size = stand_in.optimum(stand_in.B24, 1e23)[0][0]
    plan = bs.recommend(known, 1e23, objective=Score(linked(), "b"))
    assert plan.n_params == pytest.approx(size, rel=1e-3)


def test_the_outcome_is_minus_the_score_that_law_and_link_give() -> None:
    own = linked()
    plan = bs.recommend(LAW, 1e23, objective=Score(own, "c"))
    loss = plan.reach["mean"][:, None]
    wanted = own.shares(own.values(200, 0), loss)[:, 0, 1]
    np.testing.assert_allclose(plan.scores["c"]["mean"], wanted, rtol=1e-12)
    np.testing.assert_allclose(-plan.problem.outcomes(plan.choice)[:, 0], wanted, rtol=1e-6)
    both = bs.recommend(LAW, 1e23, objective=Score(own)).scores["mean over tasks"]["mean"]
    np.testing.assert_allclose(both, own.shares(own.values(200, 0), loss)[:, 0].mean(-1), rtol=1e-3)


@pytest.mark.parametrize("sure", [0.5, 0.9])
def test_a_target_is_reached_with_its_probability(sure: float) -> None:
    """Nearly so: the compute is the least there is."""
    plan = bs.recommend(LAW, ScoreTarget(linked(noise=0.1), 0.6, "b", sure))
    assert (plan.scores["b"]["new_run"] >= 0.6).mean() == pytest.approx(sure, abs=0.006)
    assert plan.problem.objective == bs.recommend(LAW, Target(2.3)).problem.objective
    with pytest.raises(ValueError, match="reads a plan for a budget"):
        bs.next_pilot(plan, [(1e9, 2e10)])


def test_a_sharp_target_of_a_score_is_the_target_of_its_loss() -> None:
    """With one link for all draws, a score of 0.6 is one loss."""
    tree = linked().tree["posterior"].to_dataset()
    own = dataclasses.replace(
        linked(), tree=xr.DataTree.from_dict({"posterior": 0 * tree + tree.median(("chain", "draw"))})
    )
    grid = np.linspace(1.9, 3.0, 5001)
    share = own.shares(own.values(), np.repeat(grid[None], 200, 0))[0, :, 0]
    loss = float(np.interp(-0.6, -share, grid))
    by_score, by_loss = (bs.recommend(LAW, goal) for goal in (ScoreTarget(own, 0.6, "b"), Target(loss)))
    assert by_score.flop == pytest.approx(by_loss.flop, rel=0.01)


def test_caution_and_surety_cost_compute() -> None:
    own = linked(noise=0.1)
    flops = [bs.recommend(LAW, ScoreTarget(own, 0.6, "b", p)).flop for p in (0.5, 0.8, 0.95)]
    assert flops[0] < flops[1] < flops[2]
    assert bs.recommend(LAW, 1e23, objective=Score(own, "b"), risk=CVaR(0.3)).risk < 0


def test_there_is_no_objective_of_an_unpredictable_task() -> None:
    for noun in (Score, lambda link, task: ScoreTarget(link, 0.5, task)):
        with pytest.raises(ValueError, match="d is unpredictable: no rise"):
            noun(linked(), "d")
    with pytest.raises(ValueError, match=r"ScoreTarget\(score\)"):
        ScoreTarget(linked(), 60, "b")


def test_a_failed_link_fails_the_plan() -> None:
    failed = dataclasses.replace(linked(), checks=(Check("r_hat", 1.2, "1.01", "FAIL"),))
    plan = bs.recommend(LAW, 1e23, objective=Score(failed, "b"))
    assert plan.diagnostics == "FAIL"
    assert repr(plan).startswith("FAIL")
    assert "unpredictable and left out: d" in " ".join(plan.assumptions)
    assert set(plan.to_dict()["scores"]) == {"b"}
    assert "Scores, shares of 1" in repr(plan)
    assert "scores" not in bs.recommend(LAW, 1e23).to_dict()


def test_a_decision_in_a_file_names_the_links_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = linked()
    monkeypatch.setattr("bayescale.decision.scored.load_link", lambda path: own if path == "link.nc" else None)
    read = read_decision({"goal": {"score_target": {"linked": "link.nc", "score": 0.6, "task": "b"}}})
    assert read["goal"] == ScoreTarget(own, 0.6, "b")
    read = read_decision({"goal": 1e23, "objective": {"score": "link.nc"}})
    assert read["objective"] == Score(own)
    defined = bs.decision_schema()["$defs"]
    assert set(defined["score"]["properties"]) == {"linked", "task"}
    assert "linked" not in defined
    assert SimpleNamespace(**defined["score_target"]).required == ["linked", "score"]
