"""Lines of a terminal: broken where the language breaks them, at columns and not at letters."""

from __future__ import annotations

import re

WHOLE = "\xa0"  # a blank at which no line is broken
WIDE = (
    "[\u2e80-\u9fff\uff00-\uffef]"  # letters beside which Japanese breaks its lines, but for those that hang together
)
_HANG_ON = r"、。，．・：；？！」』）］｝ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ·,.:;?!)\]}"
_BREAKS = re.compile(rf"(?=[ ])|(?:(?<={WIDE})(?=\S)|(?<=\S)(?={WIDE}))(?<![「『（［｛(\[{{])(?![{_HANG_ON}])")


def wrapped(text: str, columns: int) -> str:
    """Break long lines at a width, and go on below their text."""
    lines = [part for line in text.splitlines() for part in _broken(line, columns)]
    return "".join(f"{line.rstrip()}\n" for line in lines).replace(WHOLE, " ")


def _broken(line: str, columns: int) -> list[str]:
    """Return a line as several; textwrap takes a letter for a column, and Japanese for one long word."""
    from rich.cells import cell_len  # noqa: PLC0415

    body = line.lstrip(" -")
    start = line[: len(line) - len(body)]
    lines = [start]
    for piece in _BREAKS.split(body):
        if lines[-1] != start and cell_len(lines[-1] + piece) > columns:
            lines.append(" " * max(2, len(start)) + piece.lstrip(" "))
        else:
            lines[-1] += piece
    return lines
