"""A case: one synthetic input, its conditions and its blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from verify_attention.model.basics import Array, Condition, Expectation, Indices
from verify_attention.model.precision import FLOAT64, Precision

BLOCK = 2**19  # scores; a larger case is judged in blocks of about as many


@dataclass(frozen=True)
class Published:
    """Printed numbers: `numbers[quantity][condition]` is an array `[H, Tq, Tk]` (output: `[H, Tq, d_v]`)."""

    decimals: int
    numbers: Mapping[str, Mapping[Condition, Array]]

    @property
    def limit(self) -> float:
        """How far a number may be from its printed form: half a unit of the last decimal, and a little."""
        return 0.5 * 10.0**-self.decimals + 1e-12


@dataclass(frozen=True, eq=False)
class Latent:
    """What multi-head latent attention stores of each token, and how every head reads it.

    The last d_n channels of head h's keys are c·W_UK[h]; the first d_r = d_k − d_n, which carry positions, are the same
    in all heads. Its values are c·W_UV[h]. There are as many key-value heads as query heads.
    """

    c: Array  # [Tk, d_c]
    W_UK: Array  # [H, d_c, d_n]
    W_UV: Array  # [H, d_c, d_v]


@dataclass(frozen=True, eq=False)
class Posed:
    """How a case is put to a function that takes arrays; what does not take them has nothing to do with it.

    `company` are other samples of the same batch, and the case sits at `seat` among them; they have its shapes and
    options, and numbers and masks of their own. `layout` says how the arrays lie in memory: one after the other, every
    second number of a larger array, with heads behind rows, or with one sample that is repeated. With `zeros` a bias
    of zeros is given, and not left out. `after` is a case of the same shapes that is asked about first: the arrays are
    its own, with the numbers of this case written over them.
    """

    company: tuple[Case, ...] = ()
    seat: int = 0
    layout: Literal["contiguous", "strided", "transposed", "broadcast"] = "contiguous"
    zeros: bool = False
    after: Case | None = None


def _leaves(parameters: Mapping[str, Any]) -> Iterator[Any]:
    for value in parameters.values():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield value


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """One synthetic input. Arrays are read-only float64.

    `values` is None where the case gives none: the identity, whose output is the weights. `features` holds the
    parameters of each departure from plain attention by its name, arrays at their full depth and every default filled
    in. `W_O` and `latent` are there where the case is a whole layer, or latent attention; the core of attention knows
    nothing of them. A block of a large case is a case too: it knows the `whole` and where its heads and rows begin
    there.
    """

    id: str
    q: Array  # [H, Tq, d_k]
    keys: Array  # [G, Tk, d_k]
    bQ: Array  # [H, d_k]
    bK: Array  # [G, d_k]
    scale: float
    values: Array | None = None  # [G, Tk, d_v]
    bV: Array | None = None  # [G, d_v]
    W_O: Array | None = None  # [H, d_v, d_out]
    latent: Latent | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    published: Published | None = None
    title: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    file: str = ""  # as results name it: relative
    path: str = ""  # as the user named it; empty for a shipped case and for one that is from no file
    line: int = 1
    sha256: str = ""
    precision: Precision = FLOAT64  # in which the implementation computes, and in which it gets the arrays
    posed: Posed = field(default_factory=Posed)
    whole: Case | None = None
    first_head: int = 0
    first_row: int = 0
    condition: Condition | None = None  # set by `under`; any other change clears it
    _under: dict[Condition, Case] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._protect()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_under": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._protect()  # arrays come out of a pickle writable

    def _protect(self) -> None:
        latent = () if self.latent is None else (self.latent.c, self.latent.W_UK, self.latent.W_UV)
        own = (self.q, self.keys, self.bQ, self.bK, self.values, self.bV, self.W_O)
        for array in (*own, *latent, *_leaves(self.features)):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    @property
    def d_k(self) -> int:
        """The width of queries and keys."""
        return int(self.q.shape[-1])

    @property
    def d_v(self) -> int:
        """The width of values: Tk where the values are the identity."""
        return int(self.keys.shape[-2] if self.values is None else self.values.shape[-1])

    @property
    def scores_shape(self) -> tuple[int, int, int]:
        """The shape of scores and weights, `[H, Tq, Tk]`."""
        return self.q.shape[0], self.q.shape[1], self.keys.shape[1]

    @property
    def in_blocks(self) -> bool:
        """Whether the case is too large to be judged as a whole."""
        return math.prod(self.scores_shape) > BLOCK

    @property
    def kv_head(self) -> Indices:
        """For each query head the key-value head that it uses, `[H]`."""
        heads, kv_heads = len(self.q), len(self.keys)
        return np.arange(heads) // (heads // kv_heads)

    @property
    def key_shifts(self) -> Array | None:
        """The vector that each key gets besides the common bias, `[G, Tk, d_k]`."""
        return self.features.get("key_shifts")

    @property
    def aligned(self) -> Indices:
        """The position of each query on the key axis, `[Tq]`: the last query at the last key, unless upper-left."""
        rows = (self.whole or self).q.shape[1]
        first = 0 if self.features.get("causal") == "upper-left" else self.keys.shape[1] - rows
        return np.arange(self.q.shape[1]) + self.first_row + first

    def but(self, **changes: Any) -> Case:
        """Return a changed copy.

        Other keys or values do not follow from the latent, and W_O goes with the heads and the width that it is made
        for: what no longer fits is left out, unless it is given too.
        """
        if self.latent is not None and not changes.keys().isdisjoint({"keys", "values"}):
            changes = {"latent": None, **changes}
        changed = replace(self, **{"condition": None, **changes})
        if changed.W_O is None or "W_O" in changes or changed.W_O.shape[:2] == (len(changed.q), changed.d_v):
            return changed
        return replace(changed, W_O=None)

    def under(self, condition: Condition) -> Case:
        """Return the case with no bias, bQ only, bK only or both; the same object each time.

        Key shifts belong to the K side: they are there under `k` and `qk`. bV stays under all four.
        """
        if condition not in self._under:
            changes: dict[str, Any] = {"condition": condition}
            if "q" not in condition:
                changes["bQ"] = np.zeros_like(self.bQ)
            if "k" not in condition:
                changes["bK"] = np.zeros_like(self.bK)
                changes["features"] = {name: value for name, value in self.features.items() if name != "key_shifts"}
            self._under[condition] = self.but(**changes)
        return self._under[condition]
