"""The messages that the program says in the reader's language, as its source has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "verify_attention"


def said(folder: Path = PACKAGE) -> set[str]:
    """Return every text that stands in a call of `say`, and both numbers of every noun that is counted."""
    return {text for path in folder.rglob("*.py") for text in said_in(path.read_text(encoding="utf-8"))}


def said_in(source: str) -> Iterator[str]:
    """Yield the messages of one file."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        if node.func.id == "say":
            yield from _texts(node.args[0])
        elif node.func.id == "counted" and (len(node.args) == 3 or node.keywords):
            for noun in _texts(node.args[1]):
                yield from (f"{{count}} {noun}", f"{{count}} {noun}s")


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be: a literal, or one of two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
