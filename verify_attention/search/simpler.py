"""What is simpler than a case, step by step, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from verify_attention.model import Array, Case
from verify_attention.search.writing import needed
from verify_attention.selection import chosen_along

Path = tuple[str, ...]
ARRAYS = ("q", "keys", "bQ", "bK", "values", "bV", "W_O")
STORED = ("c", "W_UK", "W_UV")
TRIED = (0, 1, -1, 2, -2, 3, -3, 4, -4, 0.5, -0.5, 10, -10, 100, -100, 1000, -1000, 10000, -10000)


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
    things = sum(one is not None for one in said) + _said_of_features(case) + (not _usual_scale(case))
    latent = 0 if case.latent is None else case.latent.c.shape[1] + case.latent.W_UK.shape[2]
    wide = 0 if case.W_O is None else case.W_O.shape[2]
    sizes = sum(case.scores_shape) + len(case.keys) + case.d_k + (case.values is not None) * case.d_v + latent + wide
    numbers = sum(map(_weight, (value for _, value in leaves(case))))
    return Cost(things, sizes, numbers + _weight(case.scale) * (not _usual_scale(case)))


def _said_of_features(case: Case) -> int:
    printed = 0 if case.published is None else sum(map(len, case.published.numbers.values()))
    parameters = (needed(name, case) for name in case.features)
    return printed + sum(1 + (len(own) if isinstance(own, Mapping) else 0) for own in parameters)


def _weight(value: Any) -> float:
    """Say how hard numbers are to reckon with by hand."""
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            return float((~value).sum())
        return float(sum(map(_weight, value.ravel().tolist())))
    if isinstance(value, tuple):
        return float(sum(0 if part is None else 1 + part for part in value))
    if isinstance(value, str):
        return 1.0 + (value != "lower-right")
    size = abs(value)
    digits = 0 if size * 1 % 1 == 0 else 3 if size * 4 % 1 == 0 else 8
    return 0.0 if size == 0 else 1 + math.log2(max(size, 1)) + 0.2 * (value < 0) + digits


def _usual_scale(case: Case) -> bool:
    return case.scale == 1 / math.sqrt(case.d_k)


# Numbers, wherever they are


def leaves(case: Case) -> Iterator[tuple[Path, Any]]:
    """Yield every number and array of a case with its path; what follows from a latent is not among them."""
    for name in ARRAYS:
        array = getattr(case, name)
        if array is not None and not (case.latent is not None and name == "values"):
            yield (name,), array
    for name in STORED if case.latent is not None else ():
        yield ("latent", name), getattr(case.latent, name)
    for name in case.features:
        own = needed(name, case)
        if isinstance(own, Mapping):
            yield from ((("features", name, key), value) for key, value in own.items())
        else:
            yield ("features", name), own


def with_leaf(case: Case, path: Path, value: Any) -> Case:
    """Return the case with another number or array at a path."""
    first, *rest = path
    if first == "latent" and case.latent is not None:
        return case.but(latent=replace(case.latent, **{rest[0]: value}))
    if first != "features":
        return case.but(**{first: value}, latent=case.latent, expect=case.expect)
    own = value if len(rest) == 1 else {**needed(rest[0], case), rest[1]: value}
    return case.but(features={**case.features, rest[0]: own})


# Steps: the boldest first


def without_things(case: Case) -> Iterator[Case]:
    """Yield the case without one feature, one part or one parameter."""
    for name in case.features:
        yield case.but(features={other: own for other, own in case.features.items() if other != name})
    for name in ("latent", "W_O", "bV", "values", "published"):
        if getattr(case, name) is not None:
            yield case.but(**{name: None})
    if case.values is not None and case.bV is not None:
        yield case.but(values=None, bV=None)
    if not _usual_scale(case):
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
    """Yield the case with fewer heads, rows, keys or channels: half of them first, then all but one."""
    bare = case.but(features={name: needed(name, case) for name in case.features})
    for chosen in _choices(case):
        scale = 1 / math.sqrt(len(chosen["d_k"])) if "d_k" in chosen and _usual_scale(case) else case.scale
        fewer = chosen_along(bare, chosen).but(scale=scale)
        yield fewer.but(published=case.published, latent=fewer.latent)


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
    tried = sorted({*TRIED, *near}, key=_weight)
    return tuple(one for one in tried if _weight(one) < _weight(value) - 1e-9)


def changed_at(case: Case, path: Path, place: tuple[int, ...] | None, number: Any) -> Case:
    """Return the case with another number at a place."""
    if place is None:
        return with_leaf(case, path, number)
    array = dict(leaves(case))[path].copy()
    array[place] = number
    return with_leaf(case, path, array)
