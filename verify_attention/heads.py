"""Products of query heads with the key-value heads that they share."""

from __future__ import annotations

from verify_attention.model import Array


def grouped_product(left: Array, right: Array) -> Array:
    """Multiply each query head's matrix with its key-value head's: `[…, H, n, m]` @ `[…, G, m, p]`.

    Query head h uses key-value head h // (H / G).
    """
    *lead, heads, rows, width = left.shape
    groups = right.shape[-3]
    product = left.reshape(*lead, groups, heads // groups, rows, width) @ right[..., None, :, :]
    return product.reshape(*lead, heads, rows, right.shape[-1])
