"""Claims: the folder is the registry: one file, one law, one name."""

from pathlib import Path

import pytest

from bayescale import _folder, laws
from bayescale.laws import Law

TWO = "from bayescale.laws.chinchilla import Chinchilla as Right\nfrom bayescale.laws import Law\n"


def folder_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, **files: str) -> Path:
    folder = tmp_path / package
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_every_public_file_is_a_law_and_every_law_a_file() -> None:
    files = {p.stem for p in Path(laws.__file__).parent.glob("*.py") if not p.stem.startswith("_")}
    assert set(laws.names()) == files
    assert "chinchilla" in files
    assert laws.names() == sorted(laws.names())
    for name in files:
        law = laws.get(name)
        assert isinstance(law, Law)
        assert type(law).__module__ == f"bayescale.laws.{name}"


def test_an_unknown_name_lists_the_known_ones_with_a_hint() -> None:
    with pytest.raises(ValueError, match=r"Unknown law 'chinchila'; known: .*chinchilla.* Did you mean 'chinchilla'\?"):
        laws.get("chinchila")
    with pytest.raises(ValueError, match=r"known: .*chinchilla") as caught:
        laws.get("zzz")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["_law", "__init__", "_published", "os", "../laws/chinchilla", "chinchilla.Chinchilla", ""]
)
def test_only_names_of_public_files_are_imported(name: str) -> None:
    with pytest.raises(ValueError, match="Unknown law"):
        laws.get(name)


def test_a_file_with_two_laws_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{TWO}class One(Law): ...\nclass Other(Law): ...\n"
    folder = folder_of(tmp_path, monkeypatch, "two_laws", both=text)
    with pytest.raises(TypeError, match=r"two_laws\.both must define exactly one Law, found 2"):
        _folder.get("both", "two_laws", folder, Law)


def test_an_imported_law_is_not_the_files_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, monkeypatch, "own_law", none=TWO, one=f"{TWO}class Own(Law): ...\n")
    with pytest.raises(TypeError, match="exactly one Law, found 0"):
        _folder.get("none", "own_law", folder, Law)
    assert _folder.get("one", "own_law", folder, Law).__name__ == "Own"
    assert _folder.names(folder) == ["none", "one"]
