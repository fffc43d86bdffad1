"""Whether a fit can be trusted: a list of checks, each with its value, its limit and what to do.

Limits are those of Vehtari et al. 2021 (R-hat, ESS) and Betancourt 2016 (E-BFMI).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import numpy as np
import xarray as xr

from bayescale.posterior import _arviz

Status = Literal["PASS", "FAIL", "UNKNOWN"]
R_HAT, ESS, BFMI = 1.01, 400, 0.3
CONVERGED = 0.99  # share of searches that end at a minimum: the others could move a 90 % interval's ends
SATURATED = 0.01  # share of trajectories that may end at the tree-depth limit: it costs speed, not correctness


@final
@dataclass(frozen=True)
class Check:
    """One check: ``value`` is None where it could not be computed."""

    name: str
    value: float | None
    limit: str
    status: Status
    advice: str = ""

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.4g}"
        return f"{self.status:<7} {self.name}: {value} (limit {self.limit})" + (
            f" - {self.advice}" if self.advice else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def overall(checks: tuple[Check, ...]) -> Status:
    """FAIL if any check fails, else UNKNOWN if any could not be computed, else PASS."""
    found = {c.status for c in checks}
    return "FAIL" if "FAIL" in found else "UNKNOWN" if "UNKNOWN" in found or not checks else "PASS"


def sampler(draws: xr.Dataset, stats: xr.Dataset, info: Mapping[str, Any]) -> tuple[Check, ...]:
    """Checks of sampled draws.

    Parameters
    ----------
    draws : Dataset
        The sampled variables only: what is held fixed has no R-hat.
    stats : Dataset
        ``diverging``, ``energy`` and ``reached_max_tree_depth`` of each draw.
    info : mapping
        The engine's record.
    """
    chains, length = draws.sizes["chain"], draws.sizes["draw"]
    found = _arviz.convergence(draws) if length >= 4 else {}
    more = "draw more, with NUTS(draws=...), or simplify the model"
    return (
        _r_hat(found.get("r_hat"), chains),
        _ess("ess_bulk", found.get("ess_bulk"), chains, more),
        _ess("ess_tail", found.get("ess_tail"), chains, more),
        _divergences(stats["diverging"]),
        _bfmi(stats["energy"], length),
        _depth(stats["reached_max_tree_depth"]),
        *_interrupted(info),
    )


def approximate(engine: str, info: Mapping[str, Any]) -> tuple[Check, ...]:
    """Checks of an engine that does not sample the posterior: the first is never passed.

    Parameters
    ----------
    engine : str
        Its name.
    info : mapping
        Its record; shares of searches that ended at a minimum, by name, are in ``converged`` where it has any.
    """
    advice = {
        "laplace": "a Normal approximation at the mode, for a quick look; fit with NUTS before deciding",
        "prior": "draws of the prior: no run has been used",
        "published": "one published point without uncertainty",
        "huber": "a bootstrap of Huber's fit, not a posterior; no prior was used",
    }
    never = Check("engine", None, "sampled by NUTS", "UNKNOWN", advice[engine])
    return (never, *(_searches(name, share) for name, share in info.get("converged", {}).items()))


def _searches(name: str, share: float) -> Check:
    stuck = "the runs do not tell the law's parameters apart, or not without some of them; hold one with Fixed(value)"
    enough = share >= CONVERGED
    return Check(f"converged, {name}", share, f"{CONVERGED}", "PASS" if enough else "FAIL", "" if enough else stuck)


def _worst(found: xr.Dataset, *, largest: bool) -> tuple[float, str]:
    values = {
        f"{name}{[str(a.coords[d].values[i]) for d, i in zip(a.dims, at, strict=True)] if a.dims else ''}".replace(
            "'", ""
        ): float(v)
        for name, a in found.data_vars.items()
        for at, v in np.ndenumerate(a.values)
    }
    if any(np.isnan(v) for v in values.values()):
        return float("nan"), next(k for k, v in values.items() if np.isnan(v))
    name = (max if largest else min)(values, key=values.__getitem__)
    return values[name], name


def _r_hat(found: xr.Dataset | None, chains: int) -> Check:
    limit = f"{R_HAT}"
    if chains < 2:
        return Check("r_hat", None, limit, "UNKNOWN", "R-hat needs at least 2 chains; fit with NUTS(chains=4)")
    if found is None:
        return Check("r_hat", None, limit, "UNKNOWN", "R-hat needs at least 4 draws a chain")
    value, name = _worst(found, largest=True)
    if np.isnan(value):
        return Check("r_hat", None, limit, "UNKNOWN", f"R-hat of {name} is not a number")
    advice = f"chains disagree about {name}; lengthen NUTS(warmup=..., draws=...) or give it a tighter prior"
    return Check("r_hat", value, limit, "FAIL" if value > R_HAT else "PASS", advice if value > R_HAT else "")


def _ess(kind: str, found: xr.Dataset | None, chains: int, more: str) -> Check:
    if found is None:
        return Check(kind, None, f"{ESS}", "UNKNOWN", "too few draws to count effective ones")
    value, name = _worst(found, largest=False)
    if np.isnan(value):
        return Check(kind, None, f"{ESS}", "UNKNOWN", f"the effective draws of {name} are not a number")
    low = value < ESS
    return Check(kind, value, f"{ESS}", "FAIL" if low else "PASS", f"fewest for {name}; {more}" if low else "")


def _divergences(diverging: xr.DataArray) -> Check:
    count, total = int(diverging.sum()), diverging.size
    advice = f"{count} of {total} draws diverged; raise NUTS(target_accept=.99), or tighten a prior"
    return Check("divergences", float(count), "0", "FAIL" if count else "PASS", advice if count else "")


def _bfmi(energy: xr.DataArray, length: int) -> Check:
    if length < 4:
        return Check("e_bfmi", None, f"{BFMI}", "UNKNOWN", "too few draws")
    value = float(np.min(_arviz.bfmi(energy)))
    if np.isnan(value):
        return Check("e_bfmi", None, f"{BFMI}", "UNKNOWN", "the energy of a chain never changed, or is not a number")
    low = value < BFMI
    return Check(
        "e_bfmi",
        value,
        f"{BFMI}",
        "FAIL" if low else "PASS",
        "the energy is explored poorly; tighten the priors" if low else "",
    )


def _depth(reached: xr.DataArray) -> Check:
    share = float(reached.mean())
    high = share > SATURATED
    return Check(
        "tree_depth",
        share,
        f"{SATURATED}",
        "FAIL" if high else "PASS",
        "raise NUTS(max_tree_depth=...)" if high else "",
    )


def _interrupted(info: Mapping[str, Any]) -> tuple[Check, ...]:
    if not info.get("interrupted"):
        return ()
    return (Check("interrupted", None, "complete", "UNKNOWN", f"stopped after {info['draws']} draws a chain"),)
