"""Charts that experiment trackers export: one column a run and one row a step, which is no table of runs."""

from __future__ import annotations

import re

import pandas as pd

from bayescale.runs.cells import listed

_COPY = re.compile(r"(.+?)\s*__(MIN|MAX)", re.IGNORECASE)
_SERIES = re.compile(r"(.+?) - (.+)")
_STEPS = ("step", "steps", "global_step", "iteration", "iter")
_WORDS = ("param", "token", "flop", "compute", "loss", "perplexity", "ppl", "size", "batch", "epoch")


def _curves(headers: list[str]) -> list[str]:
    """The columns beside a column of steps, where none of them names a size, tokens, compute or a loss."""
    others = [header for header in headers if header.casefold() not in _STEPS]
    named = any(word in header.casefold() for header in others for word in _WORDS)
    return others if len(others) == len(headers) - 1 and len(others) > 1 and not named else []


def explain_wide(frame: pd.DataFrame) -> list[str]:
    """What a wide chart is and how it becomes a table of runs; nothing where the table is none."""
    headers = [str(header) for header in frame.columns]
    copies = [header for header in headers if _COPY.fullmatch(header)]
    series = [m for m in (_SERIES.fullmatch(h) for h in headers if h not in copies) if m]
    curves = _curves(headers)
    if not copies and len(series) < 2 and not curves:
        return []
    runs = list(dict.fromkeys(m[1] for m in series)) or [h for h in headers if f"{h}__MIN" in headers] or curves
    return [
        f"This is a chart in the wide form: one column a run ({len(runs)} runs: {listed(runs)}), one row a step "
        f"({len(frame)} steps)"
        + (f", and {len(copies)} columns __MIN and __MAX that are copies of the curves." if copies else "."),
        "It holds no model size and no tokens, and its rows are no runs: a table of runs has one finished run a row "
        "with its parameters, tokens and last loss. Export the tracker's table of runs instead of the chart, or take "
        "the last row and write a size and tokens beside each run: "
        "pandas.read_csv(FILE).ffill().iloc[-1], then DataFrame({'run': …, 'n_params': …, 'n_tokens': …, 'loss': …}).",
    ]
