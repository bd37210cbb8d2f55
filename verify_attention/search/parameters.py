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
    """A run of bytes that is read as choices and as numbers; where it ends it begins again, with other numbers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8).astype(np.int_)
        self._at = 1
        self._table = np.array(MIXED if data[0] % 4 == 0 else SMALL)

    def _next(self, count: int) -> Array:
        places = np.arange(self._at, self._at + count)
        self._at += count
        return (self._bytes[places % len(self._bytes)] + 37 * (places // len(self._bytes))) % 256

    def _one(self) -> int:
        lap, place = divmod(self._at, len(self._data))
        self._at += 1
        return (self._data[place] + 37 * lap) % 256

    def choice(self, *options: T) -> T:
        """Return one of up to 256 options."""
        return options[self._one() % len(options)]

    def happens(self, share: float) -> bool:
        """Return whether something happens that does in a share of all cases."""
        return self._one() < 256 * share

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
    required, every = schema.get("required", ()), schema["properties"].items()
    chosen = [(key, own) for key, own in every if key in required or numbers.happens(0.4)]
    enough = chosen if len(chosen) >= schema.get("minProperties", 0) else every
    return {key: _value(own, arrays.get((key,)), numbers, sizes, above_zero) for key, own in enough}


@cache
def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = resources.schema("case")["properties"]["features"]["properties"]
    return found


def _value(schema: Mapping[str, Any], shape: Shape | None, numbers: Numbers, sizes: Sizes, above_zero: bool) -> Any:
    """Draw one value that a schema allows; an array as deep as it may be."""
    if shape is not None:
        return _array(shape, numbers, sizes, above_zero)
    if "anyOf" in schema:
        return _value(numbers.choice(*schema["anyOf"]), None, numbers, sizes, above_zero)
    if schema.get("type") == "array":
        return [_value(schema["items"], None, numbers, sizes, above_zero) for _ in range(schema["minItems"])]
    return numbers.choice(*_options(schema))


def _array(shape: Shape, numbers: Numbers, sizes: Sizes, above_zero: bool) -> Array:
    lengths = [sizes[letter] for letter in shape.axes]
    if shape.flags:
        return numbers.flags(*lengths)
    drawn = numbers.array(*lengths)
    return np.abs(drawn) + 0.5 if above_zero else drawn


def _options(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return values that a schema without parts allows, those that it names as examples among them."""
    if "enum" in schema:
        return tuple(schema["enum"])
    if schema["type"] == "null":
        return (None,)
    if schema["type"] == "integer":
        return tuple(schema["minimum"] + more for more in (0, 1, 2, 0, 1))
    return (*(ABOVE_ZERO if "exclusiveMinimum" in schema else SMALL), *schema.get("examples", ()))
