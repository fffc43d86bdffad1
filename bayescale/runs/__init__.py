"""What was measured: a table of finished runs, read, checked and in known units."""

from bayescale.runs.design import Finding, design_findings
from bayescale.runs.flops import SIX_ND, ComputeRule, FlopsRule
from bayescale.runs.read import read_runs
from bayescale.runs.rules import InvalidRuns
from bayescale.runs.table import Runs

__all__ = ["SIX_ND", "ComputeRule", "Finding", "FlopsRule", "InvalidRuns", "Runs", "design_findings", "read_runs"]
