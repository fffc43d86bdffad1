"""What a person reads of a result: the warning first, every number with unit and interval, nothing run as HTML."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from report_names import EVIL

from bayescale import _show
from bayescale.frontier.frontier import allocate
from bayescale.model.pooling import NewGroup
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.published import names, published
from bayescale.report.tables import Table


def results(posterior: Posterior) -> list:
    """The three kinds of result of one fit."""
    return [
        posterior,
        allocate(posterior, [1e20, 1e25]),
        predict(posterior, {"n_params": 1e9, "n_tokens": [1e9, 1e13]}),
    ]


class Tags(HTMLParser):
    """Collect the tags that a browser would see, and check that they close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen, self.open = set(), []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("i", range(3), ids=["posterior", "frontier", "forecast"])
def test_the_first_words_are_the_status_unless_it_passed(
    passed: Posterior, failed: Posterior, prior: Posterior, i: int
):
    assert repr(results(failed)[i]).startswith("FAIL: ")
    assert "do not decide on this fit" in " ".join(repr(results(failed)[i]).split("\n\n")[0].split())
    assert repr(results(prior)[i]).startswith("UNKNOWN: ")
    assert "diagnostics PASS" in repr(results(passed)[i]).split("\n")[0]
    assert re.match(r"<div><p[^>]*>FAIL: ", results(failed)[i]._repr_html_())


def test_the_failing_checks_are_named(failed: Posterior) -> None:
    assert repr(failed).startswith("FAIL: r_hat 1.23 (limit 1.01); divergences 17 (limit 0);")
    assert "17 divergences" in repr(failed)


@pytest.mark.parametrize("i", range(3), ids=["posterior", "frontier", "forecast"])
def test_a_group_name_is_text_in_html_and_one_line_in_a_terminal(grouped: Posterior, i: int) -> None:
    result = results(grouped)[i]
    tags = Tags(result._repr_html_())
    assert not tags.open
    assert tags.seen <= {
        "div",
        "p",
        "b",
        "br",
        "wbr",
        "ul",
        "li",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert "&lt;script&gt;" in result._repr_html_()
    assert EVIL in repr(result)


def test_every_group_is_there_with_its_number_of_runs(grouped: Posterior) -> None:
    assert "Group C, 1 run:" in repr(grouped)
    assert "Group A, 6 runs:" in repr(grouped)


@pytest.mark.parametrize("i", range(3), ids=["posterior", "frontier", "forecast"])
def test_eighty_columns_are_enough(passed: Posterior, i: int) -> None:
    assert max(map(len, repr(results(passed)[i]).splitlines())) <= 80


def test_the_posterior_says_what_it_rests_on(passed: Posterior) -> None:
    runs = dataclasses.replace(passed.runs.without(["r4"]), notes=("D was derived from C.",))  # type: ignore[union-attr]
    text = repr(dataclasses.replace(passed, runs=runs))
    for part in (
        "seed 1",
        "C = 6 N D",
        "D was derived from C.",
        "r4",
        "90 % equal-tailed",
        "nats per token",
        "StudentT",
    ):
        assert part in text


def test_engines_that_did_not_sample_say_so(prior: Posterior) -> None:
    assert "PRIOR: no run has been used" in repr(prior)
    for name in names():
        text = repr(published(name))
        assert "PUBLISHED: one point" in text
        assert "lower" not in text
        assert published(name).info["source"].split(" (")[0] in " ".join(text.split())


def test_the_letters_shown_are_quantiles_of_the_draws(passed: Posterior) -> None:
    draws = passed.tree["posterior"]["E"].values.ravel()
    line = next(line for line in repr(passed).splitlines() if line.startswith("E "))
    shown = [float(cell) for cell in line.split()[1:4]]
    assert shown == pytest.approx(np.quantile(draws, [0.5, 0.05, 0.95]), abs=0.01)
    assert line.endswith("nats per token")


def test_the_plan_shown_is_the_closed_form_of_hoffmann_et_al(passed: Posterior) -> None:
    """arXiv 2203.15556, equation 4, draw by draw."""
    t = {k: passed.tree["posterior"][k].values.ravel() for k in ("A", "B", "alpha", "beta")}
    g = (t["alpha"] * t["A"] / (t["beta"] * t["B"])) ** (1 / (t["alpha"] + t["beta"]))
    n_opt = np.median(g * (1e20 / 6) ** (t["beta"] / (t["alpha"] + t["beta"])))
    row = next(line for line in repr(allocate(passed, 1e20)).splitlines() if line.startswith("1e20"))
    assert float(row.split()[1]) * {"M": 1e6, "B": 1e9}[row.split()[2]] == pytest.approx(n_opt, rel=5e-3)


def test_a_far_budget_has_a_line_of_its_own(passed: Posterior) -> None:
    text = " ".join(repr(allocate(passed, [1e20, 1e27])).split())
    assert re.search(r"- 1e27 FLOP is [\d,e]+ times the largest run: far outside the data", text)
    assert "- 1e20 FLOP" not in text
    assert "far outside the data" in " ".join(repr(predict(passed, {"n_params": 1e12, "n_tokens": 1e14})).split())


def test_draws_without_an_optimum_are_counted(passed: Posterior) -> None:
    frontier = allocate(passed, [1e20, 1e21])
    log_n = frontier.log_n[None].copy()
    log_n[:15, 0] = np.nan  # 3 %: an interval over the others stands
    log_n[:50, 1] = np.nan  # 10 %: none does
    text = " ".join(repr(dataclasses.replace(frontier, log_n={None: log_n})).split())
    assert "1e20 FLOP: 3.0 % of the draws have no optimum inside the law's domain" in text
    assert "1e21 FLOP: 10.0 % of the draws have no optimum inside the law's domain; no interval is given" in text
    assert "no optimum" not in repr(frontier)


def test_thousands_of_budgets_are_thinned_and_it_is_said(passed: Posterior) -> None:
    text = repr(allocate(passed, np.geomspace(1e18, 1e20, 1000)))
    assert len(text.splitlines()) < 60
    assert "990 more budgets: to_dataframe() has them all" in text


def test_a_new_group_is_named_as_one(grouped: Posterior) -> None:
    assert "Group new group: compute-optimal plan" in repr(allocate(grouped, 1e20, group=NewGroup()))


def test_the_summary_as_a_dictionary_is_json_and_agrees_with_the_draws(grouped: Posterior) -> None:
    import json

    found = grouped.to_dict(level=0.5)
    json.dumps(found, allow_nan=False)
    row = next(row for row in found["results"] if row["group"] == "C")
    expected = np.quantile(grouped.tree["posterior"]["alpha"].sel(group="C").values, [0.25, 0.5, 0.75])
    assert [row["quantities"]["alpha"][k] for k in ("lower", "median", "upper")] == pytest.approx(list(expected))
    assert row["n_runs"] == 1
    assert row["quantities"]["E"]["unit"] == "nats per token"


def test_a_table_lines_up_under_its_header() -> None:
    lines = Table("caption", ("name", "n\nunit", "what"), (("a", "1.5\n[1, 2]", "x"), ("long name", "-", "1"))).text()
    assert lines.splitlines() == [
        "caption",
        "name            n  what",
        "             unit",
        "---------  ------  ----",
        "a             1.5  x",
        "           [1, 2]",
        "long name       -  1",
    ]


def test_what_has_no_page_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="no page for a dict"):
        _show.text({})
