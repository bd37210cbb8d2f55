"""`assert_invariants`, for tests of attention code."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from making import random_case, rng
from test_cli import CASES, call

from verify_attention.errors import UsageError
from verify_attention.kernel import attention
from verify_attention.testing import assert_invariants


def right(q, k, v, **options):
    return attention(q, k, v, **options)["output"]


def tiled(q, k, v, *, scale=None):
    """Use key-value head h mod G for query head h."""
    heads = np.arange(q.shape[1]) % k.shape[1]
    return attention(q, k[:, heads], v[:, heads], scale=scale)["output"]


def in_single(q, k, v, *, scale=None):
    q, k, v = (array.astype(np.float32) for array in (q, k, v))
    return attention(q, k, v, scale=scale)["output"].astype(np.float64)


def test_a_right_function_returns_how_many_equations_were_really_checked():
    assert assert_invariants(right) > 3000
    assert assert_invariants(right, CASES / "article") < assert_invariants(
        right, [CASES / "article", random_case(rng(2))]
    )
    assert assert_invariants("verify_attention.kernel:attention", f"{CASES}/implementations/each-option.yaml") > 300
    assert assert_invariants(right, random_case(rng(1))) > 10


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_other_dtypes_have_limits_of_their_own(dtype):
    assert assert_invariants(right, CASES / "implementations", dtype=dtype) > 100


def test_a_message_names_claim_case_deviation_limit_and_how_to_repeat_it(tmp_path):
    with pytest.raises(AssertionError) as caught:
        assert_invariants(tiled, CASES / "bias")
    lines = str(caught.value).splitlines()
    assert re.fullmatch(r"\S+test_testing.py:tiled in float64: \d+ findings on \d+ claims broke, .*", lines[0])
    assert re.fullmatch(r"  agrees-with-the-core fails on 34-heads", lines[1])
    assert re.fullmatch(r"    .* which differ by .* at output\[\w+\] at head \d+, row \d+, .*; limit .*", lines[2])
    command = lines[3].removeprefix("    again: verify-attention ")
    assert command != lines[3]
    done = call(*shlex.split(command), folder=".")
    assert done.returncode == 1
    assert "agrees-with-the-core on " in done.stdout


def test_claims_can_be_chosen():
    assert_invariants(tiled, CASES / "bias", select=["weights-sum-to-one", "two-*"])
    with pytest.raises(AssertionError, match="agrees-with-the-core fails"):
        assert_invariants(tiled, CASES / "bias", select=["agrees-*"])
    with pytest.raises(UsageError, match="no invariant is called 'agree'"):
        assert_invariants(tiled, select=["agree"])


def test_what_checks_nothing_is_no_pass():
    with pytest.raises(AssertionError, match="no equation was really checked on 1 case"):
        assert_invariants(right, f"{CASES}/boundaries/fill.yaml", select=["agrees-with-the-core"])


def test_a_tolerance_and_a_declared_precision():
    with pytest.raises(AssertionError):
        assert_invariants(in_single, CASES / "article")
    in_single.computes_in = "float32"
    try:
        assert_invariants(in_single, CASES / "article")
    finally:
        del in_single.computes_in


def test_a_function_without_a_name_on_the_command_line_is_called_by_its_own():
    def inner(q, k, v):
        return tiled(q, k, v)

    with pytest.raises(AssertionError, match=r"^test_\w+\.<locals>\.inner in float64: "):
        assert_invariants(inner, CASES / "bias")
