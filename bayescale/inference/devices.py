"""Which device runs which chain.

A lane is one device and the chains that it runs in lockstep. On CPUs every chain is a lane of its
own, run by a thread (a compiled program holds no interpreter lock), so one host device already
fills the cores, and several devices share the chains in turn. Accelerators get one lane each, with
their share of the chains vectorised.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import jax
import platformdirs


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
    return max(
        1, min(len(lanes), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    )


def describe(lanes: list[Lane]) -> str:
    """One line for logs and for the fit's record."""
    devices = {str(lane.device) for lane in lanes}
    chains = sum(len(lane.chains) for lane in lanes)
    how = f"{workers(lanes)} threads" if lanes[0].device.platform == "cpu" else "vectorised"
    return f"{chains} chains on {len(devices)} {lanes[0].device.platform} device(s), {how}"


def use_compile_cache(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keep compiled programs between processes, in a folder of the user's own.

    Whoever can write to that folder can make this process run code, so it is created for its owner
    alone (mode 0700). The command line calls this; importing bayescale does not.

    Parameters
    ----------
    folder : path, optional
        Where to keep them; the user's cache folder unless given, or what ``JAX_COMPILATION_CACHE_DIR``
        names if that is set.

    Returns
    -------
    Path
        The folder.
    """
    given = folder or jax.config.jax_compilation_cache_dir
    path = Path(given) if given else Path(platformdirs.user_cache_dir("bayescale")) / "compiled"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return path
