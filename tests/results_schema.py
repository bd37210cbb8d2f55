"""What the schema of results says of features, from what the schema of cases says: the same, with every array whole.

Renew it with `python tests/results_schema.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
ARRAYS = dict.fromkeys(("row", "rows", "heads"), "array")
ARRAYS |= dict.fromkeys(("flags", "rows_of_flags", "heads_of_flags"), "mask")
OF_EDITORS = {"defaultSnippets", "markdownDescription", "markdownEnumDescriptions"}
NOT_OF_RESULTS = {"$comment", "examples"} | OF_EDITORS


def read(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))
    return schema


def features() -> dict[str, Any]:
    """Return the closed properties of a case's features in results."""
    given = read("case")["properties"]["features"]["properties"]
    return {name: recorded(schema) for name, schema in given.items()}


def recorded(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what is recorded of a parameter: an array at its full depth, or a summary, anything else as it is."""
    kinds = {ARRAYS.get(option.get("$ref", "").rpartition("/")[2]) for option in schema.get("anyOf", [schema])} - {None}
    if kinds:
        (kind,) = kinds
        return {"title": schema["title"], "description": schema["description"], "$ref": f"#/$defs/{kind}"}
    kept = {keyword: value for keyword, value in schema.items() if keyword not in NOT_OF_RESULTS}
    if "properties" in kept:
        kept["properties"] = {name: recorded(inner) for name, inner in kept["properties"].items()}
    return kept


def write(name: str, schema: dict[str, Any]) -> None:
    (SCHEMAS / f"{name}.schema.json").write_text(text(schema), "utf-8")


def text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def renew() -> None:
    results = read("results")
    results["$defs"]["inputs"]["properties"]["features"]["properties"] = features()
    write("results", results)


if __name__ == "__main__":
    renew()
