"""What was measured: a table of finished runs, read, checked and in known units."""

from bayescale.runs import data, public
from bayescale.runs.checkpoints import ROW_RULES, RowRule, Thinned, WarmUp
from bayescale.runs.costs import (
    AttentionRule,
    ExpertsRule,
    HeadRule,
    HoffmannRule,
    KaplanRule,
    LoggedRule,
    RecomputeRule,
)
from bayescale.runs.design import Finding, design_findings
from bayescale.runs.flops import SIX_ND, ComputeRule, FlopsRule
from bayescale.runs.inspection import Inspection, inspect_runs
from bayescale.runs.read import read_runs
from bayescale.runs.recount import in_bytes, recount
from bayescale.runs.rules import InvalidRuns
from bayescale.runs.shapes import Embeddings, Shape
from bayescale.runs.table import Runs

__all__ = [
    "ROW_RULES",
    "SIX_ND",
    "AttentionRule",
    "ComputeRule",
    "Embeddings",
    "ExpertsRule",
    "Finding",
    "FlopsRule",
    "HeadRule",
    "HoffmannRule",
    "Inspection",
    "InvalidRuns",
    "KaplanRule",
    "LoggedRule",
    "RecomputeRule",
    "RowRule",
    "Runs",
    "Shape",
    "Thinned",
    "WarmUp",
    "data",
    "design_findings",
    "in_bytes",
    "inspect_runs",
    "public",
    "read_runs",
    "recount",
]
