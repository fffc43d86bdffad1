"""Constraints of the machines on which a model is trained and served: memory, and the speed of decoding."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

from bayescale.decision.constraint import Constraint, Ends
from bayescale.decision.hardware import Accelerator, accelerator
from bayescale.decision.memory import InferenceMemory, TrainingMemory
from bayescale.decision.number import positive
from bayescale.decision.outlook import Outlook


@final
@dataclass(frozen=True)
class Memory(Constraint):
    """What has to fit into the memory of each accelerator.

    Attributes
    ----------
    of : TrainingMemory or InferenceMemory
        What is kept there, by size.
    accelerator : Accelerator or str
        Whose memory it is.
    share : float
        Of that memory, what may be filled.

    Raises
    ------
    ValueError
        If the accelerator's memory is not known, or ``share`` is not above 0.
    """

    of: TrainingMemory | InferenceMemory
    accelerator: Accelerator | str
    share: float = 1.0
    limit: ClassVar[str] = "share"

    def __post_init__(self) -> None:
        positive("Memory(share)", self.share, "the share of the memory that may be filled")
        if self.chip.memory is None:
            raise ValueError(f"Memory needs Accelerator(memory=...) of {self.chip.name}, in bytes.")

    @property
    def chip(self) -> Accelerator:
        """The accelerator, never its name."""
        return self.accelerator if isinstance(self.accelerator, Accelerator) else accelerator(self.accelerator)

    @property
    def bytes(self) -> float:
        """What may be filled."""
        return self.share * float(self.chip.memory or 0.0)

    def sizes(self, outlook: Outlook) -> Ends:
        return 0.0, largest(lambda size: self.of.of(size) <= self.bytes, outlook)

    def __str__(self) -> str:
        what = "training" if isinstance(self.of, TrainingMemory) else "serving"
        return f"{what} in {self.bytes / 1e9:.4g} GB of each {self.chip.name}"


@final
@dataclass(frozen=True)
class Speed(Constraint):
    """Decoding of at least ``tokens_per_second`` tokens a second for each sequence, as bandwidth allows.

    Attributes
    ----------
    tokens_per_second : float
        The limit.
    of : InferenceMemory
        What each step reads.
    accelerator : Accelerator or str
        Whose bandwidth it is.

    Raises
    ------
    ValueError
        If ``tokens_per_second`` is not positive, or the accelerator's bandwidth is not known.
    """

    tokens_per_second: float
    of: InferenceMemory
    accelerator: Accelerator | str
    limit: ClassVar[str] = "tokens_per_second"

    def __post_init__(self) -> None:
        positive("Speed(tokens_per_second)", self.tokens_per_second, "tokens a second of a sequence")
        self._speed(1.0)

    def _speed(self, size: float) -> float:
        chip = self.accelerator if isinstance(self.accelerator, Accelerator) else accelerator(self.accelerator)
        return float(self.of.tokens_per_second(size, chip))

    def sizes(self, outlook: Outlook) -> Ends:
        return 0.0, largest(lambda size: self._speed(size) >= self.tokens_per_second, outlook)

    def relaxed(self, factor: float) -> Constraint:
        return dataclasses.replace(self, tokens_per_second=self.tokens_per_second / factor)

    def __str__(self) -> str:
        return f"decoding of at least {self.tokens_per_second:.4g} tokens a second for each sequence"


def largest(fits: Callable[[float], bool], outlook: Outlook) -> float:
    """The largest size of the law's domain that fits, where a smaller one fits as well; 0 where none does."""
    low, high = (math.log(max(1.0, end)) for end in outlook.law.domain[outlook.law.size])
    if not fits(math.exp(low)):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(math.exp(middle)) else (low, middle)
    return math.exp(low)
