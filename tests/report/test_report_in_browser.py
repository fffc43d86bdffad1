"""A report in a real browser: its planner computes what Python does, nothing overflows, nothing foreign runs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from report_names import EVIL

import bayescale as bs
from bayescale.decision.risk import CVaR, Mean
from bayescale.posterior.posterior import Posterior
from bayescale.report import words

SET = """(n, v) => { const e = document.getElementById(n); e.value = v;
  e.dispatchEvent(new Event('input', {bubbles: true})); }"""
ROUNDED = 0.0051  # a loss is shown to two places where its interval is wide
# What reaches beyond the window, other than inside a box that scrolls.
BEYOND = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, svg') && !e.hidden &&
  e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
# Blocks of the page that lie over one another.
OVER = """[...document.querySelectorAll('main > *, section > *')].filter(e => e.offsetHeight &&
  e.nextElementSibling && e.nextElementSibling.offsetHeight &&
  e.getBoundingClientRect().bottom > e.nextElementSibling.getBoundingClientRect().top + 1)
  .map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def few(passed: Posterior) -> Posterior:
    """As many draws as a page holds, so that none is left out."""
    import dataclasses

    tree = passed.tree.map_over_datasets(lambda d: d.isel(draw=slice(0, 300)) if "draw" in d.dims else d)
    return dataclasses.replace(passed, tree=tree)


@pytest.fixture(scope="module")
def page(few: Posterior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bs.write_report(bs.allocate(few, 1e22), tmp_path_factory.mktemp("page") / "report.html")


def put(browser: Browser, name: str, value: object) -> None:
    browser.run(f"({SET})('planner-{name}', '{value}')")


def shown(browser: Browser, name: str) -> str:
    return browser.run(f"document.getElementById('planner-{name}').textContent")


def value(text: str) -> float:
    """The first number of a text, with its magnitude."""
    number, _, rest = text.replace(",", "").partition(" ")
    return float(number) * {"T": 1e12, "B": 1e9, "M": 1e6}.get(rest[:1], 1.0)


@pytest.mark.parametrize("tail", [1.0, 0.25])
def test_the_slider_shows_what_python_recommends(tail: float, few: Posterior, page: Path, browser: Browser) -> None:
    browser.open(page)
    put(browser, "risk", f"{tail:g}")
    first = int(browser.run("document.getElementById('planner-budget').value"))
    assert shown(browser, "flop") == "1e22 FLOP"
    for step in (first, first + 3):
        put(browser, "budget", step)
        flop = value(shown(browser, "flop"))
        plan = bs.recommend(few, flop, risk=CVaR(tail) if tail < 1 else Mean())
        assert value(shown(browser, "n")) == pytest.approx(plan.n_params, rel=0.01)
        assert value(shown(browser, "d")) == pytest.approx(plan.n_tokens, rel=0.01)
        assert value(shown(browser, "loss")) == pytest.approx(np.median(plan.reach["mean"]), abs=ROUNDED)
        assert value(shown(browser, "regret")) == pytest.approx(plan.regret.mean(), rel=0.03)
        n_opt = bs.allocate(few, flop).n_opt().to_numpy()[:, 0]
        best = words.interval(*np.quantile(n_opt, [0.5, 0.05, 0.95]), words.count)
        assert shown(browser, "best") == best
        assert shown(browser, "factor").startswith(words.number(flop / few.largest["flop"]))
    assert browser.problems == []


def test_a_size_of_ones_own_is_judged_and_a_bad_one_is_named(few: Posterior, page: Path, browser: Browser) -> None:
    browser.open(page)
    put(browser, "size", "10B")
    assert shown(browser, "n") == "10.0 B"
    row = next(r for r in bs.recommend(few, 1e22, compare=[1e10]).to_dict()["rivals"] if r["rule"].startswith("given"))
    assert value(shown(browser, "loss")) == pytest.approx(row["loss"]["median"], abs=ROUNDED)
    put(browser, "size", "ten")
    assert "a number from" in shown(browser, "wrong")


def test_keys_move_the_slider(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.run("document.getElementById('planner-budget').focus()")
    before = shown(browser, "n")
    for kind in ("keyDown", "keyUp"):
        browser("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert shown(browser, "flop") == "1.5e22 FLOP"
    assert shown(browser, "n") != before


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows_or_overlaps(width: int, page: Path, browser: Browser) -> None:
    browser.open(page, width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(BEYOND) == []
    assert browser.run(OVER) == []


def test_names_of_groups_are_not_run(grouped: Posterior, tmp_path: Path, browser: Browser) -> None:
    browser.open(bs.write_report(bs.allocate(grouped, 1e22), tmp_path / "report.html"), 390)
    put(browser, "group", 1)
    text = browser.run("[...document.getElementById('planner-group').options].map(o => o.textContent)")
    assert EVIL in text
    assert browser.run(BEYOND) == []
    assert browser.problems == []
