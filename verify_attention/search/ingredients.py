"""What a claim asks of a case, and what an implementation offers: found by asking both, so that no list says it.

An ingredient is a feature, or a part that most cases do not have.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify_attention import plugins
from verify_attention.departures import feature
from verify_attention.engine.attend import Attend, NotOfferedError
from verify_attention.model import (
    AddsColumn,
    Case,
    CrashedError,
    Fills,
    Hides,
    Implementation,
    Invariant,
    Normalises,
)
from verify_attention.search.drawing import PARTS, Order, case_of
from verify_attention.search.parameters import Numbers

TRIES = 6
OFTEN = 0.4  # what is asked as often of plain cases needs no ingredient


@dataclass(frozen=True)
class Recipe:
    """Of what the cases of one claim are made: `one_of` has to be there, where it is not empty; `others` may be."""

    claim: Invariant
    one_of: tuple[str, ...]
    others: tuple[str, ...]
    always: tuple[str, ...] = ()

    def ingredients(self, numbers: Numbers) -> tuple[str, ...]:
        """Draw ingredients that can stand together."""
        found = list(self.always)
        if self.one_of and not set(found) & set(self.one_of):
            found.append(numbers.choice(*self.one_of))
        more = numbers.choice(0, 0, 1, 1, 2, 3) if self.others else 0
        found += [numbers.choice(*self.others) for _ in range(more)]
        return _together(found)


def _together(found: Sequence[str]) -> tuple[str, ...]:
    """Leave out what contradicts an earlier one, and let something hide keys where hidden scores are filled."""
    kinds = {name: type(feature(name).act) for name in dict.fromkeys(found) if name not in PARTS}
    kept: list[str] = []
    for name in dict.fromkeys(found):
        others = {kinds[one] for one in kept if one in kinds}
        clash = {Normalises: AddsColumn, AddsColumn: Normalises}.get(kinds.get(name, object))
        if clash not in others:
            kept.append(name)
    if any(kinds.get(name) is Fills for name in kept) and Hides not in map(kinds.get, kept):
        kept.append("mask")
    return tuple(kept)


def recipes(claims: Sequence[Invariant], implementation: Implementation, always: Sequence[str] = ()) -> list[Recipe]:
    """Return of what the cases of each claim are made, for an implementation; every case has what is `always` there.

    A claim that is asked of no such case has no recipe.
    """
    names = [name for name in plugins.features() if name in always or _offers(implementation, name)]
    made = (_recipe(claim, [*names, *PARTS], tuple(always)) for claim in claims)
    return [recipe for recipe in made if recipe is not None]


def _recipe(claim: Invariant, known: Sequence[str], always: tuple[str, ...]) -> Recipe | None:
    fit = [name for name in known if name in PARTS or not _takes(name, claim)]
    others = tuple(name for name in fit if name not in PARTS)
    asked = _share(claim, always)
    if asked >= OFTEN:
        return Recipe(claim, (), others, always)
    shares = {name: _share(claim, (*always, name)) for name in fit}
    best = max(shares.values(), default=0.0)
    if best <= asked:
        return Recipe(claim, (), others, always) if asked else None
    return Recipe(claim, tuple(name for name in fit if shares[name] > best / 2), others, always)


def _takes(name: str, claim: Invariant) -> bool:
    """Say whether a feature takes away what a claim needs, whatever its parameters."""
    own = feature(name)
    return own.takes_with is None and bool(own.takes & claim.needs)


def _share(claim: Invariant, names: Sequence[str]) -> float:
    """Return of which share of cases with these ingredients, and no others, a claim is asked."""
    with np.errstate(all="ignore"):
        return sum(claim.not_asked(case) is None for case in _examples(names, claim)) / TRIES


def _examples(names: Sequence[str], claim: Invariant | None = None) -> Iterator[Case]:
    """Yield some cases that have nothing else, always the same."""
    for seed in range(TRIES):
        data = random.Random(seed).randbytes(400)  # noqa: S311 - no secret
        sizes = {"H": 4, "G": 2, "Tq": 3, "Tk": 4, "d_k": 2, "d_v": 5}
        case = case_of(Order(sizes, _together(names), claim), Numbers(data))
        if case is not None:
            yield case


def _offers(implementation: Implementation, name: str) -> bool:
    """Say whether an implementation takes up any case that has one feature and nothing else."""
    for case in _examples([name]):
        try:
            with np.errstate(all="ignore"):
                Attend(implementation)(case)
        except NotOfferedError:
            continue
        except CrashedError:
            return True
        return True
    return False
