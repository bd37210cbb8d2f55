"""What is simpler than a case, step by step, the boldest first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from verify_attention.model import Array, Case
from verify_attention.search.cost import usual_scale, weight
from verify_attention.search.leaves import Path, leaves, with_leaf
from verify_attention.search.writing import needed
from verify_attention.selection import chosen_along

TRIED = (0, 1, -1, 2, -2, 3, -3, 4, -4, 0.5, -0.5, 10, -10, 100, -100, 1000, -1000, 10000, -10000)
LOUDER = 4


def without_things(case: Case) -> Iterator[Case]:
    """Yield the case without one feature, one part or one parameter."""
    for name in case.features:
        yield case.but(features={other: own for other, own in case.features.items() if other != name})
    for name in ("latent", "W_O", "bV", "values", "published"):
        if getattr(case, name) is not None:
            yield case.but(**{name: None})
    if case.values is not None and case.bV is not None:
        yield case.but(values=None, bV=None)
    if not usual_scale(case):
        yield case.but(scale=1 / math.sqrt(case.d_k))
    for name in case.features:
        own = needed(name, case)
        for key in own if isinstance(own, Mapping) else ():
            fewer = {other: value for other, value in own.items() if other != key}
            yield case.but(features={**case.features, name: fewer})
    yield from _fewer_printed(case)


def _fewer_printed(case: Case) -> Iterator[Case]:
    if case.published is None or sum(map(len, case.published.numbers.values())) < 2:
        return
    for quantity, by_condition in case.published.numbers.items():
        for condition, numbers in by_condition.items():
            yield case.but(published=replace(case.published, numbers={quantity: {condition: numbers}}))


def smaller(case: Case) -> Iterator[Case]:
    """Yield the case with fewer heads, rows, keys or channels: half of them first, then all but one.

    At last with larger queries too: what little is left of a deviation may then be seen again.
    """
    bare = case.but(features={name: needed(name, case) for name in case.features})
    for louder, chosen in product((1, LOUDER), _choices(case)):
        scale = 1 / math.sqrt(len(chosen["d_k"])) if "d_k" in chosen and usual_scale(case) else case.scale
        fewer = chosen_along(bare, chosen).but(scale=scale)
        queries = {} if louder == 1 else {"q": louder * fewer.q, "bQ": louder * fewer.bQ}
        yield fewer.but(published=case.published, latent=fewer.latent, **queries)


def _choices(case: Case) -> Iterator[dict[str, Array]]:
    heads, rows, keys = case.scores_shape
    groups = len(case.keys)
    members = np.arange(heads).reshape(groups, -1)
    for some in _parts(groups):
        yield {"G": some, "H": members[some].ravel()}
    for some in _parts(members.shape[1]):
        yield {"H": members[:, some].ravel()}
    yield from ({"Tq": some} for some in _parts(rows))
    for some in _parts(keys):
        yield {"Tk": some, "d_v": some} if case.values is None else {"Tk": some}
    if rows == keys:  # what goes by their being as many
        yield from ({"Tq": some, "Tk": some, **({"d_v": some} if case.values is None else {})} for some in _parts(rows))
    for some in _parts(case.d_k):
        turned = case.d_k if case.latent is None else case.d_k - case.latent.W_UK.shape[2]
        yield {"d_k": some, "d_n": some[some >= turned] - turned}
    if case.values is not None:
        yield from ({"d_v": some} for some in _parts(case.d_v))
    if case.latent is not None:
        yield from ({"d_c": some} for some in _parts(case.latent.c.shape[1]))
    if case.W_O is not None:
        yield from ({"d_out": some} for some in _parts(case.W_O.shape[2]))


def _parts(size: int) -> Iterator[Array]:
    """Yield parts of an axis: halves of a long one, then all but one."""
    every = np.arange(size)
    if size > 3:
        yield every[: size // 2]
        yield every[size // 2 :]
    if size > 1:
        yield from (np.delete(every, place) for place in reversed(range(size)))


def at_once(case: Case) -> Iterator[Case]:
    """Yield the case with an array of zeros, or with one row of it in zeros; a mask that hides nothing."""
    for path, value in leaves(case):
        if not isinstance(value, np.ndarray):
            continue
        simplest: Any = value.dtype == bool
        yield with_leaf(case, path, np.full_like(value, simplest))
        yield with_leaf(case, path, np.clip(np.rint(value), -3, 3) if value.dtype != bool else value)
        for place in np.ndindex(value.shape[:-1]) if value.ndim > 1 else ():
            changed = value.copy()
            changed[place] = simplest
            yield with_leaf(case, path, changed)


def by_number(case: Case) -> Iterator[tuple[Path, tuple[int, ...] | None, tuple[Any, ...]]]:
    """Yield every place of a number with what is simpler there, the simplest first."""
    for path, value in leaves(case):
        if isinstance(value, np.ndarray):
            for place in np.ndindex(value.shape):
                yield path, place, _simpler(value[place].item())
        elif not isinstance(value, bool):
            yield path, None, _simpler(value)


def _simpler(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return () if value else (True,)
    if isinstance(value, str):
        return ("lower-right",) if value == "upper-left" else ()
    if isinstance(value, tuple):
        left, right = value
        return tuple(
            (one, other)
            for one in ([None] if left is None else [None, *range(int(left) + 1)])
            for other in ([None] if right is None else [None, *range(int(right) + 1)])
            if (one, other) != value and (one, other) != (None, None)
        )
    near = {round(value), math.trunc(value), value / 2, round(value / 2)}
    tried = sorted({*TRIED, *near}, key=weight)
    return tuple(one for one in tried if weight(one) < weight(value) - 1e-9)


def changed_at(case: Case, path: Path, place: tuple[int, ...] | None, number: Any) -> Case:
    """Return the case with another number at a place."""
    if place is None:
        return with_leaf(case, path, number)
    array = dict(leaves(case))[path].copy()
    array[place] = number
    return with_leaf(case, path, array)
