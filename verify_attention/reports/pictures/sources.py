"""What pictures are drawn from: the reports of a run, or a results document. Both give the same entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verify_attention.model import CaseReport, Condition
from verify_attention.reports.pictures.deviations import Mark


@dataclass(frozen=True)
class Entry:
    """One case: what was shown under each condition, whether its keys have shifts of their own, and its findings."""

    id: str
    tags: tuple[str, ...]
    shown: Mapping[Condition, Mapping[str, Any]]
    shifted: bool
    marks: tuple[Mark, ...]


def of_report(entry: CaseReport) -> Entry:
    """Return what is drawn of a case that was judged."""
    case = entry.case
    marks = tuple(
        Mark(each.invariant, each.status, each.expected, each.observed is not None, each.deviation, each.limit)
        for each in entry.findings
    )
    return Entry(case.id, case.tags, entry.conditions, case.key_shifts is not None, marks)


def of_results(entry: Mapping[str, Any]) -> Entry:
    """Return what is drawn of a case in a results document that satisfies its schema."""
    marks = tuple(
        Mark(
            each["invariant"],
            each["status"],
            each["expected"],
            each["observed"] is not None,
            each["deviation"],
            each["limit"],
        )
        for each in entry["findings"]
    )
    inputs = entry["inputs"]
    return Entry(entry["id"], tuple(inputs["tags"]), entry["conditions"], "key_shifts" in inputs["features"], marks)
