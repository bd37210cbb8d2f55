"""What is said of a counterexample: comments above its YAML, so that what is printed can be a case's file as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from verify_attention.search.reducing import Reduced
from verify_attention.search.writing import WIDEST, text
from verify_attention.wording import printable


def told(small: Reduced, name: str, again: Sequence[str], width: int = WIDEST, of: str = "") -> str:
    """Return a counterexample as YAML, below comments: what breaks for whom, where, and how to see it again.

    `of` names the case that it was made of.
    """
    finding = small.finding
    verb = "crashes" if finding.status == "crashed" else "breaks"
    made_of = f", on a case made of {of}" if of else ""
    said = [f"{finding.invariant} {verb} for {name}{made_of}"]
    said += _indented(printable(finding.reason or "no reason is known"), width)
    if small.stopped:
        said.append(f"  {small.stopped}")
    said += [f"  again: {command}" for command in again]
    return "".join(f"# {line}\n" for line in said) + text(small.case)


def _indented(reason: str, width: int) -> list[str]:
    return textwrap.wrap(
        reason,
        min(width, WIDEST) - 2,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
