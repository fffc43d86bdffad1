"""Claim: a law is one new file: dropped into the folder it is listed, documented, fitted and held to the contract.

The law is the example of the page on adding one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import bayescale

PACKAGE = Path(bayescale.__file__).parent
PAGE = Path(__file__).parents[2] / "docs/adding-a-law.md"
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
out("fit", runs, "-o", fit, "--law", "batch", "--engine", "prior", "--draws", 50, "--drift", "none")
print(json.dumps([listed, page, type(bs.load(fit).law).__name__, bs.__file__]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file in its folder of laws."""
    folder = tmp_path_factory.mktemp("with_a_law") / "bayescale"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = re.search(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert text
    (folder / "laws/batch.py").write_text(text[1], "utf-8")
    return folder


def run(package: Path, *words: object) -> str:
    """A Python process in which that copy is the package."""
    there = os.environ | {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "cache")}
    words = (sys.executable, *map(str, words))
    where = package.parent  # the first place that modules are looked for
    return subprocess.run(words, env=there, cwd=where, capture_output=True, text=True, timeout=300, check=True).stdout


def test_a_new_file_is_listed_documented_and_fitted(package: Path, tmp_path: Path) -> None:
    runs = pd.read_csv(PACKAGE / "runs/data/simulated.csv").assign(batch_tokens=5e5)
    runs.to_csv(tmp_path / "runs.csv", index=False)
    said = run(package, "-c", SCRIPT, tmp_path / "runs.csv", tmp_path / "fit.nc")
    listed, page, law, file = json.loads(said.splitlines()[-1])
    assert Path(file).parent == package
    assert listed == sorted([*bayescale.laws.names(), "batch"])
    assert "## batch\n" in page
    assert law == "Batch"


def test_a_new_file_is_held_to_the_contract(package: Path) -> None:
    """The contract's tests, which name no law, find it, and it passes them."""
    tests = Path(__file__).with_name("test_laws.py")
    said = run(package, "-m", "pytest", tests, "-k", "batch", "-v", "-n", "0", "-p", "no:cacheprovider")
    for claim in (
        "test_contract[batch-",
        "test_spending_more_never_hurts[batch-n_params]",
        "test_a_law_is_a_value[batch]",
    ):
        assert claim in said
