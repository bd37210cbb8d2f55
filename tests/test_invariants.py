"""Every invariant, found by the registry: its texts, its faults, and what it does on cases made for it."""

import json
import re

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng

from verify_attention import resources
from verify_attention.engine import judge, run_case
from verify_attention.pipeline import CORE, Pipeline, softmax
from verify_attention.plugins import features

SPECIFIED = {
    "scores-follow-the-formula",
    "key-bias-shifts-scores-alike",
    "key-bias-leaves-weights",
    "key-bias-leaves-output",
    "query-bias-moves-score-gaps",
    "both-biases-weigh-like-query-bias",
    "each-row-shifts-by-its-own-constant",
    "inert-query-bias-leaves-weights",
    "per-key-shift-moves-score-gaps",
    "score-product-has-four-terms",
    "weight-ratios-follow-score-gaps",
    "weights-sum-to-one",
    "softmax-ignores-a-row-shift",
    "value-bias-passes-through",
    "lse-moves-with-the-key-bias",
    "published-numbers-are-reproduced",
}

every = pytest.mark.parametrize("invariant", INVARIANTS.values(), ids=INVARIANTS)
every_fault = pytest.mark.parametrize(
    ("invariant", "fault"),
    [
        pytest.param(one, fault, id=f"{one.name}: {fault.mistake}")
        for one in INVARIANTS.values()
        for fault in one.faults
    ],
)


def test_the_sixteen_of_the_specification_are_there():
    assert len(SPECIFIED) == 16
    assert set(INVARIANTS) >= SPECIFIED


@every
def test_texts_are_complete(invariant):
    assert re.fullmatch(r"[A-Z][^.]*\.", invariant.claim), "the claim is one sentence"
    assert invariant.formula
    assert invariant.source
    assert len(invariant.derivation) > 40
    assert invariant.faults
    assert len({fault.mistake for fault in invariant.faults}) == len(invariant.faults)
    assert all(not fault.mistake.endswith(".") for fault in invariant.faults)


def test_the_article_s_eight_checks_are_each_one_invariant_s():
    checks = [invariant.check for invariant in INVARIANTS.values() if invariant.check]
    assert len(checks) == len(set(checks)) == 8


def test_the_schema_names_the_invariants_for_editors():
    names = resources.schema("case")["properties"]["expect"]["properties"]
    assert list(names) == sorted(INVARIANTS)


def test_features_take_traits_that_some_invariant_needs():
    needed = frozenset().union(*(invariant.needs for invariant in INVARIANTS.values()))
    known = set(resources.schema("case")["properties"]["features"]["properties"])
    assert set(features()) == known
    assert all(feature.takes & needed for feature in features().values())


def suited(invariant):
    """Return a case on which an invariant is really checked."""
    draw = rng(11)
    special = {
        "published-numbers-are-reproduced": published_case,
        "inert-query-bias-leaves-weights": inert_case,
        "per-key-shift-moves-score-gaps": lambda: random_case(
            draw, features={"key_shifts": draw.normal(size=(3, 5, 7))}
        ),
        "weights-sum-to-one": lambda: random_case(draw, q=rows_of_2000(), keys=np.abs(draw.normal(size=(3, 5, 7)))),
    }
    return special.get(invariant.name, lambda: random_case(draw))()


def rows_of_2000():
    """Rows whose scores are all about 2000, and rows where all are about −2000."""
    return np.array([1.0, -1.0, -1.0, 1.0])[:, None] * np.full((6, 4, 7), 900.0)


def inert_case():
    """The keys differ in their last two channels, in which the Q bias lies, but not in its product with them."""
    draw = rng(12)
    keys = draw.normal(size=(3, 5, 7))
    keys[..., -2] = draw.integers(-8, 9, size=(3, 5)) / 8
    keys[..., -1] = 4 * (keys[..., -2] - 0.5)
    bias = np.zeros((6, 7))
    bias[:, -2:] = np.array([1.0, -0.25])  # k_6 − k_7 / 4 = 1/2 for every key
    return random_case(draw, keys=keys, bQ=bias)


def published_case():
    """The article's example with scores under no bias to six decimals, and values that show its output."""
    from verify_attention.model import Published

    scores = np.array([[[0.707107, 0, -0.707107]]])
    weights = np.array([[[0.575975, 0.283995, 0.140029]]])
    numbers = {"scores": {"none": scores}, "output": {"none": weights}}
    return article_case(published=Published(6, numbers))


@every
def test_the_core_passes_and_the_equation_was_checked(invariant):
    finding = judge(invariant, suited(invariant), CORE)
    assert (finding.status, finding.checked) == ("pass", True), finding


@every_fault
def test_every_fault_is_caught_on_a_suited_case(invariant, fault):
    finding = judge(invariant, suited(invariant), fault.implementation)
    assert finding.status in {"fail", "crashed"}, finding


def spoilt(quantity):
    """Return the core with NaN in one number of one quantity."""

    def nan_in(array):
        array = np.array(array)
        array.flat[-1] = np.nan
        return array

    def attend(case):
        trace = CORE(case)
        inside = {name: nan_in(array) if name == quantity else array for name, array in trace.inside.items()}
        return type(trace)(nan_in(trace.output) if quantity == "output" else trace.output, inside)

    return attend


@pytest.mark.parametrize("quantity", ["scores", "weights", "output", "lse"])
def test_a_single_nan_anywhere_fails_something_and_passes_nothing_that_reads_it(quantity):
    case = random_case(rng(13))
    spoilt_findings = run_case(case, spoilt(quantity), INVARIANTS.values(), TOLERANCE).findings
    assert any(finding.status == "fail" for finding in spoilt_findings)
    assert all(f.deviation is None or not np.isnan(f.deviation) for f in spoilt_findings if f.status == "pass")


def test_inert_is_decided_exactly_and_for_each_head():
    name = "inert-query-bias-leaves-weights"
    nearly = inert_case()
    keys = nearly.keys.copy()
    keys[0, 0, -1] = np.nextafter(keys[0, 0, -1], 1)  # heads 0 and 1 are not inert any more, by one bit
    finding = judge(INVARIANTS[name], nearly.but(keys=keys), CORE)
    assert finding.status == "pass"
    wrong = CORE.but(queries=lambda case: case.q + case.bQ[:, None] * np.array([2.0, 2, 1, 1, 1, 1])[:, None, None])
    bias = nearly.bQ.copy()
    bias[0] = 1.0  # head 0 has a Q bias that moves weights: it does not count
    assert judge(INVARIANTS[name], nearly.but(bQ=bias), wrong).status == "pass"
    only_head_zero = random_case(rng(14), keys=rng(14).normal(size=(3, 5, 7)))
    skipped = judge(INVARIANTS[name], only_head_zero, CORE)
    assert (skipped.status, skipped.observed) == ("skipped", None)


def test_sums_that_round_to_the_same_number_are_not_equal():
    """1 + 2^-60 and 1 are one binary64 number, but not one product."""
    keys = np.array([[[1.0, 1.0], [1.0, 0.0]]])
    case = article_case(q=np.array([[[1.0, 2.0]]]), keys=keys, bQ=np.array([[1.0, 2.0**-60]]), bK=np.zeros((1, 2)))
    assert judge(INVARIANTS["inert-query-bias-leaves-weights"], case, CORE).status == "skipped"


def test_gaps_that_move_without_a_weight_are_inconclusive():
    """Two keys whose weights are 0 whatever their shifts: the contrast is not shown."""
    keys = np.array([[[0.0, 0.0], [-900.0, 0.0], [-950.0, 0.0]]])
    shifts = np.array([[[0.0, 0.0], [-3.0, 0.0], [-5.0, 0.0]]])
    case = article_case(keys=keys, features={"key_shifts": shifts})
    finding = judge(INVARIANTS["per-key-shift-moves-score-gaps"], case, CORE)
    assert (finding.status, finding.observed) == ("inconclusive", "holds")
    assert "no weight moves by 1e-06" in finding.reason


def test_ratios_of_weights_too_small_for_float64_do_not_count():
    keys = np.array([[[0.0, 0.0], [-1.0, 0.0], [-2000.0, 0.0]]])
    assert judge(INVARIANTS["weight-ratios-follow-score-gaps"], article_case(keys=keys), CORE).status == "pass"


def zero_weight(scores):
    weights, lse = softmax(scores)
    return np.where(weights == weights.max(axis=-1, keepdims=True), weights, 0.0), lse


def test_a_weight_of_zero_where_the_score_says_otherwise_fails():
    wrong = Pipeline(softmax=zero_weight)
    assert judge(INVARIANTS["weight-ratios-follow-score-gaps"], random_case(rng(15)), wrong).status == "fail"


@every
def test_explanations_can_be_printed_as_json_too(invariant):
    json.dumps([invariant.name, invariant.claim, invariant.formula, sorted(invariant.needs)])
