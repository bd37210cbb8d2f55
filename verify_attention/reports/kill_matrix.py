"""The kill matrix: which invariant noticed which fault, as text for people and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from verify_attention import __version__
from verify_attention.reports.figures import COLOURS, counted
from verify_attention.reports.table import console
from verify_attention.wording import join

if TYPE_CHECKING:
    from verify_attention.selftest import Fate, Notice, Passage, SelfTest

SCHEMA = "verify-attention/self-test/1"
ROOM = 56  # for a mistake beside its marks; where there is less, they stand below it
BETWEEN = 8  # columns, with the count in them
MOST_COMPLAINTS = 3
LEGEND = "x noticed by the invariant of that number, X by the one that declares it, ! as a crash, . not noticed"


def render(
    result: SelfTest, *, width: int = 80, color: bool = False, verbose: bool = False, quiet: bool = False
) -> str:
    """Return the matrix as text of at most `width` columns: what went wrong first, the summary last."""
    screen, sink = console(width, color)
    shown = [] if quiet else [*_matrix(result, width, verbose), *_table(result), *_passages(result)]
    for line in (*_wrong(result), *shown):
        screen.print(line, soft_wrap=True)
    screen.print(summary(result), soft_wrap=True)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def summary(result: SelfTest) -> Text:
    """Return the last line: how many faults were killed, and how many variations passed."""
    faults, right = len(result.fates), len(result.passages)
    killed, passed = faults - len(result.survivors), right - len(result.blamed)
    parts = [f"{killed:,} of {counted(faults, 'fault')} killed"] if faults else []
    parts += [f"{passed:,} of {counted(right, 'correct variation')} pass"] if right else []
    word, style = ("PASS", COLOURS["pass"]) if result.passed else ("FAIL", COLOURS["fail"])
    return Text(word, style=style) + Text(f"  {', '.join(parts)}")


def _wrong(result: SelfTest) -> Iterator[Text]:
    """Say of each fault that survived, and of each variation that was blamed, how to look closer."""
    for fate in result.survivors:
        others = f"noticed by {join(sorted(fate.by))}, but not by its own claim" if fate.by else "noticed by nobody"
        yield Text("SURVIVES", style=COLOURS["fail"]) + Text(f"  {fate.kind}: {fate.mistake}")
        yield Text(f"  {others}; tried on {counted(fate.cases, 'case')}")
        yield Text(f"  again: verify-attention self-test -v --all -k {_quoted(fate.mistake)}\n")
    for passage in result.blamed:
        yield Text("BLAMED", style=COLOURS["fail"]) + Text(f"  {passage.name}, which is correct")
        for one in passage.complaints[:MOST_COMPLAINTS]:
            yield Text(f"  {one.invariant} on {one.case} is {one.status}: {one.reason}")
        said = len(passage.complaints)
        more = f"{counted(said, 'complaint')} in all; " if said > MOST_COMPLAINTS else ""
        nothing = "nothing was really checked; " if not passage.checked else ""
        yield Text(f"  {more}{nothing}again: verify-attention self-test -k {_quoted(passage.name)}\n")


def _quoted(text: str) -> str:
    from verify_attention.reports.figures import quoted  # noqa: PLC0415 - only where something went wrong

    return quoted(text)


def _matrix(result: SelfTest, width: int, verbose: bool) -> Iterator[Text]:
    """Yield a row for each fault, by kind: the mistake, how many noticed it, and a mark for each invariant."""
    ruler = _in_tens("".join(str(number % 10) for number in range(1, len(result.invariants) + 1)))
    room = width - len(ruler) - BETWEEN
    longest = max((2 + len(fate.mistake) for fate in result.fates), default=0)
    beside = room >= ROOM
    columns = min(room, max(longest, ROOM)) if beside else width
    if not result.fates:
        return
    for kind, fates in groupby(result.fates, key=lambda fate: fate.kind):
        yield _row(kind, "by", ruler, columns, beside, "bold")
        for fate in fates:
            marks = Text(_in_tens("".join(_mark(fate, name) for name in result.invariants)))
            marks.highlight_regex("[xX!]+", COLOURS["pass"])
            count = str(len(fate.by))
            yield _row(f"  {fate.mistake}", count, marks, columns, beside, "" if fate.killed else COLOURS["fail"])
            if verbose:
                yield from (Text(f"      {_first(notice)}", style="bright_black") for notice in fate.notices)
        yield Text("")
    yield from (Text(line) for line in textwrap.wrap(LEGEND, width))
    yield Text("")


def _row(text: str, count: str, marks: str | Text, columns: int, beside: bool, style: str) -> Text:
    """Return a text in so many columns, with its marks beside its last line, or below."""
    margin = text[: len(text) - len(text.lstrip())]
    *lines, last = textwrap.wrap(text.strip(), columns, initial_indent=margin, subsequent_indent="    ")
    shown = Text("".join(f"{line}\n" for line in lines), style=style)
    if beside:
        return shown + Text(f"{last:<{columns}}", style=style) + Text(f"  {count:>3}  ") + marks
    return shown + Text(f"{last}\n", style=style) + Text(f"{count:>10}  ") + marks


def _in_tens(marks: str) -> str:
    return " ".join(marks[start : start + 10] for start in range(0, len(marks), 10))


def _mark(fate: Fate, invariant: str) -> str:
    status = next((notice.status for notice in fate.notices if notice.invariant == invariant), None)
    if status is None:
        return "."
    return "!" if status == "crashed" else "X" if invariant == fate.claim else "x"


def _first(notice: Notice) -> str:
    return f"{notice.invariant} on {notice.case}{' (crashed)' if notice.status == 'crashed' else ''}"


def _table(result: SelfTest) -> Iterator[Text]:
    """Yield a row for each invariant: its number, what it declares, what it noticed, and what nobody else did."""
    if not result.fates:
        return
    longest = max(map(len, result.invariants))
    yield Text(f" no  {'invariant':<{longest}}  declares  notices  alone", style="bold")
    for number, name in enumerate(result.invariants, 1):
        declared = sum(fate.claim == name for fate in result.fates)
        noticed = sum(name in fate.by for fate in result.fates)
        alone = sum(fate.by == {name} for fate in result.fates)
        if declared or noticed:  # all of them, unless few faults were chosen
            yield Text(f"{number:>3}  {name:<{longest}}  {declared:>8}  {noticed:>7}  {alone:>5}")
    if not result.whole:
        yield Text(
            f"Each fault was tried until it was killed; --all tries each on all {counted(result.cases, 'case')}."
        )
    yield Text("")


def _passages(result: SelfTest) -> Iterator[Text]:
    """Yield a row for each correct variation: how many equations were really checked, on all cases."""
    if not result.passages:
        return
    yield Text(f"{'correct variation':<45} checked  complaints", style="bold")
    for passage in result.passages:
        style = "" if passage.passed else COLOURS["fail"]
        yield Text(f"{passage.name:<45} {passage.checked:>7,}  {len(passage.complaints):>10,}", style=style)
    yield Text("")


def encoded(result: SelfTest) -> bytes:
    """Return the self-test as strict JSON, the same bytes each time."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "verify-attention", "version": __version__},
        "cases": result.cases,
        "all_cases": result.whole,
        "invariants": list(result.invariants),
        "faults": [_fault(fate) for fate in result.fates],
        "variations": [_variation(passage) for passage in result.passages],
        "summary": {
            "faults": len(result.fates),
            "killed": len(result.fates) - len(result.survivors),
            "variations": len(result.passages),
            "passed": len(result.passages) - len(result.blamed),
        },
    }
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _fault(fate: Fate) -> dict[str, object]:
    noticed = [{"invariant": one.invariant, "status": one.status, "case": one.case} for one in fate.notices]
    return {
        "kind": fate.kind,
        "mistake": fate.mistake,
        "declared_by": fate.claim,
        "killed": fate.killed,
        "tried_on": fate.cases,
        "noticed": noticed,
    }


def _variation(passage: Passage) -> dict[str, object]:
    complaints = [one._asdict() for one in passage.complaints]
    return {"name": passage.name, "passed": passage.passed, "checked": passage.checked, "complaints": complaints}
