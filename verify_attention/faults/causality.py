"""Causality that is measured from the wrong corner, or is not there on every path."""

from __future__ import annotations

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, attention, biased, causal_seen, repeated
from verify_attention.model import Array, Flags


def one_more(ask: Question) -> Flags:
    """See the key behind one's own."""
    seen = causal_seen(ask)
    seen[:, 1:] |= seen[:, :-1].copy()
    return seen


def not_beside_a_cache(ask: Question) -> Flags:
    """Look behind queries where there are more keys than queries: some are from a cache."""
    _, _, rows, keys = ask.scores_shape
    return causal_seen(ask if rows == keys else ask._replace(causal=None))


def weights_of_all(ask: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Take another path where weights are wanted, and forget causality on it."""
    answer["weights"] = attention.answer(ask._replace(causal=None))["weights"]
    return answer


def output_by_weights_of_all(ask: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Take that path for the output too."""
    answer = weights_of_all(ask, answer)
    return {**answer, "output": answer["weights"] @ repeated(ask, attention.values(ask))}


def without_bias(ask: Question) -> Array:
    """Forget the K bias on the path of causality."""
    return ask.k if ask.causal else biased(ask.k, ask.bK)


KIND = Kind(
    "causal",
    (
        mistake(
            "causality is measured from the upper left, whatever is declared",
            by_cause=lambda ask: causal_seen(ask._replace(causal=ask.causal and "upper-left")),
        ),
        mistake("one future key is visible", by_cause=one_more),
        mistake("the weights that are shown know nothing of causality", finish=weights_of_all),
        mistake("causality is dropped when weights are wanted", finish=output_by_weights_of_all),
        mistake("the K bias is lost under causality", keys=without_bias),
        mistake("causality is skipped where there is a cache", by_cause=not_beside_a_cache),
    ),
)
