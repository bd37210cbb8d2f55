"""Where the shipped cases and schemas are: inside a wheel, or at the top of a checkout."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

SHIPPED = "built-in/"  # what results put before the path of a shipped case

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the shipped folder `cases` or `schemas`."""
    packed = _PACKAGE / "data" / name
    return packed if packed.is_dir() else _PACKAGE.parent / name


def smallest(claim: str) -> Path:
    """Return the file with the smallest case for each mistake that a claim must catch."""
    return _PACKAGE / "smallest" / f"{claim}.yaml"


@cache
def schema(name: str) -> dict[str, Any]:
    """Return the schema `case` or `results`."""
    text = (folder("schemas") / f"{name}.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
