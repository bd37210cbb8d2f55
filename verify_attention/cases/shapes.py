"""The arrays of a document: their shapes depend on each other, so they are read one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_attention.cases import arrays, layers
from verify_attention.cases.arrays import Axis, Content
from verify_attention.departures import features_among
from verify_attention.model import CONDITIONS, QUANTITIES, Array, Case, Feature, Latent
from verify_attention.validation.skeletons import finite
from verify_attention.wording import Path, count

MOST_ROWS = 3  # of those that are named


class Shapes:
    """The arrays of a document by their paths, nested as they are there, and how their shapes disagree."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.flaws: arrays.Flaws = []
        self._document = layers.of_one_form(document, self.flaws)
        self._judged: dict[Path, Any] = {}
        self._arrays: dict[Path, Array] = {}
        width = self._width()
        self._latent: Latent | None = None
        axes = self._read_layer(width) if "projections" in document else self._read_attention(width)
        self._read_published(axes)
        self._read_features(axes)

    def _read_layer(self, width: Axis) -> dict[str, Axis]:
        """Read a whole layer, and return its sizes."""
        layer = layers.layer_of(self._document, width, self._read, self.flaws)
        self._arrays |= {(name,): array for name, array in layer.arrays.items()}
        self._latent = layer.latent
        return layer.axes

    def _read_attention(self, width: Axis) -> dict[str, Axis]:
        """Read queries, keys, values, biases and what stands beside them, and return their sizes."""
        self._read(("q",), (Axis("H", "heads"), Axis("Tq", "rows"), width), (1, 2, 3))
        self._read(("keys",), (Axis("G", "heads"), Axis("Tk", "rows"), width), (2, 3))
        heads, kv_heads = self._axis("H", "heads", "q", 3), self._axis("G", "heads", "keys", 3)
        if heads.size and kv_heads.size and heads.size % kv_heads.size:
            many = count(kv_heads.size, "heads")
            self.flaws.append((("keys",), f"has {many}, {heads.known}; H must be a multiple of G"))
            kv_heads = Axis("G", "heads")
        self._read(("bQ",), (heads, width), (1, 2))
        self._read(("bK",), (kv_heads, width), (1, 2))
        keys = self._axis("Tk", "rows", "keys", 2)
        value_levels = (self._arrays[("keys",)].ndim,) if ("keys",) in self._arrays else (2, 3)
        self._read(("values",), (kv_heads, keys, Axis("d_v", "numbers")), value_levels)
        value_width = self._value_width(keys)
        self._read(("bV",), (kv_heads, value_width), (1, 2))
        self._read(("W_O",), (heads, value_width._replace(unit="rows"), Axis("d_out", "numbers")), (3,))
        self._read_latent(heads, keys, value_width)
        rows = self._axis("Tq", "rows", "q", 2)
        return {"H": heads, "G": kv_heads, "Tq": rows, "Tk": keys, "d_k": width, "d_v": value_width}

    def _read_latent(self, heads: Axis, keys: Axis, value_width: Axis) -> None:
        """Read what latent attention stores, and how heads read it."""
        c = self._read(("latent", "c"), (keys, Axis("d_c", "numbers")), (2,))
        known = "" if c is None else f"c has {count(c.shape[1], 'numbers')} in each row"
        stored = Axis("d_c", "rows", None if c is None else c.shape[1], known)
        W_UK = self._read(("latent", "W_UK"), (heads, stored, Axis("d_n", "numbers")), (3,))
        W_UV = self._read(("latent", "W_UV"), (heads, stored, value_width), (3,))
        if c is not None and W_UK is not None and W_UV is not None:
            self._latent = Latent(c, W_UK, W_UV)

    def latent(self) -> Latent | None:
        """Return what latent attention stores; None where the case is none."""
        return self._latent

    def rest(self) -> dict[str, Any]:
        """Return the document with a small array in the place of each that was judged here, good or bad.

        So the schema neither repeats what was said of them nor walks millions of numbers.
        """
        rest = dict(self._document)
        for path, stand_in in self._judged.items():
            inner: dict[Any, Any] = rest
            for step in path[:-1]:
                inner[step] = inner = dict(inner[step])
            inner[path[-1]] = stand_in
        return rest

    def parameters(self, feature: Feature, given: Any, case: Case) -> Any:
        """Return a feature's parameters, with its arrays at their full depth: what is given once is repeated."""
        sizes = {"H": len(case.q), "G": len(case.keys), "Tq": case.q.shape[1], "Tk": case.keys.shape[1]}
        sizes |= {"d_k": case.d_k, "d_v": case.d_v}
        parameters = dict(given) if isinstance(given, dict) else given
        for path, shape in feature.arrays.items():
            array = self._arrays.get(("features", feature.name, *path))
            if array is None:
                continue
            whole = np.broadcast_to(array, [sizes[letter] for letter in shape.axes]).copy()
            if path:
                parameters[path[0]] = whole
            else:
                parameters = whole
        return parameters

    def optional(self, path: Path, of: str, axes: int) -> Array | None:
        """Return an array as `heads` does, None where the document has none."""
        return self.heads(path, of, axes) if path in self._arrays else None

    def heads(self, path: Path, of: str, axes: int) -> Array:
        """Return an array with `axes` axes, the first as long as that of `of`: what is given once is repeated."""
        array = self._arrays[path]
        whole = array.reshape((1,) * (axes - array.ndim) + array.shape)
        size = self._size(of, 3) or 1
        return whole if len(whole) == size else np.broadcast_to(whole, (size, *whole.shape[1:])).copy()

    def _read(
        self, path: Path, axes: tuple[Axis, ...], levels: tuple[int, ...], of: Content = "numbers"
    ) -> Array | None:
        """Read one array, where the document has it; None where it has none that is right."""
        value: Any = self._document
        for step in path:
            if not isinstance(value, dict) or step not in value:
                return None
            value = value[step]
        if value is None and path in {("values",), ("bV",)}:
            return None
        if 0 in levels and not isinstance(value, list):
            return None  # the schema judges it
        stand_in: Any = True if of == "flags" else 0
        for _ in range(max(levels[0], 1)):
            stand_in = [stand_in]
        self._judged[path] = stand_in
        array = arrays.read(value, path, axes, levels, self.flaws, of)
        if array is None:
            return None
        self._arrays[path] = array
        if of == "flags":
            name = self._document.get("name")
            self.flaws += _blind(path, array, f" in {name}" if isinstance(name, str) else "")
        return array

    def _read_features(self, axes: dict[str, Axis]) -> None:
        """Read the arrays among the parameters of features; names and anything else are the schema's."""
        given = self._document.get("features")
        for each in features_among(given) if isinstance(given, dict) else ():
            for path, shape in each.arrays.items():
                *outer, last = (axes[letter] for letter in shape.axes)
                innermost = last._replace(unit="flags" if shape.flags else "numbers")
                self._read(
                    ("features", each.name, *path),
                    (*outer, innermost),
                    shape.levels,
                    "flags" if shape.flags else "numbers",
                )

    def _read_published(self, axes: dict[str, Axis]) -> None:
        levels = (self._arrays[("q",)].ndim,) if ("q",) in self._arrays else (1, 2, 3)
        keys = axes["Tk"]._replace(unit="numbers")
        for quantity in QUANTITIES:
            width = axes["d_v"] if quantity == "output" else keys
            for condition in CONDITIONS:
                of: Content = "scores" if quantity == "scores" else "numbers"
                self._read(("published", quantity, condition), (axes["H"], axes["Tq"], width), levels, of)

    def _size(self, name: str, from_end: int) -> int | None:
        """Return the length of an axis of an array, counted from its last; None where the array could not be read."""
        array = self._arrays.get((name,))
        if array is None:
            return None
        return array.shape[-from_end] if from_end <= array.ndim else 1

    def _axis(self, letter: str, unit: str, of: str, from_end: int) -> Axis:
        size = self._size(of, from_end)
        where = " in each row" if from_end == 1 else ""
        return Axis(letter, unit, size, "" if size is None else f"{of} has {count(size, unit)}{where}")

    def _value_width(self, keys: Axis) -> Axis:
        if self._document.get("values") is None:
            known = f"{keys.known}, and without values the output has a number for each"
            return Axis("d_v", "numbers", keys.size, known)
        return self._axis("d_v", "numbers", "values", 1)

    def _width(self) -> Axis:
        """Return the width of queries and keys: d_k, or where all four arrays agree against it, theirs."""
        d_k = self._document.get("d_k")
        if isinstance(d_k, bool) or not isinstance(d_k, int | float) or not (finite(d_k) and d_k >= 1 and d_k % 1 == 0):
            return Axis("d_k", "numbers")  # the schema says why
        widths = {_first_width(self._document.get(name)) for name in ("q", "keys", "bQ", "bK")}
        if len(widths) == 1 and widths.isdisjoint({0, d_k}):
            found = count(widths.pop(), "numbers")
            self.flaws.append((("d_k",), f"is {d_k}, but q, keys, bQ and bK have {found} in each row"))
            return Axis("d_k", "numbers")
        return Axis("d_k", "numbers", int(d_k), f"d_k is {int(d_k)}")


def _blind(path: Path, mask: Array, name: str) -> arrays.Flaws:
    """Return the rows of a mask that let nothing through."""
    rows = np.argwhere(~mask.any(axis=-1)).tolist()
    more = f"; nor do {len(rows) - MOST_ROWS} more rows" if len(rows) > MOST_ROWS else ""
    said = f"each row must see at least one key{more}"
    return [((*path, *row), f"leaves no key visible to {_row(row)}{name}; {said}") for row in rows[:MOST_ROWS]]


def _row(place: list[int]) -> str:
    """Name a row of a mask by its place there: of a head, of every head, or every row."""
    if not place:
        return "any row"
    return f"row {place[-1]} of head {place[0]}" if len(place) > 1 else f"row {place[0]} of any head"


def _first_width(value: Any) -> int:
    """Return the length of the first row of nested lists, 0 where there is none."""
    width = 0
    while isinstance(value, list):
        width = len(value)
        value = value[0] if value else None
    return width
