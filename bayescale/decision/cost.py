"""What training and inference cost in each currency: accelerator-hours, dollars, kWh, kg CO2, days.

Every cost is proportional to accelerator-hours, and these to FLOPs, whichever FLOP rule counts those of a run.
Arrays broadcast: draws are on the last axis, whatever is compared (sizes, budgets) on axes before it. Of energy
and carbon: Strubell et al. 2019 (arXiv 1906.02243), and the model cards of Llama 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from bayescale.decision.hardware import INPUTS, Hardware
from bayescale.decision.memory import FAMILY, Family, attention_flop
from bayescale.decision.uncertain import Input, Uncertain, describe, read_inputs

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
    per_flop = (1 + draws["overhead"]) / (3600 * hardware.chip.peak * draws["utilisation"])
    return np.asarray(flop, float) * per_flop


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
    "kwh": (kwh, ("power", "pue")),
    "carbon_kg": (carbon_kg, ("power", "pue", "carbon")),
    "days": (days, ("count",)),
}


def training_inputs(currency: str, hardware: Hardware) -> dict[str, Uncertain]:
    """Inputs that a training cost in one of `CURRENCIES` depends on, by name.

    Raises
    ------
    ValueError
        If one of them is not known.
    """
    needs = ("utilisation", "overhead", *CURRENCIES[currency][1])
    hardware.require(f"Training in {currency}", *needs)
    return {name: value for name, value in hardware.inputs().items() if name in needs}


def training_cost(currency: str, flop: Any, hardware: Hardware, draws: Draws) -> np.ndarray:
    """Cost of a run of ``flop`` FLOPs in one of `CURRENCIES`: array (..., S)."""
    per_flop = CURRENCIES[currency][0](training_hours(1.0, hardware, draws), hardware, draws)
    return np.asarray(flop, float) * per_flop


_SHARE = "Write 0.4 or '40%' for 40 %."
DEMAND = {
    "tokens_in": Input("tokens read", "tokens", has_low=True),
    "tokens_out": Input("tokens written", "tokens", has_low=True),
    "requests": Input("requests served", "requests", has_low=True),
    "context": Input("tokens that a token attends to", "tokens", has_low=True),
    "prefill_utilisation": Input("share of the peak while reading", high=1.0, is_share=True, advice=_SHARE),
    "decode_utilisation": Input("share of the peak while writing", high=1.0, is_share=True, advice=_SHARE),
}


@final
@dataclass(frozen=True)
class Inference:
    """Demand over a model's life, and how it is served. Each number may be a distribution (`uncertain`).

    Attributes
    ----------
    tokens_in, tokens_out : default 0
        Tokens read (prefill) and written (decode) of a request; in all where ``requests`` is left out.
    requests : default 1
    prefill_utilisation, decode_utilisation : optional
        Useful FLOPs over the peak; what is counted in FLOPs alone needs neither. Sardana et al. take 0.5 and 0.01.
    hardware : Hardware, optional
        That serves; the one that trains unless given. Of it the accelerator, price, PUE and carbon are read.
    bits : int
        16, or 8 for arithmetic at the accelerator's 8-bit peak, of which the utilisations then are shares.
    context : default 0
        Tokens that a token attends to on average; 0 leaves the FLOPs of attention out.
    family : Family
        Shape by size, for those FLOPs.

    Raises
    ------
    ValueError
        If a value breaks its rule, or the accelerator has no 8-bit peak.
    """

    tokens_in: Uncertain = 0.0
    tokens_out: Uncertain = 0.0
    requests: Uncertain = 1.0
    prefill_utilisation: Uncertain | str | None = None
    decode_utilisation: Uncertain | str | None = None
    hardware: Hardware | None = None
    bits: int = 16
    context: Uncertain = 0.0
    family: Family = FAMILY

    def __post_init__(self) -> None:
        known = {name: getattr(self, name) for name in DEMAND if getattr(self, name) is not None}
        for name, value in read_inputs("Inference", DEMAND, known).items():
            object.__setattr__(self, name, value)
        if self.bits not in (8, 16):
            raise ValueError(f"Inference(bits): 16 or 8, not {self.bits!r}.")

    def phases(self) -> list[tuple[str, str]]:
        """Names of tokens and of their utilisation, of the phases in which there may be any tokens."""
        both = [("tokens_in", "prefill_utilisation"), ("tokens_out", "decode_utilisation")]
        return [(tokens, utilisation) for tokens, utilisation in both if getattr(self, tokens) != 0]

    def inputs(self, is_timed: bool) -> dict[str, Uncertain]:
        """What the demand depends on, by name; utilisations only where it is timed."""
        phases = self.phases()
        names = {"requests", *(tokens for tokens, _ in phases), *(["context"] if self.context != 0 else [])}
        names |= {utilisation for _, utilisation in phases if is_timed}
        missing = sorted(name for name in names if getattr(self, name) is None)
        if missing:
            raise ValueError(f"The cost of inference needs {', '.join(f'Inference({name}=...)' for name in missing)}.")
        return {name: getattr(self, name) for name in DEMAND if name in names}

    def flop_per_token(self, size: Any, draws: Draws) -> Any:
        """2 N + 4 layers width context, FLOPs: array (..., S), or as ``size`` where no token attends to any."""
        size = np.asarray(size, float)
        if self.context == 0:
            return 2 * size
        return 2 * size + attention_flop(self.family.shape(size), draws["context"])


@final
@dataclass(frozen=True)
class LifetimeCost:
    """Training and then inference, in one currency (Sardana et al. 2024, arXiv 2401.00448).

    In FLOPs: C + 2 N T. In any other: hours of both times their rates,
    C (1 + overhead) c / (peak u) + 2 N requests c' / peak' (T_in / u_in + T_out / u_out).

    Attributes
    ----------
    currency : str
        ``flop`` or one of `CURRENCIES`; ``days`` of training only.
    hardware : Hardware, optional
        That trains; not needed in FLOPs.
    inference : Inference, optional
        What follows; nothing unless given.

    Raises
    ------
    ValueError
        If the currency is unknown, or something that it needs is not known.
    """

    currency: str
    hardware: Hardware | None = None
    inference: Inference | None = None

    def __post_init__(self) -> None:
        if self.currency not in ("flop", *CURRENCIES):
            raise ValueError(f"A cost is in one of flop, {', '.join(CURRENCIES)}, not {self.currency!r}.")
        if self.currency == "days" and self.inference is not None:
            raise ValueError("Days are those of training: inference goes on as long as there is demand. Leave it out.")
        if self.currency != "flop" and self.hardware is None:
            raise ValueError(f"A cost in {self.currency} needs hardware, as Hardware('H100 SXM', utilisation=0.4).")
        self.inputs()

    @property
    def serving(self) -> Hardware | None:
        """The hardware that serves, where it is another than the one that trains."""
        served = self.inference and self.inference.hardware
        return served if served is not None and served != self.hardware else None

    def inputs(self) -> dict[str, Uncertain]:
        """What the cost depends on, by name; of other hardware that serves, the names begin with ``inference_``."""
        if self.hardware is None or self.currency == "flop":
            return self.inference.inputs(is_timed=False) if self.inference else {}
        known = training_inputs(self.currency, self.hardware)
        if self.inference is None:
            return known
        chosen, needs = self.serving or self.hardware, CURRENCIES[self.currency][1]
        chosen.require(f"Inference in {self.currency}", *needs)
        chosen.chip.rate(self.inference.bits)
        other = {f"inference_{k}": v for k, v in chosen.inputs().items() if self.serving and k in needs}
        return {**known, **self.inference.inputs(is_timed=True), **other}

    def of(self, size: Any, tokens: Any, training_flop: Any, draws: Draws) -> np.ndarray:
        """Cost of training a model and of its inference.

        Parameters
        ----------
        size : array (..., 1) or (..., S)
            Parameters that a token meets.
        tokens : array (..., 1) or (..., S)
            Training tokens; their cost is within ``training_flop``.
        training_flop : array (..., 1) or (..., S)
            FLOPs of the training run, by the FLOP rule in use.
        draws : mapping of str to array (S,)
            What `draw_all` makes of `inputs`.

        Returns
        -------
        array (..., S), in the currency; (..., 1) where nothing depends on a draw
        """
        if self.hardware is None or self.currency == "flop":
            training = np.asarray(training_flop, float)
        else:
            training = training_cost(self.currency, training_flop, self.hardware, draws)
        if self.inference is None:
            return training
        return training + self.inference.flop_per_token(size, draws) * self._per_flop(self.inference, draws)

    def _per_flop(self, inference: Inference, draws: Draws) -> Any:
        """Cost of all served tokens if each took one FLOP: (S,)."""
        phases = inference.phases()
        if self.hardware is None or self.currency == "flop":
            return draws["requests"] * sum(draws[tokens] for tokens, _ in phases)
        served = self.serving or self.hardware
        busy = draws["requests"] * sum(draws[tokens] / draws[share] for tokens, share in phases)
        hours = busy / (3600 * served.chip.rate(inference.bits))
        own = {k.removeprefix("inference_"): v for k, v in draws.items() if k.startswith("inference_")}
        return CURRENCIES[self.currency][0](hours, served, own if self.serving else draws)

    def describe(self) -> dict[str, str]:
        """Each input in words, by its name."""
        rules = {**INPUTS, **DEMAND}
        return {name: describe(v, rules[name.removeprefix("inference_")].unit) for name, v in self.inputs().items()}
