"""How far a case is from the simplest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from verify_attention.model import Case
from verify_attention.search.leaves import leaves
from verify_attention.search.writing import needed


class Cost(NamedTuple):
    """How far a case is from the simplest: things that are said, sizes, and numbers."""

    things: float
    sizes: float
    numbers: float

    @property
    def sizes_first(self) -> tuple[float, ...]:
        """The same in another order."""
        return self.sizes, self.things, self.numbers

    @property
    def together(self) -> tuple[float, ...]:
        """Things and sizes in one: a thing is two lines of a reckoning."""
        return 2 * self.things + self.sizes, self.numbers


def cost(case: Case) -> Cost:
    """Say how far a case is from the simplest."""
    said = [case.values, case.bV, case.W_O, case.latent, case.published]
    things = sum(one is not None for one in said) + _said_of_features(case) + (not usual_scale(case))
    latent = 0 if case.latent is None else case.latent.c.shape[1] + case.latent.W_UK.shape[2]
    wide = 0 if case.W_O is None else case.W_O.shape[2]
    sizes = sum(case.scores_shape) + len(case.keys) + case.d_k + (case.values is not None) * case.d_v + latent + wide
    numbers = sum(map(weight, (value for _, value in leaves(case))))
    return Cost(things, sizes, numbers + weight(case.scale) * (not usual_scale(case)))


def _said_of_features(case: Case) -> int:
    printed = 0 if case.published is None else sum(map(len, case.published.numbers.values()))
    parameters = (needed(name, case) for name in case.features)
    return printed + sum(1 + (len(own) if isinstance(own, Mapping) else 0) for own in parameters)


def weight(value: Any) -> float:
    """Say how hard numbers are to reckon with by hand."""
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            return float((~value).sum())
        return float(sum(map(weight, value.ravel().tolist())))
    if isinstance(value, tuple):
        return float(sum(0 if part is None else 1 + part for part in value))
    if isinstance(value, str):
        return 1.0 + (value != "lower-right")
    size = abs(value)
    digits = 0 if size % 1 == 0 else 3 if size * 4 % 1 == 0 else 8
    return 0.0 if size == 0 else 1 + math.log2(max(size, 1)) + 0.2 * (value < 0) + digits


def usual_scale(case: Case) -> bool:
    """Say whether a case leaves its scale out."""
    return case.scale == 1 / math.sqrt(case.d_k)
