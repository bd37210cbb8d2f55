from kernel import attention

from verify_attention.testing import assert_invariants


def test_attention_keeps_its_claims():
    assert_invariants(attention)


def test_it_does_so_in_half_precision():
    assert_invariants(attention, dtype="float16", select="grouped-*")
