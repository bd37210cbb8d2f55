"""Judge a case anew, from its stored traces and from its inputs, and compare with what is stored."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from verify_attention import comparison, results
from verify_attention.engine import run_case
from verify_attention.engine.attend import Attend, NotOfferedError
from verify_attention.gate.traces import detail_of, is_summary, summarised_for_size, traces_differ
from verify_attention.model import (
    FLOAT64,
    Case,
    CrashedError,
    Finding,
    Invariant,
    NotShownError,
    Sides,
    Tolerance,
    was_checked,
)
from verify_attention.pipeline import CORE
from verify_attention.recorded import CHANGED, NO_ARGUMENTS, NO_LAYER, NOT_STORED, overflowed, recorded
from verify_attention.sealing import Document
from verify_attention.selection import blocks
from verify_attention.summary import LARGEST


def judged_anew(
    entry: Document,
    case: Case,
    asked: Sequence[Invariant],
    tolerance: Tolerance,
    is_core: bool,
    intact: bool,
    fails_here: list[str],
) -> Iterator[str]:
    """Judge a case from its stored traces, and for the core from its inputs, and yield what is stored otherwise.

    What is rightly a pass where the file was written, and no pass on this machine, goes to `fails_here`.
    """
    misshapen = list(_misshapen(entry, case))
    yield from misshapen
    if misshapen:
        return
    implementation = recorded(entry["conditions"], is_core)
    stored = run_case(case, implementation, asked, tolerance, LARGEST["summary"])
    lossy = is_core and overflowed(case, implementation)
    parts, attend, attend_core = list(blocks(case)), Attend(implementation), Attend(CORE)
    for invariant, (said, finding) in zip(asked, _pairs(entry, stored.findings), strict=True):
        found = [] if lossy else list(_from_traces(said, finding, is_core, intact, summarised_for_size(entry)))
        asked_for = said["worst"] is not None and invariant.not_asked(case) is None
        problems = _at_its_place(said, invariant, parts, attend, tolerance) if asked_for and not lossy else None
        if problems is None and asked_for and is_core:  # it is about cases that are not stored
            problems = _at_its_place(said, invariant, parts, attend_core, tolerance, stored=False)
        yield from (f"{finding.invariant}: {problem}" for problem in [*found, *(problems or ())])
    if is_core:
        arrays = [array for shown in entry["conditions"].values() for array in shown.values()]
        fresh = run_case(case, CORE, asked, tolerance, LARGEST[detail_of(arrays)])
        yield from traces_differ(entry, results.case_entry(fresh), case, tolerance, intact)
        for said, finding in _pairs(entry, fresh.findings):
            yield from (f"{finding.invariant}: {problem}" for problem in _from_inputs(said, finding, intact))
            if said["status"] == "pass" and finding.status == "inconclusive":
                fails_here.append(
                    f"{finding.invariant}: pass where it was written, inconclusive here: {finding.reason}"
                )


def _pairs(entry: Document, findings: Iterable[Finding]) -> Iterator[tuple[Document, Finding]]:
    stored = {finding["invariant"]: finding for finding in entry["findings"]}
    return ((stored[finding.invariant], finding) for finding in findings)


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


def _from_traces(said: Document, finding: Finding, is_core: bool, intact: bool, large: bool) -> Iterator[str]:
    """Compare a stored finding with what follows from the stored traces: the same numbers, so the same finding.

    Only a logarithm may differ in its last bit on another machine.
    """
    if finding.reason in {f"not offered: {CHANGED}", NO_LAYER, NO_ARGUMENTS}:
        return  # the equation needs a case, or a part of the trace, that is not stored
    if finding.reason == f"not offered: {NOT_STORED}":
        if not (is_core or large) and was_checked(said["status"], said["observed"]):
            yield "cannot be judged anew: the scores, weights or outputs that it needs are not in the file"
        return
    fresh = results.finding_entry(finding)
    yield from _words_differ(said, fresh, "the stored traces say")
    if fresh["observed"] is None and said["reason"] != fresh["reason"]:
        yield f"reason says {said['reason']!r}, the stored traces say {fresh['reason']!r}"
    forgiven = 0.1 * max(fresh["limit"] or 0.0, fresh["rounding_bound"] or 0.0) if intact else 0.0
    yield from _numbers_of(said, fresh, "the stored traces say", forgiven)
    if not intact:
        yield from (f"{name} was changed" for name in ("worst", "reason") if said[name] != fresh[name])


def _at_its_place(
    said: Document,
    invariant: Invariant,
    parts: Sequence[Case],
    attend: Attend,
    tolerance: Tolerance,
    *,
    stored: bool = True,
) -> list[str] | None:
    """Compare a finding's numbers with those at the place that it names; None where the traces do not tell.

    `parts` are the blocks of the case. Traces that are `stored` give the same numbers; those of another processor may
    differ as far as rounding may go.
    """
    worst = said["worst"]
    head, row, *index = (int(worst[name]) for name in ("head", "row", "index") if worst[name] is not None)
    block = next((block for block in parts if _holds(block, head, row)), None)
    if block is None:
        return [f"worst: there is no {worst['of']} at {(head, row, *index)}"]
    try:
        with np.errstate(all="ignore"):
            equation = {part.of: part for part in invariant.sides(block, attend) if not part.contrast}
            if block.precision != FLOAT64:
                equation = {of: comparison.as_coarse(part, tolerance) for of, part in equation.items()}
    except (NotOfferedError, NotShownError, CrashedError):
        return None
    part, place = equation.get(worst["of"]), (head - block.first_head, row - block.first_row, *index)
    if part is None or len(place) != part.left.ndim or any(map(operator.ge, place, part.left.shape)):
        return [f"worst: there is no {worst['of']} at {(head, row, *index)}"]
    if worst["axis"] != (part.axis if index else None):
        return [f"worst.axis says {worst['axis']}, it is {part.axis if index else 'none'}"]
    return list(_numbers_there(said, part, place, tolerance, stored=stored))


def _holds(block: Case, head: int, row: int) -> bool:
    """Say whether a block has a row; a part of an equation may have one that stands for all, or one more."""
    heads, rows, _ = block.scores_shape
    alone = block.scores_shape == (block.whole or block).scores_shape
    return alone or (0 <= head - block.first_head < heads and 0 <= row - block.first_row < rows)


def _numbers_there(
    said: Document, part: Sides, place: tuple[int, ...], tolerance: Tolerance, *, stored: bool
) -> Iterator[str]:
    left, right = float(part.left[place]), float(part.right[place])
    if not (np.isfinite(left) and np.isfinite(right)):
        return
    own = part.limit
    limit = float(comparison.limit_of(tolerance, left, right)) if own is None else comparison.bound_at(own, place)
    limit = limit if np.isfinite(limit) else 0.0  # as where it is compared
    bound = comparison.bound_at(part.rounding, place)
    noise = 0.1 * limit if stored else limit + bound
    numbers = {"deviation": abs(left - right), "limit": limit, "rounding_bound": bound}
    for name, value in numbers.items():
        due = results.number(value)
        if not _near(said[name], due, noise + 1e-9 * abs(due or 0.0)):
            yield f"{name} says {said[name]!r}, at its place the traces say {due!r}"
    for name, value in {"left": left, "right": right}.items():
        if not _near(said["worst"][name], value, limit + (bound if np.isfinite(bound) else np.inf)):
            yield f"worst.{name} says {said['worst'][name]!r}, at its place the traces say {value!r}"


def _from_inputs(said: Document, finding: Finding, intact: bool) -> Iterator[str]:
    """Compare a stored finding of the core with one made anew: another machine rounds otherwise, within the bound."""
    fresh = results.finding_entry(finding)
    if _why(said) != _why(fresh):
        yield f"reason says {said['reason']!r}, judged anew {fresh['reason']!r}"
    if intact and _explained_by_rounding(said) and _explained_by_rounding(fresh):
        if said["expected"] != fresh["expected"]:
            yield f"expected says {said['expected']}, judged anew {fresh['expected']}"
        return
    yield from _words_differ(said, fresh, "judged anew,")
    forgiven = max(fresh["limit"] or 0.0, fresh["rounding_bound"] or 0.0) if intact else 0.0
    yield from _numbers_of(said, fresh, "judged anew,", forgiven)


def _why(finding: Document) -> str | None:
    """Return what of the reason does not depend on the last digits: all of it, or what comes before what was measured.

    Whether there is a reason at all follows from the status, which is compared by itself.
    """
    if finding["status"] != "skipped":
        return None
    reason: str = finding["reason"] or ""
    return reason if finding["observed"] is None else reason.rpartition("; ")[0]


def _explained_by_rounding(finding: Document) -> bool:
    deviation, bound = finding["deviation"], finding["rounding_bound"]
    return finding["status"] in {"pass", "inconclusive"} and None not in {deviation, bound} and deviation <= bound


def _words_differ(said: Document, fresh: Document, route: str) -> Iterator[str]:
    for name in ("status", "expected", "observed"):
        if said[name] != fresh[name]:
            yield f"{name} says {said[name]}, {route} {fresh[name]}"


def _numbers_of(said: Document, fresh: Document, route: str, forgiven: float) -> Iterator[str]:
    """Compare numbers; noise may decide for another element, which has a limit, a bound and sides of its own."""
    same_place = _place(said) == _place(fresh)
    for name in ("deviation", "limit", "rounding_bound") if same_place else ("deviation",):
        if not _near(said[name], fresh[name], forgiven):
            yield f"{name} says {said[name]!r}, {route} {fresh[name]!r}"
    for side in ("left", "right") if same_place and said["worst"] is not None else ():
        if not _near(said["worst"][side], fresh["worst"][side], forgiven):
            yield f"worst.{side} says {said['worst'][side]!r}, {route} {fresh['worst'][side]!r}"


def _place(finding: Document) -> list[Any]:
    worst = finding["worst"] or {}
    return [worst.get(name) for name in ("of", "head", "row", "axis", "index")]


def _near(stored: float | None, fresh: float | None, forgiven: float) -> bool:
    if stored is None or fresh is None:
        return stored is fresh
    return abs(stored - fresh) <= forgiven
