"""The pages of the documentation: they print what is printed, and their links lead somewhere."""

import re
from pathlib import Path

import pytest
from printed_pages import Near, examples, failures

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda p: p.name)
def test_a_page_prints_what_is_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert failures(page) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_link_leads_to_a_file(page: Path) -> None:
    """As the page lies in the repository; pages that are built are looked for by Sphinx."""
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    there = [link for link in links if "generated/" not in link]
    assert [link for link in there if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("want", "got", "alike"),
    [
        ("N 138 B [28.7 B, 648 B]", "N 141 B  [28.9 B, 650 B]", True),
        ("N 138 B", "N 160 B", False),
        ("N 138 B", "D 138 B", False),
        ("first\n...\n", "first\nsecond\nthird\n", True),
        ("first\n...\nthird 3\n", "first\nsecond\nthird 4\n", False),
        ("second\n...\n", "first\nsecond\n", False),
        ("first\n", "first\nsecond\n", False),
    ],
)
def test_what_counts_as_printed_alike(want: str, got: str, alike: bool) -> None:
    assert Near().check_output(want, got, 0) is alike
