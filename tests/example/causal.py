"""Attention with a mistake: where it is causal, the K bias is lost."""

import numpy as np


def attention(q, k, v, *, causal=None, bK=None):
    """Attend, and show the scores."""
    if bK is not None and causal is None:
        k = k + bK[:, None]
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal is not None:
        rows, keys = scores.shape[-2:]
        first = 0 if causal == "upper-left" else keys - rows
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None] + first, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return {"output": weights @ v, "scores": scores}
