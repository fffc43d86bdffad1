"""Units and conventions of the columns of a table, and how one becomes the other.

Each currency is converted here, once: counts to plain counts, compute to FLOPs, losses to one unit.
Nothing is converted that was not declared, by an argument or in a header.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

NATS = "nats per token"
UNITS = {"n_params": "parameters", "n_tokens": "tokens", "flop": "FLOPs"}
PF_DAY = 8.64e19  # a petaFLOP a second for a day, the unit of Kaplan et al. 2020 (arXiv 2001.08361)

_COUNTS = {
    1e3: ("k", "thousand", "thousands"),
    1e6: ("m", "mn", "million", "millions"),
    1e9: ("b", "bn", "billion", "billions"),
    1e12: ("t", "tn", "trillion", "trillions"),
}
_FLOPS = {1e3: "k", 1e6: "m", 1e9: "g", 1e12: "t", 1e15: "p", 1e18: "e", 1e21: "z", 1e24: "y"}
# A text of so many bytes: its tokens are known once the bytes of a token are.
_BYTES = {"byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
COUNT_WORDS = {word: scale for scale, words in _COUNTS.items() for word in words}
FLOP_WORDS = {
    "flop": 1.0,
    "flops": 1.0,
    **{f"{letter}flop{s}": scale for scale, letter in _FLOPS.items() for s in ("", "s")},
    **dict.fromkeys(("pfdays", "pfday", "pfsdays", "petaflop/sdays", "petaflopsdays"), PF_DAY),
}
_POWER = re.compile(r"[x×*]?(?:1e|10\^|10\*\*)\+?([0-9]{1,2})")

# What a count of parameters holds: of the whole model; without the matrices of tokens and positions; without
# those but with the head (Porian et al. 2024, arXiv 2406.19146); of the experts that one token meets.
CONVENTIONS = ("total", "non-embedding", "non-embedding and head", "active")


def is_bytes(unit: str) -> bool:
    """Whether tokens in this unit are counted by the bytes of their text (``bytes``, ``GB``)."""
    return _plain(unit) in _BYTES


def _plain(unit: str) -> str:
    return re.sub(r"[\s_\-]+", "", unit).casefold()


def scale_of(name: str, unit: str) -> float | None:
    """How many plain ones one of a unit is (``M``, ``billions``, ``1e9``, ``PFLOP``); None if it is unknown.

    Of tokens in bytes (``GB``) it is how many bytes.
    """
    word = _plain(unit)
    if name == "n_tokens" and word in _BYTES:
        return _BYTES[word]
    power = _POWER.fullmatch(word)
    if power:
        return 10.0 ** int(power[1])
    if name == "flop":
        return FLOP_WORDS.get(word)
    own = UNITS[name].removesuffix("s") if name in UNITS else None
    if own is None:
        return None
    word = re.sub(rf"(of)?({own}s?|params?)$", "", word)
    return 1.0 if not word else COUNT_WORDS.get(word)


@final
@dataclass(frozen=True)
class LossUnit:
    """What a loss is counted in, and over what: ``bits per byte`` is ``LossUnit("bits", "byte")``.

    ``kind`` is ``nats``, ``bits`` or ``perplexity`` (the exponential of nats), ``per`` is ``token`` or ``byte``.
    """

    kind: str
    per: str = "token"

    def __str__(self) -> str:
        return self.kind if self.kind == "perplexity" else f"{self.kind} per {self.per}"

    def to_nats(self, value: Any) -> Any:
        """The loss in nats, over the same thing; what is no perplexity, being not positive, stays as it is."""
        if self.kind != "perplexity":
            return value * (math.log(2) if self.kind == "bits" else 1.0)
        return np.where(value > 0, np.log(np.where(value > 0, value, 1.0)), value)

    def from_nats(self, value: Any) -> Any:
        """The loss in this unit, of nats over the same thing."""
        return np.exp(value) if self.kind == "perplexity" else value / (math.log(2) if self.kind == "bits" else 1.0)

    def convert(self, value: Any, to: LossUnit, bytes_per_token: Any = None) -> Any:
        """The loss in another unit; ``bytes_per_token`` where one is over tokens and the other over bytes.

        Raises
        ------
        ValueError
            If bytes per token are needed and not given.
        """
        nats = self.to_nats(value)
        if self.per != to.per:
            if bytes_per_token is None:
                raise ValueError(f"From {self} to {to} needs the bytes per token of the tokenizer (bytes_per_token=).")
            nats = nats / bytes_per_token if to.per == "byte" else nats * bytes_per_token
        return to.from_nats(nats)


_KNOWN = (*(LossUnit(kind, per) for kind in ("nats", "bits") for per in ("token", "byte")), LossUnit("perplexity"))
LOSS_UNITS = {str(unit): unit for unit in _KNOWN}
_LOSS_WORDS = {
    **{name.replace(" ", ""): unit for name, unit in LOSS_UNITS.items()},
    **{name.replace(" per ", "/"): unit for name, unit in LOSS_UNITS.items()},
    "nats": LossUnit("nats"),
    "bits": LossUnit("bits"),
    "ppl": LossUnit("perplexity"),
    "bpb": LossUnit("bits", "byte"),
}


def loss_unit_of(word: str) -> LossUnit | None:
    """The unit of a loss by its name (``bits per byte``, ``bits/token``, ``ppl``); None if unknown."""
    return _LOSS_WORDS.get(_plain(word))


def error_of_conversion(
    values: np.ndarray, se: np.ndarray, start: LossUnit, end: LossUnit, bytes_per_token: Any = None
) -> np.ndarray:
    """Standard errors of losses in another unit, by the slope of the conversion."""
    slope = 1e-6
    low, high = (start.convert(values * (1 + step), end, bytes_per_token) for step in (-slope, slope))
    return se * np.abs(high - low) / (2 * slope * values)


def probable_unit(name: str, ratio: float) -> str:
    """The unit that a column is probably in, where it is ``ratio`` times what it should be; '' where none is near."""
    words: Mapping[float, str]
    if name == "flop":
        words = {1 / scale: f"{letter.upper()}FLOP" for scale, letter in _FLOPS.items()} | {1 / PF_DAY: "PF-days"}
    else:
        words = {1 / scale: names[-1] for scale, names in _COUNTS.items()}
    near = {word: abs(math.log(ratio / scale)) for scale, word in words.items()}
    best = min(near, key=lambda word: near[word])
    return best if near[best] < math.log(2) else ""
