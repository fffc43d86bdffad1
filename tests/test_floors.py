"""The house keeps its floors: who may import whom, how large files are, what a registry finds."""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "bayescale").rglob("*.py"))


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("bayescale", cache_dir=None)


def test_a_file_imports_only_from_floors_below_its_own() -> None:
    """In a process of its own: in this one, the linter would switch off the loggers that other tests listen to."""
    linter = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(linter, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_has_a_floor(graph: grimp.ImportGraph) -> None:
    """The layers of the contract name every room, so that a new one cannot stand beside the house."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    layers = text[text.index("layers = [") :]
    rooms = graph.find_children("bayescale")
    assert [room for room in rooms if room not in layers] == []


@pytest.mark.parametrize(
    "room", ["runs", "laws", "links", "model", "inference", "posterior", "frontier", "decision", "report"]
)
def test_no_file_imports_its_own_front_door(room: str, graph: grimp.ImportGraph) -> None:
    door = f"bayescale.{room}"
    inside = graph.find_descendants(door)
    assert graph.find_modules_that_directly_import(door) & inside == set()


def test_only_the_command_line_imports_the_roof(graph: grimp.ImportGraph) -> None:
    importers = graph.find_modules_that_directly_import("bayescale")
    assert {name for name in importers if not name.startswith(("bayescale.cli", "bayescale._cli_"))} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_has_at_most_300_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 300


@pytest.mark.parametrize(
    ("word", "rooms"),
    [
        ("import arviz", {"posterior"}),
        ("numpyro.sample", {"model"}),
        ("numpyro.plate", {"model"}),
        ("matplotlib", {"report", "_cli_demo.py"}),
        ("typer", {"cli.py", *(path.name for path in (ROOT / "bayescale").glob("_cli_*.py"))}),
    ],
)
def test_a_word_is_spoken_in_its_room_only(word: str, rooms: set[str]) -> None:
    spoken = {path.relative_to(ROOT / "bayescale").parts[0] for path in FILES if word in path.read_text("utf-8")}
    assert spoken <= rooms


def test_arviz_is_imported_in_one_file() -> None:
    importers = [path.name for path in FILES if "import arviz" in path.read_text("utf-8")]
    assert importers == ["_arviz.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_code_is_read_from_data(path: Path) -> None:
    """No pickle, no eval or exec, no text that pandas evaluates."""
    tree = ast.parse(path.read_text("utf-8"))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    called |= {n.func.attr for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    assert not imported & {"pickle", "cloudpickle", "joblib", "dill"}
    assert not called & {"eval", "exec", "query"}
