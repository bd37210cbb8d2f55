"""Weights are what the formula makes of the case: how much a feature moves them is predicted, not only that it does.

The right side takes another route than the core: exact products, each feature in its second form, and exponentials of
scores less their LSE. It is asked where a feature departs from plain attention; there, weights of plain attention
follow from the scores by the other claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import formula, mistakes, rounding, structure
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the weights under each condition with the predicted ones."""
    for condition in CONDITIONS:
        under = case.under(condition)
        yield Sides(
            f"weights[{condition}]",
            attend(under).weights,
            formula.shares(under),
            rounding=rounding.promising(rounding.beside_float64(under, rounding.weights(under))),
        )


def turned_by_the_other_layout(case: Case) -> Array:
    """Rotate the keys in the other layout than the queries."""
    own = case.features.get("rope")
    if own is None:
        return biased_keys(case)
    other = {"half": "interleaved", "interleaved": "half"}[own["layout"]]
    return biased_keys(case.but(features={**case.features, "rope": {**own, "layout": other}}))


def bias_added_behind(case: Case, name: str) -> Case:
    """Add the biases on the other side of a feature."""
    own = case.features.get(name)
    if own is None:
        return case
    other = {"before": "after", "after": "before"}[own["bias"]]
    return case.but(features={**case.features, name: {**own, "bias": other}})


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="weights = normalise(mask(features(s·(q + bQ)·(k + bK)))), for every condition",
    source="the definition of each feature; its master rule follows from it",
    on_request=True,
    sides=sides,
    faults=(
        Fault("keys are rotated in the other layout", CORE.but(keys=turned_by_the_other_layout)),
        Fault("frequencies are taken from the width instead of rotary_dims", mistakes.frequencies_of_the_width),
        Fault("biases are added behind the rotation", lambda case: CORE(bias_added_behind(case, "rope"))),
        Fault("biases are added on the other side of the norm", lambda case: CORE(bias_added_behind(case, "qk_norm"))),
        Fault("the norm is forgotten", lambda case: CORE(structure.without(case, "qk_norm"))),
        Fault("the score bias is added before the cap", CORE.but(change=mistakes.score_bias_first)),
        Fault("the cap is forgotten", lambda case: CORE(structure.without(case, "softcap"))),
        Fault("the temperature is forgotten", lambda case: CORE(structure.without(case, "temperature"))),
        Fault("the sink is forgotten", lambda case: CORE(structure.without(case, "sink"))),
        Fault("hidden keys are filled with −∞", lambda case: CORE(structure.without(case, "fill"))),
        Fault("softmax stands where something else should", lambda case: CORE(structure.without(case, "normaliser"))),
    ),
)
