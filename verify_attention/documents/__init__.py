"""Read YAML files: values as the YAML 1.2 core schema has them, and where each key and value stands.

PyYAML's own loaders read `1e-3` as a text and `010` as eight, drop duplicate keys silently and know no limits; only
its parser is used here. Values are what `json` would give: None, bool, int, float, str, list, dict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from verify_attention import wording
from verify_attention.documents import number_rows, scalars
from verify_attention.documents.places import Node, Places, Text

if TYPE_CHECKING:
    from verify_attention.errors import Problem

MAX_DEPTH = 32
MAX_VALUES = 5_000_000
MAX_PROBLEMS = 1_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # both give the same events, the first ten times as fast

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]").search


@dataclass(frozen=True)
class Document:
    """One document of a file, and where its parts stand."""

    value: Any
    places: Places


def read_documents(data: bytes, file: str) -> tuple[list[Document], list[Problem]]:
    """Return the documents in a YAML file's bytes, and everything that is wrong with it as YAML.

    After a duplicate key, a tag or a merge key reading goes on; a syntax error ends it. `file` is the name that
    problems carry.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = Text(data.decode(), file)
    except UnicodeDecodeError as error:
        head = Text(data[: error.start].decode(), file)
        found = f"document: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        return [], [head.problem(len(head.text), found)]
    if bad := _FORBIDDEN(text.text):
        return [], [text.problem(bad.start(), f"document: character U+{ord(bad[0]):04X} is not allowed in YAML")]
    reader = _Reader(text, *number_rows.take_out(text.text))
    if reader.unmet and not reader.broken:
        reader = _Reader(text, *number_rows.take_out(text.text, only=reader.met))
    if reader.unmet or reader.broken:
        reader = _Reader(text, text.text, {})
    return reader.documents, reader.problems


class _StopError(Exception):
    """Reading cannot go on after this."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


class _Reader:
    """Reads a text once. `rows` are the rows of numbers that were taken out of `folded`, and `met` those found."""

    def __init__(self, text: Text, folded: str, rows: number_rows.Rows) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self.met: set[int] = set()
        self.broken = False
        self._text = text
        self._rows = rows
        self._next = _LOADER(folded).get_event
        self._values = 0
        self._path: list[str | int] = []
        # What an anchor names: the value, its node, how many values it has and how many levels.
        self._anchors: dict[str, tuple[Any, Node, int, int]] = {}
        self._open: set[str] = set()
        try:
            self._read()
        except _StopError as stop:
            self.problems.append(text.problem(stop.offset, f"{wording.place(tuple(self._path))}: {stop}"))
        except yaml.MarkedYAMLError as error:
            self.broken = True
            mark = error.problem_mark or error.context_mark
            message = " ".join(filter(None, (error.problem, error.context)))
            found = f"{wording.place(tuple(self._path))}: is no valid YAML here: {message}"
            self.problems.append(text.problem(getattr(mark, "index", 0), found))

    @property
    def unmet(self) -> bool:
        """Whether some of the rows taken out were no values, or reading ended before them."""
        return len(self.met) < len(self._rows)

    def _read(self) -> None:
        start = None
        while (kind := type(event := self._next())) is not yaml.StreamEndEvent:
            if kind is yaml.DocumentStartEvent:
                start = event.start_mark.index
                self._anchors.clear()
                value, node, _ = self._node(self._next(), 0)
                if value is None:
                    self._problem(start, "is empty, a case is a mapping")
                else:
                    self.documents.append(Document(value, Places(self._text, start, node)))
        if start is None:
            self._problem(0, "the file is empty, a case is a mapping")

    def _problem(self, offset: int, message: str) -> None:
        self.problems.append(self._text.problem(offset, f"{wording.place(tuple(self._path))}: {message}"))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _StopError(offset, f"has {MAX_PROBLEMS:,} problems; the rest was not read")

    def _count(self, offset: int, values: int = 1) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _StopError(
                offset, f"the file has more than {MAX_VALUES:,} values, aliases expanded; that many are allowed"
            )

    def _node(self, event: Any, depth: int) -> tuple[Any, Node, int]:
        """Return a value, its node and how many levels it has; `depth` levels are around it."""
        offset = event.start_mark.index
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event.anchor, offset, depth)
        if event.tag is not None:
            self._problem(offset, f"has the tag {_short(event.tag)}; tags are not allowed")
        self._count(offset)
        if kind is yaml.ScalarEvent and not event.anchor:
            return self._scalar(event, offset, depth)
        before = self._values - 1
        if event.anchor:
            self._open.add(event.anchor)
        if kind is yaml.ScalarEvent:
            value, node, levels = self._scalar(event, offset, depth)
        else:
            self._descend(offset, depth)
            value, node, levels = (self._list if kind is yaml.SequenceStartEvent else self._mapping)(offset, depth)
        if event.anchor:
            self._open.discard(event.anchor)
            self._anchors[event.anchor] = value, node, self._values - before, levels
        return value, node, levels

    def _alias(self, name: str, offset: int, depth: int) -> tuple[Any, Node, int]:
        if name in self._open:
            raise _StopError(offset, f"alias *{name} stands inside what it names; aliases must not be recursive")
        if name not in self._anchors:
            raise _StopError(offset, f"alias *{name} names nothing: no &{name} stands before it in the document")
        value, node, values, levels = self._anchors[name]
        if depth + levels > MAX_DEPTH:
            raise _StopError(
                offset, f"alias *{name} makes nesting deeper than {MAX_DEPTH} levels; that many are allowed"
            )
        self._count(offset, values)
        return value, node, levels

    def _descend(self, offset: int, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _StopError(offset, f"is nested deeper than {MAX_DEPTH} levels; that many are allowed")

    def _scalar(self, event: Any, offset: int, depth: int) -> tuple[Any, Node, int]:
        if offset in self._rows:
            self._descend(offset, depth)
            self.met.add(offset)
            row = self._rows[offset]
            self._count(offset, len(row))
            return row, offset, 1
        value = event.value
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _StopError(offset, "has half of a surrogate pair, which is no character")
        return (scalars.plain(value) if event.style in (None, "") else value), offset, 0

    def _list(self, offset: int, depth: int) -> tuple[list[Any], Node, int]:
        items: list[Any] = []
        nodes: list[Node] = [offset]
        deepest = 0
        self._path.append(0)
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            self._path[-1] = len(items)
            value, node, levels = self._node(event, depth + 1)
            items.append(value)
            nodes.append(node)
            deepest = max(deepest, levels)
        self._path.pop()
        return items, nodes, deepest + 1

    def _mapping(self, offset: int, depth: int) -> tuple[dict[str, Any], Node, int]:
        items: dict[str, Any] = {}
        keys: dict[str, int] = {}
        nodes: dict[str, Node] = {}
        deepest = 0
        while type(event := self._next()) is not yaml.MappingEndEvent:
            at = event.start_mark.index
            key = self._key(event, at, depth)
            self._path.append("?" if key is None else key)
            value, node, levels = self._node(self._next(), depth + 1)
            deepest = max(deepest, levels)
            if key in items:
                first = self._text.place(keys[key])[0]
                self._problem(at, f"stands here a second time, a key is allowed once; the first is in line {first}")
            elif key is not None:
                items[key], keys[key], nodes[key] = value, at, node
            self._path.pop()
        return items, (offset, keys, nodes), deepest + 1

    def _key(self, event: Any, offset: int, depth: int) -> str | None:
        """Return a key, or None where it is refused. Keys are read as texts: `1` and `"1"` are the same key."""
        before = self._values
        value, _, levels = self._node(event, depth + 1)
        self._values = before
        if type(event) is yaml.ScalarEvent and levels == 0:
            if event.value == "<<" and event.style in (None, ""):
                self._problem(offset, "has a merge key (<<), which is not allowed; write the keys out")
                return None
            return str(event.value)
        if isinstance(value, str):
            return value
        self._problem(offset, f"has {wording.describe(value)} as a key; keys are texts")
        return None


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
