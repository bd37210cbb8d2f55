"""Say what jsonschema's errors mean, in words: what was found, what is allowed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from verify_attention.wording import Path, count, describe, join, nearest, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a finite number",
    "object": "a mapping",
    "string": "a text",
}
_MANY = 20  # keys that are not all named where the one that was meant is
_FEW = 8  # keys of a mapping that are all named


class Flaw(NamedTuple):
    """What is wrong at a place in a document.

    `at_key`: the key is wrong, not its value, and `meant` is the one it was probably meant to be; `lacks`: what is not
    there and one of which is required.
    """

    path: Path
    message: str
    at_key: bool = False
    meant: str | None = None
    lacks: tuple[Path, ...] = ()


def explain(error: Any) -> Iterator[Flaw]:
    """Yield what is wrong; where one of several subschemas would do, what is wrong with the one that was meant."""
    path: Path = tuple(error.absolute_path)
    keyword, allowed, found = error.validator, error.validator_value, error.instance
    if keyword in {"anyOf", "oneOf"} and error.context:
        yield from _choose(path, error)
    elif keyword == "additionalProperties" and allowed is False:
        key, keys = str(path[-1]), error.schema.get("properties", {})
        near = suggest(key, keys)
        many = near and len(keys) > _MANY
        message = f"is no known key{near}; {len(keys)} keys are allowed" if many else _allowed(near, keys)
        owners = [name for name, inner in keys.items() if key in inner.get("properties", {})]
        if owners:
            meant = [name for name in owners if name in found] or owners
            message = f"is no known key here; it belongs under {join(meant, 'or')}"
        yield Flaw(path, message, at_key=True, meant=nearest(key, keys))
    elif keyword == "required":
        yield Flaw(path, "is missing; it is required", lacks=(path,))
    else:
        yield Flaw(path, _MESSAGES.get(keyword, _other)(found, allowed, error))


def _allowed(near: str, keys: Iterable[str]) -> str:
    return f"is no known key{near}; allowed are {join(keys)}"


def _choose(path: Path, error: Any) -> Iterator[Flaw]:
    if all(inner.validator == "required" for inner in error.context):
        keys = [str(inner.relative_path[-1]) for inner in error.context]
        lacks = tuple((*path, key) for key in keys)
        yield Flaw(path, f"needs at least one of {join(keys, 'or')}", lacks=lacks)
        return
    branches: dict[int, list[Any]] = defaultdict(list)
    for inner in error.context:
        branches[inner.relative_schema_path[0]].append(inner)
    meant = [errors for errors in branches.values() if not any(_of_other_type(inner) for inner in errors)]
    if meant:
        deepest = max(meant, key=lambda errors: (max(map(_depth, errors)), -len(errors)))
        for inner in deepest:
            yield from explain(inner)
    else:
        types = [inner.validator_value for errors in branches.values() for inner in errors if _of_other_type(inner)]
        yield Flaw(path, _type(error.instance, [name for entry in types for name in _several(entry)], error))


def _depth(error: Any) -> int:
    """Return how far inside an error is; one key that is missing of several is inside, as any missing key is."""
    return len(error.relative_path) + bool(error.context)


def _of_other_type(error: Any) -> bool:
    return error.validator == "type" and not error.relative_path


def _several(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _type(found: Any, allowed: str | list[str], error: Any) -> str:
    types = list(dict.fromkeys(_several(allowed)))
    hint = ""
    if "string" in types and isinstance(found, int | float):
        hint = "; a text that looks like something else needs quotes"
    elif isinstance(found, str) and {"number", "integer"} & set(types):
        hint = "; numbers have no quotes, and look like 2, -0.5 or 1e-3"
    return f"is {describe(found)}, allowed is {join((_kind(name, error.schema) for name in types), 'or')}{hint}"


def _kind(name: str, schema: dict[str, Any]) -> str:
    """Return what a type is, with the keys of a small mapping and the length of a list that has one."""
    keys, length = schema.get("properties", {}), schema.get("minItems")
    if name == "object" and 0 < len(keys) <= _FEW:
        needless = not schema.get("required") and not schema.get("minProperties")
        return f"a mapping of {join(keys)}{' ({} takes all defaults)' if needless else ''}"
    if name == "array" and length is not None and length == schema.get("maxItems"):
        return str(schema.get("$comment", f"a list of {length}"))
    return _TYPES[name]


def _enum(found: Any, allowed: list[Any], _error: Any) -> str:
    near = suggest(found, (word for word in allowed if isinstance(word, str))) if isinstance(found, str) else ""
    words = [describe(word) if isinstance(word, bool) else str(word) for word in allowed]
    return f"is {describe(found)}{near}, allowed {'are' if len(words) > 1 else 'is'} {join(words, 'or')}"


def _range(found: Any, _allowed: Any, error: Any) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}
    bounds = " ".join(f"{word} {error.schema[keyword]}" for keyword, word in words.items() if keyword in error.schema)
    return f"is {describe(found)}, allowed are numbers {bounds}"


def _pattern(found: Any, allowed: str, error: Any) -> str:
    return f"is {describe(found)}, allowed is {error.schema.get('$comment', f'what matches {allowed}')}"


def _least(unit: str) -> Any:
    return lambda found, allowed, _error: f"has {count(len(found), unit)}, at least {allowed} must be there"


def _most(unit: str) -> Any:
    return lambda found, allowed, _error: f"has {count(len(found), unit)}, at most {allowed} may be there"


def _no_key(found: Any, allowed: int, error: Any) -> str:
    keys: Iterable[str] = error.schema.get("properties", ())
    return f"has {count(len(found), 'keys')}, at least {allowed} must be there" + (
        f": {join(keys, 'or')}" if keys else ""
    )


def _other(_found: Any, _allowed: Any, error: Any) -> str:
    return str(error.message)


_MESSAGES = {
    "const": lambda found, allowed, _error: f"is {describe(found)}, allowed is {describe(allowed)}",
    "enum": _enum,
    "exclusiveMaximum": _range,
    "exclusiveMinimum": _range,
    "maxItems": _most("elements"),
    "maxLength": _most("letters"),
    "maximum": _range,
    "minItems": _least("elements"),
    "minLength": _least("letters"),
    "minProperties": _no_key,
    "minimum": _range,
    "pattern": _pattern,
    "type": _type,
}
