"""Claims about attention: equations, and the faults that they must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Literal, TypeAlias

from verify_attention.model.basics import Array, Flags
from verify_attention.model.case import Case
from verify_attention.model.trace import Implementation


@dataclass(frozen=True, eq=False)
class Sides:
    """An equation on one case, or a part of one: two arrays that should agree.

    Arrays are `[H, Tq]` or `[H, Tq, n]`; `axis` names the last one. `rounding` bounds how far correct floating-point
    code may bring the sides apart; it is computed from the case, never from the output. `moves` is what an
    implementation that did nothing would leave out: where all of it is ~0, the equation proves nothing. `counts`
    selects the elements that the claim is about. `limit` replaces the tolerance (printed numbers), of all elements or
    of each. Sides that `contrast` must differ, not agree.
    """

    of: str
    left: Array
    right: Array
    rounding: Array | float
    axis: Literal["key", "channel"] = "key"
    moves: Array | float | None = None
    counts: Flags | None = None
    limit: Array | float | None = None
    contrast: bool = False


@dataclass(frozen=True)
class Fault:
    """A mistake in words, and the implementation that makes it."""

    mistake: str
    implementation: Implementation


ON_REQUEST = "asked of cases with features, or that expect it"
ABOUT_OTHERS = "about other implementations than the core, which is what they are compared with"
IN_BLOCKS = "the case is judged in blocks, and the claim is about all of it"


def always(_case: Case) -> str | None:
    """Apply to every case."""
    return None


Trait: TypeAlias = Literal[
    "bilinear scores",
    "common key shift",
    "exponential weights",
    "hidden keys have no weight",
    "rows sum to one",
    "shift-invariant softmax",
]


@dataclass(frozen=True)
class Plugin:
    """A module with one constant: its name is the plugin's, its docstring the documentation."""

    module: str
    doc: str

    @property
    def claim(self) -> str:
        """What it says, in one sentence."""
        return self.doc.partition("\n")[0]

    @property
    def derivation(self) -> str:
        """Why that is so."""
        return self.doc.partition("\n")[2].strip()


@dataclass(frozen=True)
class Invariant(Plugin):
    """A claim about attention, as an equation with two independently computed sides.

    `applies` returns None, or the reason why the case is not one that the claim is about. A claim `on_request` is
    asked of cases with features, and of plain ones, which are about biases, only where they expect it; one about a
    `whole` case is not asked of one that is judged in blocks; one `of_others` is not asked of the core. `vacuous`
    completes the reason where every `moves` of the equation is ~0. `needs` are traits of the formula that features
    may take away. `where` says to whom reads it which cases those are. `check` is the name of the article's check
    that this repeats.
    """

    formula: str
    source: str
    sides: Callable[[Case, Implementation], Iterator[Sides]]
    faults: tuple[Fault, ...]
    vacuous: str = ""
    needs: frozenset[Trait] = frozenset()
    applies: Callable[[Case], str | None] = always
    where: str = ""
    check: str | None = None
    own_limit: bool = False  # some part has a limit that is not the tolerance
    on_request: bool = False
    whole: bool = False
    of_others: bool = False

    def not_asked(self, case: Case) -> str | None:
        """Return the reason why the claim is not asked of a case, else None."""
        if self.on_request and not case.features and self.name not in case.expect:
            return ON_REQUEST
        return IN_BLOCKS if self.whole and case.in_blocks else self.applies(case)

    def __reduce__(self) -> tuple[Callable[[str], Invariant], tuple[str]]:
        """Travel between processes by name: the functions inside may be lambdas."""
        return _invariant_of, (self.module,)

    @cached_property
    def name(self) -> str:
        """The claim as a clause, in kebab-case: the module's name."""
        return self.module.rpartition(".")[2].replace("_", "-")


def _invariant_of(module: str) -> Invariant:
    found: Invariant = import_module(module).INVARIANT
    return found
