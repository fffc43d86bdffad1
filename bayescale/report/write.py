"""The verb: a result as a file that goes to other people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayescale._files import put
from bayescale.report import as_html, as_markdown
from bayescale.report.reports import document

WRITERS = {".html": as_html.write, ".md": as_markdown.write}


def write_report(result: Any, path: str | Path) -> Path:
    """Write a report of a result: one file that needs no network, fit to be sent by mail.

    The answer comes first, in three sentences with their intervals and the health of the fit; then the
    recommendation, the frontier, the loss forecast, regret, sensitivity, the data and the rows flagged, law and
    priors, diagnostics, assumptions, the reporting checklist of Li et al. 2025 (arXiv 2502.18969), and how to make
    it again.

    Parameters
    ----------
    result : Posterior, Frontier, Plan, Backtest, Ledger, or another result that has a page
        What is reported. Of a fit: its frontier at the next power of ten of compute above the largest run, and
        one and two beyond; for budgets of your own, report ``allocate(fit, budgets)``.
    path : str or Path
        Where to; its suffix is the format: ``.html``, or ``.md`` (words and tables alone).

    Returns
    -------
    Path
        ``path``. The file is written under another name and moved into place: it is there whole, or not at all.

    Raises
    ------
    ValueError
        For another suffix.
    TypeError
        For a result of which there is no report.
    FileNotFoundError
        If the folder of ``path`` does not exist.
    """
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        known = ", ".join(WRITERS)
        raise ValueError(f"A report is written as {known}, told by the suffix, not as {path.suffix!r} ({path}).")
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; make it, or name another for {path.name}.")
    text = WRITERS[path.suffix.lower()](document(result))
    with put(path) as part:
        part.write_text(text, "utf-8")
    return path
