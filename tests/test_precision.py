"""Other dtypes than float64: limits follow from the precision, so that right code is never blamed and wrong code is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from featured import wild
from making import INVARIANTS, PEER, TOLERANCE, random_case, rng, wild_cases
from variations import LOG2E

from verify_attention import comparison, resources
from verify_attention.cases import load_cases
from verify_attention.casting import cast, fits, rounded
from verify_attention.engine import judge, run_case
from verify_attention.functions import Asked
from verify_attention.kernel import attention
from verify_attention.model import DTYPES, FLOAT64, Array, Case, Implementation, Precision, Sides, precision

CASES = load_cases([resources.folder("cases")])
COARSE = ("float32", "float16", "bfloat16")
INFO = {
    "float64": np.finfo(np.float64),
    "float32": np.finfo(np.float32),
    "float16": np.finfo(np.float16),
    "bfloat16": ml_dtypes.finfo(ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_precision_has_the_numbers_of_its_dtype(dtype):
    own, info = precision(dtype), INFO[dtype]
    assert own.unit == float(info.eps) / 2
    assert own.storing == 0
    assert own.largest == float(info.max)
    assert own.tiniest == float(info.smallest_subnormal)
    assert own.smallest >= float(info.smallest_normal)


def test_a_precision_may_compute_finer_or_coarser_than_it_stores():
    fused, jax = precision("bfloat16", "float32"), precision("float64", "float32")
    assert (fused.unit, fused.storing) == (2.0**-24, 2.0**-8)
    assert (jax.unit, jax.storing) == (2.0**-24, 0.0)
    assert precision("float16", "float32").largest == 65504


@pytest.mark.parametrize("dtype", COARSE)
def test_numbers_are_rounded_to_the_nearest_as_another_library_does(dtype):
    draw = rng(1)
    numbers = draw.normal(size=20_000) * 10.0 ** draw.uniform(-6, 4, size=20_000)
    ties = np.concatenate([1 + np.arange(64) * 2.0**-9, -1 - np.arange(64) * 2.0**-12, [0.0, -0.0, 1e5, -1e6]])
    peer = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    for array in (numbers, ties):
        with np.errstate(over="ignore"):
            singles = array.astype(np.float32) if dtype == "bfloat16" else array  # both go by way of float32
            np.testing.assert_array_equal(rounded(array, dtype), singles.astype(peer).astype(np.float64))


def test_a_case_becomes_what_the_implementation_gets():
    case = random_case(rng(2), features={"score_bias": rng(3).normal(size=(6, 4, 5))})
    own = cast(case, precision("float16"))
    for array, was in ((own.q, case.q), (own.bK, case.bK), (own.features["score_bias"], case.features["score_bias"])):
        np.testing.assert_array_equal(array, was.astype(np.float16).astype(np.float64))
    assert own.scale == case.scale
    assert cast(case, FLOAT64) is case


def test_printed_numbers_are_about_the_case_as_it_was():
    def published(name):
        (case,) = load_cases(f"{resources.folder('cases')}/{name}.yaml")
        return cast(case, precision("float32")).published

    assert published("article/two-dimensions") is not None  # its numbers are whole
    assert published("bias/heads") is None


def test_a_number_that_overflows_is_said():
    case = cast(random_case(rng(4), bK=np.full((3, 7), 1e5)), precision("float16"))
    assert not fits(case)
    findings = run_case(case, PEER, INVARIANTS.values(), TOLERANCE).findings
    assert {finding.reason for finding in findings} == {"a number overflows float16"}


# Right code


def in_blocks(q: Array, k: Array, v: Array, *, mask: Any = None, scale: Any = None, score_bias: Any = None) -> Array:
    """Attend key by key, with a running maximum, in the arithmetic of the arrays."""
    kind = q.dtype.type
    repeats = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeats, axis=1), np.repeat(v, repeats, axis=1)
    peak = np.full((*q.shape[:3], 1), -np.inf, dtype=kind)
    total, output = np.zeros_like(peak), np.zeros((*q.shape[:3], v.shape[3]), dtype=kind)
    factor = kind(q.shape[3] ** -0.5 if scale is None else scale) * kind(LOG2E)
    for key in range(k.shape[2]):
        score = (q * factor * k[:, :, key : key + 1]).sum(axis=-1, keepdims=True, dtype=kind)
        score = score if score_bias is None else score + score_bias[..., key : key + 1] * kind(LOG2E)
        score = score if mask is None else np.where(mask[..., key : key + 1], score, kind(-np.inf))
        higher = np.maximum(peak, score)
        safe = np.where(np.isfinite(higher), higher, kind(0))
        kept, power = np.exp2(peak - safe), np.exp2(score - safe)
        total, output, peak = total * kept + power, output * kept + power * v[:, :, key : key + 1], higher
    return output / total


def keys_centred(q: Array, k: Array, v: Array, *, scale: Any = None) -> Array:
    return attention(q, k - k.mean(axis=2, keepdims=True, dtype=k.dtype), v, scale=scale)["output"]


RIGHT: dict[str, Implementation] = {"kernel": PEER, "in blocks": Asked(in_blocks), "centred": Asked(keys_centred)}


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", COARSE)
@pytest.mark.parametrize(("turn", "name"), list(enumerate(RIGHT)))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers of any size may overflow
def test_right_code_is_never_blamed_in_any_dtype(turn, name, dtype):
    """Neither on shipped cases, each by one, nor on random ones with numbers of any size; equations are checked."""
    draw, own = rng(5), precision(dtype)
    random = [case for _ in range(60) for case in wild_cases(draw, 2)]
    checked = 0
    for case in [*CASES[turn :: len(RIGHT)], *random]:
        for finding in run_case(cast(case, own), RIGHT[name], INVARIANTS.values(), TOLERANCE).findings:
            assert finding.status in {"pass", "skipped"}, (case.id, finding)
            checked += finding.checked
    assert checked > 500


SAID_BY_A_FUNCTION = {"key_shifts", "mask", "causal", "window", "score_bias", "alibi", "softcap", "sink", "rope"}


def stored_in(dtype: str) -> Implementation:
    """Return a function that computes in float64, and stores what it gives, and its weights, in a dtype."""

    def storing(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        shown = attention(q.astype(np.float64), k.astype(np.float64), v.astype(np.float64), **options)
        values = v.astype(np.float64) + (
            0.0 if options.get("bV") is None else options["bV"].astype(np.float64)[:, None]
        )
        mixed = rounded(shown["weights"], dtype) @ np.repeat(values, q.shape[1] // v.shape[1], axis=1)
        return {name: rounded(part, dtype) for name, part in {**shown, "output": mixed}.items()}

    return Asked(storing)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dtype", "inside"),
    [("float32", None), ("float16", None), ("float16", "float32"), ("bfloat16", "float32"), ("float64", "float32")],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers of any size may overflow
def test_right_code_with_features_is_never_blamed(dtype, inside):
    """With up to four features each, and numbers of any size in all that they have; sinks and low biases among them."""
    own, statuses = precision(dtype, inside), Counter()
    right = stored_in(dtype) if inside and dtype != "float64" else PEER
    for case in wild(rng(8), 500):
        if case.features.keys() <= SAID_BY_A_FUNCTION:
            for finding in run_case(cast(case, own), right, INVARIANTS.values(), TOLERANCE).findings:
                assert finding.status in {"pass", "skipped"}, (sorted(case.features), finding)
                statuses[finding.status] += finding.checked
    assert statuses["pass"] > 200


def low_bias() -> Case:
    """A key that a large negative score bias hides, as code without a boolean mask does."""
    bias = np.zeros((6, 4, 5))
    bias[..., 1] = -1e4
    return random_case(rng(9), features={"score_bias": bias, "sink": np.full(6, 6.3)})


@pytest.mark.parametrize(("dtype", "inside"), [("float32", None), ("bfloat16", "float32"), ("float16", "float32")])
def test_a_key_far_below_the_others_hides_nothing(dtype, inside):
    """Right code passes, also what it stores of a large sink; uniform weights do not."""
    case, claim = cast(low_bias(), precision(dtype, inside)), INVARIANTS["agrees-with-the-core"]
    assert judge(claim, case, stored_in(dtype)).status == "pass"

    def uniform(q: Array, k: Array, v: Array, **_options: Any) -> Array:
        mean = v.astype(np.float64).mean(axis=2, keepdims=True)
        return np.repeat(np.repeat(mean, q.shape[1] // v.shape[1], axis=1), q.shape[2], axis=2)

    assert judge(claim, case, Asked(uniform)).status == "fail"


def test_a_control_that_the_core_shows_is_not_hidden_by_rounding():
    """A K bias that is added behind the rotation breaks nothing, where the case says that it breaks."""
    case = next(one for one in CASES if one.id.startswith("boundaries/rope") and "breaks" in one.expect.values())

    def deaf(q: Array, k: Array, v: Array, *, bK: Any = None, **options: Any) -> Array:
        return attention(q, k, v, **options)["output"]

    claim, own = INVARIANTS["key-bias-leaves-weights"], precision("float32")
    assert judge(claim, cast(case, own), PEER).status == "pass"
    assert judge(claim, cast(case, own), Asked(deaf)).status == "fail"


@pytest.mark.thorough
def test_bounds_a_thousand_times_smaller_would_be_exceeded(monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(Precision, "lost", lambda own, units, stored=0: units * own.unit / 1000)
    monkeypatch.setattr(Precision, "accumulated", lambda own, count: count * own.unit / 1000)
    own = precision("float32")
    statuses = Counter(
        finding.status
        for case in CASES
        for finding in run_case(cast(case, own), PEER, INVARIANTS.values(), TOLERANCE).findings
    )
    assert statuses["fail"] > 50


# Wrong code


def kept_in(dtype: str) -> Implementation:
    """Return a function that keeps its weights in a dtype, on the way to the values."""

    def sloppy(q: Array, k: Array, v: Array, **options: Any) -> Array:
        weights = rounded(attention(q, k, v, **options)["weights"], dtype)
        return weights @ np.repeat(v, q.shape[1] // v.shape[1], axis=1)

    return Asked(sloppy)


@pytest.mark.parametrize(("dtype", "kept"), [("float64", "float32"), ("float32", "float16"), ("float32", "bfloat16")])
def test_a_coarser_number_on_the_way_is_noticed(dtype, kept):
    own = precision(dtype)
    claim = INVARIANTS["agrees-with-the-core"]
    assert sum(judge(claim, cast(case, own), kept_in(kept)).status == "fail" for case in CASES) > 50


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", COARSE)
@pytest.mark.parametrize("fault", INVARIANTS["every-argument-has-its-effect"].faults, ids=lambda fault: fault.mistake)
def test_what_is_ignored_is_noticed_in_any_dtype(dtype, fault):
    claim, own = INVARIANTS["every-argument-has-its-effect"], precision(dtype)
    assert any(judge(claim, cast(case, own), fault.implementation).status == "fail" for case in CASES)


def in_single_precision(q: Array, k: Array, v: Array, **options: Any) -> Array:
    q, k, v = (array.astype(np.float32) for array in (q, k, v))
    return attention(q, k, v, **options)["output"]


def test_a_declared_precision_is_the_one_that_is_asked():
    claim = INVARIANTS["agrees-with-the-core"]
    declared = precision("float64", "float32")
    undeclared = [judge(claim, case, Asked(in_single_precision)).status for case in CASES]
    assert undeclared.count("fail") > 100
    statuses = {judge(claim, cast(case, declared), Asked(in_single_precision)).status for case in CASES}
    assert statuses == {"pass", "skipped"}


# Limits


def test_a_coarse_limit_is_the_larger_of_tolerance_and_bound_and_promises_nothing_beyond():
    left, right = np.zeros((1, 2, 3)), np.zeros((1, 2, 3))
    bound = np.array([[[1e-15], [0.25]]])
    sides = comparison.as_coarse(Sides("x", left, right, rounding=bound), TOLERANCE)
    np.testing.assert_array_equal(sides.limit, np.broadcast_to([[[1e-12], [0.25]]], (1, 2, 3)))
    open_ = comparison.as_coarse(Sides("x", left, right, rounding=np.array([[[np.inf], [np.nan]]])), TOLERANCE)
    assert not open_.counts.any()


def test_a_control_that_rounding_may_hide_shows_nothing():
    (case,) = load_cases(f"{resources.folder('cases')}/article/different-shift-for-each-key.yaml")
    claim = INVARIANTS["key-bias-leaves-weights"]
    case = case.but(expect={claim.name: "breaks"})
    assert judge(claim, case, PEER).status == "pass"
    small = case.but(features={"key_shifts": case.key_shifts * 1e-4})
    finding = judge(claim, cast(small, precision("bfloat16")), PEER)
    assert finding.status == "skipped"
    assert finding.reason.startswith("vacuous: rounding in bfloat16 hides it: expected to break")
