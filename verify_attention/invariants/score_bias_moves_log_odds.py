"""What is added to scores moves the log-odds of two keys by the difference of what they get.

p_j ∝ exp(S_j + B_j), so that log(p_a / p_b) grows by exactly B_a − B_b: unscaled, uncapped, with its sign, for each
head and row its own. The case is compared with the one without its score bias, or with one where it has none; and
with the one without ALiBi, for which B_j = −slope·|p − j|. Each key is compared with the row's largest, where both
weights are above 1e-260 whatever rounding does to them. With the identity for values the output is the weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, mistakes, rounding, structure
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, changed_scores

SMALLEST = -600.0  # of the logarithm of a weight: 1e-260; less is left of a coarser precision


def applies(case: Case) -> str | None:
    """Ask for two visible keys in a row."""
    seen = departures.visible(case)
    count = case.keys.shape[1] if seen is None else int(seen.sum(axis=-1).max())
    return "no row sees two keys" if count < 2 else None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the change of log-odds with the difference of what was added, both biases in place."""
    given = structure.showing_weights(case.under("qk"))
    if "score_bias" in case.features:
        added = {"score bias": (structure.without(given, "score_bias"), given, case.features["score_bias"])}
    else:
        bias = numbers(case)
        added = {"score bias": (given, given.but(features={**given.features, "score_bias": bias}), bias)}
    if "alibi" in case.features:
        distance = np.abs(case.aligned[:, None] - np.arange(case.keys.shape[1]))
        bias = -case.features["alibi"]["slopes"][:, None, None] * distance
        added["alibi"] = structure.without(given, "alibi"), given, bias
    for name, comparison in added.items():
        yield _moved(f"log-odds of the output with identity values, {name}", "output", *comparison, attend)
    for name, comparison in added.items():
        yield _moved(f"log-odds of the weights, {name}", "weights", *comparison, attend)


def numbers(case: Case) -> Array:
    """Return quarters between −5/4 and 5/4, others for each head, row and key, `[H, Tq, Tk]`."""
    head, row, key = np.indices(case.scores_shape)
    return ((7 * head + 5 * row + 3 * key) % 11 - 5) / 4


def _moved(of: str, part: str, plain: Case, biased: Case, added: Array, attend: Implementation) -> Sides:
    before, after = (formula.scores(each).value - formula.lse(each)[..., None] for each in (plain, biased))
    seen = departures.visible(plain)
    loss, later_loss = rounding.log_weights(plain), rounding.log_weights(biased)
    least = max(SMALLEST, np.log(plain.precision.smallest))
    large: Flags = (before - loss > least) & (after - later_loss > least) & (True if seen is None else seen)
    top = (before if seen is None else np.where(seen, before, -np.inf)).argmax(axis=-1)[..., None]
    large = large & np.take_along_axis(large, top, axis=-1) & (np.arange(before.shape[-1]) != top)
    right = added - np.take_along_axis(added, top, axis=-1)
    sizes = np.where(large, np.abs(before) + np.abs(after), 0.0).max(axis=-1, keepdims=True)
    bound = 2 * (loss + later_loss)
    bound = bound + 4 * plain.precision.unit * (sizes + np.abs(added).max(axis=-1, keepdims=True))
    change = np.log(getattr(attend(biased), part)) - np.log(getattr(attend(plain), part))
    left = change - np.take_along_axis(change, top, axis=-1)
    return Sides(of, left, right, rounding=bound, moves=np.where(large, right, 0.0), counts=large)


def reversed_bias(case: Case) -> Trace:
    """Subtract the score bias."""
    if "score_bias" not in case.features:
        return CORE(case)
    return CORE(case.but(features={**case.features, "score_bias": -case.features["score_bias"]}))


def bias_of_the_first_head(case: Case) -> Trace:
    """Add head 0's score bias in all heads."""
    if "score_bias" not in case.features:
        return CORE(case)
    bias = case.features["score_bias"]
    return CORE(case.but(features={**case.features, "score_bias": np.broadcast_to(bias[:1], bias.shape)}))


def _alibi(case: Case, factor: float) -> Trace:
    if "alibi" not in case.features:
        return CORE(case)
    slopes = case.features["alibi"]["slopes"] * factor
    return CORE(case.but(features={**case.features, "alibi": {"slopes": slopes}}))


def queries_counted_from_0(case: Case, scores: Array) -> Array:
    """Take the number of a query for its place on the key axis."""
    if "alibi" not in case.features:
        return changed_scores(case, scores)
    distance = np.abs(np.arange(case.q.shape[1])[:, None] - np.arange(case.keys.shape[1]))
    bias = -case.features["alibi"]["slopes"][:, None, None] * distance + case.features.get("score_bias", 0.0)
    return changed_scores(case.but(features={**structure.without(case, "alibi").features, "score_bias": bias}), scores)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="log(p_a / p_b) with B − log(p_a / p_b) without = B_a − B_b",
    source="the definition of softmax",
    needs=frozenset({"exponential weights"}),
    applies=applies,
    where="a row sees two keys",
    on_request=True,
    whole=True,
    vacuous="all keys of a row get the same number, or weights are too small for logarithms",
    sides=sides,
    faults=(
        Fault("the score bias is multiplied by the scale", mistakes.score_bias_scaled_along),
        Fault("the sign of the score bias is reversed", reversed_bias),
        Fault("the score bias of head 0 is used for all heads", bias_of_the_first_head),
        Fault("the score bias is added before the cap", CORE.but(change=mistakes.score_bias_first)),
        Fault("the sign of ALiBi is reversed", lambda case: _alibi(case, -1.0)),
        Fault("ALiBi counts queries from 0", CORE.but(change=queries_counted_from_0)),
    ),
)
