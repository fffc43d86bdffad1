"""The JSON schema of a decision, for editors and for programs that write one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import Any, get_args, get_origin

from bayescale.decision.described import NUMBER, Decision
from bayescale.decision.kinds import alone, by_name, fields, parts, word
from bayescale.decision.uncertain import Distribution
from bayescale.parameter import Prior

Schema = dict[str, Any]
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": rf"^\s*{NUMBER.pattern}\s*$"}]}
_PLAIN: dict[Any, Schema] = {
    float: _NUMBER,
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}


def decision_schema() -> Schema:
    """The JSON schema (draft 2020-12) of what `read_decision` reads: a dict of JSON values."""
    defined: dict[str, Schema] = {}
    body = _settings(Decision, defined)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A decision: what to train, for what, within what",
        **body,
        "required": ["goal"],
        "$defs": dict(sorted(defined.items())),
    }


def _closed(properties: Schema, required: Sequence[str] = ()) -> Schema:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": list(required)} if required else {})


def _settings(noun: Any, defined: dict[str, Schema]) -> Schema:
    known = fields(noun)
    return _closed(
        {name: _kind(kind, defined) for name, (kind, _) in known.items()},
        [name for name, (_, needed) in known.items() if needed],
    )


def _kind(kind: Any, defined: dict[str, Schema]) -> Schema:
    """What plain data may say of a kind."""
    found = [each for part in parts(kind) for each in _part(part, defined)]
    found += [
        _once(f"{name}_by_name", defined, partial(_named, name, noun, defined)) for name, noun in by_name(kind).items()
    ]
    found += [_reference(alone(kind), defined)] if alone(kind) else []
    return found[0] if len(found) == 1 else {"anyOf": found}


def _part(kind: Any, defined: dict[str, Schema]) -> list[Schema]:
    inner = get_args(kind)
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    if kind is Distribution:
        settings = {"type": "object", "required": ["distribution"], "additionalProperties": _NUMBER}
        return [_closed({"scipy": {**settings, "properties": {"distribution": {"type": "string"}}}}, ["scipy"])]
    if get_origin(kind) is tuple:
        every = [_kind(each, defined) for each in inner]
        return [{"type": "array", "prefixItems": every, "items": False, "minItems": len(every)}]
    if get_origin(kind) is Sequence:
        return [{"type": "array", "items": _kind(inner[0], defined)}]
    if get_origin(kind) is Mapping:
        return [{"type": "object", "additionalProperties": _kind(inner[1], defined)}]
    return []


def _once(name: str, defined: dict[str, Schema], made: Callable[[], Schema]) -> Schema:
    """A reference to what is defined once: a noun may hold others of its own kind."""
    if name not in defined:
        defined[name] = {}
        defined[name] = made()
    return {"$ref": f"#/$defs/{name}"}


def _reference(noun: Any, defined: dict[str, Schema]) -> Schema:
    said = {"description": (inspect.getdoc(noun) or "").partition("\n")[0]}
    return _once(word(noun), defined, lambda: said | _settings(noun, defined))


def _named(name: str, noun: Any, defined: dict[str, Schema]) -> Schema:
    """A noun's word alone where it needs nothing, or as the key of its settings or of its first one."""
    known, inner = fields(noun), [_reference(noun, defined)]
    needed = [field for field, (_, need) in known.items() if need]
    if known and needed in ([], [next(iter(known))]):
        inner.append(_kind(next(iter(known.values()))[0], defined))
    if issubclass(noun, Prior):
        inner.append(_closed({"low": _NUMBER, "high": _NUMBER}, ["low", "high"]))
    keyed = _closed({name: {"anyOf": inner if needed else [*inner, {"type": "null"}]}}, [name])
    return keyed if needed else {"anyOf": [{"const": name}, keyed]}
