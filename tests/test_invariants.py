"""Every invariant, found by the registry: its texts, its faults, and what it does on cases made for it."""

import re
from functools import cache

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, right_of, rng

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.engine import judge, run_case
from verify_attention.model import CONDITIONS, Trace
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
    assert {trait for feature in features().values() for trait in feature.takes} <= needed


@cache
def shipped():
    return load_cases([resources.folder("cases")])


@cache
def suited(invariant):
    """Return cases on which an invariant is really checked: one made for it, or shipped ones with features."""
    if invariant.of_others:
        return [case for case in shipped() if case.id.startswith("implementations/")]
    if invariant.not_asked(random_case(rng(11))) is None or invariant.name in MADE:
        return [made(invariant)]
    return [case for case in shipped() if judge(invariant, case, CORE).checked]


MADE = {"published-numbers-are-reproduced", "inert-query-bias-leaves-weights", "per-key-shift-moves-score-gaps"}


def made(invariant):
    """Return a case in general position, or one of the kind that an invariant asks for."""
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


@pytest.mark.thorough
@every
def test_the_core_passes_and_the_equation_was_checked(invariant):
    cases = suited(invariant)
    assert cases
    for case in cases:
        finding = judge(invariant, case, right_of(invariant))
        assert (finding.status, finding.checked) == ("pass", True), finding


@every_fault
def test_every_fault_is_caught_on_a_suited_case(invariant, fault):
    findings = (judge(invariant, case, fault.implementation) for case in suited(invariant))
    assert any(finding.status in {"fail", "crashed"} for finding in findings)


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


def wrong_under(only, quantity):
    """Return the core with one number of one quantity off by 1e-3, under one condition."""

    def attend(case):
        trace = CORE(case)
        if case.condition != only:
            return trace
        arrays = {**{name: array.copy() for name, array in trace.inside.items()}, "output": trace.output.copy()}
        arrays[quantity][-1, -1, ...] += 1e-3
        return Trace(arrays.pop("output"), arrays)

    return attend


UNDER_EACH = {
    "scores-follow-the-formula": "scores",
    "weights-sum-to-one": "weights",
    "weights-follow-scores-and-lse": "lse",
    "output-mixes-values-by-weight": "output",
    "value-bias-passes-through": "output",
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", UNDER_EACH)
def test_a_mistake_under_one_condition_is_caught_under_that(name, condition):
    finding = judge(INVARIANTS[name], random_case(rng(70)), wrong_under(condition, UNDER_EACH[name]))
    assert finding.status == "fail"
    assert f"[{condition}]" in finding.worst.of


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_ratio_that_is_wrong_under_one_condition_is_caught(condition):
    def attend(case):
        trace = CORE(case)
        weights = trace.weights.copy()
        if case.condition == condition:
            weights[2, 1, :2] = weights[2, 1, 1::-1]
        return Trace(trace.output, {**trace.inside, "weights": weights})

    assert judge(INVARIANTS["weight-ratios-follow-score-gaps"], random_case(rng(71)), attend).status == "fail"


@pytest.mark.parametrize(
    ("name", "quantity"), [("key-bias-shifts-scores-alike", "scores"), ("lse-moves-with-the-key-bias", "lse")]
)
def test_a_shift_that_is_wrong_beside_a_query_bias_is_caught(name, quantity):
    assert judge(INVARIANTS[name], random_case(rng(72)), wrong_under("qk", quantity)).status == "fail"


def test_weights_outside_0_and_1_are_caught_though_they_sum_to_one():
    def attend(case):
        trace = CORE(case)
        weights = trace.weights.copy()
        weights[..., 0] += 1e-9 + weights[..., 1]
        weights[..., 1] = -1e-9
        return Trace(trace.output, {**trace.inside, "weights": weights})

    assert judge(INVARIANTS["weights-sum-to-one"], random_case(rng(73)), attend).status == "fail"


def test_both_biases_are_vacuous_by_the_query_with_its_bias():
    """(q + bQ)·bK is 0 in every row, though q·bK is not."""
    case = article_case(q=np.array([[[1.0, 0.0]]]), bQ=np.array([[-1.0, 2.0]]), bK=np.array([[3.0, 0.0]]))
    assert judge(INVARIANTS["both-biases-weigh-like-query-bias"], case, CORE).status == "skipped"
    assert judge(INVARIANTS["key-bias-leaves-weights"], case, CORE).status == "pass"


@pytest.mark.parametrize(
    "name", ["key-bias-leaves-weights", "key-bias-leaves-output", "both-biases-weigh-like-query-bias"]
)
@pytest.mark.parametrize(("second", "expected"), [(0.0, "skipped"), (1.0, "pass")])
def test_a_row_of_one_key_says_nothing_however_far_a_key_bias_moves_it(name, second, expected):
    """bK is (3, 0), so that row 0, which sees key 0 only, moves by 3·s, and row 1, which sees two, by 3·s·`second`."""
    case = article_case(
        q=np.array([[[1.0, 0.0], [second, 1.0]]]),
        bQ=np.array([[0.0, 2.0]]),
        bK=np.array([[3.0, 0.0]]),
        values=np.array([[[1.0, 2, 4, 8], [0, 3, 9, 7], [5, 6, 0, 1]]]),
        features={"causal": "upper-left"},
    )
    finding = judge(INVARIANTS[name], case, CORE)
    assert finding.status == expected
    assert (finding.reason or "").startswith("vacuous: " if expected == "skipped" else "")


def test_a_head_without_a_query_bias_is_not_inert():
    case = random_case(rng(74))
    bias = case.bQ.copy()
    bias[0] = 0.0
    assert judge(INVARIANTS["inert-query-bias-leaves-weights"], case.but(bQ=bias), CORE).status == "skipped"


def test_a_small_weight_is_held_to_its_score():
    case = article_case(q=np.array([[[1.0, 0.0]]]), keys=np.array([[[0.0, 0.0], [-300.0, 0.0], [-1.0, 0.0]]]))

    def attend(case):
        trace = CORE(case)
        weights = np.where(trace.weights < 1e-50, 2 * trace.weights, trace.weights)
        return Trace(trace.output, {**trace.inside, "weights": weights})

    assert judge(INVARIANTS["weight-ratios-follow-score-gaps"], case, attend).status == "fail"


def test_each_row_is_shifted_by_a_number_of_its_own_and_both_ways():
    from verify_attention.invariants.softmax_ignores_a_row_shift import shifted

    case = random_case(rng(75))
    moved = (CORE(shifted(case)).scores - CORE(case).scores)[0, :, 0]
    assert len(set(np.round(moved, 9))) == len(moved)
    assert min(abs(moved)) > 1
    assert min(moved) < 0 < max(moved)


def test_a_scale_too_small_to_shift_rows_by_is_said():
    finding = judge(INVARIANTS["softmax-ignores-a-row-shift"], random_case(rng(76), scale=1e-310), CORE)
    assert (finding.status, finding.observed) == ("skipped", None)
    assert "scale is too small" in finding.reason


def test_printed_numbers_may_be_off_by_half_a_unit_and_1e_12():
    from verify_attention.model import Published

    assert Published(6, {}).limit == 0.5e-6 + 1e-12
    assert Published(0, {}).limit == 0.5 + 1e-12


def test_inert_is_decided_exactly_and_for_each_head():
    invariant = INVARIANTS["inert-query-bias-leaves-weights"]
    case = inert_case()
    doubled = np.array([2.0, 2, 1, 1, 1, 1])[:, None, None]  # heads 0 and 1 weigh otherwise under a Q bias
    wrong = CORE.but(queries=lambda case: (case.q + case.bQ[:, None]) * (doubled if case.bQ.any() else 1))
    assert judge(invariant, case, wrong).status == "fail"
    keys = case.keys.copy()
    keys[0, 0, -1] = np.nextafter(keys[0, 0, -1], 1)  # by one bit, heads 0 and 1 are not inert any more
    assert judge(invariant, case.but(keys=keys), wrong).status == "pass"
    bias = case.bQ.copy()
    bias[:2] = 1.0  # nor are they with this bias
    assert judge(invariant, case.but(bQ=bias), wrong).status == "pass"
    assert judge(invariant, random_case(rng(14)), CORE).status == "skipped"


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


def test_a_row_of_one_key_makes_no_q_bias_inert():
    """Head 0 sees one key, whose product with bQ is the same as itself; in head 1 bQ has its say."""
    case = random_case(rng(80), H=2, G=1, Tq=3, Tk=5)
    mask = np.ones(case.scores_shape, dtype=bool)
    mask[0, :, 1:] = False
    name = "inert-query-bias-leaves-weights"
    finding = judge(INVARIANTS[name], case.but(features={"mask": mask}), CORE)
    assert finding.status == "skipped"
    assert finding.reason == "no head's bQ has the same product with every key of a row of several"


def test_what_a_mask_hides_is_nothing_to_a_q_bias():
    """The product of bQ with the keys that a row sees is 2; with the one that is hidden it is 5."""
    keys = np.array([[[2.0, 1.0], [2.0, 7.0], [5.0, 0.0]]])
    case = article_case(q=np.array([[[0.5, 1.0]]]), keys=keys, bQ=np.array([[1.0, 0.0]]), bK=np.zeros((1, 2)))
    name = "inert-query-bias-leaves-weights"
    hidden = case.but(features={"mask": np.array([[[True, True, False]]])})
    assert judge(INVARIANTS[name], hidden, CORE).status == "pass"
    assert judge(INVARIANTS[name], case, CORE).status == "skipped"


@pytest.mark.parametrize("positions", [[3.0, 3.0, 3.0, 3.0], [3.0, 9.0, 3.0, 1.0], [9.0, 3.0, 3.0, 1.0]])
def test_a_bias_that_turns_with_all_visible_keys_alike_is_common(positions):
    """Keys that stand elsewhere than at 3 are hidden, in the last case the first of all."""
    case = random_case(rng(81), H=4, G=2, Tq=3, Tk=4, d_k=6)
    seen = np.broadcast_to(np.equal(positions, 3.0), case.scores_shape)
    rope = {"base": 100.0, "layout": "half", "rotary_dims": 4, "bias": "before"}
    places = {"q_positions": np.array([7.0, 8.0, 9.0]), "k_positions": np.array(positions)}
    claims = (
        *("both-biases-weigh-like-query-bias", "each-row-shifts-by-its-own-constant", "key-bias-leaves-output"),
        *("key-bias-leaves-weights", "key-bias-shifts-scores-alike", "lse-moves-with-the-key-bias"),
        "score-product-has-four-terms",
    )
    given = case.but(features={"rope": {**rope, **places}, "mask": seen}, expect=dict.fromkeys(claims, "holds"))
    for name in claims:
        finding = judge(INVARIANTS[name], given, CORE)
        assert finding.status == "pass", finding
