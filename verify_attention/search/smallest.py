"""The smallest cases that are shipped: of each mistake that a claim must catch, one on which the claim breaks."""

from __future__ import annotations

from typing import Any

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.model import Case
from verify_attention.search.writing import document, flow

UNSAID = ("title", "source", "tags", "d_k", "expect")


def smallest_cases(claim: str) -> dict[str, Case]:
    """Return the smallest case for each mistake that a claim must catch, by the mistake; none without a file."""
    path = resources.smallest(claim)
    return {str(case.title): case for case in load_cases([path])} if path.is_file() else {}


def in_a_line(case: Case) -> str:
    """Return what a case says in a line; d_k follows from q, and a bias that is not named is 0."""
    said = {name: value for name, value in document(case).items() if name not in UNSAID}
    said |= said.pop("features", {})
    kept = {name: value for name, value in said.items() if name not in {"bQ", "bK"} or _something(value)}
    return " · ".join(name if value == {} else f"{name} {flow(value)}" for name, value in kept.items())


def _something(value: Any) -> bool:
    """Say whether any number in nested lists is not 0."""
    return any(map(_something, value)) if isinstance(value, list) else value != 0
