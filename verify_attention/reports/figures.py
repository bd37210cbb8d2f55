"""How numbers, statuses and counts are put into words, the same in every report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Case, Finding, Report, Status, Tolerance, Verdict

WORDS: dict[Status, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "skipped": "SKIP",
    "crashed": "CRASH",
}
SEVERITY: tuple[Status, ...] = ("crashed", "fail", "inconclusive", "pass", "skipped")
SYMBOLS: dict[Status, str] = {"pass": "✅", "fail": "❌", "inconclusive": "❓", "skipped": "➖", "crashed": "💥"}
COLOURS: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "yellow",
    "skipped": "bright_black",
    "crashed": "bold magenta",
}

MOST_REASONS = 6
PUBLISHED = "published-numbers-are-reproduced"


def shown_as(finding: Finding) -> Status:
    """Return the status by which a finding is called: what passes against the mathematics is no pass to people."""
    return "fail" if finding.contradicted else finding.status


def figure(number: float | None) -> str:
    """Return a deviation or a limit in few digits: an exact zero is 0.0, and NaN as bad as infinite."""
    if number is None:
        return "–"
    if not math.isfinite(number):
        return "inf"
    return "0.0" if number == 0 else f"{number:.2g}"


def counted(count: int, noun: str, say: Language = ENGLISH) -> str:
    """Return a count with its noun in the right number."""
    return say(f"{{count}} {noun}" if count == 1 else f"{{count}} {noun}s", count=f"{count:,}")


def why_skipped(findings: Iterable[Finding], say: Language = ENGLISH) -> str:
    """Return the skipped findings by the kind of their reason: `12 vacuous, 3 not applicable`."""
    kinds: Counter[str] = Counter()
    for reason, count in Counter(finding.reason for finding in findings if finding.status == "skipped").items():
        kinds[kind_of(reason or "")] += count
    return say(", ").join(say(f"{{count}} {kind}", count=f"{count:,}") for kind, count in kinds.most_common())


def verdict_line(finding: Finding, say: Language = ENGLISH) -> str:
    """Say what exact arithmetic found, and what follows: whose mistake it is, and which expectation is wrong."""
    opinion = finding.opinion
    if opinion is None:
        return ""
    said = f"{say(opinion.verdict)}: {say.told(opinion.reason)}"
    if finding.cause == "mathematics" or finding.contradicted:
        wrong = f"`expect: {{{finding.invariant}: {finding.expected}}}`"
        said = say("{expectation} is wrong here; {opinion}", expectation=wrong, opinion=said)
    if finding.contradicted:
        return say("passes, against the mathematics: {opinion}", opinion=said)
    return f"{say(finding.cause or 'exact')}: {said}"


def exact_lines(findings: Sequence[Finding], say: Language = ENGLISH) -> Iterator[str]:
    """Count what exact arithmetic found, and say what it could not."""
    opinions = [finding.opinion for finding in findings if finding.opinion is not None]
    counts = Counter(opinion.verdict for opinion in opinions)
    against = sum(finding.cause == "mathematics" or finding.contradicted for finding in findings)
    order: tuple[Verdict, ...] = ("proved", "refuted", "bounded", "undecided", "skipped")
    told = (say(f"{{count}} {verdict}", count=f"{counts[verdict]:,}") for verdict in order if counts[verdict])
    why = Counter(opinion.reason for opinion in opinions if opinion.verdict in {"undecided", "skipped"})
    reasons = "; ".join(f"{count:,} × {say.told(reason)}" for reason, count in why.most_common(MOST_REASONS))
    yield say(
        "In exact arithmetic, on the binary64 numbers of the cases: {list}; {against} against what the cases expect",
        list=say(", ").join(told),
        against=f"{against:,}" if against else say("nothing"),
    )
    if reasons:
        yield say("Not told: {reasons}", reasons=reasons)


def kind_of(reason: str) -> str:
    """Return the kind of a skipped finding, from the first words of its reason."""
    kind, colon, _ = reason.partition(":")
    return kind if colon and kind in {"vacuous", "not claimed", "not offered", "not shown"} else "not applicable"


def again(case: Case, finding: Finding, report: Report) -> str:
    """Return the command that repeats one finding, and leaves the results as they are."""
    _, colons, document = case.id.partition("::")
    path = f"./{case.path}" if case.path.startswith("-") else case.path
    which = quoted(path + colons + document) if case.path else f"-k {quoted(case.id)}"
    under_test, tolerance = report.implementation, unusual(report.tolerance, " --{} {!r}")
    whose = "" if under_test.name == "core" else f" --implementation {quoted(under_test.name)}"
    dtype = "" if under_test.dtype == "float64" else f" --dtype {under_test.dtype}"
    exact = "" if finding.opinion is None else " --exact"
    claim = f" --select {quoted(finding.invariant)}"
    return f"verify-attention run {which}{whose}{dtype}{claim}{tolerance}{exact} --no-output"


def unusual(tolerance: Tolerance, form: str) -> str:
    """Return each tolerance that is not the usual one, in a form that takes its name and its value."""
    usual = Tolerance()
    given = {"rtol": (tolerance.rtol, usual.rtol), "atol": (tolerance.atol, usual.atol)}
    return "".join(form.format(name, value) for name, (value, default) in given.items() if value != default)


def quoted(word: str) -> str:
    """Return a word as a shell takes it."""
    import shlex  # noqa: PLC0415 - only where something broke

    return shlex.quote(word)
