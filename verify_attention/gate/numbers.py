"""Whether a finding follows from the numbers that stand beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import comparison
from verify_attention.engine.tally import NO_CONTRAST
from verify_attention.model import Tolerance
from verify_attention.sealing import Document


def own_numbers(finding: Document, tolerance: Tolerance, own_limit: bool, coarse: bool) -> Iterator[str]:
    """Check that a finding's status follows from its numbers, and these from its two sides.

    An invariant with a limit of its own has it from elsewhere. In a `coarse` precision a limit is no smaller than the
    rounding bound, and nothing is inconclusive.
    """
    if finding["observed"] is None:
        yield from _unmeasured(finding)
    elif finding["status"] == "crashed":
        yield "says crashed, but has an observation"
    elif finding["limit"] is None or finding["worst"] is None:
        yield "has an observation, but no limit or no place"
    else:
        yield from _measured(finding)
        yield from _sides(finding, None if own_limit else tolerance, coarse)


def _unmeasured(finding: Document) -> Iterator[str]:
    if finding["status"] in {"pass", "fail"}:
        yield f"says {finding['status']}, but nothing was measured"
    if any(finding[name] is not None for name in ("deviation", "limit", "rounding_bound", "worst")):
        yield "has numbers, but says that nothing was observed"


def _measured(finding: Document) -> Iterator[str]:
    """Compare observation and status with deviation, limit and bound; a contrast may turn a pass inconclusive."""
    deviation = np.nan if finding["deviation"] is None else finding["deviation"]
    bound = np.inf if finding["rounding_bound"] is None else finding["rounding_bound"]
    seen = comparison.observe(deviation, finding["limit"], bound)
    if seen != finding["observed"]:
        yield f"observed says {finding['observed']}, its numbers say {seen}"
    due, said = comparison.status(finding["expected"], deviation, finding["limit"], bound), finding["status"]
    without_contrast = (due, said, finding["reason"]) == ("pass", "inconclusive", NO_CONTRAST)
    if said not in {due, "skipped"} and not without_contrast:
        yield f"status says {said}, its numbers say {due}"
    if said == "pass" and finding["reason"] is not None:
        yield f"has a reason, {finding['reason']!r}, but passes"


def _sides(finding: Document, tolerance: Tolerance | None, coarse: bool) -> Iterator[str]:
    """Compare deviation and limit with the two sides, where both are numbers."""
    left, right = finding["worst"]["left"], finding["worst"]["right"]
    if left is None or right is None:
        return
    if abs(left - right) != finding["deviation"]:
        yield f"deviation says {finding['deviation']!r}, its sides say {abs(left - right)!r}"
    limit = finding["limit"] if tolerance is None else float(comparison.limit_of(tolerance, left, right))
    if coarse and finding["rounding_bound"] is not None:
        limit = max(limit, finding["rounding_bound"])
    if limit != finding["limit"]:
        yield f"limit says {finding['limit']!r}, its sides and the tolerance say {limit!r}"
