"""Scores fall with the distance between query and key, at a slope for each head (ALiBi).

−slope_h·|p_i − j| is added, with p_i the aligned position of query i. The slopes are 2^(−8(h + 1)/H), unless given.
It is a score bias, and knows nothing of bK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from verify_attention.model import Array, Case, Estimate, Feature, OnScores, Shape


def complete(parameters: Any, case: Case) -> Any:
    """Fill in the usual slopes."""
    heads = len(case.q)
    return {"slopes": 2.0 ** (-8.0 * (np.arange(heads) + 1) / heads), **parameters}


def biases(case: Case) -> Array:
    """Return what is added to the scores, `[H, Tq, Tk]`."""
    distance = np.abs(case.aligned[:, None] - np.arange(case.keys.shape[1]))
    added: Array = -case.features["alibi"]["slopes"][:, None, None] * distance
    return added


def formula(case: Case, scores: Estimate) -> Estimate:
    """Take the slope off once for each step from the query to the key, either way.

    The product is rounded on either side; the rest is for what `score_bias` names.
    """
    steps = case.aligned[:, None] - np.arange(case.keys.shape[1])
    slopes = case.features["alibi"]["slopes"][:, None, None]
    value = scores.value - slopes * np.maximum(steps, 0) - slopes * np.maximum(-steps, 0)
    size = np.abs(scores.value) + np.abs(slopes * steps)
    error = scores.error + case.precision.lost(8, stored=4) * size
    return Estimate(value, np.where(size <= case.precision.largest, error, np.inf))


def spell_out(case: Case) -> Mapping[str, Any]:
    """Say it as a score bias."""
    return {"score_bias": biases(case)}


FEATURE = Feature(
    __name__,
    __doc__,
    act=OnScores(lambda case, scores: scores + biases(case), formula),
    order=61,
    why="what is added to scores does not depend on the K bias",
    arrays={("slopes",): Shape(("H",), (1,))},
    complete=complete,
    spell_out=spell_out,
)
