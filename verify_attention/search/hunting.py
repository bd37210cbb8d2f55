"""The hunt: one drawn case after the other, each for one claim in turn, until a claim breaks."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verify_attention.casting import cast
from verify_attention.engine.single import not_of, run_case
from verify_attention.model import FLOAT64, Case, Finding, Implementation, Invariant, Precision, Status, Tolerance
from verify_attention.search.drawing import Order, case_of
from verify_attention.search.ingredients import Recipe, recipes
from verify_attention.search.interrupting import heeding
from verify_attention.search.parameters import Numbers

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

FOUND: frozenset[Status] = frozenset({"fail", "crashed"})
HEADS = ((1, 1), (1, 1), (1, 1), (2, 1), (2, 2), (2, 2), (3, 1), (3, 3), (4, 2), (4, 2), (4, 4), (4, 1))
ROWS = (1, 1, 2, 2, 3, 3, 4)
KEYS = (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 9, 12)
WIDTHS = (1, 2, 2, 2, 3, 3, 4, 4, 5, 9)
VALUE_WIDTHS = (1, 2, 2, 3, 4, 5)
USUAL = Tolerance()
BYTES = 150  # most cases take fewer


@dataclass(frozen=True)
class Found:
    """A claim that breaks on a case, as it was drawn; `example` counts from 1."""

    case: Case
    claim: Invariant
    finding: Finding
    example: int


@dataclass
class Hunt:
    """How far a hunt has come: how many examples, how often each claim was really checked, and what was found.

    `asked` are the claims that cases were drawn for: others are not about the implementation.
    """

    examples: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    found: Found | None = None
    interrupted: bool = False
    asked: tuple[str, ...] = ()


class _Enough(BaseException):
    """Ends a hunt: what leaves Hypothesis at once is no Exception."""


def judged(
    case: Case,
    claim: Invariant,
    implementation: Implementation,
    own: Precision = FLOAT64,
    tolerance: Tolerance = USUAL,
) -> Finding:
    """Judge a case, in numbers of a precision, by one claim."""
    return run_case(cast(case, own), implementation, [claim], tolerance, traces=False).findings[0]


def hunt(
    implementation: Implementation,
    claims: Sequence[Invariant],
    *,
    examples: int,
    seed: int = 0,
    own: Precision = FLOAT64,
    features: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Hunt:
    """Draw examples, each for one of the claims in turn and with some features, until one breaks; the formula's first.

    Ctrl-C ends it as it stands. `progress` is called with how many examples are done, and how many there are to be.

    Raises:
        ImportError: Hypothesis is not installed.

    """
    state = Hunt()

    def ask(recipe: Recipe, case: Case | None) -> None:
        state.examples += 1
        heeded(state.examples, examples)
        if case is not None:
            finding = judged(case, recipe.claim, implementation, own)
            state.checked[recipe.claim.name] += finding.checked
            if finding.status in FOUND:
                state.found = Found(case, recipe.claim, finding, state.examples)
        if state.found is not None or state.examples >= examples:
            raise _Enough

    try:
        due = [one for one in claims if not_of(one, implementation) is None]
        due.sort(key=lambda claim: claim.of_others)  # a person reckons with the formula, not with what code does
        known = recipes(due, implementation, features)
        state.asked = tuple(recipe.claim.name for recipe in known)
        if known and examples:
            with heeding(progress) as heeded:
                _generate(known, ask, seed)
    except _Enough:
        pass
    except KeyboardInterrupt:
        state.interrupted = True
    return state


def _generate(known: Sequence[Recipe], ask: Callable[[Recipe, Case | None], None], number: int) -> None:
    """Let Hypothesis draw examples for ever."""
    import hypothesis  # noqa: PLC0415 - an extra

    turn = iter(_turns(known))
    quiet = hypothesis.settings(
        max_examples=10**9,
        phases=[hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    @hypothesis.seed(number)
    @quiet
    @hypothesis.given(_ingredients_of_cases())
    def one(ingredients: tuple[Any, ...]) -> None:
        recipe = next(turn)
        heads, rows, keys, width, value_width, data = ingredients
        sizes = {"H": heads[0], "G": heads[1], "Tq": rows, "Tk": keys, "d_k": width, "d_v": value_width}
        numbers = Numbers(data)
        ask(recipe, case_of(Order(sizes, recipe.ingredients(numbers), recipe.claim), numbers))

    with _home_elsewhere():
        one()


def _turns(known: Sequence[Recipe]) -> Iterator[Recipe]:
    while True:
        yield from known


def _ingredients_of_cases() -> SearchStrategy[tuple[Any, ...]]:
    """Few choices, and one run of bytes for everything else: a choice takes as long as a product."""
    from hypothesis import strategies as some  # noqa: PLC0415

    sizes = map(some.sampled_from, (HEADS, ROWS, KEYS, WIDTHS, VALUE_WIDTHS))
    return some.tuples(*sizes, some.binary(min_size=BYTES, max_size=BYTES))


@contextmanager
def _home_elsewhere() -> Iterator[None]:
    """Keep what Hypothesis writes down out of the user's folder."""
    from hypothesis.configuration import set_hypothesis_home_dir  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY"))
