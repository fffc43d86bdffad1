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

from bayescale.model._small import backward, cholesky, forward
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


def draw_groups(
    parameters: Sequence[Parameter], data: Mapping[str, Any], pilot: Mapping[str, Any], n_groups: int
) -> dict[str, Any]:
    """Sample the unconstrained values of partially pooled parameters.

    The sampler moves standard coordinates v and u, in which the population's mean and the groups'
    values x are what they would be, given the population's sds, if the runs of a group told about x what
    ``pilot`` says: a precision Q and a shift h = Q x_hat for each group. With T the sds,
    K K' = I + T Q T and Y = K^-1 T Q, a group says about the mean W = Q - Y' Y, and

        mean = m + R'^-1 v,    R R' = prior precision + sum of W,
        x = mean + T w,        w = K'^-1 [K^-1 T (h - Q mean) + u].

    Any Q and h give the same posterior, those too that depend on what was sampled before. Q = 0 is the
    non-centred form; a group whose runs say much is released from the population's sds, one whose runs say
    little leans on them, and both at every value of the sds alike, where Papaspiliopoulos, Roberts & Skold
    2007 choose between the two once.

    Returns
    -------
    dict
        By the parameter's name, its groups' values (n_groups,); by ``site_mean`` and ``site_sd``, those
        of its population, shape ().
    """
    sd, v, u = [], [], []
    for p in parameters:
        sd.append(numpyro.sample(f"{p.site}_sd", dist.HalfNormal(data["between_groups"][p.name])))
        v.append(numpyro.sample(f"{p.site}_mean_offset", dist.Normal(0.0, 1.0)))
        with numpyro.plate("group", n_groups):
            u.append(numpyro.sample(f"{p.site}_offset", dist.Normal(0.0, 1.0)))
    loc, spread = (jnp.stack([data[key][p.name] for p in parameters]) for key in ("prior_loc", "prior_spread"))
    t, v_, u_ = jnp.stack(sd), jnp.stack(v), jnp.stack(u, -1)
    mean, w, log_volume = _from_standard(t, v_, u_, loc, spread, pilot["precision"], pilot["shift"])
    # mean and w have the densities of their priors; v and u were given Normals, which are taken back.
    prior = -0.5 * (((mean - loc) / spread) ** 2).sum() - jnp.log(spread).sum() - 0.5 * (w**2).sum()
    numpyro.factor(f"population_{parameters[0].name}", prior + log_volume + 0.5 * (v_**2).sum() + 0.5 * (u_**2).sum())
    out = {p.name: mean[i] + t[i] * w[:, i] for i, p in enumerate(parameters)}
    for i, p in enumerate(parameters):
        out |= {f"{p.site}_mean": mean[i], f"{p.site}_sd": t[i]}
    return out


def _from_standard(t: Any, v: Any, u: Any, loc: Any, spread: Any, precision: Any, shift: Any) -> tuple[Any, Any, Any]:
    """(mean, w, log volume) of `draw_groups`; arrays (k,), (groups, k) and ()."""
    tq = t[:, None] * precision
    k = cholesky(jnp.eye(len(t)) + tq * t)
    both = forward(k, jnp.concatenate([tq, (t * shift)[..., None]], -1))
    y, kth = both[..., :-1], both[..., -1]
    told = (precision - (y[..., :, None] * y[..., None, :]).sum(-3)).sum(0) + jnp.diag(spread**-2.0)
    pull = (shift - (y * kth[..., None]).sum(-2)).sum(0) + loc / spread**2
    r = cholesky(told)
    mean = backward(r, forward(r, pull[:, None]) + v[:, None])[:, 0]
    w = backward(k, (kth - (y * mean).sum(-1) + u)[..., None])[..., 0]
    log_volume = -jnp.log(jnp.diagonal(k, axis1=-2, axis2=-1)).sum() - jnp.log(jnp.diagonal(r)).sum()
    return mean, w, log_volume


def log_prior(
    parameters: Sequence[Parameter], partial: Sequence[Parameter], x: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Log prior density of each parameter; under partial pooling of its groups' values and of its population."""
    out = {}
    for p in parameters:
        prior = dist.Normal(data["prior_loc"][p.name], data["prior_spread"][p.name])
        if p in partial:
            mean, sd = x[f"{p.site}_mean"], x[f"{p.site}_sd"]
            population = prior.log_prob(mean) + dist.HalfNormal(data["between_groups"][p.name]).log_prob(sd)
            out[p.name] = dist.Normal(mean, sd).log_prob(x[p.name]).sum() + population
        else:
            out[p.name] = prior.log_prob(x[p.name]).sum()
    return out
