"""From a case to YAML as a person would write it: what is the default is left out, and so are axes of length 1.

Reading it gives the same case again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from verify_attention import resources
from verify_attention.departures import feature
from verify_attention.model import Array, Case, Published, Shape

WIDEST = 100
LARGEST_WHOLE = 1e15
GIVEN = ("title", "source")


def document(case: Case) -> dict[str, Any]:
    """Return the shortest document that says what a case is, arrays as nested lists."""
    made: dict[str, Any] = {name: getattr(case, name) for name in GIVEN if getattr(case, name) is not None}
    if case.tags:
        made["tags"] = list(case.tags)
    made |= {"d_k": case.d_k, "q": _queries(case.q), "keys": _lone(case.keys)}
    made |= {"bQ": _shared(case.bQ), "bK": _shared(case.bK)}
    if case.values is not None:
        made["values"] = _lone(case.values)
    if case.bV is not None:
        made["bV"] = _shared(case.bV)
    if case.W_O is not None:
        made["W_O"] = _numbers(case.W_O)
    if case.latent is not None:
        made["latent"] = {name: _numbers(getattr(case.latent, name)) for name in ("c", "W_UK", "W_UV")}
    if case.scale != 1 / math.sqrt(case.d_k):
        made["scale"] = _number(case.scale)
    if case.features:
        made["features"] = {name: _parameters(name, case) for name in case.features}
    if case.expect:
        made["expect"] = dict(case.expect)
    if case.published is not None:
        made["published"] = _published(case.published)
    return made


def _queries(array: Array) -> Any:
    if len(array) > 1:
        return _numbers(array)
    return _numbers(array[0] if array.shape[1] > 1 else array[0, 0])


def _lone(array: Array) -> Any:
    return _numbers(array if len(array) > 1 else array[0])


def _shared(array: Array) -> Any:
    """Return vectors of heads: one of them where all are the same."""
    return _numbers(array[0] if (array == array[:1]).all() else array)


def _published(printed: Published) -> dict[str, Any]:
    numbers = {
        quantity: {condition: _queries(array) for condition, array in by_condition.items()}
        for quantity, by_condition in printed.numbers.items()
    }
    return {"decimals": printed.decimals, **numbers}


def needed(name: str, case: Case) -> Any:
    """Return a feature's parameters but for those that are the default."""
    given = case.features[name]
    if not isinstance(given, Mapping):
        return given
    left = dict(given)
    fewest = resources.schema("case")["properties"]["features"]["properties"][name].get("minProperties", 0)
    for key in given:
        fewer = {other: value for other, value in left.items() if other != key}
        if len(fewer) >= fewest and _completes(name, fewer, given, case):
            left = fewer
    return left


def _parameters(name: str, case: Case) -> Any:
    """Return what has to be said of a feature: no default, and arrays no deeper than they have to be."""
    own, left = feature(name), needed(name, case)
    if not isinstance(left, Mapping):
        return _shallow(left, own.arrays.get(()))
    return {key: _shallow(value, own.arrays.get((key,))) for key, value in left.items()}


def _completes(name: str, fewer: Mapping[str, Any], given: Mapping[str, Any], case: Case) -> bool:
    """Say whether defaults make of fewer parameters what is given; some parameters have none."""
    try:
        full = feature(name).complete(fewer, case)
    except KeyError:
        return False
    return full.keys() == given.keys() and all(np.array_equal(full[key], given[key]) for key in given)


def _shallow(value: Any, shape: Shape | None) -> Any:
    if not isinstance(value, np.ndarray):
        return (
            [None if part is None else _number(part) for part in value] if isinstance(value, tuple) else _number(value)
        )
    fewest = value.ndim if shape is None else min(shape.levels)
    while value.ndim > fewest and (value == value[:1]).all():
        value = value[0]
    return _numbers(value)


def _numbers(array: Array) -> Any:
    return _number(array.item()) if array.ndim == 0 else [_numbers(part) for part in array]


def _number(value: Any) -> Any:
    """Return a number without a fraction as an integer, and the score of what is hidden as nothing."""
    if not isinstance(value, float):
        return value
    if math.isinf(value):
        return None
    return int(value) if value.is_integer() and abs(value) < LARGEST_WHOLE else value


# As text


def text(case: Case, name: str | None = None) -> str:
    """Return a case as a YAML document, with lines of at most about 100 characters."""
    made = ({} if name is None else {"name": name}) | document(case)
    return "".join(line + "\n" for key, value in made.items() for line in _lines(key, value, 0))


def _lines(key: str, value: Any, depth: int) -> Iterator[str]:
    """Yield the lines of one entry: in one where it fits, else a line for each part."""
    head = f"{' ' * depth}{key}: "
    if len(head + flow(value)) <= WIDEST or not isinstance(value, list | dict):
        yield head + flow(value)
    elif isinstance(value, dict):
        yield head.rstrip()
        for inner, part in value.items():
            yield from _lines(inner, part, depth + 2)
    else:
        yield head.rstrip()
        yield from (line for part in value for line in _items(part, depth + 2))


def _items(value: Any, depth: int) -> Iterator[str]:
    head = f"{' ' * depth}- "
    if not isinstance(value, list) or len(head + flow(value)) <= WIDEST or not isinstance(value[0], list):
        yield head + flow(value)
        return
    inner = [line for part in value for line in _items(part, depth + 2)]
    yield head + inner[0].lstrip()
    yield from inner[1:]


def flow(value: Any) -> str:
    """Return a value in YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(value: str) -> str:
    """Return a text as YAML has it: plain words as they are, anything else in double quotes."""
    plain = re.fullmatch(r"[A-Za-z][\w -]*", value, re.ASCII) and value.lower() not in {"true", "false", "null"}
    return value if plain else json.dumps(value, ensure_ascii=False)
