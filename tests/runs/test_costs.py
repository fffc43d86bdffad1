"""FLOP rules and counts of parameters against published numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescale.runs.costs import (
    AttentionRule,
    ExpertsRule,
    HeadRule,
    HoffmannRule,
    KaplanRule,
    LoggedRule,
    RecomputeRule,
    appendix_f,
)
from bayescale.runs.flops import SIX_ND, ComputeRule, FlopsRule
from bayescale.runs.shapes import Embeddings, Shape

RULES = [
    AttentionRule(2048),
    AttentionRule(100_000, ratio=128, is_causal=True),
    KaplanRule(),
    HeadRule(50_257, of=AttentionRule(4096)),
    HeadRule(32_000, has_embedding=True),
    RecomputeRule(HeadRule(32_000)),
    ExpertsRule(37 / 671, RecomputeRule(SIX_ND, 0.5)),
    LoggedRule(12.0, 0.97, 1.01, 0.02),
    HoffmannRule(),
    HoffmannRule(reading="text"),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=40)
@given(n_params=st.floats(1e6, 1e13), n_tokens=st.floats(1e8, 1e16))
def test_tokens_and_params_undo_flop(rule, n_params, n_tokens):
    flop = rule.flop(n_params, n_tokens)
    assert rule.tokens(flop, n_params) == pytest.approx(n_tokens, rel=1e-9)
    assert rule.params(flop, n_tokens) == pytest.approx(n_params, rel=1e-9)
    assert rule.flop(1.1 * n_params, n_tokens) > flop < rule.flop(n_params, 1.1 * n_tokens)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_survives_its_dict_and_does_not_overflow(rule):
    assert ComputeRule.from_dict(rule.to_dict()) == rule
    n, d = np.array([70_000_000_000, 10**13]), np.array([1_400_000_000_000, 10**15])
    np.testing.assert_allclose(rule.flop(n, d), rule.flop(n.astype(float), d.astype(float)), rtol=1e-12)
    assert (rule.flop(n, d) > 1e22).all()


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_frontier_takes_any_rule(rule, compile_cache):
    import bayescale as bs

    row = bs.allocate(bs.published("besiroglu-2024"), 1e22, rule=rule).to_dict()["results"][0]
    n, d = row["n_opt_params"]["median"], row["d_opt_tokens"]["median"]
    assert rule.flop(n, d) == pytest.approx(1e22, rel=1e-6)
    assert 1e9 < n < 1e12


def test_recomputation_and_experts_are_shares():
    assert RecomputeRule().flop(7e9, 2e12) == pytest.approx(8 * 7e9 * 2e12)
    assert RecomputeRule(share=0).flop(7e9, 2e12) == SIX_ND.flop(7e9, 2e12)
    # DeepSeek-V3 (arXiv 2412.19437): 37e9 of 671e9 parameters, 14.8e12 tokens.
    assert ExpertsRule(37 / 671).flop(671e9, 14.8e12) == pytest.approx(3.2856e24, rel=1e-4)


def test_kaplan_s_gpt_2_small():
    # 12 layers of 768: 84,934,656 parameters, 566,231,040 FLOPs a token at a context of 1024.
    shape = Shape(12, 768, 50_257)
    assert shape.count("non-embedding") == 84_934_656
    assert KaplanRule(1024, ratio=64).flop(84_934_656, 1) == pytest.approx(566_231_040)
    assert KaplanRule(1024).flop(84_934_656, 1) / (6 * 84_934_656) == pytest.approx(1.1111, abs=5e-5)
    assert AttentionRule(1024, is_causal=True).flop(84_934_656, 1) == pytest.approx(566_231_040)


def test_deepseek_s_m_is_full_attention():
    layers, width, context = 30, 4096, 4096  # DeepSeek LLM 7B
    m = 72 * layers * width**2 + 12 * layers * width * context
    rule = AttentionRule(context, ratio=width / layers)
    assert rule.flop(12 * layers * width**2, 1) == pytest.approx(m, rel=1e-12)


# Hoffmann et al. 2022, Table A4 and Appendix F

TABLE_A4 = [
    (10, 640, 2560, 10, 64, 73_825_280, 1.03, 1.0250, 1.580),
    (20, 1024, 4096, 16, 64, 305_707_008, 1.10, 1.1008, 1.315),
    (24, 1280, 5120, 10, 128, 552_604_160, 1.08, 1.0829, 1.231),
    (26, 1792, 7168, 14, 128, 1_143_453_696, 1.04, 1.0441, 1.144),
    (28, 2048, 8192, 16, 128, 1_593_126_912, 1.03, 1.0329, 1.115),
    (40, 3584, 14336, 28, 128, 6_796_274_688, 0.99, 0.9941, 1.028),
]


def gopher_like(layers, width, ff, vocabulary=32_000):
    """Tied embedding, relative positions, biases, two norms: the count that gives the published sizes."""
    d = width
    attention = (3 * d * d + 3 * d) + (d * d + 2 * d) + (d * d + d)
    return Shape(layers, d, vocabulary, ff, attention=attention, other=ff + d + 4 * d, other_once=2 * d)


@pytest.mark.parametrize("row", TABLE_A4, ids=lambda row: str(row[5]))
def test_appendix_f_in_both_readings(row):
    layers, width, ff, heads, kv, n_params, published, table, text = row
    shape = gopher_like(layers, width, ff)
    assert shape.count("total") == n_params
    assert appendix_f(shape, 2048, heads, kv, "table") / (6 * n_params) == pytest.approx(table, abs=6e-5)
    assert appendix_f(shape, 2048, heads, kv, "table") / (6 * n_params) == pytest.approx(published, abs=0.006)
    assert appendix_f(shape, 2048, heads, kv, "text") / (6 * n_params) == pytest.approx(text, abs=6e-4)
    for reading in ("table", "text"):
        rule = HoffmannRule(ratio=width / layers, head_width=kv, reading=reading)
        by_family = rule.flop(n_params, 1) / appendix_f(shape, 2048, heads, kv, reading)
        assert by_family == pytest.approx(1, abs=0.01)  # the family leaves out biases and norms


@pytest.mark.parametrize(("width", "count"), [(8192, 70_065_209_344), (16_384, 279_716_855_808)])
def test_chinchilla_and_gopher(width, count):
    assert gopher_like(80, width, 4 * width).count("total") == count


def test_mixtral():
    d = 4096
    shape = Shape(
        32, d, 32_000, 14_336, 1024, matrices=3, is_tied=False, other=2 * d, other_once=d, experts=8, active_experts=2
    )
    assert shape.count("total") == pytest.approx(46.703e9, abs=1e6)
    assert shape.count("active") == pytest.approx(12.88e9, abs=1e6)


def test_deepseek_v3():
    d, heads = 7168, 128
    attention = d * 1536 + 1536 * heads * 192 + d * (512 + 64) + 512 * heads * 256 + heads * 128 * d + 1536 + 512
    shape = Shape(
        *(61, d, 129_280, 18_432),
        matrices=3,
        is_tied=False,
        attention=attention,
        other=2 * d,
        other_once=d,
        experts=256,
        active_experts=8,
        shared_experts=1,
        expert_ff=2048,
        dense_layers=3,
    )
    assert shape.count("total") == pytest.approx(671.03e9, abs=1e7)
    assert shape.count("active") == pytest.approx(37.55e9, abs=1e7)
    assert shape.count("active") - shape.embedding == pytest.approx(36.6e9, abs=5e7)


def test_llama_3_1_405b():
    d = 16_384
    shape = Shape(126, d, 128_256, 53_248, 1024, matrices=3, is_tied=False, other=2 * d, other_once=d)
    assert shape.count("total") == pytest.approx(405.85e9, abs=1e7)
    assert shape.count("total") - shape.count("non-embedding and head") == shape.embedding


def test_an_unknown_convention_is_refused():
    with pytest.raises(ValueError, match="not 'most'"):
        Shape(1, 2, 3).count("most")


# Conversions and cost laws


def test_pearce_and_song():
    rule = Embeddings.of_family(32_000, 39.2)
    assert rule.gamma == pytest.approx(47_491, rel=3e-4)  # from a ratio with three digits
    n, error = Embeddings(47_491.0, error=0.02).non_embedding(rule.total(1e8))
    assert n == pytest.approx(1e8, rel=1e-3)
    assert 0.02 < error < 0.06


@given(st.floats(1e4, 1e13), st.floats(1e2, 1e6))
def test_total_and_non_embedding_undo_one_another(n, gamma):
    assert Embeddings(gamma).non_embedding(Embeddings(gamma).total(n))[0] == pytest.approx(n, rel=1e-9)


def test_a_fitted_conversion_says_its_error():
    rng = np.random.default_rng(0)
    n = np.geomspace(1e6, 1e10, 200)
    total = Embeddings(5e4).total(n) * (1 + 0.01 * rng.standard_normal(200))
    rule = Embeddings.fitted(n, total)
    assert rule.gamma == pytest.approx(5e4, rel=0.02)
    assert rule.error == pytest.approx(0.01, rel=0.2)
    # The error of the inverse, by moving the total: it is larger where embeddings are most of the model.
    for size in (1e6, 1e10):
        moved = rule.non_embedding(rule.total(size) * 1.0001)[0] / size - 1
        assert rule.non_embedding(rule.total(size))[1] == pytest.approx(rule.error * moved / 1e-4, rel=0.01)
    with pytest.raises(ValueError, match="no embeddings to fit"):
        Embeddings.fitted([1e8, 1e9], [1e8, 1e9])


def test_a_cost_law_is_recovered_from_logged_compute():
    rng = np.random.default_rng(1)
    n, d = (v.ravel() for v in np.meshgrid(np.geomspace(1e8, 1e10, 10), np.geomspace(1e9, 1e11, 10)))
    rule = LoggedRule.fitted(n, d, 9 * n**0.96 * d * np.exp(0.03 * rng.standard_normal(100)))
    assert (rule.p, rule.q) == pytest.approx((0.96, 1.0), abs=0.01)
    assert rule.error == pytest.approx(0.03, rel=0.25)
    assert rule.flop(1e9, 1e10) == pytest.approx(9 * 1e9**0.96 * 1e10, rel=0.02)
    with pytest.raises(ValueError, match="vary apart"):
        LoggedRule.fitted(n, 20 * n, 120 * n**2)
    with pytest.raises(ValueError, match="positive, finite"):
        LoggedRule.fitted(n, d, 0 * n)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AttentionRule(0),
        lambda: KaplanRule(ratio=-1),
        lambda: HeadRule(float("nan")),
        lambda: RecomputeRule(share=2),
        lambda: ExpertsRule(0),
        lambda: LoggedRule(0),
        lambda: HoffmannRule(reading="word"),
        lambda: appendix_f(Shape(1, 2, 3), 4, 1, 2, "word"),
    ],
)
def test_settings_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match="not "):
        make()


def test_a_saved_table_knows_its_rule():
    import json

    import pandas as pd

    from bayescale.runs import Runs, read_runs

    frame = pd.DataFrame({"N": [1e8, 1e9], "D": [2e9, 2e10], "loss": [3, 2.5]})
    runs = read_runs(frame, rule=RecomputeRule(HeadRule(32_000, of=FlopsRule(6.5))))
    again = Runs.from_dict(json.loads(json.dumps(runs.to_dict())), runs.table)
    assert again.rule == runs.rule
    pd.testing.assert_frame_equal(again.recognised, runs.recognised)
