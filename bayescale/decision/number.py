"""Numbers of a decision's settings: refused with the rule and the value where they break it."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any


def positive(of: str, value: Any, meaning: str = "") -> None:
    """Raise ValueError unless ``value`` is a positive, finite number."""
    if not _number(value) or not 0 < value < math.inf:
        raise ValueError(f"{of} is {meaning and f'{meaning}, '}a positive and finite number, not {value!r}.")


def probability(of: str, value: Any, meaning: str = "a probability", *, one: bool = False) -> None:
    """Raise ValueError unless ``value`` is above 0 and below 1, or at most 1 where ``one`` is allowed."""
    if not _number(value) or not 0 < value <= 1 or (value == 1 and not one):
        raise ValueError(f"{of} is {meaning}, above 0 and {'at most' if one else 'below'} 1, not {value!r}.")


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
