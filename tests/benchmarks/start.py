"""What a second process costs: `bayescale fit` to the saved file beside importing jax and numpyro, in one run.

python tests/benchmarks/start.py ../shared/data/chinchilla-epoch/runs.csv
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(command: list[str], repeats: int) -> float:
    """Smallest wall time of a command: the one least disturbed by others."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Print the times and their ratio, and the peak memory of the fit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(sys.executable).with_name("bayescale")
        fit = [str(script), "fit", options.table, "--exclude", "epoch_dropped_outlier=True", "--seed", "1"]
        fit += ["-o", f"{folder}/fit.nc"]
        first = seconds(fit, 1)
        second = seconds(fit, options.repeats)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        imports = seconds([sys.executable, "-c", "import jax, numpyro"], options.repeats)
        jax_alone = seconds([sys.executable, "-c", "import jax"], options.repeats)
        helped = seconds([str(script), "--help"], options.repeats)
    print(f"import jax, numpyro               {imports:6.2f} s")
    print(f"bayescale fit, first process      {first:6.2f} s")
    print(f"bayescale fit, second process     {second:6.2f} s   {second / imports:.2f} x the import")
    print(f"peak memory of the fit            {memory:6.2f} GiB")
    print(f"import jax                        {jax_alone:6.2f} s")
    print(f"bayescale --help                  {helped:6.2f} s   {helped / jax_alone:.2f} x importing jax")


if __name__ == "__main__":
    main()
