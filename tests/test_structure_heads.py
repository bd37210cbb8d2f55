"""Claims about heads, scales, score biases, rotation, caps, sinks and shards: what they ask, catch and leave alone."""

import math

import numpy as np
import pytest
from featured import completed, draw_cases, with_features
from making import INVARIANTS, article_case, random_case, rng
from slow_route import slow_attention

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.engine import judge
from verify_attention.invariants import shards_merge_by_lse
from verify_attention.model import Trace
from verify_attention.pipeline import CORE, softmax

# Features, beside which each claim is really checked: what it is about, and more of what it says it holds beside.
FITTING = {
    "grouped-heads-equal-repeated-heads": [["mask"], ["qk_norm", "appended_key"], ["rope", "sink"], ["key_shifts"]],
    "heads-do-not-talk": [["mask"], ["alibi", "sink"], ["qk_norm", "temperature"], ["rope", "appended_key"]],
    "score-bias-moves-log-odds": [["score_bias"], ["alibi", "softcap"], ["mask", "sink"], ["temperature", "causal"]],
    "row-constant-score-bias-changes-nothing": [["softcap"], ["score_bias", "mask"], ["alibi"], ["qk_norm", "window"]],
    "scale-folds-into-queries": [["rope"], ["softcap", "causal"], ["appended_key", "score_bias"], ["zero_key"]],
    "padding-the-width-changes-nothing": [["mask"], ["rope"], ["appended_key", "key_shifts"], ["softmax_plus_one"]],
    "rotation-depends-on-distance": [
        ["rope"],
        ["rope", "causal"],
        ["rope", "sink", "softcap"],
        ["rope", "appended_key"],
    ],
    "softcap-bounds-scores": [
        ["softcap"],
        ["softcap", "mask"],
        ["softcap", "temperature", "alibi"],
        ["softcap", "rope"],
    ],
    "sink-leaves-the-predicted-share": [["sink"], ["softmax_plus_one", "mask"], ["appended_key"], ["zero_key", "sink"]],
    "shards-merge-by-lse": [["causal"], ["mask"], ["rope", "score_bias"], ["alibi", "softcap", "qk_norm"]],
}
MINE = [INVARIANTS[name] for name in FITTING]
SHIPPED = load_cases([resources.folder("cases") / "structure"])

each = pytest.mark.parametrize("invariant", MINE, ids=list(FITTING))


def posed(name, case, implementation=CORE):
    """Return the cases that a claim asks about, and what is found."""
    asked = []

    def attend(one):
        asked.append(one)
        return implementation(one)

    finding = judge(INVARIANTS[name], case, attend)
    return [one for one in asked if one.condition is None], finding


def status(name, case, implementation):
    return judge(INVARIANTS[name], case, implementation).status


def with_parameters(**features):
    """Return the article's example without biases, with features."""
    case = article_case(bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)))
    return completed(case, features)


# Right code passes


@pytest.mark.parametrize(("name", "chosen"), [(name, chosen) for name, all_of in FITTING.items() for chosen in all_of])
def test_the_core_passes_beside_features_and_the_claim_was_checked(name, chosen):
    draw, checked = rng(1), 0
    for _ in range(40):
        case = with_features(draw, chosen)
        if case is not None:
            finding = judge(INVARIANTS[name], case, CORE)
            assert finding.status in {"pass", "skipped"}, finding
            checked += finding.checked
    assert checked >= 3


@pytest.mark.thorough
@pytest.mark.parametrize("attend", [CORE, slow_attention], ids=["core", "slow"])
def test_right_code_is_not_blamed_on_random_cases(attend):
    for case in draw_cases(rng(2), 60):
        for invariant in MINE:
            finding = judge(invariant, case, attend)
            assert finding.status in {"pass", "skipped"}, finding


def test_right_code_that_shows_only_its_output_is_not_blamed():
    cases = [*SHIPPED, *draw_cases(rng(3), 40)]
    for case in cases:
        for invariant in MINE:
            finding = judge(invariant, case, lambda one: Trace(slow_attention(one).output))
            assert finding.status in {"pass", "skipped"}, finding


@each
def test_the_core_passes_every_shipped_case(invariant):
    findings = [judge(invariant, case, CORE) for case in SHIPPED]
    assert {finding.status for finding in findings} <= {"pass", "skipped"}
    assert sum(finding.checked for finding in findings) >= 2


# Wrong code does not pass


@pytest.mark.parametrize(
    ("invariant", "fault"),
    [pytest.param(one, fault, id=f"{one.name}: {fault.mistake}") for one in MINE for fault in one.faults],
)
def test_every_fault_is_caught_on_a_shipped_case(invariant, fault):
    assert len(invariant.faults) >= 2
    assert any(judge(invariant, case, fault.implementation).status == "fail" for case in SHIPPED)


HIDDEN_FROM_OUTPUT = {"softcap-bounds-scores", "shards-merge-by-lse"}  # they speak of scores and LSE


@pytest.mark.parametrize(
    ("invariant", "fault"),
    [
        pytest.param(one, fault, id=f"{one.name}: {fault.mistake}")
        for one in MINE
        if one.name not in HIDDEN_FROM_OUTPUT
        for fault in one.faults
    ],
)
def test_every_fault_is_caught_by_the_output_alone(invariant, fault):
    def shows_its_output(case):
        return Trace(fault.implementation(case).output)

    assert any(judge(invariant, case, shows_its_output).status == "fail" for case in SHIPPED)


def test_the_output_alone_is_held_to_nothing_about_scores_and_lse():
    for name in HIDDEN_FROM_OUTPUT:
        for case in SHIPPED:
            assert judge(INVARIANTS[name], case, lambda one: Trace(CORE(one).output)).status == "skipped"


# Where a claim does not apply, it says why


OF_PLAIN_CASES = {"grouped-heads-equal-repeated-heads"}  # no claim about biases says as much


@pytest.mark.parametrize("name", [name for name in FITTING if name not in OF_PLAIN_CASES])
def test_a_plain_case_is_not_asked_unless_it_expects_it(name):
    finding = judge(INVARIANTS[name], random_case(rng(4)), CORE)
    assert (finding.status, finding.observed) == ("skipped", None)
    assert finding.reason


@pytest.mark.parametrize("name", OF_PLAIN_CASES)
def test_every_case_is_asked_about_shared_heads(name):
    finding = judge(INVARIANTS[name], random_case(rng(4)), CORE)
    assert (finding.status, finding.checked) == ("pass", True)


@pytest.mark.parametrize(
    "name",
    [name for name in FITTING if not name.startswith(("rotation", "softcap", "sink"))],
)
def test_a_plain_case_that_expects_it_is_asked(name):
    finding = judge(INVARIANTS[name], random_case(rng(5), expect={name: "holds"}), CORE)
    assert (finding.status, finding.checked) == ("pass", True)


@pytest.mark.parametrize(
    ("name", "chosen", "said"),
    [
        ("rotation-depends-on-distance", ["sink"], "no rope"),
        ("softcap-bounds-scores", ["sink"], "no softcap"),
        ("sink-leaves-the-predicted-share", ["causal"], "no sink"),
        ("scale-folds-into-queries", ["qk_norm"], "a norm undoes"),
        ("shards-merge-by-lse", ["normaliser"], "has no LSE"),
        ("shards-merge-by-lse", ["sink"], 'takes away "rows sum to one"'),
        ("row-constant-score-bias-changes-nothing", ["sink"], 'takes away "shift-invariant softmax"'),
        ("score-bias-moves-log-odds", ["normaliser"], 'takes away "exponential weights"'),
    ],
)
def test_what_a_feature_excludes_is_said(name, chosen, said):
    case = next(case for case in (with_features(rng(seed), chosen) for seed in range(9)) if case is not None)
    finding = judge(INVARIANTS[name], case, CORE)
    assert finding.status == "skipped"
    assert said in finding.reason


@pytest.mark.parametrize(
    ("name", "features", "said"),
    [
        ("padding-the-width-changes-nothing", {"qk_norm": {"kind": "rms"}}, "depends on the width"),
        ("padding-the-width-changes-nothing", {"qk_norm": {"kind": "layer"}}, "depends on the width"),
        ("rotation-depends-on-distance", {"rope": {}, "qk_norm": {"kind": "l2", "rotation": "before"}}, "norm follows"),
        ("grouped-heads-equal-repeated-heads", {"sink": 0.0}, "a key-value head of its own"),
        ("heads-do-not-talk", {"sink": 0.0}, "one head"),
        ("score-bias-moves-log-odds", {"mask": np.eye(3, dtype=bool)[None, :1]}, "no row sees two keys"),
        ("row-constant-score-bias-changes-nothing", {"mask": np.eye(3, dtype=bool)[None, :1]}, "one key"),
        ("shards-merge-by-lse", {"mask": np.eye(3, dtype=bool)[None, :1]}, "no cut leaves"),
    ],
)
def test_what_a_case_lacks_is_said(name, features, said):
    finding = judge(INVARIANTS[name], with_parameters(**features), CORE)
    assert (finding.status, finding.observed) == ("skipped", None)
    assert said in finding.reason


def test_l2_may_be_padded_and_a_low_cap_may_be_scaled():
    draw = rng(6)
    narrow = completed(random_case(draw), {"qk_norm": {"kind": "l2"}})
    assert judge(INVARIANTS["padding-the-width-changes-nothing"], narrow, CORE).checked
    assert judge(INVARIANTS["scale-folds-into-queries"], completed(random_case(draw), {"softcap": 1.0}), CORE).checked


def test_a_case_of_many_blocks_is_left_out():
    case = completed(random_case(rng(7), H=2, G=1, Tq=520, Tk=520, d_k=2, d_v=1), {"causal": True})
    for name in ("heads-do-not-talk", "shards-merge-by-lse", "scale-folds-into-queries"):
        finding = judge(INVARIANTS[name], case, CORE)
        assert (finding.status, finding.observed) == ("skipped", None)
        assert "in blocks" in finding.reason


def test_equations_that_say_nothing_are_vacuous():
    asleep = random_case(rng(8), q=np.zeros((6, 4, 7)), bQ=np.zeros((6, 7)))
    assert "vacuous" in judge(INVARIANTS["scale-folds-into-queries"], completed(asleep, {"causal": True}), CORE).reason
    assert "vacuous" in judge(INVARIANTS["rotation-depends-on-distance"], completed(asleep, {"rope": {}}), CORE).reason
    level = {"score_bias": np.full((6, 4, 5), 2.0)}
    assert (
        "vacuous" in judge(INVARIANTS["score-bias-moves-log-odds"], completed(random_case(rng(8)), level), CORE).reason
    )
    high = with_parameters(softcap=1e9)
    assert "vacuous" in judge(INVARIANTS["softcap-bounds-scores"], high, CORE).reason
    deep = with_parameters(sink=np.array([-100.0]))
    assert "vacuous" in judge(INVARIANTS["sink-leaves-the-predicted-share"], deep, CORE).reason


# What is asked


def test_grouped_heads_are_posed_with_a_copy_for_each():
    case = completed(random_case(rng(9)), {"appended_key": {"key": np.arange(21.0).reshape(3, 7)}})
    (repeated,), _ = posed("grouped-heads-equal-repeated-heads", case)
    order = [0, 0, 1, 1, 2, 2]
    for name in ("keys", "values", "bK", "bV"):
        assert np.array_equal(getattr(repeated, name), getattr(case, name)[order])
    assert repeated.features["appended_key"]["key"][:, 0].tolist() == [0, 0, 7, 7, 14, 14]


def test_each_head_is_posed_alone_and_head_0_in_other_words():
    case = completed(random_case(rng(10)), {"sink": np.arange(6.0)})
    cases, _ = posed("heads-do-not-talk", case)
    with_values = [one for one in cases if one.values is not None]
    alone, (queries, keys) = with_values[:6], with_values[6:8]
    assert len(cases) == 8 + 9  # the same once more, and the whole, with the identity for values
    assert [one.features["sink"].tolist() for one in alone] == [[0], [1], [2], [3], [4], [5]]
    assert np.array_equal(np.concatenate([one.keys for one in alone]), case.keys[[0, 0, 1, 1, 2, 2]])
    assert (queries.q[0] != case.q[0]).all()
    assert (queries.bQ[0] != case.bQ[0]).all()
    assert np.array_equal(queries.q[1:], case.q[1:])
    for name in ("keys", "values", "bK", "bV"):
        assert (getattr(keys, name)[0] != getattr(case, name)[0]).any()
        assert np.array_equal(getattr(keys, name)[1:], getattr(case, name)[1:])


def test_the_scale_moves_into_the_queries_by_four_and_whole():
    case = completed(article_case(scale=0.5, q=np.array([[[1.0, -3.0]]])), {"sink": np.zeros(1)})
    (quarter, one), _ = posed("scale-folds-into-queries", case)
    assert (quarter.scale, quarter.q.tolist(), quarter.bQ.tolist()) == (0.125, [[[4, -12]]], [[0, 4]])
    assert (one.scale, one.q.tolist(), one.bQ.tolist()) == (1, [[[0.5, -1.5]]], [[0, 0.5]])


def test_a_scale_too_far_from_1_is_said():
    for scale, size in ((1e-200, 1.0), (0.5, 1e308)):
        case = completed(article_case(scale=scale, q=np.array([[[size, 0]]])), {"sink": np.zeros(1)})
        assert "too far from 1" in judge(INVARIANTS["scale-folds-into-queries"], case, CORE).reason


def test_the_width_is_padded_everywhere_and_rotary_dims_stay():
    given = {"rope": {"rotary_dims": 4}, "qk_norm": {"kind": "l2"}, "key_shifts": np.ones((3, 5, 7))}
    case = completed(random_case(rng(11)), given)
    (padded,), _ = posed("padding-the-width-changes-nothing", case)
    arrays = [padded.q, padded.keys, padded.bQ, padded.bK, padded.features["key_shifts"]]
    arrays += [padded.features["qk_norm"]["q_gain"], padded.features["qk_norm"]["k_gain"]]
    assert all(array.shape[-1] == 10 and not array[..., 7:].any() for array in arrays)
    assert (padded.scale, padded.features["rope"]["rotary_dims"]) == (case.scale, 4)


def test_positions_move_by_5_and_by_1000_and_biases_after_the_turn_stay_away():
    case = completed(random_case(rng(12)), {"rope": {}})
    cases, _ = posed("rotation-depends-on-distance", case)
    assert {one.features["rope"]["q_positions"][0] for one in cases} == {1 + 5, 1 + 1000}
    assert {one.features["rope"]["k_positions"][0] for one in cases} == {5, 1000}
    assert {bool(one.bQ.any()) for one in cases} == {True, False}
    cases, finding = posed("rotation-depends-on-distance", completed(random_case(rng(12)), {"rope": {"bias": "after"}}))
    assert finding.status == "pass"
    assert not any(one.bQ.any() or one.bK.any() for one in cases)


def test_rows_are_shifted_far_both_ways():
    cases, _ = posed("row-constant-score-bias-changes-nothing", completed(random_case(rng(13)), {"softcap": 5.0}))
    shifts = [one.features["score_bias"] for one in cases if "score_bias" in one.features]
    for shift in shifts:
        assert np.ptp(shift, axis=-1).max() == 0
        assert len(set(shift[..., 0].ravel().tolist())) > 6
    assert any(shift.min() < -745 and shift.max() > 715 for shift in shifts)  # exp(-745.2) is 0, exp(709.8) is infinite


def test_numbers_added_to_scores_differ_by_head_row_and_key():
    cases, _ = posed("score-bias-moves-log-odds", completed(random_case(rng(14)), {"causal": "lower-right"}))
    bias = next(one.features["score_bias"] for one in cases if "score_bias" in one.features)
    assert all((np.diff(bias, axis=axis) != 0).all() for axis in range(3))


# By hand


def answering(weights, scores=None, lse=None):
    """Return code that answers numbers by what is in the case."""

    def attend(case):
        shown = {"weights": weights(case), "scores": scores and scores(case), "lse": lse and lse(case)}
        inside = {name: np.array(array, dtype=float) for name, array in shown.items() if array is not None}
        return Trace(inside["weights"], inside)

    return attend


@pytest.mark.parametrize(("third", "expected"), [(1 / 3, "pass"), (0.3334, "fail")])
def test_log_2_more_doubles_a_weight(third, expected):
    two = article_case(q=np.zeros((1, 1, 2)), keys=np.ones((1, 2, 2)), bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)))
    case = two.but(features={"score_bias": np.array([[[0.0, math.log(2)]]])})
    attend = answering(lambda one: [[[third, 1 - third]]] if "score_bias" in one.features else [[[0.5, 0.5]]])
    assert status("score-bias-moves-log-odds", case, attend) == expected


@pytest.mark.parametrize(("share", "expected"), [(1 / 3, "pass"), (0.5, "fail"), (0.3333, "fail")])
def test_a_sink_of_0_takes_a_third_beside_two_scores_of_0(share, expected):
    """By hand: scores 0, 0 and a sink of 0 leave 1/3 to each key."""
    two = article_case(q=np.zeros((1, 1, 2)), keys=np.ones((1, 2, 2)), bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)))
    attend = answering(lambda _: [[[share, share]]], lambda _: [[[0, 0]]], lambda _: [[math.log(3)]])
    for features in ({"sink": np.zeros(1)}, {"softmax_plus_one": True}, {"zero_key": True}):
        assert status("sink-leaves-the-predicted-share", completed(two, features), attend) == expected


def test_the_lse_counts_the_sink():
    two = article_case(q=np.zeros((1, 1, 2)), keys=np.ones((1, 2, 2)), bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)))
    attend = answering(lambda _: [[[1 / 3, 1 / 3]]], lambda _: [[[0, 0]]], lambda _: [[math.log(2)]])
    assert status("sink-leaves-the-predicted-share", completed(two, {"sink": np.zeros(1)}), attend) == "fail"


@pytest.mark.parametrize("name", ["weights-follow-scores-and-lse", "weight-ratios-follow-score-gaps"])
def test_a_row_of_which_a_sink_takes_all_has_no_logarithms_to_compare(name):
    """Scores are of the size of 1, and exp(−800) is below the smallest float; other heads' sinks take a share only."""
    case = completed(random_case(rng(18), H=3, G=1), {"sink": np.array([800.0, 0.5, -0.5])})
    finding = judge(INVARIANTS[name], case, CORE)
    assert (finding.status, finding.checked) == ("pass", True)


@pytest.mark.parametrize(("capped", "expected"), [(0.7615941559557649, "pass"), (0.76159416, "fail"), (1.0, "fail")])
def test_a_score_of_1_is_tanh_1_under_a_cap_of_1(capped, expected):
    case = with_parameters(softcap=1.0).but(scale=1.0)
    attend = answering(
        lambda _: [[[0.5, 0.3, 0.2]]],
        lambda one: [[[capped, 0, -capped]]] if "softcap" in one.features else [[[1, 0, -1]]],
    )
    assert status("softcap-bounds-scores", case, attend) == expected


@pytest.mark.parametrize(("edge", "expected"), [(math.tanh(3.0), "pass"), (1.5, "fail")])
def test_a_score_beyond_the_cap_is_caught_where_there_is_no_way_back(edge, expected):
    """Scores of 3 and −3 under a cap of 1 are bent to 0.995, too near for atanh."""
    case = with_parameters(softcap=1.0).but(scale=3.0)
    attend = answering(
        lambda _: [[[0.5, 0.3, 0.2]]],
        lambda one: [[[edge, 0, -edge]]] if "softcap" in one.features else [[[3, 0, -3]]],
    )
    assert status("softcap-bounds-scores", case, attend) == expected


@pytest.mark.parametrize(("sign", "expected"), [(-1, "pass"), (1, "fail")])
def test_the_first_pair_turns_by_one_radian_a_step(sign, expected):
    """q = k = (1, 0): the score is the cosine of the distance, and not of the sum."""
    case = completed(
        article_case(bQ=np.zeros((1, 2)), bK=np.zeros((1, 2)), keys=np.tile([1.0, 0], (1, 3, 1))), {"rope": {}}
    )

    def scores(one):
        own = one.features["rope"]
        return np.cos(own["q_positions"][:, None] + sign * own["k_positions"])[None] * one.scale

    attend = answering(lambda one: softmax(scores(one))[0], scores)
    assert status("rotation-depends-on-distance", case, attend) == expected


@pytest.mark.parametrize(("lse_of_two", "expected"), [(math.log(2), "pass"), (0.0, "fail"), (1.0, "fail")])
def test_one_value_and_two_merge_to_the_mean_of_three(lse_of_two, expected):
    """Values 1, 2, 6 at equal scores: their mean is 3, of (1) and of (2, 6) with twice the weight."""
    values = np.array([[[1.0], [2.0], [6.0]]])
    case = completed(article_case(q=np.zeros((1, 1, 2)), bQ=np.zeros((1, 2)), values=values), {"causal": "lower-right"})
    lse = {3: math.log(3), 2: lse_of_two, 1: 0.0}

    def attend(one):
        count = one.keys.shape[1]
        inside = {"weights": np.full((1, 1, count), 1 / count), "lse": np.array([[lse[count]]])}
        return Trace(np.array([[[one.values.mean()]]]), inside)

    assert status("shards-merge-by-lse", case, attend) == expected


# Shards


def test_rows_that_see_no_key_on_one_side_do_not_count():
    case = completed(random_case(rng(15), Tq=5, Tk=5), {"causal": "upper-left"})
    cut, rows = shards_merge_by_lse._cut(case)
    assert (cut, rows.tolist()) == (1, [False, True, True, True, True])
    cases, finding = posed("shards-merge-by-lse", case)
    assert [one.scores_shape for one in cases] == [(6, 4, 1), (6, 4, 4)]
    assert (finding.status, finding.checked) == ("pass", True)


@pytest.mark.parametrize(("row", "expected"), [(0, "pass"), (1, "fail"), (4, "fail")])
def test_a_mistake_is_caught_in_its_row_where_that_counts(row, expected):
    case = completed(random_case(rng(16), Tq=5, Tk=5), {"causal": "upper-left"})

    def attend(one):
        trace = CORE(one)
        if one.condition is None:
            return trace
        output = trace.output.copy()
        output[2, row, 1] += 1e-6
        return Trace(output, trace.inside)

    finding = judge(INVARIANTS["shards-merge-by-lse"], case, attend)
    assert finding.status == expected
    if expected == "fail":
        assert (finding.worst.of, finding.worst.head, finding.worst.row) == ("output", 2, row)


@pytest.mark.parametrize("features", [{}, {"window": (11, 11)}], ids=["no mask", "a mask that hides nothing"])
@pytest.mark.parametrize(("count", "third"), [(2, 1), (5, 1), (6, 2), (7, 2), (8, 2), (9, 3)])
def test_where_all_is_seen_the_cut_is_at_a_third_so_that_the_mean_shows(count, third, features):
    case = random_case(rng(17), H=4, G=1, Tq=3, Tk=count, d_k=10, d_v=11)
    cut, counted = shards_merge_by_lse._cut(completed(case, features))
    assert cut == third
    assert counted.tolist() == [True, True, True]


def test_heads_near_both_800s_merge_and_do_not_talk():
    (case,) = (case for case in SHIPPED if case.id.endswith("heads-near-800-and-minus-800"))
    peaks = CORE(case).scores.max(axis=-1)
    assert peaks.max() > 790
    assert peaks.min() < -790
    for name in ("shards-merge-by-lse", "heads-do-not-talk", "scale-folds-into-queries"):
        assert judge(INVARIANTS[name], case, CORE).status == "pass"


# Equations that cannot fail here, and what once went wrong


def test_key_value_heads_that_are_all_equal_say_nothing_about_their_order():
    name = "grouped-heads-equal-repeated-heads"
    case = random_case(rng(20))
    alike = {part: np.repeat(getattr(case, part)[:1], 3, axis=0) for part in ("keys", "values", "bK", "bV")}
    one = random_case(rng(20), G=1)
    for same in (case.but(**alike), one, completed(case.but(**alike), {"softcap": 2.0}), completed(one, {"sink": 0.0})):
        finding = judge(INVARIANTS[name], same, CORE)
        assert (finding.status, finding.reason) == ("skipped", "vacuous: all key-value heads are equal")
    gains = {"kind": "l2", "k_gain": np.arange(1.0, 22.0).reshape(3, 7)}
    assert judge(INVARIANTS[name], completed(case.but(**alike), {"qk_norm": gains}), CORE).checked


def test_key_value_heads_that_differ_where_nobody_looks_say_nothing_about_their_order():
    """Values are equal and queries 0, so that only keys differ, which no score tells."""
    zero = {"q": np.zeros((6, 4, 7)), "bQ": np.zeros((6, 7)), "values": None, "bV": None}
    finding = judge(
        INVARIANTS["grouped-heads-equal-repeated-heads"],
        completed(random_case(rng(21), **zero), {"softcap": 2.0}),
        CORE,
    )
    assert (finding.status, finding.reason) == ("skipped", "vacuous: all key-value heads are equal")


@pytest.mark.parametrize("whole", [True, False], ids=["shows everything", "shows its output"])
def test_equal_values_do_not_hide_that_heads_talk(whole):
    """Where all values are 1, whatever the weights are, the output is 1."""
    name = "heads-do-not-talk"
    case = random_case(rng(22), G=1, values=np.ones((1, 5, 2)), bV=np.zeros((1, 2)))
    case = completed(case, {"temperature": {"heads": np.array([0.5, 1, 2, 3, 4, 5])}})
    averaged = next(each for each in INVARIANTS[name].faults if "averaged" in each.mistake).implementation

    def attend(one):
        return averaged(one) if whole else Trace(averaged(one).output)

    assert np.ptp(averaged(case).output) < 1e-12
    assert status(name, case, attend) == "fail"
    assert status(name, case, CORE) == "pass"


def test_heads_that_are_all_equal_and_see_one_key_say_nothing_about_each_other():
    alone = random_case(rng(23), G=1, Tk=1, values=np.ones((1, 1, 2)), bV=np.zeros((1, 2)))
    finding = judge(INVARIANTS["heads-do-not-talk"], completed(alone, {"softcap": 2.0}), CORE)
    assert finding.status == "skipped"
    assert "vacuous" in finding.reason


@pytest.mark.parametrize("number", [0.5, 0.25, 1.0, 0.0])
def test_a_change_in_head_0_changes_short_numbers(number):
    case = random_case(rng(24))
    case = case.but(**{part: np.full_like(getattr(case, part), number) for part in ("q", "keys", "values", "bV", "bK")})
    cases, _ = posed("heads-do-not-talk", completed(case, {"softcap": 2.0}))
    queries, keys = [one for one in cases if one.values is not None][6:8]
    assert (queries.q[0] != number).all()
    assert all((getattr(keys, part)[0] != number).all() for part in ("keys", "values", "bV", "bK"))


def test_a_width_says_nothing_where_products_are_all_equal():
    name = "padding-the-width-changes-nothing"
    asleep = {"q": np.zeros((6, 4, 7)), "bQ": np.zeros((6, 7))}
    finding = judge(INVARIANTS[name], completed(random_case(rng(25), **asleep), {"causal": "lower-right"}), CORE)
    assert finding.status == "skipped"
    assert "vacuous: the products of each row are all equal" in finding.reason
    equal = random_case(rng(25), keys=np.ones((3, 5, 7)))
    assert "vacuous" in judge(INVARIANTS[name], completed(equal, {"softcap": 2.0}), CORE).reason
    assert judge(INVARIANTS[name], completed(equal, {"sink": 0.0}), CORE).checked  # a sink does not move along


@pytest.mark.parametrize(("scale", "count"), [(1.0, 1), (4.0, 1), (0.5, 2)])
def test_a_scale_that_is_1_already_is_not_asked_about_twice(scale, count):
    cases, finding = posed("scale-folds-into-queries", completed(random_case(rng(26), scale=scale), {"softcap": 2.0}))
    assert (len(cases), finding.status) == (count, "pass")


def seen_but(*hidden):
    mask = np.ones((6, 4, 5), dtype=bool)
    mask[..., list(hidden)] = False
    return mask


@pytest.mark.parametrize(
    "features",
    [
        {"softcap": 1e12, "mask": np.ones((6, 4, 5), dtype=bool)},
        {"softcap": 1e12, "mask": seen_but(4)},
        {"softcap": 1e12, "window": (9, 9)},
        {"softcap": 1e12, "causal": "lower-right"},
    ],
)
def test_a_cap_that_bends_nothing_is_vacuous_beside_a_mask_too(features):
    finding = judge(INVARIANTS["softcap-bounds-scores"], completed(random_case(rng(27)), features), CORE)
    assert finding.status == "skipped"
    assert finding.reason == "vacuous: the cap is so large that it bends no score"


def test_a_cap_that_bends_hidden_scores_only_is_vacuous():
    case = random_case(rng(28))
    keys = case.keys * 1e-7
    keys[:, 4] = 3.0
    case = case.but(keys=keys, bK=np.zeros((3, 7)))
    finding = judge(INVARIANTS["softcap-bounds-scores"], completed(case, {"softcap": 50.0, "mask": seen_but(4)}), CORE)
    assert finding.status == "skipped"
    assert "vacuous" in finding.reason


def test_a_score_bias_at_a_hidden_key_alone_moves_nothing():
    bias = np.zeros((6, 4, 5))
    bias[..., 4] = 2.0
    case = completed(random_case(rng(29)), {"score_bias": bias, "mask": seen_but(4)})
    finding = judge(INVARIANTS["score-bias-moves-log-odds"], case, CORE)
    assert finding.status == "skipped"
    assert "vacuous" in finding.reason


def test_weights_that_rounding_alone_may_make_0_have_no_logarithm():
    """Scores are near 5000 and off by 1e20 units in their last place: the second weight is 0, or 1, or anything."""
    case = article_case(
        q=np.array([[[1e10, 1, 1e10]]]),
        keys=np.array([[[1e10, 5000, -1e10], [0, 5000, 0]]]),
        bQ=np.zeros((1, 3)),
        bK=np.array([[1.0, 0, 0]]),
        scale=1.0,
    )
    finding = judge(
        INVARIANTS["score-bias-moves-log-odds"], completed(case, {"score_bias": np.array([[[0.0, 1]]])}), CORE
    )
    assert finding.status in {"skipped", "inconclusive"}, finding


def test_a_layer_of_many_blocks_is_left_out_with_the_true_reason():
    case = random_case(rng(30), H=2, G=1, Tq=520, Tk=520, d_k=2, d_v=1).but(W_O=np.ones((2, 1, 3)))
    finding = judge(INVARIANTS["layer-sums-over-heads"], case, CORE)
    assert (finding.status, finding.observed) == ("skipped", None)
    assert "in blocks" in finding.reason
