"""Between a report and results.json: strict JSON that is the same whenever nothing has changed.

Numbers that JSON does not have (−∞ of a hidden key, an overflow) are null. Each case, and the whole, carries a digest
of what was written, so that an edit by hand shows even in a digit that the tolerance would forgive.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import verify_attention
from verify_attention import validation, wording
from verify_attention.errors import ResultsError
from verify_attention.model import STATUSES, Array, Case, CaseReport, Finding, Report, Worst, was_checked
from verify_attention.summary import LARGEST, Summary, summarised
from verify_attention.validation.skeletons import Alike

SCHEMA = "verify-attention/results/1"
Document = dict[str, Any]


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
    cases = [case_entry(entry, detail) for entry in report.cases]
    return {
        "schema": SCHEMA,
        "tool": {"name": "verify-attention", "version": verify_attention.__version__},
        "environment": environment(),
        "implementation": {"name": report.implementation, "version": verify_attention.__version__, "dtype": "float64"},
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
        "checked": sum(checked(finding) for finding in findings if finding["observed"] is not None),
    }


def checked(finding: Document) -> bool:
    """Say whether a finding's equation was really checked: judged by a measurement, in which it could have failed."""
    return was_checked(finding["status"], finding["observed"])


def environment() -> Document:
    """Return what numbers may depend on in their last digits."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def case_entry(entry: CaseReport, detail: str = "auto") -> Document:
    """Return what the document holds of one case, without its digest."""
    case = entry.case
    return {
        "id": case.id,
        "file": case.file,
        "sha256": case.sha256,
        "inputs": inputs(case, detail),
        "conditions": {
            condition: {name: numbers(shown.get(name)) for name in ("scores", "weights", "output", "lse")}
            for condition, shown in entry.conditions.items()
        },
        "findings": [finding_entry(finding) for finding in entry.findings],
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


def finding_entry(finding: Finding) -> Document:
    """Return what the document holds of one finding; the same object for the same finding, if nothing was measured.

    Most cases are not asked for the same claims, and share the findings that say so.
    """
    known = _shared.get(id(finding))
    if known is not None:
        return known.entry
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
    if finding.worst is None and len(_shared) < _MOST_SHARED:
        _shared[id(finding)] = _texts[id(entry)] = _Shared(finding, entry, _line(entry))
    return entry


class _Shared(NamedTuple):
    """A finding and its entry, which live on so that nothing else has their identity, and the entry's text."""

    finding: Finding
    entry: Document
    text: str


_MOST_SHARED = 4096
_shared: dict[int, _Shared] = {}  # by the identity of the finding
_texts: dict[int, _Shared] = {}  # by the identity of the entry: a document is not changed once it is made


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


def seal(made: Document) -> bytes:
    """Put digests into a document and each of its cases, and return its text in UTF-8.

    The text has one line for each field, condition and finding, so that a diff can be read.
    """
    cases = []
    for case in made["cases"]:
        body = _case_text(case).encode()
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
        return _sha256(_case_text(part).encode())
    return _sha256((_head(part) + _line([case["digest"] for case in part["cases"]])).encode())


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _head(made: Document) -> str:
    return "".join(f'"{name}": {_line(value)},\n' for name, value in made.items() if name not in {"cases", "digest"})


def _case_text(case: Document) -> str:
    """Return the text of a case entry without its braces and its digest; findings that cases share keep their texts.

    One call of the encoder, for it is most of the time; lines are broken at seams that no text can hold, as its quotes
    are escaped there.
    """
    findings = case.get("findings", [])
    shared = [known.text if (known := _texts.get(id(finding))) else "" for finding in findings]
    own = [finding for finding, text in zip(findings, shared, strict=True) if not text]
    rest = {name: value for name, value in case.items() if name not in {"findings", "digest"}}
    body, *texts = _line([rest, *own])[2:-2].replace(_SEAM, '\n"invariant":').split("\n")
    head, conditions, arrays = body.partition(',"conditions":')
    parts = [head.replace(',"inputs":', ',\n "inputs": ')]
    if conditions:
        parts.append('"conditions": ' + arrays.replace('},"', '},\n  "'))
    if "findings" in case:
        lines = iter(texts)
        parts.append('"findings": [' + ",\n  ".join(text or f"{{{next(lines)}}}" for text in shared) + "]")
    return ",\n ".join(parts)


_SEAM = '},{"invariant":'  # before each finding
