"""Departures from plain attention: where each acts, by two routes, and which traits of the formula it takes away.

Each act has two functions. `core` is what the float64 core does with arrays. `formula` says the same in
another form, as an estimate: a value, and how far from it correct floating-point code may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from verify_attention.model.basics import Array, Flags
from verify_attention.model.case import Case
from verify_attention.model.claims import Plugin, Trait

Side: TypeAlias = Literal["queries", "keys"]
Stage: TypeAlias = Literal["vectors", "scores", "mask", "normalisation"]


class Estimate(NamedTuple):
    """Numbers by the formula, and a bound of what rounding may do to them; the error may have axes of length 1."""

    value: Array
    error: Array


class Vectors(NamedTuple):
    """Queries `[H, Tq, d_k]` or keys `[G, Tk, d_k]` by the formula.

    `size` bounds, channel by channel, the numbers that correct code may add up to them (|q| + |bQ|: nobody has to add
    the bias before the product). `error` bounds what else rounding may do.
    """

    value: Array
    size: Array
    error: Array


class Column(NamedTuple):
    """A key that is not among the case's: its score in each row, `[H, Tq]`, and its value, `[H, d_v]`; None: zeros."""

    scores: Array
    value: Array | None = None


class OnVectors(NamedTuple):
    """An act on queries and keys: `core(case, side, vectors)`, with the biases added before it or after.

    `place` of the parameters is below 0 where the act comes before the biases, and above 0 where it comes after; the
    acts follow each other by it. A `linear` act turns sums into sums. `depends_on_width` says whether further channels
    of zeros change it.
    """

    core: Callable[[Case, Side, Array], Array]
    formula: Callable[[Case, Side, Vectors], Vectors]
    place: Callable[[Any], int]
    linear: bool
    depends_on_width: Callable[[Case], bool] = lambda _case: False


class OnScores(NamedTuple):
    """An act on scores `[H, Tq, Tk]`; `gain`: by what it multiplies them, where that is all it does, `[H, Tq, 1]`."""

    core: Callable[[Case, Array], Array]
    formula: Callable[[Case, Estimate], Estimate]
    gain: Callable[[Case], Array] | None = None


class Hides(NamedTuple):
    """An act that hides keys: both say which keys a row may attend to, `[H or 1, Tq, Tk]`."""

    core: Callable[[Case], Flags]
    formula: Callable[[Case], Flags]


class Fills(NamedTuple):
    """An act that puts a score in the place of each hidden one, instead of −∞: a number, which is said once."""

    score: Callable[[Case], float]


class AddsColumn(NamedTuple):
    """An act that lets one more key take its share of each row: `core(case, queries)`.

    No other feature acts on its score. `formula` returns the score and the value.
    """

    core: Callable[[Case, Array], Column]
    formula: Callable[[Case, Vectors], tuple[Estimate, Array | None]]


class Normalises(NamedTuple):
    """An act that stands for softmax: `core(case, scores)` returns the weights, and has no LSE.

    `many(case, scores)` is how many weights of a row may be off by the error of one at once, `[H, Tq, 1]`. `kept(case)`
    is how many keys of a row keep a weight; None: any number. `exponential(case)` says whether it takes exponentials of
    scores, for which code needs each row's maximum.
    """

    core: Callable[[Case, Array], Array]
    formula: Callable[[Case, Estimate], Estimate]
    many: Callable[[Case, Estimate], Array]
    kept: Callable[[Case], int | None]
    exponential: Callable[[Case], bool]


class Shape(NamedTuple):
    """The axes of an array among a feature's parameters, by their letters, and how many of the last may be given."""

    axes: tuple[str, ...]
    levels: tuple[int, ...]
    flags: bool = False


def nothing(_case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Find nothing wrong with a case."""
    return iter(())


Act: TypeAlias = OnVectors | OnScores | Hides | Fills | AddsColumn | Normalises

_STAGES: dict[type, Stage] = {
    OnVectors: "vectors",
    OnScores: "scores",
    Hides: "mask",
    Fills: "mask",
    AddsColumn: "normalisation",
    Normalises: "normalisation",
}


@dataclass(frozen=True, eq=False)
class Feature(Plugin):
    """One departure from plain attention.

    `order` is its place in the order of all features. `takes` are the traits that it takes away, or may take away:
    `takes_with` says which, of parameters. `why` says in a line what becomes of a K bias. `arrays` are the shapes of
    the arrays among its parameters, by their path there. `complete` fills in defaults: it gets the parameters and the
    case without them. `refuse` says what is wrong with a case: where, below the feature, and what is allowed.
    `spell_out` returns features without positions that say the same, for a case whose rows or keys are chosen; what
    hides keys becomes a mask.
    """

    act: Act | None
    order: int
    why: str
    takes: frozenset[Trait] = frozenset()
    takes_with: Callable[[Any], frozenset[Trait]] | None = None
    arrays: Mapping[tuple[str, ...], Shape] = field(default_factory=dict)
    complete: Callable[[Any, Case], Any] = lambda parameters, _case: parameters
    refuse: Callable[[Case], Iterator[tuple[tuple[str | int, ...], str]]] = nothing
    spell_out: Callable[[Case], Mapping[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The key under `features` in a case: the module's name, as it is."""
        return self.module.rpartition(".")[2]

    @property
    def stage(self) -> Stage:
        """What it acts on."""
        return "vectors" if self.act is None else _STAGES[type(self.act)]

    def taken(self, parameters: Any) -> frozenset[Trait]:
        """Return the traits that it takes away with these parameters."""
        return self.takes if self.takes_with is None else self.takes_with(parameters)
