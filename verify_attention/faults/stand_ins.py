"""What is no attention at all, and satisfies some symmetries all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, softmax
from verify_attention.model import Array, Fault


def uniform(weights: Array) -> Array:
    """Give every key the same weight."""
    return np.full_like(weights, 1 / weights.shape[-1])


def one_hot(weights: Array) -> Array:
    """Give the key of the largest weight all of it."""
    places = np.arange(weights.shape[-1])
    return (places == weights.argmax(axis=-1)[..., None]).astype(weights.dtype)


def squared(weights: Array) -> Array:
    """Square the weights, and normalise them again."""
    powers = weights**2
    return powers / powers.sum(axis=-1, keepdims=True)


def weighing(change: Callable[[Array], Array]) -> Callable[[Question, Array], tuple[Array, Array]]:
    """Return a softmax whose weights are something else."""

    def normalise(ask: Question, scores: Array) -> tuple[Array, Array]:
        weights, lse = softmax(ask, scores)
        return change(weights), lse

    return normalise


def filled(number: float) -> Callable[[Question, dict[str, Array]], dict[str, Array]]:
    """Return a last step that answers one number everywhere."""
    return lambda _, answer: {name: np.full_like(array, number) for name, array in answer.items()}


def constant(_: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Answer the same output to everything."""
    return {**answer, "output": np.full_like(answer["output"], 0.25)}


def _stand_ins() -> Iterator[Fault]:
    """Yield each twice: one that shows all, and one that shows its output only."""
    steps: dict[str, dict[str, Any]] = {
        "uniform weights": {"normalise": weighing(uniform)},
        "one-hot weights": {"normalise": weighing(one_hot)},
        "zeros": {"finish": filled(0.0)},
        "NaN": {"finish": filled(np.nan)},
        "squared weights, normalised again": {"normalise": weighing(squared)},
        "a constant output": {"finish": constant},
    }
    for what, own in steps.items():
        yield mistake(what, **own)
        yield mistake(f"{what}; nothing else is shown", **own, shows=())


KIND = Kind("stand-ins", tuple(_stand_ins()))
