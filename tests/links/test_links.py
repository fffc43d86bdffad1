"""Claims: every link in the folder keeps the contract, and a link that does not is caught."""

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from link_contract import CLAIMS

from bayescale import _folder, links
from bayescale.links import Link

EACH = [pytest.param(links.get(name), id=name) for name in links.names()]


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("link", EACH)
def test_contract(link: Link, claim: str) -> None:
    CLAIMS[claim](link)


@pytest.mark.parametrize("link", EACH)
def test_everything_is_named_explained_and_in_a_unit(link: Link) -> None:
    assert (type(link).__doc__ or "").splitlines()[0].startswith("S(L)")  # the equation is the first line
    for kind in (link.parameters, link.coefficients):
        assert len({q.name for q in kind}) == len(kind) > 0
        for q in kind:
            assert q.name.isidentifier()
            assert q.symbol.startswith("$")
            assert q.symbol.endswith("$")
            assert q.meaning.strip()
            assert q.unit.strip()


@pytest.mark.parametrize("link", EACH)
def test_a_link_is_a_value(link: Link) -> None:
    """Equal and hashable, so that one compiled program serves all fits of it."""
    assert type(link)() == link
    assert hash(type(link)()) == hash(link)
    with pytest.raises(AttributeError):
        link.extra = 1  # type: ignore[attr-defined]


def test_every_public_file_is_a_link_and_an_unknown_name_is_told() -> None:
    files = {p.stem for p in Path(links.__file__).parent.glob("*.py") if not p.stem.startswith("_")}
    assert set(links.names()) == files >= {"exponential", "sigmoid", "log_bleu"}
    with pytest.raises(ValueError, match=r"Unknown link 'sigmoyd'; known: .*Did you mean 'sigmoid'\?"):
        links.get("sigmoyd")


def test_gadres_published_error_of_his_overtrained_model() -> None:
    """arXiv 2403.08540, RedPajama, 17 tasks: 1.4 B parameters at M = 640 have L = 2.52487 and Err = .494."""
    letters = {"epsilon": 0.8570, "k": 2.2065, "gamma": 0.7146}
    assert 1 - links.get("exponential").score(letters, 2.52487) == pytest.approx(0.494, abs=5e-4)


@given(st.floats(-1, -0.01), st.floats(0.5, 1.0), st.floats(0.1, 20), st.floats(0.5, 5))
def test_the_ladders_sigmoid_at_its_middle_and_ends(a: float, b: float, k: float, middle: float) -> None:
    """arXiv 2412.04403: Acc(L0) = b + a / 2, Acc(oo) = a + b, Acc(-oo) = b."""
    link, letters = links.get("sigmoid"), {"a": a, "b": b, "k": k, "L0": middle}
    assert link.score(letters, middle) == pytest.approx(b + a / 2)
    assert link.score(letters, 1e9) == pytest.approx(a + b)
    assert link.score(letters, -1e9) == pytest.approx(b)


@given(st.floats(1e-3, 1e-2), st.floats(0.2, 0.5), st.floats(0.4, 1.5), st.floats(1.0, 2.0), st.floats(0.2, 0.5))
def test_bleu_of_a_loss_is_isiks_bleu_of_the_tokens_behind_it(
    A: float, alpha: float, beta: float, E: float, delta: float
) -> None:
    """arXiv 2402.04177: (log(A D^alpha))^beta at the tokens D where L = E + B / D^delta; both in shares of 100."""
    tokens, B = np.geomspace(1e10, 1e12, 5), 100.0
    scale = 100 ** (-1 / beta)  # BLEU is printed over 100: a share is the same form with the bracket scaled
    wanted = np.minimum((np.log(1e3 * A * tokens**alpha) * scale) ** beta, 1.0)
    c = alpha / delta
    letters = {"c": c * scale, "K": B * (1e3 * A) ** (1 / c), "E": E, "beta": beta}
    np.testing.assert_allclose(links.get("log_bleu").score(letters, E + B / tokens**delta), wanted, rtol=1e-9)


WRONG_LINK = '''
"""A link with one mistake."""
from dataclasses import dataclass

import jax.numpy as jnp

from bayescale.links._link import Link
from bayescale.links.sigmoid import Sigmoid

right = Sigmoid()


@dataclass(frozen=True)
class Wrong(Link):
    parameters = right.parameters
    coefficients = right.coefficients

    def score(self, letters, loss):
        return right.score(letters, loss)

    def floor(self, letters):
        return right.floor(letters)

    def to_coefficients(self, values, reference):
        return right.to_coefficients(values, reference)

    def to_parameters(self, letters, reference):
        return right.to_parameters(letters, reference)

'''

MISTAKES = {
    "rises": ("def score(self, c, x): return right.score(c, -x)", "a_lower_loss_never_scores_less"),
    "an_error": ("def score(self, c, x): return 1 - right.score(c, x)", "a_lower_loss_never_scores_less"),
    "below_its_floor": ("def floor(self, c): return right.floor(c) + 0.01", "score_lies_between_floor_and_one"),
    "in_percent": ("def score(self, c, x): return 100 * right.score(c, x)", "score_lies_between_floor_and_one"),
    "another_floor": ("def floor(self, c): return 0.5 * right.floor(c)", "score_tends_to_its_floor"),
    "overflows": (
        "def score(self, c, x): return right.score(c, x) + 0 * jnp.sqrt(x - x)",
        "gradient_is_finite",
    ),
    "averages": ("def score(self, c, x): return right.score(c, x).mean(-1)", "all_methods_broadcast"),
    "inverse_off": (
        "def to_parameters(self, c, r): return right.to_parameters(c | {'k': c['k'] * (1 + 1e-6)}, r)",
        "parameters_come_back",
    ),
    "single_precision": (
        "def score(self, c, x): return right.score(c, jnp.asarray(x, jnp.float32) if hasattr(x, 'aval') else x)",
        "numpy_and_jax_agree",
    ),
    "another_gain": (
        "coefficients = (*right.coefficients, right.parameters[1])\n    "
        "def to_coefficients(self, v, r): return right.to_coefficients(v, r) | {'gain': 2 * v['gain']}",
        "shared_names_are_one_quantity",
    ),
}


def dropped(text: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Link:
    """A file dropped into a folder of links."""
    folder = tmp_path / package
    folder.mkdir()
    (folder / "wrong.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return _folder.get("wrong", package, folder, Link)()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_link_fails(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the claim that is about its mistake."""
    text, claim = MISTAKES[mistake]
    link = dropped(f"{WRONG_LINK}    {text}\n", f"links_{mistake}", tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        CLAIMS[claim](link)


def test_the_right_link_in_that_folder_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file fails for its mistake, not for where it lies."""
    link = dropped(WRONG_LINK, "links_right", tmp_path, monkeypatch)
    for claim in CLAIMS.values():
        claim(link)
