"""What takes a share without being a key leaves the share that its logit says, no more and no less.

With logits x of a sink, of the 1 in softmax-plus-one, of a zero key or an appended key, the weights of a row sum to
Σ_j exp(S_j) / (Σ_j exp(S_j) + Σ_x exp(x)), and the LSE is the logarithm of the whole sum. The scores are those that
the implementation shows; for the output with the identity for values, which is the weights, they are those of the
formula. The logits come from the case: a sink is not scaled, not masked and no part of the output.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, rounding, structure
from verify_attention.model import (
    CONDITIONS,
    AddsColumn,
    Array,
    Case,
    Column,
    Fault,
    Implementation,
    Invariant,
    Sides,
    Trace,
)
from verify_attention.pipeline import CORE, added_columns, biased_keys, changed_scores, scaled_scores


def applies(case: Case) -> str | None:
    """Ask for something that takes a share."""
    if not any(departures.acts(case, AddsColumn)):
        return "the case has no sink and no added key"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the sum of each row's weights, and its LSE, with what scores and logits say, under each condition."""
    for condition in CONDITIONS:
        under = structure.showing_weights(case.under(condition))
        due = visible_total(under)
        yield _shares(f"sum of output[{condition}] with identity values", attend(under).output, due, under)
    for condition in CONDITIONS:
        under = case.under(condition)
        total = np.logaddexp.reduce(attend(under).scores, axis=-1)
        yield _shares(f"sum of weights[{condition}]", attend(under).weights, total, under)
        due = visible_total(under)
        yield Sides(
            f"lse[{condition}]",
            attend(under).lse,
            np.logaddexp(total, logits(under)),
            rounding=2 * rounding.lse(under),
            moves=np.logaddexp(due, logits(under)) - due,
        )


def visible_total(case: Case) -> Array:
    """Return the logarithm of each row's sum of exponentials without what is added, by the formula, `[H, Tq]`."""
    total: Array = np.logaddexp.reduce(formula.scores(case).value, axis=-1)
    return total


def logits(case: Case) -> Array:
    """Return the logarithm of what is added to each row's sum of exponentials, `[H, Tq]`."""
    found = [np.broadcast_to(logit.value, case.scores_shape[:2]) for logit, _ in formula.columns(case)]
    total: Array = np.logaddexp.reduce(np.stack(found), axis=0)
    return total


def _shares(of: str, weights: Array, total: Array, case: Case) -> Sides:
    due = visible_total(case)
    return Sides(
        of,
        weights.sum(axis=-1),
        np.exp(total - np.logaddexp(total, logits(case))),
        rounding=rounding.promising(2 * np.expm1(rounding.log_weights(case)))[..., 0],
        moves=-np.expm1(due - np.logaddexp(due, logits(case))),
    )


def scaled(case: Case, queries: Array) -> list[Column]:
    """Multiply a sink by the scale, as if it were a score."""
    if "sink" in case.features:
        case = case.but(features={**case.features, "sink": case.features["sink"] * case.scale})
    return added_columns(case, queries)


def renormalised(case: Case) -> Trace:
    """Give the sink a column, drop the column, and divide by what is left."""
    trace = CORE(case)
    share = trace.weights.sum(axis=-1, keepdims=True)
    return Trace(trace.output / share, {**trace.inside, "weights": trace.weights / share})


def after_the_maximum(case: Case, queries: Array) -> list[Column]:
    """Add the exponentials of the logits to those of scores from which the maximum is already off."""
    columns = added_columns(case, queries)
    if not columns:
        return columns
    top = changed_scores(case, scaled_scores(case, queries, biased_keys(case))).max(axis=-1)
    return [column._replace(scores=column.scores + top) for column in columns]


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="Σ_j p_j = Σ_j exp(S_j) / (Σ_j exp(S_j) + Σ_x exp(x)) and LSE = log(Σ_j exp(S_j) + Σ_x exp(x))",
    source="the definition of each feature: softmax1, sinks, add_zero_attn, bias_k",
    needs=frozenset({"exponential weights"}),
    applies=applies,
    where="the case has sink, softmax_plus_one, zero_key or appended_key",
    on_request=True,
    whole=True,
    vacuous="the logits are so small that nothing takes a share",
    sides=sides,
    faults=(
        Fault("a sink is multiplied by the scale", CORE.but(columns=scaled)),
        Fault("nothing takes a share but keys", CORE.but(columns=lambda _case, _queries: [])),
        Fault("the sink's share is dropped, and the rest renormalised", renormalised),
        Fault("the share is added after the maximum is off", CORE.but(columns=after_the_maximum)),
    ),
)
