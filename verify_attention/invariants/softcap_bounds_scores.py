"""A capped score is inside ±cap, and bent back by atanh it is the score without the cap.

S = cap·tanh(X / cap) has |S| ≤ cap and cap·atanh(S / cap) = X, where X are the scores that the implementation shows
without the cap. Score bias and ALiBi come after the cap: both cases go without. What is hidden is hidden after the
cap. The way back is asked for where |S| < 0.9·cap: nearer, atanh multiplies errors by more than 5.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import comparison, departures, formula, rounding, structure
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides, Tolerance
from verify_attention.pipeline import CORE, changed_scores

NEAREST = 0.9


def applies(case: Case) -> str | None:
    """Ask for a cap."""
    if "softcap" not in case.features:
        return "the case has no softcap"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare scores with themselves clipped, and bent back with those without the cap, both biases in place."""
    capped = structure.without(case.under("qk"), "score_bias", "alibi")
    free = structure.without(capped, "softcap")
    cap, seen, shown = case.features["softcap"], departures.visible(case), attend(capped).scores
    expected, error = formula.uncovered(capped).value, rounding.scores(capped)
    uncapped = formula.uncovered(free).value
    bent = np.abs(uncapped - expected) if seen is None else np.where(seen, np.abs(uncapped - expected), 0.0)
    yield Sides(
        "scores, inside ±cap",
        shown,
        np.clip(shown, -cap, cap),
        rounding=error + 4 * case.precision.unit * cap,
        moves=bent,
        counts=seen,
    )
    if seen is not None:
        hidden = np.full_like(shown, departures.hidden_score(case))
        # A cap that bends no visible score may stand anywhere; beside −∞ no number is too small to count.
        plain = bent > comparison.limit_of(Tolerance(), uncapped, expected)
        moved = np.where(plain, bent, 0.0).max(axis=-1, keepdims=True)
        yield Sides("scores, hidden", shown, hidden, rounding=0.0, moves=moved, counts=~seen)
    nearest = np.abs(expected) + error
    inside = nearest < NEAREST * cap
    slope = 1 / (1 - np.square(np.where(inside, nearest, 0.0) / cap))
    bent_back = cap * np.arctanh(shown / cap)
    yield Sides(
        "scores, bent back",
        bent_back,
        attend(free).scores,
        rounding=slope * error + rounding.scores(free) + 16 * case.precision.unit * np.abs(uncapped),
        moves=np.where(inside, bent, 0.0),
        counts=inside if seen is None else inside & seen,
    )


def uncapped(case: Case, scores: Array) -> Array:
    """Leave the cap out."""
    return changed_scores(structure.without(case, "softcap"), scores)


def after_the_mask(case: Case, scores: Array) -> Array:
    """Cap last: hidden scores come back as −cap."""
    cap = case.features.get("softcap", np.inf)
    found = uncapped(case, scores)
    return found if cap == np.inf else cap * np.tanh(found / cap)


def undivided(case: Case, scores: Array) -> Array:
    """Take cap·tanh(S)."""
    cap = case.features.get("softcap")
    return changed_scores(case, scores) if cap is None else uncapped(case, cap * np.tanh(scores))


def clipped(case: Case, scores: Array) -> Array:
    """Cut scores off at ±cap."""
    cap = case.features.get("softcap")
    return changed_scores(case, scores) if cap is None else uncapped(case, np.clip(scores, -cap, cap))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="|S| ≤ cap and cap·atanh(S / cap) = S without the cap",
    source="the definition of the soft cap",
    applies=applies,
    where="the case has softcap",
    on_request=True,
    whole=True,
    vacuous="the cap is so large that it bends no score",
    sides=sides,
    faults=(
        Fault("the cap is forgotten", lambda case: CORE(structure.without(case, "softcap"))),
        Fault("the cap comes after the mask, so that hidden scores are -cap", CORE.but(change=after_the_mask)),
        Fault("scores are not divided by the cap before tanh", CORE.but(change=undivided)),
        Fault("scores are clipped instead of bent", CORE.but(change=clipped)),
    ),
)
