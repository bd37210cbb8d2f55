"""Which keys a query may attend to, where a library has no word of its own for it.

A library's own causal masks and windows are what an adapter asks for wherever they mean the same; what is left is
written out here, as one mask in which True is a key that may be attended to, or as numbers to add to the scores.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from verify_attention.model import Array, Flags

Window: TypeAlias = tuple[int | None, int | None]


def first_position(causal: str | None, rows: int, keys: int) -> int:
    """Return where the first query stands on the key axis: so that the last is at the last key, or at the first key."""
    return 0 if causal == "upper-left" else keys - rows


def visible(
    rows: int, keys: int, mask: Flags | None = None, causal: str | None = None, window: Window | None = None
) -> Flags | None:
    """Return which keys each query may attend to, broadcastable to `[B, H, Tq, Tk]`; None: every one."""
    ahead = np.arange(keys) - (np.arange(rows)[:, None] + first_position(causal, rows, keys))
    seen = [] if mask is None else [mask]
    if causal is not None:
        seen.append((ahead <= 0)[None, None])
    left, right = window or (None, None)
    if left is not None:
        seen.append((ahead >= -left)[None, None])
    if right is not None:
        seen.append((ahead <= right)[None, None])
    found = seen[0] if seen else None
    for each in seen[1:]:
        found = found & each if found is not None else each
    return found


def added(seen: Flags | None, score_bias: Array | None, dtype: type) -> Array | None:
    """Return what both add to the scores, broadcastable to `[B, H, Tq, Tk]`, −∞ for a hidden key; None: nothing."""
    if seen is None:
        return score_bias
    bias = np.zeros((1, 1, 1, 1), dtype) if score_bias is None else score_bias
    return np.where(seen, bias, np.array(-np.inf, dtype))
