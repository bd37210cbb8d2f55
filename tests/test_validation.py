"""The validator says what plain jsonschema says, only faster and in words."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator, validators

from verify_attention import resources, validation
from verify_attention.validation import skeletons

# Every keyword that a skeleton has to respect, with bounds that random documents often meet.
EVERYTHING: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 6,
    "required": ["a"],
    "additionalProperties": False,
    "properties": {
        "a": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {"type": "integer", "minimum": -1, "maximum": 17},
        },
        "b": {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 2.5},
        "c": {"enum": ["x", 1, None, True, 0.5]},
        "d": {"const": 2},
        "e": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]*$"},
        "f": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/deep"}}, {"type": "number", "not": {"const": 7}}]},
        "g": {"oneOf": [{"type": "number", "minimum": 1}, {"type": "integer"}, {"type": "string"}]},
        "h": {"type": "object", "propertyNames": {"pattern": "^[ab]"}, "additionalProperties": {"type": "boolean"}},
        "i": {
            "if": {"type": "array"},
            "then": {"minItems": 1, "items": {"type": "number"}},
            "else": {"type": "integer"},
        },
        "j": {"allOf": [{"type": "number"}, {"minimum": 1}]},
    },
    "$defs": {"deep": {"type": ["array", "number", "null"], "items": {"$ref": "#/$defs/deep"}, "maxItems": 2}},
}
SCHEMAS = {"everything": EVERYTHING, "case": resources.schema("case"), "results": resources.schema("results")}
LEAVES = [
    *(None, True, False, 0, 1, 2, 7, 17, 18, -1, -0.0, 0.5, 1.0, 2.0, 2.5, 1e-300, 1e300, 10**20, 10**400),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "",
        "x",
        "abcd",
        "holds",
        "1",
        [],
        {},
        [0],
        [[1]],
        [1, 2, 2.5],
        ["x"],
        {"a": True},
    ),
]


def plain(schema: dict[str, Any]) -> Any:
    """Return jsonschema's own validator, except that numbers are finite."""

    def number(_checker: Any, value: Any) -> bool:
        try:
            return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        except OverflowError:
            return False

    def integer(checker: Any, value: Any) -> bool:
        return number(checker, value) and value % 1 == 0

    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"number": number, "integer": integer})
    return validators.extend(Draft202012Validator, type_checker=types)(schema)


def sample(schema: Any, root: Any, draw: random.Random, depth: int = 0) -> Any:
    """Return a document that is nearly always valid."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema or "enum" in schema:
        return draw.choice(schema.get("enum", [schema.get("const")]))
    branches = [branch for keyword in ("anyOf", "oneOf") for branch in schema.get(keyword, ())]
    if branches and "properties" not in schema:
        return sample(draw.choice(branches), root, draw, depth)
    kind = schema.get("type", "number")
    kind = kind if isinstance(kind, str) else draw.choice(kind)
    if kind == "object":
        schema = schema if "properties" in schema or "then" not in schema else schema["then"]
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        keys = [key for key in schema.get("properties", {}) if key in schema.get("required", ()) or draw.random() < 0.6]
        keys = keys or list(schema.get("properties", {}))[: schema.get("minProperties", 0)]
        return {key: sample(schema["properties"][key], root, draw, depth + 1) for key in keys}
    if kind == "array":
        items = schema.get("items", schema.get("else", {}).get("items", {"type": "number"}))
        return [sample(items, root, draw, depth + 1) for _ in range(2 if depth < 8 else 1)]
    if kind == "string":
        return "a" * 64 if "64" in schema.get("pattern", "") else draw.choice(["a", "b", "abc"])
    return {"integer": 3, "number": draw.choice([1, 1.5, 2.0]), "boolean": True, "null": None}[kind]


def mutate(document: Any, draw: random.Random) -> None:
    """Change one thing somewhere."""
    place = document
    while isinstance(place, dict | list) and place:
        key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], dict | list) or not place[key] or draw.random() < 0.2:
            match draw.randrange(4):
                case 0 if isinstance(place, dict):
                    del place[key]
                case 1 if isinstance(place, dict):
                    place[draw.choice(["a", "b", "k", "x"])] = draw.choice(LEAVES)
                case 2 if isinstance(place, list):
                    place.append(copy.deepcopy(draw.choice(LEAVES)))
                case _:
                    place[key] = copy.deepcopy(draw.choice(LEAVES))
            return
        place = place[key]


@pytest.mark.parametrize("name", SCHEMAS)
def test_fast_and_plain_validity_are_the_same(name: str) -> None:
    schema, draw = SCHEMAS[name], random.Random(name)  # noqa: S311
    fast, slow = validation._Checker(schema), plain(schema)
    seen = {True: 0, False: 0}
    for _ in range(150):
        document = sample(schema, schema, draw)
        for _ in range(4):
            expected = slow.is_valid(document)
            seen[expected] += 1
            assert fast.valid(document) is expected, document
            assert bool(list(fast.errors(document))) is not expected
            mutate(document, draw)
    assert min(seen.values()) > 60, seen


@pytest.mark.parametrize("turn", [1, -1])
def test_numbers_that_a_schema_tells_apart_are_told_apart(turn: int) -> None:
    """Whatever was valid before: every number beside its bounds, whole or not, as an int or a float."""
    fast, slow = validation._Checker(EVERYTHING), plain(EVERYTHING)
    beside = [number + step for number in (-1, 0, 0.5, 1, 2, 2.5, 4, 7, 17) for step in (-0.25, -0.0, 0, 0.25)]
    for number in beside[::turn]:
        for key in EVERYTHING["properties"]:
            document = {"a": [1, 2], key: [number, number] if key == "a" else number}
            assert fast.valid(document) is slow.is_valid(document), document


def test_the_comparison_can_fail() -> None:
    """A skeleton that forgets how numbers compare with the schema's bounds lets a wrong document pass."""
    checker = validation._Checker(EVERYTHING)
    checker._seen._bounds.clear()
    assert checker.valid({"a": [1, 2]})
    assert checker.valid({"a": [1, 99]})
    assert not validation._Checker(EVERYTHING).valid({"a": [1, 99]})


@pytest.mark.parametrize("name", ["case", "results"])
def test_our_schemas_are_schemas_that_skeletons_can_judge(name: str) -> None:
    Draft202012Validator.check_schema(resources.schema(name))
    assert skeletons.Skeletons(resources.schema(name)).exact


@pytest.mark.parametrize(
    "schema",
    [
        {"uniqueItems": True}, {"contains": {"const": 1}}, {"prefixItems": [{"const": 1}]}, {"multipleOf": 2},
        {"const": [1, 2]}, {"enum": [{"a": 1}]}, {"$ref": "https://example.org/x"},
        {"properties": {"a": {"minContains": 1}}}, {"patternProperties": {"a": {"multipleOf": 3}}},
    ],
)  # fmt: skip
def test_other_schemas_are_judged_without_skeletons(schema: dict[str, Any]) -> None:
    assert not skeletons.Skeletons(schema).exact


def test_without_skeletons_the_verdict_is_jsonschema_s() -> None:
    checker = validation._Checker({"uniqueItems": True, "patternProperties": {"a": {}}, "additionalProperties": False})
    assert checker.valid([1, 2])
    assert checker.valid({"ba": 1})
    assert not checker.valid([1, 1])
    assert not checker.valid({"b": 1})


CASE: dict[str, Any] = {"d_k": 2, "q": [1, 0], "keys": [[1, 0], [0, 1]], "bQ": [0, 1], "bK": [3, -2]}


def test_problems_say_what_was_found_and_what_is_allowed() -> None:
    assert validation.valid(CASE, "case")
    assert validation.problems(CASE, "case") == []
    document = {**CASE, "d_k": 0, "expect": {"weights-sum-to-one": "HOLDS"}, "published": {"weights": {"k": ["x"]}}}
    del document["bQ"]
    assert not validation.valid(document, "case")
    assert sorted(validation.problems(document, "case")) == [
        (("bQ",), "is missing; it is required"),
        (("d_k",), "is the number 0, allowed are numbers from 1"),
        (
            ("expect", "weights-sum-to-one"),
            "is the text 'HOLDS' (did you mean 'holds'?), allowed are holds, breaks or within-rounding",
        ),
        (("published", "decimals"), "is missing; it is required"),
        (
            ("published", "weights", "k", 0),
            "is the text 'x', allowed is a finite number; numbers have no quotes, and look like 2, -0.5 or 1e-3",
        ),
    ]


def test_a_misspelt_key_is_one_problem() -> None:
    document = {"bq" if key == "bQ" else key: value for key, value in CASE.items()}
    [(path, message)] = validation.problems(document, "case")
    assert path == ("bq",)
    assert "did you mean 'bQ'?" in message


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, True, 10**400, "1", None])
def test_numbers_are_finite_and_nothing_else(number: Any) -> None:
    assert validation.valid({**CASE, "scale": 1e308}, "case")
    assert not validation.valid({**CASE, "scale": number}, "case")
    assert not validation.valid({**CASE, "d_k": number}, "case")
    assert not validation.valid({**CASE, "q": [1, number]}, "case")


def test_a_document_that_is_no_mapping_or_too_deep_is_judged() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for document in (None, 3, [], "x"):
        assert validation.problems(document, "case")[0][0] == ()
    assert not validation.valid({**CASE, "q": deep}, "case")
    assert not validation.valid({**CASE, "x": deep}, "case")


def test_examples_in_the_case_schema_are_valid() -> None:
    schema = resources.schema("case")
    for key, part in schema["properties"].items():
        assert part["title"], key
        assert part["description"], key
        assert part["examples"], key
        for example in part["examples"]:
            assert validation.problems({**CASE, key: example}, "case") == []
    for example in schema["examples"]:
        assert validation.valid(example, "case")
    json.dumps(schema, allow_nan=False)
