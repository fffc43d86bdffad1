"""What a person reads of the frontier without a law: numbers with unit and interval, what was refused, and why."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from report_names import EVIL

from bayescale.frontier.envelope import Envelope, compute_envelope
from bayescale.frontier.isoflop import Minima, isoflop_minima
from bayescale.frontier.isoflop_check import IsoflopCheck, isoflop_check
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.pooling import Partial
from bayescale.parameter import LogitNormal, LogNormal
from bayescale.posterior.fitting import fit
from bayescale.runs.table import Runs

PRIORS = {
    "alpha": LogNormal(0.35, 0.05),
    "beta": LogNormal(0.37, 0.05),
    "floor_share": LogitNormal(0.6, 0.1),
    "size_share": LogitNormal(0.5, 0.1),
    "loss_center": LogNormal(None, 0.02),
    "noise": LogNormal(0.001, 0.1),  # so quiet that replicated tables have minima
}
BUDGETS = 12 * 10.0 ** np.arange(18, 22)


def table(group: str = "A") -> pd.DataFrame:
    """Four budgets of Besiroglu et al.'s law (arXiv 2404.10102), the last with its large sizes only."""
    parts = []
    for i, c in enumerate(BUDGETS):
        center = 0.13 * (c / 6) ** 0.5128
        n = center * np.geomspace(1.5 if i == 3 else 0.3, 3, 7)
        d = c / (6 * n)
        loss = 1.8172 + 482.01 * n**-0.3478 + 2085.43 * d**-0.3658
        parts.append(pd.DataFrame({"flop": c, "n_params": n, "n_tokens": d, "loss": loss, "corpus": group}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def minima() -> Minima:
    return isoflop_minima(Runs(table(), source="runs.csv"))


@pytest.fixture(scope="module")
def found() -> list[Minima | Envelope | IsoflopCheck]:
    """One of each, of two groups, one of an evil name."""
    runs = Runs(pd.concat([table("A"), table(EVIL)]), source=f"{EVIL}.csv")
    law, engine = Chinchilla(), FromPrior(draws=200)
    posterior = fit(runs, law, drift=None, pooling=Partial("corpus"), priors=PRIORS, engine=engine, seed=1)
    by = {"group_by": "corpus"}
    return [isoflop_minima(runs, **by), compute_envelope(runs, **by), isoflop_check(posterior)]


def words(result: object) -> str:
    return " ".join(repr(result).split())


def test_numbers_come_with_unit_kind_and_level(minima: Minima) -> None:
    text = words(minima)
    assert text.startswith("IsoFLOP minima of runs.csv: 3 budgets, 1 refused; no law assumed")
    assert "90 % equal-tailed interval, percentiles of a bootstrap (1,000 resamples, seed 0)" in text
    for word in ("FLOP", "parameters", "tokens", "nats/token", "N ~ C^a", "D ~ C^b"):
        assert word in text
    assert "Refused - 1.2e22 FLOP: not bracketed" in text
    a = minima.to_dict()["results"][0]["power_law"]["a"]["estimate"]
    shown = re.search(r"^(0\.\d+) ", repr(minima), re.MULTILINE)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(a, abs=1e-3)


@pytest.mark.parametrize("i", range(3), ids=["minima", "envelope", "check"])
def test_pages_are_eighty_wide_escaped_and_json(found: list, i: int) -> None:
    assert all(len(line) <= 80 for line in repr(found[i]).splitlines())
    assert EVIL in words(found[i])
    assert "<script>" not in found[i]._repr_html_()
    assert "&lt;script&gt;" in found[i]._repr_html_()
    json.dumps(found[i].to_dict(), allow_nan=False)
    assert set(found[i].to_dataframe()["group"]) == {"A", EVIL}


def test_intervals_that_are_tight_are_no_wider_on_the_page() -> None:
    """Without scatter a number needs all digits that it can have."""
    exact = table()
    flop, n = exact["flop"] / 7.3e18, exact["n_params"] / 1.2345678e8
    exact["loss"] = np.exp(1.2345678 - 0.05 * np.log(flop) + 0.02 * np.log(n / flop**0.5) ** 2)
    found = isoflop_minima(Runs(exact, source="runs.csv"))
    assert len(found.table) >= 3
    assert max(map(len, repr(found).splitlines())) <= 80


def test_the_envelope_says_its_bias_and_the_check_its_fit(found: list) -> None:
    assert "the envelope is biased where sizes are few" in words(found[1])
    assert words(found[2]).startswith("UNKNOWN: ")
    assert "6 of 6 inside" in words(found[2])
    assert "tables without" in words(found[2])
