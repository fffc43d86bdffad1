"""Claim: a law is one new file: dropped into the folder it is listed, documented, fitted and held to the contract."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayescale

PACKAGE = Path(bayescale.__file__).parent
SCRIPT = """
import json, sys
import bayescale as bs
from typer.testing import CliRunner
from bayescale.cli import app

def out(*words):
    done = CliRunner().invoke(app, [str(w) for w in words], catch_exceptions=False)
    return done.stdout

runs, fit = sys.argv[1:]
listed = [law["name"] for law in json.loads(out("laws", "--json"))]
page = out("laws")
out("fit", runs, "-o", fit, "--law", "mine", "--engine", "prior", "--draws", 50, "--drift", "none")
print(json.dumps([listed, page, type(bs.load(fit).law).__name__, bs.__file__]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file in its folder of laws."""
    folder = tmp_path_factory.mktemp("with_a_law") / "bayescale"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (PACKAGE / "laws/chinchilla.py").read_text("utf-8")
    (folder / "laws/mine.py").write_text(text.replace("Chinchilla", "Mine"), "utf-8")
    return folder


def run(package: Path, *words: object) -> str:
    """A Python process in which that copy is the package."""
    there = os.environ | {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "cache")}
    words = (sys.executable, *map(str, words))
    where = package.parent  # the first place that modules are looked for
    return subprocess.run(words, env=there, cwd=where, capture_output=True, text=True, timeout=300, check=True).stdout


def test_a_new_file_is_listed_documented_and_fitted(package: Path, tmp_path: Path) -> None:
    said = run(package, "-c", SCRIPT, PACKAGE / "runs/data/simulated.csv", tmp_path / "fit.nc")
    listed, page, law, file = json.loads(said.splitlines()[-1])
    assert Path(file).parent == package
    assert listed == sorted([*bayescale.laws.names(), "mine"])
    assert "## mine\n" in page
    assert law == "Mine"


def test_a_new_file_is_held_to_the_contract(package: Path) -> None:
    """The contract's tests, which name no law, collect it."""
    tests = Path(__file__).with_name("test_laws.py")
    found = run(package, "-m", "pytest", tests, "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider")
    for claim in (
        "test_contract[mine-",
        "test_spending_more_never_hurts[mine-n_params]",
        "test_a_law_is_a_value[mine]",
    ):
        assert claim in found
