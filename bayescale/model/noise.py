"""How a run's log loss scatters around the law.

Scatter is on log loss, so a scale of .01 is one percent of the loss, in any unit. A run's own
standard error, where the table gives one, adds to the scale in quadrature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln

from bayescale.parameter import LogNormal, Parameter

SCALE = Parameter("noise", r"$\sigma$", "scatter of a run's log loss around the law", "1", LogNormal(0.01, 1.0), 0.5)
# Tails differ too little between tables for one table to tell its groups' tails apart: no
# differences between groups unless asked.
TAIL = Parameter(
    "tail", r"$\nu$", "degrees of freedom of the scatter (small: heavy tails)", "1", LogNormal(6.0, 1.0), 0.0
)


LARGE = 50.0  # half the degrees of freedom from which the series of the log gammas is exact to 1e-14


class Noise(ABC):
    """A distribution of log loss around its mean; ``parameters`` declares its unknowns, ``noise`` among them."""

    parameters: ClassVar[tuple[Parameter, ...]]

    @abstractmethod
    def distribution(self, mean: Any, values: Mapping[str, Any], se: Any) -> dist.Distribution:
        """Distribution of log loss; ``se`` is the standard error of log loss (0 where none is given)."""

    def variance(self, values: Mapping[str, Any], se: Any) -> Any:
        """Squared scale of log loss around its mean."""
        return values["noise"] ** 2 + se**2

    @abstractmethod
    def precision(self, values: Mapping[str, Any], residual: Any, se: Any) -> Any:
        """How much a run tells of its mean log loss, given its residual from it: in expectation over others like it."""

    @abstractmethod
    def simulate(self, rng: np.random.Generator, mean: Any, values: Mapping[str, Any], se: Any) -> np.ndarray:
        """Draw log losses; arrays broadcast."""


class _StudentT(dist.StudentT):
    """Student's t whose density is right for any degrees of freedom.

    The difference of two log gammas loses all its digits where they are many: it then is noise of tens of nats
    a run, in which a chain that strays there finds false peaks and stays.
    """

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        df: Any = self.df
        scale: Any = self.scale
        scaled = (value - self.loc) / scale
        peak = _log_gamma_step(df / 2) - jnp.log(scale) - 0.5 * jnp.log(df * jnp.pi)
        return peak - 0.5 * (df + 1) * jnp.log1p(scaled**2 / df)


def _log_gamma_step(x: Any) -> Any:
    """Log of Gamma(x + 1/2) / Gamma(x): by its series in 1 / x where x is large."""
    small, large = jnp.minimum(x, LARGE), jnp.maximum(x, LARGE)
    exact = gammaln(small + 0.5) - gammaln(small)
    series = 0.5 * jnp.log(large) - 1 / (8 * large) + 1 / (192 * large**3) - 1 / (640 * large**5)
    return jnp.where(x < LARGE, exact, series)


@final
@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t with its degrees of freedom inferred: a few runs that went wrong do not bend the law."""

    parameters: ClassVar[tuple[Parameter, ...]] = (SCALE, TAIL)

    def distribution(self, mean: Any, values: Mapping[str, Any], se: Any) -> dist.Distribution:
        return _StudentT(values["tail"], mean, jnp.sqrt(self.variance(values, se)))

    def precision(self, values: Mapping[str, Any], residual: Any, se: Any) -> Any:
        tail, variance = values["tail"], self.variance(values, se)
        return (tail + 1) / (tail + 3) * (tail + 1) / (tail * variance + residual**2)

    def simulate(self, rng: np.random.Generator, mean: Any, values: Mapping[str, Any], se: Any) -> np.ndarray:
        scale = np.sqrt(self.variance(values, se))
        shape = np.broadcast_shapes(np.shape(mean), np.shape(scale), np.shape(values["tail"]))
        return mean + scale * rng.standard_t(np.asarray(values["tail"]), shape)


@final
@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal scatter: as least squares on log loss, every run pulls in proportion to its residual."""

    parameters: ClassVar[tuple[Parameter, ...]] = (SCALE,)

    def distribution(self, mean: Any, values: Mapping[str, Any], se: Any) -> dist.Distribution:
        return dist.Normal(mean, jnp.sqrt(self.variance(values, se)))

    def precision(self, values: Mapping[str, Any], residual: Any, se: Any) -> Any:
        return np.broadcast_to(1 / self.variance(values, se), np.shape(residual))

    def simulate(self, rng: np.random.Generator, mean: Any, values: Mapping[str, Any], se: Any) -> np.ndarray:
        scale = np.sqrt(self.variance(values, se))
        return mean + scale * rng.standard_normal(np.broadcast_shapes(np.shape(mean), np.shape(scale)))
