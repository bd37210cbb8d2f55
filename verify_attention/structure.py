"""What claims about structure have in common: heads, order, masks and caches."""

from __future__ import annotations

import numpy as np

from verify_attention.model import Case

NOT_ASKED = "a claim about structure: asked of cases with features, and of those that expect it"
MOST_SCORES = 2**19  # a larger case is judged in blocks
TOO_LARGE = "the case is judged in blocks, and the claim is about all of it"


def asked(case: Case, name: str) -> str | None:
    """Return the reason why a claim about structure is not asked of a case, else None.

    Plain cases are about biases: such a claim is asked of one only where its `expect` names it.
    """
    return None if case.features or name in case.expect else NOT_ASKED


def showing_weights(case: Case) -> Case:
    """Return the case with the identity for values, and nothing added to them: its output `[H, Tq, Tk]` is the weights.

    An implementation that shows only its output shows its weights so.
    """
    if case.values is None and case.bV is None and "appended_key" not in case.features:
        return case
    features = dict(case.features)
    if "appended_key" in features:
        nothing = np.zeros((len(case.keys), case.keys.shape[1]))
        features["appended_key"] = {**features["appended_key"], "value": nothing}
    return case.but(values=None, bV=None, features=features)


def without(case: Case, *names: str) -> Case:
    """Return the case without some of its features."""
    return case.but(features={name: value for name, value in case.features.items() if name not in names})


def small(case: Case) -> str | None:
    """Return the reason why a claim about a whole case is not asked of a large one, else None."""
    return TOO_LARGE if int(np.prod(case.scores_shape)) > MOST_SCORES else None
