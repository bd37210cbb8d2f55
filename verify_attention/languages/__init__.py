"""The languages in which people are told things: English stands in the code, and a catalogue says it in another one.

A message is its own key, with fields in braces: `say("Never really checked: {names}", names=…)`. The catalogue of
another language has three files: what the program says (`ja.json`), what the registries say (`ja.plugins.json`), and
reasons, which results hold in English and which are known again whatever stands in their fields (`ja.reasons.json`).
The tests say what they lack, and what nobody says any more. Diagnostics are for programs too, and English in every
language.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

LANGUAGES = ("en", "ja")
MOST_PARTS = 20
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Language:
    """A language: call it with a message in English, and the fields that stand in it."""

    code: str

    def __call__(self, message: str, **fields: object) -> str:
        """Return a message in this language, with its fields filled in; one without fields may have braces in it."""
        told = _catalogue(self.code).get(message, message)
        return told.format(**fields) if fields else told

    def told(self, text: str) -> str:
        """Return a text that was put together in English, such as a reason in results; as it is, where it is unknown.

        Its parts, divided by semicolons, may each be a message, with anything in the place of a field but a semicolon.
        """
        return text if self.code == "en" else _told(self.code, text)


ENGLISH = Language("en")


def of_locale() -> str:
    """Return the language of the environment: Japanese where the locale's messages are, else English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "ja" if re.match(r"ja\b|ja_", os.environ[name]) else "en"
    return "en"


@lru_cache(10_000)
def _told(code: str, text: str) -> str:
    known = _catalogue(code)
    if text in known:
        return known[text]
    for pattern, longest, message in _patterns(code):
        found = pattern.fullmatch(text) if longest in text else None
        if found is not None:
            return known[message].format(**{name: _told(code, part) for name, part in found.groupdict().items()})
    if text.count("; ") > MOST_PARTS:  # somebody's own text, and no reason of ours
        return text
    head, semicolon, rest = text.partition("; ")
    return f"{_told(code, head)}; {_told(code, rest)}" if semicolon else text


@cache
def _catalogue(code: str) -> Mapping[str, str]:
    if code == "en":
        return {}
    found: dict[str, str] = {}
    for file in files(code):
        found |= _read(file)
    return found


@cache
def _reasons(code: str) -> Mapping[str, str]:
    return _read(Path(__file__).parent / f"{code}.reasons.json")


def _read(file: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


def files(code: str) -> list[Path]:
    """Return the files of a language's catalogue: its parts have no key in common."""
    return sorted(Path(__file__).parent.glob(f"{code}*.json"))


@cache
def _patterns(code: str) -> list[tuple[re.Pattern[str], str, str]]:
    """Return what each reason with fields looks like once they are filled in, what it surely has, and the message.

    The longest comes first.
    """
    with_fields = sorted((message for message in _reasons(code) if _FIELD.search(message)), key=len, reverse=True)
    longest = {message: max(_FIELD.split(message)[::2], key=len) for message in with_fields}
    return [(re.compile(_pattern(message), re.DOTALL), longest[message], message) for message in with_fields]


def _pattern(message: str) -> str:
    """Return a message as an expression: each field may be any text, and a field that comes again the same one.

    No field holds a semicolon with a blank after it, which divides parts, and none in quotes holds a quote.
    """
    parts, seen = [], set()
    for index, part in enumerate(_FIELD.split(message)):
        if index % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P={part})")
        else:
            one = '[^"]' if parts[-1].endswith('"') else "."
            parts.append(f"(?P<{part}>(?:(?!; ){one})+?)")
            seen.add(part)
    return "".join(parts)
