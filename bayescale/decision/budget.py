"""A budget in the currency it was given in, as the training compute that it affords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from bayescale.decision.cost import Draws, training_cost, training_inputs
from bayescale.decision.hardware import Hardware
from bayescale.decision.uncertain import draw_all, is_certain
from bayescale.frontier.budgets import read_number

SMALLEST = 6.0  # FLOPs of one parameter on one token
FORM = (
    "A budget is one positive, finite number in one currency, such as Budget(flop=1e24) or "
    "Budget(dollars=2e6, hardware=Hardware('H100 SXM', utilisation=0.4, price_per_hour=2))."
)
UNITS = {
    "flop": "FLOP",
    "accelerator_hours": "accelerator-hours",
    "dollars": "dollars",
    "kwh": "kWh",
    "days": "days",
    "carbon_kg": "kg CO2",
}


@final
@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """What may be spent on training, in one currency.

    Parameters
    ----------
    flop : number
        Training compute of the run itself, FLOPs: exact, whatever the hardware; ``overhead`` comes on top.
    accelerator_hours, dollars, kwh : number
        All that may be spent on them, overhead included.
    days : number
        Days of all accelerators of ``hardware`` at once (``count``), overhead included.
    hardware : Hardware, optional
        Needed in every currency but FLOPs.
    certainty : float
        Probability with which the compute must be affordable, where the hardware is uncertain.

    Attributes
    ----------
    amount : float
        In the currency.
    currency : str
        The name of the argument it was given by.

    Raises
    ------
    ValueError
        If it is given in no or in several currencies, is not such a number, lacks what the currency needs, or
        the certainty is not between 0 and 1.
    """

    amount: float
    currency: str
    hardware: Hardware | None
    certainty: float

    def __init__(
        self,
        *,
        flop: float | None = None,
        accelerator_hours: float | None = None,
        dollars: float | None = None,
        kwh: float | None = None,
        days: float | None = None,
        hardware: Hardware | None = None,
        certainty: float = 0.5,
    ) -> None:
        amounts = {
            "flop": flop,
            "accelerator_hours": accelerator_hours,
            "dollars": dollars,
            "kwh": kwh,
            "days": days,
        }
        currency, amount = _only(amounts)
        _require(currency, hardware)
        if isinstance(certainty, bool) or not isinstance(certainty, int | float) or not 0 < certainty < 1:
            raise ValueError(f"Budget(certainty): a probability above 0 and below 1, not {certainty!r}.")
        object.__setattr__(self, "amount", amount)
        object.__setattr__(self, "currency", currency)
        object.__setattr__(self, "hardware", hardware)
        object.__setattr__(self, "certainty", float(certainty))

    def __repr__(self) -> str:
        return f"Budget({self.currency}={self.amount!r}, hardware={self.hardware!r}, certainty={self.certainty!r})"

    def inputs(self) -> dict[str, Any]:
        """What the budget's compute depends on, by the name under which it is drawn; nothing, of one in FLOPs."""
        return {} if self.hardware is None or self.currency == "flop" else training_inputs(self.currency, self.hardware)

    def affordable(self, draws: Draws) -> np.ndarray:
        """Training compute that the budget affords in each draw of `inputs`, FLOPs: array (S,), or () of FLOPs."""
        if self.hardware is None or self.currency == "flop":
            return np.array(self.amount)
        return self.amount / training_cost(self.currency, 1.0, self.hardware, draws)

    def flop(self, *, seed: int = 0, n: int = 4000) -> float:
        """Training compute that the budget affords with probability ``certainty``, FLOPs.

        It is the quantile 1 - certainty of the compute over ``n`` draws of the uncertain inputs (`draws`);
        exact where none is uncertain.

        Raises
        ------
        ValueError
            If it is less than one parameter on one token costs.
        """
        flop = float(np.quantile(self.affordable(draw_all(self.inputs(), n, seed)), 1 - self.certainty))
        if flop < SMALLEST:
            raise ValueError(f"{self} affords {flop:.3g} FLOP; one parameter on one token costs {SMALLEST:g} FLOP.")
        return flop

    def describe(self) -> str:
        """The budget in words, with the probability of affording its compute where that is uncertain."""
        words = f"{self.amount:.6g} {UNITS[self.currency]}"
        if all(map(is_certain, self.inputs().values())):
            return words
        return f"{words}, its compute affordable with probability {self.certainty:g}"

    def to_dict(self) -> dict[str, Any]:
        """The amount under its currency, the hardware and the certainty: JSON-safe."""
        hardware = None if self.hardware is None else self.hardware.to_dict()
        return {self.currency: self.amount, "hardware": hardware, "certainty": self.certainty}


def _only(amounts: dict[str, Any]) -> tuple[str, float]:
    """The one currency that is given and its amount."""
    given = {name: value for name, value in amounts.items() if value is not None}
    if len(given) != 1:
        said = f"in several: {', '.join(f'{k}={v!r}' for k, v in given.items())}" if given else "in none"
        raise ValueError(f"A budget is given in exactly one of {', '.join(amounts)}; this one {said}. {FORM}")
    ((currency, entry),) = given.items()
    amount = "is text; write the number without quotes" if isinstance(entry, str) else read_number(entry)
    if not isinstance(amount, str) and currency == "flop" and amount < SMALLEST:
        amount = f"is less than one parameter on one token costs, {SMALLEST:g} FLOP"
    if isinstance(amount, str):
        raise ValueError(f"Not a budget: {currency}={entry!r} {amount}. {FORM}")
    return currency, amount


def _require(currency: str, hardware: Hardware | None) -> None:
    if hardware is not None and not isinstance(hardware, Hardware):
        raise ValueError(f"Budget(hardware): a Hardware, not {hardware!r}. {FORM}")
    if currency == "flop":
        return
    if hardware is None:
        raise ValueError(f"A budget in {UNITS[currency]} needs hardware, whose speed makes it FLOPs. {FORM}")
    training_inputs(currency, hardware)
