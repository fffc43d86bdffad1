"""Which device runs which chain.

A lane is one device and the chains that it runs in lockstep. On CPUs every chain is a lane of its
own, run by a thread (a compiled program holds no interpreter lock), so one host device already
fills the cores, and several devices share the chains in turn. Accelerators get one lane each, with
their share of the chains vectorised.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, final

import jax


@final
@dataclass(frozen=True)
class Lane:
    """A device and the indices of the chains that it runs together."""

    device: Any
    chains: tuple[int, ...]


def plan(chains: int, platform: str | None = None) -> list[Lane]:
    """Spread chains over the devices of ``platform`` (the CPU unless named: small models are faster there)."""
    devices = jax.local_devices(backend=platform or "cpu")
    if devices[0].platform == "cpu":
        return [Lane(devices[i % len(devices)], (i,)) for i in range(chains)]
    shares = [tuple(range(chains))[i :: len(devices)] for i in range(len(devices))]
    return [Lane(d, s) for d, s in zip(devices, shares, strict=True) if s]


def workers(lanes: list[Lane]) -> int:
    """Threads that drive the lanes: the cores that this process may use, or one an accelerator."""
    if lanes[0].device.platform != "cpu":
        return len(lanes)
    return max(1, min(len(lanes), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def describe(lanes: list[Lane]) -> str:
    """One line for logs and for the fit's record."""
    devices = {str(lane.device) for lane in lanes}
    chains = sum(len(lane.chains) for lane in lanes)
    how = f"{workers(lanes)} threads" if lanes[0].device.platform == "cpu" else "vectorised"
    return f"{chains} chains on {len(devices)} {lanes[0].device.platform} device(s), {how}"
