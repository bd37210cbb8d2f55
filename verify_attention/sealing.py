"""The text of results.json: strict JSON with a line for each field, condition and finding, sealed by digests.

Each case, and the whole, carries a digest of what was written, so that an edit by hand shows even in a digit that the
tolerance would forgive.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def seal(made: Document) -> bytes:
    """Put digests into a document and each of its cases, and return its text in UTF-8.

    The text has one line for each field, condition and finding, so that a diff can be read.
    """
    cases, texts = [], _texts_of_shared(made)
    for case in made["cases"]:
        body = _case_text(case, texts).encode()
        case["digest"] = _sha256(body)
        cases.append(b'{%b,\n "digest": "%b"}' % (body, case["digest"].encode()))
    made["digest"] = digest(made)
    head, end = _head(made).encode(), made["digest"].encode()
    return b"".join([b"{\n", head, b'"cases": [\n', b",\n".join(cases), b'\n],\n"digest": "', end, b'"\n}\n'])


def digest(part: Document) -> str:
    """Return the digest that a case entry, or the whole document, should carry: the sha256 of its other fields' text.

    The whole stands for its cases by their digests.
    """
    if "cases" not in part:
        return _sha256(_case_text(part, {}).encode())
    return _sha256((_head(part) + _line([case["digest"] for case in part["cases"]])).encode())


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _head(made: Document) -> str:
    return "".join(f'"{name}": {_line(value)},\n' for name, value in made.items() if name not in {"cases", "digest"})


def _texts_of_shared(made: Document) -> dict[int, str]:
    """Return the texts of the findings that stand in the document more than once, by their identity."""
    seen: set[int] = set()
    texts: dict[int, str] = {}
    for case in made["cases"]:
        for finding in case.get("findings", ()):
            name = id(finding)
            if name in seen and name not in texts:
                texts[name] = _line(finding)
            seen.add(name)
    return texts


def _bodies(parts: list[Document]) -> list[str]:
    """Return the texts of mappings without their braces: by one call of the encoder, for it is most of the time."""
    bodies = _line(parts)[2:-2].replace('},{"invariant":', '\n"invariant":').split("\n")
    return bodies if len(bodies) == len(parts) else [_line(part)[1:-1] for part in parts]  # somebody changed the order


def _case_text(case: Document, texts: Mapping[int, str]) -> str:
    """Return the text of a case entry without its braces and its digest; `texts` are those of findings, by identity.

    Lines are broken at seams that no text can hold, as its quotes are escaped there.
    """
    findings = case.get("findings", [])
    shared = [texts.get(id(finding)) for finding in findings]
    own = [finding for finding, text in zip(findings, shared, strict=True) if not text]
    rest = {name: value for name, value in case.items() if name not in {"findings", "digest"}}
    body, *others = _bodies([rest, *own])
    head, conditions, arrays = body.partition(',"conditions":')
    parts = [head.replace(',"inputs":', ',\n "inputs": ')]
    if conditions:
        parts.append('"conditions": ' + arrays.replace('},"', '},\n  "'))
    if "findings" in case:
        lines = iter(others)
        parts.append('"findings": [' + ",\n  ".join(text or f"{{{next(lines)}}}" for text in shared) + "]")
    return ",\n ".join(parts)
