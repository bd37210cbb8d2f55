"""The output is what the formula makes of the case: an implementation that shows nothing else is held to it.

The right side mixes the values by the predicted weights, and adds in the other direction. It is asked where a feature
departs from plain attention.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import formula, rounding
from verify_attention.model import CONDITIONS, Case, Fault, Implementation, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, mixed_values


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output under each condition with the predicted one."""
    for condition in CONDITIONS:
        under = case.under(condition)
        yield Sides(
            f"output[{condition}]",
            attend(under).output,
            formula.output(under),
            rounding=rounding.beside_float64(under, rounding.output(under)),
            axis="channel",
        )


def without_the_appended_value(case: Case) -> Trace:
    """Let the appended key take its share, and give nothing for it."""
    trace = CORE(case)
    return Trace(mixed_values(case, trace.weights), trace.inside)


def divided_again(case: Case) -> Trace:
    """Divide the output by the visible keys' share."""
    trace = CORE(case)
    return Trace(trace.output / trace.weights.sum(axis=-1, keepdims=True), trace.inside)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output = Σ_j weights_j·(v_j + bV), with the predicted weights, for every condition",
    source="the definition of each feature",
    on_request=True,
    sides=sides,
    faults=(
        Fault("the appended key's value is left out", without_the_appended_value),
        Fault("the output is divided by the visible keys' share", divided_again),
    ),
)
