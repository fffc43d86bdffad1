"""What a header says beyond its meaning: a unit (``params (M)``, ``tokens_B``) or what a size counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bayescale.runs.units import CONVENTIONS, NATS, UNITS, is_bytes, loss_unit_of, scale_of

_BRACKETS = re.compile(r"(.+?)[\s_]*[(\[]\s*(?:in )?([^()\[\]]+)[)\]]\s*")
_LOSS_PREFIX = re.compile(r"^(final|validation|val|eval|test|training|train|mean)*")
_CONVENTION_WORDS = {
    "non-embedding and head": ("nonembeddingandhead", "nonembeddingwithhead", "nonembeddinghead"),
    "non-embedding": (
        *("nonembedding", "nonembeddings", "nonemb", "noembedding", "noembeddings", "withoutembedding"),
        *("withoutembeddings", "excludingembeddings", "exclembeddings"),
    ),
    "total": ("total", "withembeddings", "includingembeddings", "inclembeddings", "all"),
    "active": ("active", "activated"),
}
if set(_CONVENTION_WORDS) != set(CONVENTIONS):
    raise AssertionError("every convention of a size has its words")


@dataclass(frozen=True)
class Head:
    """One column as recognised.

    Attributes
    ----------
    name, header : str
        Meaning, and the header that bears it.
    unit : str
        The unit that the cells are in, in words.
    scale : float
        How many plain units one of it is.
    counts : str
        What a size counts, of `CONVENTIONS`; empty where the header does not say.
    declared : bool
        Whether an argument or the header says the unit.
    """

    name: str
    header: str
    unit: str = ""
    scale: float = 1.0
    counts: str = ""
    declared: bool = False


def plain(header: str) -> str:
    """Case, spaces, underscores, hyphens, dots and slashes do not distinguish headers."""
    return re.sub(r"[\s_.\-/]+", "", header).casefold()


def head(name: str, header: str, known: Collection[str]) -> Head | None:
    """The header as this meaning, with all that it says; None where it does not name the meaning.

    ``known`` are the meaning's headers, in their plain form.
    """
    if name == "loss":
        return _loss_head(header, known)
    if plain(header) in known or name not in UNITS:
        return Head(name, header, UNITS.get(name, "")) if plain(header) in known else None
    for base, unit in [(header, ""), *_splits(header)]:
        scale = scale_of(name, unit) if unit else 1.0
        counts = _counts(base, known) if name == "n_params" else ""
        if scale and (counts or plain(base) in known):
            return Head(name, header, _in_words(name, unit), scale, counts, bool(unit))
    return None


def unit_of_header(name: str, header: str) -> Head:
    """A header that a person gave a meaning: what it says in brackets is its unit, if that is one."""
    said = _BRACKETS.fullmatch(header)
    if said and name == "loss" and loss_unit_of(said[2]):
        return Head(name, header, str(loss_unit_of(said[2])), declared=True)
    scale = scale_of(name, said[2]) if said and name in UNITS else None
    if said and scale:
        return Head(name, header, _in_words(name, said[2]), scale, declared=True)
    return Head(name, header, NATS if name == "loss" else UNITS.get(name, ""))


def _loss_head(header: str, known: Collection[str]) -> Head | None:
    if plain(header) in known:
        return Head("loss", header, NATS)
    alone = loss_unit_of(_LOSS_PREFIX.sub("", plain(header)))
    if (alone and alone.kind == "perplexity") or (alone and alone.per == "byte"):
        return Head("loss", header, str(alone), declared=True)
    for base, unit in _splits(header):
        found = loss_unit_of(unit)
        if found and plain(base) in known:
            return Head("loss", header, str(found), declared=True)
    return None


def _splits(header: str) -> Iterator[tuple[str, str]]:
    """The header cut into a name and a unit, in every way that people write it."""
    said = _BRACKETS.fullmatch(header)
    if said:
        yield said[1], said[2]
    words = [word for word in re.split(r"[\s_]+|(?<=[a-z])-", header) if word]
    for count in range(1, min(4, len(words))):
        yield " ".join(words[:-count]), " ".join(words[-count:]).removeprefix("in ")


def _counts(base: str, known: Collection[str]) -> str:
    bare = plain(base)
    for convention, words in _CONVENTION_WORDS.items():
        for word in words:
            if bare.removeprefix(word) in known and bare.startswith(word):
                return convention
            if bare.removesuffix(word) in known and bare.endswith(word):
                return convention
    return ""


def _in_words(name: str, unit: str) -> str:
    if is_bytes(unit):
        return unit
    if not unit or scale_of(name, unit) == 1:
        return UNITS[name]
    return unit if name == "flop" else f"{unit} {UNITS[name]}" if not unit.endswith(UNITS[name]) else unit
