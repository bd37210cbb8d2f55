"""What is tried: wrong implementations and right ones; and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from verify_attention import plugins
from verify_attention.functions import Asked
from verify_attention.model import Implementation, Status
from verify_attention.variations import VARIATIONS


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
