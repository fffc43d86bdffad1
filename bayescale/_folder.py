"""A folder as a registry: one public module, one class, one name on the command line."""

from __future__ import annotations

import difflib
import importlib
import inspect
from pathlib import Path


def names(folder: Path) -> list[str]:
    """Names of the registered things: the folder's modules that do not start with ``_``."""
    return sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))


def get[T](name: str, package: str, folder: Path, base: type[T]) -> type[T]:
    """The one final subclass of ``base`` that the module ``name`` defines.

    Raises
    ------
    ValueError
        If no module has that name; the message lists those there are.
    TypeError
        If the module does not define exactly one subclass of ``base``.
    """
    known = names(folder)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown {base.__name__.lower()} {name!r}; known: {', '.join(known)}.{hint}")
    module = importlib.import_module(f"{package}.{name}")
    found = [
        c
        for c in vars(module).values()
        if inspect.isclass(c) and issubclass(c, base) and c is not base and c.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must define exactly one {base.__name__}, found {len(found)}.")
    return found[0]
