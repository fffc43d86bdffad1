"""Which column of a table means what: by a mapping, or by the names that people use.

A header that says more (``params (M)``, ``params_total``) is read with what it says, and only where no
other column looks like the same thing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from bayescale.runs.headers import Head, head, plain, unit_of_header
from bayescale.runs.units import UNITS, is_bytes, scale_of
from bayescale.runs.wide import explain_wide


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
HINTS = (
    Meaning("step", "the training step", ("steps", "global step", "train step", "train steps", "iteration", "iter")),
    Meaning("planned_steps", "the steps that were planned", ("total steps", "max steps", "num train steps")),
    Meaning("planned_tokens", "the tokens that were planned", ("target tokens", "token budget", "max tokens")),
    Meaning("unique_tokens", "the tokens that differ", ("unique", "n unique tokens", "num unique tokens")),
    Meaning("epochs", "the passes over the data", ("epoch", "num epochs", "n epochs")),
    Meaning("lr", "the highest learning rate", ("learning rate", "peak lr", "max lr", "peak learning rate")),
    Meaning("final_lr", "the learning rate at the end", ("last lr", "end lr", "lr at end", "final learning rate")),
    Meaning("batch_size", "the batch size", ("batch", "global batch size", "batch size sequences")),
    Meaning("status", "how the run ended", ("state", "run state", "run status")),
    Meaning("is_final", "whether the row is the end of its run", ("is final checkpoint", "final checkpoint")),
    Meaning("bytes_per_token", "the bytes of a token", ("bytes token", "mean bytes per token")),
)
NAMES = tuple(meaning.name for meaning in MEANINGS)
HINT_NAMES = tuple(meaning.name for meaning in HINTS)
THINGS = {meaning.name: meaning.thing for meaning in (*MEANINGS, *HINTS)}
SIZES = ("n_params", "n_tokens", "flop")  # N, D and C: two of them settle the third
STEMS = {"n_params": ("param",), "n_tokens": ("token",), "flop": ("flop", "compute"), "loss": ("loss", "perplexity")}


def recognise(
    frame: pd.DataFrame, mapping: Mapping[str, str], source: str, units: Mapping[str, str] | None = None
) -> dict[str, Head]:
    """Columns by meaning: those of ``mapping``, and the known names among the others.

    Raises
    ------
    ValueError
        If the mapping is wrong, several headers mean the same, or a needed meaning has none; one
        message with all of it.
    """
    wrong = _mapping_errors(list(frame.columns), mapping)
    found = {m.name: _mapped(m, mapping[m.name]) for m in (*MEANINGS, *HINTS) if m.name in mapping}
    free = [header for header in frame.columns if header not in mapping.values()]
    for hint in HINTS:
        headers = [] if hint.name in mapping else _plain_matches(hint, free)
        if len(headers) == 1:
            found[hint.name] = Head(hint.name, headers[0])
    for meaning in MEANINGS:
        if meaning.name in mapping:
            continue
        heads = _matches(meaning, free, {h.header for h in found.values()})
        unique = [h for h in _named(meaning.if_unique, free) if frame[h].is_unique][:1]
        heads = heads or [Head(meaning.name, header) for header in unique]
        if len(heads) > 1:
            headers = [h.header for h in heads]
            wrong.append(
                f"Several columns may be {meaning.thing}: {_quoted(headers)}. "
                f"Say which: columns={{{meaning.name!r}: {headers[0]!r}}}, or --column {meaning.name}='{headers[0]}'."
            )
        if heads:
            found[meaning.name] = heads[0]
    found, wrong = _in_units(found, units or {}, wrong)
    wrong += _lacking(found, free)
    if wrong:
        wide = explain_wide(frame)
        raise ValueError("\n  ".join([f"{source}: the columns are not settled.", *wide, *wrong, _present(frame)]))
    return found


def _matches(meaning: Meaning, headers: list[str], taken: set[str]) -> list[Head]:
    """The header that is the canonical name; or all known names; or the only one that says more."""
    known = {plain(name) for name in (meaning.name, *meaning.headers)}
    matches = _plain_matches(meaning, headers)
    if matches:
        return [h for h in (head(meaning.name, header, known) for header in matches) if h]
    more = [h for h in (head(meaning.name, header, known) for header in headers if header not in taken) if h]
    stems = STEMS.get(meaning.name, ())
    alike = [h for h in headers if h not in taken and any(stem in plain(h) for stem in stems) and "per" not in plain(h)]
    return more if len({h.header for h in more} | set(alike)) == 1 or meaning.name == "loss" else []


def _mapped(meaning: Meaning, header: str) -> Head:
    """A header that a person gave a meaning, with what it says of itself."""
    known = {plain(name) for name in (meaning.name, *meaning.headers)}
    return head(meaning.name, header, known) or unit_of_header(meaning.name, header)


def _plain_matches(meaning: Meaning, headers: Iterable[str]) -> list[str]:
    known = _named((meaning.name, *meaning.headers), headers)
    return [meaning.name] if meaning.name in known else known


def _named(names: Iterable[str], headers: Iterable[str]) -> list[str]:
    wanted = {plain(name) for name in names}
    return [header for header in headers if plain(header) in wanted]


def _in_units(found: dict[str, Head], units: Mapping[str, str], wrong: list[str]) -> tuple[dict[str, Head], list[str]]:
    """The columns in the units that a person declares, which go before those of the headers."""
    for name, unit in units.items():
        scale = scale_of(name, unit) if name in UNITS else None
        if name not in UNITS:
            wrong.append(f"units: {name!r} is none of {', '.join(UNITS)}; the unit of the loss is loss_unit=.")
        elif scale is None:
            wrong.append(f"units: {unit!r} is no unit of {name}; write M, billions, 1e9, or TFLOP and PF-days of flop.")
        elif name not in found:
            wrong.append(f"units: {name} has a unit and no column.")
        else:
            word = UNITS[name] if scale == 1 and not is_bytes(unit) else unit
            found[name] = replace(found[name], unit=word, scale=scale, declared=True)
    return found, wrong


def _mapping_errors(headers: list[str], mapping: Mapping[str, str]) -> list[str]:
    wrong = [
        f"columns: {name!r} is no meaning of a column; the meanings are {', '.join((*NAMES, *HINT_NAMES))}."
        f"{near(name, (*NAMES, *HINT_NAMES))}"
        for name in mapping
        if name not in (*NAMES, *HINT_NAMES)
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


def _lacking(found: Mapping[str, Head], free: list[str]) -> list[str]:
    """Sentences on needed meanings without a column."""
    absent = [] if "loss" in found else ["loss"]
    taken = {h.header for h in found.values()}
    wrong = [] if "loss" in found else [f"No column is {THINGS['loss']} (loss)."]
    if sum(name in found for name in SIZES) < 2:
        lacking = [name for name in SIZES if name not in found]
        absent += lacking
        things = " or ".join(f"{THINGS[name]} ({name})" for name in lacking)
        need = "one of these is needed" if len(lacking) == 2 else "two of these are needed"
        wrong.append(f"No column is {things}; {need}, since two of size, tokens and compute settle the third.")
    for name in absent:
        stem = name.split("_")[-1].removesuffix("s") if name != "loss" else name
        like = [header for header in free if header not in taken and stem in plain(header)]
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
    if len(frame.columns) == 1:
        return f"The only column is {frame.columns[0]!r}: separate columns by commas, semicolons, tabs or bars."
    return f"The columns are: {', '.join(frame.columns)}."
