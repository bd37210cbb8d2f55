"""Faults of real attention code, as they were reported, and the claim that catches each on the shipped cases.

That each declared fault is caught, `test_shipped_cases` shows; here each kind that was seen has a name, its claim and
the declared fault that stands for it.
"""

from __future__ import annotations

import pytest

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.engine import judge
from verify_attention.plugins import invariants

CASES = load_cases([resources.folder("cases")])
INVARIANTS = invariants()

SEEN = {
    # masks
    "boolean meaning inverted": ("masked-keys-have-no-say", "true hides"),
    "boolean added as 0 and 1": ("masked-keys-have-no-say", "the mask is added as 0 and 1"),
    "mask transposed": ("masked-keys-have-no-say", "the mask is read transposed where Tq = Tk"),
    "scores multiplied by the mask": ("masked-keys-have-no-say", "scores are multiplied by the mask"),
    "fill value −1e−9": ("masked-keys-have-no-say", "hidden scores are −1e-9"),
    "mask of one sample or head for all": ("heads-do-not-talk", "the mask of head 0 is used for all heads"),
    "maximum over unmasked scores": ("masked-keys-have-no-say", "the maximum is taken before the mask"),
    "softcap after the mask": ("softcap-bounds-scores", "the cap comes after the mask, so that hidden scores are -cap"),
    # causality
    "upper-left where lower-right is declared": (
        "future-keys-have-no-say",
        "causality is measured from the upper left, whatever is declared",
    ),
    "one future key visible": ("future-keys-have-no-say", "one future key is visible"),
    "causality dropped": ("future-keys-have-no-say", "causality is dropped"),
    "causality skipped when a cache exists": (
        "one-pass-equals-step-by-step",
        "causality is skipped where there is a cache",
    ),
    # heads
    "key-value heads tiled": ("grouped-heads-equal-repeated-heads", "key-value heads are tiled instead of repeated"),
    "heads merged without transpose": ("heads-do-not-talk", "heads are merged without a transpose"),
    "projection read in the wrong blocks": (
        "layer-sums-over-heads",
        "channels stand before heads when they are merged",
    ),
    "bias of head 0 for all heads": ("key-bias-shifts-scores-alike", "the K bias of head 0 is used for all heads"),
    # rotation and norm
    "q half, k interleaved": (
        "rotation-depends-on-distance",
        "queries turn in the layout half, keys in the interleaved one",
    ),
    "frequencies from the head width": (
        "padding-the-width-changes-nothing",
        "frequencies are taken from the width instead of rotary_dims",
    ),
    "K bias after the rotation": ("weights-follow-the-formula", "biases are added behind the rotation"),
    "undeclared norm": ("key-bias-leaves-weights", "keys are normalised after the bias, undeclared"),
    "norm forgotten": ("weights-follow-the-formula", "the norm is forgotten"),
    # cache
    "unused zero slots attended": (
        "one-pass-equals-step-by-step",
        "the last block of four keys is filled up with zeros, which are attended",
    ),
    "cached keys rotated again": (
        "one-pass-equals-step-by-step",
        "cached keys are rotated again at each step",
    ),
    # hidden keys
    "last block padded with zero keys": (
        "duplicated-keys-change-nothing",
        "the last block of four keys is filled up with zeros, which are attended",
    ),
    "one undeclared zero key": ("softmax-ignores-a-row-shift", "an undeclared key of zeros takes a share"),
    # scores and softmax
    "score bias scaled along": ("score-bias-moves-log-odds", "the score bias is multiplied by the scale"),
    "ALiBi sign reversed": ("score-bias-moves-log-odds", "the sign of ALiBi is reversed"),
    "scale on the weights": ("scale-folds-into-queries", "the scale is applied to the weights as well"),
    "running maximum from 0": ("weights-sum-to-one", "the running maximum starts at 0"),
    "one maximum for all rows": ("each-query-stands-alone", "one maximum serves all rows of a head"),
    "softmax over the query axis": ("each-query-stands-alone", "softmax runs over the query axis"),
}


@pytest.mark.parametrize("fault", SEEN)
def test_a_fault_that_was_seen_is_caught_by_the_claim_that_names_it(fault: str) -> None:
    name, mistake = SEEN[fault]
    [wrong] = [known.implementation for known in INVARIANTS[name].faults if known.mistake == mistake]
    assert any(judge(INVARIANTS[name], case, wrong).status == "fail" for case in CASES)
