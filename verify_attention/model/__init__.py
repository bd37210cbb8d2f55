"""The nouns: frozen data that everything else is about.

Letters in shapes: H query heads, G key-value heads (H is a multiple of G), Tq queries, Tk keys, d_k the width of a
query and of a key, d_v the width of a value.
"""

from verify_attention.model.basics import (
    BROKEN,
    CONDITIONS,
    QUANTITIES,
    STATUSES,
    Array,
    Condition,
    Expectation,
    Flags,
    Indices,
    Status,
)
from verify_attention.model.case import Case, Published
from verify_attention.model.claims import Fault, Feature, Invariant, Plugin, Sides, Trait, always
from verify_attention.model.report import CaseReport, Finding, Report, Tolerance, Worst, was_checked
from verify_attention.model.trace import Implementation, NotShownError, Trace

__all__ = [
    "BROKEN",
    "CONDITIONS",
    "QUANTITIES",
    "STATUSES",
    "Array",
    "Case",
    "CaseReport",
    "Condition",
    "Expectation",
    "Fault",
    "Feature",
    "Finding",
    "Flags",
    "Implementation",
    "Indices",
    "Invariant",
    "NotShownError",
    "Plugin",
    "Published",
    "Report",
    "Sides",
    "Status",
    "Tolerance",
    "Trace",
    "Trait",
    "Worst",
    "always",
    "was_checked",
]
