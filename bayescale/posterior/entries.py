"""A ledger's lines: one JSON object each, a forecast or what a run reached.

Reading runs no code: a line is parsed as JSON, and what does not fit is named by its number. Lines are only
ever added. One that was cut off (a full disk, a lost machine) stays where it is: at the end of the file it
is passed over, and whoever writes next adds a line of the kind ``cut off``, which says the same of the line
above it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import math
from dataclasses import dataclass
from typing import Any, final

from bayescale.posterior.store import json_text

log = logging.getLogger(__name__)
SCHEMA = 1
FORECAST, LANDING, CUT_OFF = "forecast", "landing", "cut off"
# The median, and the ends of the equal-tailed intervals of 50, 80, 90 and 95 %.
PROBABILITIES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
POSITIVE = ("n_params", "n_tokens", "flop", "extrapolation_factor")
TEXT = ("written", "loss_unit", "diagnostics")
NULLABLE = ("group", "beyond_data")
MOST_NAMED = 10  # of the lines in one message


@final
@dataclass(frozen=True)
class Entry:
    """A forecast as its line says it, what the run reached, and which line it was.

    ``landing`` is None while the run is open; ``digest`` is the SHA-256 of the forecast's line.
    """

    forecast: dict[str, Any]
    landing: dict[str, Any] | None
    line: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """The forecast, and under ``landing`` what was reached, or None."""
        return {**self.forecast, "landing": self.landing}


def headed(kind: str, **fields: Any) -> dict[str, Any]:
    """A line's fields under those that every line has: its kind and the time, UTC."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"ledger": SCHEMA, "kind": kind, "written": now, **fields}


def added(data: bytes, fields: dict[str, Any]) -> bytes:
    """What to append to a ledger that holds ``data``, so that it ends with these fields' line."""
    lines = [fields]
    if not data or data.endswith(b"\n"):
        before = ""
    else:
        before = "\n"
        if isinstance(_parsed(data.rsplit(b"\n", 1)[-1]), str):
            lines = [headed(CUT_OFF), fields]
    return (before + "".join(json_text(line) + "\n" for line in lines)).encode()


def entries(data: bytes, name: str) -> dict[str, Entry]:
    """The entries of a ledger by the names of their runs, in the order in which they were forecast.

    Raises
    ------
    ValueError
        For lines that are no entries, or not where they stand: a second forecast of a run, a landing without
        an earlier forecast, a forecast that was changed after it had landed.
    """
    raw = [line.strip() for line in data.split(b"\n")]
    parsed = [_parsed(line) for line in raw]
    found: dict[str, Entry] = {}
    problems = []
    for i, fields in enumerate(parsed):
        if not raw[i]:
            continue
        if isinstance(fields, str):
            if i == len(raw) - 1:
                log.warning("%s: its last line, %d, was cut off and is passed over.", name, i + 1)
                continue
            if _kind(parsed[i + 1]) == CUT_OFF:
                continue
        problem = fields if isinstance(fields, str) else _placed(fields, i + 1, _digest(raw[i]), found)
        problems += [f"line {i + 1}: {problem}"] if problem else []
    if problems:
        more = len(problems) - MOST_NAMED
        rest = [f"and {more} more lines"] if more > 0 else []
        raise ValueError(f"{name} is not a ledger throughout: {'; '.join([*problems[:MOST_NAMED], *rest])}.")
    return found


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _parsed(line: bytes) -> dict[str, Any] | str:
    """A line's fields, or why it has none."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        fields = json.loads(line.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as problem:
        return f"not JSON, {problem}" if line else "empty"
    return fields if isinstance(fields, dict) else f"a {type(fields).__name__}, not a JSON object"


def _kind(fields: dict[str, Any] | str) -> Any:
    return None if isinstance(fields, str) else fields.get("kind")


def _placed(fields: dict[str, Any], line: int, digest: str, found: dict[str, Entry]) -> str | None:
    """Put a line's fields where they belong, or say why they cannot be."""
    version, kind, run = fields.get("ledger"), fields.get("kind"), fields.get("run")
    if version != SCHEMA:
        later = isinstance(version, int) and version > SCHEMA
        return f"of a later version, {version}; update bayescale" if later else "no entry of a ledger"
    if kind == CUT_OFF:
        return None
    if kind not in (FORECAST, LANDING) or not isinstance(run, str):
        return f"an entry needs a run and its kind, {FORECAST!r} or {LANDING!r}"
    before = found.get(run)
    if kind == FORECAST:
        problem = _unlike_forecast(fields) if before is None else f"{run!r} is forecast again, after line {before.line}"
        if not problem:
            found[run] = Entry(fields, None, line, digest)
        return problem
    problem = f"{run!r} landed, but no line above forecasts it" if before is None else _unlike_landing(fields, before)
    if before and not problem:
        found[run] = Entry(before.forecast, fields, before.line, before.digest)
    return problem


def _unlike_forecast(fields: dict[str, Any]) -> str | None:
    """What keeps these fields from being a forecast."""
    bad = [name for name in POSITIVE if not positive(fields.get(name))]
    bad += [name for name in TEXT if not isinstance(fields.get(name), str)]
    bad += [name for name in NULLABLE if not isinstance(fields.get(name, 0), str | None)]
    fit, quantiles = fields.get("fit"), fields.get("quantiles")
    bad += [] if isinstance(fit, dict) and isinstance(fit.get("fingerprint"), str) else ["fit"]
    bad += [] if fields.get("probabilities") == list(PROBABILITIES) else ["probabilities"]
    bad += [] if _checks(fields.get("gate")) else ["gate"]
    told = isinstance(quantiles, dict) and quantiles and all(map(_rising, quantiles.values()))
    bad += [] if told else ["quantiles"]
    return f"a forecast without, or with an unlikely, {', '.join(bad)}" if bad else None


def _checks(gate: Any) -> bool:
    words = ("name", "status")
    return isinstance(gate, list) and all(
        isinstance(c, dict) and all(isinstance(c.get(word), str) for word in words) for c in gate
    )


def _rising(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == len(PROBABILITIES)
        and all(map(positive, values))
        and sorted(values) == values
    )


def _unlike_landing(fields: dict[str, Any], before: Entry) -> str | None:
    """What keeps these fields from being what that forecast's run reached."""
    run = before.forecast["run"]
    if before.landing is not None:
        return f"{run!r} landed again"
    if not positive(fields.get("loss")) or not isinstance(fields.get("written"), str):
        return f"{run!r} landed without a time, or at no positive loss"
    if fields.get("loss_unit") != before.forecast["loss_unit"]:
        return f"{run!r} landed in {fields.get('loss_unit')!r}, and was forecast in {before.forecast['loss_unit']!r}"
    if fields.get("forecast") != before.digest:
        return f"the forecast of {run!r}, line {before.line}, was changed after this landing"
    return None


def positive(value: Any) -> bool:
    """Whether a value is a positive finite number, as JSON and numpy have them; True and False are none."""
    try:
        return not isinstance(value, bool | str | bytes) and math.isfinite(float(value)) and float(value) > 0
    except (TypeError, ValueError, OverflowError):
        return False
