"""5,000 budgets in one ``allocate`` with 4,000 draws, beside the import of jax and numpyro in a fresh process.

    python tests/benchmarks/frontier.py

The compiled call and its table are to take at most five times as long as that import. A bisection of
60 halvings over the same optima, compiled as well, is timed on a tenth of the draws for comparison.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "frontier"))
from frontier_stand_in import one, spread

from bayescale.frontier.frontier import allocate

DRAWS, BUDGETS = 4000, np.geomspace(1e18, 1e27, 5000)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds and result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


@jax.jit
def bisection(c: dict[str, Any], log_flop: Any) -> Any:
    """Root of the derivative along 6 N D = C by 60 halvings; c (S, 1), log_flop (K,)."""

    def halve(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = (low + high) / 2
        gain = c["alpha"] * c["A"] * jnp.exp(-c["alpha"] * middle)
        price = c["beta"] * c["B"] * jnp.exp(-c["beta"] * (log_flop - jnp.log(6.0) - middle))
        return jnp.where(gain > price, middle, low), jnp.where(gain > price, high, middle)

    zero = jnp.zeros(c["A"].shape) + 0 * log_flop
    return jax.lax.fori_loop(0, 60, halve, (zero + jnp.log(1e3), zero + jnp.log(1e15)))[0]


def main() -> None:
    """Print the figures."""
    fresh, _ = timed(lambda: subprocess.run([sys.executable, "-c", "import jax, numpyro"], check=True))
    posterior = one(**spread(DRAWS))
    timed(lambda: allocate(posterior, BUDGETS[::10]).to_dict())  # compiles
    solved, frontier = timed(lambda: allocate(posterior, BUDGETS))
    tabled, _ = timed(frontier.to_dict)
    with jax.enable_x64(True):
        tenth = {name: values[: DRAWS // 10, None] for name, values in spread(DRAWS).items()}
        timed(lambda: bisection(tenth, np.log(BUDGETS)).block_until_ready())
        halved, log_n = timed(lambda: np.asarray(bisection(tenth, np.log(BUDGETS))))
    difference = np.abs(log_n - frontier.log_n[None][: DRAWS // 10]).max()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"import jax, numpyro in a fresh process   {fresh:8.2f} s")
    print(f"allocate, {BUDGETS.size} budgets x {DRAWS} draws      {solved:8.2f} s   {solved / fresh:5.2f} imports")
    print(f"its table (intervals, band, exponents)   {tabled:8.2f} s   {tabled / fresh:5.2f} imports")
    print(
        f"both                                     {solved + tabled:8.2f} s   {(solved + tabled) / fresh:5.2f} imports"
    )
    print(f"bisection, scaled from a tenth           {10 * halved:8.2f} s   {10 * halved / fresh:5.2f} imports")
    print(f"largest difference in log N              {difference:8.1e}")
    print(f"peak memory                              {peak:8.2f} GiB")


if __name__ == "__main__":
    main()
