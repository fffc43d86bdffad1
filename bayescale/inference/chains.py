"""Chains of numpyro's kernel, a compiled block of steps at a time, spread over devices until done or interrupted."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpyro.infer import NUTS as Kernel

from bayescale.inference import devices
from bayescale.inference._engine import Progress
from bayescale.inference.mode import Mode
from bayescale.model.joint import Joint, potential

log = logging.getLogger(__name__)
BLOCK = 100  # steps in one compiled call: a few milliseconds, so that interrupts and progress are prompt
FIELDS = {
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
    "accept_prob": "acceptance_rate",
    "potential_energy": "potential_energy",
}


@functools.cache
def program(joint: Joint, warmup: int, adapt: bool, target: float, depth: int) -> Callable[..., Any]:
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
class Run:
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
