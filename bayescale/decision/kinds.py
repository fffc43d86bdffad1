"""What the nouns of a decision may be made of, read from their annotations: the names that plain data uses.

A kind is an annotation: a number, a text, a noun, an abstract noun that stands for all below it, a list of
kinds, or a union. A noun that needs a function or an array cannot be written down and has no name here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from bayescale.decision.uncertain import Distribution

FITS = "bayescale.posterior."  # what was fitted is told by the path of its file
PLAIN: dict[Any, str] = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}


def word(noun: Any) -> str:
    """Name of a class in plain data: ``MeanDeviation`` is ``mean_deviation``, ``CVaR`` is ``cvar``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", noun.__name__).lower()


def fold(name: Any) -> str:
    """A name as it is compared: capitals, spaces, hyphens and underscores aside."""
    return re.sub(r"[\s_-]", "", str(name)).casefold()


def fields(noun: Any) -> dict[str, tuple[Any, bool]]:
    """Settings of a noun that can be written down, by name: its kind, and whether it has to be given."""
    if is_typeddict(noun):
        return {name: (kind, False) for name, kind in get_type_hints(noun).items()}
    return {name: (kind, needed) for name, (kind, needed) in _all_fields(noun).items() if _can_be_told(kind)}


def _all_fields(noun: Any) -> dict[str, tuple[Any, bool]]:
    hints = {**get_type_hints(noun), **get_type_hints(noun.__init__)}
    return {n: (hints[n], p.default is p.empty) for n, p in inspect.signature(noun).parameters.items()}


def _can_be_told(kind: Any) -> bool:
    told = (each in PLAIN or each is Distribution or bool(nouns(each)) or _is_container(each) for each in parts(kind))
    return any(told)


def _is_container(kind: Any) -> bool:
    return get_origin(kind) in (Sequence, Mapping, tuple)


def parts(kind: Any) -> Iterator[Any]:
    """The kinds that a union is made of."""
    if get_origin(kind) in (Union, UnionType):
        for part in get_args(kind):
            yield from parts(part)
    else:
        yield kind


def nouns(kind: Any) -> dict[str, Any]:
    """The nouns that a kind stands for, by their words: itself, or all below it where it is abstract."""
    if not isinstance(kind, type) or kind in PLAIN or kind in (Distribution, NoneType):
        return {}
    if kind.__module__.startswith(FITS):
        return {}
    if not inspect.isabstract(kind):
        return {word(kind): kind} if kind.__module__.startswith("bayescale.") else {}
    found = {word(noun): noun for noun in sorted(kind.__subclasses__(), key=word)}
    return {name: noun for name, noun in found.items() if _is_whole(noun)}


def _is_whole(noun: Any) -> bool:
    return all(_can_be_told(kind) for kind, needed in _all_fields(noun).values() if needed)


def by_name(kind: Any) -> dict[str, Any]:
    """The nouns of a kind that are told by their word; one concrete noun, alone, needs none."""
    found = [each for each in parts(kind) if nouns(each)]
    return {
        name: noun for each in found if len(found) > 1 or inspect.isabstract(each) for name, noun in nouns(each).items()
    }


def alone(kind: Any) -> Any:
    """The one concrete noun of a kind, or None."""
    found = [each for each in parts(kind) if nouns(each)]
    return found[0] if len(found) == 1 and not inspect.isabstract(found[0]) else None
