"""What the features of a case do to it, one after the other in the one order that they have.

The order is: what acts on the vectors before the biases; the biases and key shifts; what acts on the vectors after
them; the scale; what acts on the scores; the mask; the normalisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TypeVar

import numpy as np

from verify_attention.memory import once_per_case
from verify_attention.model import (
    AddsColumn,
    Case,
    Feature,
    Fills,
    Flags,
    Hides,
    Normalises,
    OnScores,
    OnVectors,
    Trait,
)
from verify_attention.registry import names

Act = TypeVar("Act", OnVectors, OnScores, Hides, Fills, AddsColumn, Normalises)


@cache
def feature(name: str) -> Feature:
    """Return one feature by the name that a case gives it, and load no other."""
    found: Feature = import_module(f"verify_attention.features.{name}").FEATURE
    return found


def features_among(given: Iterable[object]) -> list[Feature]:
    """Return the features that are among some names, in the order in which they act, and load no other."""
    known = names("verify_attention.features")
    return sorted((feature(str(name)) for name in given if name in known), key=lambda each: each.order)


def departs(case: Case) -> bool:
    """Say whether a case has any feature but key shifts."""
    return any(name != "key_shifts" for name in case.features)


def in_order(case: Case) -> list[Feature]:
    """Return the features of a case in the order in which they act."""
    return sorted(map(feature, case.features), key=lambda each: each.order)


def taken_by(case: Case) -> dict[str, frozenset[Trait]]:
    """Return the traits that each feature of a case takes away."""
    return {name: feature(name).taken(parameters) for name, parameters in case.features.items()}


def taken(case: Case) -> frozenset[Trait]:
    """Return the traits that a case loses, whatever takes them away."""
    return frozenset().union(*taken_by(case).values())


def acts(case: Case, kind: type[Act]) -> Iterator[Act]:
    """Yield what the features of a case do of one kind, in order."""
    return (each.act for each in in_order(case) if isinstance(each.act, kind))


def on_vectors(case: Case) -> tuple[list[OnVectors], list[OnVectors]]:
    """Return what acts on the vectors before the biases, and after them, each in order."""
    found = [each for each in in_order(case) if isinstance(each.act, OnVectors)]
    placed = [(each.act.place(case.features[each.name]), each.act) for each in found if isinstance(each.act, OnVectors)]
    placed.sort(key=lambda pair: pair[0])
    return [act for place, act in placed if place < 0], [act for place, act in placed if place > 0]


@once_per_case
def visible(case: Case) -> Flags | None:
    """Return which keys each row may attend to, `[H, Tq, Tk]`; None: every row every key."""
    allowed = None
    for act in acts(case, Hides):
        found = act.core(case)
        allowed = found if allowed is None else allowed & found
    return None if allowed is None else np.broadcast_to(allowed, case.scores_shape)


def has_lse(case: Case) -> bool:
    """Say whether a row has an LSE: it has none where something stands for softmax."""
    return not any(acts(case, Normalises))


def kept(case: Case) -> int | None:
    """Return how many keys of a row keep a weight, whatever their scores; None: any number."""
    return next((act.kept(case) for act in acts(case, Normalises)), None)


def hidden_score(case: Case) -> float:
    """Return the score of what is hidden: −∞, unless a feature fills it."""
    return next((act.score(case) for act in acts(case, Fills)), -np.inf)


@once_per_case
def telling(case: Case) -> Flags | None:
    """Return the rows whose weights can tell something, `[H, Tq, 1]`; None: all of them.

    A row of one key has the weight 1 in any event, unless something else takes a share, or nothing makes it sum to one.
    """
    if "rows sum to one" in taken(case):
        return None
    if case.keys.shape[1] < 2:
        return np.zeros((*case.scores_shape[:2], 1), dtype=bool)
    seen = visible(case)
    if seen is None or np.isfinite(hidden_score(case)):
        return None
    return (seen.sum(axis=-1, keepdims=True) >= 2).astype(bool)


def one_key(case: Case) -> str | None:
    """Return the reason why nothing can be said of weights where each row sees one key only; else None."""
    rows = telling(case)
    lone = rows is not None and not rows.any()
    return "vacuous: a row has one key, whose weight is 1 in any event" if lone else None
