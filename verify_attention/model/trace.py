"""A trace, and the one seam: an implementation makes a trace of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from verify_attention.model.basics import Array
from verify_attention.model.case import Case


class NotShownError(Exception):
    """An implementation does not show this part of its trace; the text is the part's name."""


class CrashedError(Exception):
    """The implementation raised, or returned something unusable; the text says what."""


class UnusableError(Exception):
    """What an implementation returned is of no use; the text says what it is, and what was expected."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What an implementation shows for a case: the output, and where it can, scores, weights and LSE.

    output `[H, Tq, d_v]`; scores (what enters the exponential) and weights `[H, Tq, Tk]`; lse, the logarithm of each
    row's sum of exponentials, `[H, Tq]`; layer, the heads put together through W_O where the case has one,
    `[Tq, d_out]`. Results do not hold the layer. `arguments` are the arrays that a function was given, before the call
    and after it, each `[H or G or 1, T or 1, n]`; None for what takes no arrays.
    """

    output: Array
    inside: Mapping[str, Array] = field(default_factory=dict)
    arguments: Mapping[str, tuple[Array, Array]] | None = None

    def _shown(self, name: str) -> Array:
        if name not in self.inside:
            raise NotShownError(name)
        return self.inside[name]

    @property
    def scores(self) -> Array:
        """What enters the exponential, `[H, Tq, Tk]`."""
        return self._shown("scores")

    @property
    def weights(self) -> Array:
        """The share of each key, `[H, Tq, Tk]`."""
        return self._shown("weights")

    @property
    def lse(self) -> Array:
        """The logarithm of each row's sum of exponentials, `[H, Tq]`."""
        return self._shown("lse")

    @property
    def layer(self) -> Array:
        """The concatenation of the heads' outputs, times W_O, `[Tq, d_out]`."""
        return self._shown("layer")


Implementation: TypeAlias = Callable[[Case], Trace]
