"""What is found: findings, cases with their findings, and the report of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from verify_attention import __version__
from verify_attention.model.basics import BROKEN, Cause, Condition, Expectation, Status, Verdict
from verify_attention.model.case import Case
from verify_attention.model.machine import this_machine


class Worst(NamedTuple):
    """The element that decides a finding: the quantity, its place in the case, and both sides there."""

    of: str
    head: int
    row: int
    axis: Literal["key", "channel"] | None
    position: int | None
    left: float
    right: float

    def __str__(self) -> str:
        last = "" if self.axis is None else f", {self.axis} {self.position}"
        return f"{self.of} at head {self.head}, row {self.row}{last}"


CONTROL = 1e-6  # a control must move by a million tolerances


class Opinion(NamedTuple):
    """What exact arithmetic says of an equation on a case, whatever an implementation makes of it.

    `proved`: the sides are the same; `refuted`: they are not, and `worst` is an element that shows it, with the
    `difference` and the `limit` there; `bounded`: no farther apart than balls of many digits reach; `undecided`:
    nothing is told; `skipped`: nothing was asked.
    """

    verdict: Verdict
    difference: float | None = None
    limit: float | None = None
    worst: Worst | None = None
    reason: str = ""


class Finding(NamedTuple):
    """What one invariant says of one case under one implementation.

    `observed`, `deviation`, `limit`, `rounding_bound` and `worst` are None where nothing was measured. A rounding
    bound of infinity promises nothing: a score may overflow, or a weight may be anything. `checked` says whether the
    equation was really tested: it could have failed.
    """

    invariant: str
    status: Status
    expected: Expectation
    observed: Expectation | None = None
    deviation: float | None = None
    limit: float | None = None
    rounding_bound: float | None = None
    worst: Worst | None = None
    reason: str | None = None
    opinion: Opinion | None = None

    @property
    def checked(self) -> bool:
        """Whether the equation was tested in earnest."""
        return was_checked(self.status, self.observed)

    @property
    def cause(self) -> Cause | None:
        """What it is that breaks, as far as exact arithmetic tells; None where nothing breaks, or nothing is told.

        `mathematics`: the equation is not what the case expects of it. `rounding`: it is, and the deviation is no more
        than rounding may make. `implementation`: it is, and the deviation is more than that. Where rounding may make
        anything, nothing is told.
        """
        if self.status not in {"fail", "inconclusive"} or self.observed is None:
            return None
        if self.opinion is None or self.opinion.verdict in {"undecided", "skipped"}:
            return None
        if self.expected == self.observed == "holds":
            return None  # the sides agree as they should; what the case lacks is a contrast
        if self._expects_otherwise:
            return "mathematics"
        if self.observed != "within-rounding":
            return "implementation"
        return "rounding" if self.rounding_bound is not None and self.rounding_bound < float("inf") else None

    @property
    def broke(self) -> bool:
        """Whether a run is not as it should be because of it: its status says so, or it passes against what is so."""
        return self.status in BROKEN or self.contradicted

    @property
    def contradicted(self) -> bool:
        """Whether it passes, though exact arithmetic says that what the case expects is not so."""
        return self.status == "pass" and self._expects_otherwise

    @property
    def _expects_otherwise(self) -> bool:
        """Whether what is expected differs from what is so, by as much as the expectation is about."""
        if self.opinion is None or self.opinion.verdict in {"undecided", "skipped"}:
            return False
        differs, limit = self.opinion.difference or 0.0, self.opinion.limit or 0.0
        return differs < max(CONTROL, limit) if self.expected == "breaks" else differs > limit


def was_checked(status: Status, observed: Expectation | None) -> bool:
    """Say whether an equation was tested in earnest: judged by a measurement, in which it could have failed."""
    return status in {"pass", "fail", "inconclusive"} and observed is not None


@dataclass(frozen=True)
class Tolerance:
    """How far two numbers may be apart: `max(rtol·max(|l|, |r|), atol)`."""

    rtol: float = 1e-12
    atol: float = 1e-12


class UnderTest(NamedTuple):
    """What was judged: its name, its version, the dtype of its arrays, and in which precision it computes."""

    name: str
    version: str
    dtype: str = "float64"
    computes_in: str = "float64"


@dataclass(frozen=True)
class CaseReport:
    """A case, its traces by condition and its findings in the order of the invariants.

    `conditions[condition][quantity]` is an array, or what `results.Summary` keeps of a large one.
    """

    case: Case
    conditions: Mapping[Condition, Mapping[str, Any]]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Report:
    """Everything that a run found, with which version of the tool, and on what machine."""

    implementation: UnderTest
    tolerance: Tolerance
    cases: tuple[CaseReport, ...]
    version: str = __version__
    environment: Mapping[str, str] = field(default_factory=this_machine)

    def findings(self) -> Iterator[tuple[Case, Finding]]:
        """Yield every finding with its case."""
        for entry in self.cases:
            for finding in entry.findings:
                yield entry.case, finding
