import itertools

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng

from verify_attention.engine import judge, run, run_case, single
from verify_attention.model import CONDITIONS, Case, Tolerance, Trace
from verify_attention.pipeline import CORE, biased_keys, softmax
from verify_attention.selection import blocks
from verify_attention.summary import Summary

LEAVES = INVARIANTS["key-bias-leaves-weights"]
COMMON = {
    "key-bias-shifts-scores-alike", "key-bias-leaves-weights", "key-bias-leaves-output",
    "both-biases-weigh-like-query-bias", "each-row-shifts-by-its-own-constant", "lse-moves-with-the-key-bias",
    "score-product-has-four-terms",
}  # fmt: skip


def findings(case: Case, implementation=CORE, tolerance=TOLERANCE):
    return {f.invariant: f for f in run_case(case, implementation, INVARIANTS.values(), tolerance).findings}


def shifted_case(**given):
    draw = rng(21)
    return random_case(draw, features={"key_shifts": draw.normal(size=(3, 5, 7))}, **given)


def test_every_invariant_has_one_finding_in_the_order_of_names():
    report = run_case(random_case(rng(20)), CORE, INVARIANTS.values(), TOLERANCE)
    assert [finding.invariant for finding in report.findings] == sorted(INVARIANTS)


# --- vacuous: what cannot fail is not a pass


VACUOUS = [
    ("bK is 0", {"bK": np.zeros((3, 7))}, COMMON),
    ("q and bQ are 0", {"q": np.zeros((6, 4, 7)), "bQ": np.zeros((6, 7))}, COMMON | {"query-bias-moves-score-gaps"}),
    ("one key", {"keys": rng(22).normal(size=(3, 1, 7)), "values": None, "bV": None}, {
        "key-bias-leaves-weights", "key-bias-leaves-output", "both-biases-weigh-like-query-bias",
        "weight-ratios-follow-score-gaps", "softmax-ignores-a-row-shift", "query-bias-moves-score-gaps"}),
    ("bV is 0", {"bV": np.zeros((3, 2))}, {"value-bias-passes-through"}),
    ("one row", {"q": rng(22).normal(size=(6, 1, 7))}, {"each-row-shifts-by-its-own-constant"}),
    ("equal rows", {"q": np.ones((6, 4, 7))}, {"each-row-shifts-by-its-own-constant"}),
    ("equal keys", {"keys": np.ones((3, 5, 7))}, {"query-bias-moves-score-gaps"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "names"), [row[1:] for row in VACUOUS], ids=[row[0] for row in VACUOUS])
def test_an_equation_that_cannot_fail_is_skipped(given, names):
    found = findings(random_case(rng(23), **given))
    assert {name: found[name].status for name in names} == dict.fromkeys(names, "skipped")
    assert all(found[name].observed is None for name in names)
    assert sum(finding.checked for finding in found.values()) >= 4  # the rest of the case still shows something


def test_vacuous_is_measured_in_limits():
    """A row's number of 1e-13 is nothing at 1e-12, and something at 1e-14."""
    case = article_case(bK=np.array([[1.4e-13, 0.0]]))
    assert judge(LEAVES, case, CORE).status == "skipped"
    assert judge(LEAVES, case, CORE, Tolerance(1e-14, 1e-14)).status == "pass"


def test_what_is_vacuous_but_breaks_all_the_same_fails():
    def unstable(case):
        return CORE(case if case.condition == "none" else case.but(scale=2 * case.scale))

    assert judge(LEAVES, random_case(rng(24), bK=np.zeros((3, 7))), unstable).status == "fail"


@pytest.mark.parametrize("expected", ["holds", "breaks", "within-rounding"])
def test_an_expectation_on_a_vacuous_equation_is_inconclusive(expected):
    finding = judge(LEAVES, random_case(rng(25), bK=np.zeros((3, 7)), expect={LEAVES.name: expected}), CORE)
    assert (finding.status, finding.expected, finding.observed) == ("inconclusive", expected, None)
    assert "vacuous" in finding.reason


# --- traits


def test_key_shifts_take_away_the_common_shift_and_say_what_was_measured():
    found = findings(shifted_case())
    for name, finding in found.items():
        if name in COMMON:
            assert finding.status == "skipped"
            assert finding.observed == "breaks"
            assert finding.deviation > 1e-3
            assert 'key_shifts takes away "common key shift"' in finding.reason
    assert found["per-key-shift-moves-score-gaps"].status == "pass"
    assert found["query-bias-moves-score-gaps"].status == "pass"
    assert found["scores-follow-the-formula"].status == "pass"


@pytest.mark.parametrize(
    ("moved", "words"), [(0.0, "which are equal"), (1e-14, "which agree within 1e-14"), (0.5, "which differ by 0.5")]
)
def test_what_is_not_claimed_says_how_it_turned_out(moved, words):
    """Whoever writes an expectation wants to know it."""

    def moving(case):
        trace = CORE(case)
        weights = trace.weights.copy()
        weights[0, 0, 0] += moved * ("key_shifts" in case.features)
        return Trace(trace.output, {**trace.inside, "weights": weights})

    finding = judge(LEAVES, article_case(features={"key_shifts": np.zeros((1, 3, 2))}), moving)
    assert finding.status == "skipped"
    assert words in finding.reason


def test_a_control_passes_where_the_claim_breaks_and_fails_where_it_holds():
    expect = {LEAVES.name: "breaks"}
    assert judge(LEAVES, shifted_case(expect=expect), CORE).status == "pass"
    finding = judge(LEAVES, random_case(rng(26), expect=expect), CORE)
    assert (finding.status, finding.observed) == ("fail", "holds")
    assert "expected to break" in finding.reason


def test_a_claim_that_is_expected_in_spite_of_a_feature_fails():
    finding = judge(LEAVES, shifted_case(expect={LEAVES.name: "holds"}), CORE)
    assert finding.status == "fail"
    assert finding.reason.endswith('key_shifts takes away "common key shift"')


def test_a_control_that_moves_by_less_than_a_million_tolerances_is_inconclusive():
    shifts = np.zeros((3, 5, 7))
    shifts[:, 0] = 1e-8
    case = random_case(rng(27), features={"key_shifts": shifts}, expect={LEAVES.name: "breaks"})
    finding = judge(LEAVES, case, CORE)
    assert (finding.status, finding.observed) == ("inconclusive", "breaks")


# --- large numbers


def test_large_numbers_are_inconclusive_unless_rounding_is_expected():
    case = random_case(rng(28), bK=1e10 * rng(28).normal(size=(3, 7)))
    finding = judge(LEAVES, case, CORE)
    assert (finding.status, finding.observed) == ("inconclusive", "within-rounding")
    assert "ill-conditioned" in finding.reason
    expected = case.but(expect={LEAVES.name: "within-rounding"})
    assert judge(LEAVES, expected, CORE).status == "pass"
    wrong = CORE.but(keys=lambda case: biased_keys(case) * (1 + 0.1 * case.bK.any()))
    assert judge(LEAVES, expected, wrong).status == "fail"


# --- implementations that misbehave


def raising(error):
    def attend(case):
        raise error

    return attend


@pytest.mark.parametrize(
    ("implementation", "status", "reason"),
    [
        (raising(RuntimeError("CUDA error")), "crashed", "RuntimeError: CUDA error"),
        (raising(AssertionError()), "crashed", "AssertionError"),
        (raising(NotImplementedError("no bias")), "skipped", "not offered: no bias"),
        (lambda case: CORE(case).output, "crashed", "returned ndarray, expected a Trace"),
        (lambda case: None, "crashed", "returned NoneType, expected a Trace"),
        (lambda case: Trace(CORE(case).output[..., :1]), "crashed", "output of shape (6, 4, 1), expected (6, 4, 2)"),
        (lambda case: Trace([1.0]), "crashed", "returned list as output"),
        (lambda case: Trace(CORE(case).output, {"weights": CORE(case).weights.swapaxes(1, 2)}), "crashed", "(6, 5, 4)"),
        (lambda case: Trace(CORE(case).output.astype(complex)), "crashed", "complex"),
        (lambda case: Trace(CORE(case).output.astype(object)), "crashed", "object"),
        (lambda case: Trace(CORE(case).output), "skipped", "does not show its weights"),
    ],
)
def test_an_implementation_that_misbehaves_is_a_finding_not_an_accident(implementation, status, reason):
    finding = judge(LEAVES, random_case(rng(29)), implementation)
    assert finding.status == status
    assert reason in finding.reason


def test_a_crash_under_one_condition_leaves_the_other_findings():
    def no_both(case):
        if case.bQ.any() and case.bK.any():
            raise ValueError("both")
        return CORE(case)

    found = findings(random_case(rng(30)), no_both)
    assert found["both-biases-weigh-like-query-bias"].status == "crashed"
    assert found["key-bias-leaves-weights"].status == "pass"


def test_writing_to_an_argument_is_caught():
    def centred_in_place(case):
        case.keys[...] -= case.keys.mean(axis=1, keepdims=True)
        return CORE(case)

    finding = judge(LEAVES, random_case(rng(31)), centred_in_place)
    assert finding.status == "crashed"
    assert finding.reason.startswith("ValueError: output array is read-only (test_engine.py:")


# --- blocks, stacks, processes


def test_a_case_in_blocks_has_the_findings_of_the_whole(monkeypatch):
    case = random_case(rng(32), Tq=11)
    whole = findings(case)
    parts = list(blocks(case, largest=15))
    assert [(block.first_head, block.first_row, block.q.shape[1]) for block in parts][:5] == [
        (0, 0, 3), (0, 3, 4), (0, 7, 4), (1, 0, 3), (1, 3, 4)
    ]  # fmt: skip
    monkeypatch.setattr(single, "blocks", lambda _case: iter(parts))
    for name, finding in findings(case).items():
        assert (finding.status, finding.observed) == (whole[name].status, whole[name].observed)
        if finding.deviation is not None:
            assert abs(finding.deviation - whole[name].deviation) < 1e-14


def test_a_fault_in_one_row_of_a_block_is_found_where_it_is(monkeypatch):
    case = random_case(rng(33), Tq=11)
    parts = list(blocks(case, largest=15))

    def last_row_wrong(case):
        trace = CORE(case)
        weights = trace.weights.copy()
        if case.bK.any() and case.first_head == 4 and case.first_row == 7:
            weights[0, 3, 2] += 1e-3
        return Trace(trace.output, {**trace.inside, "weights": weights})

    monkeypatch.setattr(single, "blocks", lambda _case: iter(parts))
    finding = judge(LEAVES, case, last_row_wrong)
    assert finding.status == "fail"
    assert (finding.worst.head, finding.worst.row, finding.worst.position) == (4, 10, 2)


def test_rows_that_differ_only_between_blocks_are_still_two_rows(monkeypatch):
    q = np.zeros((1, 8, 2))
    q[:, 4:] = [1.0, 0.0]
    case = article_case(q=q)
    parts = list(blocks(case, largest=12))
    assert len(parts) == 2
    monkeypatch.setattr(single, "blocks", lambda _case: iter(parts))
    tallied = judge(INVARIANTS["each-row-shifts-by-its-own-constant"], case, CORE)
    assert tallied.status == "pass"


def test_a_block_has_two_rows_at_least_where_the_case_has_them():
    """A claim about two rows has nothing to compare in one."""
    case = random_case(rng(35), Tq=11, Tk=9)
    assert {block.q.shape[1] for block in blocks(case, largest=9)} == {2, 3}
    alone = random_case(rng(36), Tq=1, Tk=9)
    assert {block.q.shape[1] for block in blocks(alone, largest=5)} == {1}


def test_large_arrays_are_summarised_as_the_whole_would_be():
    import hashlib

    case = random_case(rng(34), Tq=500, Tk=300, H=2, G=1)
    shown = run_case(case, CORE, [], TOLERANCE).conditions["qk"]
    whole = CORE(case)
    assert isinstance(shown["weights"], Summary)
    assert shown["weights"].shape == (2, 500, 300)
    assert shown["weights"].smallest == pytest.approx(whole.weights.min(), rel=1e-12)
    assert shown["weights"].largest == pytest.approx(whole.weights.max(), rel=1e-12)
    assert shown["weights"].mean == pytest.approx(1 / 300, rel=1e-12)
    assert np.allclose(shown["lse"], whole.lse, rtol=1e-13, atol=0)
    kept = run_case(case, CORE, [], TOLERANCE, largest=np.inf).conditions["qk"]["weights"]
    assert hashlib.sha256(kept.astype("<f8").tobytes()).hexdigest() == shown["weights"].sha256


def same(one, other):
    return one.case is other.case and one.findings == other.findings and all(
        np.array_equal(one.conditions[c][name], other.conditions[c][name], equal_nan=True)
        for c, name in itertools.product(CONDITIONS, ("scores", "weights", "output", "lse"))
    )  # fmt: skip


def test_cases_judged_together_have_the_findings_that_each_has_alone():
    draw = rng(35)
    cases = [random_case(draw) for _ in range(20)]
    cases += [random_case(draw, bK=1e9 * draw.normal(size=(3, 7))) for _ in range(5)]  # not plain
    cases += [random_case(draw, bK=np.zeros((3, 7))) for _ in range(3)]  # vacuous
    cases += [random_case(draw, Tk=9, values=None, bV=None) for _ in range(4)]  # another shape
    cases += [inert for _ in range(2) for inert in [random_case(draw, keys=np.ones((3, 5, 7)))]]
    cases += [random_case(draw, expect={LEAVES.name: "breaks"}), shifted_case()]
    cases = [cases[index] for index in draw.permutation(len(cases))]
    together = list(run(cases, CORE, INVARIANTS.values(), TOLERANCE))
    alone = [run_case(case, CORE, INVARIANTS.values(), TOLERANCE) for case in cases]
    assert all(same(*pair) for pair in zip(together, alone, strict=True))


def test_a_fault_is_never_judged_together_with_other_cases():
    assert CORE.independent_heads
    assert not CORE.but(softmax=softmax).independent_heads


def test_several_processes_find_the_same_in_the_same_order():
    draw = rng(36)
    cases = [random_case(draw, Tq=2 + index % 3) for index in range(600)]
    chosen = list(INVARIANTS.values())
    one, two = (list(run(cases, CORE, chosen, TOLERANCE, jobs=jobs)) for jobs in (1, 2))
    assert [report.findings for report in one] == [report.findings for report in two]
