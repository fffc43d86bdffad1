"""How groups of runs share what is unknown: completely, partially, or not at all.

Pooling acts on the unconstrained scale of a parameter (its log, or its log odds). Under partial
pooling a group's value is Normal around the population's,

    x_g ~ Normal(mean, sd),    mean ~ the parameter's prior,    sd ~ HalfNormal(between_groups),

so that a group with few runs leans on the others (Gelman & Hill 2007, chapter 12).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, final

import numpyro
import numpyro.distributions as dist

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
    """Sample a parameter's unconstrained value: shape () when complete, (n_groups,) otherwise.

    ``data["centered"]`` sets, for each group, where its value stands between the centred (1) and
    the non-centred (0) form: centred pays for a group whose runs determine its value, non-centred
    for one that leans on the population (Papaspiliopoulos, Roberts & Skold 2007; Gorinova et al.
    2020, arXiv 1906.03028).
    """
    site = parameter.site
    prior = dist.Normal(data["prior_loc"][parameter.name], data["prior_spread"][parameter.name])
    if kind == "complete":
        return numpyro.sample(site, prior)
    if kind == "separate":
        with numpyro.plate("group", n_groups):
            return numpyro.sample(site, prior)
    mean = numpyro.sample(f"{site}_mean", prior)
    sd = numpyro.sample(f"{site}_sd", dist.HalfNormal(data["between_groups"][parameter.name]))
    c = data["centered"][parameter.name]
    with numpyro.plate("group", n_groups):
        offset = numpyro.sample(f"{site}_offset", dist.Normal(c * mean, sd**c))
    return mean + sd ** (1 - c) * (offset - c * mean)
