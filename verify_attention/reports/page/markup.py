"""Markup in which everything that is not markup is escaped: titles, ids and reasons are somebody else's texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from urllib.parse import quote

from verify_attention.languages import Language
from verify_attention.model import Expectation, Status
from verify_attention.reports.figures import WORDS
from verify_attention.wording import printable

_LONGEST = 20_000
_NUMBER = re.compile(r"\d[\d.]*e[+-]?\d+")
_SAFE = re.compile(r"[A-Za-z0-9/:._-]")


class Markup(str):
    """A text that is markup already."""

    __slots__ = ()


Child = str | None


@lru_cache(maxsize=2**14)
def text(value: str) -> Markup:
    """Return a text as markup: escaped, on one line, without characters that turn it around."""
    return Markup(escape(value if value.isprintable() else printable(value, _LONGEST)))


@lru_cache(maxsize=2**14)
def as_said(result: str, say: Language) -> Markup:
    """Return a text of the results in a language, with numbers that no line breaks: many findings have the same."""
    return Markup(_NUMBER.sub(r'<span class="w">\g<0></span>', text(say.told(result))))


def singular(message: str) -> str:
    """Return an English message with `1 cases` as `1 case`; others have no such words."""
    return re.sub(r"\b1 (case|equation|head|key|query row)s\b", r"1 \1", message)


def join(children: Iterable[Child]) -> Markup:
    """Return children one after the other: markup as it is, texts escaped, nothing for None."""
    return Markup("".join(child if isinstance(child, Markup) else text(child) for child in children if child))


def el(name: str, /, *children: Child, **attributes: str | bool | int | None) -> Markup:
    """Return an element; `class_` is class and `aria_label` aria-label, and what is None or False is left out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def void(name: str, /, **attributes: str | bool | int | None) -> Markup:
    """Return an element that has no end tag."""
    return Markup(el(name, **attributes).removesuffix(f"</{name}>"))


@lru_cache(maxsize=2**14)
def encoded(name: str) -> str:
    """Return any text as a part of an id: what is not plain ASCII is ~hex~; no two texts give the same.

    No two hyphens follow each other and none is last, so that `--` divides the id of a finding in one way.
    """
    parts = [letter if _SAFE.match(letter) else f"~{ord(letter):x}~" for letter in name]
    for index, part in enumerate(parts):
        if part == "-" and (index == len(parts) - 1 or parts[index + 1] == "-"):
            parts[index] = "~2d~"
    return "".join(parts)


def case_id(case: str) -> str:
    """Return the id of a case on the page, which is the same on every page."""
    return f"case-{encoded(case)}"


def finding_id(case: str, invariant: str) -> str:
    """Return the id of a finding on the page."""
    return f"{case_id(case)}--{encoded(invariant)}"


def filtered(**given: str) -> str:
    """Return the address of the findings that a filter leaves: `#status=fail&invariant=…`."""
    return "#" + "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())


def pill(status: Status, say: Language) -> Markup:
    """Return a status as a word; the style sheet puts its symbol before it."""
    return el("span", say(WORDS[status]), class_=f"s {status}")


def worded(expectation: Expectation | None, say: Language) -> str:
    """Return what was expected or observed, in words; a dash where nothing was."""
    words: dict[Expectation, str] = {
        "holds": say("holds"),
        "breaks": say("breaks"),
        "within-rounding": say("within rounding"),
    }
    return words[expectation] if expectation else "–"


def scrolling(table: Markup, label: str) -> Markup:
    """Return a table that scrolls by itself where the page is narrow, with the keyboard too."""
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)
