"""What training costs in each currency: accelerator-hours, dollars, kWh, kg CO2, days.

Every cost is proportional to the accelerator-hours, and these to the run's FLOPs, whichever FLOP rule counts
them. Arrays broadcast: draws are on the last axis, whatever is compared (sizes, budgets) on axes before it.
Of energy and carbon: Strubell et al. 2019 (arXiv 1906.02243), and the model cards of Llama 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayescale.decision.hardware import Hardware

Draws = Mapping[str, np.ndarray]


def training_hours(flop: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Accelerator-hours of a run of ``flop`` FLOPs: (1 + overhead) C / (3600 peak utilisation).

    Parameters
    ----------
    flop : array (..., 1) or (..., S)
        Training compute of the run itself, FLOPs.
    hardware : Hardware
    draws : mapping of str to array (S,)
        What `draw_all` makes of `Hardware.inputs`.

    Returns
    -------
    array (..., S), accelerator-hours
    """
    return np.asarray(flop, float) * (1 + draws["overhead"]) / (3600 * hardware.chip.peak * draws["utilisation"])


def dollars(hours: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Dollars for accelerator-hours: hours x price."""
    return hours * draws["price_per_hour"]


def kwh(hours: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Energy of accelerator-hours in kWh: hours x power x PUE."""
    assert hardware.chip.power is not None
    return hours * (hardware.chip.power / 1000) * draws["pue"]


def carbon_kg(hours: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Emissions of accelerator-hours in kg CO2: energy x the grid's intensity."""
    return kwh(hours, hardware, draws) * draws["carbon"]


def days(hours: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Days that accelerator-hours take on all accelerators at once."""
    return hours / (24 * draws["count"])


def accelerator_hours(hours: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Accelerator-hours as they are."""
    return hours


# Currency -> its cost of accelerator-hours, and what of the hardware it needs.
CURRENCIES: dict[str, tuple[Callable[[Any, Hardware, Draws], np.ndarray], tuple[str, ...]]] = {
    "accelerator_hours": (accelerator_hours, ()),
    "dollars": (dollars, ("price_per_hour",)),
    "kwh": (kwh, ("power",)),
    "carbon_kg": (carbon_kg, ("power", "carbon")),
    "days": (days, ("count",)),
}


def training_cost(currency: str, flop: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Cost of a run of ``flop`` FLOPs in one of `CURRENCIES`: array (..., S)."""
    return CURRENCIES[currency][0](training_hours(flop, hardware, draws), hardware, draws)
