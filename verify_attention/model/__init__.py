"""The nouns: frozen data that everything else is about.

Letters in shapes: H query heads, G key-value heads (H is a multiple of G), Tq queries, Tk keys, d_k the width of a
query and of a key, d_v the width of a value.
"""

from verify_attention.model.adapters import Adapter, Divergence
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
from verify_attention.model.case import BLOCK, Case, Latent, Posed, Published
from verify_attention.model.claims import ABOUT_OTHERS, ON_REQUEST, Fault, Invariant, Plugin, Sides, Trait, always
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
from verify_attention.model.precision import DTYPES, FLOAT64, Precision, precision
from verify_attention.model.report import CaseReport, Finding, Report, Tolerance, UnderTest, Worst, was_checked
from verify_attention.model.trace import CrashedError, Implementation, NotShownError, Trace, UnusableError

__all__ = [
    "ABOUT_OTHERS",
    "BLOCK",
    "BROKEN",
    "CONDITIONS",
    "DTYPES",
    "FLOAT64",
    "ON_REQUEST",
    "QUANTITIES",
    "STATUSES",
    "Adapter",
    "AddsColumn",
    "Array",
    "Case",
    "CaseReport",
    "Column",
    "Condition",
    "CrashedError",
    "Divergence",
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
    "Posed",
    "Precision",
    "Published",
    "Report",
    "Shape",
    "Side",
    "Sides",
    "Status",
    "Tolerance",
    "Trace",
    "Trait",
    "UnderTest",
    "UnusableError",
    "Vectors",
    "Worst",
    "always",
    "precision",
    "was_checked",
]
