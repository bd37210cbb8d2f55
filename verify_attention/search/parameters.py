"""Small numbers and choices out of a run of bytes, and a feature's parameters, as its schema and its arrays allow."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np

from verify_attention import resources
from verify_attention.departures import feature
from verify_attention.model import Array, Flags, Shape

T = TypeVar("T")
SMALL = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 1.0, -3.0)
MIXED = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -1.5, 4.0, -5.0, 3.0, 0.25, 7.0, -0.5, 1.5, -3.0, 9.0)
ABOVE_ZERO = (0.5, 1.0, 2.0, 3.0)
Sizes = Mapping[str, int]


class Numbers:
    """A run of bytes that is read as choices and as numbers; where it ends it begins again."""

    def __init__(self, data: bytes) -> None:
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        self._at = 1
        self._table = np.array(MIXED if data[0] % 4 == 0 else SMALL)

    def _next(self, count: int) -> Array:
        taken = self._bytes.take(range(self._at, self._at + count), mode="wrap")
        self._at += count
        return taken

    def choice(self, *options: T) -> T:
        """Return one of up to 256 options."""
        return options[int(self._next(1)[0]) % len(options)]

    def happens(self, share: float) -> bool:
        """Return whether something happens that does in a share of all cases."""
        return int(self._next(1)[0]) < 256 * share

    def array(self, *shape: int) -> Array:
        """Return an array of small numbers, mostly integers."""
        return self._table[self._next(int(np.prod(shape))) % len(self._table)].reshape(shape)

    def flags(self, *shape: int) -> Flags:
        """Return an array of flags, of which two in three are true."""
        return (self._next(int(np.prod(shape))) % 3 != 0).reshape(shape)


def drawn(name: str, numbers: Numbers, sizes: Sizes, above_zero: bool = False) -> Any:
    """Draw a feature's parameters; `above_zero`: with no number below."""
    schema, arrays = _schemas()[name], feature(name).arrays
    if "properties" not in schema:
        return _value(schema, arrays.get(()), numbers, sizes, above_zero)
    required = schema.get("required", ())
    made = {
        key: _value(own, arrays.get((key,)), numbers, sizes, above_zero)
        for key, own in schema["properties"].items()
        if key in required or numbers.happens(0.4)
    }
    if len(made) < schema.get("minProperties", 0):
        made = {key: _value(own, arrays.get((key,)), numbers, sizes, above_zero) for key, own in schema["properties"].items()}
    return made


@cache
def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = resources.schema("case")["properties"]["features"]["properties"]
    return found


def _value(schema: Mapping[str, Any], shape: Shape | None, numbers: Numbers, sizes: Sizes, above_zero: bool) -> Any:
    """Draw one value that a schema allows; an array as deep as it may be."""
    if shape is not None:
        lengths = [sizes[letter] for letter in shape.axes]
        if shape.flags:
            return numbers.flags(*lengths)
        return np.abs(numbers.array(*lengths)) + 0.5 * above_zero if above_zero else numbers.array(*lengths)
    if "enum" in schema:
        return numbers.choice(*schema["enum"])
    if "anyOf" in schema:
        return _value(numbers.choice(*schema["anyOf"]), None, numbers, sizes, above_zero)
    if schema["type"] == "array":
        return [_value(schema["items"], None, numbers, sizes, above_zero) for _ in range(schema["minItems"])]
    if schema["type"] == "null":
        return None
    if schema["type"] == "integer":
        return schema["minimum"] + numbers.choice(0, 1, 2, 0, 1)
    usual = schema.get("examples", ())
    if "exclusiveMinimum" in schema:
        return numbers.choice(*ABOVE_ZERO, *usual)
    return numbers.choice(*SMALL, *usual)
