"""Claims: whatever the pilot says, the prior of a hierarchy is the same; and it follows its definition."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import constrain_fn, potential_energy
from scipy.stats import halfnorm, norm

from bayescale.model.pooling import Complete, Partial, Separate, draw_groups
from bayescale.parameter import LogitNormal, LogNormal, Parameter

PARAMETERS = (
    Parameter("size", "s", "a size", "1", LogNormal(2.0, 0.7), 0.3),
    Parameter("share", "p", "a share", "1", LogitNormal(0.3, 0.5), 0.8),
)
GROUPS = 3


def data(pilot: dict) -> dict:
    return {
        "prior_loc": {p.name: p.prior.loc for p in PARAMETERS},
        "prior_spread": {p.name: p.prior.spread for p in PARAMETERS},
        "between_groups": {p.name: p.between_groups for p in PARAMETERS},
        "pilot": pilot,
    }


def pilot(strength: float) -> dict:
    root = np.random.default_rng(0).standard_normal((GROUPS, 2, 2)) * np.sqrt(strength)
    precision = root @ root.swapaxes(1, 2)
    return {"precision": precision, "shift": np.einsum("gij,j->gi", precision, [0.5, -1.0]) + strength / 10}


def split(z: Any) -> dict[str, Any]:
    sites = {}
    for i, p in enumerate(PARAMETERS):
        sites |= {f"{p.site}_sd": z[i], f"{p.site}_mean_offset": z[2 + i]}
        sites[f"{p.site}_offset"] = z[4 + i * GROUPS : 4 + (i + 1) * GROUPS]
    return sites


def model(given: dict) -> dict:
    return draw_groups(PARAMETERS, given, given["pilot"], GROUPS)


def places(z: Any, given: dict) -> Any:
    """log sds, means, and values of the groups, where the sampler's coordinates are ``z``."""
    with handlers.block(), handlers.substitute(data=constrain_fn(model, (given,), {}, split(z))):
        x = model(given)
    ordered = [jnp.log(x[f"{p.site}_sd"]) for p in PARAMETERS] + [x[f"{p.site}_mean"] for p in PARAMETERS]
    return jnp.concatenate([jnp.stack(ordered), *(x[p.name] for p in PARAMETERS)])


@jax.jit
def seen(z: Any, given: dict) -> tuple[Any, Any, Any]:
    """Log density of the coordinates, the places, and the log volume of the map between them."""
    energy = potential_energy(model, (given,), {}, split(z))
    return -energy, places(z, given), jnp.linalg.slogdet(jax.jacfwd(places)(z, given))[1]


@pytest.mark.parametrize("strength", [0.0, 1.0, 1e3, 1e6])
def test_the_pilot_changes_coordinates_and_not_the_prior(strength: float) -> None:
    """Density in the sampler's coordinates, less the volume of the map, is the hierarchy's own density."""
    rng, given = np.random.default_rng(1), data(pilot(strength))
    for z in rng.standard_normal((5, 2 * 2 + 2 * GROUPS)) * 0.7:
        with jax.enable_x64(True):
            density, at, volume = (np.asarray(v) for v in seen(z, given))
        expected = 0.0
        for i, p in enumerate(PARAMETERS):
            log_sd, mean, x = at[i], at[2 + i], at[4 + i * GROUPS : 4 + (i + 1) * GROUPS]
            expected += halfnorm.logpdf(np.exp(log_sd), scale=p.between_groups) + log_sd
            expected += norm.logpdf(mean, p.prior.loc, p.prior.spread) + norm.logpdf(x, mean, np.exp(log_sd)).sum()
        assert density - volume == pytest.approx(expected, rel=1e-8, abs=1e-6)


def test_a_parameter_without_differences_between_groups_is_shared_unless_named() -> None:
    tail = Parameter("tail", "n", "tails", "1", LogNormal(6.0, 1.0), 0.0)
    assert Partial("family").kind(tail) == "complete"
    assert Partial("family", {"tail": "separate"}).kind(tail) == "separate"
    assert Separate("family").kind(tail) == "separate"
    assert Partial("family", {"size": "complete"}).kind(PARAMETERS[0]) == "complete"


def test_a_grouping_needs_a_column_and_complete_pooling_takes_none() -> None:
    with pytest.raises(ValueError, match="needs the name of the grouping column"):
        Partial()
    with pytest.raises(ValueError, match="reads no grouping column"):
        Complete("family")
    with pytest.raises(ValueError, match="complete, partial, separate"):
        Separate("family", {"alpha": "none"})  # type: ignore[dict-item]
