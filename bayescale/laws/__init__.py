"""Scaling laws, one a file: the folder is the registry."""

from pathlib import Path

from bayescale import _folder
from bayescale.laws._law import Law

__all__ = ["Law", "get", "names"]


def names() -> list[str]:
    """Names of the laws in this folder, as ``--law`` and a saved fit know them."""
    return _folder.names(Path(__file__).parent)


def get(name: str) -> Law:
    """The law of that name; ValueError lists the known ones."""
    return _folder.get(name, __name__, Path(__file__).parent, Law)()  # pyright: ignore[reportAbstractUsage]
