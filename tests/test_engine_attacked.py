"""What an attack on the engine found: each was a lie once."""

import pickle

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng

from verify_attention.engine import judge, run, run_case
from verify_attention.model import Published, Trace
from verify_attention.pipeline import CORE, softmax
from verify_attention.selection import blocks


def rows(*given):
    return np.array([given], dtype=np.float64)


def statuses(case, implementation=CORE):
    return {f.invariant: f.status for f in run_case(case, implementation, INVARIANTS.values(), TOLERANCE).findings}


def half_for_hidden_keys(scores):
    """Give keys far below the row's largest score half of the weight, and move the LSE along."""
    weights, lse = softmax(scores)
    hidden = scores < scores.max(axis=-1, keepdims=True) - 700
    share = np.where(hidden.any(axis=-1, keepdims=True), 0.5, 1.0)
    given = np.where(hidden, 0.5 / np.maximum(hidden.sum(axis=-1, keepdims=True), 1), weights * share)
    return given, lse - np.log(share[..., 0])


def test_a_key_far_below_the_largest_score_must_have_no_weight():
    case = article_case(q=rows([1, 0]), keys=rows([0, 0], [-1600, 0]))
    assert statuses(case)["weight-ratios-follow-score-gaps"] == "pass"
    wrong = CORE.but(softmax=half_for_hidden_keys)
    assert statuses(case, wrong)["weight-ratios-follow-score-gaps"] == "fail"


@pytest.mark.parametrize(
    "case",
    [
        article_case(q=rows([1e60, 1]), keys=rows([0, 1], [0, 2]), bK=np.array([[0.0, 3.0]]), scale=1.0),
        article_case(q=rows([1e100, 1e-100]), keys=rows([1e-100, 1e100], [2e-100, 1e100]), scale=1.0),
        article_case(q=rows([1e200, 1e-200]), keys=rows([0, 1e200], [0, 2e200]), scale=1.0),
    ],
)
def test_the_right_side_is_exact_whatever_the_sizes_within_a_row(case):
    assert set(statuses(case).values()) <= {"pass", "skipped", "inconclusive"}
    assert statuses(case)["scores-follow-the-formula"] == "pass"


def test_inert_is_exact_beside_a_key_of_another_size():
    case = article_case(keys=rows([1, 0], [1, 1e100], [1, -1e100]), q=rows([1, 0]), bQ=np.array([[1.0, 0.0]]))
    assert statuses(case)["inert-query-bias-leaves-weights"] == "pass"


def test_a_large_value_on_a_key_of_no_weight_is_no_trouble():
    case = article_case(q=rows([40, 0]), values=rows([1], [1], [1e12]))
    assert statuses(case)["output-mixes-values-by-weight"] == "pass"


def refusing_both(case):
    if case.condition == "qk":
        raise NotImplementedError("no fused biases")
    trace = CORE(case)
    scores = trace.scores.copy()
    scores[..., 0] += 0.1
    return Trace(trace.output, {**trace.inside, "scores": scores})


def test_what_was_seen_to_break_fails_though_another_part_is_not_offered():
    found = run_case(random_case(rng(60)), refusing_both, INVARIANTS.values(), TOLERANCE).findings
    finding = {one.invariant: one for one in found}
    assert finding["scores-follow-the-formula"].status == "fail"
    assert finding["weights-sum-to-one"].status == "skipped"
    assert finding["weights-sum-to-one"].reason == "not offered: no fused biases"


@pytest.mark.parametrize(
    "case",
    [
        article_case(q=rows([1e200, 1]), bK=np.array([[1e200, 0.0]])),
        article_case(q=rows([1e200, 1], [1, 1e200]), bK=np.array([[1e200, 1.0]])),
    ],
)
def test_an_overflow_is_inconclusive_and_not_vacuous(case):
    found = run_case(case, CORE, INVARIANTS.values(), TOLERANCE).findings
    assert {f.status for f in found} <= {"inconclusive", "skipped", "pass"}
    weights = next(f for f in found if f.invariant == "key-bias-leaves-weights")
    assert weights.status == "inconclusive"


def test_a_bias_that_overflows_beside_a_zero_of_q_is_no_failure():
    case = article_case(q=rows([0, 1]), keys=rows([1e308, 0], [1e308, 1]), bK=np.array([[1e308, 0.0]]))
    assert "fail" not in statuses(case).values()
    assert statuses(case)["scores-follow-the-formula"] == "inconclusive"


def test_the_mean_of_shifts_near_the_largest_float_does_not_overflow():
    case = article_case(
        q=rows([1, 0], [2, 0]), keys=np.zeros((1, 200, 2)), bK=np.array([[1e306, 0.0]]), bQ=np.zeros((1, 2)), scale=1.0
    )
    assert statuses(case)["each-row-shifts-by-its-own-constant"] == "pass"


VACUOUS = {
    "value-bias-passes-through": {"values": rows([1e6], [1e6 + 1], [1e6 + 2]), "bV": np.array([[1e-7]])},
    "each-row-shifts-by-its-own-constant": {"q": rows([1e6, 0], [1e6 + 1e-7, 0])},
    "score-product-has-four-terms": {"bQ": np.full((1, 2), 1e-20), "bK": np.full((1, 2), 1e-20)},
}


@pytest.mark.parametrize("name", VACUOUS)
def test_what_a_limit_would_forgive_is_vacuous(name):
    finding = judge(INVARIANTS[name], article_case(**VACUOUS[name]), CORE)
    assert (finding.status, finding.observed) == ("skipped", None)
    assert finding.reason.startswith("vacuous")


def test_a_control_by_key_shifts_alone_is_checked():
    shifts = rows([0, 0], [1, 0], [0, 0])
    case = article_case(
        bK=np.zeros((1, 2)), features={"key_shifts": shifts}, expect={"key-bias-leaves-weights": "breaks"}
    )
    assert statuses(case)["key-bias-leaves-weights"] == "pass"


@pytest.mark.parametrize(
    ("implementation", "reason"),
    [
        (lambda case: Trace(CORE(case).output, None), "NoneType as the inside"),
        (lambda case: Trace(CORE(case).output, [1]), "list as the inside"),
        (lambda case: Trace(CORE(case).output, {"attention": CORE(case).weights}), "returned attention"),
        (lambda case: Trace(np.ma.masked_array(CORE(case).output)), "MaskedArray"),
        (lambda case: Trace(CORE(case).output.astype(str)), "<U"),
    ],
)
def test_a_trace_that_cannot_be_used_is_a_crash_of_the_implementation(implementation, reason):
    finding = judge(INVARIANTS["key-bias-leaves-output"], random_case(rng(61)), implementation)
    assert finding.status == "crashed"
    assert reason in finding.reason


@pytest.mark.parametrize("kind", [np.uint8, np.longdouble, np.float32])
def test_numbers_of_other_kinds_are_numbers(kind):
    def attend(case):
        trace = CORE(case)
        return Trace(trace.output.astype(kind), {name: array.astype(kind) for name, array in trace.inside.items()})

    expected = {"pass", "skipped"} if kind is np.longdouble else {"fail", "inconclusive", "skipped", "pass"}
    assert set(statuses(random_case(rng(62)), attend).values()) <= expected


def test_an_implementation_may_use_its_memory_again():
    case = random_case(rng(63))
    memory = {name: np.empty_like(array) for name, array in CORE(case).inside.items()}

    def right(case):
        trace = CORE(case)
        for name, array in trace.inside.items():
            if array.shape == memory[name].shape:
                memory[name][...] = array
        return Trace(trace.output, memory)

    def wrong(case):
        if case.bK.any():
            case = case.but(scale=1.5 * case.scale)
        return right(case)

    assert set(statuses(case, right).values()) <= {"pass", "skipped"}
    assert statuses(case, wrong)["key-bias-leaves-weights"] == "fail"


def test_arrays_are_read_only_in_other_processes_too():
    case = random_case(rng(64))
    case.under("k")
    for copied in (pickle.loads(pickle.dumps(case)), pickle.loads(pickle.dumps(case)).under("k")):  # noqa: S301
        with pytest.raises(ValueError, match="read-only"):
            copied.keys[...] = 0


def test_an_overflowing_neighbour_changes_nothing_for_cases_judged_together():
    draw = rng(65)
    cases = [random_case(draw) for _ in range(3)]
    cases.insert(1, random_case(draw, q=np.full((6, 4, 7), 1e200), keys=np.full((3, 5, 7), 1e200)))
    together = list(run(cases, CORE, INVARIANTS.values(), TOLERANCE))
    alone = [run_case(case, CORE, INVARIANTS.values(), TOLERANCE) for case in cases]
    assert [repr(report.findings) for report in together] == [repr(report.findings) for report in alone]


def test_every_block_of_a_large_case_has_two_rows():
    case = random_case(rng(66), Tq=7, H=1, G=1)
    sizes = [block.q.shape[1] for block in blocks(case, largest=15)]
    assert sum(sizes) == 7
    assert min(sizes) >= 2


def test_printed_outputs_are_compared_though_scores_are_not_shown():
    scores, output = rows([0.7, 0, -0.7]), rows([0.575975, 0.283995, 0.140029])
    case = article_case(published=Published(6, {"scores": {"none": scores}, "output": {"none": output}}))
    name = "published-numbers-are-reproduced"
    assert judge(INVARIANTS[name], case, lambda case: Trace(CORE(case).output)).status == "pass"
    assert judge(INVARIANTS[name], case, lambda case: Trace(CORE(case).output + 1e-3)).status == "fail"
