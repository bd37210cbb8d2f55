"""Ask an implementation, and look at its answer before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from traceback import extract_tb
from weakref import WeakKeyDictionary

import numpy as np

from verify_attention import wording
from verify_attention.model import Array, Case, CrashedError, Implementation, Trace, UnusableError

_PACKAGE = Path(__file__).resolve().parent.parent


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
        # By the case itself, as long as somebody holds it: claims pose many changed cases, one after the other.
        self._traces: WeakKeyDictionary[Case, Trace] = WeakKeyDictionary()

    def __call__(self, case: Case) -> Trace:
        """Return the implementation's trace."""
        if case not in self._traces:
            self._traces[case] = self._ask(case)
        return self._traces[case]

    def _ask(self, case: Case) -> Trace:
        try:
            trace = self._implementation(case)
        except NotImplementedError as error:
            raise NotOfferedError(_text(error) or "not implemented") from error
        except UnusableError as error:
            raise CrashedError(str(error)) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # one that leaves must not end the run as if all were well
            said = f"{type(error).__name__}: {_text(error)}".rstrip(": ")
            raise CrashedError(f"{said}{_place(error)}") from error
        return _own(trace, case)


def _place(error: BaseException) -> str:
    """Say where an exception comes from: the last place that is neither ours nor a library's, if there is one."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not _foreign(frame.filename)]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""


def _foreign(file: str) -> bool:
    return "site-packages" in file or Path(file).is_relative_to(_PACKAGE) or file.startswith("<")


def _text(error: BaseException) -> str:
    """Return what an exception says in a line, if it can say it."""
    try:
        return wording.printable(" ".join(str(error).split()))
    except Exception:  # noqa: BLE001 - it is the implementation's
        return ""


def _own(trace: Trace, case: Case) -> Trace:
    """Return a copy of a trace, in float64, after a look at what it holds.

    Raises:
        CrashedError: it is no trace, or an array in it is none, or of another kind or shape.

    """
    if not isinstance(trace, Trace):
        raise CrashedError(f"returned {type(trace).__name__}, expected a Trace")
    if not isinstance(trace.inside, Mapping):
        raise CrashedError(f"returned {type(trace.inside).__name__} as the inside of its trace, expected a mapping")
    heads, rows, keys = case.scores_shape
    shapes = {"scores": (heads, rows, keys), "weights": (heads, rows, keys), "lse": (heads, rows)}
    if case.W_O is not None:
        shapes["layer"] = (rows, case.W_O.shape[-1])
    unknown = sorted(map(str, trace.inside.keys() - shapes.keys()))
    if unknown:
        raise CrashedError(f"returned {', '.join(unknown)}, expected any of {', '.join(shapes)}")
    inside = {name: _array(name, array, shapes[name]) for name, array in trace.inside.items()}
    return Trace(_array("output", trace.output, (heads, rows, case.d_v)), inside, trace.arguments)


def _array(name: str, array: object, shape: tuple[int, ...]) -> Array:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise CrashedError(f"returned {type(array).__name__} as {name}, expected an array of shape {shape}")
    if array.dtype.kind not in "fiu":
        raise CrashedError(f"returned {array.dtype} numbers as {name}, expected real ones")
    if array.shape != shape:
        raise CrashedError(f"returned {name} of shape {array.shape}, expected {shape}")
    return np.array(array, dtype=np.float64)  # a copy: the next call may write into the same memory
