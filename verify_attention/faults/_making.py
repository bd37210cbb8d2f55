"""How a mistake is made: one step of a right kernel, swapped."""

from __future__ import annotations

from typing import Any, NamedTuple

from verify_attention.functions import Asked
from verify_attention.kernel import attention
from verify_attention.model import Fault


class Kind(NamedTuple):
    """Mistakes of one kind, in the order in which they are told."""

    title: str
    faults: tuple[Fault, ...]


def mistake(what: str, **steps: Any) -> Fault:
    """Return a fault whose implementation has some steps of the kernel swapped."""
    return Fault(what, Asked(attention.but(**steps)))
