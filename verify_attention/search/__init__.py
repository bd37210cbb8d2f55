"""Search for a case on which a claim breaks, and make it as small as it can be.

Cases are drawn inside the region where the rounding bounds promise an answer; what breaks there is reduced to small
integers, and written as a person would write it.
"""

from verify_attention.search.hunting import Found, Hunt, hunt
from verify_attention.search.reducing import Reduced, reduced
from verify_attention.search.smallest import in_a_line, smallest_cases
from verify_attention.search.telling import told
from verify_attention.search.writing import document, text

__all__ = ["Found", "Hunt", "Reduced", "document", "hunt", "in_a_line", "reduced", "smallest_cases", "text", "told"]
