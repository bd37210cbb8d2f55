"""A sample of a batch gets what it gets alone, wherever it sits and whoever sits beside it.

The others have numbers, masks and score biases of their own, in the same shapes and with the same options. A batch of
as many samples as heads tells a batch axis from a head axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention import departures
from verify_attention.agreement import same
from verify_attention.faults import batch
from verify_attention.functions import Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import BLOCK, Array, Case, Fault, Implementation, Invariant, Posed, Sides


def another(case: Case, number: int) -> Case:
    """Return a case of the same shapes and options with other queries, keys, values, masks and score biases."""
    changes: dict[str, Any] = {
        "q": np.roll(case.q, number, axis=-1) * -0.75,
        "keys": np.roll(case.keys, number, axis=1) * 1.25 + 0.5,
    }
    if case.values is not None:
        changes["values"] = np.roll(case.values, number, axis=1) * -2.0 + 4.0
    if "score_bias" in case.features:
        changes["features"] = {**case.features, "score_bias": -case.features["score_bias"]}
    found = case.but(**changes)
    mask = found.features.get("mask")
    if mask is None:
        return found
    mask = np.broadcast_to(mask, case.scores_shape)
    for other in (~mask, np.roll(mask, number, axis=-1)):
        masked = found.but(features={**found.features, "mask": other})
        seen = departures.visible(masked)
        if seen is not None and seen.any(axis=-1).all():
            return masked
    return found


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output of a sample that sits first of two, last of three, and among as many as there are heads."""
    plain = case.under("qk")
    alone = attend(plain)
    arguments(alone)
    many = min(len(case.q), max(3, BLOCK // math.prod(case.scores_shape)))  # as many as heads, if there is room
    company = tuple(another(plain, number) for number in range(1, max(3, many)))
    for of, posed in {
        "first of two": Posed(company[:1]),
        "last of three": Posed(company[:2], seat=2),
        "second of as many as heads": Posed(company[: max(1, many - 1)], seat=1),
    }.items():
        yield from same(f", {of}", attend(plain.but(posed=posed)), alone, plain)


def with_the_first_lse(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Show the LSE, the weights and the scores of sample 0 for all."""
    shown = attention(q, k, v, **options)
    return {name: part if name == "output" else np.repeat(part[:1], len(q), axis=0) for name, part in shown.items()}


def with_the_first_mask(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Use the mask of sample 0 for all."""
    if options.get("mask") is not None:
        options["mask"] = options["mask"][:1]
    return attention(q, k, v, **options)


def with_masks_tiled(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Tile the masks of samples over batch and heads, where each should be repeated for the heads of its sample."""
    mask = options.get("mask")
    if mask is not None:
        samples, heads = q.shape[:2]
        of_sample = np.broadcast_to(mask, (samples, heads, *mask.shape[2:]))[:, 0]
        tiled = np.tile(of_sample, (heads, 1, 1)).reshape(samples, heads, *mask.shape[2:])
        alike = np.broadcast_to(of_sample[:, None] == mask, tiled.shape).all()
        options["mask"] = tiled if alike else mask
    return attention(q, k, v, **options)


def centred_over_the_batch(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Take the keys' mean over the whole batch off every other key."""
    return attention(q, k - k.mean(axis=(0, 2), keepdims=True) * (np.arange(k.shape[2])[:, None] % 2), v, **options)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(batch)[b] = attention(batch[b : b + 1])[0]",
    source="what a batch is",
    of_others=True,
    sides=sides,
    faults=(
        *batch.KIND.faults,
        Fault("LSE, weights and scores are shown of sample 0 for all", Asked(with_the_first_lse)),
        Fault("the mask of sample 0 is used for all", Asked(with_the_first_mask)),
        Fault("masks of samples are tiled over batch and heads, not repeated", Asked(with_masks_tiled)),
        Fault("keys are centred by the mean of the batch", Asked(centred_over_the_batch)),
    ),
)
