"""Linear algebra on stacks of matrices of a handful of rows, written out.

On CPUs a LAPACK call, and its gradient, costs ten times the arithmetic of a 5 x 5 factor, at every step of
the sampler; written out, a compiler fuses it with its surroundings.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def cholesky(a: Any) -> Any:
    """Lower factor L of L L' = a, for positive definite a (..., k, k)."""
    columns = []
    for j in range(a.shape[-1]):
        column = a[..., :, j] / jnp.sqrt(a[..., j, j])[..., None] * (jnp.arange(a.shape[-1]) >= j)
        columns.append(column)
        a = a - column[..., :, None] * column[..., None, :]
    return jnp.stack(columns, -1)


def forward(factor: Any, b: Any) -> Any:
    """Solve L x = b for the columns of b (..., k, m)."""
    rows = []
    for i in range(factor.shape[-1]):
        rows.append(b[..., i, :] / factor[..., i, i, None])
        b = b - factor[..., :, i, None] * rows[-1][..., None, :]
    return jnp.stack(rows, -2)


def backward(factor: Any, b: Any) -> Any:
    """Solve L' x = b for the columns of b (..., k, m)."""
    rows = []
    for i in reversed(range(factor.shape[-1])):
        rows.append(b[..., i, :] / factor[..., i, i, None])
        b = b - factor[..., i, :, None] * rows[-1][..., None, :]
    return jnp.stack(rows[::-1], -2)
