"""What claims about structure have in common: heads, order, masks and caches."""

from __future__ import annotations

from verify_attention.model import Case

NOT_ASKED = "a claim about structure: asked of cases with features, and of those that expect it"


def asked(case: Case, name: str) -> str | None:
    """Return the reason why a claim about structure is not asked of a case, else None.

    Plain cases are about biases: such a claim is asked of one only where its `expect` names it.
    """
    return None if case.features or name in case.expect else NOT_ASKED
