"""The languages in which people are told things: English stands in the code, and a catalogue says it in another one.

A message is its own key, with fields in braces: `say("Never really checked: {names}", names=…)`. There is one catalogue
for each other language, `ja.json`, and the tests say what it lacks and what nobody says any more. Results and
diagnostics are for programs too, and English in every language; what a results file says can be told in another one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "ja")
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

        Its parts, divided by semicolons, may each be a message, with anything in the place of a field.
        """
        if self.code == "en":
            return text
        known = _catalogue(self.code)
        if text in known:
            return known[text]
        for pattern, message in _patterns(self.code):
            found = pattern.fullmatch(text)
            if found is not None:
                return known[message].format(**{name: self.told(part) for name, part in found.groupdict().items()})
        head, semicolon, rest = text.partition("; ")
        return f"{self.told(head)}; {self.told(rest)}" if semicolon else text


ENGLISH = Language("en")


def of_locale() -> str:
    """Return the language of the environment: Japanese where the locale's messages are, else English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "ja" if re.match(r"ja\b|ja_", os.environ[name]) else "en"
    return "en"


@cache
def _catalogue(code: str) -> Mapping[str, str]:
    if code == "en":
        return {}
    known: dict[str, str] = json.loads((Path(__file__).parent / f"{code}.json").read_text(encoding="utf-8"))
    return known


@cache
def _patterns(code: str) -> list[tuple[re.Pattern[str], str]]:
    """Return what a message with fields looks like once they are filled in, the longest message first."""
    with_fields = sorted((message for message in _catalogue(code) if _FIELD.search(message)), key=len, reverse=True)
    return [(re.compile(_pattern(message), re.DOTALL), message) for message in with_fields]


def _pattern(message: str) -> str:
    """Return a message as an expression: each field may be any text, and a field that comes again the same one."""
    parts, seen = [], set()
    for index, part in enumerate(_FIELD.split(message)):
        if index % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>.+?)")
            seen.add(part)
    return "".join(parts)
