"""Ledgers to test with: open forecasts, and some that landed."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bayescale.posterior.ledger import Ledger
from bayescale.posterior.posterior import Posterior

RUN = {"n_params": 3e9, "n_tokens": 6e10}
SIDES = {50: (0.25, 0.75), 80: (0.1, 0.9), 90: (0.05, 0.95), 95: (0.025, 0.975)}
"""Probabilities at the ends of the equal-tailed intervals of so many percent."""


def text(ledger: Ledger) -> bytes:
    return Path(ledger.path).read_bytes()


def many(ledger: Ledger, posterior: Posterior, n: int) -> None:
    """Open forecasts of runs named 0, 1, ...: one, and copies of its line."""
    entry = ledger.write(posterior, "0", **RUN)
    lines = [json.dumps(entry | {"run": str(i)}) + "\n" for i in range(n)]
    Path(ledger.path).write_text("".join(lines), "utf-8")


def scored(ledger: Ledger, posterior: Posterior) -> list[dict[str, Any]]:
    """Forecasts inside the data and beyond, each landed at another place of its quantiles; the last is open."""
    for i, factor in enumerate((0.5, 1.5, 5.0, 20.0, 50.0, 2.0, 100.0)):
        n = np.sqrt(posterior.largest["flop"] * factor / 120)
        entry = ledger.write(posterior, f"run {i}", n_params=n, n_tokens=20 * n)
        q = next(iter(entry["quantiles"].values()))
        if i < 6:
            ledger.land(f"run {i}", (q[0] * 0.9, q[1] * 1.0001, q[3], q[4], q[7], q[8] * 1.1)[i])
    return [e for e in ledger.entries() if e["landing"]]
