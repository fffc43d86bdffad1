"""The notebooks are stored as executed, and say nothing of the machine. `.ci/run` executes them."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def notebook(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text("utf-8"))


def test_every_cell_was_run_in_order(notebook: dict[str, Any]) -> None:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert code[-1]["outputs"]


def test_no_cell_failed_or_kept_what_is_of_one_machine(notebook: dict[str, Any]) -> None:
    """No error, no log, no times of execution, no folder of somebody's."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"] == []
    assert [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]] == []
    shown = json.dumps([output.get("data", output.get("text")) for output in outputs])
    assert [
        name for name in ("tmp", "home", "root", "Users") for slash in ("/", "\\\\") if slash + name + slash in shown
    ] == []


def test_a_notebook_asks_one_question(notebook: dict[str, Any]) -> None:
    """Its title, and under it the question that it answers, in bold."""
    title, _, question = "".join(notebook["cells"][0]["source"]).split("\n")[:3]
    assert title.startswith("# ")
    assert question.startswith("**")
    assert question.endswith("?**")
