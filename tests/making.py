"""Cases for tests: random ones in general position, with sizes that all differ unless a test says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_attention import kernel
from verify_attention.functions import Asked
from verify_attention.model import Case, Implementation, Invariant, Tolerance, Trace
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants

INVARIANTS = invariants()
TOLERANCE = Tolerance()
PEER = Asked(kernel.attention)


def right_of(invariant: Invariant) -> Implementation:
    """Return a right implementation that is asked of the claim: the core, or where that is not asked, another."""
    return PEER if invariant.of_others else CORE


@dataclass(frozen=True)
class AsCore:
    """An implementation that says that it is the core."""

    implementation: Implementation
    is_core: bool = True

    def __call__(self, case: Case) -> Trace:
        return self.implementation(case)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_case(draw: np.random.Generator, **given: Any) -> Case:
    """Return a case with H = 6, G = 3, Tq = 4, Tk = 5, d_k = 7, d_v = 2, unless given otherwise."""
    sizes = {"H": 6, "G": 3, "Tq": 4, "Tk": 5, "d_k": 7, "d_v": 2}
    sizes |= {name: given.pop(name) for name in list(given) if name in sizes}
    heads, groups, rows, keys, width, value_width = sizes.values()
    arrays: dict[str, Any] = {
        "id": "random",
        "q": draw.normal(size=(heads, rows, width)),
        "keys": draw.normal(size=(groups, keys, width)),
        "bQ": draw.normal(size=(heads, width)),
        "bK": draw.normal(size=(groups, width)),
        "values": draw.normal(size=(groups, keys, value_width)),
        "bV": draw.normal(size=(groups, value_width)),
        "scale": width**-0.5,
    }
    return Case(**arrays | given)


def wild_cases(draw: np.random.Generator, count: int) -> list[Case]:
    """Return cases of one random small shape, each with numbers of any size up to 1e3 and a K bias up to 1e10."""
    groups, rows, keys = (int(draw.integers(1, top)) for top in (3, 5, 8))
    heads, width, value_width = groups * int(draw.integers(1, 4)), int(draw.integers(1, 20)), int(draw.integers(1, 5))
    scale = width**-0.5 if draw.random() < 0.7 else float(10.0 ** draw.uniform(-3, 1))
    shifted, valued, value_biased = draw.random(3) < (0.2, 0.7, 0.5)

    def numbers(*shape: int, largest: float = 3.0) -> np.ndarray:
        """Return numbers of one size, or of another in each row, or in each channel."""
        sizes = ((1,) * len(shape), (*shape[:-1], 1), (1,) * (len(shape) - 1) + shape[-1:])[draw.integers(3)]
        return draw.normal(size=shape) * 10.0 ** draw.uniform(-3, largest, size=sizes)

    return [
        Case(
            id="wild",
            q=numbers(heads, rows, width),
            keys=numbers(groups, keys, width),
            bQ=numbers(heads, width) * (draw.random() < 0.9),
            bK=numbers(groups, width, largest=10.0),
            values=numbers(groups, keys, value_width) if valued else None,
            bV=numbers(groups, value_width if valued else keys) if value_biased else None,
            scale=scale,
            features={"key_shifts": numbers(groups, keys, width)} if shifted else {},
        )
        for _ in range(count)
    ]


def article_case(**given: Any) -> Case:
    """Return the article's worked example."""

    def array(*rows: Any) -> np.ndarray:
        return np.array(rows, dtype=np.float64)

    example: dict[str, Any] = {
        "id": "two-dimensions",
        "q": array([[1, 0]]),
        "keys": array([[1, 0], [0, 1], [-1, 0]]),
        "bQ": array([0, 1]),
        "bK": array([3, -2]),
        "scale": 2**-0.5,
    }
    return Case(**example | given)
