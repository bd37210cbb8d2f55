"""The smallest cases that are shipped: every declared fault has one, on which its own claim breaks, and only for it."""

from __future__ import annotations

import re

import pytest
from make_smallest import fresh, slug, tells
from making import PEER

from verify_attention import plugins, resources
from verify_attention.cli.explaining import explanation
from verify_attention.engine import judge
from verify_attention.model import Case
from verify_attention.search import in_a_line, smallest_cases, text

INVARIANTS = plugins.invariants()
STORED = {name: smallest_cases(name) for name in INVARIANTS}
DECLARED = [(name, fault.mistake) for name, claim in INVARIANTS.items() for fault in claim.faults]
KEYS, WIDTH = 3, 2

FREQUENCIES = "two channels turn by the position itself, whatever the width: frequencies differ from four channels on"
LAYOUTS = "two channels are one pair in both layouts: they differ from four channels on"
LARGER = {  # why a fault takes more keys or channels
    ("absorbed-mla-equals-expanded", "rope turns the latent's channels too"): (
        "rope turns two channels at a time, and the latent's come on top"
    ),
    ("declared-breaks-are-as-predicted", "frequencies are those of the width"): FREQUENCIES,
    ("padding-the-width-changes-nothing", "frequencies are taken from the width instead of rotary_dims"): FREQUENCIES,
    ("weights-follow-the-formula", "frequencies are taken from the width instead of rotary_dims"): FREQUENCIES,
    ("rotation-depends-on-distance", "queries turn in the layout half, keys in the interleaved one"): LAYOUTS,
    ("weights-follow-the-formula", "keys are rotated in the other layout"): LAYOUTS,
    ("duplicated-keys-change-nothing", "only the eight largest scores of a row count"): (
        "twice four keys are eight; only the fifth is left out"
    ),
    ("keys-permute-freely", "keys behind the last whole block of four are dropped"): (
        "four keys are a block; only the fifth stands behind it"
    ),
}


def too_large(case: Case) -> bool:
    """Say whether a case has more keys or channels than a pencil likes."""
    return case.scores_shape[2] > KEYS or case.d_k > WIDTH


@pytest.mark.parametrize("name", INVARIANTS)
def test_every_declared_fault_has_a_smallest_case_and_no_other_has(name: str) -> None:
    assert list(STORED[name]) == [fault.mistake for fault in INVARIANTS[name].faults]
    assert {case.id for case in STORED[name].values()} == {f"{name}::{slug(mistake)}" for mistake in STORED[name]}


@pytest.mark.parametrize(("name", "mistake"), DECLARED)
def test_its_claim_breaks_on_it_under_the_fault_and_holds_for_what_is_right(name: str, mistake: str) -> None:
    assert tells(STORED[name][mistake], name, mistake)


def test_they_are_small_but_for_those_that_have_a_reason() -> None:
    large = {(name, mistake) for name, mistake in DECLARED if too_large(STORED[name][mistake])}
    assert large == LARGER.keys()


def test_the_guards_see_what_is_wrong() -> None:
    name, mistake = "key-bias-leaves-weights", "the K bias reaches the first key only"
    case = STORED[name][mistake]
    assert not tells(case.but(bK=case.bK * 0), name, mistake)
    assert judge(INVARIANTS[name], case.but(bK=case.bK * 0), PEER).status == "skipped"
    assert not tells(case, name, "keys are normalised after the bias, undeclared")
    assert too_large(case.but(keys=case.keys.repeat(2, axis=1)))


def test_they_are_written_as_the_search_writes_them() -> None:
    for name, cases in STORED.items():
        said = resources.smallest(name).read_text(encoding="utf-8")
        head, *_ = said.splitlines(keepends=True)
        assert head.startswith("# Made by tests/make_smallest.py")
        assert said == head + "---\n".join(text(case, slug(mistake)) for mistake, case in cases.items())


def test_a_fresh_fault_remembers_nothing() -> None:
    one, other = (fresh("two-calls-agree-bitwise").faults[0].implementation for _ in range(2))
    assert one is not other
    assert one is not INVARIANTS["two-calls-agree-bitwise"].faults[0].implementation


def test_they_are_explained() -> None:
    said = explanation("key-bias-leaves-weights")
    assert re.search(
        r"  - the K bias reaches the first key only\n      q\s\[1\] · keys\s\[\[0\],\s\[0\]\] · bK\s\[1\]\n", said
    )


def test_a_line_leaves_out_what_need_not_be_said() -> None:
    case = STORED["weights-follow-the-formula"]["biases are added behind the rotation"]
    assert re.fullmatch(r"q \[.*\] · keys \[\[.*\]\] · bQ \[.*\] · bK \[.*\] · rope", in_a_line(case))
