"""The tool put to the test: wrong implementations must be noticed, right ones must not.

Wrong ones are the faults that claims declare, each of which its own claim must notice, and the mistakes that were seen
in real code. Right ones are the variations: attention written correctly in other ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

from verify_attention import engine, plugins
from verify_attention.casting import cast
from verify_attention.functions import SAID, Asked
from verify_attention.model import Case, Finding, Implementation, Invariant, Status, Tolerance, precision
from verify_attention.variations import VARIATIONS

T = TypeVar("T")
R = TypeVar("R")
NOTICED: frozenset[Status] = frozenset({"fail", "crashed"})
FIRST = 4  # cases that every fault is tried on, so that a row of the matrix says more than who came first
PARTS = 8  # into which each process's share is cut


@dataclass(frozen=True)
class Planted:
    """A wrong implementation; `claim` is the invariant that declares it, and has to notice it."""

    kind: str
    mistake: str
    implementation: Implementation
    claim: str | None = None

    def __reduce__(self) -> tuple[Callable[[str, str], Planted], tuple[str, str]]:
        """Travel between processes by name: implementations are closures."""
        return _planted, (self.kind, self.mistake)


@dataclass(frozen=True)
class Variation:
    """A right implementation, by what is particular about it; `computes_in` where that is not float64."""

    name: str
    implementation: Implementation
    computes_in: str | None = None

    def __reduce__(self) -> tuple[Callable[[str], Variation], tuple[str]]:
        """Travel between processes by name: implementations are closures."""
        return _variation, (self.name,)


class Notice(NamedTuple):
    """An invariant that noticed something, how, and on which case first."""

    invariant: str
    case: str
    status: Status
    reason: str | None


@dataclass(frozen=True)
class Fate:
    """What became of a fault: who noticed it on the cases that it was tried on."""

    kind: str
    mistake: str
    claim: str | None
    notices: tuple[Notice, ...]
    cases: int

    @property
    def by(self) -> frozenset[str]:
        """The names of the invariants that noticed it."""
        return frozenset(notice.invariant for notice in self.notices)

    @property
    def killed(self) -> bool:
        """Whether it was noticed: by the claim that declares it, where one does."""
        return bool(self.notices) if self.claim is None else self.claim in self.by


@dataclass(frozen=True)
class Passage:
    """What was said of a right implementation on all cases: how often it was checked, and every complaint."""

    name: str
    checked: int
    complaints: tuple[Notice, ...]

    @property
    def passed(self) -> bool:
        """Whether it was really checked, and nothing was said against it."""
        return self.checked > 0 and not self.complaints


@dataclass(frozen=True)
class SelfTest:
    """The fates of all faults, and the passages of all variations. `whole`: each was tried on all cases."""

    invariants: tuple[str, ...]
    cases: int
    whole: bool
    fates: tuple[Fate, ...]
    passages: tuple[Passage, ...]

    @property
    def survivors(self) -> tuple[Fate, ...]:
        """The faults that nobody noticed who should."""
        return tuple(fate for fate in self.fates if not fate.killed)

    @property
    def blamed(self) -> tuple[Passage, ...]:
        """The variations that something was said against."""
        return tuple(passage for passage in self.passages if not passage.passed)

    @property
    def passed(self) -> bool:
        """Whether every fault was killed and every variation passed."""
        return not self.survivors and not self.blamed


def planted() -> list[Planted]:
    """Return every fault: the mistakes seen in real code, then what each invariant declares."""
    seen = [
        Planted(kind.title, fault.mistake, fault.implementation)
        for kind in plugins.faults().values()
        for fault in kind.faults
    ]
    declared = [
        Planted(name, fault.mistake, fault.implementation, name)
        for name, invariant in plugins.invariants().items()
        for fault in invariant.faults
    ]
    return seen + declared


def variations() -> list[Variation]:
    """Return every right implementation."""
    return [Variation(name, Asked(each), getattr(each, "computes_in", None)) for name, each in VARIATIONS.items()]


def _planted(kind: str, mistake: str) -> Planted:
    return next(one for one in planted() if (one.kind, one.mistake) == (kind, mistake))


def _variation(name: str) -> Variation:
    return next(one for one in variations() if one.name == name)


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
    with engine.pool(min(jobs, parts)) as workers:
        for part in workers.imap(partial(_all, work), [items[start::parts] for start in range(parts)]):
            found.append(part)
            progress(sum(map(len, found)), len(items))
    return [found[index % parts][index // parts] for index in range(len(items))]


def _all(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    return [work(item) for item in items]


def telling_first(cases: Sequence[Case]) -> list[Case]:
    """Return the cases in an order in which mistakes show early: each time the one with most that is new.

    Where nothing is new any more it begins again; of equally rich cases the smallest comes first.
    """
    left = sorted(cases, key=lambda case: math.prod(case.scores_shape) * case.d_k)  # stable: then in their order
    traits = {id(case): _traits(case) for case in left}
    ordered, met = list[Case](), set[Hashable]()
    while left:
        best = max(left, key=lambda case: len(traits[id(case)] - met))
        if met and not traits[id(best)] - met:
            met = set()
            continue
        left.remove(best)
        ordered.append(best)
        met |= traits[id(best)]
    return ordered


def _traits(case: Case) -> frozenset[Hashable]:
    """Return what a case has that some mistake may depend on."""
    heads, rows, keys = case.scores_shape
    flags = {
        "grouped": 1 < len(case.keys) < heads,
        "several rows": rows > 1,
        "as many rows as keys": rows == keys,
        "fewer rows than keys": rows < keys,
        "values": case.values is not None,
        "V bias": case.bV is not None,
        "scale": case.scale != 1 / math.sqrt(case.d_k),
        "layer": case.W_O is not None,
        "latent": case.latent is not None,
        "printed": case.published is not None,
    }
    there = [name for name, given in flags.items() if given]
    met = [*case.features, *combinations(sorted(case.features), 2)]
    said = [("said", one) for one in met] if case.features.keys() <= SAID else []  # functions are asked of these only
    return frozenset({*there, *case.tags, *case.expect.items(), *met, *said})
