"""The LSE of a row moves by exactly what the K bias adds to its scores.

log Σ_j exp(S_ij + c_i) = c_i + log Σ_j exp(S_ij), with c_i = s·q_i·bK. Kernels that merge parts of a row by their LSE
depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import mistakes, rounding, terms
from verify_attention.model import Case, Condition, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE

PARTS: tuple[tuple[Condition, Condition], ...] = (("none", "k"), ("q", "qk"))


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the change of the LSE with the row's number, without bQ and with it."""
    for before, after in PARTS:
        without, with_bias = case.under(before), case.under(after)
        number = terms.row_shift(case, after)
        yield Sides(
            f"lse[{after}] − lse[{before}]",
            attend(with_bias).lse - attend(without).lse,
            number,
            rounding=rounding.lse(with_bias) + rounding.lse(without),
            moves=number,
        )


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="LSE_i(k) − LSE_i(none) = s·q_i·bK and LSE_i(qk) − LSE_i(q) = s·(q_i + bQ)·bK",
    source="article, section 2, the factor exp(c) of the row's sum",
    needs=frozenset({"common key shift", "shift-invariant softmax"}),
    vacuous="s·q_i·bK and s·(q_i + bQ)·bK are 0 in every row",
    sides=sides,
    faults=(
        Fault("the LSE lacks the row's maximum", CORE.but(softmax=mistakes.lse_without_maximum)),
        Fault("the LSE is in base two", CORE.but(softmax=mistakes.lse_in_base_two)),
    ),
)
