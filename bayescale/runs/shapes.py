"""How many parameters a transformer of a shape has, by each convention, and what it costs by each published formula.

A shape is one model. Where only sizes are known, a family's aspect ratio stands for the shapes (`Embeddings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from bayescale.runs.units import CONVENTIONS


@final
@dataclass(frozen=True)
class Shape:
    """A decoder: blocks of attention and a feed-forward network, or experts in its place.

    Attributes
    ----------
    layers, width, vocabulary : int
    ff : int, optional
        Width of the feed-forward network; four times the width unless given.
    kv_width : int, optional
        Width of keys and values; that of the model unless given.
    matrices : int
        Matrices of a feed-forward network: 2, or 3 where it is gated.
    is_tied : bool
        Whether the head is the matrix of the tokens.
    attention : int, optional
        Parameters of the attention of a layer, where they are not 2 (width + kv_width) width.
    other : int
        Parameters of a layer beyond the matrices (norms, biases), and ``other_once`` outside the layers.
    experts, active_experts, shared_experts, expert_ff, dense_layers : int
        Of a mixture: routed experts, how many a token meets, experts that all meet, their width, and layers without.
    """

    layers: int
    width: int
    vocabulary: int
    ff: int | None = None
    kv_width: int | None = None
    matrices: int = 2
    is_tied: bool = True
    attention: int | None = None
    other: int = 0
    other_once: int = 0
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_ff: int | None = None
    dense_layers: int = 0

    @property
    def embedding(self) -> int:
        """The matrix of the tokens."""
        return self.vocabulary * self.width

    def count(self, convention: str) -> int:
        """Parameters by one of `CONVENTIONS`; ``active`` counts the embedding and the head too.

        Raises
        ------
        ValueError
            If the convention is unknown.
        """
        if convention not in CONVENTIONS:
            raise ValueError(f"A size counts one of {', '.join(map(repr, CONVENTIONS))}, not {convention!r}.")
        body = self._body(self.active_experts if convention == "active" else self.experts)
        if convention == "non-embedding":
            return body
        head = self.embedding  # of a tied model it is the same matrix as the embedding, used again
        if convention == "non-embedding and head":
            return body + head
        return body + (self.embedding if self.is_tied else 2 * self.embedding)

    def _body(self, experts: int) -> int:
        d, ff = self.width, self.ff or 4 * self.width
        attention = self.attention or 2 * d * (d + (self.kv_width or d))
        dense = self.layers if not self.experts else self.dense_layers
        routed = (experts + self.shared_experts) * self.matrices * d * (self.expert_ff or ff) + self.experts * d
        return (
            self.layers * (attention + self.other)
            + dense * self.matrices * d * ff
            + (self.layers - dense) * routed
            + self.other_once
        )


@final
@dataclass(frozen=True)
class Embeddings:
    """N_total = N + gamma N^(1/3): what embeddings add to N non-embedding parameters in a family of one aspect ratio.

    With N = 12 L d^2 and d = r L, the width is (r N / 12)^(1/3), and an embedding has V d parameters. Pearce and Song
    2024 (arXiv 2406.12907) have gamma = 47491 for V = 32k and r = 39.2.

    Attributes
    ----------
    gamma : float
    error : float
        Relative error (standard deviation) of a total that is computed so; 0 where it is not known.
    """

    gamma: float
    error: float = 0.0

    @classmethod
    def of_family(cls, vocabulary: int, ratio: float, is_tied: bool = True) -> Self:
        """The rule of a family of vocabulary V and width over depth ``ratio``."""
        return cls((1 if is_tied else 2) * vocabulary * (ratio / 12) ** (1 / 3))

    @classmethod
    def fitted(cls, non_embedding: Any, total: Any) -> Self:
        """The rule of models whose two counts are known, least squares in the total, and the error that it leaves."""
        n, t = np.asarray(non_embedding, float), np.asarray(total, float)
        root, gap = np.cbrt(n) / t, (t - n) / t
        gamma = float(np.sum(root * gap) / np.sum(root**2))
        if not gamma > 0:
            raise ValueError("Totals that are not above the non-embedding counts have no embeddings to fit.")
        return cls(gamma, float(np.sqrt(np.sum((gap - gamma * root) ** 2) / max(len(n) - 1, 1))))

    def total(self, non_embedding: Any) -> Any:
        """Total parameters; the relative error is ``error``."""
        return non_embedding + self.gamma * np.cbrt(non_embedding)

    def non_embedding(self, total: Any) -> tuple[Any, Any]:
        """Non-embedding parameters, and the relative error that they have: larger where embeddings are most."""
        x = np.cbrt(np.asarray(total, float))  # an upper bound of the root of x^3 + gamma x = total
        for _ in range(100):
            x = x - (x**3 + self.gamma * x - total) / (3 * x**2 + self.gamma)
        n = x**3
        slope = (n + self.gamma * x) / (n + self.gamma * x / 3)  # d log N / d log N_total
        return n, self.error * slope
