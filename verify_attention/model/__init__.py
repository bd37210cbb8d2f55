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
from verify_attention.model.case import BLOCK, Case, Latent, Published
from verify_attention.model.claims import ON_REQUEST, Fault, Invariant, Plugin, Sides, Trait, always
from verify_attention.model.features import (
    AddsColumn,
    Column,
    Estimate,
    Feature,
    Fills,
    Hides,
    Normalises,
    OnScores,
    OnVectors,
    Shape,
    Side,
    Vectors,
)
from verify_attention.model.report import CaseReport, Finding, Report, Tolerance, Worst, was_checked
from verify_attention.model.trace import Implementation, NotShownError, Trace

__all__ = [
    "BLOCK",
    "BROKEN",
    "CONDITIONS",
    "ON_REQUEST",
    "QUANTITIES",
    "STATUSES",
    "AddsColumn",
    "Array",
    "Case",
    "CaseReport",
    "Column",
    "Condition",
    "Estimate",
    "Expectation",
    "Fault",
    "Feature",
    "Fills",
    "Finding",
    "Flags",
    "Hides",
    "Implementation",
    "Indices",
    "Invariant",
    "Latent",
    "Normalises",
    "NotShownError",
    "OnScores",
    "OnVectors",
    "Plugin",
    "Published",
    "Report",
    "Shape",
    "Side",
    "Sides",
    "Status",
    "Tolerance",
    "Trace",
    "Trait",
    "Vectors",
    "Worst",
    "always",
    "was_checked",
]
