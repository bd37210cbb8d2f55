"""How messages about documents name things: a place, a value, a number of things, a likely typing error."""

from __future__ import annotations

import difflib
import unicodedata
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Path: TypeAlias = tuple[str | int, ...]

_LONGEST = 60


def place(path: Path) -> str:
    """Return a path as people write it: `published.scores.none[0]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "document"


def describe(value: Any) -> str:
    """Return what a value is: `the number 3`, `a list of 2`."""
    match value:
        case None | bool():
            words = {None: "null (nothing)", True: "true", False: "false"}[value]
        case int() | float():
            words = f"the number {value}" if _printable(value) else "a number beyond float64"
        case str():
            words = f"the text {quote(value)}"
        case list():
            words = f"a list of {len(value)}" if value else "an empty list"
        case dict():
            words = "a mapping"
        case _:
            words = f"a {type(value).__name__}"
    return words


def _printable(number: float) -> bool:
    # Python refuses to print integers of thousands of digits.
    return isinstance(number, float) or number.bit_length() <= 1024


def quote(text: str) -> str:
    """Return a text in quotes, shortened, on one line."""
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def printable(text: str, longest: int = 2000) -> str:
    """Return a text on one line, without characters that a terminal would obey, and not endless."""
    shown = text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
    if not any(map(_hidden, shown)):
        return shown
    return "".join(letter.encode("unicode_escape").decode() if _hidden(letter) else letter for letter in shown)


def _hidden(letter: str) -> bool:
    """Say whether a letter is none that a person sees: a control character, or one that is no character at all."""
    return unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or ord(letter) & 0xFFFE == 0xFFFE


def count(number: int, unit: str) -> str:
    """Return `1 number`, `2 numbers`; `unit` is the plural."""
    return f"{number} {unit.removesuffix('s') if number == 1 else unit}"


def join(words: Iterable[str], last: str = "and") -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that was probably meant.

    Words that differ only in case come first: `bq` is `bQ`, though `q` is as near.
    """
    folded: dict[str, str] = {}
    for candidate in allowed:
        folded.setdefault(candidate.casefold(), candidate)
    # Nobody means an allowed word by a text of thousands of letters, and comparing them takes long.
    near = difflib.get_close_matches(word.casefold(), folded, n=1) if len(word) <= _LONGEST else []
    return folded[near[0]] if near else None


def suggest(word: str, allowed: Iterable[str]) -> str:
    """Return ` (did you mean 'bQ'?)` where an allowed word is near, otherwise nothing."""
    near = nearest(word, allowed)
    return f" (did you mean {near!r}?)" if near else ""
