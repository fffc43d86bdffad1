"""A decision as plain data, from a YAML or JSON file or another program: the arguments of `recommend`, by name.

A noun is a mapping of its name to its settings, ``cvar: {tail: 0.1}``; its name alone where it needs none,
``mean``; and ``cvar: 0.1`` where its first setting is all that is said. The names, their settings and what each
may be are read from the nouns themselves, so that a new risk, objective or constraint is known here at once.
A distribution is ``log_normal: {low: 1.6, high: 2.5}`` by the ends of its 90 % interval, one of a prior's own
settings, or one of ``scipy.stats`` by its name, ``scipy: {distribution: gamma, a: 2, scale: 1e6}``.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, TypedDict, get_args, get_origin

from bayescale.decision import fits, scored, target
from bayescale.decision.budget import Budget
from bayescale.decision.constraint import Constraint
from bayescale.decision.hardware import Hardware
from bayescale.decision.kinds import PLAIN, alone, by_name, fields, fold, parts, word
from bayescale.decision.objective import Objective
from bayescale.decision.risk import Risk
from bayescale.decision.uncertain import Distribution, Uncertain
from bayescale.model.pooling import NewGroup, PopulationMean
from bayescale.parameter import Z90, Prior
from bayescale.runs.flops import ComputeRule

NOUNS = (fits, scored, target)  # files whose nouns are known once they are imported
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Decision(TypedDict, total=False):
    """What `recommend` takes beside the posterior, by the same names."""

    goal: Budget | Constraint | float
    objective: Objective
    constraints: Sequence[Constraint]
    risk: Risk
    sizes: Sequence[float]
    options: Mapping[str, Sequence[float]]
    at: Mapping[str, Uncertain]
    hardware: Hardware
    compare: Sequence[float]
    group: str | NewGroup | PopulationMean
    rule: ComputeRule
    level: float
    seed: int


def read_decision(source: str | Path | Mapping[str, Any]) -> Decision:
    """Read the arguments of `recommend` from a YAML or JSON file, or from a mapping that came from one.

    Parameters
    ----------
    source : path or mapping
        Plain data: mappings, lists, numbers, text. Numbers may be written as text (``"1e24"``).

    Returns
    -------
    Decision
        A dict, for ``recommend(posterior, **read_decision("decision.yaml"))``.

    Raises
    ------
    ValueError
        If the file is no YAML, or a field is unknown, missing, or breaks its rule; every one is named by its
        place, as ``constraints[1].tokens.available``.
    """
    reader = _Reader()
    found = reader.settings(Decision, load_yaml(source) if isinstance(source, str | Path) else source, "")
    if not reader.faults and "goal" not in found:
        reader.fault("goal", "is missing; say what may be spent or reached, as goal: {budget: {flop: 1e24}}")
    if reader.faults:
        count = len(reader.faults)
        head = f"The decision has {count} faults:" if count > 1 else "The decision has a fault:"
        raise ValueError("\n  ".join([head, *reader.faults]))
    return found


def load_yaml(path: str | Path) -> Any:
    """Plain data of a YAML or JSON file; a key that stands twice and any tag of a program are refused."""
    from ruamel.yaml import YAML, YAMLError

    try:
        return YAML(typ="safe", pure=True).load(Path(path).read_text("utf-8"))
    except (YAMLError, UnicodeDecodeError) as problem:
        raise ValueError(f"{path} is no YAML: {problem}") from None


@dataclass
class _Reader:
    """From plain data to nouns; what is wrong is collected, by its place."""

    faults: list[str] = field(default_factory=list)

    def fault(self, where: str, what: str) -> None:
        self.faults.append(f"{where or 'the whole'}: {what}")

    def value(self, kind: Any, value: Any, where: str) -> Any:
        """What plain data says where a value of this kind is due."""
        kinds = list(parts(kind))
        number = numeric(value)
        if number is not None and float in kinds:
            return number
        if number is not None and int in kinds and number == int(number):
            return int(number)
        if (isinstance(value, str) and str in kinds) or (value is None and NoneType in kinds):
            return value
        if isinstance(value, str | Mapping) and (by_name(kind) or Distribution in kinds):
            return self.named(kind, value, where)
        if isinstance(value, Mapping) and alone(kind):
            return self.settings(alone(kind), value, where)
        return self.several(kind, value, where)

    def several(self, kind: Any, value: Any, where: str) -> Any:
        """A list, a pair, or a mapping by free names."""
        for each in parts(kind):
            origin, inner, listed = get_origin(each), get_args(each), isinstance(value, list | tuple)
            if origin is tuple and listed and len(value) == len(inner):
                pairs = enumerate(zip(inner, value, strict=True))
                return tuple(self.value(k, v, f"{where}[{i}]") for i, (k, v) in pairs)
            if origin is Sequence and listed:
                return [self.value(inner[0], v, f"{where}[{i}]") for i, v in enumerate(value)]
            if origin is Mapping and isinstance(value, Mapping):
                return {str(name): self.value(inner[1], v, f"{where}.{name}") for name, v in value.items()}
        return self.fault(where, f"{_allowed(kind)}, not {_short(value)}")

    def named(self, kind: Any, value: Any, where: str) -> Any:
        """A noun by its word, with settings or none."""
        if isinstance(value, Mapping) and len(value) != 1:
            return self.fault(where, f"{_allowed(kind)}, not {_short(value)}")
        name, said = next(iter(value.items())) if isinstance(value, Mapping) else (value, None)
        place = f"{where}.{name}" if isinstance(value, Mapping) else where
        known = by_name(kind)
        if fold(name) == "scipy" and Distribution in parts(kind):
            return self.scipy(said, place)
        noun = {fold(each): noun for each, noun in known.items()}.get(fold(name))
        if noun is None and isinstance(value, str):
            return self.fault(where, f"{_allowed(kind)}, not {_short(value)}{_near(name, known)}")
        if noun is None:
            return self.fault(place, f"no such name{_near(name, known)}; known: {', '.join(known)}")
        if issubclass(noun, Prior) and isinstance(said, Mapping) and set(said) == {"low", "high"}:
            return self.between(noun, said, place)
        return self.settings(noun, self.spelt_out(noun, said), place)

    def spelt_out(self, noun: Any, said: Any) -> Any:
        """Settings by name, where the first one's value was all that was said."""
        first, (kind, _) = next(iter(fields(noun).items()), ("", (None, False)))
        words = {fold(each) for each in by_name(kind)} | ({"scipy"} if Distribution in parts(kind) else set())
        if said is None:
            return {}
        if not first or (isinstance(said, Mapping) and not (len(said) == 1 and fold(next(iter(said))) in words)):
            return said
        return {first: said}

    def settings(self, noun: Any, value: Any, where: str) -> Any:
        """A noun of its settings."""
        known, before, read = fields(noun), len(self.faults), {}
        if not isinstance(value, Mapping):
            return self.fault(where, f"a mapping of {', '.join(known) or 'nothing'}, not {_short(value)}")
        place = f"{where}." if where else ""
        for name, each in value.items():
            if name in known:
                read[name] = self.value(known[name][0], each, f"{place}{name}")
            else:
                self.fault(f"{place}{name}", f"no such field{_near(name, known)}; known: {', '.join(known) or 'none'}")
        for name in [name for name, (_, needed) in known.items() if needed and name not in value]:
            self.fault(f"{place}{name}", f"is missing: {_allowed(known[name][0])}")
        return self.made(noun, read, where) if len(self.faults) == before else None

    def made(self, noun: Any, settings: dict[str, Any], where: str) -> Any:
        """The noun, unless it refuses its settings."""
        try:
            return noun(**settings)
        except (ValueError, TypeError) as problem:
            return self.fault(where, str(problem))

    def between(self, prior: Any, said: Mapping[str, Any], where: str) -> Any:
        """A prior by the ends of its equal-tailed 90 % interval."""
        low, high = (self.value(float, said[name], f"{where}.{name}") for name in ("low", "high"))
        if low is None or high is None:
            return None
        try:
            ends = [prior(end, 1.0).loc for end in (low, high)]
            center = prior(low, 1.0).constrain(sum(ends) / 2)
            return prior(center, (ends[1] - ends[0]) / (2 * Z90))
        except ValueError:
            return self.fault(
                where, f"the ends of a 90 % interval of a {prior.__name__}, low first, not {_short(said)}"
            )

    def scipy(self, said: Any, where: str) -> Any:
        """A frozen continuous distribution of ``scipy.stats``."""
        from scipy import stats

        name = said.get("distribution") if isinstance(said, Mapping) else said
        family = getattr(stats, name, None) if isinstance(name, str) else None
        if not isinstance(family, stats.rv_continuous):
            return self.fault(where, f"distribution: a continuous one of scipy.stats by its name, not {_short(name)}")
        given = {k: v for k, v in said.items() if k != "distribution"} if isinstance(said, Mapping) else {}
        before = len(self.faults)
        given = {k: self.value(float, v, f"{where}.{k}") for k, v in given.items()}
        return self.made(family, given, where) if len(self.faults) == before else None


def numeric(value: Any) -> float | None:
    """A number, also as text, which some readers of YAML take ``1e24`` for; None for anything else."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _allowed(kind: Any) -> str:
    """What may stand where a value of this kind is due, in words."""
    containers = {Sequence: "a list", tuple: "a pair", Mapping: "a mapping by name"}
    words = [PLAIN.get(each) or containers.get(get_origin(each)) for each in parts(kind)]
    words += [f"one of {', '.join(by_name(kind))}"] if by_name(kind) else []
    words += ["a distribution of scipy"] if Distribution in parts(kind) else []
    words += [f"settings of {word(alone(kind))}"] if alone(kind) else []
    return " or ".join(filter(None, words))


def _near(name: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
