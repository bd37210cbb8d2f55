"""Turn nested lists of numbers into arrays, or say exactly what keeps them from being one.

The good path works on whole rows: a case may have millions of numbers.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from verify_attention.wording import Path, count, describe, join, place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verify_attention.model import Array, Flags

# Nobody reads more; a list of millions of texts would otherwise have millions of flaws.
ENOUGH = 2_000

Flaws: TypeAlias = list[tuple[Path, str]]
Content: TypeAlias = Literal["numbers", "scores", "flags"]


class Axis(NamedTuple):
    """One axis of an array: its letter in shapes, what it counts, and the size it must have where that is known.

    `known` says why: `q has 2 heads`.
    """

    letter: str
    unit: str
    size: int | None = None
    known: str = ""


def read(
    value: Any, path: Path, axes: Sequence[Axis], levels: Sequence[int], flaws: Flaws, of: Content = "numbers"
) -> Array | None:
    """Return an array with as many axes as the lists have levels, the last of `axes`; None with flaws added to `flaws`.

    `levels` are the numbers of levels that are allowed. An array of `flags` has true and false for numbers, one of
    `scores` has null for −∞, where a key is hidden.
    """
    if not isinstance(value, list):
        flaws.append((path, f"is {describe(value)}, allowed is a list: {_shapes(axes, levels)}"))
        return None
    if not value:
        flaws.append((path, "is an empty list; nothing may be empty"))
        return None
    level = nesting(value)
    if level not in levels:
        found = f"has {count(level, 'levels')} of lists"
        flaws.append((path, f"{found}, allowed {'are' if len(levels) > 1 else 'is'} {_shapes(axes, levels)}"))
        return None
    kind = _KINDS[of]
    array = kind.array(value) if _regular(value, axes[-level:], kind) else None
    if array is not None:
        return array
    complaints = _complain(value, path, axes[-level:], kind)
    flaws += complaints
    return None if complaints else kind.array(value)  # numbers of another type, such as numpy's


def nesting(value: Any) -> int:
    """Return how many levels of lists there are, judged by first elements."""
    level = 0
    while isinstance(value, list):
        level += 1
        value = value[0] if value else None
    return level


def _shapes(axes: Sequence[Axis], levels: Sequence[int]) -> str:
    return join(
        (f"[{', '.join(axis.letter for axis in axes[-level:])}]" if level else "a number" for level in levels), "or"
    )


def _regular(value: list[Any], axes: Sequence[Axis], kind: _Kind) -> bool:
    """Return whether the lists form an array of the right size, with nothing else in it."""
    lists = [value]
    for index, axis in enumerate(axes):
        if index:
            lists = list(chain.from_iterable(lists))
        if set(map(type, lists)) != {list}:
            return False
        lengths = set(map(len, lists))
        if len(lengths) > 1 or 0 in lengths or (axis.size is not None and axis.size not in lengths):
            return False
    return all(set(map(type, row)) <= kind.types for row in lists)


def _array(value: list[Any]) -> Array | None:
    """Return the numbers as an array, None where one is not finite in float64."""
    try:
        array = np.array(value, dtype=np.float64)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return array if np.isfinite(array).all() else None


def _complain(value: list[Any], path: Path, axes: Sequence[Axis], kind: _Kind) -> Flaws:
    """Return every flaw, each at the innermost place that is wrong."""
    flaws: Flaws = []
    lists: list[tuple[Path, Any]] = [(path, value)]
    for index, axis in enumerate(axes):
        if index:
            lists = [((*at, step), item) for at, entry in lists for step, item in enumerate(entry)]
        fine: list[tuple[Path, list[Any]]] = []
        for at, entry in lists:
            if not isinstance(entry, list):
                flaws.append((at, f"is {describe(entry)}, a list of {axis.unit} is due here"))
            elif not entry:
                flaws.append((at, "is an empty list; nothing may be empty"))
            else:
                fine.append((at, entry))
        flaws += _wrong_lengths(fine, path, axes[: index + 1])
        lists = list(fine)
    wrong = (((*at, step), found) for at, row in lists for step, item in enumerate(row) if (found := kind.wrong(item)))
    return flaws + list(islice(wrong, ENOUGH))


def _wrong_lengths(lists: list[tuple[Path, list[Any]]], path: Path, axes: Sequence[Axis]) -> Flaws:
    axis = axes[-1]
    lengths = {len(entry) for _, entry in lists}
    if not lists or lengths == {axis.size}:
        return []
    if axis.size is None:
        first, entry = lists[0]
        size, known = len(entry), f"{place(first)} has {len(entry)}"
    else:
        size, known = axis.size, axis.known
    if len(lengths) == 1 and len(lists) > 1 and size not in lengths:
        each = axes[-2].unit.removesuffix("s")
        return [(path, f"has {count(lengths.pop(), axis.unit)} in each {each}, {known}")]
    return [(at, f"has {count(len(entry), axis.unit)}, {known}") for at, entry in lists if len(entry) != size]


def _scores(value: list[Any]) -> Array | None:
    """Return scores as an array, with −∞ for null."""
    given = np.array(value, dtype=object)
    hidden: Flags = given == np.array(None)
    array = _array(np.where(hidden, 0.0, given).tolist())
    if array is not None:
        array[hidden] = -np.inf
    return array


def _no_score(value: Any) -> str | None:
    if value is None:
        return None
    said = _no_number(value)
    return f"{said}; null stands for −∞" if said and value == -np.inf else said


def _no_number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "; numbers have no quotes, and look like 2, -0.5 or 1e-3" if isinstance(value, str) else ""
        return f"is {describe(value)}, a number is due here{hint}"
    try:
        finite = np.isfinite(float(value))
    except OverflowError:
        finite = False
    return None if finite else f"is {describe(value)}, which is not finite in float64; every number must be"


def _no_flag(value: Any) -> str | None:
    return (
        None if isinstance(value, bool) else f"is {describe(value)}, true or false is due here: true means may attend"
    )


class _Kind(NamedTuple):
    """What the innermost lists hold."""

    types: frozenset[type]
    array: Callable[[list[Any]], Array | None]
    wrong: Callable[[Any], str | None]


_KINDS: dict[Content, _Kind] = {
    "numbers": _Kind(frozenset({int, float}), _array, _no_number),
    "scores": _Kind(frozenset({int, float, type(None)}), _scores, _no_score),
    "flags": _Kind(frozenset({bool}), lambda value: np.array(value, dtype=bool), _no_flag),
}
