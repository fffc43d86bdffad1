"""Accelerators, and what an hour of one is worth: speed, price, power.

Peaks are of dense matrices. Data sheets that print the rate of sparse ones print twice as much (1,979 for
989 TFLOP/s of an H100).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

from bayescale.decision.uncertain import Input, Uncertain, describe, is_certain, read_inputs

_NVIDIA, _GOOGLE = "NVIDIA data sheet", "Google Cloud TPU documentation"

INPUTS = {
    "count": Input("size of the cluster", "accelerators"),
    "utilisation": Input(
        "share of the dense 16-bit peak that the run keeps busy",
        high=1.0,
        is_share=True,
        advice="Write 0.4 or '40%' for 40 %; training reaches 0.3 to 0.55.",
    ),
    "price_per_hour": Input("price of an accelerator-hour", "dollars per hour"),
    "pue": Input("energy of the site over the accelerators' own", low=1.0, has_low=True, advice="Usual: 1.1 to 1.2."),
    "carbon": Input("emissions of the grid", "kg CO2 per kWh", has_low=True),
    "overhead": Input("extra compute as a share of the run's own", has_low=True, is_share=True),
}


@final
@dataclass(frozen=True)
class Accelerator:
    """One chip as its vendor describes it.

    Attributes
    ----------
    name : str
    peak : float
        Dense 16-bit matrix rate, FLOP/s.
    peak_8bit : float, optional
        Dense 8-bit matrix rate, FLOP/s; None where there is none.
    memory : float, optional
        Bytes that a program can use (decimal: 80 GB is 80e9).
    bandwidth : float, optional
        Of that memory, bytes/s.
    power : float, optional
        Watts at full load; None where the vendor gives none.
    source : str
        Where the figures come from.

    Raises
    ------
    ValueError
        If a figure is not a positive, finite number.
    """

    name: str
    peak: float
    peak_8bit: float | None = None
    memory: float | None = None
    bandwidth: float | None = None
    power: float | None = None
    source: str = "the user"

    def __post_init__(self) -> None:
        figures = {f: getattr(self, f) for f in ("peak", "peak_8bit", "memory", "bandwidth", "power")}
        wrong = [
            f"Accelerator({name}): a positive number, not {value!r}"
            for name, value in figures.items()
            if not _is_positive(value) and (value is not None or name == "peak")
        ]
        if wrong:
            raise ValueError("\n".join(wrong))

    def rate(self, bits: int) -> float:
        """Dense matrix rate in 16 or 8 bits, FLOP/s; ValueError where it is not known."""
        rate = self.peak_8bit if bits == 8 else self.peak
        if rate is None:
            raise ValueError(f"Arithmetic in {bits} bits needs Accelerator(peak_8bit=...) of {self.name}.")
        return rate


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf


_KNOWN = {
    chip.name: chip
    for chip in (
        Accelerator("A100-40GB", 312e12, 624e12, 40e9, 1.555e12, 400, f"{_NVIDIA}, A100 SXM4 40 GB"),
        Accelerator("A100-80GB", 312e12, 624e12, 80e9, 2.039e12, 400, f"{_NVIDIA}, A100 SXM4 80 GB"),
        Accelerator("H100 SXM", 989.4e12, 1978.9e12, 80e9, 3.35e12, 700, f"{_NVIDIA}, H100 SXM5; half the sparse rate"),
        Accelerator("H100 PCIe", 756e12, 1513e12, 80e9, 2.0e12, 350, f"{_NVIDIA}, H100 PCIe; half the sparse rate"),
        Accelerator("H200", 989e12, 1979e12, 141e9, 4.8e12, 700, f"{_NVIDIA}, H200 SXM; half the sparse rate"),
        Accelerator(
            "B200", 2250e12, 4500e12, 180e9, 8e12, 1000, f"{_NVIDIA}, HGX B200: 180 GB of its 192 GB are usable"
        ),
        Accelerator("GB200", 2500e12, 5000e12, 186e9, 8e12, 1200, f"{_NVIDIA}, GB200 NVL72: half of a superchip"),
        Accelerator("MI300X", 1307.4e12, 2614.9e12, 192e9, 5.3e12, 750, "AMD data sheet, Instinct MI300X"),
        Accelerator("TPU v4", 275e12, 275e12, 32e9, 1.2e12, None, f"{_GOOGLE}, v4, a chip"),
        Accelerator("TPU v5e", 197e12, 393e12, 16e9, 0.819e12, None, f"{_GOOGLE}, v5e, a chip"),
        Accelerator("TPU v5p", 459e12, 918e12, 95e9, 2.765e12, None, f"{_GOOGLE}, v5p, a chip"),
        Accelerator("TPU v6e", 918e12, 1836e12, 32e9, 1.6e12, None, f"{_GOOGLE}, v6e, a chip"),
    )
}


def accelerators() -> list[str]:
    """Names of the accelerators whose figures are known here."""
    return list(_KNOWN)


def accelerator(name: str) -> Accelerator:
    """The accelerator of a name, capitals aside.

    Raises
    ------
    ValueError
        If none has that name; the known ones are listed.
    """
    by_name = {known.casefold(): chip for known, chip in _KNOWN.items()}
    if not isinstance(name, str) or name.casefold() not in by_name:
        raise ValueError(
            f"No accelerator is called {name!r}; known: {', '.join(_KNOWN)}. "
            "Of another one, give Accelerator(name, peak=...) with its dense 16-bit FLOP/s."
        )
    return by_name[name.casefold()]


@final
@dataclass(frozen=True)
class Hardware:
    """Accelerators at work. What is left out is not known, and only what needs it asks for it.

    Every field but the accelerator is a number or a distribution (`uncertain`).

    Attributes
    ----------
    accelerator : Accelerator or str
        One of `accelerators()` by its name, or an own one.
    count : optional
        How many work at once.
    utilisation : optional
        Useful training FLOPs over the dense 16-bit peak, also where some are done in 8 bits ('40%' is 0.4).
    price_per_hour : optional
        Dollars per accelerator-hour.
    pue : default 1
        Energy of the site over that of the accelerators; 1 where ``power`` holds it already.
    carbon : optional
        kg CO2 per kWh.
    overhead : default 0
        Compute beyond the run's own, as a share of it: crashes, pilots, data preparation (0.1 is 10 % more).

    Raises
    ------
    ValueError
        If a value breaks the rule of its field, or can as drawn; all that do are named.
    """

    accelerator: Accelerator | str
    count: Uncertain | None = None
    utilisation: Uncertain | str | None = None
    price_per_hour: Uncertain | None = None
    pue: Uncertain = 1.0
    carbon: Uncertain | None = None
    overhead: Uncertain | str = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.accelerator, Accelerator):
            object.__setattr__(self, "accelerator", accelerator(self.accelerator))
        for name, value in read_inputs("Hardware", INPUTS, self.inputs()).items():
            object.__setattr__(self, name, value)

    @property
    def chip(self) -> Accelerator:
        """The accelerator, never its name."""
        assert isinstance(self.accelerator, Accelerator)
        return self.accelerator

    def inputs(self) -> dict[str, Any]:
        """What is known, by the name under which it is drawn."""
        return {name: getattr(self, name) for name in INPUTS if getattr(self, name) is not None}

    def require(self, purpose: str, *names: str) -> None:
        """Refuse a purpose that needs what is not known: of the fields and the accelerator's figures.

        Raises
        ------
        ValueError
            If any is missing; all that are, are named.
        """
        missing = [name for name in names if name in INPUTS and getattr(self, name) is None]
        figures = [name for name in names if name not in INPUTS and getattr(self.chip, name) is None]
        said = [f"Hardware({name}=...), the {INPUTS[name].meaning}" for name in missing]
        said += [f"Accelerator({name}=...) of {self.chip.name}, for which no figure is known here" for name in figures]
        if said:
            raise ValueError(f"{purpose} needs {'; and '.join(said)}.")

    def describe(self) -> dict[str, str]:
        """Each input in words, by its name."""
        return {name: describe(value, INPUTS[name].unit) for name, value in self.inputs().items()}

    def to_dict(self) -> dict[str, Any]:
        """The accelerator's figures, and each input as its number, or in words where it is a distribution."""
        known: Mapping[str, Uncertain] = self.inputs()
        said = {name: value if is_certain(value) else describe(value) for name, value in known.items()}
        return {"accelerator": dataclasses.asdict(self.chip), **said}
