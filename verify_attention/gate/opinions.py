"""Ask exact arithmetic anew: what it says follows from the case, whatever was under test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from verify_attention import results
from verify_attention.exact import IN_CLOSED_FORM, WITHOUT_BALLS, Expert
from verify_attention.exact.balls import balls_are_here
from verify_attention.model import Case, Finding, Invariant, Opinion, Tolerance, Worst
from verify_attention.sealing import Document

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
NEAR = 1e-6  # of a number: another version of a library may end elsewhere
FEW_DIGITS = 0.01  # of a number in words, which has three digits or more


def opinions_anew(
    entry: Document, case: Case, asked: Sequence[Invariant], tolerance: Tolerance, due: bool
) -> Iterator[str]:
    """Compare the stored opinions of a case with what exact arithmetic says here, and yield what is stored otherwise.

    Where opinions are `due`, every finding with a measurement must have one. What only balls can tell is not compared
    where they are not installed.
    """
    if due and _measured(entry) and not any("opinion" in said for said in entry["findings"]):
        yield "has no opinions of exact arithmetic: was the run made with --exact?"
        return
    known = {invariant.name: invariant for invariant in asked}
    expert = Expert(case, tolerance)
    for said in entry["findings"]:
        name, stored = said["invariant"], said.get("opinion")
        measured = said["observed"] is not None
        if stored is not None and not measured:
            yield f"{name}: has an opinion, but nothing was measured"
        elif stored is None and due and measured:
            yield f"{name}: has no opinion of exact arithmetic"
        elif stored is not None and name in known:
            yield from (f"{name}: {problem}" for problem in _differences(stored, said, expert, known[name]))


def _measured(entry: Document) -> bool:
    return any(said["observed"] is not None for said in entry["findings"])


def _differences(stored: Document, said: Document, expert: Expert, invariant: Invariant) -> Iterator[str]:
    finding = _finding(said)
    opinion = expert.opinion(invariant, finding)
    if opinion.verdict == "undecided" and not balls_are_here() and not stored["reason"].endswith(IN_CLOSED_FORM):
        return  # balls told it, where they are
    without = results.opinion_entry(finding._replace(opinion=WITHOUT_BALLS), WITHOUT_BALLS)
    if stored == without and not opinion.reason.endswith(IN_CLOSED_FORM):  # balls were not there where it was written
        if finding._replace(opinion=opinion).contradicted:
            yield f"passes undecided, but `expect: {said['expected']}` is wrong: {opinion.reason}"
        return
    fresh = results.opinion_entry(finding._replace(opinion=opinion), opinion)
    for field in ("verdict", "cause"):
        if stored[field] != fresh[field]:
            yield f"opinion.{field} says {stored[field]}, exact arithmetic {fresh[field]}"
    if not _say_the_same(stored["reason"], fresh["reason"]) or not all(map(_near, _numbers(stored), _numbers(fresh))):
        yield f"opinion says {stored['reason']!r}, exact arithmetic {fresh['reason']!r}"
    elif _place(stored) != _place(fresh):
        yield f"opinion.worst says {_place(stored)}, exact arithmetic {_place(fresh)}"


def contradicted(said: Document) -> bool:
    """Say whether a stored finding passes against what is stored of exact arithmetic."""
    if "opinion" not in said:
        return False
    opinion = Opinion(*(said["opinion"][name] for name in ("verdict", "difference", "limit")))
    return _finding(said)._replace(opinion=opinion).contradicted


def _finding(said: Document) -> Finding:
    """Return a stored finding as one of the model, without its opinion."""
    worst = said["worst"]
    place = worst and Worst(
        worst["of"],
        int(worst["head"]),  # 0.0 is a whole number to a schema
        int(worst["row"]),
        worst["axis"],
        None if worst["index"] is None else int(worst["index"]),
        worst["left"],
        worst["right"],
    )
    words = (said[name] for name in ("invariant", "status", "expected", "observed"))
    numbers = (said[name] for name in ("deviation", "limit", "rounding_bound"))
    return Finding(*words, *numbers, place)  # type: ignore[call-arg] # as many as there are


def _place(opinion: Document) -> list[object]:
    worst = opinion["worst"] or {}
    return [worst.get(name) for name in ("of", "head", "row", "axis", "index")]


def _numbers(opinion: Document) -> list[float | None]:
    worst = opinion["worst"] or {}
    return [opinion["difference"], opinion["limit"], worst.get("left"), worst.get("right")]


def _say_the_same(stored: str, fresh: str) -> bool:
    """Say whether reasons have the same words, and numbers that are near: another library may round them otherwise."""
    if NUMBER.sub("…", stored) != NUMBER.sub("…", fresh):
        return False
    pairs = zip(NUMBER.finditer(stored), NUMBER.finditer(fresh), strict=True)
    return all(_near(float(one[0]), float(other[0]), FEW_DIGITS) for one, other in pairs)


def _near(stored: float | None, fresh: float | None, within: float = NEAR) -> bool:
    if stored is None or fresh is None:
        return stored is fresh
    return abs(stored - fresh) <= within * max(abs(fresh), 1e-300)
