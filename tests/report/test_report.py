"""A report: the answer first, all that it rests on below, nothing from a table run as code, one file or none."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report_names import EVIL

import bayescale as bs
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import names, published
from bayescale.report import as_html, as_markdown
from bayescale.report.document import Document, Section
from bayescale.report.reports import document
from bayescale.report.tables import Notes, Table

HOSTILE = [
    EVIL,
    '"><img src=x onerror=alert(1)>',
    "line\none\r\ntwo",
    "\u202egnp.exe",
    "x" * 10_000,
    "</script><b>",
    "a|b",
]
SECTIONS = ["recommendation", "ahead", "frontier", "forecast", "regret", "sensitivity", "data", "law", "diagnostics"]
SECTIONS += ["assumptions", "checklist", "provenance"]


class Page(HTMLParser):
    """What a browser makes of a page: elements with their attributes, and text by where it stands."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.words, self.inside = [], ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def ids(self, tag: str) -> list[str]:
        return [str(attrs.get("id")) for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def whole(passed: Posterior) -> str:
    return as_html.write(document(passed))


@pytest.fixture(scope="module")
def plan(passed: Posterior) -> bs.Plan:
    return bs.recommend(passed, 1e23)


def test_a_report_of_a_fit_has_every_section_in_the_order_of_reading(whole: str) -> None:
    assert Page(whole).ids("section") == SECTIONS


def test_links_in_the_page_lead_to_its_sections(whole: str) -> None:
    links = [attrs["href"] for tag, attrs in Page(whole).elements if tag == "a"]
    assert links == [f"#{name}" for name in SECTIONS]


def test_the_answer_is_three_sentences_with_intervals_their_kind_and_the_health_of_the_fit(passed: Posterior) -> None:
    answer = document(passed).answer
    assert len(answer) == 3
    assert re.search(r"At 1e22 FLOP the loss is lowest with [\d.]+ B \[[\d.]+ B, [\d.]+ B\] parameters", answer[0])
    assert "90 % equal-tailed" in answer[0]
    assert re.search(r"mean loss is then [\d.]+ \[[\d.]+, [\d.]+\] nats per token", answer[1])
    assert "passed its diagnostics" in answer[2]
    assert "times the largest run" in answer[2]


def test_the_answer_of_a_frontier_is_that_of_its_budgets(passed: Posterior) -> None:
    """N_opt is the quantile over the draws of Hoffmann et al.'s closed form (arXiv 2203.15556, equation 4)."""
    t = passed.coefficients()
    g = (t["alpha"] * t["A"] / (t["beta"] * t["B"])) ** (1 / (t["alpha"] + t["beta"]))
    n = np.quantile(g * (3e21 / 6) ** (t["beta"] / (t["alpha"] + t["beta"])), [0.5, 0.05, 0.95]) / 1e9
    answer = document(bs.allocate(passed, [3e21, 3e22])).answer[0]
    found = re.search(r"At 3e21 FLOP .*? with ([\d.]+) B \[([\d.]+) B, ([\d.]+) B\] parameters", answer)
    assert found is not None
    assert [float(x) for x in found.groups()] == pytest.approx(list(n), rel=5e-3)
    assert "at 3e22 FLOP" in answer


def test_the_first_words_of_a_page_are_that_the_fit_failed(failed: Posterior) -> None:
    for result in (failed, bs.allocate(failed, 1e23), bs.recommend(failed, 1e23)):
        found = document(result)
        assert found.warning is not None
        assert found.warning.startswith("FAIL: r_hat 1.23 (limit 1.01)")
        body = as_html.write(found).split("<body>")[1]
        assert re.sub(r"<[^>]*>", "", body).strip().startswith("FAIL: r_hat")
        assert as_markdown.write(found).startswith("**FAIL: r")
        assert "FAILED its diagnostics" in found.answer[2]


def test_a_table_that_fails_the_gate_says_so_first(drifting: Posterior) -> None:
    bad = dataclasses.replace(drifting.gate[0], status="FAIL")
    found = document(bs.allocate(dataclasses.replace(drifting, gate=(bad,)), 1e25))
    assert found.warning is not None
    assert "fails the gate" in found.warning
    assert "FAIL the gate" in found.answer[2]


def test_the_answer_of_a_plan_is_the_plan(plan: bs.Plan) -> None:
    first, second, third = document(plan).answer
    assert first.startswith("Train ")
    assert "90 % equal-tailed" in first
    assert re.search(r"mean loss is expected at [\d.]+ \[[\d.]+, [\d.]+\], a run like it at", second)
    assert "times the largest run" in third
    assert [s.name for s in document(plan).sections][:6] == [
        "recommendation",
        "ahead",
        "frontier",
        "regret",
        "sensitivity",
        "decision",
    ]


def test_nothing_in_a_page_is_fetched(whole: str) -> None:
    page = Page(whole)
    links = [v for _, attrs in page.elements for k, v in attrs.items() if k in ("src", "href", "action", "data")]
    assert {link.split(",")[0] if link.startswith("data:") else link[0] for link in links} == {
        "data:image/svg+xml;base64",
        "#",
    }
    assert "url(" not in whole
    assert "@import" not in whole
    policy = next(attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'; img-src data:;")


@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_label_is_text_wherever_it_stands(label: str) -> None:
    parts = [Notes(label, (label,)), Table(label, (label, "x"), ((label, "1"),))]
    made = Document(label, label, (label,), [Section("result", label, parts)])
    plain = as_html.write(Document("t", "w", ("a",), [Section("result", "h", [Notes("n", ("l",)), parts[1]])]))
    page = Page(as_html.write(made))
    allowed = {tag for tag, _ in Page(plain).elements} | {"wbr", "br"}
    assert {tag for tag, _ in page.elements} <= allowed
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not any(k.startswith("on") for _, attrs in page.elements for k in attrs)
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in label)
    assert page.text.count(shown) >= 5
    assert "\u202e" not in page.text
    text = as_markdown.write(made)
    assert "\u202e" not in text
    assert not re.search(r"(?<!\\)<(?!br>)", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3] * len(rows)


def test_a_group_with_an_evil_name_is_reported_as_text(grouped: Posterior) -> None:
    page = Page(as_html.write(document(bs.allocate(grouped, 1e22))))
    assert page.text.count("<script>alert(") > 3
    scripts = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert scripts == ["application/json", None]  # the draws, which do not run, and the page's own


def test_figures_are_pictures_with_words_and_without_fonts(whole: str) -> None:
    import base64

    pictures = [attrs for tag, attrs in Page(whole).elements if tag == "img"]
    assert len(pictures) >= 5
    for attrs in pictures:
        svg = base64.b64decode(attrs["src"].split(",")[1]).decode()
        assert attrs["alt"]
        assert "<text" not in svg  # letters are outlines
        assert "<svg" in svg


def test_the_same_result_gives_the_same_file(passed: Posterior, whole: str) -> None:
    assert as_html.write(document(passed)) == whole


def test_the_checklist_is_filled_in_from_the_fit_and_its_notes(passed: Posterior) -> None:
    noted = dataclasses.replace(passed, metadata={"evaluation_set": "C4, 10,000 documents"})
    section = next(s for s in document(noted).sections if s.name == "checklist")
    (table,) = section.parts
    assert isinstance(table, Table)
    rows = {item: answer for _, item, answer in table.rows}
    assert {group[0] for group, _, _ in table.rows} == {"1", "2", "3", "4"}
    assert rows["number of models"] == "12 runs"
    assert rows["evaluation set"] == "C4, 10,000 documents"
    assert "metadata={'architecture': ...}" in rows["architecture"]
    assert "C = 6 N D" in rows["compute"]


def test_the_command_of_a_report_makes_the_fit_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The posterior that the command writes has the same draws."""
    import shlex

    from command_line import bayescale

    from bayescale.report.reproduce import fit_command

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bs, "use_compile_cache", lambda: None)
    table = bs.simulate(
        published("besiroglu-2024"), {"n_params": [1e8, 1e9, 1e8, 1e9], "n_tokens": [1e9, 1e9, 1e10, 1e10]}, seed=1
    )
    table = table.rename(columns={"n_params": "how large"}).assign(day=["a", "a", "b", "b"])
    table.to_csv("my runs.csv", index=False)
    runs = bs.read_runs("my runs.csv", columns={"n_params": "how large"}, rule=bs.FlopsRule(6.2))
    first = bs.fit(
        runs.without([runs.table["run"][1]]),
        bs.laws.get("chinchilla"),
        drift=None,
        priors={"alpha": bs.LogNormal(0.3, 0.1), "beta": bs.Fixed(0.4)},
        engine=bs.FromPrior(draws=4000),
        shocks=[bs.Shocks("day", tilt=True)],
        seed=3,
    )
    command, unsaid = fit_command(first)
    assert unsaid == []
    done = bayescale(*shlex.split(command)[1:])
    assert done.exit_code == 3, done.output
    again = bs.load("fit.nc")
    assert again.info["table_hash"] == first.info["table_hash"]
    assert np.array_equal(again.coefficients()["A"], first.coefficients()["A"])
    assert again.model == first.model
    assert "rows of one day share a shock of log loss" in as_markdown.write(document(first))


def test_a_law_without_an_optimum_is_reported_by_its_letters() -> None:
    """Clark et al.'s law reads no tokens."""
    law = next(found for found in map(published, names()) if "n_tokens" not in found.law.inputs)
    found = document(law)
    assert "There is no compute-optimal size: Routed reads no tokens" in found.answer[1]
    assert [section.name for section in found.sections] == SECTIONS[-5:]


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_file_is_written_whole_or_not_at_all(name: str, passed: Posterior, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / name
    assert bs.write_report(bs.allocate(passed, 1e22), path) == path
    before = path.read_text("utf-8")
    assert [p.name for p in tmp_path.iterdir()] == [name]

    def fails(*_: object) -> str:
        raise OSError("no room")

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises(OSError, match="no room"):
        bs.write_report(bs.allocate(passed, 1e22), path)
    assert path.read_text("utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("result", "name", "problem"),
    [
        ("fit", "report.docx", r"written as \.html, \.md.*not as '\.docx'"),
        ("fit", "nowhere/report.html", "does not exist; make it"),
        ({}, "report.html", "no page for a dict"),
    ],
)
def test_what_cannot_be_written_is_refused(result, name: str, problem: str, passed: Posterior, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=problem):
        bs.write_report(passed if result == "fit" else result, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
