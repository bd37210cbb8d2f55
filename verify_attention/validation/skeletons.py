"""What of a document a schema can see, so that a validator looks at equal things once.

The skeleton of a value keeps what our schemas' keywords can tell apart and nothing else: of a number whether it is
whole and how it compares with each number in the schema, of a list which skeletons its elements have and how many it
has up to the largest count in the schema, of a text which patterns it matches. Two values with the same skeleton are
valid under the same subschemas. That holds only where the schema uses no other keywords than `KEYWORDS`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import repeat
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

# uniqueItems, contains, prefixItems, multipleOf and the like see more than a skeleton keeps.
_SILENT = {"$comment", "$defs", "$id", "$schema", "default", "description", "examples", "title"}
_OF_EDITORS = {"defaultSnippets", "markdownDescription", "markdownEnumDescriptions"}
_COMBINING = {"$ref", "allOf", "anyOf", "else", "if", "not", "oneOf", "then"}
_OF_MAPPINGS = {"additionalProperties", "maxProperties", "minProperties", "properties", "propertyNames", "required"}
_OF_VALUES = {"const", "enum", "items", "pattern", "type"}
_MAPS = {"$defs", "properties"}
_DATA = {"const", "default", "enum", "examples"} | _OF_EDITORS
_LENGTHS = {"maxItems", "minItems"}
_TEXT_LENGTHS = {"maxLength", "minLength"}
_BOUNDS = {"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"}
KEYWORDS = _SILENT | _OF_EDITORS | _COMBINING | _OF_MAPPINGS | _OF_VALUES | _LENGTHS | _TEXT_LENGTHS | _BOUNDS
_DEEPEST = 64


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every keyword of a schema and of its subschemas, with its value."""
    if isinstance(schema, list):
        for entry in schema:
            yield from keywords(entry)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            yield keyword, value
            if keyword in _MAPS:
                yield from keywords(list(value.values()))
            elif keyword not in _DATA:
                yield from keywords(value)


class Alike(list[Any]):
    """A list that is known to be valid wherever its sample is: the sample has an element of each kind that it has."""

    __slots__ = ("sample",)
    sample: list[Any]

    @classmethod
    def of(cls, values: list[Any], sample: list[Any]) -> Self:
        """Return a copy of a list that has a sample."""
        made = cls(values)
        made.sample = sample
        return made


class Skeletons:
    """Skeletons for one schema: equal numbers for values that it cannot tell apart."""

    def __init__(self, schema: Any) -> None:
        used = list(keywords(schema))
        literals = [value for keyword, value in used if keyword == "const"]
        literals += [entry for keyword, value in used if keyword == "enum" for entry in value]
        numbers = [value for keyword, value in used if keyword in _BOUNDS]
        numbers += [leaf for leaf in literals if type(leaf) in {int, float}]
        # A constant list would have to match in order and length, which a skeleton does not keep.
        constant = not any(isinstance(leaf, list | dict) for leaf in literals)
        local = all(value.startswith("#") for keyword, value in used if keyword == "$ref")
        self.exact = constant and local and KEYWORDS.issuperset(keyword for keyword, _ in used)
        self._bounds = sorted(set(numbers))
        self._apart = frozenset(self._bounds)
        self._longest = 1 + max((value for keyword, value in used if keyword in _LENGTHS), default=0)
        self._letters = 1 + max((value for keyword, value in used if keyword in _TEXT_LENGTHS), default=0)
        self._patterns = [re.compile(pattern).search for pattern in {v for keyword, v in used if keyword == "pattern"}]
        self._texts = {leaf for leaf in literals if isinstance(leaf, str)}
        self._fraction = [(False, place, place) for place in range(len(self._bounds) + 1)]
        self._number = lru_cache(4096)(self._any_number)
        self._leaves: dict[type, Callable[[Any], Hashable]] = {
            float: self._float,
            int: self._number,
            str: lru_cache(4096)(self._text),
            bool: lambda value: ("boolean", value),
        }
        self._table: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}

    @property
    def known(self) -> Mapping[int, int]:
        """The skeletons of the document's mappings that were looked at, by identity."""
        return self._known

    def forget(self) -> None:
        """Forget which mappings have which skeleton: another document comes."""
        self._known.clear()

    def of(self, value: Any) -> tuple[Hashable] | None:
        """Return a value's skeleton; None where it has none: too deep, or a number that is not finite."""
        try:
            return (self._of(value, 0),)
        except _NoSkeletonError:
            return None

    def _of(self, value: Any, depth: int) -> Hashable:
        # Skeletons of different kinds must differ: None; an int for a list or a mapping; a text for itself; otherwise a
        # tuple, of its own form for numbers, for other texts and for true and false.
        if value is None:
            return None
        leaf = self._leaves.get(type(value))
        if leaf is not None:
            return leaf(value)
        if depth > _DEEPEST:
            raise _NoSkeletonError
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Hashable:
        kind = type(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list:
            return self._number_of(self._list(value, depth))
        if kind is Alike:
            name = id(value.sample)
            if name not in self._known:
                self._known[name] = self._number_of(self._list(value.sample, depth))
            return self._known[name]
        raise _NoSkeletonError

    def _number_of(self, key: Hashable) -> int:
        return self._table.setdefault(key, len(self._table))

    def _mapping(self, value: dict[str, Any], depth: int) -> int:
        # A validator comes back to what is inside a value that it has not seen. Lists are quick to look at again.
        name = id(value)
        if name not in self._known:
            leaves = self._leaves
            # As `_of` does, without a call for each: most of the time is spent here.
            parts: list[Hashable] = []
            for child in value.values():
                leaf = leaves.get(type(child))
                if leaf is not None:
                    parts.append(leaf(child))
                else:
                    parts.append(None if child is None else self._of(child, depth + 1))
            self._known[name] = self._number_of((tuple(value), *parts))
        return self._known[name]

    def _float(self, number: float) -> Hashable:
        """Return what `_number` does, at once for the finite fractions that are no bound: most of all numbers."""
        if number % 1.0 > 0.0 and number not in self._apart:  # not so for whole ones and those that are not finite
            return self._fraction[bisect_left(self._bounds, number)]
        return self._number(number)

    def _any_number(self, number: float) -> Hashable:
        if not finite(number):
            raise _NoSkeletonError
        return number == int(number), bisect_left(self._bounds, number), bisect_right(self._bounds, number)

    def _text(self, text: str) -> Hashable:
        if text in self._texts:
            return text
        return "text", min(len(text), self._letters), *[search(text) is not None for search in self._patterns]

    def _list(self, values: list[Any], depth: int) -> Hashable:
        length = min(len(values), self._longest)
        if self._fractions(values):
            return "fractions", length, frozenset(map(bisect_left, repeat(self._bounds), values))
        known = self._known
        return "list", length, frozenset([known.get(id(value)) or self._of(value, depth + 1) for value in values])

    def _fractions(self, values: list[Any]) -> bool:
        """Return whether there are only finite fractions, none of them a bound: most of a large document's rows."""
        # A sum is finite only if every number is; where it overflows, the long way is right too.
        return (
            set(map(type, values)) == {float}
            and isfinite(sum(values))
            and not any(map(float.is_integer, values))
            and self._apart.isdisjoint(values)
        )


def finite(number: float) -> bool:
    """Return whether a number is finite in float64."""
    try:
        return isfinite(number)
    except OverflowError:
        return False


class _NoSkeletonError(Exception):
    """A value has no skeleton."""
