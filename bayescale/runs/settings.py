"""What a person says about a table before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bayescale.runs.checkpoints import LeaveOut
from bayescale.runs.choice import Choice
from bayescale.runs.flops import SIX_ND, ComputeRule
from bayescale.runs.units import CONVENTIONS, NATS


@dataclass(frozen=True)
class Settings:
    """What a person says about a table; see `bayescale.read_runs`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    rule: ComputeRule = SIX_ND
    exclude: Choice | None = None
    leave_out: LeaveOut = ()
    loss_unit: str | None = None
    counts: str | None = None
    bytes_per_token: float | str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal is '.' or ',', not {self.decimal!r}.")
        if self.counts not in (None, *CONVENTIONS):
            raise ValueError(f"counts is one of {', '.join(map(repr, CONVENTIONS))}, not {self.counts!r}.")
        if self.loss_unit is not None and not (isinstance(self.loss_unit, str) and self.loss_unit.strip()):
            raise ValueError(f"loss_unit is the unit of the loss in words ({NATS!r}), not {self.loss_unit!r}.")
        b = self.bytes_per_token
        if b is not None and not isinstance(b, str) and not (isinstance(b, int | float) and 0 < b < np.inf):
            raise ValueError(f"bytes_per_token is a positive number or the header of a column, not {b!r}.")
