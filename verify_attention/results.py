"""From a report to the document that results.json holds, which is the same whenever nothing has changed.

Numbers that JSON does not have (−∞ of a hidden key, an overflow) are null.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from verify_attention import validation, wording
from verify_attention.errors import ResultsError
from verify_attention.model import STATUSES, Array, Case, CaseReport, Finding, Opinion, Report, Worst, was_checked
from verify_attention.sealing import Document, seal
from verify_attention.summary import LARGEST, Summary, summarised
from verify_attention.validation.skeletons import Alike

SCHEMA = "verify-attention/results/1"


def encoded(report: Report, detail: str = "auto") -> bytes:
    """Return what results.json holds, in UTF-8, checked against its schema.

    Raises:
        ResultsError: the document does not satisfy its own schema, which is a defect of this program.

    """
    with np.errstate(all="ignore"):  # what overflowed is null
        made = document(report, detail)
    written = seal(made)
    if not validation.valid(made, "results"):
        place, message = validation.problems(made, "results")[0]
        raise ResultsError(f"internal error, nothing was written: {wording.place(place)}: {message}")
    return written


def document(report: Report, detail: str = "auto") -> Document:
    """Return a report as the document that results.json holds, without digests; `full` keeps every input whole."""
    known: dict[int, Document] = {}
    cases = [case_entry(entry, detail, known) for entry in report.cases]
    return {
        "schema": SCHEMA,
        "tool": {"name": "verify-attention", "version": report.version},
        "environment": dict(report.environment),
        "implementation": report.implementation._asdict(),
        "tolerance": {"rtol": report.tolerance.rtol, "atol": report.tolerance.atol},
        "summary": summary(cases),
        "cases": cases,
    }


def summary(cases: Iterable[Document]) -> Document:
    """Count cases, findings by status, and equations that were really checked."""
    cases = list(cases)
    findings = [finding for case in cases for finding in case["findings"]]
    by_status = Counter(finding["status"] for finding in findings)
    return {
        "cases": len(cases),
        **{status: by_status[status] for status in STATUSES},
        "checked": sum(map(checked, findings)),
    }


def checked(finding: Document) -> bool:
    """Say whether a finding's equation was really checked: judged by a measurement, in which it could have failed."""
    return was_checked(finding["status"], finding["observed"])


def case_entry(entry: CaseReport, detail: str = "auto", known: dict[int, Document] | None = None) -> Document:
    """Return what the document holds of one case, without its digest.

    `known` are the entries that the document's cases share, by the identity of the finding.
    """
    case = entry.case
    return {
        "id": case.id,
        "file": case.file,
        "line": case.line,
        "sha256": case.sha256,
        "inputs": inputs(case, detail),
        "conditions": {
            condition: {name: numbers(shown.get(name)) for name in ("scores", "weights", "output", "lse")}
            for condition, shown in entry.conditions.items()
        },
        "findings": _finding_entries(entry.findings, {} if known is None else known),
    }


def inputs(case: Case, detail: str = "auto") -> Document:
    """Return a case in the form of a case file, with every default filled in and every array at its full depth.

    `values` and `bV` are null where the case gives none: the identity, and no bias. `W_O` and `latent` are there only
    where the case has them.
    """
    largest = LARGEST["full" if detail == "full" else "auto"]

    def kept(array: Array | None) -> Any:
        return None if array is None else numbers(summarised(array, largest))

    def parameters(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: parameters(part) for name, part in value.items()}
        if isinstance(value, tuple):
            return list(value)
        return kept(value) if isinstance(value, np.ndarray) else value

    return {
        "title": case.title,
        "source": case.source,
        "tags": list(case.tags),
        "d_k": case.d_k,
        "q": kept(case.q),
        "keys": kept(case.keys),
        "bQ": kept(case.bQ),
        "bK": kept(case.bK),
        "values": kept(case.values),
        "bV": kept(case.bV),
        **({} if case.W_O is None else {"W_O": kept(case.W_O)}),
        **({} if case.latent is None else {"latent": parameters(vars(case.latent))}),
        "scale": case.scale,
        "features": {name: parameters(value) for name, value in case.features.items()},
        "expect": dict(case.expect),
        "published": case.published
        and {
            "decimals": case.published.decimals,
            **{
                quantity: {condition: kept(array) for condition, array in by_condition.items()}
                for quantity, by_condition in case.published.numbers.items()
            },
        },
    }


def numbers(array: Array | Summary | None) -> Any:
    """Return an array as nested lists, or its summary as an object; what is not finite becomes null."""
    if array is None:
        return None
    if isinstance(array, Summary):
        return {
            "shape": list(array.shape),
            "smallest": number(array.smallest),
            "largest": number(array.largest),
            "mean": number(array.mean),
            "sha256": array.sha256,
        }
    if array.dtype == bool:
        return Alike.of(array.tolist(), _sample(array.ndim, True, False))
    if math.isfinite(np.vdot(array, array)) or np.isfinite(array).all():  # the first is quick, but may overflow
        return Alike.of(array.tolist(), _sample(array.ndim, 0.5))
    whole = array.astype(object)
    whole[~np.isfinite(array)] = None
    return Alike.of(whole.tolist(), _sample(array.ndim, 0.5, None))


@cache
def _sample(depth: int, *kinds: float | bool | None) -> list[Any]:
    """Return nested lists that stand for an array where the schema asks no more of numbers than that they are some."""
    return [_sample(depth - 1, *kinds)] if depth > 1 else list(kinds)


def number(value: float | None) -> float | None:
    """Return a number, or None for what JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def _finding_entries(findings: Iterable[Finding], known: dict[int, Document]) -> list[Document]:
    """Return the entries of findings, one in a document for the same finding: most cases share those on no claim."""
    entries = []
    for finding in findings:
        entry = known.get(id(finding))
        if entry is None:
            entry = known[id(finding)] = finding_entry(finding)
        entries.append(entry)
    return entries


def finding_entry(finding: Finding) -> Document:
    """Return what the document holds of one finding; an opinion only where one was asked for."""
    entry = {
        "invariant": finding.invariant,
        "status": finding.status,
        "expected": finding.expected,
        "observed": finding.observed,
        "deviation": number(finding.deviation),
        "limit": number(finding.limit),
        "rounding_bound": number(finding.rounding_bound),
        "worst": finding.worst and _worst(finding.worst),
        "reason": finding.reason,
    }
    return entry if finding.opinion is None else {**entry, "opinion": opinion_entry(finding, finding.opinion)}


def opinion_entry(finding: Finding, opinion: Opinion) -> Document:
    """Return what the document holds of an opinion, and of what follows from it for the finding."""
    return {
        "verdict": opinion.verdict,
        "cause": finding.cause,
        "difference": number(opinion.difference),
        "limit": number(opinion.limit),
        "worst": opinion.worst and _worst(opinion.worst),
        "reason": opinion.reason,
    }


def _worst(worst: Worst) -> Document:
    return {
        "of": worst.of,
        "head": worst.head,
        "row": worst.row,
        "axis": worst.axis,
        "index": worst.position,
        "left": number(worst.left),
        "right": number(worst.right),
    }
