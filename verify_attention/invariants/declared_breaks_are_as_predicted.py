"""Where a feature takes the claim away, a K bias moves the weights by exactly what the formula says.

That weights change behind a rotation, a norm, a cap or beside a sink is no licence to change by anything: the change
is predicted for each weight. Code that adds the K bias behind the rotation, where it breaks nothing, is caught here.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import formula, mistakes, rounding
from verify_attention.departures import taken
from verify_attention.model import Case, Condition, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE
from verify_attention.structure import without

PAIRS: tuple[tuple[Condition, Condition], ...] = (("none", "k"), ("q", "qk"))


def applies(case: Case) -> str | None:
    """Ask for a feature that takes a trait away which the claims about K biases need."""
    lost = taken(case) & {"common key shift", "shift-invariant softmax"}
    return None if lost else "no feature takes away what the claims about a K bias need"


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the change of the weights under bK with the predicted one, without bQ and with it."""
    for before, after in PAIRS:
        one, other = case.under(before), case.under(after)
        change = formula.shares(other) - formula.shares(one)
        yield Sides(
            f"weights[{after}] − weights[{before}]",
            attend(other).weights - attend(one).weights,
            change,
            rounding=rounding.promising(rounding.beside_float64(case, rounding.weights(other) + rounding.weights(one))),
            moves=change,
        )


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="weights(bK) − weights(0) = the difference that the formula gives, where a feature makes it differ",
    source="the definition of each feature; article, section 5",
    applies=applies,
    where='a feature takes away "common key shift" or "shift-invariant softmax"',
    vacuous="no weight moves by more than the tolerance",
    on_request=True,
    sides=sides,
    faults=(
        Fault("the K bias is ignored", CORE.but(keys=mistakes.keys_without_bias)),
        Fault("the cap is forgotten", lambda case: CORE(without(case, "softcap"))),
        Fault("the sink is forgotten", lambda case: CORE(without(case, "sink"))),
        Fault("hidden keys are filled with −∞", lambda case: CORE(without(case, "fill"))),
        Fault("frequencies are those of the width", mistakes.frequencies_of_the_width),
    ),
)
