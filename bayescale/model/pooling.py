"""How groups of runs share what is unknown: completely, partially, or not at all.

Pooling acts on the unconstrained scale of a parameter (its log, or its log odds). Under partial
pooling a group's value is Normal around the population's,

    x_g ~ Normal(mean, sd),    mean ~ the parameter's prior,    sd ~ HalfNormal(between_groups),

so that a group with few runs leans on the others (Gelman & Hill 2007, chapter 12).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular

from bayescale.parameter import Parameter

Kind = Literal["complete", "partial", "separate"]
KINDS: tuple[Kind, ...] = ("complete", "partial", "separate")


@dataclass(frozen=True)
class Pooling(ABC):
    """A choice for every parameter; ``per_parameter`` names those that differ from the rest.

    Attributes
    ----------
    by : str or None
        The grouping column of the table of runs.
    per_parameter : mapping of str to {"complete", "partial", "separate"}
        Exceptions by the parameter's name, as ``{"alpha": "complete"}``.
    """

    default: ClassVar[Kind]

    by: str | None = None
    per_parameter: Mapping[str, Kind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wrong = {k: v for k, v in self.per_parameter.items() if v not in KINDS}
        if wrong:
            raise ValueError(f"per_parameter takes {', '.join(KINDS)}, not {wrong}.")

    def kind(self, parameter: Parameter) -> Kind:
        """How this parameter is pooled; one without differences between groups is never partial."""
        kind = self.per_parameter.get(parameter.name, self.default)
        if parameter.name not in self.per_parameter and kind == "partial" and not parameter.between_groups:
            return "complete"
        return kind


@final
@dataclass(frozen=True)
class Complete(Pooling):
    """One law for all runs; no grouping column is read."""

    default: ClassVar[Kind] = "complete"

    def __post_init__(self) -> None:
        if self.by is not None or self.per_parameter:
            raise ValueError("Complete() reads no grouping column; use Partial(by) or Separate(by).")


@final
@dataclass(frozen=True)
class Partial(Pooling):
    """A law for each group, drawn from a population that is inferred with them."""

    default: ClassVar[Kind] = "partial"

    def __post_init__(self) -> None:
        super().__post_init__()
        _needs_column(self)


@final
@dataclass(frozen=True)
class Separate(Pooling):
    """A law for each group, as if the others did not exist."""

    default: ClassVar[Kind] = "separate"

    def __post_init__(self) -> None:
        super().__post_init__()
        _needs_column(self)


def _needs_column(pooling: Pooling) -> None:
    if not pooling.by:
        raise ValueError(f"{type(pooling).__name__}(by) needs the name of the grouping column.")


@final
@dataclass(frozen=True)
class NewGroup:
    """A group that is not in the table, drawn anew from the population for every draw."""

    def __str__(self) -> str:
        return "new group"


@final
@dataclass(frozen=True)
class PopulationMean:
    """The law at the population's mean: the centre of the groups, not a group."""

    def __str__(self) -> str:
        return "population mean"


def draw(parameter: Parameter, kind: Kind, data: Mapping[str, Any], n_groups: int) -> Any:
    """Sample the unconstrained value of a parameter that is not pooled partially: shape () or (n_groups,)."""
    prior = dist.Normal(data["prior_loc"][parameter.name], data["prior_spread"][parameter.name])
    if kind == "complete":
        return numpyro.sample(parameter.site, prior)
    with numpyro.plate("group", n_groups):
        return numpyro.sample(parameter.site, prior)


def draw_groups(parameters: Sequence[Parameter], data: Mapping[str, Any], n_groups: int) -> dict[str, Any]:
    """Sample the unconstrained values of all partially pooled parameters, shape (n_groups,) each, by name.

    The sampler moves u, in which the groups' values x are x = m + L u, with m and L L' the mean and the
    covariance that x would have, given the population, if the runs of a group told about x what
    ``data["pilot"]`` says: a precision Q and a shift h = Q x_hat for each group. With T the
    population's sds and K K' = I + T Q T,

        x = mean + T w,    w = K'^-1 [K^-1 T (h - Q mean) + u].

    Any Q and h give the same posterior. Q = 0 is the non-centred form; a group whose runs say much
    is released from the population's sds, and one whose runs say little leans on them, at every value of
    the sds alike (a form between the two that Papaspiliopoulos, Roberts & Skold 2007 choose once).
    """
    mean, sd, u = [], [], []
    for p in parameters:
        prior = dist.Normal(data["prior_loc"][p.name], data["prior_spread"][p.name])
        mean.append(numpyro.sample(f"{p.site}_mean", prior))
        sd.append(numpyro.sample(f"{p.site}_sd", dist.HalfNormal(data["between_groups"][p.name])))
        with numpyro.plate("group", n_groups):
            u.append(numpyro.sample(f"{p.site}_offset", dist.Normal(0.0, 1.0)))
    mu, t, base = jnp.stack(mean), jnp.stack(sd), jnp.stack(u, -1)
    k = whitening(t, data["pilot"]["precision"])
    w = to_standard(base, mu, t, k, data["pilot"])
    # The density of w is a standard Normal's; u was given one of its own, which is taken back.
    log_volume = -jnp.log(jnp.diagonal(k, axis1=-2, axis2=-1)).sum()
    numpyro.factor("groups", 0.5 * (base**2).sum() - 0.5 * (w**2).sum() + log_volume)
    return {p.name: mu[i] + t[i] * w[:, i] for i, p in enumerate(parameters)}


def whitening(sd: Any, precision: Any) -> Any:
    """K of `draw_groups`: array (groups, parameters, parameters)."""
    return jnp.linalg.cholesky(jnp.eye(sd.shape[-1]) + sd[:, None] * precision * sd)


def to_standard(u: Any, mean: Any, sd: Any, k: Any, pilot: Mapping[str, Any]) -> Any:
    """w of `draw_groups`, from u: arrays (groups, parameters)."""
    pull = sd * (pilot["shift"] - jnp.einsum("gij,j->gi", pilot["precision"], mean))
    inner = solve_triangular(k, pull[..., None], lower=True) + u[..., None]
    return solve_triangular(k, inner, lower=True, trans="T")[..., 0]
