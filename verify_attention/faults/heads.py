"""Heads that get the keys of others, or are put together in the wrong order."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, attention
from verify_attention.model import Array


def tiled(ask: Question, vectors: Array) -> Array:
    """Repeat all key-value heads in a row, not each."""
    return np.tile(vectors, (1, ask.group, 1, 1))


def merged_without_transpose(_: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Read the output `[B, Tq, H, d_v]` as if heads stood before rows."""
    output = answer["output"]
    return {**answer, "output": np.ascontiguousarray(output.swapaxes(1, 2)).reshape(output.shape)}


def read_by_head(ask: Question) -> tuple[Array, Array, Array]:
    """Read the tokens' vectors, stored in the blocks Q, K, V, as if each key-value head had its three together."""
    parts = [attention.queries(ask), attention.keys(ask), attention.values(ask)]
    if ask.q.shape[2] != ask.k.shape[2]:
        return parts[0], parts[1], parts[2]  # no self-attention: nothing was fused
    samples, groups, rows, width = ask.k.shape
    tokens = np.concatenate([part.swapaxes(1, 2).reshape(samples, rows, -1) for part in parts], axis=-1)
    ends = np.cumsum([ask.group * width, width])
    read = np.split(tokens.reshape(samples, rows, groups, -1), ends, axis=-1)
    q, k, v = (
        part.reshape(samples, rows, -1, right.shape[-1]).swapaxes(1, 2) for part, right in zip(read, parts, strict=True)
    )
    return q, k, v


KIND = Kind(
    "heads",
    (
        mistake("key-value heads are tiled, not repeated", group=tiled),
        mistake("heads are merged without a transpose", finish=merged_without_transpose),
        mistake(
            "the fused projection is read head by head where it is stored in blocks",
            queries=lambda ask: read_by_head(ask)[0],
            keys=lambda ask: read_by_head(ask)[1],
            values=lambda ask: read_by_head(ask)[2],
        ),
    ),
)
