"""A bar where somebody is watching, nothing where nobody is."""

import io
import sys
from types import SimpleNamespace

import IPython
import IPython.display
import pytest

from bayescale.inference._progress import bar


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_written_where_output_is_redirected(capfd: pytest.CaptureFixture[str]) -> None:
    with bar() as progress:
        progress(1, 2)
        progress(2, 2)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_the_share_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen, results = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", results)
    with bar() as progress:
        progress(3, 4)
    assert "75%" in screen.getvalue()
    assert results.getvalue() == ""


def test_a_notebook_is_told_each_change_once_and_cleared_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda html: shown.append(html.data))
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "display", lambda html, display_id: handle)

    def interrupted() -> None:
        with bar() as progress:
            for done in (1, 1, 1, 2):
                progress(done, 4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [text.split(" sampling")[0] for text in shown] == [
        "<progress value='1' max='4'></progress>",
        "<progress value='2' max='4'></progress>",
        "",
    ]
