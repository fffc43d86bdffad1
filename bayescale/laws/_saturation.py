r"""How many experts count: Clark et al. 2022, *Unified Scaling Laws for Routed Language Models* (arXiv 2202.01169).

    1 / Ê = 1 / (E - 1 + 1 / (1 / E_start - 1 / E_max)) + 1 / E_max

E experts a layer count as Ê: E_start (not 1) with one expert, that is without routing, and never more
than E_max. Both are inferred, so the effect of experts is sampled as what `MANY` of them do, which a
table shows, and not as the exponent of Ê, whose scale moves with both.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from bayescale.laws._law import Values
from bayescale.parameter import LogNormal, Parameter, Quantity

MANY = 64.0  # experts, at which the effect of experts is sampled: inside the published sweeps (to 32 and to 512)

# Four published fits: E_start 1.85 to 4.2, E_max / E_start 114 to 250; with endless experts the exponent of the
# size is .64 to .75 of that without.
PARAMETERS = (
    Parameter(
        "size_ratio",
        r"$r_N$",
        "exponent of the model size with endless experts, relative to that with one",
        "1",
        LogNormal(0.75, 0.4),
    ),
    Parameter("E_start", "$E_{start}$", "how many experts a single one counts as", "experts", LogNormal(2.2, 0.4)),
    Parameter(
        "headroom",
        "$h$",
        "E_max / E_start - 1, by how much endless experts outdo one in number",
        "1",
        LogNormal(150.0, 0.7),
    ),
)
COEFFICIENTS = (
    Quantity("E_start", "$E_{start}$", "how many experts a single one counts as", "experts"),
    Quantity("E_max", "$E_{max}$", "how many experts endless ones count as", "experts"),
)


def bounds(values: Values) -> dict[str, Any]:
    """The letters E_start and E_max from the values of the parameters."""
    return {"E_start": values["E_start"], "E_max": values["E_start"] * (1 + values["headroom"])}


def parameters(letters: Values) -> dict[str, Any]:
    """The inverse of `bounds`."""
    return {"E_start": letters["E_start"], "headroom": letters["E_max"] / letters["E_start"] - 1}


def log_effective(letters: Values, n_experts: Any) -> Any:
    """Natural log of Ê."""
    start, most = letters["E_start"], letters["E_max"]
    unbounded = n_experts - 1 + 1 / (1 / start - 1 / most)
    return -jnp.log(1 / unbounded + 1 / most)


def spans(letters: Values) -> tuple[Any, Any]:
    """What log Ê gains from one expert to `MANY`, and to endless ones."""
    start = jnp.log(letters["E_start"])
    return log_effective(letters, MANY) - start, jnp.log(letters["E_max"]) - start
