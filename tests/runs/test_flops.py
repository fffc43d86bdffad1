"""FLOP rules settle the third of size, tokens and compute."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescale.runs.flops import SIX_ND, ComputeRule, FlopsRule

SIZE = st.floats(1e6, 1e13)
TOKENS = st.floats(1e8, 1e16)


@dataclass(frozen=True)
class Attention(ComputeRule):
    """C = (6 N + 12 (N / 12 width)) D: not a power of N; tokens and params are found numerically."""

    per_token: float = 1e6

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return (6 * n_params + self.per_token * xp.sqrt(n_params)) * n_tokens


RULES = [SIX_ND, FlopsRule(18.5), Attention(), Attention(1e9)]


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(n_params=SIZE, n_tokens=TOKENS)
def test_tokens_and_params_undo_flop(rule, n_params, n_tokens):
    flop = rule.flop(n_params, n_tokens)
    assert rule.tokens(flop, n_params) == pytest.approx(n_tokens, rel=1e-9)
    assert rule.params(flop, n_tokens) == pytest.approx(n_params, rel=1e-9)


def test_gopher_cost_of_hoffmann_table_a4_convention():
    # 280e9 parameters on 300e9 tokens: 5.04e23 FLOPs by 6 N D.
    assert SIX_ND.flop(280e9, 300e9) == pytest.approx(5.04e23)


def test_integer_counts_beyond_64_bits_do_not_wrap():
    flop = FlopsRule(6).flop(np.array([70_000_000_000, 10**13]), np.array([1_400_000_000_000, 10**15]))
    np.testing.assert_allclose(flop, [5.88e23, 6e28])


@pytest.mark.parametrize("k", [0, -6, float("nan"), float("inf"), "6"])
def test_k_is_a_positive_number(k):
    with pytest.raises(ValueError, match="a positive number"):
        FlopsRule(k)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_survives_its_dict(rule):
    assert ComputeRule.from_dict(rule.to_dict()) == rule


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'Mystery' is not known here; known: .*FlopsRule"):
        ComputeRule.from_dict({"rule": "Mystery"})
