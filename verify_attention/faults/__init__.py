"""Mistakes seen in real attention code, as functions of arrays that anybody might have written: one kind a file.

They know nothing of cases and claims, so that a claim cannot have been made for them.
"""

from verify_attention.faults._making import Kind

__all__ = ["Kind"]
