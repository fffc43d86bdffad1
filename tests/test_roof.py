"""The front door: every name is there, and opening it costs nothing."""

import importlib.metadata
import subprocess
import sys

import pytest

import bayescale as bs

# arviz_base leaves lazy proxies called jax and numpyro in sys.modules, so the parts that load are looked for.
HEAVY = ("jaxlib", "numpyro.infer", "arviz_stats", "arviz_base", "matplotlib.pyplot", "pandas", "xarray", "scipy.stats")


def loaded(code: str) -> set[str]:
    """Modules that a new interpreter holds after running ``code``."""
    script = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", bs.__all__)
def test_every_name_of_the_stub_is_there(name: str) -> None:
    thing = getattr(bs, name)
    assert thing.__name__.rsplit(".", 1)[-1] == name
    assert thing.__doc__


def test_the_version_is_that_of_the_distribution() -> None:
    assert bs.__version__ == importlib.metadata.version("bayescale")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="alocate"):
        bs.alocate  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert not loaded("import bayescale").intersection(HEAVY)


def test_reading_a_table_does_not_import_jax() -> None:
    """A table that is refused is refused at once."""
    assert not loaded("import bayescale as bs; bs.read_runs").intersection({"jaxlib", "numpyro.infer", "xarray"})


@pytest.mark.parametrize("argv", [["--help"], ["fit", "--help"], ["--version"], ["nonsense"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["bayescale", *{argv!r}]
from bayescale.cli import main
try:
    main()
except SystemExit:
    pass"""
    assert not loaded(code).intersection({*HEAVY, "numpy"})
