"""Ask an implementation, and look at its answer before it is used."""

from __future__ import annotations

import numpy as np

from verify_attention.model import Case, Implementation, Trace


class CrashedError(Exception):
    """The implementation raised, or returned something unusable; the text says what."""


class NotOfferedError(Exception):
    """The implementation does not do what the case asks for; the text says what."""


class Attend:
    """An implementation that is asked once for each case, and whose answers are looked at before they are used.

    Raises, when called:
        CrashedError: the implementation raised or returned something unusable.
        NotOfferedError: the implementation raised NotImplementedError.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self._traces: dict[int, tuple[Case, Trace]] = {}

    def __call__(self, case: Case) -> Trace:
        """Return the implementation's trace."""
        if id(case) not in self._traces:
            self._traces[id(case)] = case, self._ask(case)
        return self._traces[id(case)][1]

    def _ask(self, case: Case) -> Trace:
        try:
            trace = self._implementation(case)
        except NotImplementedError as error:
            raise NotOfferedError(str(error) or "not implemented") from error
        except Exception as error:
            raise CrashedError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        _look_at(trace, case)
        return trace


def _look_at(trace: Trace, case: Case) -> None:
    if not isinstance(trace, Trace):
        raise CrashedError(f"returned {type(trace).__name__}, expected a Trace")
    heads, rows, keys = case.scores_shape
    shapes = {"scores": (heads, rows, keys), "weights": (heads, rows, keys), "lse": (heads, rows)}
    for name, array in {"output": trace.output, **trace.inside}.items():
        expected = shapes.get(name, (heads, rows, case.d_v))
        if not isinstance(array, np.ndarray):
            raise CrashedError(f"returned {type(array).__name__} as {name}, expected an array of shape {expected}")
        if array.dtype.kind not in "fiu":
            raise CrashedError(f"returned {array.dtype} numbers as {name}, expected real ones")
        if array.shape != expected:
            raise CrashedError(f"returned {name} of shape {array.shape}, expected {expected}")
