"""The no-U-turn sampler (Hoffman & Gelman 2014), numpyro's kernel driven in compiled blocks.

Every call of `numpyro.infer.MCMC.run` traces and compiles anew. Here one block of steps is compiled
once for a shape of model and called again and again, with the data as arguments: between blocks
progress is told and an interrupt is heeded.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpyro.infer import NUTS as Kernel

from bayescale.inference import devices
from bayescale.inference._engine import Draws, Engine, Progress
from bayescale.inference.groups import start
from bayescale.inference.mode import Mode
from bayescale.model.joint import Joint, potential

log = logging.getLogger(__name__)
BLOCK = 100  # steps in one compiled call: a few milliseconds, so that interrupts and progress are prompt
WHITENED, POPULATION, ADAPTED = (200, 0.8), (300, 0.9), (1000, 0.95)  # warm-up steps, target acceptance
FIELDS = {
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
    "accept_prob": "acceptance_rate",
    "potential_energy": "potential_energy",
}


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
        where the mass matrix has to be adapted as well.
    target_accept : float or None
        Acceptance that the step size aims at; None: .8, .9 and .95 in these three cases.
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
            lanes = devices.plan(self.chains, self.platform)
            found = time.perf_counter()
            usual = WHITENED if mode.whitens and not mode.skewed else POPULATION if mode.whitens else ADAPTED
            warmup = self.warmup if self.warmup is not None else usual[0]
            target = self.target_accept or usual[1]
            log.info(
                "%s; %s; %d warm-up steps and %d draws of %d unknowns a chain, about %.0f MB",
                devices.describe(lanes),
                "whitened" if mode.whitens else "adapting the mass matrix",
                warmup,
                self.draws,
                len(mode.center),
                self.chains * (warmup + self.draws) * (2 * len(mode.center) + 3 * len(data["mask"])) * 8 / 1e6,
            )
            block = _program(joint, warmup, not mode.whitens, target, self.max_tree_depth)
            keys = np.random.SeedSequence(seed).generate_state(2 * self.chains, np.uint32).reshape(self.chains, 2)
            starts = rng.standard_normal((self.chains, len(mode.center)))
            run = _Run(block, lanes, keys, starts, mode, warmup + self.draws, progress)
            steps, interrupted = run()
        if interrupted and not (self.keep_interrupted and steps["u"].shape[1] > warmup):
            raise KeyboardInterrupt
        kept = {name: a[:, warmup : warmup + self.draws] for name, a in steps.items()}
        u = kept.pop("u")
        stats = {FIELDS[k]: v for k, v in kept.items()}
        stats["lp"] = -stats.pop("potential_energy")
        stats["tree_depth"] = np.log2(stats["n_steps"] + 1).astype(int)
        stats["reached_max_tree_depth"] = stats["tree_depth"] >= self.max_tree_depth
        info = {
            "engine": self.name,
            "chains": self.chains,
            "draws": int(u.shape[1]),
            "warmup": warmup,
            "target_accept": target,
            "max_tree_depth": self.max_tree_depth,
            "metric": "curvature at the mode" if mode.whitens else "adapted",
            "mode_searches": {"converged": mode.converged, "agree": mode.agree},
            "devices": devices.describe(lanes),
            "interrupted": interrupted,
            "leapfrogs": {"warmup": int(steps["num_steps"][:, :warmup].sum()), "draws": int(kept["num_steps"].sum())},
            "seconds": {"mode": round(found - began, 4), "sampling": round(time.perf_counter() - found, 4)},
        }
        return Draws(mode.center + u @ mode.factor.T, stats, mode.data, info)


@functools.cache
def _program(joint: Joint, warmup: int, adapt: bool, target: float, depth: int) -> Callable[..., Any]:
    """A block of steps of one chain, from its start (``first``) or from where the last block ended."""
    energy = potential(joint)

    def kernel(center: Any, factor: Any, data: Any) -> Kernel:
        return Kernel(
            potential_fn=lambda u: energy(center + factor @ u, data),
            step_size=0.5,
            adapt_mass_matrix=adapt,
            dense_mass=adapt,
            target_accept_prob=target,
            max_tree_depth=depth,
        )

    def start(key: Any, u: Any, center: Any, factor: Any, data: Any) -> Any:
        return kernel(center, factor, data).init(key, warmup, u, (), {})

    def block(first: Any, state: Any, key: Any, u: Any, center: Any, factor: Any, data: Any) -> Any:
        nuts = kernel(center, factor, data)
        fresh = nuts.init(key, warmup, u, (), {})
        state = jax.tree.map(lambda a, b: jnp.where(first, a, b), fresh, state)

        def step(state: Any, _: Any) -> Any:
            state = nuts.sample(state, (), {})
            return state, {"u": state.z, **{name: getattr(state, name) for name in FIELDS}}

        return lax.scan(step, state, None, length=BLOCK)

    return _Program(start, block)


class _Program:
    """The compiled block, for one chain or for several in lockstep."""

    def __init__(self, start: Callable[..., Any], block: Callable[..., Any]) -> None:
        shared = (None, None, None)
        self._start = {False: start, True: jax.vmap(start, in_axes=(0, 0, *shared))}
        self._block = {False: jax.jit(block), True: jax.jit(jax.vmap(block, in_axes=(None, 0, 0, 0, *shared)))}
        self._lock = threading.Lock()
        self._ready: set[Any] = set()

    def blank(self, many: bool, *args: Any) -> Any:
        """A state of the right shapes, for the first block to overwrite."""
        return jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), jax.eval_shape(self._start[many], *args))

    def __call__(self, device: Any, many: bool, *args: Any) -> Any:
        """One block; the first on a device is compiled by one thread while the others wait."""
        shape = (device, many, *(np.shape(a) for a in jax.tree.leaves(args)))
        if shape in self._ready:
            return self._block[many](*args)
        with self._lock:
            out = self._block[many](*args)
            self._ready.add(shape)
            return out


@final
class _Run:
    """All chains, lane by lane, until done or interrupted."""

    def __init__(
        self,
        program: Any,
        lanes: list[devices.Lane],
        keys: np.ndarray,
        starts: np.ndarray,
        mode: Mode,
        steps: int,
        progress: Progress | None,
    ) -> None:
        self.program, self.lanes, self.keys, self.starts, self.mode = program, lanes, keys, starts, mode
        self.blocks = -(-steps // BLOCK)
        self.progress, self.stop, self.done = progress, threading.Event(), 0

    def __call__(self) -> tuple[dict[str, np.ndarray], bool]:
        with ThreadPoolExecutor(devices.workers(self.lanes)) as pool:
            futures = [pool.submit(self._lane, lane) for lane in self.lanes]
            interrupted = self._watch(futures)
        parts = [f.result() for f in futures]
        length = min(len(p) for p in parts)
        if not length:
            raise KeyboardInterrupt
        chains: dict[int, dict[str, np.ndarray]] = {}
        for lane, part in zip(self.lanes, parts, strict=True):
            many = len(lane.chains) > 1
            whole = {k: np.concatenate([b[k] for b in part[:length]], axis=1 if many else 0) for k in part[0]}
            for i, chain in enumerate(lane.chains):
                chains[chain] = {k: v[i] if many else v for k, v in whole.items()}
        return {k: np.stack([chains[c][k] for c in sorted(chains)]) for k in chains[0]}, interrupted

    def _watch(self, futures: list[Any]) -> bool:
        total, first, told = self.blocks * len(self.lanes), 0.0, False
        try:
            while not all(f.done() for f in futures):
                if not first and self.done:  # compiled by now
                    first, at = time.perf_counter(), self.done
                if first and not told and self.done > at:
                    each, told = (time.perf_counter() - first) / (self.done - at), True
                    log.info("about %.0f s to go", each * (total - self.done))
                if self.progress:
                    self.progress(self.done, total)
                wait(futures, timeout=0.1)
        except KeyboardInterrupt:
            self.stop.set()
            return True
        finally:
            if self.progress:
                self.progress(self.done, total)
        return False

    def _lane(self, lane: devices.Lane) -> list[dict[str, np.ndarray]]:
        many = len(lane.chains) > 1
        pick = list(lane.chains) if many else lane.chains[0]
        with jax.enable_x64(True):
            fixed = jax.device_put(
                (self.keys[pick], self.starts[pick], self.mode.center, self.mode.factor, self.mode.data), lane.device
            )
            state, out = jax.device_put(self.program.blank(many, *fixed), lane.device), []
            for i in range(self.blocks):
                if self.stop.is_set():
                    break
                state, steps = self.program(lane.device, many, np.bool_(i == 0), state, *fixed)
                out.append({k: np.asarray(v) for k, v in steps.items()})
                self.done += 1
        return out
