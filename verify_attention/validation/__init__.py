"""Judge documents by our JSON schemas: quickly, and in words that help.

jsonschema takes milliseconds for a case of a results file, mostly for things that it has just seen. Its `properties`
and `items` are replaced by ones that skip a value whose skeleton was found valid before (`skeletons`). A number is a
finite one: NaN and the infinities are no JSON.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from verify_attention import resources
from verify_attention.validation import skeletons
from verify_attention.validation.messages import Flaw, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from verify_attention.wording import Path


def valid(document: Any, schema_name: str) -> bool:
    """Return whether a document agrees with one of our schemas."""
    return _checker(schema_name).valid(document)


def problems(document: Any, schema_name: str) -> list[tuple[Path, str]]:
    """Return all disagreements with one of our schemas: where, what was found, what is allowed."""
    return [(flaw.path, flaw.message) for flaw in flaws(document, schema_name)]


def flaws(document: Any, schema_name: str) -> list[Flaw]:
    """Return what `problems` returns, and whether a key or its value is meant."""
    checker = _checker(schema_name)
    if checker.valid(document):
        return []
    found = dict.fromkeys(flaw for error in checker.errors(document) for flaw in explain(error))
    # A key with a typing error is one mistake, though two things follow: it is unknown, and another one is missing.
    misspelt = {(*flaw.path[:-1], flaw.meant) for flaw in found}
    return [flaw for flaw in found if misspelt.isdisjoint(flaw.lacks)]


@cache
def _checker(schema_name: str) -> _Checker:
    return _Checker(resources.schema(schema_name))


class _Checker:
    """A validator for one schema, and what it found valid: pairs of a subschema and a skeleton."""

    def __init__(self, schema: dict[str, Any]) -> None:
        from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - it takes long, and not all need it

        self._seen = skeletons.Skeletons(schema)
        self._valid: set[tuple[int, Hashable]] = set()
        keywords: dict[str, Any] = {"additionalProperties": _no_unknown_keys, "required": _no_missing_keys}
        if self._seen.exact:
            keywords |= {"items": self._items, "properties": self._properties}
        types = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _integer, "number": _number})
        extend: Any = validators.extend
        self._validator = extend(Draft202012Validator, keywords, type_checker=types)(schema)

    def valid(self, document: Any) -> bool:
        """Return whether the document is valid."""
        return next(self.errors(document), None) is None

    def errors(self, document: Any) -> Iterator[Any]:
        """Yield jsonschema's errors."""
        self._seen.forget()
        if not self._seen.exact:
            yield from self._validator.iter_errors(document)
        else:
            schema = self._validator.schema
            yield from self._unless_seen(document, schema, lambda: self._validator.iter_errors(document))

    def _unless_seen(self, value: Any, schema: Any, errors: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Yield the errors of a value under a schema, unless one like it was valid before."""
        skeleton = self._seen.of(value)
        if (id(schema), skeleton) in self._valid:
            return
        flawless = True
        for error in errors():
            flawless = False
            yield error
        if flawless and skeleton is not None:
            self._valid.add((id(schema), skeleton))

    def _items(self, validator: Any, items: Any, instance: Any, _schema: Any) -> Iterator[Any]:
        if isinstance(instance, list):
            known, valid, schema = self._seen.known, self._valid, id(items)
            for index, value in enumerate(instance):
                # As `_unless_seen` does, without a call for each: most lists are long, and of mappings.
                number = known.get(id(value))
                if number is None or (schema, (number,)) not in valid:
                    yield from self._unless_seen(value, items, _later(validator, value, items, index))

    def _properties(self, validator: Any, properties: Any, instance: Any, _schema: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            for key, schema in properties.items():
                if key in instance:
                    yield from self._unless_seen(instance[key], schema, _later(validator, instance[key], schema, key))


def _later(validator: Any, value: Any, schema: Any, step: str | int) -> Callable[[], Iterable[Any]]:
    return lambda: validator.descend(value, schema, path=step, schema_path=step)


def _number(_checker: Any, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and skeletons.finite(value)


def _integer(checker: Any, value: Any) -> bool:
    return _number(checker, value) and value == int(value)


def _no_unknown_keys(validator: Any, allowed: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Give each unknown key an error of its own, at the key."""
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415 - as above

    if allowed is not False or "patternProperties" in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, schema)
    elif isinstance(instance, dict):
        for key in instance:
            if key not in schema.get("properties", {}):
                yield ValidationError("unknown key", path=(key,))


def _no_missing_keys(_validator: Any, required: list[str], instance: Any, _schema: Any) -> Iterator[Any]:
    """Give each missing key an error of its own, at the key."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if isinstance(instance, dict):
        for key in required:
            if key not in instance:
                yield ValidationError("missing key", path=(key,))
