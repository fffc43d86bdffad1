"""The literature's estimator with a bootstrap around it: what most published scaling laws rest on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import numpy as np

from bayescale.inference import robust
from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.model.joint import Joint, sites
from bayescale.model.noise import SCALE

TOGETHER = 32  # resamples in one compiled call: progress and interrupts are prompt
NORMAL = 1.4826  # standard deviation over median absolute residual, of a Normal


@final
@dataclass(frozen=True)
class Huber(Engine):
    """Huber's fit on log loss (Hoffmann et al. 2022, equation 3) to the runs and to resamples of them.

    Its draws are bootstrap replicates of the fit, not draws of a posterior, and results say so. No prior
    is used, but for where searches start: a parameter is held with `Fixed`, nothing else of it changes the
    answer. Standard errors of runs do not weigh in the fit, and the scatter of new runs is the likeliest,
    replicate by replicate, given the resampled residuals of the fit to all runs, widened by the square
    root of n / (n - p) for its p free parameters. One law for all runs, complete pooling, exact at every
    scale: it reads no drift.

    The fit to all runs is ``info["estimate"]`` of the result, with the sum that it minimises in
    ``info["objective"]``.

    Attributes
    ----------
    resamples : int
        Replicates.
    delta : float
        Residual of log loss beyond which a run pulls with constant force; 1e-3 in the paper, which at
        residuals of .005 is least absolute deviations, nearly.
    starts : int
        Searches of each resample: one from the fit to all runs, the others from anywhere in the priors'
        range. The fit to all runs has 32 times as many.
    cluster : str or None
        Column whose labels say which runs stand or fall together, as those of one compute budget: whole
        clusters are resampled. None: runs one by one ("pairs"), as if no two runs shared an error.

    Raises
    ------
    ValueError
        If a count is not positive, or ``delta`` not positive and finite; from `fit`, with groups or
        drift, fewer runs than unknowns, or clusters that do not cluster.
    """

    name: ClassVar[str] = "huber"
    approximate: ClassVar[bool] = True
    reads_priors: ClassVar[bool] = False
    reads_drift: ClassVar[bool] = False

    resamples: int = 500
    delta: float = 1e-3
    starts: int = 4
    cluster: str | None = None

    def __post_init__(self) -> None:
        for field in ("resamples", "starts"):
            if int(getattr(self, field)) < 1:
                raise ValueError(f"Huber({field}=...) must be at least 1, not {getattr(self, field)!r}.")
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"Huber(delta=...) is a residual of log loss, as 1e-3, not {self.delta!r}.")

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        n, began = int(data["mask"].sum()), time.perf_counter()
        if any(kind != "complete" for _, kind in joint.kinds):
            raise ValueError(
                "Huber(...) fits one law to all runs: with groups, fit each group's runs by themselves or use NUTS."
            )
        member = data["cluster"] if self.cluster else np.arange(n)
        units = int(member.max()) + 1
        self.check(n, len(robust.free(joint)), units if self.cluster else None)
        rng = np.random.default_rng(seed)
        weights = self._weights(member, units, len(data["mask"]), rng)
        plain = {k: v for k, v in data.items() if k != "cluster"}
        with jax.enable_x64(True):
            on_device = jax.device_put(plain)
            whole = self._whole(joint, on_device, rng)
            found = self._resampled(joint, on_device, rng, whole.x, weights, progress)
            scale, reached = _scatter(joint, on_device, whole.x, weights, n)
            letters = _letters(joint, whole.x, on_device)
        of_all, of_each = "fit to all runs", "fits to resamples"
        info = {
            "engine": self.name,
            "chains": 1,
            "draws": self.resamples,
            "delta": self.delta,
            "resampled": {"by": self.cluster, "units": units},
            "estimate": letters,
            "objective": float(whole.total),
            "searches": {of_all: TOGETHER * self.starts, of_each: self.starts},
            "converged": {
                of_all: float(whole.converged),
                of_each: float(found.converged.mean()),
                "scatter": float(reached.mean()),
            },
            "agree": {of_all: float(whole.agree), of_each: float(found.agree.mean())},
            "seconds": {"fits": round(time.perf_counter() - began, 4)},
        }
        return Draws(_flat(joint, len(data["mask"]), found.x, scale)[None], {}, plain, info)

    def check(self, runs: int, unknowns: int, clusters: int | None = None) -> None:
        """Refuse a table, given how many runs and clusters of them it has, and a law's number of unknowns.

        Raises
        ------
        ValueError
            For too few runs, or clusters that do not cluster.
        """
        if runs <= unknowns:
            raise ValueError(
                f"Huber(...) fits {unknowns} unknowns without priors, and {runs} runs are too few; use NUTS."
            )
        if clusters is not None and not 2 <= clusters < runs:
            raise ValueError(
                f"{self.cluster!r} puts {runs} runs in {clusters} cluster(s), and resampling needs at least two, of "
                "which one has several runs. Name a column that runs share, or resample runs: Huber(cluster=None)."
            )

    def _weights(self, member: np.ndarray, units: int, rows: int, rng: np.random.Generator) -> np.ndarray:
        """How often each resample holds each row (resamples, rows)."""
        counts = rng.multinomial(units, np.full(units, 1 / units), size=self.resamples)
        weights = np.zeros((self.resamples, rows))
        weights[:, : len(member)] = counts[:, member]
        return weights

    def _starts(self, joint: Joint, data: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray:
        """Starts of one call of the compiled search, (k, s, d)."""
        names = robust.free(joint)
        loc, spread = (np.array([data[key][k] for k in names]) for key in ("prior_loc", "prior_spread"))
        return loc + spread * rng.standard_normal((TOGETHER, self.starts, len(names)))

    def _whole(self, joint: Joint, data: Mapping[str, Any], rng: np.random.Generator) -> robust.Estimate:
        """The fit to all runs: one call of the compiled search, every problem of which is the table."""
        weights = np.tile(np.asarray(data["mask"], float), (TOGETHER, 1))
        found = self._search(joint, weights, self._starts(joint, data, rng), data)
        best = found.total.argmin()
        agree = found.agree[found.total <= found.total[best] * (1 + robust.SAME)].sum()
        return robust.Estimate(found.x[best], found.total[best], found.converged[best], agree)

    def _resampled(
        self,
        joint: Joint,
        data: Mapping[str, Any],
        rng: np.random.Generator,
        whole: np.ndarray,
        weights: np.ndarray,
        progress: Progress | None,
    ) -> robust.Estimate:
        parts = []
        for at in range(0, len(weights), TOGETHER):
            starts = self._starts(joint, data, rng)
            starts[:, 0] = whole
            part = weights[at : at + TOGETHER]
            filled = np.concatenate([part, np.repeat(part[-1:], TOGETHER - len(part), axis=0)])
            parts.append(self._search(joint, filled, starts, data))
            if progress:
                progress(min(at + TOGETHER, len(weights)), len(weights))
        return jax.tree.map(lambda *a: np.concatenate(a)[: len(weights)], *parts)

    def _search(self, joint: Joint, weights: Any, starts: Any, data: Mapping[str, Any]) -> robust.Estimate:
        return jax.tree.map(np.asarray, robust.estimate(joint)(weights, starts, data, np.float64(self.delta)))


def _scatter(
    joint: Joint, data: Mapping[str, Any], whole: np.ndarray, weights: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Unconstrained values of the noise of every replicate, in the order of its parameters, and which converged."""
    names = [p.name for p in joint.noise.parameters if p.name not in joint.fixed]
    if not names:
        return np.zeros((len(weights), 0)), np.ones(len(weights))
    size = np.abs(np.asarray(robust.residuals(joint, whole, data))[:n])
    typical = np.log(max(NORMAL * float(np.median(size)), np.finfo(float).eps))
    start = np.array([typical if k == SCALE.name else float(data["prior_loc"][k]) for k in names])
    found, reached = (np.array(a) for a in robust.scatter(joint)(weights, start, whole, data))
    if SCALE.name in names:
        found[:, names.index(SCALE.name)] += 0.5 * np.log(n / (n - len(robust.free(joint))))
    return found, reached


def _letters(joint: Joint, x: np.ndarray, data: Mapping[str, Any]) -> dict[str, float]:
    values = joint.constrained(joint.law.parameters, dict(zip(robust.free(joint), x, strict=True)), data)
    return {name: float(v) for name, v in joint.law.to_coefficients(values, data["reference"]).items()}


def _flat(joint: Joint, rows: int, law: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Flat vectors (resamples, d) as `model.joint.sites` lays them out."""
    of_noise = [p.name for p in joint.noise.parameters if p.name not in joint.fixed]
    columns = dict(zip((*robust.free(joint), *of_noise), np.concatenate([law, noise], 1).T, strict=True))
    name = {p.site: p.name for p in joint.parameters}
    return np.stack([columns[name[site]] for site in sites(joint, rows)], -1)
