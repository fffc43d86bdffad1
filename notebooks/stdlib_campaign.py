"""The campaign behind ``bayescale/runs/data/stdlib.csv``: small language models trained on Python's own library.

    python notebooks/stdlib_campaign.py FOLDER [--workers 2]     train what is not yet done
    python notebooks/stdlib_campaign.py FOLDER --table bayescale/runs/data/stdlib.csv    rows, sorted, as one table

Each finished run is one line in ``FOLDER/rows.csv`` at once, so the campaign can be stopped and continued.

Corpus: the ``.py`` files of the running Python's standard library in the order of their paths, without
tests, idlelib, lib2to3, ensurepip, turtledemo, pydoc_data, site-packages, encodings, and without the files
that describe one build (``_sysconfigdata*``, ``config-*``). Bytes above 126 are one symbol. A file is for
validation where the hash of its path says so (8 %).

Model: six residual layers, each ``x + squared_relu([h(t), h(t - 2^i)] W1) W2`` with ``h`` the normed ``x``,
hidden width 3 d, so that the six hold 54 d^2 weights; context 64 bytes. Only the width d varies.

Training: AdamW (.9, .98), gradient clipped at norm 1, 10 % warm-up, cosine to zero; 4 sequences of 64
bytes a step, each byte of the stream once unless the run repeats.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # one thread a process
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import ast
import csv
import functools
import hashlib
import multiprocessing
import platform
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

CONTEXT, LAYERS, SYMBOLS = 64, 6, 128
BATCH = 4  # sequences a step; the rate below is for this batch
CHUNK = 64  # steps of one compiled call
UNIT = CHUNK * BATCH * CONTEXT  # bytes of one compiled call: every run is a whole number of them
WINDOWS = 4096  # of validation, evenly spaced over all its files
SUBSET = 12 * UNIT  # bytes of the random subset that is repeated: 196,608
LEFT_OUT = {"test", "tests", "idlelib", "lib2to3", "ensurepip", "turtledemo", "pydoc_data", "site-packages"}
WEIGHT_DECAY = 0.1


@dataclass(frozen=True)
class Run:
    """One training run, told by what is changed."""

    role: str
    width: int
    units: int  # of UNIT bytes
    group: str = "stdlib"
    seed: int = 0
    subset: bool = False  # repeats of one random subset
    schedule: str = "cosine"  # or "constant" (stopped before any decay), "cooldown" (decays over its last fifth)

    @property
    def name(self) -> str:
        how = {"cosine": "", "constant": "-constant", "cooldown": "-cooldown"}[self.schedule]
        subset = "-repeated" if self.subset else ""
        return f"{self.group}-d{self.width}-{self.units * UNIT // 1000}kB{subset}{how}-s{self.seed}"


def campaign() -> list[Run]:
    """Every run, in the order in which they are trained."""
    units = (24, 43, 76, 136, 192, 305)
    shortest = {20: 6, 28: 6, 40: 4, 56: 3, 68: 2, 80: 1}  # how many of them: 22 cells, up to 1.27e12 FLOP
    fit = [Run("fit", d, n) for d, count in shortest.items() for n in units[:count]]
    near = [Run("held-out", 34, 100), Run("held-out", 48, 58)]
    large = [Run("held-out", d, units) for d, units in ((92, 296), (80, 262), (68, 260))]  # 10, 7, 5 times that
    cells = {20: (18, 36, 72), 28: (18, 36, 72), 40: (18, 36, 72), 52: (9,)}
    docs = [Run("fit", d, units, group="docstrings") for d, row in cells.items() for units in row]
    epochs = [Run("epochs", 20, 12 * k, subset=True) for k in (2, 4, 8, 16)]
    ends = (("constant", 38), ("constant", 76), ("cooldown", 76))
    broken = [Run("interrupted", 20, units, schedule=how) for how, units in ends]
    stress = [Run("stress", 10, 24), Run("stress", 10, 136), Run("stress", 20, 6), Run("stress", 80, 6)]
    seeds = [Run("seed", d, n, seed=1) for d, n in ((20, 24), (28, 24), (40, 24), (20, 43), (28, 43), (20, 76))]
    return [*fit, *near, *large, *docs, *epochs, *broken, *stress, *seeds]


def files() -> list[tuple[str, bytes]]:
    """Path within the library and contents of each file, sorted by path."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path.relative_to(root) for path in root.rglob("*.py"))
    kept = [
        path
        for path in paths
        if not LEFT_OUT.intersection(path.parts)
        and not path.parts[0].startswith(("encodings", "_sysconfigdata", "config-"))
    ]
    return [(path.as_posix(), (root / path).read_bytes()) for path in kept]


def docstrings(source: bytes) -> bytes:
    """All docstrings of a file, each ended by an empty line."""
    nodes = ast.walk(ast.parse(source))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in nodes if isinstance(node, kinds)]
    return "".join(f"{text}\n\n" for text in found if text).encode()


def windows(stream: bytes) -> np.ndarray:
    """Symbols, cut into windows of one context and the byte after it."""
    symbols = np.minimum(np.frombuffer(stream, dtype=np.uint8), SYMBOLS - 1)
    count = (len(symbols) - 1) // CONTEXT
    return np.stack([symbols[k : k + count * CONTEXT : CONTEXT] for k in range(CONTEXT + 1)], axis=1)


@functools.cache
def corpus(group: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Windows for training and for validation, and the hash of the stream they are cut from."""
    parts: dict[bool, list[bytes]] = {False: [], True: []}
    for path, source in files():
        held = int(hashlib.sha256(path.encode()).hexdigest()[:8], 16) % 100 < 8
        parts[held].append(docstrings(source) if group == "docstrings" else source)
    train, valid = b"".join(parts[False]), b"".join(parts[True])
    held_out = windows(valid)
    spread = np.linspace(0, len(held_out) - 1, min(WINDOWS, len(held_out))).astype(int)
    return windows(train), held_out[spread], hashlib.sha256(train + valid).hexdigest()


# The model and its training.


def weights(d: int, seed: int) -> dict[str, jax.Array]:
    """Starting weights. The last one starts at zero, so the first loss is that of equal odds."""
    keys = jax.random.split(jax.random.key(seed), 3)
    normal = jax.random.normal
    return {
        "embed": normal(keys[0], (SYMBOLS, d)),
        "w1": normal(keys[1], (LAYERS, 2 * d, 3 * d)) / np.sqrt(2 * d),
        "w2": normal(keys[2], (LAYERS, 3 * d, d)) / np.sqrt(3 * d * 2 * LAYERS),
        "gain": jnp.ones((LAYERS + 1, d)),
        "head": jnp.zeros((d, SYMBOLS)),
    }


def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * gain


def losses(w: dict[str, jax.Array], batch: jax.Array) -> jax.Array:
    """Nats per byte of each window, shape (batch,)."""
    one_hot = jax.nn.one_hot(batch, SYMBOLS)  # its products are faster than looking up and scattering back
    x = one_hot[:, :-1] @ w["embed"]
    for i in range(LAYERS):
        h = norm(x, w["gain"][i])
        past = jnp.pad(h, ((0, 0), (2**i, 0), (0, 0)))[:, :CONTEXT]
        hidden = jax.nn.relu(jnp.concatenate([h, past], axis=-1) @ w["w1"][i])
        x = x + (hidden * hidden) @ w["w2"][i]
    logits = norm(x, w["gain"][LAYERS]) @ w["head"]
    right = jnp.sum(logits * one_hot[:, 1:], axis=-1)
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - right, axis=-1)


@functools.partial(jax.jit, donate_argnums=0)
def advance(state, data, order, rates):
    """A chunk of AdamW steps; ``order`` has the windows of each step, ``rates`` its learning rate."""

    def step(state, what):
        w, m, v, t = state
        picked, rate = what
        loss, g = jax.value_and_grad(lambda w: jnp.mean(losses(w, data[picked])))(w)
        size = jnp.sqrt(sum(jnp.sum(x * x) for x in jax.tree.leaves(g)))
        g = jax.tree.map(lambda x: x / jnp.maximum(size, 1.0), g)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.98 * v + 0.02 * g * g, v, g)
        a, b = 1 - 0.9**t, 1 - 0.98**t

        def moved(x, m, v):
            decay = WEIGHT_DECAY * x if x.ndim == 3 else 0.0  # the layers' matrices only
            return x - rate * (m / a / (jnp.sqrt(v / b) + 1e-8) + decay)

        return (jax.tree.map(moved, w, m, v), m, v, t), loss

    return jax.lax.scan(step, state, (order, rates))


evaluate = jax.jit(lambda w, data: jax.lax.map(lambda part: losses(w, part), data.reshape(-1, 64, CONTEXT + 1)))


def peak_rate(run: Run) -> float:
    return 7e-3 * np.sqrt(32 / run.width) * np.sqrt(BATCH / 4)


def rates(run: Run) -> np.ndarray:
    """Learning rate of each step: 10 % warm-up, then the run's schedule."""
    steps = run.units * CHUNK
    done = (np.arange(steps) + 0.5) / steps
    shape = {
        "cosine": 0.5 + 0.5 * np.cos(np.pi * np.clip((done - 0.1) / 0.9, 0, 1)),
        "constant": np.ones(steps),
        "cooldown": np.clip((1 - done) / 0.2, 0, 1),
    }[run.schedule]
    return (peak_rate(run) * np.minimum(done / 0.1, 1) * shape).astype(np.float32)


def order(run: Run, count: int) -> np.ndarray:
    """Windows of each step, shape (steps, BATCH): a random order, anew in each epoch."""
    rng = np.random.default_rng(run.seed)
    needed = run.units * CHUNK * BATCH
    pool = np.random.default_rng(2026).permutation(count)[: SUBSET // CONTEXT] if run.subset else np.arange(count)
    epochs = -(-needed // len(pool))
    return np.concatenate([rng.permutation(pool) for _ in range(epochs)])[:needed].reshape(-1, BATCH)


def trained(run: Run) -> dict[str, object]:
    """Train, and say what came out: one row of the table."""
    started = time.perf_counter()
    train, valid, digest = corpus(run.group)
    w = weights(run.width, run.seed)
    zeros = jax.tree.map(jnp.zeros_like, w)
    state = (w, zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros(()))
    data, picked, rate = jnp.asarray(train), order(run, len(train)), rates(run)
    for k in range(0, len(picked), CHUNK):
        state, _ = advance(state, data, picked[k : k + CHUNK], rate[k : k + CHUNK])
    whole = len(valid) // 64 * 64
    each = np.asarray(evaluate(state[0], jnp.asarray(valid[:whole])), dtype=np.float64).ravel()
    n_tokens = picked.size * CONTEXT
    unique = min(n_tokens, SUBSET if run.subset else train.shape[0] * CONTEXT)
    n_params = LAYERS * 9 * run.width**2
    return {
        "run": run.name,
        "group": run.group,
        "role": run.role,
        "width": run.width,
        "n_params": n_params,
        "n_params_with_head": n_params + SYMBOLS * run.width,
        "n_params_total": sum(x.size for x in w.values()),
        "n_tokens": n_tokens,
        "unique_tokens": unique,
        "epochs": round(n_tokens / unique, 4),
        "flops": 6 * n_params * n_tokens,
        "loss": round(float(each.mean()), 6),
        "window_se": round(float(each.std(ddof=1) / np.sqrt(len(each))), 6),
        "seed": run.seed,
        "lr": round(float(peak_rate(run)), 6),
        "batch": BATCH,
        "steps": len(picked),
        "schedule": run.schedule,
        "decay_done": run.schedule != "constant",
        "python": platform.python_version(),
        "stream_sha256": digest,
        "seconds": round(time.perf_counter() - started, 1),
    }


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open(newline=""))) if path.exists() else []


def train(folder: Path, workers: int) -> None:
    """Train every run that has no row yet."""
    path = folder / "rows.csv"
    done = {row["run"] for row in rows(path)}
    left = [run for run in campaign() if run.name not in done]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for row in pool.imap_unordered(trained, left):
            new = not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, row.keys(), lineterminator="\n")
                writer.writerows([dict(zip(row, row, strict=True)), row] if new else [row])
            print(f"{row['run']:40} {row['loss']:.4f} nats per byte   {row['seconds']:.0f} s", flush=True)


def table(folder: Path, target: Path) -> None:
    """The rows in the order of the campaign."""
    place = {run.name: k for k, run in enumerate(campaign())}
    found = sorted((row for row in rows(folder / "rows.csv") if row["run"] in place), key=lambda row: place[row["run"]])
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where rows are kept")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the rows, sorted, and train nothing")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.table:
        table(given.folder, given.table)
    else:
        train(given.folder, given.workers)


if __name__ == "__main__":
    main()
