"""Memory of training and inference, against published figures and by closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescale.decision.hardware import Accelerator, accelerator
from bayescale.decision.memory import (
    Family,
    InferenceMemory,
    Shape,
    TrainingMemory,
    activation_bytes,
    attention_flop,
    cache_bytes,
    decode_speed,
    state_bytes,
    weight_bytes,
)
from bayescale.runs.costs import AttentionRule
from bayescale.runs.flops import SIX_ND

GPT3 = Shape(96, 12288, 96, 96)
LLAMA_8B, LLAMA_70B, LLAMA_405B = Shape(32, 4096, 32, 8), Shape(80, 8192, 64, 8), Shape(126, 16384, 128, 8)
DEEPSEEK_V3 = Shape(61, 7168, 128, 128, cache_width=512 + 64)
SIZE = st.floats(1e7, 1e13)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.40625), (2, 16.640625), (3, 1.875)])
def test_sharded_state_of_zero(stage, gigabytes):
    """Rajbhandari et al. 2020, Figure 1: 7.5 B parameters on 64 devices."""
    assert state_bytes(7.5e9, stage=stage, devices=64) == pytest.approx(gigabytes * 1e9, rel=1e-12)


@given(SIZE, st.integers(1, 100_000), st.sampled_from([2.0, 4.0]))
def test_state_is_16_or_18_bytes_a_parameter_and_all_of_it_is_shared_out_at_last(size, devices, gradient):
    stages = [state_bytes(size, stage=k, devices=devices, gradient_bytes=gradient) for k in range(4)]
    assert stages[0] == pytest.approx((14 + gradient) * size)
    assert stages[3] == pytest.approx((14 + gradient) * size / devices)
    assert stages == sorted(stages, reverse=True)
    assert state_bytes(size, stage=2, gradient_bytes=gradient) == stages[0]


@pytest.mark.parametrize(("recompute", "gigabytes"), [("none", 275.41), ("selective", 82.14), ("full", 4.832)])
def test_activations_of_gpt_3(recompute, gigabytes):
    """Korthikanti et al. 2022, Table 2, at a sequence of 2,048: s b h L (34 + 5 a s / h), 34 s b h L, 2 s b h L."""
    kept = activation_bytes(GPT3, context=2048, recompute=recompute)
    assert kept == pytest.approx(gigabytes * 1e9, rel=2e-4)
    shared = activation_bytes(GPT3, context=2048, batch=3, recompute=recompute, tensor_parallel=8)
    assert shared == pytest.approx(3 * kept / (1 if recompute == "full" else 8))


@pytest.mark.parametrize(
    ("shape", "wanted"), [(LLAMA_8B, 131_072), (LLAMA_70B, 327_680), (LLAMA_405B, 516_096), (DEEPSEEK_V3, 70_272)]
)
def test_cache_of_a_token(shape, wanted):
    assert cache_bytes(shape, context=1) == wanted
    assert cache_bytes(shape, context=1000, batch=8, bits=8) == 4000 * wanted


def test_cache_of_a_long_context():
    assert cache_bytes(LLAMA_70B, context=131_072) == pytest.approx(42.95e9, rel=1e-4)


@given(SIZE, st.floats(20, 300), st.sampled_from([64.0, 128.0]))
def test_a_familys_shape_has_its_size_and_ratio(size, ratio, head_width):
    shape = Family(ratio, head_width).shape(size)
    assert 12 * shape.layers * shape.width**2 == pytest.approx(size)
    assert shape.width / shape.layers == pytest.approx(ratio)
    assert shape.width / shape.heads == pytest.approx(head_width)
    assert shape.kv_heads <= min(shape.heads, 8) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("size", "shape", "kv_heads", "rel"),
    [(175e9, GPT3, 96, 0.01), (8.03e9, LLAMA_8B, 8, 0.1), (70.6e9, LLAMA_70B, 8, 0.2), (405.85e9, LLAMA_405B, 8, 0.12)],
)
def test_the_familys_shape_is_near_those_of_known_models(size, shape, kv_heads, rel):
    drawn = Family(kv_heads=kv_heads).shape(size)
    assert (drawn.layers, drawn.width) == pytest.approx((shape.layers, shape.width), rel=rel)
    assert cache_bytes(drawn, context=1) == pytest.approx(cache_bytes(shape, context=1), rel=2 * rel)


@given(SIZE, st.integers(1, 10**6), st.floats(20, 300))
def test_attention_is_that_of_the_flop_rule(size, context, ratio):
    """The rule counts 12 L d s of training beside 6 N: three forward passes."""
    extra = AttentionRule(context, ratio).flop(size, 1.0) - SIX_ND.flop(size, 1.0)
    assert 3 * attention_flop(Family(ratio).shape(size), context) == pytest.approx(extra, abs=1e-9 * size)


def test_decoding_is_bound_by_what_is_read():
    """140 GB of weights at 3.35 TB/s: 23.9 steps a second, with nothing cached; a batch shares the read."""
    assert decode_speed(weight_bytes(70e9), 3.35e12) == pytest.approx(23.93, rel=1e-3)
    assert decode_speed(weight_bytes(70e9, 8), 3.35e12, batch=16) == pytest.approx(16 * 2 * 23.93, rel=1e-3)
    alone, crowded = InferenceMemory(131_072), InferenceMemory(131_072, batch=4)
    chip = accelerator("H100 SXM")
    assert alone.tokens_per_second(70e9, chip, LLAMA_70B) == pytest.approx(3.35e12 / (140e9 + 42.95e9), rel=1e-3)
    assert crowded.tokens_per_second(70e9, chip, LLAMA_70B) == pytest.approx(3.35e12 / (140e9 + 4 * 42.95e9), rel=1e-3)
    two = InferenceMemory(131_072, devices=2).tokens_per_second(70e9, chip, LLAMA_70B)
    assert two == pytest.approx(2 * alone.tokens_per_second(70e9, chip, LLAMA_70B))
    mixture = InferenceMemory(1, weight_bits=8).tokens_per_second(671e9, accelerator("H200"), DEEPSEEK_V3, active=37e9)
    assert mixture == pytest.approx(4.8e12 / 37e9, rel=1e-3)


def test_inference_holds_weights_and_cache_on_all_devices_together():
    memory = InferenceMemory(131_072, batch=2, devices=4)
    assert memory.of(70e9, LLAMA_70B) == pytest.approx((140e9 + 2 * 42.95e9) / 4, rel=1e-4)
    assert InferenceMemory(1, weight_bits=4).of(1e9, LLAMA_8B) == pytest.approx(0.5e9, rel=1e-3)


def test_training_holds_state_and_activations():
    """GPT-3 in groups of 8 that share layers, on 1,024 devices."""
    memory = TrainingMemory(1024, 2048, recompute="selective", tensor_parallel=8)
    assert memory.of(175e9, GPT3) == pytest.approx(16 * 175e9 / 1024 + 82.14e9 / 8, rel=1e-3)
    whole = TrainingMemory(1024, 2048, stage=0, gradient_bytes=4, tensor_parallel=8)
    assert whole.of(175e9, GPT3) == pytest.approx(18 * 175e9 / 8 + 4.832e9, rel=1e-3)


@given(SIZE, st.floats(1.01, 3.0))
def test_a_larger_model_needs_more_and_decodes_slower(size, factor):
    sizes = np.array([size, factor * size])
    training = TrainingMemory(64, 4096).of(sizes)
    serving = InferenceMemory(4096)
    speed = serving.tokens_per_second(sizes, accelerator("H200"))
    assert training.shape == speed.shape == (2,)
    assert training[0] < training[1]
    assert serving.of(sizes)[0] < serving.of(sizes)[1]
    assert speed[0] > speed[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: state_bytes(1e9, stage=4), "0, 1, 2 or 3, not 4"),
        (lambda: state_bytes(1e9, stage=1, devices=0.5), "at least one device, not 0.5"),
        (lambda: activation_bytes(GPT3, context=1, recompute="some"), "'none', 'selective', 'full', not 'some'"),
        (lambda: Shape(0, 1, 1, -1), r"(?s)Shape\(layers\).*not 0.*kv_heads.*not -1"),
        (lambda: Family(ratio=float("nan")), r"Family\(ratio\).*nan"),
        (lambda: TrainingMemory(8, 0, stage=3), r"TrainingMemory\(context\).*not 0"),
        (lambda: TrainingMemory(8, 2048, stage=5), "not 5"),
        (lambda: TrainingMemory(4, 2048, tensor_parallel=8), "at least one device"),
        (lambda: InferenceMemory("4096"), r"InferenceMemory\(context\).*'4096'"),
        (lambda: InferenceMemory(1).tokens_per_second(1e9, Accelerator("own", 1e15)), "bandwidth=.*of own"),
    ],
)
def test_what_is_no_shape_or_setting_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
