"""Where things stand in a text: lines and columns, 1-based, in characters."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, TypeAlias

from verify_attention import wording
from verify_attention.documents import number_rows
from verify_attention.errors import Problem

# Where a value stands: a scalar or a row of numbers: its offset; a list: [offset, *nodes]; a mapping: (offset,
# {key: offset of the key}, {key: node}). Offsets, because lines and columns are needed only where something is wrong.
Node: TypeAlias = Any

_BREAK = re.compile(r"\r\n|\r|\n")


class Text:
    """A file's text that knows its lines."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._lines: list[int] = []

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset."""
        if not self._lines:
            self._lines = [0, *(match.end() for match in _BREAK.finditer(self.text))]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def problem(self, offset: int, message: str) -> Problem:
        """Return a problem at an offset."""
        return Problem(self.file, *self.place(offset), message)


class Places:
    """Where the keys and values of one document stand."""

    def __init__(self, text: Text, start: int, node: Node) -> None:
        self._text = text
        self._start = start
        self._node = node

    def document(self) -> tuple[int, int]:
        """Return the line and column where the document begins: its `---`, or its first key."""
        return self._text.place(self._start)

    def value(self, path: wording.Path) -> tuple[int, int]:
        """Return the line and column where the value at `path` begins, or what is around it where it is not there."""
        return self._text.place(self._offset(path))

    def key(self, path: wording.Path) -> tuple[int, int]:
        """Return the line and column of the last key of `path`."""
        parent = self._node
        for step in path[:-1]:
            parent = _child(parent, step)
        return self._text.place(parent[1][path[-1]])

    def _offset(self, path: wording.Path) -> int:
        node = self._node
        for step in path:
            if isinstance(node, int):
                return number_rows.where(self._text.text, node, int(step))
            if isinstance(node, tuple) and step not in node[2]:
                break  # a default
            node = _child(node, step)
        return node if isinstance(node, int) else int(node[0])


def _child(node: Node, step: str | int) -> Node:
    return node[2][step] if isinstance(node, tuple) else node[int(step) + 1]
