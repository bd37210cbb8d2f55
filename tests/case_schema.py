"""What the schema of cases says to editors, from what it says to people and from the registries.

Of each property, `markdownDescription` is its description with code set as code; what an `enum` allows is explained
value by value where the description does so, as in `half: channel t with …; interleaved: …`. Features and invariants
come with their claim and the command that says more, and snippets with the examples.

Renew it, and the schema of results, with `python tests/case_schema.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import results_schema

from verify_attention.model import Feature, Invariant
from verify_attention.plugins import features, invariants

# What a number in a case does, where a formula says it better than words.
SCORES = "scores = scale·(q + bQ)·(keys + bK)ᵀ"
OUTPUT = "output = weights·(values + bV)"
FORMULAS = dict.fromkeys(("q", "keys", "bQ", "bK", "scale"), SCORES) | dict.fromkeys(("values", "bV"), OUTPUT)
MORE = {"features": "verify-attention list features", "expect": "verify-attention list invariants"}
FIRST = ("$schema", "$id", "title", "description", "markdownDescription")
SNIPPET = {"title": "What the case is about", "tags": ["mine"]}  # what a new case begins with

SPAN = r"`[^`]*`"  # what is code already
PARENTHESES = r"\((?:[^()]|\([^()]*\))*\)"
ROOT = rf"(?:(?:\w+|{PARENTHESES}) / )?√{PARENTHESES}"
FORMULA = rf"(?<![\w`])[\w−]*(?:[·^√]|/(?=[√\w]))(?:[\w·^√/²−]|{PARENTHESES}|\|[^|]*\|)*"
SHAPE = r"\[[^\]]*\]"
VALUE = r"(?:^|(?<=[.;] ))[a-z][\w-]*(?=: )"
NAME = r"\b(?:[A-Za-z]+_\w+|b[QKV]|null|true|false)\b"
CODE = re.compile("|".join((SPAN, SHAPE, ROOT, FORMULA, VALUE, NAME)))


def complete(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with everything that is written for editors, from what is written for people."""
    made = _described(schema, schema["$defs"])
    own = made["properties"]
    own["expect"]["properties"] = {name: _invariant(one) for name, one in sorted(invariants().items())}
    acts = own["features"]["properties"]
    for name, feature in features().items():
        acts[name]["markdownDescription"] = _feature(feature, acts[name]["markdownDescription"])
    for name, formula in FORMULAS.items():
        own[name]["markdownDescription"] += f"\n\n`{formula}`"
    for name, command in MORE.items():
        own[name]["markdownDescription"] += f"\n\nTheir names: `{command}`"
    made["defaultSnippets"] = [_case(example) for example in made["examples"]]
    own["features"]["defaultSnippets"] = list(_snippets(acts))
    return made


def _described(schema: dict[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with Markdown for each property in it, and a title for each way in which it can be given."""
    made = {keyword: value for keyword, value in schema.items() if keyword not in results_schema.OF_EDITORS}
    for inner in ("properties", "$defs"):
        if inner in made:
            made[inner] = {name: _described(one, defs) for name, one in made[inner].items()}
    if "description" in made:
        made["markdownDescription"], values = markdown(made["description"], made.get("enum", []))
        if values:
            made["markdownEnumDescriptions"] = [values.get(_word(value), "") for value in made["enum"]]
    nested = [flow(example) for example in made.get("examples", []) if _nested(example)]
    if nested and not made.keys() & {"$ref", "properties"}:  # yaml-language-server alone writes lists of lists wrongly
        made["defaultSnippets"] = [{"label": text, "bodyText": text, "sortText": f" {text}"} for text in nested]
    if "title" in made and "anyOf" in made:
        made["anyOf"] = [_way(made["title"], option, defs) for option in made["anyOf"]]
    return {keyword: made[keyword] for keyword in sorted(made, key=_place)}


def _place(keyword: str) -> int:
    """Return where a keyword stands: what is read first, first; all others stay in their order."""
    return FIRST.index(keyword) if keyword in FIRST else len(FIRST)


def _nested(value: Any) -> bool:
    inner = value if isinstance(value, list) else ()
    return isinstance(value, dict) or any(isinstance(one, list) for one in inner)


def _way(title: str, option: dict[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of several subschemas, with a title of its own: an editor shows that of the one that fits."""
    if "$ref" not in option:
        return option
    kind = defs[option["$ref"].rpartition("/")[2]]
    if "properties" in kind:
        return option
    return {"$ref": option["$ref"], "title": f"{title}: {kind['title'][0].lower()}{kind['title'][1:]}"}


def markdown(text: str, enum: list[Any]) -> tuple[str, dict[str, str]]:
    """Return a text with code set as code, less what it says of single values, and that by value."""
    words = "|".join(re.escape(_word(value)) for value in enum)
    if not words:
        return _code(text), {}
    said = rf"(?:^|(?<=[;.] ))((?:{words})(?:, or (?:{words}))*): ([^;.]*)[;.] ?"
    values = {value: _code(found[2]) for found in re.finditer(said, text) for value in found[1].split(", or ")}
    left = re.sub(said, "", text).strip() or text
    return re.sub(rf"{SPAN}|(?<![\w-])(?:{words})(?![\w-])", _as_code, _code(left)), values


def _code(text: str) -> str:
    return CODE.sub(_as_code, text)


def _as_code(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("`") else f"`{found[0]}`"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _feature(feature: Feature, parameters: str) -> str:
    """Return what an editor says of a feature: its claim, its parameters, and what becomes of a K bias."""
    parts = [_code(feature.claim), parameters, f"A K bias: {_code(feature.why)}.", _more(feature.name)]
    return "\n\n".join(parts)


def _invariant(invariant: Invariant) -> dict[str, Any]:
    """Return what an editor says of an invariant under `expect`."""
    said = [_code(invariant.claim), f"`{invariant.formula}`", f"Source: {invariant.source}.", _more(invariant.name)]
    return {
        "title": invariant.name.replace("-", " ").capitalize(),
        "description": invariant.claim,
        "$ref": "#/$defs/expectation",
        "markdownDescription": "\n\n".join(said),
    }


def _more(name: str) -> str:
    return f"More: `verify-attention explain {name}`"


def _case(example: dict[str, Any]) -> dict[str, str]:
    """Return a snippet for a whole case: each value of an example is a field to overwrite."""
    kind = "a whole layer" if "projections" in example else "queries, keys and biases"
    lines = [f"{key}: {_field(at, value)}" for at, (key, value) in enumerate({**SNIPPET, **example}.items(), 1)]
    return {"label": f"A new case: {kind}", "description": f"A case of {kind}.", "body": "^" + "\n".join(lines) + "\n"}


def _snippets(acts: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield each example of each feature, for lines of their own."""
    for name, schema in acts.items():
        for example in schema.get("examples", schema.get("enum")):
            text = f"{name}: {flow(example)}"
            yield {"label": text, "description": schema["description"], "body": f"^{text}\n"}


def _field(at: int, value: Any) -> str:
    shown = flow(value).replace("}", "\\}")
    return f"${{{at}:{shown}}}"


def flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _word(value)


if __name__ == "__main__":
    results_schema.write("case", complete(results_schema.read("case")))
    results_schema.renew()
