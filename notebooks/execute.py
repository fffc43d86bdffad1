"""Runs notebooks and keeps their outputs: ``uv run python notebooks/execute.py [NOTEBOOK ...]``, all unless named.

What is kept says nothing of the machine: no times, no paths, no progress, one kernel's name. An output that
holds one of the machine's own folders is an error.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(path: Path) -> None:
    """Run a notebook from its first cell, and write it back where nothing failed."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, record_timing=False).execute(cwd=str(HERE))
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for place, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = f"cell-{place}", {}
        if cell.cell_type == "code":
            cell["outputs"] = [output for output in cell.outputs if not is_progress(output)]
    refuse_folders(path, notebook)
    nbformat.write(notebook, path)


def is_progress(output: Any) -> bool:
    """Whether it is what a bar left, or a log's line: those are of one machine and one day."""
    bar = output.get("output_type") == "display_data" and "HTML object" in output["data"].get("text/plain", "")
    return bar or output.get("name") == "stderr"


def refuse_folders(path: Path, notebook: Any) -> None:
    """Fail where an output names a folder of this machine."""
    text = str([cell.get("outputs") for cell in notebook.cells])
    found = [str(folder) for folder in (Path.home(), HERE.parent, Path("/tmp")) if f"{folder}/" in text]
    if found:
        raise SystemExit(f"{path.name}: an output names {', '.join(found)}; print less of it.")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(HERE.glob("*.ipynb")):
        execute(path)
