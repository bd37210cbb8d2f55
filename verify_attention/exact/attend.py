"""The core of attention on numbers that are not rounded, asked once for each case."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary, ref

import numpy as np

from verify_attention.model import Array, Case, Trace
from verify_attention.pipeline import CORE

_WITHOUT_OUTPUT = CORE.but(mix=lambda case, _weights: np.zeros((*case.scores_shape[:2], case.d_v)))


class _Later(Trace):
    """A trace that mixes the values only when its output is asked for: that takes longer than all else."""

    _case: ref[Case]

    def __init__(self, case: Case) -> None:
        object.__setattr__(self, "_case", ref(case))  # the case is remembered by who asks
        object.__setattr__(self, "arguments", None)
        object.__setattr__(self, "inside", _WITHOUT_OUTPUT(case if case.W_O is None else case.but(W_O=None)).inside)

    @cached_property
    def _whole(self) -> Trace:
        case = self._case()
        if case is None:
            raise ReferenceError("the case has gone")
        return CORE(case)

    @property
    def output(self) -> Array:
        return self._whole.output

    @property
    def layer(self) -> Array:
        return self._whole.layer


class ExactCore:
    """The core, which remembers its traces as long as somebody holds the case."""

    def __init__(self) -> None:
        self._traces: WeakKeyDictionary[Case, Trace] = WeakKeyDictionary()

    def __call__(self, case: Case) -> Trace:
        """Return the trace of a case."""
        if case not in self._traces:
            self._traces[case] = _Later(case)
        return self._traces[case]
