"""The score with both biases is made of four terms.

(q + bQ)·(k + bK) = q·k + bQ·k + q·bK + bQ·bK: what each bias adds alone, and a last term that needs both.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import rounding, terms
from verify_attention.departures import visible
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, scaled_scores


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare S(qk) with the sum of the parts that the other conditions show, and s·bQ·bK."""
    none, query, key = (attend(case.under(condition)).scores for condition in ("none", "q", "k"))
    both_term = terms.biases_term(case)
    bounds = {condition: rounding.scores(case.under(condition)) for condition in ("none", "q", "k", "qk")}
    yield Sides(
        "scores[qk]",
        attend(case.under("qk")).scores,
        none + (query - none) + (key - none) + both_term,
        rounding=bounds["qk"] + bounds["q"] + bounds["k"] + 3 * bounds["none"],
        moves=terms.scores(case, "qk") - terms.scores(case, "none"),
        counts=visible(case),
    )


def without_the_last_term(case: Case, queries: Array, keys: Array) -> Array:
    """Forget bQ·bK."""
    return scaled_scores(case, queries, keys) - terms.biases_term(case)


def applies(case: Case) -> str | None:
    """Ask for both biases."""
    missing = [name for name, bias in (("bQ", case.bQ), ("bK", case.bK)) if not bias.any()]
    return f"vacuous: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} 0" if missing else None


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="S(qk) = S(none) + (S(q) − S(none)) + (S(k) − S(none)) + s·bQ·bK",
    source="article, section 3",
    needs=frozenset({"bilinear scores", "common key shift"}),
    applies=applies,
    where="neither bQ nor bK is 0",
    vacuous="the biases add nothing to any score",
    sides=sides,
    faults=(Fault("the term bQ·bK is forgotten", CORE.but(scores=without_the_last_term)),),
)
