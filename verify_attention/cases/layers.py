"""Reduce a whole layer to a case: tokens and the weights of linear layers become queries, keys, values and biases.

A layer with key-value heads has q = x·W_Q, keys = context·W_K and values = context·W_V, cut into heads. In latent
attention (MLA) a latent c is stored of each token beside a position part that all heads share: keys are
[context·W_KR | c·W_UK], values c·W_UV. Every sum is exact and rounded once: a case is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from verify_attention.cases.arrays import Axis, Flaws
from verify_attention.model import Array, Latent
from verify_attention.products import exact_product
from verify_attention.wording import Path, count, join

FOLLOWS = ("q", "keys", "values", "bQ", "bK", "bV", "W_O", "latent")
_OF_LATENTS = ("latent", "W_DKV", "W_UK", "W_UV", "W_KR")
_OF_HEADS = ("kv_heads", "W_K", "W_V")

Read: TypeAlias = Callable[[Path, tuple[Axis, ...], tuple[int, ...]], "Array | None"]


class Layer(NamedTuple):
    """What is known of a layer: its sizes by their letters, and its arrays, if nothing is wrong, by their names."""

    axes: dict[str, Axis]
    arrays: dict[str, Array]
    latent: Latent | None = None


def of_one_form(document: dict[str, Any], flaws: Flaws) -> dict[str, Any]:
    """Return a document whose `projections` are of one form; what is of the other, the less of it, is a flaw."""
    given = document.get("projections")
    if not isinstance(given, dict):
        return document
    heads = "a layer with key-value heads", [name for name in _OF_HEADS if name in given]
    latents = "latent attention", [name for name in _OF_LATENTS if name in given]
    (other, stray), (kind, kept) = sorted((latents, heads), key=lambda form: len(form[1]))
    if not stray:
        return document
    beside = f"{join(kept)}, which {'is' if len(kept) == 1 else 'are'} of {kind}"
    flaws += [(("projections", name), f"is of {other}, beside {beside}; give one or the other") for name in stray]
    return {**document, "projections": {name: value for name, value in given.items() if name not in stray}}


def layer_of(document: dict[str, Any], width: Axis, read: Read, flaws: Flaws) -> Layer:
    """Return the layer that a document's `projections` describe; what is wrong with it is added to `flaws`.

    `width` is d_k; `read` reads an array of the document at a path, with its axes and levels of lists.
    """
    said = "stands beside projections, from which it follows; give one or the other"
    flaws += [((name,), said) for name in FOLLOWS if document.get(name) is not None]
    given = document["projections"]
    if not isinstance(given, dict):
        return Layer(_axes(None, None, None, None, width, None), {})
    before = len(flaws)
    reader = _Reader(given, width, read, flaws)
    matrices = reader.latent_layer() if any(name in given for name in _OF_LATENTS) else reader.layer()
    arrays, latent = reader.reduced() if matrices and len(flaws) == before else ({}, None)
    return Layer(reader.axes(), arrays, latent)


def _axes(
    heads: int | None, kv_heads: int | None, rows: int | None, keys: int | None, width: Axis, value_width: int | None
) -> dict[str, Axis]:
    sizes = {"H": heads, "G": kv_heads, "Tq": rows, "Tk": keys, "d_v": value_width}
    units = {"H": "heads", "G": "key-value heads", "Tq": "rows of queries", "Tk": "keys", "d_v": "numbers in a value"}
    known = {
        letter: "" if size is None else f"the layer has {count(size, units[letter])}" for letter, size in sizes.items()
    }
    plain = {"H": "heads", "G": "heads", "Tq": "rows", "Tk": "rows", "d_v": "numbers"}
    axes = {letter: Axis(letter, plain[letter], size, known[letter]) for letter, size in sizes.items()}
    return {**axes, "d_k": width}


class _Reader:
    """The arrays of one `projections`, read with what is known of their sizes so far."""

    def __init__(self, given: dict[str, Any], width: Axis, read: Read, flaws: Flaws) -> None:
        self._given, self._width, self._read_array, self._flaws = given, width, read, flaws
        self._found: dict[str, Array] = {}
        self._heads = _whole(given.get("heads"))
        self._kv_heads = _whole(given.get("kv_heads", given.get("heads")))
        self._values = ""
        self._read("x", Axis("Tq", "rows"), Axis("d_model", "numbers"))
        self._source = "context" if "context" in given else "x"
        if self._source == "context":
            self._read("context", Axis("Tk", "rows"), Axis("d_context", "numbers"))
        self._read("W_Q", self._columns_of("x", "d_model"), self._shared("H·d_k", self._heads, width.size, "d_k"))

    def layer(self) -> bool:
        """Read a layer with key-value heads; say whether everything was there."""
        heads, kv_heads = self._heads, self._kv_heads
        if heads and kv_heads and heads % kv_heads:
            self._say("kv_heads", f"is {kv_heads}, heads is {heads}; H must be a multiple of G")
            self._kv_heads = None
        rows = self._columns_of(self._source, "d_context")
        self._read("W_K", rows, self._shared("G·d_k", self._kv_heads, self._width.size, "d_k"))
        self._read("W_V", rows, Axis("G·d_v", "numbers"))
        return self._rest("W_V", "G", ("x", "W_Q", "W_K", "W_V"))

    def latent_layer(self) -> bool:
        """Read a layer of latent attention; say whether everything was there."""
        self._kv_heads = self._heads
        rows = self._columns_of(self._source, "d_context")
        positions = self._read("W_KR", rows, Axis("d_r", "numbers"))
        turned = None if positions is None else positions.shape[1]
        left = self._width.size - turned if self._width.size and turned else None
        if left is not None and left < 1:
            found = f"has {count(turned or 0, 'numbers')} in each row, d_k is {self._width.size}"
            self._say("W_KR", f"{found}; at least one channel of keys must come from W_UK")
            left = None
        made = "latent" if "latent" in self._given else "W_DKV"
        if "latent" in self._given:
            size = self._size(self._source, 0)
            known = f"{self._source} has {count(size or 0, 'rows')}"
            self._read("latent", Axis("Tk", "rows", size, known), Axis("d_c", "numbers"))
            if "W_DKV" in self._given:
                self._say("W_DKV", "stands beside latent, which would follow from it; give one or the other")
        else:
            self._read("W_DKV", rows, Axis("d_c", "numbers"))
        up = self._columns_of(made, "d_c")
        self._read("W_UK", up, self._shared("H·d_n", self._heads, left, "d_n = d_k − d_r"))
        self._read("W_UV", up, Axis("H·d_v", "numbers"))
        return self._rest("W_UV", "H", ("x", "W_Q", "W_KR", made, "W_UK", "W_UV"))

    def _rest(self, values: str, letter: str, needed: tuple[str, ...]) -> bool:
        """Read what both forms have: the biases and W_O."""
        heads, kv_heads, width = self._heads, self._kv_heads, self._width.size
        size = self._size(values, 1)
        if size and kv_heads and size % kv_heads:
            found = f"has {count(size, 'numbers')} in each row"
            self._say(values, f"{found}, {count(kv_heads, 'heads')} ({letter}) need a multiple of {kv_heads}")
        own = self._value_width(values)
        self._values = values
        for name, axis in (
            ("bQ", self._shared("H·d_k", heads, width, "d_k")),
            ("bK", self._shared(f"{letter}·d_k", kv_heads, width, "d_k")),
            ("bV", self._shared(f"{letter}·d_v", kv_heads, own, "d_v")),
        ):
            self._read(name, axis)
        if "W_O" in self._given:
            joined = self._shared("H·d_v", heads, own, "d_v")
            self._read("W_O", joined._replace(unit="rows"), Axis("d_out", "numbers"))
        return {*needed} <= self._found.keys() and None not in (heads, kv_heads, width, own)

    def axes(self) -> dict[str, Axis]:
        """Return every size as far as it is known."""
        rows, keys = self._size("x", 0), self._size(self._source, 0)
        return _axes(self._heads, self._kv_heads, rows, keys, self._width, self._value_width(self._values))

    def reduced(self) -> tuple[dict[str, Array], Latent | None]:
        """Return queries, keys, values, biases and W_O at their full depth, and the latent where there is one."""
        found, heads, kv_heads = self._found, self._heads or 1, self._kv_heads or 1
        context = found[self._source]
        arrays = {"q": _cut(self._product("x", "W_Q"), heads)}
        latent = None
        if "W_UK" in found:
            c = found["latent"] if "latent" in found else self._product(self._source, "W_DKV")
            positions = np.broadcast_to(
                self._product(self._source, "W_KR"), (heads, len(context), len(found["W_KR"][0]))
            )
            latent = Latent(c, _cut(found["W_UK"], heads), _cut(found["W_UV"], heads))
            rest = _cut(self._product("latent", "W_UK", c), heads)
            arrays["keys"] = np.concatenate([positions, rest], axis=-1)
            arrays["values"] = _cut(self._product("latent", "W_UV", c), heads)
        else:
            arrays["keys"] = _cut(self._product(self._source, "W_K"), kv_heads)
            arrays["values"] = _cut(self._product(self._source, "W_V"), kv_heads)
        width = self._width.size or 1
        arrays["bQ"] = found.get("bQ", np.zeros(heads * width)).reshape(heads, width)
        arrays["bK"] = found.get("bK", np.zeros(kv_heads * width)).reshape(kv_heads, width)
        if "bV" in found:
            arrays["bV"] = found["bV"].reshape(kv_heads, -1)
        if "W_O" in found:
            arrays["W_O"] = found["W_O"].reshape(heads, -1, found["W_O"].shape[1])
        return arrays, latent

    def _product(self, left: str, right: str, array: Array | None = None) -> Array:
        """Multiply tokens and a matrix, with a flaw at the matrix where float64 does not hold the result."""
        tokens = self._found[left] if array is None else array
        with np.errstate(all="ignore"):
            product = exact_product(tokens, self._found[right])
        if not np.isfinite(product).all():
            self._say(right, f"its products with {left} are beyond float64")
        return product

    def _read(self, name: str, *axes: Axis) -> Array | None:
        if name not in self._given:
            return None
        array = self._read_array(("projections", name), axes, (len(axes),))
        if array is not None:
            self._found[name] = array
        return array

    def _say(self, name: str, message: str) -> None:
        self._flaws.append((("projections", name), message))

    def _size(self, name: str, axis: int) -> int | None:
        return self._found[name].shape[axis] if name in self._found else None

    def _columns_of(self, name: str, letter: str) -> Axis:
        """Return the axis of a matrix by which something with rows is multiplied."""
        size = self._size(name, 1)
        return Axis(letter, "rows", size, f"{name} has {count(size or 0, 'numbers')} in each row")

    def _shared(self, letter: str, heads: int | None, each: int | None, what: str) -> Axis:
        """Return an axis on which heads stand side by side."""
        if heads is None or each is None:
            return Axis(letter, "numbers")
        return Axis(letter, "numbers", heads * each, f"{count(heads, 'heads')} of {each} ({what}) make {heads * each}")

    def _value_width(self, values: str) -> int | None:
        size, heads = self._size(values, 1), self._kv_heads
        return size // heads if size and heads and size % heads == 0 else None


def _whole(value: Any) -> int | None:
    """Return a number of heads, None for what is none: the schema says why."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value < 2**31 and value % 1 == 0 else None


def _cut(flat: Array, heads: int) -> Array:
    """Cut columns into heads: `[heads, n, w]` from `[n, heads·w]`."""
    return np.ascontiguousarray(flat.reshape(len(flat), heads, -1).swapaxes(0, 1))
