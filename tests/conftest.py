"""Fixtures and settings that all tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("bayescale", deadline=None)  # the first example of a test may compile or import
settings.load_profile("bayescale")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public tables and cases beside the repository."""
    folder = (Path(__file__).parents[1] / "../shared").resolve()
    if not folder.is_dir():
        pytest.skip("the folder shared/ beside the repository is missing: its tables and cases are not tested")
    return folder


@pytest.fixture(scope="session")
def compile_cache(request: pytest.FixtureRequest) -> Path:
    """Compiled programs are kept between test runs, in pytest's own cache folder."""
    from bayescale.inference.devices import use_compile_cache

    return use_compile_cache(request.config.cache.mkdir("compiled"))


@pytest.fixture(scope="module")
def no_lasting_cache() -> Iterator[None]:
    """Commands keep compiled programs in the user's own folder; tests leave that alone."""
    import bayescale as bs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bs, "use_compile_cache", lambda: None)
        yield
