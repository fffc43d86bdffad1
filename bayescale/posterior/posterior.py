"""What was learnt from a table of runs: labelled draws, with everything that they rest on."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from bayescale import _show
from bayescale._files import put
from bayescale.model.drift import Center
from bayescale.model.joint import Model
from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.posterior.diagnostics import Check, Status, overall
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.inputs import held
from bayescale.posterior.surface import Surface, drifted, weights
from bayescale.runs.flops import ComputeRule
from bayescale.runs.table import Runs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayescale.laws._law import Law

Group = str | NewGroup | PopulationMean | None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws from a posterior (or, marked as such, from an approximation, a bootstrap or a prior).

    Attributes
    ----------
    tree : xarray.DataTree
        arviz' groups. ``posterior`` holds ``A B E alpha beta`` (the law's letters, dimensions chain,
        draw and, when groups differ, group) and the parameters that were sampled in their stead;
        ``unconstrained_posterior`` the sampler's own coordinates; further ``sample_stats``,
        ``log_likelihood`` (of log loss), ``log_prior``, ``posterior_predictive`` (loss of a new run
        at every run's inputs, at most 1,000 draws), ``prior``, ``observed_data``, ``constant_data``.
    model : Model
        Law, pooling, noise and priors.
    runs : Runs or None
        The table that was used; None for a published law.
    checks : tuple of Check
        Diagnostics; ``status`` sums them up.
    info : mapping
        Engine, seed, reference run, versions, table hash: what another fit needs to repeat this one.
    metadata : mapping
        The user's own notes, any JSON value.
    law_alone : Posterior or None
        Beside a fit with drift: what the same runs say if the law were exact at every scale.
    gate : tuple of Check
        Of a fit with drift: whether its table is one whose forecasts beyond the data can be believed.
    """

    tree: xr.DataTree
    model: Model
    runs: Runs | None
    rule: ComputeRule
    checks: tuple[Check, ...]
    info: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    law_alone: Posterior | None = None
    gate: tuple[Check, ...] = ()

    @property
    def law(self) -> Law:
        """The law whose letters were inferred."""
        return self.model.law

    @property
    def status(self) -> Status:
        """PASS, FAIL or UNKNOWN: whether the draws can be trusted."""
        return overall(self.checks)

    @property
    def beyond(self) -> Status | None:
        """Whether intervals beyond the data are calibrated: of a fit with drift, its gate; None for the law alone."""
        return overall(self.gate) if self.model.drift else None

    @property
    def warning(self) -> str | None:
        """What is wrong with intervals beyond the data, where the gate failed."""
        return HOLLOW if self.beyond == "FAIL" else None

    @property
    def standing(self) -> Status:
        """PASS where the draws can be trusted and intervals beyond the data are calibrated."""
        return overall((*self.checks, *self.gate))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups; () under complete pooling."""
        draws = self.tree["posterior"].dataset
        return tuple(str(g) for g in draws["group"].values) if "group" in draws.coords else ()

    @property
    def largest(self) -> Mapping[str, float]:
        """Largest n_params, n_tokens and flop that the law was fitted to."""
        return self.info["largest"]

    @property
    def loss_unit(self) -> str:
        """Unit of every loss here."""
        return self.info["loss_unit"]

    @property
    def reference(self) -> Mapping[str, float]:
        """The reference run: the table's centre, at which the sampled parameters are defined."""
        return self.info["reference"]

    def named(self, group: Group) -> Group:
        """Check a choice of group against those of the fit.

        Raises
        ------
        ValueError
            If a grouped fit is asked without a group, or for one that it does not have.
        """
        known = ", ".join(self.groups)
        if isinstance(group, NewGroup | PopulationMean):
            if not any(self.model.pooling.kind(p) == "partial" for p in self.model.parameters):
                raise ValueError(
                    f"A {group} needs partial pooling, Partial(column); this fit has {self.model.pooling}."
                )
            return group
        if not self.groups:
            if group is None:
                return None
            raise ValueError(f"Unknown group {group!r}: this fit has no groups (pooling complete).")
        if group is None:
            raise ValueError(f"This fit has groups; name one of {known}, or ask for NewGroup() or PopulationMean().")
        if group not in self.groups:
            fold = {g.casefold(): g for g in self.groups}
            near = difflib.get_close_matches(str(group).casefold(), fold, n=1)
            hint = f" Did you mean {fold[near[0]]!r}?" if near else ""
            raise ValueError(
                f"Unknown group {group!r}; known: {known}.{hint} "
                "For one that is not in the table, ask for NewGroup() explicitly."
            )
        return group

    def coefficients(self, group: Group = None) -> dict[str, np.ndarray]:
        """Draws of the law's letters, each an array (chains x draws,), chain after chain.

        Parameters
        ----------
        group : str, NewGroup, PopulationMean or None
            A group of the fit; or a group that is not in the table, drawn from the population anew
            for every draw; or the population's mean, which is not a group. None without groups.
        """
        return self._of(self.named(group))[0]

    def values(self, group: Group = None) -> dict[str, np.ndarray]:
        """Draws of the parameters' values (of noise as well), as in `coefficients`."""
        return self._of(self.named(group))[1]

    def surface(self, group: Group = None, at: Mapping[str, float] | None = None) -> Surface:
        """The mean loss of any run, draw by draw, in the order of `coefficients`.

        ``at`` holds conditions of the law for whoever asks for its optima, those left out at their standard.
        """
        letters, values = self._of(self.named(group))
        letters = letters | held(self.law, at, len(next(iter(letters.values()))))
        if self.model.drift is None:
            return Surface(self.law, letters)
        path = weights(self.tree["posterior"].dataset, group, self.model.drift, self.info["seed"])
        center = Center(**self.info["center"])
        return drifted(self.law, letters, values, path, self.model.drift.tilt, center, self.reference)

    @functools.cache  # noqa: B019  (a posterior is frozen and few are alive)
    def _of(self, group: Group) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        draws = self.tree["posterior"].dataset
        letters = [q.name for q in self.law.coefficients]
        names = [p.name for p in self.model.parameters if p.name in draws]
        if isinstance(group, NewGroup | PopulationMean):
            return self._of_population(group, letters, names)
        picked = draws.sel(group=group) if group is not None else draws
        flat = {n: np.asarray(picked[n].values, float).reshape(-1) for n in {*letters, *names}}
        return {n: flat[n] for n in letters}, {n: flat[n] for n in names}

    def _of_population(self, group: Group, letters: list[str], names: list[str]) -> Any:
        draws = self.tree["posterior"].dataset
        size = draws.sizes["chain"] * draws.sizes["draw"]
        rng = np.random.default_rng([self.info["seed"], 1])
        values = {}
        for p in self.model.parameters:
            if f"{p.site}_mean" in draws:
                x = draws[f"{p.site}_mean"].values.reshape(-1)
                if isinstance(group, NewGroup):
                    x = x + draws[f"{p.site}_sd"].values.reshape(-1) * rng.standard_normal(size)
                values[p.name] = p.prior.constrain(x, np)
            elif p.name in names:
                if draws[p.name].ndim > 2:
                    raise ValueError(f"{p.name} is pooled separately: there is no population to draw a {group} from.")
                values[p.name] = draws[p.name].values.reshape(-1)
        with jax.enable_x64(True):
            found = self.law.to_coefficients(values, self.reference)
            return {n: np.array(np.broadcast_to(found[n], (size,))) for n in letters}, values

    def summary(self, level: float = 0.9) -> pd.DataFrame:
        """Mean, sd, equal-tailed interval, ESS, R-hat and Monte Carlo error of every variable, unrounded."""
        from bayescale.posterior import _arviz

        return _arviz.summary(self.tree["posterior"].to_dataset(), level)

    def to_dataframe(self) -> pd.DataFrame:
        """Draws as a tidy table: one row a chain, draw and group; letters and parameters as columns."""
        names = [*dict.fromkeys([q.name for q in self.law.coefficients] + [p.name for p in self.model.parameters])]
        draws = self.tree["posterior"].to_dataset()
        return draws[[n for n in names if n in draws]].to_dataframe().reset_index()

    def to_dict(self, level: float = 0.9) -> dict[str, Any]:
        """Settings, checks, and intervals of the letters and the noise, as JSON values.

        One entry of ``results`` a group, with its number of runs; its ``quantities`` have median, lower
        and upper end of the equal-tailed interval, and unit.
        """
        pooling = self.model.pooling
        return {
            "warning": self.warning,
            "level": level,
            "kind": "eti",
            "diagnostics": self.status,
            "checks": [c.to_dict() for c in self.checks],
            "beyond_data": self.beyond,
            "gate": [c.to_dict() for c in self.gate],
            "law": type(self.law).__name__,
            "pooling": {
                "kind": type(pooling).__name__,
                "by": pooling.by,
                "per_parameter": dict(pooling.per_parameter),
            },
            "noise": type(self.model.noise).__name__,
            "drift": self.model.drift is not None,
            "shocks": [{"by": s.by, "tilt": s.tilt} for s in self.model.shocks],
            "priors": {name: repr(prior) for name, prior in self.model.priors.items()},
            "rule": self.rule.to_dict(),
            "loss_unit": self.loss_unit,
            "info": dict(self.info),
            "metadata": dict(self.metadata),
            "results": [self._result(g, level) for g in self.groups or (None,)],
        }

    def _result(self, group: str | None, level: float) -> dict[str, Any]:
        own = {"group": group, "n_runs": self._n_runs(group), "quantities": self._intervals(group, level)}
        return own | ({"law_alone": self.law_alone._result(group, level)} if self.law_alone else {})

    def _n_runs(self, group: str | None) -> int:
        return self.info.get("runs_per_group", {}).get(group, len(self.runs) if self.runs else 0)

    def _intervals(self, group: str | None, level: float) -> dict[str, dict[str, Any]]:
        drawn = self.values(group) | self.coefficients(group)
        out = {}
        others = self.model.parameters[len(self.law.parameters) :]
        for q in (*self.law.coefficients, *others):
            if q.name in drawn:
                ends = np.quantile(drawn[q.name], [0.5, (1 - level) / 2, (1 + level) / 2]).tolist()
                numbers = dict(zip(("median", "lower", "upper"), ends, strict=True))
                plain = {k: v if np.isfinite(v) else None for k, v in numbers.items()}
                out[q.name] = plain | {"unit": q.unit.replace("loss", self.loss_unit)}
        return out

    def write_draws(self, path: str | Path) -> Path:
        """Write `to_dataframe` as ``.csv`` or ``.parquet``.

        Raises
        ------
        ValueError
            For another suffix.
        """
        path = Path(path)
        writers = {".csv": lambda to: frame.to_csv(to, index=False), ".parquet": lambda to: frame.to_parquet(to)}
        if path.suffix not in writers:
            raise ValueError(f"Draws are written as .csv or .parquet, not {path.suffix!r} ({path}).")
        frame = self.to_dataframe()
        with put(path) as part:
            writers[path.suffix](part)
        return path

    def save(self, path: str | Path) -> Path:
        """Write everything as one netCDF file; see `bayescale.load`."""
        from bayescale.posterior.store import save

        return save(self, path)

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)
