"""Where a law meets data: priors, pooling, law and noise make one density.

Two values: a `Model` is what a user chooses, complete with every prior; a `Joint` is the part of
it that decides the shape of the computation, hashable, so that one compiled program serves every
table and every prior of the same shape.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import handlers
from numpyro.infer.util import constrain_fn, potential_energy

from bayescale import _show
from bayescale.laws._law import Law
from bayescale.model import path, shocks
from bayescale.model.drift import DECLINE, DEPARTURE, WEIGHTS, Drift, declining
from bayescale.model.noise import Noise, StudentT
from bayescale.model.pooling import Complete, Kind, Pooling, draw, draw_groups, log_prior
from bayescale.model.shocks import Blocks, Shocks
from bayescale.parameter import Fixed, Parameter, Prior

Data = Mapping[str, Any]


@final
@dataclass(frozen=True)
class Joint:
    """The shape of a model: which parameters are pooled how, and how many groups there are."""

    law: Law
    noise: Noise
    kinds: tuple[tuple[str, Kind], ...]
    fixed: frozenset[str]
    n_groups: int
    shocks: Blocks = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All unknowns but the weights of paths and shocks: of the law, the noise, the drift, the shocks."""
        drift = (DECLINE, DEPARTURE) if self.path else ()
        return (*self.law.parameters, *self.noise.parameters, *drift, *(p for p, _ in self.shocks))

    @property
    def path(self) -> Kind | None:
        """How groups share the path away from the law; None where the law is exact."""
        return dict(self.kinds).get(path.PATH.name)

    @property
    def partial(self) -> tuple[Parameter, ...]:
        """The parameters that are pooled partially."""
        return self.partial_of(self.parameters)

    def partial_of(self, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        """Those of some parameters that are pooled partially; their order is that of ``data["pilot"]``."""
        kinds = dict(self.kinds)
        return tuple(p for p in parameters if kinds[p.name] == "partial" and p.name not in self.fixed)

    def unconstrained(self, data: Data) -> dict[str, Any]:
        """Sample every parameter that is not fixed, on its unconstrained scale: shape () or (n_groups,)."""
        kinds, partial, pilot = dict(self.kinds), self.partial, data["pilot"]
        alone = [p for p in self.parameters if p not in partial and p.name not in self.fixed]
        x = {p.name: draw(p, kinds[p.name], data, self.n_groups) for p in alone}
        if scatter := self.partial_of(self.noise.parameters):
            x |= draw_groups(scatter, data, pilot["noise"], self.n_groups)
        if law := self.partial_of(self.law.parameters):
            # What runs say about the law is as sharp as they scatter little.
            now = self.noise.variance(self.constrained(self.noise.parameters, x, data), pilot["se"])
            sharper = jnp.broadcast_to(pilot["variance"] / now, (self.n_groups,))
            precision, shift = (pilot["law"][k] for k in ("precision", "shift"))
            told = {"precision": sharper[:, None, None] * precision, "shift": sharper[:, None] * shift}
            x |= draw_groups(law, data, told, self.n_groups)
        return x

    def constrained(self, parameters: tuple[Parameter, ...], x: Data, data: Data) -> dict[str, Any]:
        """Values of parameters in their own units: those held fixed, and the others from their unconstrained values."""
        return {
            p.name: data["fixed"][p.name] if p.name in self.fixed else p.prior.constrain(x[p.name], jnp)
            for p in parameters
        }

    def __call__(self, data: Data) -> dict[str, Any]:
        """The model, in numpyro's sense; returns values, letters and the mean log loss of each run."""
        x = self.unconstrained(data)
        values = self.constrained(self.parameters, x, data)
        letters = self.law.to_coefficients(values, data["reference"])
        of_runs = functools.partial(_of_runs, group=data["group"], n_groups=self.n_groups)
        run, paths = data["run"], {}
        if self.path:
            decline = of_runs({DECLINE.name: values[DECLINE.name]})[DECLINE.name]
            run = declining(run, decline, data["reference"], self.law.spent)
        mean = jnp.log(self.law.loss(of_runs(letters), run))
        if self.path or self.shocks:
            departure = of_runs({"s": values[DEPARTURE.name]})["s"] if self.path else None
            paths, away = self._away(values, data, data["log_loss"] - mean, departure)
            mean = mean + away
        scatter = self.noise.distribution(mean, of_runs(values), data["se"])
        with numpyro.plate("run", mean.shape[0]), handlers.mask(mask=data["mask"]):
            numpyro.sample("log_loss", scatter, obs=data["log_loss"])
        return {
            "x": x,
            "values": values,
            "letters": letters,
            "paths": paths,
            "mean": mean,
            "log_likelihood": scatter.log_prob(data["log_loss"]),
        }

    def _away(self, values: Data, data: Data, residual: Any, departure: Any) -> tuple[dict[str, Any], Any]:
        """Paths by name, as `path.named`, and shocks; and what they add to each run's log loss (rows,)."""
        kind, told, held = self.path, data["pilot"]["path"], path.PATH.name in self.fixed
        now = self.noise.variance(values, data["pilot"]["se"])
        sharper = jnp.exp(jnp.log(told["variance"] / now).mean())
        if self.shocks:
            shape = kind, self.shocks, self.n_groups
            return shocks.effects(*shape, values, data, residual, departure, sharper, held=held)
        assert kind
        scale = jnp.exp(jnp.log(values[DEPARTURE.name]).mean())
        n = path.count(kind, self.n_groups)
        weights, away = path.draw(n, told, residual, scale, sharper, held=held)
        return path.named(weights, kind, data["shared"]), departure * away


def _of_runs(values: Mapping[str, Any], group: Any, n_groups: int) -> dict[str, Any]:
    """Each run's group's value. By sums over indicators: the gradient of a gather is a slow scatter on CPUs."""
    member = jax.nn.one_hot(group, n_groups, dtype=jnp.float64)
    return {name: (member * v).sum(-1) if jnp.ndim(v) else v for name, v in values.items()}


@functools.cache
def sites(joint: Joint, n_rows: int) -> dict[str, tuple[int, ...]]:
    """Shape of every sampled site, in the order in which a flat vector holds them."""

    def latent() -> dict[str, Any]:
        trace = handlers.trace(handlers.seed(joint, jnp.zeros(2, jnp.uint32))).get_trace(_blank(joint, n_rows))
        return {name: s["value"] for name, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}

    with jax.enable_x64(True):
        return {name: a.shape for name, a in jax.eval_shape(latent).items()}


def _blank(joint: Joint, n_rows: int) -> dict[str, Any]:
    """Data of the right shapes, for tracing only."""
    one = {p.name: 1.0 for p in joint.parameters}
    row, away = jnp.ones(n_rows), shocks.blank(joint.path, joint.shocks, joint.n_groups, n_rows)
    return {
        "run": dict.fromkeys(joint.law.inputs, row),
        "reference": dict.fromkeys(joint.law.inputs, 1.0),
        "log_loss": row,
        "se": row,
        "group": jnp.zeros(n_rows, jnp.int32),
        "mask": row > 0,
        "prior_loc": one,
        "prior_spread": one,
        "between_groups": one,
        "fixed": one,
        "columns": jnp.ones((n_rows, WEIGHTS)),
        "shared": 0.5,
        "shocks": away.get("shocks"),
        "pilot": no_pilot(joint) | ({"path": away["pilot"]} if away else {}),
    }


def no_pilot(joint: Joint) -> dict[str, Any]:
    """A pilot that knows nothing of groups: the non-centred form."""
    n, parts = joint.n_groups, {"law": joint.law.parameters, "noise": joint.noise.parameters}
    counts = {part: len(joint.partial_of(parameters)) for part, parameters in parts.items()}
    blank = {part: {"precision": np.zeros((n, k, k)), "shift": np.zeros((n, k))} for part, k in counts.items()}
    return {**blank, "variance": np.ones(n), "se": np.zeros(n)}


def unpack(joint: Joint, z: Any, n_rows: int) -> dict[str, Any]:
    """Split a flat unconstrained vector (..., d) into its sites."""
    out, at = {}, 0
    for name, shape in sites(joint, n_rows).items():
        length = math.prod(shape)
        out[name] = z[..., at : at + length].reshape((*z.shape[:-1], *shape))
        at += length
    return out


def size(joint: Joint, n_rows: int) -> int:
    """Number of unknowns sampled."""
    return sum(math.prod(s) for s in sites(joint, n_rows).values())


@functools.cache
def potential(joint: Joint) -> Callable[[Any, Data], Any]:
    """Negative log posterior density of a flat unconstrained vector, given the data."""

    @jax.jit
    def energy(z: Any, data: Data) -> Any:
        return potential_energy(joint, (data,), {}, unpack(joint, z, data["mask"].shape[0]))

    return energy


@functools.cache
def describe(joint: Joint) -> Callable[[Any, Data], dict[str, Any]]:
    """For flat vectors (draws, d): values on both scales, letters, log prior, mean and log likelihood of each run."""

    def one(z: Any, data: Data) -> dict[str, Any]:
        out = constrain_fn(joint, (data,), {}, unpack(joint, z, data["mask"].shape[0]))
        with handlers.block(), handlers.substitute(data=out):
            found = joint(data)
        free = [p for p in joint.parameters if p.name not in joint.fixed]
        return {**found, "log_prior": log_prior(free, joint.partial, found["x"], data)}

    return jax.jit(jax.vmap(one, in_axes=(0, None)))


@final
@dataclass(frozen=True, repr=False)
class Model:
    """A law, how groups share it, how runs scatter around it, how far it holds beyond them, and every prior.

    Parameters
    ----------
    law : Law
        The mean loss of a run.
    pooling : Pooling
        `Complete` (default), `Partial` or `Separate` over one grouping column.
    noise : Noise
        `StudentT` (default, robust) or `Gaussian`.
    priors : mapping of str to Prior or Fixed
        Changes to the default priors, by the parameter's name. `Fixed` holds a parameter at a value.
    drift : Drift or None
        How the law fails beyond its runs (default `Drift()`); None: it is exact everywhere.
    shocks : sequence of Shocks
        What rows share beside the law (default nothing), by columns of the table.

    Raises
    ------
    ValueError
        If a name is not a parameter of this model (the message lists those that are), or a prior is
        of another kind than the parameter's range needs.
    """

    law: Law
    pooling: Pooling = field(default_factory=Complete)
    noise: Noise = field(default_factory=StudentT)
    priors: Mapping[str, Prior | Fixed] = field(default_factory=dict)
    drift: Drift | None = field(default_factory=Drift)
    shocks: Sequence[Shocks] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shocks", shocks.checked(self.shocks, self.pooling))
        known = {p.name: p for p in self.parameters}
        apart = set(self.pooling.per_parameter) - ({path.PATH.name} if self.drift else set())
        for name in (*self.priors, *apart):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"No parameter is called {name!r}; this model has {', '.join(known)}.{hint}")
        for name, prior in self.priors.items():
            default = known[name].prior
            if isinstance(prior, Fixed):
                default.unconstrain(prior.value)
            elif type(prior) is not type(default):
                kind = type(default).__name__
                raise ValueError(f"{name} takes a {kind}(center, spread) prior or Fixed(value), not {prior!r}.")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All unknowns, the law's first, then the noise's, then the drift's, then the shocks'."""
        drift, own = (DECLINE, DEPARTURE) if self.drift else (), (p for s in self.shocks for p in s.parameters)
        return (*self.law.parameters, *self.noise.parameters, *drift, *own)

    def prior(self, parameter: Parameter) -> Prior | Fixed:
        """The prior in force: the one given by name, or what drift says of other tables, or the default."""
        population = self.drift.priors if self.drift else {}
        known = population.get(parameter.name, parameter.prior)
        return self.priors.get(parameter.name, known if type(known) is type(parameter.prior) else parameter.prior)

    def joint(self, n_groups: int, levels: Sequence[int] = ()) -> Joint:
        """The shape of this model on a table with that many groups, and levels of each of its shocks."""
        unknown = (*self.parameters, *((path.PATH,) if self.drift else ()))
        kinds: tuple[tuple[str, Kind], ...] = tuple((p.name, self.pooling.kind(p)) for p in unknown)
        fixed = frozenset(p.name for p in self.parameters if isinstance(self.prior(p), Fixed))
        return Joint(self.law, self.noise, kinds, fixed, n_groups, shocks.blocks(self.shocks, levels))

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
