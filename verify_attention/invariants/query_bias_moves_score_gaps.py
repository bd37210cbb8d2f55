"""A Q bias moves the gap between two keys' scores by s·bQ·(k_a − k_b).

(q_i + bQ)·k_j = q_i·k_j + bQ·k_j, and the last term depends on the key: it may change weights. A common K bias, there
or not, has no part in it. k_j is whatever q is multiplied with: under `rope`, bQ turns with the query and k_j with
the key.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding, terms
from verify_attention.model import Case, Condition, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_queries

PARTS: tuple[tuple[Condition, Condition], ...] = (("none", "q"), ("k", "qk"))


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare what bQ adds to each gap with the gap of bQ·k, without bK and with it."""
    for before, after in PARTS:
        without, with_bias = case.under(before), case.under(after)
        change = terms.gaps(case, attend(with_bias).scores - attend(without).scores)
        gaps = terms.gaps(case, terms.query_term(case, after))
        bound = rounding.scores(with_bias) + rounding.scores(without)
        yield Sides(
            f"gaps to the first visible key of scores[{after}] − scores[{before}]",
            change,
            np.broadcast_to(gaps, change.shape),
            rounding=2 * bound,
            moves=gaps,
        )


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="(S_ia − S_ib)(q) − (S_ia − S_ib)(none) = s·bQ·(k_a − k_b), and the same from k to qk",
    source="article, section 3",
    check="relative change by Q",
    needs=frozenset({"bilinear scores"}),
    vacuous="bQ·k_j is the same for every key",
    sides=sides,
    faults=(
        Fault("the Q bias is ignored", CORE.but(queries=mistakes.queries_without_bias)),
        Fault("the Q bias of head 0 is used for all heads", CORE.but(queries=mistakes.query_bias_of_the_first_head)),
        Fault("the Q bias is added twice", CORE.but(queries=lambda case: biased_queries(case) + case.bQ[:, None])),
    ),
)
