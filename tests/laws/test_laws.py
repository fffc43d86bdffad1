"""Claims: every law in the folder keeps the contract, and a law that does not is caught."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
import law_contract
import pytest
from law_contract import CLAIMS

from bayescale import _folder, laws
from bayescale.laws import Law
from bayescale.model.noise import Gaussian, StudentT

LAWS = {name: laws.get(name) for name in laws.names()}
SPENT = [pytest.param(law, x, id=f"{name}-{x}") for name, law in LAWS.items() for x in law.monotone]
EACH = [pytest.param(law, id=name) for name, law in LAWS.items()]

# Names of results, of dimensions and of statistics in arviz and xarray: a site of that name shadows them.
BREAK_ARVIZ = {"alpha", "mean", "std", "var", "median", "data", "name", "chain", "draw", "sample", "kind", "groups"}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(("law", "name"), SPENT)
def test_spending_more_never_hurts(law: Law, name: str) -> None:
    law_contract.spending_more_never_hurts(law, name)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("law", EACH)
def test_contract(law: Law, claim: str) -> None:
    CLAIMS[claim](law)


@pytest.mark.parametrize("law", EACH)
def test_everything_is_named_explained_and_in_a_unit(law: Law) -> None:
    assert (type(law).__doc__ or "").splitlines()[0].startswith("L(")  # the equation is the first line
    for kind in (law.parameters, law.coefficients):
        assert len({q.name for q in kind}) == len(kind) > 0
        for q in kind:
            assert q.name.isidentifier()
            assert q.symbol.startswith("$")
            assert q.symbol.endswith("$")
            assert q.meaning.strip()
            assert q.unit.strip()
    assert set(law.domain) == set(law.inputs)
    assert set(law.monotone) <= set(law.inputs)
    assert {law.size, *law.conditions} <= set(law.inputs) <= {law.size, "n_tokens", *law.conditions}
    for name, (low, high) in law.domain.items():
        assert 0 <= low < high
        assert low <= law.conditions[name] <= high if name in law.conditions else low > 0


@pytest.mark.parametrize("law", EACH)
def test_site_names_break_nothing(law: Law) -> None:
    """Neither arviz, nor the sites of the noise, of a population or of the runs."""
    sites = [p.site for p in law.parameters]
    assert not BREAK_ARVIZ.intersection(sites)
    noise = {x for kind in (StudentT, Gaussian) for p in kind.parameters for x in (p.name, p.site)}
    own = {*sites, *(p.name for p in law.parameters), *(q.name for q in law.coefficients)}
    assert not own & {*noise, "log_loss", "population", "run", "group", "loss"}
    assert not [name for name in own if name.endswith(("_mean", "_sd", "_offset"))]


@pytest.mark.parametrize("law", EACH)
def test_a_law_is_a_value(law: Law) -> None:
    """Equal and hashable, so that one compiled program serves all fits of it."""
    again = type(law)()
    assert again == law
    assert hash(again) == hash(law)
    with pytest.raises(AttributeError):
        law.extra = 1  # type: ignore[attr-defined]


WRONG_LAW = '''
"""A law with one mistake."""
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from bayescale.laws._law import Law
from bayescale.laws.chinchilla import Chinchilla

right = Chinchilla()


@dataclass(frozen=True)
class Wrong(Law):
    inputs = right.inputs
    parameters = right.parameters
    coefficients = right.coefficients
    monotone = right.monotone
    domain = right.domain

    def loss(self, letters, run):
        return right.loss(letters, run)

    def floor(self, letters):
        return right.floor(letters)

    def to_coefficients(self, values, reference):
        return right.to_coefficients(values, reference)

    def to_parameters(self, letters, reference):
        return right.to_parameters(letters, reference)

'''

MISTAKES = {
    "rises_with_n_params": (
        "def loss(self, c, run): return right.loss(c | {'alpha': -0.01 * c['alpha'], 'A': 1.0}, run)",
        "spending_more_never_hurts",
    ),
    "below_its_floor": ("def floor(self, c): return 1.001 * c['E']", "loss_stays_above_its_floor"),
    "overflows": (
        "def loss(self, c, run): return right.loss(c, run) + jnp.exp(run['n_tokens'])",
        "loss_is_finite_and_positive",
    ),
    "kink_without_slope": (
        "def loss(self, c, run): return right.loss(c, run) + 0 * jnp.sqrt(run['n_params'] - run['n_params'])",
        "gradient_is_finite",
    ),
    "sums_over_runs": ("def loss(self, c, run): return right.loss(c, run).mean(-1)", "all_methods_broadcast"),
    "inverse_a_millionth_off": (
        "def to_parameters(self, c, r): return right.to_parameters(c | {'A': c['A'] * (1 + 1e-6)}, r)",
        "parameters_come_back",
    ),
    "single_precision_under_jit": (
        "def floor(self, c): return jnp.asarray(c['E'], jnp.float32) if hasattr(c['E'], 'aval') else c['E']",
        "numpy_and_jax_agree",
    ),
    "another_alpha": (
        "def to_coefficients(self, v, r): return right.to_coefficients(v, r) | {'alpha': 2 * v['alpha']}",
        "shared_names_are_one_quantity",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_law_fails(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with one mistake in it, dropped into a folder of laws, breaks the claim that is about it."""
    text, claim = MISTAKES[mistake]
    package = f"laws_{mistake}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "wrong.py").write_text(f"{WRONG_LAW}    {text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    law = _folder.get("wrong", package, folder, Law)()
    claims = CLAIMS | {"spending_more_never_hurts": partial(law_contract.spending_more_never_hurts, name="n_params")}
    with pytest.raises(AssertionError):
        claims[claim](law)


def test_the_right_law_in_that_folder_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file fails for its mistake, not for where it lies."""
    folder = tmp_path / "laws_right"
    folder.mkdir()
    (folder / "wrong.py").write_text(WRONG_LAW)
    monkeypatch.syspath_prepend(tmp_path)
    law = _folder.get("wrong", "laws_right", folder, Law)()
    law_contract.spending_more_never_hurts(law, "n_params")
    for claim in CLAIMS.values():
        claim(law)
