"""Links from loss to downstream score, one a file: the folder is the registry."""

from pathlib import Path

from bayescale import _folder
from bayescale.links._link import Link

__all__ = ["Link", "get", "names"]


def names() -> list[str]:
    """Names of the links in this folder, as ``--link`` and saved scores know them."""
    return _folder.names(Path(__file__).parent)


def get(name: str) -> Link:
    """The link of that name; ValueError lists the known ones."""
    return _folder.get(name, __name__, Path(__file__).parent, Link)()  # pyright: ignore[reportAbstractUsage]
