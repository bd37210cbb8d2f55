"""Judge invariants on cases: one at a time, many together, or in several processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from verify_attention.engine.single import missing_traits, run_case
from verify_attention.engine.stack import by_shape, judged_together
from verify_attention.engine.tally import taken_away
from verify_attention.model import Case, CaseReport, Finding, Implementation, Invariant, Tolerance
from verify_attention.plugins import invariants
from verify_attention.summary import LARGEST

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext
    from multiprocessing.pool import Pool

__all__ = ["invariants", "judge", "missing_traits", "pool", "run", "run_case", "taken_away"]

MOST_CASES, MOST_SCORES = 256, 2**20  # of cases that are judged together
PARTS = 8  # that each of several processes gets at least, so that much is known early, and none is idle long


def judge(
    invariant: Invariant, case: Case, implementation: Implementation, tolerance: Tolerance | None = None
) -> Finding:
    """Judge one invariant on one case."""
    return run_case(case, implementation, [invariant], tolerance or Tolerance()).findings[0]


def run(
    cases: Sequence[Case],
    implementation: Implementation,
    chosen: Iterable[Invariant],
    tolerance: Tolerance,
    *,
    largest: float = LARGEST["auto"],
    jobs: int = 1,
    then: Callable[[CaseReport], CaseReport] | None = None,
) -> Iterator[CaseReport]:
    """Judge many cases, in one process or in `jobs`; the order is the cases' in any event.

    `then` adds to the report of each case, in the process that made it.
    """
    work = partial(
        _chunk, implementation=implementation, chosen=list(chosen), tolerance=tolerance, largest=largest, then=then
    )
    chunks = list(_chunks(cases, MOST_CASES if jobs == 1 else min(MOST_CASES, -(-len(cases) // (PARTS * jobs)))))
    processes = min(jobs, len(chunks), os.cpu_count() or 1)
    if processes <= 1:
        for chunk in chunks:
            yield from work(chunk)
        return
    with pool(processes, fresh=not getattr(implementation, "forks", True)) as workers:
        for reports in workers.imap(partial(_all_of, work), chunks):
            yield from reports


def _all_of(work: Callable[[list[Case]], Iterable[CaseReport]], chunk: list[Case]) -> list[CaseReport]:
    """Return what comes from another process, where it comes together."""
    return list(work(chunk))


def pool(processes: int, fresh: bool = False) -> Pool:
    """Start processes that leave Ctrl-C to this one: one that it ends in the middle may keep a lock for ever.

    `fresh` ones load everything anew, and share nothing with this one.
    """
    from multiprocessing import get_context  # noqa: PLC0415 - start-up counts where nothing is parallel

    context: BaseContext = get_context("spawn") if fresh else get_context()
    if threading.current_thread() is not threading.main_thread():
        return context.Pool(processes)
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return context.Pool(processes)
    finally:
        signal.signal(signal.SIGINT, usual)


def _chunks(cases: Sequence[Case], most: int) -> Iterator[list[Case]]:
    """Cut cases into runs of at most so many small ones, or few large ones."""
    chunk: list[Case] = []
    scores = 0
    for case in cases:
        heads, rows, keys = case.scores_shape
        if chunk and (len(chunk) == most or scores + heads * rows * keys > MOST_SCORES):
            yield chunk
            chunk, scores = [], 0
        chunk.append(case)
        scores += heads * rows * keys
    if chunk:
        yield chunk


def _chunk(
    cases: Sequence[Case],
    implementation: Implementation,
    chosen: Sequence[Invariant],
    tolerance: Tolerance,
    largest: float,
    then: Callable[[CaseReport], CaseReport] | None,
) -> Iterable[CaseReport]:
    """Judge cases of equal shape together where the implementation allows it, the others one by one, as asked for."""
    together: dict[int, CaseReport] = {}
    if getattr(implementation, "independent_heads", False):
        for group in by_shape(cases).values():
            found = judged_together([cases[index] for index in group], implementation, chosen, tolerance, largest)
            together.update((index, report) for index, report in zip(group, found, strict=True) if report is not None)
    reports = (
        together.get(index) or run_case(case, implementation, chosen, tolerance, largest)
        for index, case in enumerate(cases)
    )
    return reports if then is None else map(then, reports)
