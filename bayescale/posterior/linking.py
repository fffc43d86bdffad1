"""From losses and scores to a link for each task."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference._progress import bar
from bayescale.inference.nuts import NUTS
from bayescale.links._link import Link
from bayescale.model import score
from bayescale.model.joint import Joint, Model, unpack
from bayescale.model.noise import Noise, StudentT
from bayescale.parameter import Fixed, Prior
from bayescale.posterior import _arviz
from bayescale.posterior.fitting import check_size, checks_of, chosen, versions
from bayescale.posterior.labels import described
from bayescale.posterior.linked import Linked
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predictable import judge
from bayescale.posterior.store import check_metadata
from bayescale.runs.scores import Scores, read_scores
from bayescale.runs.table import Runs

log = logging.getLogger(__name__)


def fit_link(
    source: Posterior | Runs,
    link: Link,
    *,
    scores: Scores | Mapping[str, Any],
    noise: Noise | None = None,
    priors: Mapping[str, Prior | Fixed] | None = None,
    engine: Engine | None = None,
    seed: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Linked:
    """Fit a link from loss to score for each task, the tasks drawn from a population that is inferred with them.

    It is fitted to the losses that the runs ended at, after the law: a run that ended lower than its law says
    scores higher as well. Scores scatter on their log odds around the link, more than the sampling of their
    questions where a task has a scatter of its own. A task that does not follow the loss is left out, by name.

    Parameters
    ----------
    source : Posterior or Runs
        A fit, through whose law planned runs are then predicted; or runs alone.
    link : Link
        Such as ``bayescale.links.get("sigmoid")``.
    scores : Scores or mapping
        From `read_scores`; or what that takes, where scores are columns of the runs' own table.
    noise : Noise, optional
        ``StudentT()`` (default) or ``Gaussian()``, on log odds.
    priors : mapping of str to Prior or Fixed, optional
        Changes to the default priors, by name.
    engine : Engine, optional
        ``NUTS(...)`` unless given.
    seed : int, optional
        Of everything random; drawn, logged and stored when not given.
    metadata : mapping, optional
        Notes to keep with the fit, JSON values.
    progress : callable, optional
        Told ``(done, total)`` while sampling.

    Returns
    -------
    Linked
        Also when its diagnostics fail: `Linked.status` says so.

    Raises
    ------
    ValueError
        For scores that break a rule, an unknown parameter, or where no task follows the loss: the message says
        of each why.
    """
    runs = source.runs if isinstance(source, Posterior) else source
    if not isinstance(runs, Runs):
        raise ValueError("A link is fitted to runs that were scored; a published law has none. Give it the runs.")
    if not isinstance(link, Link):
        raise TypeError(f"link is a value such as bayescale.links.get('sigmoid'), not {link!r}.")
    read = scores if isinstance(scores, Scores) else read_scores(runs, scores)
    engine, noise, priors = engine or NUTS(), noise or StudentT(), priors or {}
    check_metadata(metadata or {})
    seed = chosen(seed)
    verdicts = tuple(_judged(link, noise, priors, read, seed))
    kept = [v.task for v in verdicts if v.predictable]
    said = [f"{v.task}: {v.reason}" for v in verdicts if not v.predictable]
    if not kept:
        raise ValueError("\n  ".join(["No task follows the loss, so there is no link to fit:", *said]))
    for each in said:
        log.warning("unpredictable, and left out: %s", each)
    model, data = _arrays(link, noise, priors, read, kept)
    check_size(int(data["mask"].sum()), engine)
    joint, began = model.joint(len(kept)), time.perf_counter()
    log.info("seed %d; %d scores of %d tasks", seed, data["mask"].sum(), len(kept))
    with bar() if progress is None else contextlib.nullcontext(progress) as told:
        draws = engine.draw(joint, data, seed, told)
    tree, shared = _labelled(joint, draws, read, kept)
    info = {
        **draws.info,
        "seed": seed,
        "seconds": {**draws.info["seconds"], "total": round(time.perf_counter() - began, 4)},
        "loss_center": float(data["reference"]["loss"]),
        "shared": shared,
        "table_hash": runs.table_hash,
        "versions": versions(),
    }
    checks = checks_of(joint, tree, engine, info)
    law = source if isinstance(source, Posterior) else None
    return Linked(tree, model, read, verdicts, checks, info, law, dict(metadata or {}))


def _judged(link: Link, noise: Noise, priors: Mapping[str, Any], scores: Scores, seed: int) -> list[Any]:
    names = list(scores.tasks)
    model, data = _arrays(link, noise, priors, scores, names)
    with jax.enable_x64(True):
        return judge(model.joint(len(names)), data, names, seed)


def _arrays(
    link: Link, noise: Noise, priors: Mapping[str, Any], scores: Scores, names: list[str]
) -> tuple[Model, dict[str, Any]]:
    """The model of some tasks, and its data."""
    t = _of(scores, names)
    loss, share, questions = (t[k].to_numpy(float) for k in ("loss", "score", "questions"))
    task = np.array([names.index(name) for name in t["task"]])
    model = score.model(link, noise, priors, len(names))
    return model, score.arrays(model, loss, share, questions, task, [scores.tasks[n].chance for n in names])


def _of(scores: Scores, names: list[str]) -> Any:
    return scores.table.loc[scores.table["task"].isin(names)]


def _labelled(joint: Joint, draws: Draws, scores: Scores, names: list[str]) -> tuple[xr.DataTree, float]:
    """Draws by name, and the correlation between tasks of one run's scatter."""
    chains, length, d = draws.z.shape
    found = described(joint, draws.z.reshape(-1, d), draws.data)
    t, n = _of(scores, names), int(draws.data["mask"].sum())
    coords = {"task": np.array(names, str), "score": np.arange(n)}

    def sampled(leaves: Mapping[str, np.ndarray], last: str = "task") -> xr.Dataset:
        arrays = {k: v.reshape(chains, length, *v.shape[1:]) for k, v in leaves.items()}
        return _arviz.dataset(arrays, coords, {k: [last][: v.ndim - 2] for k, v in arrays.items()})

    population = {k: v for k, v in found["x"].items() if k.endswith(("_mean", "_sd"))}
    flat = unpack(joint, draws.z.reshape(-1, d), len(draws.data["mask"]))
    likelihood = {"log_odds": found["log_likelihood"][:, :n]}
    residual = draws.data["log_loss"][:n] - np.median(found["mean"][:, :n], axis=0)
    tree = xr.DataTree.from_dict(
        {
            "posterior": sampled({**found["values"], **population}),
            "unconstrained_posterior": sampled(flat),
            "sample_stats": sampled({k: v.reshape(-1) for k, v in draws.stats.items()}),
            "log_likelihood": sampled(likelihood, "score"),
        }
    )
    return tree, _shared(residual, t["run"].to_numpy(str), draws.data["group"][:n])


def _shared(residual: np.ndarray, run: np.ndarray, task: np.ndarray) -> float:
    """Mean correlation between tasks of what one run's log odds miss their links by, 0 or more.

    Of m tasks whose residuals have unit variance and the correlation r, the mean has the variance (1 + (m - 1) r) / m.
    """
    spread = np.array([np.sqrt(np.mean(residual[task == g] ** 2)) for g in np.unique(task)])
    unit = residual / np.maximum(spread[np.searchsorted(np.unique(task), task)], 1e-12)
    _, at = np.unique(run, return_inverse=True)
    count = np.bincount(at)
    if count.max() < 2:
        return 0.0
    pairs = np.bincount(at, unit) ** 2 - np.bincount(at, unit**2)
    return float(np.clip(pairs.sum() / (count * (count - 1)).sum(), 0.0, 1.0))
