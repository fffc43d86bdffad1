"""A run in progress beside its forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale.posterior.gate import HOLLOW
from bayescale.posterior.inputs import checked
from bayescale.posterior.posterior import Group, Posterior
from bayescale.posterior.predict import simulated


@final
@dataclass(frozen=True, eq=False, repr=False)
class Followed:
    """Where losses seen so far lie among those of finished runs.

    Attributes
    ----------
    rows : DataFrame
        One row a checkpoint: the law's inputs (tokens so far), ``loss`` seen, ``extrapolation_factor``, ``median``,
        ``lower`` and ``upper`` end of the equal-tailed interval of the loss of a finished run of these inputs, and
        ``share_above``, the probability that such a run ends higher than what was seen.
    level : float
        Probability in the interval.
    status : str
        The fit's diagnostics.
    loss_unit : str
        Unit of all losses.
    beyond : str or None
        Of a fit with drift: whether intervals beyond the data are calibrated.
    """

    rows: pd.DataFrame
    level: float
    status: str
    loss_unit: str
    beyond: str | None = None

    @property
    def warning(self) -> str | None:
        """What is wrong with its intervals, where rows lie beyond runs that fail the gate."""
        far = bool((self.rows["extrapolation_factor"] > 1).any())
        return HOLLOW if far and self.beyond == "FAIL" else None

    @property
    def standing(self) -> str:
        """PASS, FAIL or UNKNOWN: whether its numbers may be relied on."""
        return "FAIL" if self.warning else self.status

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of ``rows``."""
        return self.rows.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "warning": self.warning,
            "level": self.level,
            "kind": "eti",
            "diagnostics": self.status,
            "beyond_data": self.beyond,
            "loss_unit": self.loss_unit,
            "results": [{str(k): float(v) for k, v in row.items()} for row in self.rows.to_dict("records")],
        }

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def follow(
    posterior: Posterior,
    checkpoints: Mapping[str, Any] | pd.DataFrame,
    *,
    group: Group = None,
    level: float = 0.9,
    seed: int = 0,
) -> Followed:
    """Compare a run in progress with what is expected of finished runs of its size and tokens so far.

    A law is of finished runs, whose learning rate has decayed. Until then a run's loss is higher than theirs
    by a few percent, so that a checkpoint above the interval is no alarm by itself; one below it is better
    than the fit allows for; and a checkpoint after the decay is judged as it is.

    Parameters
    ----------
    posterior : Posterior
        A fit.
    checkpoints : mapping or DataFrame
        The law's inputs as in `predict`, ``n_tokens`` being those seen so far, and ``loss``, in the fit's unit.
    group : str, NewGroup, PopulationMean or None
        Whose law, where the fit has groups.
    level : float
        Probability in the equal-tailed interval.
    seed : int
        Of the scatter of runs.

    Returns
    -------
    Followed

    Raises
    ------
    ValueError
        For inputs that `predict` refuses, losses that are not positive or of another length, a level that is no
        probability, or a fit without scatter.
    """
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, as 0.9, not {level!r}.")
    if "loss" not in checkpoints:
        raise ValueError("follow needs the loss seen so far: {'n_params': 7e9, 'n_tokens': 1e11, 'loss': 2.31}.")
    group, inputs = posterior.named(group), checked(posterior.law, checkpoints)
    count = len(inputs["n_tokens"])
    loss = np.atleast_1d(np.asarray(checkpoints["loss"], float))
    if loss.shape != (count,) or not (np.isfinite(loss) & (loss > 0)).all():
        raise ValueError(f"loss is a positive number for each of {count} checkpoints, not {checkpoints['loss']!r:.80}.")
    if "noise" not in posterior.values(group):
        raise ValueError("follow needs a fit that tells how runs scatter; a published law does not. Fit runs.")
    ends, above = np.empty((count, 3)), np.empty(count)
    for at, _, shown in simulated(posterior, group, inputs, np.random.default_rng(seed)):
        assert shown is not None
        ends[at] = np.exp(np.quantile(shown, [0.5, (1 - level) / 2, (1 + level) / 2], axis=0)).T
        above[at] = (shown > np.log(loss[at])).mean(axis=0)
    flop = np.asarray(posterior.rule.flop(inputs[posterior.law.size], inputs["n_tokens"]), float)
    rows = pd.DataFrame({**inputs, "loss": loss, "extrapolation_factor": flop / posterior.largest["flop"]})
    rows[["median", "lower", "upper"]] = ends
    return Followed(rows.assign(share_above=above), level, posterior.status, posterior.loss_unit, posterior.beyond)
