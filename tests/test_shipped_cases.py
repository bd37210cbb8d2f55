"""The cases that we ship: right code passes all of them, whatever its order of operations, and wrong code does not."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import deepcopy
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import rational_route
import yaml
from company import company, due, met
from company import documents as written
from faults import FAULTS, STAND_INS, UNSEEN, attention
from featured_faults import FEATURED
from featured_faults import UNSEEN as UNSEEN_FEATURED
from making import right_of, rng
from slow_route import slow_lists
from steps import STEPS
from variations import VARIATIONS, of_plain_cases, output_only, plain

from verify_attention import comparison
from verify_attention.cases import load_cases
from verify_attention.departures import taken
from verify_attention.engine import judge, run_case
from verify_attention.engine.attend import Attend, NotOfferedError
from verify_attention.model import (
    CONDITIONS,
    QUANTITIES,
    AddsColumn,
    Case,
    CaseReport,
    Implementation,
    Invariant,
    Normalises,
    NotShownError,
    Tolerance,
    Trace,
)
from verify_attention.pipeline import CORE
from verify_attention.plugins import features, invariants
from verify_attention.reports import kill_matrix
from verify_attention.selftest import planted, self_test, variations

ROOT = Path(__file__).resolve().parent.parent / "cases"
CASES = load_cases([ROOT])
ARTICLE = [case for case in CASES if "article" in case.tags]
BIAS = [case for case in CASES if "bias" in case.tags]
EXACT = [case for case in CASES if "exact" in case.tags]
ORDERS = ("scale-folded-into-queries", "summed-in-reversed-order", "bias-products-added-to-scores")
ORDERS_WITH_FEATURES = ("scale-folded-into-queries-with-features", "slow-attention", "in-steps")
DEPARTING = {case.id for case in CASES if case.features.keys() - {"key_shifts"}}
INVARIANTS = invariants()
PUBLISHED = "published-numbers-are-reproduced"
MISTAKES = FAULTS | STAND_INS | FEATURED
CAUGHT = {"fail", "crashed"}

every_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])


def report(case: Case, implementation: Implementation) -> CaseReport:
    return run_case(case, implementation, INVARIANTS.values(), Tolerance())


def complaints(case: Case, implementation: Implementation) -> list[str]:
    return [
        f"{case.id}: {finding.invariant} is {finding.status}: {finding.reason}"
        for finding in report(case, implementation).findings
        if finding.status not in {"pass", "skipped"}
    ]


def fresh(case: Case) -> Case:
    """Return a case with arrays of its own, for implementations that write to them."""
    arrays = {name: getattr(case, name).copy() for name in ("q", "keys", "bQ", "bK")}
    return case.but(**arrays, features=deepcopy(dict(case.features)), latent=case.latent)


def caught(implementation: Implementation, cases: list[Case], right: Implementation = attention) -> str | None:
    """Return a finding that says `fail` or `crashed`, sought first in cases in which the mistake shows at once."""
    alike = []
    for case in cases:
        if not differs(implementation, case, right):
            alike.append(case)
        elif found := caught_on(implementation, case):
            return found
    return next(filter(None, (caught_on(implementation, case) for case in alike)), None)


def caught_on(implementation: Implementation, case: Case) -> str | None:
    for finding in report(fresh(case), implementation).findings:
        if finding.status in CAUGHT:
            return f"{finding.invariant} on {case.id}"
    return None


@cache
def answer(right: Implementation, case: Case) -> Trace:
    return right(case.under("qk"))


def differs(implementation: Implementation, case: Case, right: Implementation) -> bool:
    """Say whether an implementation gives other numbers than what it starts from under both biases, or none."""
    with np.errstate(all="ignore"):
        try:
            usual, found = answer(right, case), implementation(fresh(case).under("qk"))
        except NotImplementedError:
            return False
        except ValueError:  # it writes to what is read-only
            return True
    pairs = [
        (found.output, usual.output),
        *((array, usual.inside.get(name, np.nan)) for name, array in found.inside.items()),
    ]
    return not all(np.array_equal(*pair) for pair in pairs)


# Right code passes


@every_case
def test_the_core_passes(case: Case) -> None:
    assert complaints(case, CORE) == []


EACH_ON = 1 if os.environ.get("VERIFY_ATTENTION_WHOLE") == "1" else 6
"""Of so many cases a variation judges one: each of the 32 takes ten seconds for all."""


@pytest.mark.parametrize(("turn", "name"), list(enumerate(VARIATIONS)))
def test_correct_code_passes_whatever_its_order_of_operations(turn: int, name: str) -> None:
    assert [line for case in CASES[turn % EACH_ON :: EACH_ON] for line in complaints(case, VARIATIONS[name])] == []


def test_each_case_meets_five_orders() -> None:
    assert len(VARIATIONS) >= 5 * EACH_ON


@every_case
def test_code_that_shows_only_its_output_is_not_blamed(case: Case) -> None:
    for finding in report(case, output_only).findings:
        assert finding.status in {"pass", "skipped"}, finding


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES if case not in EXACT])
def test_noise_stays_far_from_the_limit_unless_it_is_expected(case: Case) -> None:
    """A-priori bounds, not luck: no order of operations can reach the limit, whichever element it is that decides.

    Not of ties, which an infinite bound leaves open, nor where the case says that numbers are far apart.
    """
    for finding in report(case, CORE).findings:
        if finding.status == "pass" and finding.expected == "holds" and finding.invariant != PUBLISHED:
            worst = bound_in_limits(INVARIANTS[finding.invariant], case)
            assert worst <= 1 + 1e-9 or "far" in case.tags, (finding.invariant, worst)


def bound_in_limits(invariant: Invariant, case: Case) -> float:
    """Return the largest rounding bound of any element of an equation, in its limits."""
    worst, sides = 0.0, invariant.sides(case, Attend(CORE))
    with np.errstate(all="ignore"), suppress(NotShownError, NotOfferedError):
        for part in sides:
            limit = comparison.limit_of(Tolerance(), part.left, part.right) if part.limit is None else part.limit
            shares = np.broadcast_to(part.rounding / limit, part.left.shape)
            counted = True if part.counts is None else part.counts
            told = shares[counted & np.isfinite(shares) & np.isfinite(part.left)]
            worst = max(worst, 0.0 if part.contrast else told.max(initial=0.0))
    return float(worst)


def test_a_bound_above_its_limit_is_found_wherever_it_is() -> None:
    (far,) = [case for case in CASES if "far" in case.tags]
    assert bound_in_limits(INVARIANTS["score-bias-moves-log-odds"], far) > 2


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in EXACT])
def test_sums_of_exact_cases_are_exact(case: Case) -> None:
    """Three orders of the same sums give the same scores to the last bit, and a common K bias the same weights."""
    for condition in ("none", "q", "k", "qk"):
        under = case.under(condition)
        scores = CORE(under).scores
        for name in ORDERS_WITH_FEATURES if case.id in DEPARTING else ORDERS:
            assert np.array_equal(VARIATIONS[name](under).scores, scores), (condition, name)
    if taken(case).isdisjoint({"common key shift", "shift-invariant softmax"}):
        assert np.array_equal(CORE(case.under("k")).weights, CORE(case.under("none")).weights)
        assert np.array_equal(CORE(case.under("qk")).weights, CORE(case.under("q")).weights)


def test_exact_cases_are_there() -> None:
    assert len(EXACT) >= 5


# Every claim is really checked


@pytest.mark.parametrize("name", INVARIANTS)
def test_each_invariant_is_really_checked_by_two_cases(name: str) -> None:
    claim = INVARIANTS[name]
    checked = [case.id for case in CASES if judge(claim, case, right_of(claim)).checked]
    assert len(checked) >= 2, checked


def test_each_check_of_the_article_is_really_checked() -> None:
    checks = {invariant.check for invariant in INVARIANTS.values() if invariant.check}
    checked = {
        INVARIANTS[finding.invariant].check
        for case in ARTICLE
        for finding in report(case, CORE).findings
        if finding.checked and finding.status == "pass"
    }
    assert len(checks) == 8
    assert checks - checked == set()


def test_the_article_gives_its_whole_table() -> None:
    printed = next(case.published for case in ARTICLE if case.published)
    assert {quantity: set(given) for quantity, given in printed.numbers.items()} == {
        "scores": {"none", "q", "k", "qk"},
        "weights": {"none", "q", "k", "qk"},
    }
    assert sum(array.size for given in printed.numbers.values() for array in given.values()) == 24
    assert printed.decimals == 6


def test_the_article_s_weights_do_not_differ_at_all() -> None:
    case = next(case for case in ARTICLE if case.published)
    assert np.array_equal(CORE(case.under("k")).weights, CORE(case.under("none")).weights)


@every_case
def test_a_case_says_what_it_is_about(case: Case) -> None:
    first, second, *_ = (ROOT / f"{case.id.partition('::')[0]}.yaml").read_text("utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=../../schemas/case.schema.json"
    assert second.startswith("# ")
    assert case.title
    assert case.id.partition("/")[0] in case.tags


# Wrong code does not pass


@pytest.mark.thorough
def test_every_fault_of_the_self_test_is_killed_and_no_variation_is_blamed() -> None:
    """Declared faults by the claim that declares them."""
    result = self_test(planted(), variations(), CASES, jobs=os.cpu_count() or 1)
    assert result.passed, kill_matrix.render(result, quiet=True)
    assert kill_matrix.summary(result).plain in (ROOT.parent / "README.md").read_text("utf-8")
    assert len(result.fates) > 250
    assert len(result.passages) > 12


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_real_code_are_caught(mistake: str) -> None:
    assert caught(MISTAKES[mistake], CASES, base_of(mistake))


def base_of(mistake: str) -> Implementation:
    """Return what a mistake starts from."""
    return STEPS if mistake in FEATURED else attention


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - UNSEEN - UNSEEN_FEATURED))
def test_mistakes_are_caught_by_the_output_alone(mistake: str) -> None:
    def shows_its_output(case: Case) -> Trace:
        return Trace(MISTAKES[mistake](case).output)

    assert caught(shows_its_output, CASES, base_of(mistake))


@pytest.mark.parametrize("right", [plain, of_plain_cases(attention), STEPS])
def test_nothing_is_caught_where_there_is_no_mistake(right: Implementation) -> None:
    """`attention` and `STEPS` are what mistakes start from: were they wrong, all would be caught for nothing."""
    assert caught(right, CASES) is None


# Published numbers


def documents() -> dict[str, dict[str, Any]]:
    """Return the documents with published numbers as PyYAML reads them, every number a text."""
    found = {}
    for path in sorted(ROOT.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text("utf-8"), yaml.BaseLoader):
            if "published" in document:
                found[f"{path.relative_to(ROOT).as_posix()}::{document.get('name', '')}"] = document
    return found


DOCUMENTS = documents()


def slow_traces(case: Case) -> dict[str, dict[str, Any]]:
    """Return scores, weights and output by quantity and condition, at 50 digits, from the binary64 numbers."""
    found = {condition: slow_lists(case, condition, mpmath) for condition in CONDITIONS}
    return {name: {condition: found[condition][name] for condition in found} for name in QUANTITIES}


def wrong_numbers(document: dict[str, Any], case: Case | None = None) -> list[str]:
    """Return the published numbers that are not the right ones, rounded to their decimals.

    Where the case is given, it says what the document means: one with features, or a layer.
    """
    decimals = int(document["published"]["decimals"])
    unit = Decimal(1).scaleb(-decimals)
    traces = rational_route.traces(document) if case is None else slow_traces(case)
    wrong = []
    for quantity in ("scores", "weights", "output"):
        for condition, printed in document["published"].get(quantity, {}).items():
            heads = rational_route.raised(printed, 3)
            for right, given in zip(flat(traces[quantity][condition]), flat(heads), strict=True):
                number = Decimal(mpmath.nstr(right, 45, min_fixed=-mpmath.inf, max_fixed=mpmath.inf))
                if given == "null" and number == Decimal("-Infinity"):  # a hidden key
                    continue
                if given == "null" or not number.is_finite():
                    wrong.append(f"{quantity}[{condition}]: {given}, should be {number}")
                elif number.quantize(unit, ROUND_HALF_EVEN) != Decimal(given).quantize(unit):
                    wrong.append(f"{quantity}[{condition}]: {given}, should be {number.quantize(unit)}")
    return wrong


def flat(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("file", DOCUMENTS)
def test_published_numbers_are_those_of_exact_arithmetic(file: str) -> None:
    document = DOCUMENTS[file]
    case = next(case for case in CASES if case.id == file.replace(".yaml::", "::").removesuffix("::"))
    assert wrong_numbers(document, case if case.id in DEPARTING or "projections" in document else None) == []


def test_a_wrong_published_number_is_found() -> None:
    document = dict(next(document for file, document in DOCUMENTS.items() if file.startswith("article/")))
    document["published"] = {"decimals": "6", "weights": {"none": ["0.575975", "0.283995", "0.140030"]}}
    assert wrong_numbers(document) == ["weights[none]: 0.140030, should be 0.140029"]


def test_a_score_that_is_hidden_and_one_that_is_not_are_told_apart() -> None:
    file = "features/printed-behind-a-mask.yaml::"
    case = next(case for case in CASES if case.id == "features/printed-behind-a-mask")
    for given, said in ([["1", "2", "3"], "3, should be -Infinity"], [["null", "2", "null"], "null, should be 1"]):
        document = {**DOCUMENTS[file], "published": {"decimals": "0", "scores": {"none": [given, ["2", "4", "6"]]}}}
        assert wrong_numbers(document, case)[0].startswith(f"scores[none]: {said}")


def test_many_cases_publish_twelve_decimals() -> None:
    precise = [file for file, document in DOCUMENTS.items() if int(document["published"]["decimals"]) >= 12]
    assert len(precise) >= 8


# Features in company


def test_any_three_features_meet_in_every_way_in_a_shipped_case() -> None:
    """`company.py` writes what is missing."""
    assert len(due()) > 4000
    assert due() - company(CASES) == set()


def test_what_has_not_met_is_found_and_written() -> None:
    few = [case for case in CASES if "sink" not in case.features]
    missing = set(due() - company(few))
    assert {name for selection in missing for name, there in selection if there} >= {"sink", "rope", "fill"}
    some = {selection for selection in missing if selection >= {("sink", True), ("rope", True)}}
    assert some
    found = list(written(rng(3), set(some)))
    assert some <= set().union(*(met(document["features"]) for document in found))


def test_each_stand_in_for_softmax_meets_every_feature_in_a_shipped_case() -> None:
    met = {
        (case.features["normaliser"]["kind"], name)
        for case in CASES
        if "normaliser" in case.features
        for name in case.features
    }
    others = {name for name, feature in features().items() if type(feature.act) not in {AddsColumn, Normalises}}
    assert {(kind, name) for kind in ("sigmoid", "sparsemax", "top-k") for name in others} - met == set()


# Sizes


def sizes(case: Case) -> list[int]:
    """Return H, Tq, Tk and d_k, G where heads are grouped, and d_v where values are given."""
    heads, rows, keys = case.scores_shape
    grouped = [len(case.keys)] if len(case.keys) != heads else []
    return [heads, rows, keys, case.d_k, *grouped, *([] if case.values is None else [case.d_v])]


def all_differ(case: Case) -> bool:
    return len(set(sizes(case))) == len(sizes(case))


def test_sizes_differ_in_most_cases() -> None:
    same = [case.id for case in BIAS if not all_differ(case)]
    assert len(same) < len(BIAS) / 4, same


def test_some_cases_have_equal_sizes() -> None:
    assert any(len(set(sizes(case))) == 1 for case in BIAS)


def test_equal_sizes_are_found() -> None:
    equal = [case for case in BIAS if "equal-sizes" in case.tags]
    assert equal
    assert not any(map(all_differ, equal))
