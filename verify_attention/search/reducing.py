"""The reducer: of the same claim that breaks, a smaller case, and again, until nothing is left to leave out.

It is greedy and deterministic: once it leaves out things first and once it makes sizes smaller first, and takes the
better end. Every case that it tries is built as a file's documents are built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from verify_attention.cases.building import build
from verify_attention.cases.latents import settled
from verify_attention.engine.single import missing_traits
from verify_attention.functions import Asked
from verify_attention.kernel import attention
from verify_attention.model import (
    FLOAT64,
    STATUSES,
    Case,
    Expectation,
    Finding,
    Implementation,
    Invariant,
    Precision,
    Status,
    Tolerance,
)
from verify_attention.pipeline import CORE
from verify_attention.search import simpler
from verify_attention.search.cost import Cost, cost
from verify_attention.search.drawing import expecting, printed
from verify_attention.search.hunting import USUAL, judged
from verify_attention.search.interrupting import heeding
from verify_attention.search.writing import document

MOST = 6000  # tries of small cases; a large one counts for more
LARGE = 2000  # products, that take as long as everything else about a try
VISIBLE = 1e-3  # a deviation that a pencil sees
AGAIN = 3  # tries of what does not break every time

Step = Callable[[Case], Iterator[Case]]
STEPS: tuple[Step, ...] = (simpler.without_things, simpler.smaller, simpler.at_once)
ORDERS: tuple[tuple[tuple[Step, ...], Callable[[Cost], tuple[float, ...]]], ...] = (
    (STEPS, lambda own: own),
    ((*STEPS[1:], STEPS[0]), lambda own: own.sizes_first),
)


@dataclass(frozen=True)
class Reduced:
    """A small case on which a claim breaks; `stopped` says why there may be a smaller one, or nothing."""

    case: Case
    finding: Finding
    tried: int
    stopped: str = ""
    interrupted: bool = False


class _ExhaustedError(Exception):
    """The work is as much as it may be."""


@dataclass
class _Work:
    """How a case is judged whether it will do, and what that has taken so far."""

    claim: Invariant
    implementation: Implementation
    own: Precision
    tolerance: Tolerance
    most: int
    progress: Callable[[int, int], None]
    first: Finding
    expected: Expectation | None
    judgements: int = 1
    right_ends: frozenset[Status] = frozenset({"pass"})
    tried: int = 0
    spent: float = 0.0

    def finding(self, case: Case) -> Finding | None:
        """Return how the claim breaks on a case as it did first; None where it does not, or not visibly."""
        self.tried += 1
        self.spent += 1 + math.prod(case.scores_shape) * case.d_k / LARGE
        self.progress(int(min(self.spent, self.most)), self.most)
        if self.spent > self.most:
            raise _ExhaustedError
        visible = self.first.expected == "holds" and self.first.status == "fail" and _visible(self.first)
        for _ in range(self.judgements):
            found = judged(case, self.claim, self.implementation, self.own, self.tolerance)
            if found.status == self.first.status and (not visible or _visible(found)):
                return found
        return None

    def says_something(self, case: Case) -> bool:
        """Say whether the claim is really checked on a case, and holds, for an implementation that is right."""
        return self.right_status(case) in self.right_ends

    def right_status(self, case: Case) -> Status:
        """Return how the claim ends for an implementation that is right."""
        right = Asked(attention) if self.claim.of_others else CORE
        return judged(case, self.claim, right, tolerance=self.tolerance).status

    def rebuilt(self, case: Case) -> Case | None:
        """Return a case as a file says it, with what follows from the rest; None where it is refused."""
        if case.latent is not None:
            if case.latent.W_UK.shape[0] != len(case.q) or 0 in case.latent.W_UK.shape:
                return None
            case = settled(case)
        unprinted = case.but(published=None, expect={}, title=None, source=None, tags=())
        made, _ = build(document(unprinted), id=case.id)
        if made is not None and case.published is not None:
            made = printed(made, case.published.numbers, case.published.decimals)
        if made is None or (self.expected is None and missing_traits(self.claim, made)):
            return None
        return expecting(made, self.claim, self.expected)


def reduced(
    case: Case,
    claim: Invariant,
    finding: Finding,
    implementation: Implementation,
    own: Precision = FLOAT64,
    *,
    tolerance: Tolerance = USUAL,
    most: int = MOST,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Reduced:
    """Reduce a case on which a claim broke with a finding: what breaks breaks in the same way, and visibly if it did.

    Ctrl-C ends it with the smallest that is known. A case that does not break again stays as it is.
    """
    work = _Work(claim, implementation, own, tolerance, most, progress, finding, _expectation(case, claim))
    ends: list[tuple[Case, Finding]] = []
    stopped, interrupted = "", False
    try:
        with heeding(progress) as work.progress:
            start = _start(case, work)
            if start is None:
                stopped = "it does not break again: the answer depends on what was asked before"
            else:
                for steps, key in ORDERS:
                    ends.append(start)
                    for ends[-1] in _smaller_and_smaller(start, steps, key, work):
                        pass
    except _ExhaustedError:
        stopped = f"stopped after {work.tried:,} tries: there may be a smaller one"
    except KeyboardInterrupt:
        stopped, interrupted = "interrupted: there may be a smaller one", True
    best, found = min(ends or [(case, finding)], key=lambda end: cost(end[0]).together)
    return Reduced(best, found, work.tried, stopped, interrupted)


def _expectation(case: Case, claim: Invariant) -> Expectation | None:
    """Return what a case expects of a claim, unless that is how it is asked at all."""
    return None if claim.on_request and not case.features else case.expect.get(claim.name)


def _start(case: Case, work: _Work) -> tuple[Case, Finding] | None:
    """Return the case as a file says it, and how it breaks; what does not every time is judged several times."""
    first = work.rebuilt(case)
    if first is None:
        return None
    ends = work.right_status(first)
    if ends == "skipped":  # only wrong code is caught by it: right code is not asked, or not for this
        work.right_ends = frozenset({"pass", "skipped"})
    elif ends != "pass":  # right code breaks it too: the case expects what is not so
        work.right_ends = frozenset(STATUSES)
    for work.judgements in (1, AGAIN):
        found = work.finding(first)
        if found is not None:
            return first, found
    return None


def _smaller_and_smaller(
    start: tuple[Case, Finding], steps: Iterable[Step], key: Callable[[Cost], tuple[float, ...]], work: _Work
) -> Iterator[tuple[Case, Finding]]:
    """Yield simpler and simpler cases, until a round through all steps changes nothing."""
    best, before = start, None
    while best is not before:
        before = best
        for step in steps:
            while (found := _first_that_will_do(step(best[0]), best[0], key, work)) is not None:
                yield (best := found)
        for path, place, numbers in simpler.by_number(best[0]):
            tried = (simpler.changed_at(best[0], path, place, number) for number in numbers)
            found = _first_that_will_do(tried, best[0], key, work)
            if found is not None:
                yield (best := found)


def _first_that_will_do(
    candidates: Iterator[Case], best: Case, key: Callable[[Cost], tuple[float, ...]], work: _Work
) -> tuple[Case, Finding] | None:
    """Return the first simpler case on which the claim breaks in the same way, but holds for what is right."""
    limit = key(cost(best))
    for candidate in candidates:
        case = work.rebuilt(candidate)
        if case is None or not key(cost(case)) < limit:
            continue
        found = work.finding(case)
        if found is not None and work.says_something(case):
            return case, found
    return None


def _visible(finding: Finding) -> bool:
    return finding.deviation is not None and not finding.deviation < VISIBLE
