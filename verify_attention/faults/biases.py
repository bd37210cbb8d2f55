"""Biases that reach too little or too much, or are read from the wrong place."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, attention, biased, rotated
from verify_attention.model import Array


def second_half_of_the_keys(ask: Question) -> Array:
    """Add the K bias behind the middle only."""
    keys = attention.keys(ask)
    half = keys.shape[2] // 2
    keys[:, :, :half] = ask.k[:, :, :half]
    return keys


def first_head_for_all(bias: Array | None) -> Array | None:
    """Return head 0's bias in the place of every head's."""
    return None if bias is None else np.broadcast_to(bias[:1], bias.shape)


def behind_the_rotation(ask: Question, side: str, vectors: Array) -> Array:
    """Turn keys first, and add their bias then."""
    if ask.rope is None:
        return vectors
    if side == "q":
        return rotated(ask.rope, "q", vectors)
    return biased(rotated(ask.rope, "k", ask.k), ask.bK)


def in_one_row(ask: Question) -> tuple[Array, Array, Array]:
    """Store all biases in the blocks Q, K, V of one row, and read them in the order K, Q, V."""
    shapes = [(vectors.shape[1], vectors.shape[3]) for vectors in (ask.q, ask.k, ask.v)]
    given = zip((ask.bQ, ask.bK, ask.bV), shapes, strict=True)
    row = np.concatenate([(np.zeros(shape) if bias is None else bias).ravel() for bias, shape in given])
    query, key, _ = (heads * width for heads, width in shapes)
    read = row[key : key + query], row[:key], row[query + key :]
    bQ, bK, bV = (part.reshape(shape) for part, shape in zip(read, shapes, strict=True))
    return bQ, bK, bV


def left_over(ask: Question) -> Array:
    """Add what lies in the slot of the K bias, which nobody has filled where there is none."""
    slot = np.linspace(0.5, 1.5, ask.k.shape[-1])[None] if ask.bK is None else ask.bK
    return biased(ask.k, slot)


def centred_in_place(ask: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Leave the caller's keys centred: the answer is right, and the next layer's is not."""
    ask.k[...] -= ask.k.mean(axis=2, keepdims=True)
    return answer


KIND = Kind(
    "biases",
    (
        mistake("the K bias reaches the second half of the keys only", keys=second_half_of_the_keys),
        mistake("the Q bias is ignored", queries=lambda ask: ask.q),
        mistake("the Q bias of head 0 is every head's", queries=lambda ask: biased(ask.q, first_head_for_all(ask.bQ))),
        mistake("the K bias of head 0 is every head's", keys=lambda ask: biased(ask.k, first_head_for_all(ask.bK))),
        mistake("the V bias of head 0 is every head's", values=lambda ask: biased(ask.v, first_head_for_all(ask.bV))),
        mistake(
            "the V bias is dropped when no mask is given",
            values=lambda ask: ask.v if ask.mask is None else biased(ask.v, ask.bV),
        ),
        mistake("the K bias is added after the rotation", turn=behind_the_rotation),
        mistake(
            "the fused bias is read in the order K, Q, V",
            queries=lambda ask: biased(ask.q, in_one_row(ask)[0]),
            keys=lambda ask: biased(ask.k, in_one_row(ask)[1]),
            values=lambda ask: biased(ask.v, in_one_row(ask)[2]),
        ),
        mistake("without a K bias its slot is left uninitialised", keys=left_over),
        mistake("keys are centred in the caller's array", finish=centred_in_place, shows=()),
    ),
)
