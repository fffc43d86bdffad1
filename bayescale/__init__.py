"""Bayesian scaling laws: from a table of finished training runs to the model size and tokens to choose.

The verbs and their nouns, each imported at its first use, so that ``import bayescale`` costs nothing.
"""

from typing import Any

import lazy_loader

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("bayescale")
    return _named(name)
