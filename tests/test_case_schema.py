"""The schema of cases as editors use it: in step with the registries, whole at every depth; snippets are cases."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import case_schema
import pytest
import results_schema
from jsonschema import Draft202012Validator

from verify_attention import validation
from verify_attention.cases import load_cases
from verify_attention.documents import read_documents
from verify_attention.plugins import features, invariants

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = results_schema.read("case")
RENEW = "renew it with: python tests/case_schema.py"
PLAIN: dict[str, Any] = {"d_k": 2, "q": [1, 0], "keys": [[1, 0], [0, 1], [-1, 0]], "bQ": [0, 1], "bK": [3, -2]}


# In step


def test_the_schema_says_what_the_registries_say() -> None:
    written = (results_schema.SCHEMAS / "case.schema.json").read_text("utf-8")
    assert written == results_schema.text(case_schema.complete(SCHEMA)), RENEW


@pytest.mark.parametrize("change", ["claim", "feature", "description", "stale"])
def test_the_comparison_can_fail(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = deepcopy(SCHEMA)
    if change == "claim":
        made = {**invariants()}
        made["weights-sum-to-one"] = dataclasses.replace(made["weights-sum-to-one"], formula="1 = 2")
        monkeypatch.setattr(case_schema, "invariants", lambda: made)
    if change == "feature":
        known = {**features()}
        known["rope"] = dataclasses.replace(known["rope"], why="nothing")
        monkeypatch.setattr(case_schema, "features", lambda: known)
    if change == "description":
        schema["properties"]["features"]["properties"]["rope"]["description"] = "Something else."
    if change == "stale":
        schema["properties"]["bK"]["markdownEnumDescriptions"] = ["of an enum that is gone"]
    assert case_schema.complete(schema) != schema


def test_an_editor_shows_each_invariant_s_claim_and_formula() -> None:
    shown = SCHEMA["properties"]["expect"]["properties"]
    assert list(shown) == sorted(invariants())
    for name, invariant in invariants().items():
        assert shown[name]["description"] == invariant.claim
        assert f"`{invariant.formula}`" in shown[name]["markdownDescription"]
        assert f"`verify-attention explain {name}`" in shown[name]["markdownDescription"]


# Whole at every depth


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property at every depth, with where it is."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}/{name}", inner
        yield from properties(inner, f"{path}/{name}")
    for name, inner in schema.get("$defs", {}).items():
        yield from properties(inner, f"{path}/$defs/{name}")


def incomplete(schema: dict[str, Any]) -> list[str]:
    """Say which properties lack what an editor shows, or have an example that they do not allow."""
    found = []
    for path, one in properties(schema):
        said = {**schema["$defs"][one["$ref"].rpartition("/")[2]], **one} if "$ref" in one else one
        found += [
            f"{path} has no {word}" for word in ("title", "description", "markdownDescription") if not one.get(word)
        ]
        if not (said.get("enum") or one.get("examples")):
            found.append(f"{path} has no example")
        judge = Draft202012Validator({**one, "$defs": schema["$defs"]})
        found += [
            f"{path} does not allow {example}" for example in one.get("examples", []) if not judge.is_valid(example)
        ]
    return found


def test_every_property_has_what_an_editor_shows() -> None:
    assert len(list(properties(SCHEMA))) > 130
    assert incomplete(SCHEMA) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": ""}, "/features/rope/base has no title"),
        ({"examples": []}, "/features/rope/base has no example"),
        ({"examples": ["x"]}, "/features/rope/base does not allow x"),
    ],
)
def test_what_is_not_whole_is_named(change: dict[str, Any], said: str) -> None:
    schema = deepcopy(SCHEMA)
    schema["properties"]["features"]["properties"]["rope"]["properties"]["base"] |= change
    assert incomplete(schema) == [said]


def test_editors_get_nothing_of_it_in_the_schema_of_results() -> None:
    assert not any(word in json.dumps(results_schema.read("results")) for word in results_schema.OF_EDITORS)


# Texts


@pytest.mark.parametrize(
    ("text", "enum", "shown", "values"),
    [
        ("Rows [Tk, d_k], or null.", [], "Rows `[Tk, d_k]`, or `null`.", {}),
        ("By cap·tanh(S / cap), as 1/√d_k.", [], "By `cap·tanh(S / cap)`, as `1/√d_k`.", {}),
        ("half: the first [H]; full: all. Absent: half.", ["half", "full"], "Absent: `half`.",
         {"half": "the first `[H]`", "full": "all"}),
        ("Up to it. low, or true: here; up: there.", [True, "low", "up"], "Up to it.",
         {"low": "here", "true": "here", "up": "there"}),
        ("before the norm, or after it.", ["before", "after"], "`before` the norm, or `after` it.", {}),
        ("As `half` does.", ["half"], "As `half` does.", {}),
    ],
)  # fmt: skip
def test_code_is_set_as_code(text: str, enum: list[Any], shown: str, values: dict[str, str]) -> None:
    assert case_schema.markdown(text, enum) == (shown, values)


# Snippets


def filled(snippet: dict[str, str]) -> str:
    """Return what stands there when each field is left as it is."""
    text = re.sub(r"\$\{\d+:((?:[^\\}]|\\.)*)\}", r"\1", snippet["body"].removeprefix("^"))
    assert "$" not in text
    return text.replace("\\}", "}")


def parsed(text: str) -> Any:
    """Return a value as it is read in a case."""
    [document], problems = read_documents(text.encode(), "a snippet")
    assert problems == []
    return document.value


@pytest.mark.parametrize("snippet", SCHEMA["defaultSnippets"], ids=lambda snippet: snippet["label"])
def test_a_snippet_of_a_new_case_is_a_case(snippet: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(filled(snippet), "utf-8")
    assert [case.id for case in load_cases([tmp_path])] == ["mine"]


def test_each_feature_has_snippets_that_are_its_examples() -> None:
    schema = SCHEMA["properties"]["features"]
    given = [parsed(filled(snippet)) for snippet in schema["defaultSnippets"]]
    assert {name for one in given for name in one} == set(features())
    for one in given:
        assert validation.problems({**PLAIN, "features": one}, "case") == []


def test_lists_of_lists_are_offered_as_text() -> None:
    offered = [one["bodyText"] for one in SCHEMA["properties"]["keys"]["defaultSnippets"]]
    assert [json.loads(text) for text in offered] == SCHEMA["properties"]["keys"]["examples"]


# The first line


def schema_of(path: Path) -> Path | None:
    """Return the schema that an editor takes for a case."""
    found = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text("utf-8"))
    return (path.parent / found[1]).resolve() if found else None


def test_every_shipped_case_leads_an_editor_to_the_schema() -> None:
    shipped = sorted((ROOT / "cases").rglob("*.yaml"))
    assert len(shipped) > 150
    assert {schema_of(path) for path in shipped} == {ROOT / "schemas" / "case.schema.json"}


@pytest.mark.parametrize("line", ["", "# yaml-language-server: $schema=../schemas/case.schema.json\n"])
def test_a_first_line_that_leads_elsewhere_is_noticed(line: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{line}d_k: 2\n", "utf-8")
    assert schema_of(path) != ROOT / "schemas" / "case.schema.json"
