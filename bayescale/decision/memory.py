"""What has to fit and what has to be read: memory of training and of inference, and the speed of decoding.

Bytes are decimal (80 GB is 80e9). Sizes and shapes may be arrays, which broadcast; they are real numbers, so
that memory is smooth in size. A mixture of experts keeps all its parameters and reads those a token meets.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from bayescale.decision.hardware import Accelerator

WEIGHTS, OPTIMISER = 2.0, 12.0  # bytes a parameter: 16-bit weights; 32-bit weights and Adam's two moments
RECOMPUTE = ("none", "selective", "full")


def _positive(owner: str, **fields: Any) -> None:
    wrong = [
        f"{owner}({name}): a positive number, not {value!r}"
        for name, value in fields.items()
        if isinstance(value, bool | str) or not (np.all(np.asarray(value) > 0) and np.all(np.isfinite(value)))
    ]
    if wrong:
        raise ValueError("\n".join(wrong))


@final
@dataclass(frozen=True)
class Shape:
    """A decoder as its memory is counted.

    Attributes
    ----------
    layers, width, heads, kv_heads : number or array
        Fewer heads of keys and values than of queries where queries share them (grouped-query attention).
    cache_width : number or array, optional
        Numbers cached for a token in a layer; 2 kv_heads width / heads unless given. Latent attention keeps
        fewer (DeepSeek-V3: 512 + 64).
    """

    layers: Any
    width: Any
    heads: Any
    kv_heads: Any
    cache_width: Any = None

    def __post_init__(self) -> None:
        known = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        _positive("Shape", **{name: value for name, value in known.items() if value is not None})

    @property
    def cached(self) -> Any:
        """Numbers cached for a token in a layer."""
        return 2 * self.kv_heads * self.width / self.heads if self.cache_width is None else self.cache_width


@final
@dataclass(frozen=True)
class Family:
    """Shapes where only a size is known: N = 12 layers width^2, of one aspect ratio and width of a head.

    N counts no embeddings (Kaplan et al. 2020, arXiv 2001.08361, Table 1); a total count has somewhat too deep
    a shape. Width over layers is 128 in GPT-3 175B and Llama 3 8B, 102 in Llama 3 70B, 130 in Llama 3.1 405B;
    heads of 128 and 8 heads of keys and values are those of Llama 3 (arXiv 2407.21783, Table 3).
    """

    ratio: float = 128.0
    head_width: float = 128.0
    kv_heads: float = 8.0

    def __post_init__(self) -> None:
        _positive("Family", **dataclasses.asdict(self))

    def shape(self, size: Any) -> Shape:
        """Shape of a model of ``size`` parameters; it has no more heads of keys and values than of queries."""
        layers = np.cbrt(np.asarray(size, float) / (12 * self.ratio**2))
        heads = self.ratio * layers / self.head_width
        return Shape(layers, self.ratio * layers, heads, np.minimum(heads, self.kv_heads))


FAMILY = Family()


def state_bytes(size: Any, *, stage: int = 0, devices: Any = 1, gradient_bytes: float = 2.0) -> Any:
    """Weights, gradients and optimiser on each device, bytes, in mixed-precision training with Adam.

    Rajbhandari et al. 2020 (arXiv 1910.02054), Section 3 and Figure 1: (2 + g + 12) N bytes, of which a stage
    shares out the optimiser (1), the gradients too (2), the weights too (3; fully sharded data parallel).

    Parameters
    ----------
    size : array
        Parameters on all devices together.
    stage : int
        0 (every device holds all) to 3.
    devices : number
        Over which they are shared out.
    gradient_bytes : float
        2, or 4 where gradients are summed in 32 bits (18 bytes a parameter in all).

    Raises
    ------
    ValueError
        If there is no such stage, or less than one device.
    """
    if stage not in (0, 1, 2, 3) or isinstance(stage, bool):
        raise ValueError(f"A sharding stage is 0, 1, 2 or 3, not {stage!r}.")
    if not np.all(np.asarray(devices) >= 1):
        raise ValueError(f"State is shared out over at least one device, not {devices!r}.")
    parts = (OPTIMISER, gradient_bytes, WEIGHTS)
    return np.asarray(size, float) * (sum(parts[stage:]) + sum(parts[:stage]) / devices)


def activation_bytes(
    shape: Shape, *, context: Any, batch: Any = 1, recompute: str = "full", tensor_parallel: Any = 1
) -> Any:
    """Activations kept for the backward pass, bytes on each device, in 16 bits.

    Korthikanti et al. 2022 (arXiv 2205.05198), Table 2, with s = context, b = batch, h = width, a = heads, and
    tensor with sequence parallelism of degree t: a layer keeps s b h (34 + 5 a s / h) / t without recomputation,
    34 s b h / t where attention is computed again ("selective"), 2 s b h where all is ("full").

    Parameters
    ----------
    context : number
        Tokens of a sequence.
    batch : number
        Sequences at once on a device (a micro-batch).
    recompute : {'none', 'selective', 'full'}
    tensor_parallel : number
        Devices that share each layer.
    """
    if recompute not in RECOMPUTE:
        raise ValueError(f"Activations are recomputed by one of {', '.join(map(repr, RECOMPUTE))}, not {recompute!r}.")
    once = shape.layers * context * batch * shape.width
    if recompute == "full":
        return 2.0 * once
    pairs = 5.0 * shape.heads * context / shape.width if recompute == "none" else 0.0
    return once * (34.0 + pairs) / tensor_parallel


def weight_bytes(size: Any, bits: float = 16) -> Any:
    """Weights in inference, bytes."""
    return np.asarray(size, float) * bits / 8


def cache_bytes(shape: Shape, *, context: Any, batch: Any = 1, bits: float = 16) -> Any:
    """Keys and values of ``batch`` sequences of ``context`` tokens, bytes: 2 layers kv_heads head_width a token."""
    return shape.layers * shape.cached * context * batch * bits / 8


def attention_flop(shape: Shape, context: Any) -> Any:
    """Forward FLOPs of a token that attends to ``context`` others, beside 2 N: 4 layers width context.

    In training three times as much (backward), and half of it where attention is causal: a token then attends
    to half its sequence on average.
    """
    return 4.0 * shape.layers * shape.width * context


def decode_speed(read_bytes: Any, bandwidth: Any, batch: Any = 1) -> Any:
    """Tokens a second of ``batch`` sequences at most, where each step reads ``read_bytes`` once (weights, cache)."""
    return batch * bandwidth / read_bytes


@final
@dataclass(frozen=True)
class TrainingMemory:
    """What a training run keeps on each device.

    Attributes
    ----------
    devices : number
        Of the whole run; each group of ``tensor_parallel`` shares layers, and groups share out the state.
    context, batch : number
        Tokens of a sequence, and sequences at once on a device.
    stage, gradient_bytes
        As in `state_bytes`.
    recompute, tensor_parallel
        As in `activation_bytes`.
    family : Family
        Shape by size.

    Raises
    ------
    ValueError
        If a value is not positive, a choice unknown, or the devices do not make up one group.
    """

    devices: float
    context: float
    batch: float = 1
    stage: int = 3
    gradient_bytes: float = 2.0
    recompute: str = "full"
    tensor_parallel: float = 1
    family: Family = FAMILY

    def __post_init__(self) -> None:
        names = ("devices", "context", "batch", "gradient_bytes", "tensor_parallel")
        _positive("TrainingMemory", **{name: getattr(self, name) for name in names})
        self.of(1.0)

    def of(self, size: Any, shape: Shape | None = None) -> Any:
        """Bytes on each device for ``size`` parameters, of ``shape`` or of the family's."""
        shape = shape or self.family.shape(size)
        groups = self.devices / self.tensor_parallel
        own = np.asarray(size, float) / self.tensor_parallel
        state = state_bytes(own, stage=self.stage, devices=groups, gradient_bytes=self.gradient_bytes)
        return state + activation_bytes(
            shape,
            context=self.context,
            batch=self.batch,
            recompute=self.recompute,
            tensor_parallel=self.tensor_parallel,
        )


@final
@dataclass(frozen=True)
class InferenceMemory:
    """What serving keeps and reads: weights, and the cache of every sequence.

    Attributes
    ----------
    context, batch : number
        Tokens of a sequence, and sequences at once.
    weight_bits, cache_bits : number
    devices : number
        That share weights and cache equally.
    family : Family
        Shape by size.
    """

    context: float
    batch: float = 1
    weight_bits: float = 16
    cache_bits: float = 16
    devices: float = 1
    family: Family = FAMILY

    def __post_init__(self) -> None:
        names = ("context", "batch", "weight_bits", "cache_bits", "devices")
        _positive("InferenceMemory", **{name: getattr(self, name) for name in names})

    def of(self, size: Any, shape: Shape | None = None) -> Any:
        """Bytes on each device for ``size`` parameters, of ``shape`` or of the family's."""
        return (weight_bytes(size, self.weight_bits) + self._cache(size, shape)) / self.devices

    def tokens_per_second(
        self, size: Any, accelerator: Accelerator, shape: Shape | None = None, active: Any = None
    ) -> Any:
        """Upper bound of the tokens a second of one sequence while all are decoded, by bandwidth alone.

        Each step reads the cache, and the weights of ``active`` parameters (all ``size`` unless given).

        Raises
        ------
        ValueError
            If the accelerator's bandwidth is not known.
        """
        if accelerator.bandwidth is None:
            raise ValueError(f"The speed of decoding needs Accelerator(bandwidth=...) of {accelerator.name}.")
        weights = weight_bytes(size if active is None else active, self.weight_bits)
        return decode_speed(weights + self._cache(size, shape), accelerator.bandwidth * self.devices)

    def _cache(self, size: Any, shape: Shape | None) -> Any:
        shape = shape or self.family.shape(size)
        return cache_bytes(shape, context=self.context, batch=self.batch, bits=self.cache_bits)
