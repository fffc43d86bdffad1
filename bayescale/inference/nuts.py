"""The no-U-turn sampler (Hoffman & Gelman 2014), numpyro's kernel driven in compiled blocks.

Every call of `numpyro.infer.MCMC.run` traces and compiles anew. Here one block of steps is compiled
once for a shape of model and called again and again, with the data as arguments: between blocks
progress is told and an interrupt is heeded.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import numpy as np

from bayescale.inference import devices
from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference.chains import FIELDS, Run, program
from bayescale.inference.groups import start
from bayescale.inference.mode import Mode
from bayescale.model.joint import Joint

log = logging.getLogger(__name__)
WHITENED, POPULATION, ADAPTED = (200, 0.8), (300, 0.9), (1000, 0.95)  # warm-up steps, target acceptance
AGAIN = {False: POPULATION, True: (POPULATION[0], ADAPTED[1])}  # by whether the mode is skewed
AGREE = 1.01  # split R-hat up to which chains agree (Vehtari et al. 2021)
# Draws that tell a covariance, in all and for each unknown; of fewer, R-hat exceeds its limit by chance.
TELLING, TELLING_EACH = 2000, 10


@final
@dataclass(frozen=True)
class NUTS(Engine):
    """Settings of the sampler.

    Attributes
    ----------
    chains, draws : int
        Chains, and draws kept from each.
    warmup : int or None
        Warm-up steps of each chain; None: 200 where the curvature at the mode whitens the
        posterior, so that only the step size is left to find, 300 under partial pooling, and 1,000
        where the mass matrix has to be adapted as well. Where whitened chains diverge or do not agree,
        all of them were warm-up: they are run again, whitened by the covariance of their draws.
    target_accept : float or None
        Acceptance that the step size aims at; None: .8, .9 and .95 in these three cases; when run again .9, and
        .95 under partial pooling.
    max_tree_depth : int
        Trajectories end after 2 ** max_tree_depth leapfrog steps.
    platform : {"cpu", "gpu", "tpu"} or None
        Where to run; None is the CPU, which is faster for few chains of a small model.
    keep_interrupted : bool
        On Ctrl-C, return what was drawn so far instead of raising KeyboardInterrupt.

    Raises
    ------
    ValueError
        If a count is not positive or ``target_accept`` not between 0 and 1.
    """

    name: ClassVar[str] = "nuts"
    approximate: ClassVar[bool] = False

    chains: int = 4
    draws: int = 1000
    warmup: int | None = None
    target_accept: float | None = None
    max_tree_depth: int = 10
    platform: str | None = None
    keep_interrupted: bool = False

    def __post_init__(self) -> None:
        for field in ("chains", "draws", "max_tree_depth"):
            if int(getattr(self, field)) < 1:
                raise ValueError(f"NUTS({field}=...) must be at least 1, not {getattr(self, field)!r}.")
        if self.warmup is not None and self.warmup < 0:
            raise ValueError(f"NUTS(warmup=...) must not be negative, not {self.warmup!r}.")
        if self.target_accept is not None and not 0 < self.target_accept < 1:
            raise ValueError(f"NUTS(target_accept=...) lies between 0 and 1, not {self.target_accept!r}.")

    def draw(self, joint: Joint, data: Mapping[str, Any], seed: int, progress: Progress | None = None) -> Draws:
        with jax.enable_x64(True):
            began = time.perf_counter()
            rng = np.random.default_rng(seed)
            mode = start(joint, data, rng)
            found = time.perf_counter()
            starts = rng.standard_normal((self.chains, len(mode.center)))
            keys = np.random.SeedSequence(seed).generate_state(4 * self.chains, np.uint32).reshape(2, self.chains, 2)
            usual = WHITENED if mode.whitens and not mode.skewed else POPULATION if mode.whitens else ADAPTED
            last = self._sample(joint, mode, keys[0], starts, usual, progress)
            metric, before = "curvature at the mode" if mode.whitens else "adapted", 0
            if mode.whitens and not last.interrupted and last.unsettled():
                log.info("chains diverge or do not agree: again, whitened by the covariance of their draws")
                try:
                    again = self._sample(joint, last.whitened(), keys[1], starts, AGAIN[mode.skewed], progress)
                except KeyboardInterrupt:
                    again = dataclasses.replace(last, steps={"u": np.empty((0, 0))}, interrupted=True)
                if again.drawn:
                    metric, before, last = "covariance of a first pass", int(last.steps["num_steps"].sum()), again
                else:  # what the first pass drew is all there is
                    last = dataclasses.replace(last, interrupted=True)
        if last.interrupted and not (self.keep_interrupted and last.drawn):
            raise KeyboardInterrupt
        kept = {name: a[:, last.warmup : last.warmup + self.draws] for name, a in last.steps.items()}
        u = kept.pop("u")
        stats = {FIELDS[k]: v for k, v in kept.items()}
        stats["lp"] = -stats.pop("potential_energy")
        stats["tree_depth"] = np.log2(stats["n_steps"] + 1).astype(int)
        stats["reached_max_tree_depth"] = stats["tree_depth"] >= self.max_tree_depth
        warming = before + int(last.steps["num_steps"][:, : last.warmup].sum())
        info = {
            "engine": self.name,
            "chains": self.chains,
            "draws": int(u.shape[1]),
            "warmup": last.warmup,
            "target_accept": last.target,
            "max_tree_depth": self.max_tree_depth,
            "metric": metric,
            "mode_searches": {"converged": mode.converged, "agree": mode.agree},
            "devices": devices.describe(devices.plan(self.chains, self.platform)),
            "interrupted": last.interrupted,
            "leapfrogs": {"warmup": warming, "draws": int(kept["num_steps"].sum())},
            "seconds": {"mode": round(found - began, 4), "sampling": round(time.perf_counter() - found, 4)},
        }
        return Draws(last.mode.center + u @ last.mode.factor.T, stats, last.mode.data, info)

    def _sample(
        self,
        joint: Joint,
        mode: Mode,
        keys: np.ndarray,
        starts: np.ndarray,
        usual: tuple[int, float],
        progress: Progress | None,
    ) -> _Pass:
        """All chains from their starts to their last draw."""
        lanes = devices.plan(self.chains, self.platform)
        warmup, target = self.warmup if self.warmup is not None else usual[0], self.target_accept or usual[1]
        log.info(
            "%s; %s; %d warm-up steps and %d draws of %d unknowns a chain, about %.0f MB",
            devices.describe(lanes),
            "whitened" if mode.whitens else "adapting the mass matrix",
            warmup,
            self.draws,
            len(mode.center),
            self.chains * (warmup + self.draws) * (2 * len(mode.center) + 3 * len(mode.data["mask"])) * 8 / 1e6,
        )
        block = program(joint, warmup, not mode.whitens, target, self.max_tree_depth)
        steps, interrupted = Run(block, lanes, keys, starts, mode, warmup + self.draws, progress)()
        return _Pass(mode, steps, warmup, target, interrupted)


@final
@dataclass(frozen=True)
class _Pass:
    """What all chains did: ``steps`` of each (chains, steps, ...), the warm-up's first."""

    mode: Mode
    steps: Mapping[str, np.ndarray]
    warmup: int
    target: float
    interrupted: bool

    @property
    def drawn(self) -> bool:
        """Whether anything came after the warm-up."""
        return self.steps["u"].shape[1] > self.warmup

    def unsettled(self) -> bool:
        """Whether chains diverged or disagree on a location or a scale, of draws enough to whiten them anew."""
        u = self.steps["u"][:, self.warmup :]
        if u.shape[0] * u.shape[1] < max(TELLING, TELLING_EACH * u.shape[2]):
            return False
        half = u.shape[1] // 2
        split = np.concatenate([u[:, :half], u[:, half : 2 * half]])
        for x in (split, np.abs(split - np.median(split, (0, 1)))):
            within, between = x.var(1, ddof=1).mean(0), x.mean(1).var(0, ddof=1)
            if (np.sqrt((half - 1) / half + between / within) > AGREE).any():
                return True
        return bool(self.steps["diverging"][:, self.warmup :].any())

    def whitened(self) -> Mode:
        """The mode's place taken by the mean of the draws, and its curvature by their covariance."""
        u = self.steps["u"][:, self.warmup :]
        z = (self.mode.center + u @ self.mode.factor.T).reshape(-1, u.shape[2])
        return dataclasses.replace(self.mode, center=z.mean(0), factor=np.linalg.cholesky(np.cov(z.T)))
