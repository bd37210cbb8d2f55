"""Arrays of numbers of another kind than floats, for which numpy's functions mean what they say.

They are arrays of Python objects. Sums, products and matrix products are numpy's own, which call the operators of the
elements; functions such as exp, and comparisons, are asked of the `Kind` of numbers. Whatever joins such an array, a
float, a whole number, another array, becomes a number of its kind first: floats are taken for what they are exactly.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np

from verify_attention.model import Verdict


class Told(NamedTuple):
    """What is told of two numbers that should be the same: by how much they differ, where they do."""

    verdict: Verdict
    difference: Decimal | None = None


LARGEST = Decimal(sys.float_info.max)  # the difference from an infinity
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isfinite"}
OPERATORS = {"add", "subtract", "multiply", "divide", "negative", "absolute", "square"} | COMPARISONS  # of Python


class NotExactError(ArithmeticError):
    """Something was asked of numbers that are not rounded which they do not have; the text says what."""


class Kind(Protocol):
    """A kind of numbers.

    `functions` has for the name of a numpy function what it makes of elements. `lift` takes in a Python or numpy
    number. `order` sorts indices by elements; `product` multiplies matrices `[…, n, d]` and `[…, d, m]`.
    """

    functions: Mapping[str, Callable[..., Any]]

    def use(self) -> None:
        """Get ready, where several kinds of numbers have something in common."""

    def lift(self, element: Any) -> Any:
        """Return an element as a number of this kind."""

    def order(self, elements: list[Any]) -> list[int]:
        """Return the indices of the elements from the smallest to the largest, equal ones in their order."""

    def product(self, left: Any, right: Any) -> Any:
        """Return the matrix product of two arrays of objects."""

    def highest(self, elements: list[Any]) -> int:
        """Return the index of an element that is the largest, or as good as that."""

    def told(self, left: Any, right: Any) -> Told:
        """Tell whether two numbers are the same."""

    def within(self, left: Any, right: Any, limit: Any) -> Told:
        """Tell whether two numbers are no farther apart than a limit."""

    def approximate(self, element: Any) -> float:
        """Return the float that is nearest, or nearly so."""

    def real(self, element: Any) -> Any:
        """Return the real part."""

    def imag(self, element: Any) -> Any:
        """Return the imaginary part."""


class Numbers(np.ndarray):
    """An array of numbers of one kind; `kind` is set by a subclass, see `array_of`."""

    kind: Kind

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """Call a numpy function on the elements."""
        given = [self._bare(each) for each in inputs]
        name = ufunc.__name__
        options = {option: value for option, value in options.items() if not _usual(option, value)}
        if not options.keys() <= {"axis", "keepdims"} or not isinstance(out, tuple | None) or method == "at":
            raise NotExactError(f"numpy's {name} with {', '.join(options) or method}")
        if out is not None and not isinstance(out[0], Numbers):
            raise NotExactError(f"the result of numpy's {name} was to be rounded")
        if name not in OPERATORS and name != "matmul" and name not in self.kind.functions:
            raise NotExactError(f"numpy's {name}")
        if name == "matmul":
            found = self.kind.product(*given)
        elif name in self.kind.functions:
            found = _called(_ufunc(self.kind.functions[name], ufunc.nin), method, given, options)
        else:
            found = getattr(ufunc, method)(*given, **options)
        if name in COMPARISONS:
            return np.asarray(found, dtype=bool)[()]
        if isinstance(found, np.ndarray) and found.dtype == bool:
            return found
        found = self._made(found)
        if out is None:
            return found
        target = out[0]
        target[...] = found
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call another function of numpy's, and take in what it returns."""
        found = super().__array_function__(function, types, args, kwargs)
        if not isinstance(found, np.ndarray):
            return found
        return self._made(found) if found.dtype == object else found.view(np.ndarray)

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """Return a copy as an array of objects; these numbers become no floats."""
        if np.dtype(dtype) != object:
            raise NotExactError(f"numbers were to become {np.dtype(dtype)}")
        return self.copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, self._bare(value))

    def _bare(self, value: Any) -> Any:
        """Return an array of objects of the kind."""
        if isinstance(value, Numbers):
            return value.view(np.ndarray)
        array = np.asarray(value)
        if array.dtype == bool:
            return array
        return self._lifted(array)

    def _lifted(self, array: Any) -> Any:
        found = np.empty(array.shape, dtype=object)
        flat, lift = found.reshape(-1), self.kind.lift
        for index, element in enumerate(array.reshape(-1).tolist()):
            flat[index] = lift(element)
        return found

    def _made(self, found: Any) -> Numbers:
        """Return elements as an array of this class."""
        if not isinstance(found, np.ndarray):
            single = np.empty((), dtype=object)
            single[()] = found
            found = single
        return self._lifted(found.view(np.ndarray)).view(type(self))

    def argmax(self, axis: Any = None, *_: Any, keepdims: bool = False, **__: Any) -> Any:
        """Return where the largest elements are."""
        return self._by_row(lambda row: [self.kind.highest(row)], axis, keepdims)

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """Return the order of the elements."""
        return self._by_row(self.kind.order, axis, True)

    def sort(self, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Sort in place."""
        self[...] = np.take_along_axis(self.copy(), self.argsort(axis), axis)

    def partition(self, _kth: Any, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Sort in place, which is a partition too."""
        self.sort(axis)

    def _by_row(self, chosen: Callable[[list[Any]], list[int]], axis: Any, keepdims: bool) -> Any:
        array = self.view(np.ndarray)
        if axis is None:
            return chosen(array.reshape(-1).tolist())[0]
        rows = np.moveaxis(array, axis, -1)
        flat = [chosen(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
        found = np.moveaxis(np.array(flat, dtype=np.intp).reshape(*rows.shape[:-1], -1), -1, axis)
        return found if keepdims else found.squeeze(axis)

    def any(self, axis: Any = None, *_: Any, keepdims: Any = False, **__: Any) -> Any:
        """Say whether some element is not 0."""
        return np.asarray(self != 0).any(axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *_: Any, keepdims: Any = False, **__: Any) -> Any:
        """Say whether every element is not 0."""
        return np.asarray(self != 0).all(axis=axis, keepdims=keepdims)

    @property  # type: ignore[misc]
    def real(self) -> Any:
        """The real parts."""
        return self._made(_ufunc(self.kind.real, 1)(self.view(np.ndarray)))

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        """The imaginary parts."""
        return self._made(_ufunc(self.kind.imag, 1)(self.view(np.ndarray)))


def _usual(option: str, value: Any) -> bool:
    """Say whether an option of a numpy function asks for nothing unusual."""
    if option in {"axis", "keepdims"}:
        return False
    return option in {"casting", "subok"} or value is None or (option == "where" and value is True)


def _called(function: Any, method: str, given: list[Any], options: dict[str, Any]) -> Any:
    """Call a function, or reduce by it: over several axes one after the other, as it is not known to commute."""
    if method != "reduce":
        return getattr(function, method)(*given, **options)
    (found,), keepdims, axis = given, options.get("keepdims", False), options.get("axis", 0)
    axes = range(found.ndim) if axis is None else np.atleast_1d(axis)
    for each in sorted((int(one) % found.ndim for one in axes), reverse=True):
        found = function.reduce(found, axis=each, keepdims=keepdims)
    return found


@functools.cache
def _ufunc(function: Callable[..., Any], count: int) -> Any:
    return np.frompyfunc(function, count, 1)


@functools.cache
def array_class(kind: Any) -> type[Numbers]:
    """Return the class of arrays of a `Kind` of numbers."""
    return type(f"{type(kind).__name__}Array", (Numbers,), {"kind": kind})


def array_of(kind: Kind, array: Any) -> Numbers:
    """Return floats as an array of a kind of numbers."""
    known: Callable[[Any], type[Numbers]] = array_class
    found: Any = np.empty(np.shape(array), dtype=object).view(known(kind))
    found[...] = array
    numbers: Numbers = found
    return numbers
