"""FLOP rules beyond k N D: attention, head, recomputation, experts, and what was logged.

Each cost is 3 x the forward pass for training. Where a rule needs a shape and knows only N, it takes that of
a family: width over depth ``ratio``, feed-forward of four widths, so N = 12 d^3 / ratio without embeddings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from bayescale.runs.flops import SIX_ND, ComputeRule
from bayescale.runs.shapes import Shape


def _width(n_params: Any, ratio: float) -> Any:
    """Width of a model of N non-embedding parameters."""
    return (n_params * ratio / 12) ** (1 / 3)


def _positive(rule: Any, **fields: float) -> None:
    for name, value in fields.items():
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise ValueError(f"{type(rule).__name__}({name}): a positive number, not {value!r}.")


@final
@dataclass(frozen=True)
class AttentionRule(ComputeRule):
    """C = (6 N + 12 L s d) D at a context of s tokens; half the attention where it is causal. N without embeddings.

    With all pairs of tokens it is DeepSeek's M D, M = 72 L d^2 + 12 L d s (arXiv 2401.02954).
    """

    context: int
    ratio: float = 64.0
    is_causal: bool = False

    def __post_init__(self) -> None:
        _positive(self, context=self.context, ratio=self.ratio)

    def __str__(self) -> str:
        half = "6 L s d" if self.is_causal else "12 L s d"
        return f"C = (6 N + {half}) D, s = {self.context:g}, width {self.ratio:g} times depth"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        width = _width(n_params * 1.0, self.ratio)
        pairs = 6 if self.is_causal else 12
        return (6.0 * n_params + pairs * self.context * width * width / self.ratio) * n_tokens

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return flop / self.flop(n_params, 1.0, xp)


@final
@dataclass(frozen=True)
class KaplanRule(ComputeRule):
    """C = 3 (2 N + 2 L s d) D, N without embeddings. Kaplan et al. 2020 (arXiv 2001.08361), Table 1."""

    context: int = 1024
    ratio: float = 64.0

    def __post_init__(self) -> None:
        _positive(self, context=self.context, ratio=self.ratio)

    def __str__(self) -> str:
        return f"C = 3 (2 N + 2 L s d) D, s = {self.context:g}, width {self.ratio:g} times depth"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        width = _width(n_params * 1.0, self.ratio)
        return 3 * (2.0 * n_params + 2 * self.context * width * width / self.ratio) * n_tokens

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return flop / self.flop(n_params, 1.0, xp)


@final
@dataclass(frozen=True)
class HeadRule(ComputeRule):
    """C = rule + 6 V d D for the logits, and as much again where the embedding is counted. N without embeddings."""

    vocabulary: int
    ratio: float = 64.0
    has_embedding: bool = False
    of: ComputeRule = SIX_ND

    def __post_init__(self) -> None:
        _positive(self, vocabulary=self.vocabulary, ratio=self.ratio)

    def __str__(self) -> str:
        return f"{self.of} + {12 if self.has_embedding else 6} V d D, V = {self.vocabulary:g}"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        width = _width(n_params * 1.0, self.ratio)
        logits = (12.0 if self.has_embedding else 6.0) * self.vocabulary * width * n_tokens
        return self.of.flop(n_params, n_tokens, xp) + logits


@final
@dataclass(frozen=True)
class RecomputeRule(ComputeRule):
    """C = (1 + share / 3) x rule: activations computed again, all of them (8 N D of 6 N D) or a share."""

    of: ComputeRule = SIX_ND
    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"RecomputeRule(share): the share of the forward pass is in 0 to 1, not {self.share!r}.")

    def __str__(self) -> str:
        return f"{1 + self.share / 3:.4g} times ({self.of})"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return (1 + self.share / 3) * self.of.flop(n_params, n_tokens, xp)

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return self.of.tokens(flop / (1 + self.share / 3), n_params, xp)


@final
@dataclass(frozen=True)
class ExpertsRule(ComputeRule):
    """C = rule(a N, D): of N parameters of a mixture of experts a token meets the share a."""

    active_share: float
    of: ComputeRule = SIX_ND

    def __post_init__(self) -> None:
        if not 0 < self.active_share <= 1:
            raise ValueError(f"ExpertsRule(active_share): a share above 0 and up to 1, not {self.active_share!r}.")

    def __str__(self) -> str:
        return f"{self.of} of {self.active_share:.4g} N"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return self.of.flop(self.active_share * n_params, n_tokens, xp)

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return self.of.tokens(flop, self.active_share * n_params, xp)

    def params(self, flop: Any, n_tokens: Any, xp: Any = np) -> Any:
        return self.of.params(flop, n_tokens, xp) / self.active_share


@final
@dataclass(frozen=True)
class LoggedRule(ComputeRule):
    """C = k N^p D^q, fitted to logged compute; ``error`` is the relative error that the fit leaves."""

    k: float
    p: float = 1.0
    q: float = 1.0
    error: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, k=self.k, p=self.p, q=self.q)

    def __str__(self) -> str:
        return f"C = {self.k:.4g} N^{self.p:.4g} D^{self.q:.4g} (fitted, error {self.error:.2g})"

    @classmethod
    def fitted(cls, n_params: Any, n_tokens: Any, flop: Any) -> Self:
        """Least squares in logs. ValueError where sizes and tokens do not vary apart, or a value is not positive."""
        columns = [np.asarray(column, float) for column in (n_params, n_tokens, flop)]
        if not all(np.isfinite(c).all() and (c > 0).all() for c in columns):
            raise ValueError("Logged sizes, tokens and compute are positive, finite numbers.")
        n, d, c = map(np.log, columns)
        design = np.column_stack([np.ones_like(n), n - n.mean(), d - d.mean()])
        solved, _, rank, _ = np.linalg.lstsq(design, c, rcond=1e-8)
        if rank < 3 or len(n) < 4:
            raise ValueError("A cost law needs at least 4 runs whose sizes and tokens vary apart from one another.")
        residual = c - design @ solved
        intercept = solved[0] - solved[1] * n.mean() - solved[2] * d.mean()
        error = float(np.sqrt(residual @ residual / (len(n) - 3)))
        return cls(float(np.exp(intercept)), float(solved[1]), float(solved[2]), error)

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        return self.k * (1.0 * n_params) ** self.p * (1.0 * n_tokens) ** self.q

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return (flop / (self.k * (1.0 * n_params) ** self.p)) ** (1 / self.q)

    def params(self, flop: Any, n_tokens: Any, xp: Any = np) -> Any:
        return (flop / (self.k * (1.0 * n_tokens) ** self.q)) ** (1 / self.p)


def appendix_f(shape: Shape, context: int, heads: int, kv_size: int, reading: str) -> float:
    """Training FLOPs a token of one model, by Hoffmann et al. 2022 (arXiv 2203.15556), Appendix F.

    ``reading`` is ``text``, with embedding and logits as its formula lists them, or ``table``, without
    both, by which alone its Table A4 comes out.
    """
    if reading not in HoffmannRule.READINGS:
        raise ValueError(f"Appendix F is read as {' or '.join(map(repr, HoffmannRule.READINGS))}, not {reading!r}.")
    s, d, kh = context, shape.width, heads * kv_size
    layer = 2 * 3 * s * d * kh + 2 * s * s * kh + 3 * heads * s * s + 2 * s * s * kh + 2 * s * kh * d
    layer += 2 * s * 2 * d * (shape.ff or 4 * d)
    ends = 4 * s * shape.vocabulary * d if reading == "text" else 0
    return 3 * (shape.layers * layer + ends) / s


@final
@dataclass(frozen=True)
class HoffmannRule(ComputeRule):
    """Appendix F of Hoffmann et al. 2022 (arXiv 2203.15556) for a family of one aspect ratio; N is the total count.

    N = 13 L d^2 + V d, with the relative positions of their models. ``reading`` is that of `appendix_f`.
    """

    READINGS: ClassVar[tuple[str, ...]] = ("text", "table")

    context: int = 2048
    vocabulary: int = 32_000
    ratio: float = 80.0
    head_width: float = 128.0
    reading: str = "table"

    def __post_init__(self) -> None:
        _positive(self, **{k: getattr(self, k) for k in ("context", "vocabulary", "ratio", "head_width")})
        if self.reading not in self.READINGS:
            raise ValueError(f"HoffmannRule(reading): {' or '.join(map(repr, self.READINGS))}, not {self.reading!r}.")

    def __str__(self) -> str:
        return f"C of Hoffmann et al.'s Appendix F ({self.reading}), s = {self.context:g}, V = {self.vocabulary:g}"

    def flop(self, n_params: Any, n_tokens: Any, xp: Any = np) -> Any:
        d, s = self._width(n_params * 1.0, xp), self.context
        layer = 24 * d * d + (4 * d + 3 * d / self.head_width) * s
        ends = 4 * self.vocabulary * d if self.reading == "text" else 0.0
        return 3 * (layer * d / self.ratio + ends) * n_tokens

    def tokens(self, flop: Any, n_params: Any, xp: Any = np) -> Any:
        return flop / self.flop(n_params, 1.0, xp)

    def _width(self, n: Any, xp: Any) -> Any:
        """The root of 13 d^3 / ratio + V d = n, by Newton from above, where the steps only fall."""
        a, v = 13 / self.ratio, self.vocabulary
        d = xp.minimum((n / a) ** (1 / 3), n / v)
        for _ in range(12):
            d = d - (a * d**3 + v * d - n) / (3 * a * d * d + v)
        return d
