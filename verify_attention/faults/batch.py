"""Samples of one batch that know of each other."""

from __future__ import annotations

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question
from verify_attention.model import Array


def leaking(_: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Mix a tenth of sample 1 into sample 0."""
    output = answer["output"].copy()
    if len(output) > 1:
        output[0] = 0.9 * output[0] + 0.1 * output[1]
    return {**answer, "output": output}


KIND = Kind("batch", (mistake("ten per cent of sample 1 leaks into sample 0", finish=leaking),))
