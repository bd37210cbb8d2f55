"""Read rows of plain numbers without one parser event per number.

A YAML parser takes microseconds for each number; a case of millions of numbers would take most of a minute. A row that
is the same in JSON and YAML, `[1, -0.5, 2e-3]`, is therefore taken out of the text before the parser sees it: an empty
quoted text and blanks stand in its place, so that everything else stays where it was.

What looks like a row may be part of a comment or of a text. The reader reports which stand-ins it met as values; the
others have to be left alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

# What follows must end the value on its own line: a stand-in must never turn a syntax error into something valid.
_ROW = re.compile(r"\[ *+[-+.0-9][-+.0-9eE, \r\n]*+\](?= *+(?:[\r\n,\]}#]|\Z))")
_NUMBER = re.compile(r"[^\s,\[\]]+")
_NOT_BREAK = re.compile(r"[^\r\n]")
# json refuses to read thousands of digits, and reads hundreds as an integer beyond float64.
_ENDLESS = re.compile(r"(?<![0-9])[0-9]{300}")

Rows = dict[int, list[Any]]


def take_out(text: str, only: Collection[int] | None = None) -> tuple[str, Rows]:
    """Return the text with stand-ins, and each row by where it begins; `only` limits it to rows that begin there."""
    rows: Rows = {}
    if _ENDLESS.search(text):
        return text, rows
    pieces, done = [], 0
    for match in _ROW.finditer(text):
        if only is not None and match.start() not in only:
            continue
        try:
            rows[match.start()] = json.loads(match[0])
        except ValueError:
            continue
        pieces += [text[done : match.start()], "''", _blanks(match[0][2:])]
        done = match.end()
    return "".join([*pieces, text[done:]]), rows


def _blanks(text: str) -> str:
    return _NOT_BREAK.sub(" ", text) if "\n" in text or "\r" in text else " " * len(text)


def where(text: str, start: int, index: int) -> int:
    """Return where number `index` of the row beginning at `start` stands."""
    for number, match in enumerate(_NUMBER.finditer(text, start + 1)):
        if number == index:
            return match.start()
    return start
