"""The tool put to the test: wrong implementations must be noticed, right ones must not.

Wrong ones are the faults that claims declare, each of which its own claim must notice, and the mistakes that were seen
in real code. Right ones are the variations: attention written correctly in other ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from verify_attention import engine, plugins
from verify_attention.casting import cast
from verify_attention.model import Case, Finding, Implementation, Invariant, Status, Tolerance, precision
from verify_attention.selftest.nouns import Fate, Notice, Passage, Planted, SelfTest, Variation, planted, variations
from verify_attention.selftest.order import telling_first

__all__ = [
    "Fate",
    "Notice",
    "Passage",
    "Planted",
    "SelfTest",
    "Variation",
    "fate_of",
    "planted",
    "self_test",
    "telling_first",
    "variations",
]

T = TypeVar("T")
R = TypeVar("R")
NOTICED: frozenset[Status] = frozenset({"fail", "crashed"})
FIRST = 4  # cases that every fault is tried on, so that a row of the matrix says more than who came first
PARTS = 8  # into which each process's share is cut


def self_test(
    faults: Sequence[Planted],
    right: Sequence[Variation],
    cases: Sequence[Case],
    *,
    whole: bool = False,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> SelfTest:
    """Try every fault until it is killed, or on all cases where `whole`, and every variation on all cases.

    `progress` is called with how many of them are done, and how many there are.
    """
    chosen = list(plugins.invariants().values())
    work = partial(_tried, cases=cases, ordered=telling_first(cases), chosen=chosen, whole=whole)
    found = _spread(work, [*right, *faults], jobs, progress)
    fates = tuple(one for one in found if isinstance(one, Fate))
    passages = tuple(one for one in found if isinstance(one, Passage))
    return SelfTest(tuple(one.name for one in chosen), len(cases), whole, fates, passages)


def _tried(
    one: Planted | Variation, cases: Sequence[Case], ordered: Sequence[Case], chosen: Sequence[Invariant], whole: bool
) -> Fate | Passage:
    return fate_of(one, ordered, chosen, whole) if isinstance(one, Planted) else passage_of(one, cases, chosen)


def fate_of(fault: Planted, cases: Sequence[Case], chosen: Sequence[Invariant], whole: bool) -> Fate:
    """Try a fault on one case after the other: once it is noticed, only its own claim has still to notice it."""
    notices: dict[str, Notice] = {}
    own = [one for one in chosen if one.name == fault.claim]
    asked, tried = list(chosen), 0
    for case in cases:
        if not whole and tried >= FIRST and notices:
            if fault.claim is None or fault.claim in notices:
                break
            asked = own
        if asked == own and not _asked_of(own, case):
            continue
        for notice in _notices(case, fault.implementation, asked):
            if notice.status in NOTICED:
                notices.setdefault(notice.invariant, notice)
        tried += 1
    by_name = (notices[one.name] for one in chosen if one.name in notices)
    return Fate(fault.kind, fault.mistake, fault.claim, tuple(by_name), tried)


def _asked_of(claims: Sequence[Invariant], case: Case) -> bool:
    with np.errstate(all="ignore"):
        return any(claim.not_asked(case) is None for claim in claims)


def passage_of(variation: Variation, cases: Sequence[Case], chosen: Sequence[Invariant]) -> Passage:
    """Judge a right implementation on all cases, in the precision in which it computes."""
    own = precision("float64", variation.computes_in)
    reports = engine.run([cast(case, own) for case in cases], variation.implementation, chosen, Tolerance())
    checked, complaints = 0, list[Notice]()
    for report in reports:
        checked += sum(finding.checked for finding in report.findings)
        complaints += [
            _notice(report.case, finding) for finding in report.findings if finding.status not in {"pass", "skipped"}
        ]
    return Passage(variation.name, checked, tuple(complaints))


def _notices(case: Case, implementation: Implementation, asked: Sequence[Invariant]) -> Iterator[Notice]:
    for finding in engine.run_case(case, implementation, asked, Tolerance()).findings:
        yield _notice(case, finding)


def _notice(case: Case, finding: Finding) -> Notice:
    return Notice(finding.invariant, case.id, finding.status, finding.reason)


def _spread(work: Callable[[T], R], items: Sequence[T], jobs: int, progress: Callable[[int, int], None]) -> list[R]:
    """Return what becomes of each item, in their order, done in this process or in several.

    Each part has every so many-th item: those that take long stand close together.
    """
    parts = 1 if jobs == 1 else min(len(items), jobs * PARTS)
    if parts < 2:
        made = []
        for done, item in enumerate(items, 1):
            made.append(work(item))
            progress(done, len(items))
        return made
    found: list[list[R]] = []
    with engine.pool(min(jobs, parts, os.cpu_count() or 1)) as workers:
        for part in workers.imap(partial(_all, work), [items[start::parts] for start in range(parts)]):
            found.append(part)
            progress(sum(map(len, found)), len(items))
    return [found[index % parts][index // parts] for index in range(len(items))]


def _all(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    return [work(item) for item in items]
