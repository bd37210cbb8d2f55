"""The reducer: of the same claim that breaks, a smaller case, and again, until nothing is left to leave out.

It is greedy and deterministic. Every case that it tries is built as a file's documents are built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from verify_attention.cases.building import build
from verify_attention.cases.latents import settled
from verify_attention.engine.single import missing_traits
from verify_attention.model import FLOAT64, Case, Finding, Implementation, Invariant, Precision
from verify_attention.pipeline import CORE
from verify_attention.search import simpler
from verify_attention.search.drawing import expecting, printed
from verify_attention.search.hunting import FOUND, judged
from verify_attention.search.writing import document

MOST = 6000  # evaluations, of small cases
VISIBLE = 1e-3  # a deviation that a pencil sees


@dataclass(frozen=True)
class Reduced:
    """A small case on which a claim breaks; `stopped` says why it may not be the smallest, or nothing."""

    case: Case
    finding: Finding
    tried: int
    stopped: str = ""
    interrupted: bool = False


def reduced(
    case: Case,
    claim: Invariant,
    implementation: Implementation,
    own: Precision = FLOAT64,
    most: int = MOST,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Reduced | None:
    """Reduce a case on which a claim breaks; None where it does not break as the case is written.

    Ctrl-C ends it with the smallest that is known.
    """
    work = _Work(case, claim, implementation, own, most, progress)
    if work.best is None:
        return None
    try:
        while work.once():
            pass
    except _Exhausted:
        return work.result(f"stopped after {work.tried} tries: there may be a smaller one")
    except KeyboardInterrupt:
        return work.result("interrupted: there may be a smaller one", interrupted=True)
    return work.result()


class _Exhausted(Exception):
    """The work is as much as it may be."""


class _Work:
    """The smallest case so far, and how it is judged whether another will do."""

    def __init__(
        self,
        case: Case,
        claim: Invariant,
        implementation: Implementation,
        own: Precision,
        most: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self._claim, self._implementation, self._own, self._progress = claim, implementation, own, progress
        self._expected = case.expect.get(claim.name) if not (claim.on_request and not case.features) else None
        self.tried, self._spent, self._most = 0, 0.0, most
        self.best: Case | None = None
        self._visible = False
        first = self._rebuilt(case.but(title=None, source=None, tags=()))
        found = None if first is None else judged(first, claim, implementation, own)
        if first is None or found is None or found.status not in FOUND:
            return
        self.best, self.finding = first, found
        self._visible = found.expected == "holds" and found.status == "fail" and _visible(found)

    def result(self, stopped: str = "", interrupted: bool = False) -> Reduced:
        """Return what is known."""
        assert self.best is not None  # noqa: S101 - nothing is reduced without
        return Reduced(self.best, self.finding, self.tried, stopped, interrupted)

    def once(self) -> bool:
        """Go through all steps, and say whether the case is a simpler one now."""
        before = self.best
        for step in (simpler.without_things, simpler.smaller, simpler.at_once):
            while self._first_that_will_do(step(self.best)):
                pass
        for path, place, numbers in simpler.by_number(self.best):
            self._first_that_will_do(simpler.changed_at(self.best, path, place, number) for number in numbers)
        return self.best is not before

    def _first_that_will_do(self, candidates: Iterator[Case]) -> bool:
        limit = simpler.cost(self.best)
        return any(self._will_do(candidate, limit) for candidate in candidates)

    def _will_do(self, candidate: Case, limit: tuple[float, ...]) -> bool:
        case = self._rebuilt(candidate)
        if case is None or not simpler.cost(case) < limit:
            return False
        self.tried += 1
        self._spent += 1 + math.prod(case.scores_shape) * case.d_k / 2000
        self._progress(int(min(self._spent, self._most)), self._most)
        if self._spent > self._most:
            raise _Exhausted
        finding = judged(case, self._claim, self._implementation, self._own)
        if finding.status != self.finding.status or (self._visible and not _visible(finding)):
            return False
        if judged(case, self._claim, CORE).status not in {"pass", "skipped"}:
            return False  # what breaks for everybody says nothing
        self.best, self.finding = case, finding
        return True

    def _rebuilt(self, case: Case) -> Case | None:
        """Return a case as a file says it, with what follows from the rest; None where it is refused."""
        if case.latent is not None:
            if case.latent.W_UK.shape[0] != len(case.q) or 0 in case.latent.W_UK.shape:
                return None
            case = settled(case)
        if case.published is not None:
            wanted = case.published.numbers
            again = printed(case.but(published=None), wanted, case.published.decimals)
            if again is None:
                return None
            case = again
        made, _ = build(document(case.but(expect={})), id=case.id)
        if made is None or (self._expected is None and missing_traits(self._claim, made)):
            return None
        return expecting(made, self._claim, self._expected)


def _visible(finding: Finding) -> bool:
    return finding.deviation is not None and not finding.deviation < VISIBLE

