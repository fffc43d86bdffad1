"""Recipes side by side: the compute that one needs for what another reaches."""

import json

import numpy as np
import pytest
from frontier_stand_in import B24, StandIn, letters, spread

from bayescale.frontier.frontier import allocate
from bayescale.frontier.multiplier import MOST_OUTSIDE, compute_multiplier
from bayescale.posterior.gate import HOLLOW

BUDGETS = [1e20, 1e22, 1e25]
DRAWS = spread(300)


def scaled(draws: dict[str, np.ndarray], c: float) -> dict[str, np.ndarray]:
    """The recipe for which c times less of size and of tokens does the same: L'(N, D) = L(c N, c D)."""
    return draws | {"A": draws["A"] / c ** draws["alpha"], "B": draws["B"] / c ** draws["beta"]}


def both(a: dict[str, np.ndarray], b: dict[str, np.ndarray], **how: object) -> StandIn:
    return StandIn({"a": a, "b": b}, **how)


@pytest.mark.parametrize("c", [0.2, 1.0, 1.4, 3.0])
def test_what_multiplies_size_and_tokens_divides_compute_by_its_square(c: float) -> None:
    """In every draw, however far its budget lies from the others: what both share cancels."""
    found = compute_multiplier(allocate(both(DRAWS, scaled(DRAWS, c)), BUDGETS), reference="a")
    np.testing.assert_allclose(found.draws("b"), c**-2.0, rtol=2e-3)
    for row in found.to_dict()["results"]:
        assert row["multiplier"]["upper"] / row["multiplier"]["lower"] == pytest.approx(1, rel=4e-3)
        if c != 1:
            assert row["better_probability"] == float(c > 1)


def test_the_reference_may_be_either() -> None:
    frontier = allocate(both(DRAWS, scaled(DRAWS, 1.7)), BUDGETS)
    forth, back = (compute_multiplier(frontier, reference=r) for r in "ab")
    np.testing.assert_allclose(forth.draws("b") * back.draws("a"), 1, rtol=4e-3)


def test_draws_are_compared_with_their_own() -> None:
    """Half of the draws have a better recipe, half a worse one."""
    worse = np.arange(300) % 2 == 0
    own = {k: np.where(worse, v, scaled(DRAWS, 2.0)[k]) for k, v in scaled(DRAWS, 0.5).items()}
    found = compute_multiplier(allocate(both(DRAWS, own), 1e22), reference="a")
    np.testing.assert_allclose(found.draws("b")[:, 0], np.where(worse, 4.0, 0.25), rtol=2e-3)
    assert found.to_dict()["results"][0]["better_probability"] == 0.5


def test_a_recipe_that_never_gets_there_has_no_number() -> None:
    """Its floor lies above what the reference reaches."""
    high = letters(*[B24 | {"E": 3.0}] * 4)
    low = letters(*[B24] * 4)
    (row,) = compute_multiplier(allocate(both(low, high), 1e22), reference="a").to_dict()["results"]
    assert row["multiplier"] == {"median": None, "lower": None, "upper": None}
    assert (row["outside_share"], row["better_probability"]) == (1.0, 0.0)


@pytest.mark.parametrize(("outside", "given"), [(5, True), (6, False)])
def test_intervals_are_null_where_too_many_draws_have_none(outside: int, given: bool) -> None:
    assert MOST_OUTSIDE == 0.05
    draws = spread(100)
    own = draws | {"E": np.where(np.arange(100) < outside, 3.0, draws["E"])}
    (row,) = compute_multiplier(allocate(both(draws, own), 1e22), reference="a").to_dict()["results"]
    assert row["outside_share"] == outside / 100
    assert (row["multiplier"]["median"] is not None) is given


def test_the_table_is_json_and_says_what_it_rests_on() -> None:
    posterior = both(DRAWS, scaled(DRAWS, 2.0), beyond="FAIL", status="FAIL")
    found = compute_multiplier(allocate(posterior, BUDGETS, level=0.5), reference="a")
    table = found.to_dict()
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    assert (table["warning"], table["diagnostics"], table["level"]) == (HOLLOW, "FAIL", 0.5)
    assert found.standing == "FAIL"
    frame = found.to_dataframe()
    assert frame["multiplier_median"].tolist() == [row["multiplier"]["median"] for row in table["results"]]
    text = repr(found)
    assert text.startswith(HOLLOW.capitalize())
    assert "FAIL: the fit behind" in text
    assert "50 % equal-tailed" in text
    assert max(map(len, text.splitlines())) <= 80


def test_names_of_groups_are_escaped() -> None:
    evil = "<script>"
    found = compute_multiplier(allocate(StandIn({"a": DRAWS, evil: DRAWS}), 1e22), reference="a")
    assert evil not in found._repr_html_()


@pytest.mark.parametrize(
    ("groups", "reference", "said"),
    [({"a": DRAWS}, "a", "at least two"), ({"a": DRAWS, "b": DRAWS}, "c", "Unknown group 'c'; this frontier has a, b")],
)
def test_what_cannot_be_compared_is_refused(groups: dict, reference: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compute_multiplier(allocate(StandIn(groups), 1e22), reference=reference)
