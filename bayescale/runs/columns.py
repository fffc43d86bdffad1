"""Which column of a table means what: by a mapping, or by the names that people use.

A header with a unit in it (``params (M)``) is none of these names, so a table in millions is never
read as one in parameters.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Meaning:
    """What a column may mean: canonical name, the thing with its unit, and the headers known.

    ``if_unique`` are headers that are taken only where each row has its own value: a column
    ``model`` may name the runs, or a family of them.
    """

    name: str
    thing: str
    headers: tuple[str, ...]
    if_unique: tuple[str, ...] = ()


MEANINGS = (
    Meaning("run", "the run's name", ("run id", "run name", "id"), ("name", "model name", "model")),
    Meaning(
        "n_params",
        "the model size, in parameters",
        (
            *("N", "params", "parameters", "num params", "num parameters", "n parameters", "param count"),
            *("parameter count", "model params", "model parameters", "model size", "size"),
        ),
    ),
    Meaning(
        "n_tokens",
        "the tokens seen in training",
        ("D", "tokens", "num tokens", "token count", "train tokens", "training tokens", "tokens seen", "total tokens"),
    ),
    Meaning(
        "flop",
        "the training compute, in FLOPs",
        (
            *("C", "flops", "num flops", "total flop", "total flops", "train flop", "train flops", "training flop"),
            *("training flops", "compute", "train compute", "training compute", "training compute (FLOP)"),
        ),
    ),
    Meaning(
        "loss",
        "the loss of the finished run",
        (
            *("L", "final loss", "val loss", "validation loss", "final val loss", "final validation loss"),
            *("eval loss", "test loss", "train loss", "training loss", "nll", "cross entropy", "cross entropy loss"),
        ),
    ),
    Meaning(
        "loss_se",
        "the standard error of the loss",
        ("se loss", "loss stderr", "loss std err", "loss standard error", "stderr loss", "standard error of the loss"),
    ),
)
NAMES = tuple(meaning.name for meaning in MEANINGS)
THINGS = {meaning.name: meaning.thing for meaning in MEANINGS}
SIZES = ("n_params", "n_tokens", "flop")  # N, D and C: two of them settle the third


def recognise(frame: pd.DataFrame, mapping: Mapping[str, str], source: str) -> dict[str, str]:
    """Headers by meaning: those of ``mapping``, and the known names among the others.

    Raises
    ------
    ValueError
        If the mapping is wrong, several headers mean the same, or a needed meaning has none; one
        message with all of it.
    """
    wrong = _mapping_errors(list(frame.columns), mapping)
    found = {name: mapping[name] for name in NAMES if name in mapping}
    free = [header for header in frame.columns if header not in mapping.values()]
    for meaning in MEANINGS:
        if meaning.name in mapping:
            continue
        headers = _matches(meaning, free) or [h for h in _named(meaning.if_unique, free) if frame[h].is_unique][:1]
        if len(headers) > 1:
            wrong.append(
                f"Several columns may be {meaning.thing}: {_quoted(headers)}. "
                f"Say which: columns={{{meaning.name!r}: {headers[0]!r}}}, or --column {meaning.name}='{headers[0]}'."
            )
        if headers:
            found[meaning.name] = headers[0]
    wrong += _lacking(found, free)
    if wrong:
        raise ValueError("\n  ".join([f"{source}: the columns are not settled.", *wrong, _present(frame)]))
    return found


def _matches(meaning: Meaning, headers: Iterable[str]) -> list[str]:
    """The header that is the canonical name, or else all that are known names of the meaning."""
    known = _named((meaning.name, *meaning.headers), headers)
    return [meaning.name] if meaning.name in known else known


def _named(names: Iterable[str], headers: Iterable[str]) -> list[str]:
    wanted = {_plain(name) for name in names}
    return [header for header in headers if _plain(header) in wanted]


def _plain(header: str) -> str:
    """Case, spaces, underscores, hyphens and dots do not distinguish headers."""
    return re.sub(r"[\s_.\-]+", "", header).casefold()


def _mapping_errors(headers: list[str], mapping: Mapping[str, str]) -> list[str]:
    wrong = [
        f"columns: {name!r} is no meaning of a column; the meanings are {', '.join(NAMES)}.{near(name, NAMES)}"
        for name in mapping
        if name not in NAMES
    ]
    wrong += [
        f"columns: {name!r} is given the header {header!r}, which the table does not have.{near(header, headers)}"
        for name, header in mapping.items()
        if header not in headers
    ]
    for header in dict.fromkeys(mapping.values()):
        names = [name for name, given in mapping.items() if given == header]
        if len(names) > 1:
            wrong.append(f"columns: {_quoted(names)} are all given the header {header!r}; a column means one thing.")
    return wrong


def _lacking(found: Mapping[str, str], free: list[str]) -> list[str]:
    """Sentences on needed meanings without a column."""
    absent = [] if "loss" in found else ["loss"]
    wrong = [] if "loss" in found else [f"No column is {THINGS['loss']} (loss)."]
    if sum(name in found for name in SIZES) < 2:
        lacking = [name for name in SIZES if name not in found]
        absent += lacking
        things = " or ".join(f"{THINGS[name]} ({name})" for name in lacking)
        need = "one of these is needed" if len(lacking) == 2 else "two of these are needed"
        wrong.append(f"No column is {things}; {need}, since two of size, tokens and compute settle the third.")
    for name in absent:
        stem = name.split("_")[-1].removesuffix("s") if name != "loss" else name
        like = [header for header in free if header not in found.values() and stem in _plain(header)]
        if like:
            wrong.append(f"Perhaps {name} is one of {_quoted(like)}.")
    if absent:
        wrong.append(f"Say which it is: columns={{{absent[0]!r}: 'HEADER'}}, or --column {absent[0]}=HEADER.")
    return wrong


def near(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' for the nearest known name, or nothing."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _present(frame: pd.DataFrame) -> str:
    return f"The columns are: {', '.join(frame.columns)}."
