"""What an unquoted text in YAML means: the core schema of YAML 1.2.

`1e-3` is a number, `010` is ten, `0x10` is sixteen, and `no`, `1_000`, `12:30` and `2026-11-30` are texts.
"""

from __future__ import annotations

import re
from typing import Any

_INFINITY = float("inf")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z").match
_OTHER_BASE = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z").match
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z").match
_WORDS: dict[str, Any] = {"": None, "~": None}
for _word, _meaning in (("null", None), ("true", True), ("false", False)):
    _WORDS |= dict.fromkeys((_word, _word.title(), _word.upper()), _meaning)
_WORDS |= {sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
_WORDS |= dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan"))


def plain(text: str) -> Any:
    """Return what an unquoted text means. Integers beyond float64 are infinite, as `1e400` is."""
    if _FLOAT(text):
        number = float(text)
        # Python refuses to read integers of more than 4,300 digits; those below infinity begin with zeros.
        return int(text) if _INTEGER(text) and abs(number) < _INFINITY and len(text) < 4000 else number
    if _OTHER_BASE(text):
        return _in_float64(int(text[2:], 16 if text[1] == "x" else 8))
    return _WORDS.get(text, text)


def _in_float64(number: int) -> float:
    try:
        float(number)
    except OverflowError:
        return _INFINITY
    return number
