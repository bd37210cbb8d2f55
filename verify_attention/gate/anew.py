"""Judge a case anew, from its stored traces and from its inputs, and compare with what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from verify_attention import comparison, results, rounding
from verify_attention.engine import run_case
from verify_attention.model import Array, Case, Finding, Flags, Invariant, Tolerance
from verify_attention.pipeline import CORE
from verify_attention.recorded import NOT_STORED, recorded
from verify_attention.results import Document
from verify_attention.summary import LARGEST, Summary, summarised


def judged_anew(
    entry: Document, case: Case, asked: Sequence[Invariant], tolerance: Tolerance, is_core: bool, intact: bool
) -> Iterator[str]:
    """Judge a case from its stored traces, and for the core from its inputs, and compare with what is stored."""
    misshapen = list(_misshapen(entry, case))
    yield from misshapen
    if misshapen:
        return
    stored = run_case(case, recorded(entry["conditions"]), asked, tolerance, LARGEST["summary"])
    yield from _findings_differ(entry, stored.findings, "the stored traces say", 0.1, intact)
    if is_core:
        arrays = [array for shown in entry["conditions"].values() for array in shown.values()]
        fresh = run_case(case, CORE, asked, tolerance, LARGEST[detail_of(arrays)])
        yield from _traces_differ(entry, results.case_entry(fresh), case, tolerance, intact)
        yield from _findings_differ(entry, fresh.findings, "judged anew,", 1.0, intact)


def _misshapen(entry: Document, case: Case) -> Iterator[str]:
    """Name the stored arrays whose shape is not the case's; null stands for an array that was not shown."""
    heads, rows, keys = case.scores_shape
    shapes = {"scores": (heads, rows, keys), "weights": (heads, rows, keys), "lse": (heads, rows)}
    for condition, shown in entry["conditions"].items():
        for name, value in shown.items():
            due = shapes.get(name, (heads, rows, case.d_v))
            found = tuple(value["shape"]) if is_summary(value) else shape_of(value)
            if value is not None and found != due:
                yield f"conditions.{condition}.{name}: has the shape {found}, expected {due}"


def shape_of(value: Any) -> tuple[int, ...] | str:
    """Return the shape of nested lists, or `uneven`."""
    try:
        return np.array(value, dtype=np.float64).shape
    except ValueError:
        return "uneven"


def _findings_differ(
    entry: Document, findings: Iterable[Finding], route: str, share: float, intact: bool
) -> Iterator[str]:
    """Compare stored findings with recomputed ones: words exactly, numbers within a share of limit or rounding bound.

    Another machine rounds otherwise, so its noise may differ; where the entry was changed, the first such number is
    named too.
    """
    stored = {finding["invariant"]: finding for finding in entry["findings"]}
    for finding in findings:
        if finding.reason == f"not offered: {NOT_STORED}":
            continue
        said, fresh = stored[finding.invariant], results.finding_entry(finding)
        for name in ("status", "expected", "observed"):
            if said[name] != fresh[name]:
                yield f"{finding.invariant}: {name} says {said[name]}, {route} {fresh[name]}"
        forgiven = share * max(fresh["limit"] or 0.0, fresh["rounding_bound"] or 0.0)
        exactly = () if intact else ("worst", "reason")
        yield from (f"{finding.invariant}: {name} was changed" for name in exactly if said[name] != fresh[name])
        same_place = _place(said) == _place(fresh)  # noise may decide for another element, with a limit of its own
        for name in ("deviation", "limit", "rounding_bound") if same_place else ("deviation",):
            if not _near(said[name], fresh[name], forgiven if intact else 0.0):
                yield f"{finding.invariant}: {name} says {said[name]!r}, {route} {fresh[name]!r}"


def _place(finding: Document) -> list[Any]:
    worst = finding["worst"] or {}
    return [worst.get(name) for name in ("of", "head", "row", "axis", "index")]


def _near(stored: float | None, fresh: float | None, forgiven: float) -> bool:
    if stored is None or fresh is None:
        return stored is fresh
    return abs(stored - fresh) <= forgiven


def _traces_differ(entry: Document, fresh: Document, case: Case, tolerance: Tolerance, intact: bool) -> Iterator[str]:
    """Compare stored traces of the core with fresh ones, within tolerance and what two machines may round apart."""
    bounds = rounding.overall(case)
    for condition, shown in fresh["conditions"].items():
        for name, now in shown.items():
            place = f"conditions.{condition}.{name}"
            said = entry["conditions"][condition][name]
            alike = now if is_summary(said) == is_summary(now) else results.numbers(_summary(now))
            forgiven = 2 * bounds[name] if intact else 0.0
            yield from _numbers_differ(said, alike, place, tolerance if intact else Tolerance(0, 0), forgiven)


def _numbers_differ(said: Any, now: Any, place: str, tolerance: Tolerance, forgiven: float) -> Iterator[str]:
    """Name the first number of an array, or each of a summary, that is not what it should be."""
    if said is None:
        yield f"{place}: is missing"
        return
    if is_summary(now):
        for name in ("shape", "smallest", "largest", "mean"):
            one, other = (np.array(summary[name], dtype=np.float64) for summary in (said, now))
            if one.shape != other.shape or not _agree(one, other, tolerance, forgiven).all():
                yield f"{place}.{name}: says {said[name]!r}, judged anew {now[name]!r}"
        return
    one, other = np.array(said, dtype=np.float64), np.array(now, dtype=np.float64)
    wrong = ~_agree(one, other, tolerance, forgiven)
    if wrong.any():
        first = tuple(map(int, np.argwhere(wrong)[0]))
        where = "".join(f"[{index}]" for index in first)
        yield f"{place}{where}: says {one[first]!s}, judged anew {other[first]!s}"


def _agree(one: Array, other: Array, tolerance: Tolerance, forgiven: float) -> Flags:
    limit = np.maximum(comparison.limit_of(tolerance, one, other), forgiven)
    same: Flags = (np.abs(one - other) <= limit) | (np.isnan(one) & np.isnan(other))
    return same


def _summary(whole: Any) -> Array | Summary:
    return summarised(np.array(whole, dtype=np.float64), LARGEST["summary"])


def is_summary(value: Any) -> bool:
    """Say whether a stored array is a summary."""
    return isinstance(value, dict) and "sha256" in value


def detail_of(arrays: Iterable[Any]) -> str:
    """Say with which detail arrays were stored: `full` where one is whole that `auto` would have summarised."""
    whole = [np.array(array, dtype=object) for array in arrays if isinstance(array, list)]
    return "full" if any(array.size > LARGEST["auto"] for array in whole) else "auto"
