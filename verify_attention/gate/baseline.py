"""What got worse from one results file to another."""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import sealing
from verify_attention.sealing import Document

GRAVITY = {"pass": 0, "skipped": 1, "inconclusive": 2, "fail": 3, "crashed": 4}


def unsound(old: Document) -> Iterator[str]:
    """Say why results are no baseline: edited, empty, or with a case twice."""
    changed = [entry["id"] for entry in old["cases"] if entry["digest"] != sealing.digest(entry)]
    if changed or old["digest"] != sealing.digest(old):
        yield f"the baseline was changed after it was written{': ' + ', '.join(changed) if changed else ''}"
    if not old["cases"]:
        yield "the baseline is empty"
    if len({entry["id"] for entry in old["cases"]}) < len(old["cases"]):
        yield "the baseline has a case twice"


def worse(old: Document, new: Document) -> Iterator[str]:
    """Name what is worse in the new results than in the old: findings, expectations, and what has disappeared."""
    entries = {entry["id"]: entry for entry in new["cases"]}
    for before in old["cases"]:
        after = entries.get(before["id"])
        if after is None:
            yield f"{before['id']}: the case has disappeared"
            continue
        findings = {finding["invariant"]: finding for finding in after["findings"]}
        for was in before["findings"]:
            said = _worse(was, findings.get(was["invariant"]))
            if said:
                yield f"{before['id']}: {was['invariant']}: {said}"


def _worse(was: Document, now: Document | None) -> str | None:
    if now is None:
        return f"has disappeared, was {was['status']}"
    if GRAVITY[now["status"]] > GRAVITY[was["status"]]:
        return f"was {was['status']}, is {now['status']}: {now['reason']}"
    if now["expected"] != was["expected"]:
        return f"was expected {was['expected']}, is expected {now['expected']}"
    return None
