"""Exact arithmetic on every shipped case agrees with what was measured, but where it knows better. Takes minutes."""

from __future__ import annotations

from functools import partial

import pytest

from verify_attention import engine
from verify_attention.cases import load_cases
from verify_attention.exact import opined
from verify_attention.model import CaseReport, Tolerance
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants

pytest.importorskip("flint")
PROCESSES = 2

# A fill of −100000 leaves hidden keys a share of about exp(−100000), which is 0 in floats; and among equal scores the
# first k depend on the order of the keys, about which rounding bounds promise nothing. No case claims any of these.
KNOWN_BETTER = {
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "both-biases-weigh-like-query-bias"),
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "key-bias-leaves-output"),
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "key-bias-leaves-weights"),
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "masked-keys-have-no-say"),
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "row-constant-score-bias-changes-nothing"),
    ("features/corners::a-fill-of-minus-a-hundred-thousand", "softmax-ignores-a-row-shift"),
    ("features/together::case-25", "future-keys-have-no-say"),
    ("boundaries/normaliser::top-k", "duplicated-keys-change-nothing"),
    ("features/corners::top-k-again", "masked-keys-have-no-say"),
}


@pytest.fixture(scope="module")
def reports() -> list[CaseReport]:
    chosen = list(invariants().values())
    return list(
        engine.run(
            load_cases(("cases",)),
            CORE,
            chosen,
            Tolerance(),
            jobs=PROCESSES,
            then=partial(opined, tolerance=Tolerance()),
        )
    )


def test_everything_that_was_measured_has_an_opinion(reports: list[CaseReport]) -> None:
    for report in reports:
        for finding in report.findings:
            assert (finding.opinion is None) == (finding.observed is None), (report.case.id, finding)


def test_exact_arithmetic_agrees_with_what_was_measured(reports: list[CaseReport]) -> None:
    better = set()
    for report in reports:
        for finding in report.findings:
            if finding.opinion is None or finding.opinion.verdict in {"undecided", "skipped"}:
                continue
            if (finding.opinion.verdict == "refuted") != (finding.observed == "breaks"):
                if finding.observed == "within-rounding" and finding.opinion.verdict != "refuted":
                    continue
                better.add((report.case.id, finding.invariant))
            assert not finding.contradicted
    assert better == KNOWN_BETTER


def test_only_where_the_order_of_scores_matters_is_anything_left_undecided(reports: list[CaseReport]) -> None:
    undecided = {
        report.case.id
        for report in reports
        for finding in report.findings
        if finding.opinion is not None and finding.opinion.verdict in {"undecided", "skipped"}
    }
    kinds = {report.case.id: report.case.features.get("normaliser", {}).get("kind") for report in reports}
    assert {kinds[name] for name in undecided} <= {"sigmoid", "sparsemax", "top-k"}
    assert 0 < len(undecided) < 20
