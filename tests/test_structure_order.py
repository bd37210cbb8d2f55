"""Claims about what a row may know of keys and other rows: masks, causality, caches, and order."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from featured import completed, draw_cases, wild
from making import INVARIANTS, article_case, random_case, rng

from verify_attention import departures, resources, selection, structure
from verify_attention.agreement import agreement
from verify_attention.cases import load_cases
from verify_attention.engine import judge
from verify_attention.invariants import (
    future_keys_have_no_say,
    keys_permute_freely,
    masked_keys_have_no_say,
    one_pass_equals_step_by_step,
    query_rows_permute,
)
from verify_attention.model import Case, Implementation, Trace
from verify_attention.pipeline import CORE

NAMES = (
    "masked-keys-have-no-say",
    "future-keys-have-no-say",
    "one-pass-equals-step-by-step",
    "keys-permute-freely",
    "duplicated-keys-change-nothing",
    "query-rows-permute",
    "each-query-stands-alone",
)
STRUCTURE = load_cases([resources.folder("cases") / "structure"])
FAULTS = [(name, fault.mistake) for name in NAMES for fault in INVARIANTS[name].faults]


def fault(name: str, mistake: str) -> Implementation:
    return next(each.implementation for each in INVARIANTS[name].faults if each.mistake == mistake)


def output_of(implementation: Implementation) -> Implementation:
    """Return an implementation that shows nothing but its output."""
    return lambda case: Trace(implementation(case).output)


def featured(seed: int = 0, sizes: dict[str, Any] | None = None, **features: Any) -> Case:
    return completed(random_case(rng(seed), **(sizes or {})), features)


def expecting(name: str, seed: int = 0, **given: Any) -> Case:
    """Return a plain case that asks for a claim about structure."""
    return random_case(rng(seed), **given).but(expect={name: "holds"})


# Right code passes


@pytest.mark.parametrize("name", NAMES)
def test_the_core_passes_with_any_features(name: str) -> None:
    statuses = {judge(INVARIANTS[name], case, CORE).status for case in draw_cases(rng(30), 60)}
    assert statuses <= {"pass", "skipped"}
    assert "pass" in statuses


@pytest.mark.parametrize(
    ("alignment", "rows", "keys"),
    [("lower-right", 3, 6), ("lower-right", 5, 5), ("upper-left", 3, 6), ("upper-left", 5, 5), ("upper-left", 6, 3)],
)
def test_the_core_passes_where_it_is_causal(alignment: str, rows: int, keys: int) -> None:
    case = featured(31, {"Tq": rows, "Tk": keys}, rope={"base": 10.0}, alibi={}, causal=alignment, window=(3, None))
    findings = {name: judge(INVARIANTS[name], case, CORE) for name in NAMES}
    assert {finding.status for finding in findings.values()} <= {"pass", "skipped"}
    assert findings["future-keys-have-no-say"].status == "pass"
    assert (findings["one-pass-equals-step-by-step"].status == "pass") == (alignment == "lower-right")


@pytest.mark.parametrize("name", NAMES)
def test_the_core_is_never_wrong_with_numbers_of_any_size(name: str) -> None:
    for case in wild(rng(32), 80):
        assert judge(INVARIANTS[name], case, CORE).status in {"pass", "skipped", "inconclusive"}, case.features


@pytest.mark.parametrize("name", NAMES)
def test_code_that_shows_only_its_output_is_not_blamed(name: str) -> None:
    findings = [judge(INVARIANTS[name], case, output_of(CORE)) for case in STRUCTURE]
    assert {finding.status for finding in findings} == {"skipped", "pass"}
    assert not any("not shown" in (finding.reason or "") for finding in findings)  # its output is judged


# Wrong code does not pass


@pytest.mark.parametrize(("name", "mistake"), FAULTS)
def test_faults_are_caught_by_the_output_alone(name: str, mistake: str) -> None:
    wrong = output_of(fault(name, mistake))
    assert any(judge(INVARIANTS[name], case, wrong).status == "fail" for case in STRUCTURE)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("query-rows-permute", "the running maximum of a row is kept for the next"),
        ("each-query-stands-alone", "one maximum serves all rows of a head"),
    ],
)
def test_a_maximum_of_another_row_is_caught_where_rows_are_far_apart(name: str, mistake: str) -> None:
    case = expecting(name, 33, d_k=2, bQ=np.zeros((6, 2)), bK=np.zeros((3, 2)), scale=0.25)
    queries, keys = case.q.copy(), np.round(case.keys * 4) / 4
    keys[..., 0] = 50.0
    queries[:] = np.array([[64.0, 1.0], [-64.0, 0.5], [0.5, 2.0], [-64.0, -1.0]])
    case = case.but(q=queries, keys=keys)
    scores = CORE(case).scores
    assert scores[:, 0].min() > 790
    assert scores[:, 1].max() < -790
    assert judge(INVARIANTS[name], case, CORE).status == "pass"
    assert judge(INVARIANTS[name], case, fault(name, mistake)).status == "fail"


# Where a claim does not apply, it says why

REASONS: list[tuple[str, Callable[[], Case], str]] = [
    (name, lambda: random_case(rng()), "asked of cases with features")
    for name in ("masked-keys-have-no-say", "keys-permute-freely", "duplicated-keys-change-nothing")
] + [
    ("future-keys-have-no-say", lambda: featured(mask=np.ones((6, 4, 5), dtype=bool)), "the case is not causal"),
    (
        "future-keys-have-no-say",
        lambda: featured(sizes={"Tq": 1}, causal="lower-right"),
        "no row has a key behind it",
    ),
    ("one-pass-equals-step-by-step", lambda: featured(causal="upper-left"), "not causal from the lower right"),
    ("one-pass-equals-step-by-step", lambda: featured(sizes={"Tq": 1}, causal="lower-right"), "there is one query"),
    (
        "one-pass-equals-step-by-step",
        lambda: featured(causal="lower-right", normaliser={"kind": "top-k", "k": 3}),
        "more keys keep a weight than there are at the first step",
    ),
    ("keys-permute-freely", lambda: featured(sizes={"Tk": 1}, softcap=2.0), "there is one key"),
    (
        "keys-permute-freely",
        lambda: featured(normaliser={"kind": "top-k", "k": 2}, mask=np.ones((6, 4, 5), dtype=bool)).but(
            q=np.zeros((6, 4, 7)), bQ=np.zeros((6, 7))
        ),
        "which keys keep a weight is decided between scores that are equal",
    ),
    ("query-rows-permute", lambda: featured(sizes={"Tq": 1}, softcap=2.0), "there is one query"),
    ("each-query-stands-alone", lambda: featured(sizes={"Tq": 1}, softcap=2.0), "there is one query"),
    (
        "masked-keys-have-no-say",
        lambda: featured(normaliser={"kind": "top-k", "k": 5}),
        "more keys keep a weight than there are without one",
    ),
    (
        "masked-keys-have-no-say",
        lambda: featured(sizes={"Tq": 5}, mask=np.broadcast_to(np.eye(5, dtype=bool), (6, 5, 5)).copy()),
        "no key can be hidden without leaving a row with none",
    ),
    *(
        (name, lambda: featured(causal="lower-right", fill=-3.0), 'fill takes away "hidden keys have no weight"')
        for name in ("masked-keys-have-no-say", "future-keys-have-no-say", "one-pass-equals-step-by-step")
    ),
    *(
        ("duplicated-keys-change-nothing", lambda own=own: featured(**own), 'takes away "')
        for own in (
            {"sink": np.zeros(6)},
            {"softmax_plus_one": True},
            {"zero_key": True},
            {"normaliser": {"kind": "sigmoid"}},
            {"normaliser": {"kind": "sparsemax"}},
            {"normaliser": {"kind": "top-k", "k": 2}},
        )
    ),
]


@pytest.mark.parametrize(("name", "case", "words"), REASONS)
def test_it_is_skipped_with_words(name: str, case: Callable[[], Case], words: str) -> None:
    finding = judge(INVARIANTS[name], case(), CORE)
    assert finding.status == "skipped"
    assert words in (finding.reason or "")


@pytest.mark.parametrize("name", NAMES)
def test_a_large_case_is_left_out(name: str) -> None:
    case = random_case(rng(), H=2, G=1, Tq=512, Tk=513, d_k=2).but(features={"causal": "lower-right"})
    assert INVARIANTS[name].not_asked(case) == "the case is judged in blocks, and the claim is about all of it"


def test_what_takes_the_claim_about_pairs_away_makes_it_false_but_a_fill_does_not() -> None:
    """Beside a sink of 0 the LSE of one key of score 0 is log 2, and log 3 of two. Hidden keys are filled twice too."""
    zero = np.zeros((1, 1, 2))
    case = article_case(q=zero, keys=zero, bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)), values=np.ones((1, 1, 1)))
    finding = judge(INVARIANTS["duplicated-keys-change-nothing"], case.but(features={"sink": np.zeros(1)}), CORE)
    assert "0.405465108 against 0.693147181" in (finding.reason or "")  # log 3 − log 2, and log 2
    filled = featured(causal="lower-right", fill=-3.0)
    assert judge(INVARIANTS["duplicated-keys-change-nothing"], filled, CORE).status == "pass"


# Masks


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"rope": {"base": 10.0}},
        {"temperature": {"heads": np.arange(1.0, 7.0)}},
        {"softcap": 1e-3},
        {"key_shifts": np.ones((3, 5, 7))},
    ],
)
def test_the_product_of_a_loud_key_is_about_1e4_in_some_row_of_each_group(features: dict[str, Any]) -> None:
    """What acts on scores is left out: under a cap of 1e-3 a score of 1e4 would ask for a product of 1e11."""
    case = featured(34, **features).under("qk")
    loud = masked_keys_have_no_say.loud(case, 2)
    bare = loud.but(features={name: own for name, own in loud.features.items() if name in {"rope", "key_shifts"}})
    highest = np.abs(CORE(bare).scores[..., 2]).reshape(3, -1).max(axis=1)
    assert ((highest > 5e3) & (highest < 2e4)).all()
    assert (loud.values[:, 2] == 1e300).all()  # type: ignore[index]
    others = [0, 1, 3, 4]
    assert np.array_equal(loud.keys[:, others], case.keys[:, others])


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e200])
def test_a_loud_key_is_finite_whatever_the_queries(size: float) -> None:
    case = random_case(rng(35))
    case = case.but(q=case.q * size, bQ=case.bQ * size)
    with np.errstate(all="ignore"):
        assert np.isfinite(masked_keys_have_no_say.loud(case, 0).keys).all()


def test_the_key_that_is_hidden_is_one_that_every_row_can_do_without() -> None:
    flags = np.array([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 0]], dtype=bool)
    case = featured(mask=np.broadcast_to(flags, (6, 4, 5)).copy())
    assert masked_keys_have_no_say.spare_key(case) == 0  # the others see fewer rows
    flags = flags.copy()
    flags[3, 2] = False  # the last row has key 0 alone
    case = featured(mask=np.broadcast_to(flags, (6, 4, 5)).copy())
    assert masked_keys_have_no_say.spare_key(case) == 1


@pytest.mark.parametrize("place", [(0, 0), (5, 3), (2, 1)])
def test_a_hidden_key_with_a_little_weight_in_one_row_is_found_there(place: tuple[int, int]) -> None:
    case = featured(36, softcap=5.0)
    hidden = masked_keys_have_no_say.spare_key(case)

    def leaking(case: Case) -> Trace:
        trace = CORE(case)
        weights = trace.weights.copy()
        weights[place][hidden] += 1e-9 if "mask" in case.features else 0.0
        return Trace(trace.output, {**trace.inside, "weights": weights})

    finding = judge(INVARIANTS["masked-keys-have-no-say"], case, leaking)
    assert finding.status == "fail"
    assert finding.worst is not None
    assert (finding.worst.head, finding.worst.row, finding.worst.position) == (*place, hidden)


# Causality


def test_the_last_value_that_a_row_sees_moves_it_by_its_weight() -> None:
    """Equal keys: row 0 sees the first alone, row 1 both, each with half of the weight. 8 is added to 3 and to 5."""
    keys = np.ones((1, 2, 2))
    case = article_case(q=np.ones((1, 2, 2)), keys=keys, values=np.array([[[3.0], [5.0]]]))
    case = case.but(features={"causal": "lower-right"})
    future, own = future_keys_have_no_say.sides(case, CORE)
    assert future.right[0, :, 0].tolist() == [3.0, 4.0]
    assert np.allclose(own.left[0, :, 0], [11.0, 8.0], rtol=0, atol=1e-14)
    assert np.allclose(own.right[0, :, 0], [11.0, 8.0], rtol=0, atol=1e-14)
    assert future.counts is not None
    assert future.counts[0, :, 0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("alignment", "row", "step"),
    [
        *(("lower-right", row, 0) for row in range(4)),
        *(("lower-right", row, 1) for row in range(3)),  # no key stands behind the last row
        *(("upper-left", row, 0) for row in range(1, 4)),  # the first row sees none but its own
        *(("upper-left", row, 1) for row in range(4)),
    ],
)
def test_one_row_whose_view_is_off_by_one_is_enough(alignment: str, row: int, step: int) -> None:
    """Step 0 hides a row's own key, step 1 shows it the next."""
    case = featured(37, {"Tk": 6}, causal=alignment)
    place = int(case.aligned[row]) + step

    def wrong(case: Case, scores: np.ndarray) -> np.ndarray:
        changed = CORE.change(case, scores).copy()
        changed[3, row, place] = scores[3, row, place] if step else -np.inf
        return changed

    finding = judge(INVARIANTS["future-keys-have-no-say"], case, CORE.but(change=wrong))
    assert finding.status == "fail"
    assert finding.worst is not None
    assert (finding.worst.head, finding.worst.row) == (3, row)


# One pass, and steps


@pytest.mark.parametrize("count", range(2, 10))
def test_every_way_to_cut_queries_into_steps_takes_each_once(count: int) -> None:
    for edges in one_pass_equals_step_by_step.ways(count).values():
        assert (edges[0], edges[-1]) == (0, count)
        assert all(start < stop for start, stop in pairwise(edges))
        assert len(edges) > 2  # one step would be the pass itself


def test_a_chunk_is_at_fault_where_single_steps_are_not() -> None:
    """Without a cache the pass is causal, and a single query sees all there is: chunks behind a cache are wrong."""
    case = featured(38, {"Tq": 5, "Tk": 5}, causal="lower-right")
    wrong = fault("one-pass-equals-step-by-step", "causality is skipped where there is a cache")
    finding = judge(INVARIANTS["one-pass-equals-step-by-step"], case, output_of(wrong))
    assert finding.status == "fail"
    assert finding.worst is not None
    assert finding.worst.of in {"output of two queries at a time", "output of two halves"}


def test_a_step_is_posed_with_the_positions_that_it_had_in_the_pass() -> None:
    case = featured(39, {"Tq": 3, "Tk": 6}, rope={}, alibi={}, causal="lower-right", window=(2, None))
    asked: list[Case] = []

    def attend(posed: Case) -> Trace:
        asked.append(posed)
        return CORE(posed)

    list(one_pass_equals_step_by_step.sides(case, attend))
    single = [posed for posed in asked if posed.q.shape[1] == 1]
    assert {(int(each.aligned[0]), each.features["rope"]["q_positions"][0]) for each in single} == {
        (3, 3.0),
        (4, 4.0),
        (5, 5.0),
    }
    assert {each.keys.shape[1] for each in single} == {4, 5, 6}
    assert all(each.features["causal"] == "lower-right" and each.features["window"] == (2, None) for each in single)


# Order


@pytest.mark.parametrize("count", range(2, 20))
@pytest.mark.parametrize("module", [keys_permute_freely, query_rows_permute])
def test_the_other_order_is_another_order(module: Any, count: int) -> None:
    order = module.order(count).tolist()
    assert sorted(order) == list(range(count))
    assert order != list(range(count))


@pytest.mark.parametrize("count", range(3, 20))
def test_no_shift_puts_rows_in_that_order_and_another_key_is_the_last(count: int) -> None:
    assert set((np.diff(query_rows_permute.order(count)) % count).tolist()) != {1}
    assert keys_permute_freely.order(count)[-1] != count - 1


@pytest.mark.parametrize("row", [0, 1, 3])
@pytest.mark.parametrize("name", ["query-rows-permute", "each-query-stands-alone"])
def test_a_row_that_depends_on_its_place_is_named(name: str, row: int) -> None:
    case = featured(40, softcap=5.0)

    def wrong(case: Case) -> Trace:
        trace = CORE(case)
        output = trace.output.copy()
        if case.q.shape[1] > 1:
            output[2, row] += 1e-3
        return Trace(output, trace.inside)

    finding = judge(INVARIANTS[name], case, wrong)
    assert finding.status == "fail"
    assert finding.worst is not None
    assert finding.worst.head == 2
    assert name == "query-rows-permute" or finding.worst.row == row


def test_of_many_queries_some_are_asked_alone_the_first_and_the_last_among_them() -> None:
    assert structure.some_rows(5).tolist() == [0, 1, 2, 3, 4]
    many = structure.some_rows(1000).tolist()
    assert (len(many), many[0], many[-1]) == (32, 0, 999)
    case = featured(41, {"H": 2, "G": 1, "Tq": 40}, softcap=5.0)
    assert judge(INVARIANTS["each-query-stands-alone"], case, CORE).status == "pass"

    def wrong(case: Case) -> Trace:
        trace = CORE(case)
        output = trace.output.copy()
        output[:, -1] += 1e-3 if case.q.shape[1] > 1 else 0.0
        return Trace(output, trace.inside)

    finding = judge(INVARIANTS["each-query-stands-alone"], case, wrong)
    assert finding.worst is not None
    assert (finding.status, finding.worst.row) == ("fail", 39)


# The last key that a row sees


def test_the_last_key_that_a_row_sees_is_not_one_that_a_mask_hides() -> None:
    """Row 3 stands at key 4. The mask hides it from row 3 in all heads, and key 3 in all but head 2."""
    flags = np.ones((6, 4, 5), dtype=bool)
    flags[:, 3, 4] = flags[[0, 1, 3, 4, 5], 3, 3] = False
    case = featured(42, mask=flags, causal="lower-right")
    assert future_keys_have_no_say.last_seen(case).tolist() == [1, 2, 3, 3]
    _, own = future_keys_have_no_say.sides(case, CORE)
    moved = own.left - CORE(selection.with_values(case.under("qk"))).output
    assert (moved[2, 3] > 0.01).all()
    assert not moved[[0, 1, 3, 4, 5], 3].any()
    assert judge(INVARIANTS["future-keys-have-no-say"], case, CORE).status == "pass"


def test_a_row_whose_last_key_is_hidden_by_mistake_is_found_behind_a_mask_too() -> None:
    flags = np.ones((6, 4, 5), dtype=bool)
    flags[:, 3, 4] = False
    case = featured(43, mask=flags, causal="lower-right")

    def wrong(case: Case, scores: np.ndarray) -> np.ndarray:
        changed = CORE.change(case, scores).copy()
        changed[:, 3, 3] = -np.inf
        return changed

    finding = judge(INVARIANTS["future-keys-have-no-say"], case, output_of(CORE.but(change=wrong)))
    assert finding.status == "fail"
    assert finding.worst is not None
    assert finding.worst.row == 3


def test_a_future_and_a_last_key_without_weight_say_nothing() -> None:
    """Keys 1 to 4 score 2000 below the first, whatever is hidden: no other has any weight."""
    keys = np.zeros((3, 5, 7))
    keys[:, 0, 0] = 1000.0
    keys[:, 1:, 0] = -1000.0
    queries = np.zeros((6, 4, 7))
    queries[..., 0] = 1.0
    still = {"bQ": np.zeros((6, 7)), "bK": np.zeros((3, 7)), "scale": 1.0}
    case = featured(44, {"q": queries, "keys": keys, **still}, causal="lower-right")
    finding = judge(INVARIANTS["future-keys-have-no-say"], case, CORE)
    assert finding.status == "skipped"
    assert "vacuous" in (finding.reason or "")


@pytest.mark.parametrize("number", [0.5, 0.25, 0.75, 1.0, 0.0, -0.5])
def test_another_future_has_no_short_number_in_common_with_this(number: float) -> None:
    case = random_case(rng(45))
    case = case.but(keys=np.full_like(case.keys, number), values=np.full_like(case.values, number))
    other = future_keys_have_no_say.with_another_future(case, 1)
    assert (other.keys[:, 2:] != number).all()
    assert other.values is not None
    assert (other.values[:, 2:] != number).all()
    assert (other.keys[:, :2] == number).all()


def test_few_changed_cases_are_held_at_a_time() -> None:
    case = featured(46, {"H": 2, "G": 1, "Tq": 30, "Tk": 30}, causal="lower-right")
    posed: list[Any] = []

    def attend(one: Case) -> Trace:
        posed.append(weakref.ref(one))
        return CORE(one)

    for _ in future_keys_have_no_say.sides(case, attend):
        assert sum(one() is not None for one in posed) <= 4
    assert len(posed) > 60


def test_code_that_takes_the_mean_of_all_keys_off_is_not_blamed_for_a_loud_key_under_a_cap() -> None:
    """A cap of 0.001 leaves no key a score of 1e4; one as loud as that before the cap may be hidden."""
    name = "masked-keys-have-no-say"
    case = featured(47, softcap=1e-3, mask=np.ones((6, 4, 5), dtype=bool)).but(bQ=np.zeros((6, 7)))

    def centred(case: Case) -> Trace:
        mean = case.keys.mean(axis=1, keepdims=True)
        keys = np.einsum("hid,hd->hi", CORE.queries(case), (mean[:, 0])[case.kv_head])[..., None] * case.scale

        def scores(case: Case, queries: np.ndarray, _keys: np.ndarray) -> np.ndarray:
            less = CORE.keys(case) - mean
            return CORE.scores(case, queries, less) + keys

        return CORE.but(scores=scores)(case)

    finding = judge(INVARIANTS[name], case, centred)
    assert finding.status == "pass", finding


def test_a_row_of_one_visible_key_tells_something_where_the_others_are_filled() -> None:
    case = random_case(rng(77), Tq=3, Tk=4).but(features={"causal": "upper-left"})
    assert departures.telling(case)[0, :, 0].tolist() == [False, True, True]
    assert departures.telling(case.but(features={"causal": "upper-left", "fill": -5.0})) is None


def test_numbers_of_one_head_are_no_limit_for_another() -> None:
    """Rounding may do much where queries are huge, in that head alone."""
    case = random_case(rng(78), H=2, G=1, Tq=3, Tk=5)
    queries = case.q * np.array([1e9, 1.0])[:, None, None]

    def wrong_far_out(case: Case) -> Trace:
        trace = CORE(case)
        far = np.abs(case.features["score_bias"]).max() >= 700
        weights = trace.weights + np.array([0.0, 1e-6])[:, None, None] * far
        return Trace(weights if case.values is None else trace.output, {**trace.inside, "weights": weights})

    claim = "row-constant-score-bias-changes-nothing"
    given = case.but(q=queries, features={"score_bias": np.zeros(case.scores_shape)})
    assert judge(INVARIANTS[claim], given, CORE).status in {"pass", "inconclusive"}
    finding = judge(INVARIANTS[claim], given, wrong_far_out)
    assert finding.status == "fail"
    assert finding.worst is not None
    assert finding.worst.head == 1


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e5, 1e12, 1e300])
def test_values_of_any_size_have_a_future_that_has_no_say(size: float) -> None:
    case = random_case(rng(79), Tq=3, Tk=4).but(features={"causal": "lower-right"})
    given = case.but(values=case.values * size, bV=None)
    assert judge(INVARIANTS["future-keys-have-no-say"], given, CORE).status == "pass"
    finding = judge(INVARIANTS["future-keys-have-no-say"], given, future_keys_have_no_say.declared("upper-left"))
    assert finding.status == "fail"


def test_the_limit_of_what_is_posed_far_off_ends_at_a_millionth() -> None:
    """Beyond, nothing can be told, and the finding is inconclusive."""
    case = random_case(rng(82), H=2, G=1, Tq=3, Tk=5).but(features={"score_bias": np.zeros((2, 3, 5))})
    loud = case.but(q=case.q * 1e12)
    parts = list(agreement(loud, loud, CORE, parts=("weights",), far=True))
    assert np.max(parts[0].limit) == 1e-6
    assert np.max(parts[0].rounding) > 1e-6
    quiet = list(agreement(case, case, CORE, parts=("weights",), far=True))
    assert np.min(quiet[0].limit) == 1e-12
