"""Opinions of exact arithmetic: proved, refuted or bounded, and what follows for what breaks."""

import copy
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng
from test_invariants import SPECIFIED

from verify_attention import __version__, exact, results
from verify_attention.cases import build_case, load_cases
from verify_attention.casting import cast
from verify_attention.cli.run import exit_code
from verify_attention.engine import run_case
from verify_attention.exact import INSTALL, Expert, opined
from verify_attention.gate import judge
from verify_attention.model import Finding, Opinion, Report, Tolerance, Trace, UnderTest, precision
from verify_attention.pipeline import CORE, biased_keys, softmax
from verify_attention.reports import table
from verify_attention.sealing import seal

pytest.importorskip("flint")

BIAS_FAMILY = sorted(SPECIFIED - {"published-numbers-are-reproduced"})
RATIONAL = {"mask", "causal", "window", "score_bias", "alibi", "temperature", "key_shifts"}
KEPT = "key-bias-leaves-weights"


def findings(case, implementation=CORE, chosen=None):
    """Return the findings of a case with their opinions, by name."""
    asked = [INVARIANTS[name] for name in chosen or INVARIANTS]
    report = opined(run_case(case, implementation, asked, TOLERANCE), TOLERANCE)
    return {finding.invariant: finding for finding in report.findings}


def verdicts(case, chosen=BIAS_FAMILY):
    found = findings(case, chosen=chosen)
    return {name: finding.opinion.verdict for name, finding in found.items() if finding.opinion is not None}


def built(**document):
    return build_case(
        {"d_k": 2, "q": [1, 0.5], "keys": [[1, 0], [0, 1], [-1, 0]], "bQ": [0, 1], "bK": [3, -2]} | document, id="given"
    )


def test_all_that_is_measured_of_the_worked_example_is_proved():
    found = findings(article_case())
    opinions = {name: finding.opinion for name, finding in found.items()}
    measured = {name for name, finding in found.items() if finding.observed is not None}
    assert len(measured) >= 11
    assert {opinions[name].verdict for name in measured} == {"proved"}
    assert {opinions[name] for name in opinions.keys() - measured} == {None}
    assert {finding.cause for finding in found.values()} == {None}


def by_gaps(case):
    """Decide by score gaps whether a K bias, a Q bias and both leave the weights, in plain loops over fractions."""

    def gaps(condition):
        bQ, bK = case.bQ * ("q" in condition), case.bK * ("k" in condition)
        shifts = case.features.get("key_shifts") if "k" in condition else None
        seen = case.features.get("mask")
        found = []
        for h, i in itertools.product(*map(range, case.q.shape[:2])):
            g = h // (len(case.q) // len(case.keys))
            row = []
            for j in range(case.keys.shape[1]):
                if seen is not None and not seen[h, i, j]:
                    continue
                terms = (
                    (Fraction(case.q[h, i, t]) + Fraction(bQ[h, t]))
                    * (
                        Fraction(case.keys[g, j, t])
                        + Fraction(bK[g, t])
                        + Fraction(0 if shifts is None else shifts[g, j, t])
                    )
                    for t in range(case.d_k)
                )
                row.append(sum(terms, Fraction(0)))
            found.append([score - row[0] for score in row])
        return found

    return {KEPT: gaps("k") == gaps("none"), "both-biases-weigh-like-query-bias": gaps("qk") == gaps("q")}  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_weights_are_the_same_exactly_where_all_score_gaps_are(seed):
    draw = rng(900 + seed)
    features = {}
    if seed % 3 == 1:  # shifts of which some, or all, are common after all
        features["key_shifts"] = np.repeat(draw.normal(size=(2, 1, 3)), 4, axis=1)
        features["key_shifts"][:, 2] += draw.integers(0, 2) * 2.0**-40
    if seed % 2:
        features["mask"] = draw.random((4, 3, 4)) < 0.6
        features["mask"][..., 1:3] = True
    case = random_case(draw, H=4, G=2, Tq=3, Tk=4, d_k=3, d_v=2, features=features)
    case = case.but(bK=case.bK * 10.0 ** draw.integers(-3, 12))
    found = verdicts(case)
    for name, same in by_gaps(case).items():
        assert found[name] == ("proved" if same else "refuted"), name


@pytest.mark.thorough
def test_bias_claims_about_rational_scores_are_decided_on_every_shipped_case():
    asked = 0
    for case in load_cases(("cases",)):
        if not case.features.keys() <= RATIONAL or math.prod(case.scores_shape) > 400:
            continue
        found = findings(case, chosen=BIAS_FAMILY)
        measured = [finding for finding in found.values() if finding.observed is not None]
        asked += len(measured)
        for finding in measured:
            assert finding.opinion.verdict in {"proved", "refuted"}, (case.id, finding)
            if finding.observed != "within-rounding":
                assert (finding.opinion.verdict == "refuted") == (finding.observed == "breaks"), (case.id, finding)
            assert not finding.contradicted
    assert asked > 1500


def test_a_wrong_document_is_refuted_at_a_key():
    finding = findings(built(features={"rope": {}}, expect={KEPT: "holds"}))[KEPT]
    assert (finding.status, finding.opinion.verdict, finding.cause) == ("fail", "refuted", "mathematics")
    assert finding.opinion.worst.axis == "key"

    # By hand, in floats: a key at position j gets R_j (k_j + bK), and the one query stands at the last key.
    def weights(bias):
        turned = [
            (math.cos(2 - j) * x + math.sin(2 - j) * y) + 0.5 * (-math.sin(2 - j) * x + math.cos(2 - j) * y)
            for j, (x, y) in enumerate((x + bias[0], y + bias[1]) for x, y in ((1, 0), (0, 1), (-1, 0)))
        ]
        powers = [math.exp(score / math.sqrt(2)) for score in turned]
        return [power / sum(powers) for power in powers]

    key = finding.opinion.worst.position
    expected = abs(weights((3, -2))[key] - weights((0, 0))[key])
    assert math.isclose(finding.opinion.difference, expected, rel_tol=1e-12)
    text = table.render(report_of(built(features={"rope": {}}, expect={KEPT: "holds"})), width=200)
    assert (
        f"mathematics: `expect: {{{KEPT}: holds}}` is wrong here; refuted: by the formula the sides differ by" in text
    )
    assert f"key {key}" in text


def report_of(case, implementation=CORE, name="core", tolerance=TOLERANCE, chosen=None):
    asked = [INVARIANTS[one] for one in chosen or INVARIANTS]
    report = opined(run_case(case, implementation, asked, tolerance), tolerance)
    return Report(UnderTest(name, __version__), tolerance, (report,))


def test_a_large_bias_is_rounding_with_proof():
    case = built(q=[1, 0.3], keys=[[1, 0.1], [0.2, 1], [-1, 0.7]], bK=[1.0e10, -0.37e10])
    found = findings(case)
    broken = [finding for finding in found.values() if finding.status != "pass" and finding.observed is not None]
    assert len(broken) >= 3
    assert {finding.status for finding in broken} == {"inconclusive"}
    assert {finding.opinion.verdict for finding in broken} == {"proved"}
    assert {finding.cause for finding in broken} == {"rounding"}
    assert exit_code(report_of(case)) == 1


def test_a_wrong_control_is_called_wrong():
    report = report_of(built(expect={KEPT: "breaks"}))
    (finding,) = (one for _, one in report.findings() if one.invariant == KEPT)
    assert (finding.status, finding.opinion.verdict, finding.cause) == ("fail", "proved", "mathematics")
    assert f"`expect: {{{KEPT}: breaks}}` is wrong here; proved" in table.render(report, width=200)


def on_the_first_key(case):
    keys = np.array(biased_keys(case))
    keys[:, 1:] -= case.bK[:, None]
    return keys


def test_what_only_an_implementation_breaks_is_its_own():
    finding = findings(article_case(), CORE.but(keys=on_the_first_key))[KEPT]
    assert (finding.status, finding.opinion.verdict, finding.cause) == ("fail", "proved", "implementation")


def test_a_control_that_only_an_implementation_breaks_does_not_hold():
    """The equation holds, so that a case which expects it to break is wrong, and so is code that breaks it."""
    report = report_of(built(expect={KEPT: "breaks"}), CORE.but(keys=on_the_first_key), "mine", chosen=[KEPT])
    ((_, finding),) = report.findings()
    assert (finding.status, finding.opinion.verdict, finding.contradicted) == ("pass", "proved", True)
    assert exit_code(report) == 1
    text = table.render(report, width=200)
    assert "passes, against the mathematics" in text
    assert text.splitlines()[-1].startswith("FAIL  mine, ")
    assert text.splitlines()[-1].endswith(": 1 against the mathematics")


def test_a_difference_below_the_limit_is_no_contradiction():
    case = built(features={"key_shifts": [[0, 0], [0, 0], [2.0**-44, 0]]}, expect={KEPT: "holds"})
    finding = findings(case, chosen=[KEPT])[KEPT]
    assert (finding.status, finding.opinion.verdict, finding.contradicted) == ("pass", "refuted", False)
    assert 0 < finding.opinion.difference < 1e-12


OUTPUT = "key-bias-leaves-output"
FAR_APART = {"q": [[1]], "keys": [[0], [1]], "bQ": [0], "bK": [1], "scale": 1}


def off_by_a_bit(case):
    """Let the K bias move the first channel of the output by 1e-9."""
    trace = CORE(case)
    return Trace(trace.output + 1e-9 * case.bK.any() * np.array([1, 0]), trace.inside)


def mean_of_values(case):
    return Trace(np.broadcast_to(case.values.mean(axis=1, keepdims=True), CORE(case).output.shape), {})


def test_every_difference_has_the_limit_of_its_own_element():
    """The sink of exp(−40) moves channel 1, of 2e10, by 1.25e-8, far below its limit of 0.02."""
    case = build_case(
        {**FAR_APART, "d_k": 1, "values": [[1, 1e10], [2, 2e10]], "features": {"sink": [-40]},
         "expect": {OUTPUT: "holds"}},
        id="loud",
    )  # fmt: skip
    right = findings(case, chosen=[OUTPUT])[OUTPUT]
    assert (right.status, right.opinion.verdict, right.contradicted) == ("pass", "refuted", False)
    assert exit_code(report_of(case, chosen=[OUTPUT])) == 0
    wrong = findings(case, off_by_a_bit, chosen=[OUTPUT])[OUTPUT]
    assert (wrong.status, wrong.cause) == ("fail", "implementation")


def test_a_loud_channel_does_not_lend_its_limit_to_another():
    """By the formula channel 1 moves by 0.0015 with the key shift; code that takes the mean moves nothing."""
    case = build_case(
        {**FAR_APART, "d_k": 1, "bK": [0], "values": [[1e10, 0], [1e10, 0.01]], "features": {"key_shifts": [[0], [1]]},
         "expect": {OUTPUT: "holds"}},
        id="quiet",
    )  # fmt: skip
    finding = findings(case, mean_of_values, chosen=[OUTPUT])[OUTPUT]
    assert (finding.status, finding.contradicted) == ("pass", True)
    core = findings(case, chosen=[OUTPUT])[OUTPUT]
    assert (core.status, core.cause) == ("fail", "mathematics")


def test_a_bound_that_promises_nothing_explains_nothing():
    """The scores are 0 and 0, so that the weight is 1/2; in floats they are not, and the bound is infinite."""
    case = build_case(
        {"d_k": 1, "q": [1e10], "keys": [[1e10]], "bQ": [-1e10], "bK": [-1e10], "scale": 2,
         "features": {"key_shifts": [[1e10]], "zero_key": True}, "expect": {"weights-sum-to-one": "within-rounding"}},
        id="endless",
    )  # fmt: skip
    finding = findings(case, chosen=["weights-sum-to-one"])["weights-sum-to-one"]
    assert (finding.rounding_bound, finding.opinion.difference, finding.cause) == (math.inf, 0.5, "mathematics")
    assert gate(document_of(case)).problems == []


def test_what_floats_cannot_tell_is_against_the_formula_all_the_same():
    """The gap of 1 becomes 2, and the first weight 1/(1 + e²) instead of 1/(1 + e); a mean of values sees neither."""
    case = build_case(
        {"d_k": 2, "q": [[1e200, 1]], "keys": [[1e200, 0], [1e200, 1]], "bQ": [0, 0], "bK": [1, 0], "scale": 1,
         "features": {"key_shifts": [[0, 0], [0, 1]]}, "expect": {KEPT: "within-rounding"}},
        id="hidden",
    )  # fmt: skip

    def uniform(case):
        trace = CORE(case)
        return Trace(trace.output, {**trace.inside, "weights": np.full_like(trace.inside["weights"], 0.5)})

    finding = findings(case, uniform, chosen=[KEPT])[KEPT]
    assert (finding.status, finding.contradicted) == ("pass", True)
    assert math.isclose(finding.opinion.difference, 1 / (1 + math.e) - 1 / (1 + math.e**2), rel_tol=1e-9)


def test_the_gate_asks_nothing_of_a_case_of_which_nothing_was_measured():
    def no_sinks(case):
        if "sink" in case.features:
            raise NotImplementedError("sinks")
        return CORE(case)

    made = document_of(built(features={"sink": [0]}), no_sinks, "mine")
    assert not any("opinion" in finding for finding in made["cases"][0]["findings"])
    assert gate(made).problems == ["cases: no equation was really checked"]


def test_no_opinion_hides_behind_balls_that_are_not_there():
    """Closed form decides a plain case wherever the file was written."""
    made = document_of(built(bK=[1e10, -0.37e10]))
    for finding in made["cases"][0]["findings"]:
        if "opinion" in finding:
            hidden = {"verdict": "undecided", "cause": None, "difference": None, "limit": None, "worst": None}
            finding["opinion"] = {**hidden, "reason": exact.WITHOUT_BALLS.reason}
    seal(made)
    assert sum("opinion" in problem for problem in gate(made).problems) > 10
    turned = document_of(built(features={"rope": {}}))
    (entry,) = (finding for finding in turned["cases"][0]["findings"] if finding["invariant"] == "weights-sum-to-one")
    entry["opinion"] |= {"verdict": "undecided", "reason": f"all is refuted; {INSTALL}"}
    seal(turned)
    assert any("opinion" in problem for problem in gate(turned).problems)


def test_the_gate_reads_whole_numbers_however_they_are_written():
    made = document_of(built(features={"rope": {}}, expect={KEPT: "holds"}))
    for finding in made["cases"][0]["findings"]:
        if finding["worst"] is not None:
            finding["worst"] |= {"head": float(finding["worst"]["head"]), "row": float(finding["worst"]["row"])}
            finding["worst"]["index"] = finding["worst"]["index"] and float(finding["worst"]["index"])
    seal(made)
    assert gate(made).broken == gate(document_of(built(features={"rope": {}}, expect={KEPT: "holds"}))).broken


def test_the_gate_reads_the_numbers_in_a_reason():
    made = document_of(built(features={"rope": {}}, expect={KEPT: "holds"}))
    (entry,) = (finding for finding in made["cases"][0]["findings"] if finding["invariant"] == KEPT)
    entry["opinion"]["reason"] = entry["opinion"]["reason"].replace("head 0", "head 41")
    seal(made)
    assert any("head 41" in problem for problem in gate(made).problems)


LIMIT, BOUND = 1e-12, 1e-9


@pytest.mark.parametrize(
    ("expected", "status", "deviation", "verdict", "difference", "cause", "contradicted"),
    [
        ("holds", "pass", 0.0, "proved", None, None, False),
        ("holds", "pass", 0.0, "refuted", 1e-14, None, False),
        ("holds", "pass", 0.0, "refuted", 0.3, None, True),
        ("holds", "inconclusive", 1e-10, "proved", None, "rounding", False),
        ("holds", "inconclusive", 1e-10, "bounded", None, "rounding", False),
        ("holds", "inconclusive", 1e-10, "refuted", 1e-14, "rounding", False),
        ("holds", "inconclusive", 1e-10, "refuted", 1e-10, "mathematics", False),
        ("holds", "inconclusive", 1e-10, "undecided", None, None, False),
        ("holds", "fail", 0.3, "proved", None, "implementation", False),
        ("holds", "fail", 0.3, "bounded", None, "implementation", False),
        ("holds", "fail", 0.3, "refuted", 0.3, "mathematics", False),
        ("holds", "fail", 0.3, "refuted", 1e-14, "implementation", False),
        ("holds", "fail", 0.3, "skipped", None, None, False),
        ("within-rounding", "pass", 1e-10, "proved", None, None, False),
        ("within-rounding", "fail", 0.3, "proved", None, "implementation", False),
        ("within-rounding", "pass", 1e-10, "refuted", 0.3, None, True),
        ("breaks", "pass", 0.3, "refuted", 0.3, None, False),
        ("breaks", "pass", 0.3, "proved", None, None, True),
        ("breaks", "pass", 0.3, "refuted", 1e-9, None, True),
        ("breaks", "fail", 0.0, "proved", None, "mathematics", False),
        ("breaks", "fail", 0.0, "refuted", 0.3, "implementation", False),
        ("breaks", "fail", 0.0, "refuted", 1e-9, "mathematics", False),
        ("breaks", "inconclusive", 1e-10, "refuted", 0.3, "rounding", False),
        ("breaks", "inconclusive", 1e-10, "bounded", None, "mathematics", False),
        ("breaks", "inconclusive", 1e-8, "refuted", 1e-8, "mathematics", False),
        ("breaks", "inconclusive", 1e-8, "refuted", 0.3, "implementation", False),
        ("holds", "skipped", 0.3, "refuted", 0.3, None, False),
        ("within-rounding", "pass", 1e-10, "refuted", 1e-10, None, True),
    ],
)
def test_whose_mistake_it_is(expected, status, deviation, verdict, difference, cause, contradicted):
    from verify_attention import comparison

    observed = comparison.observe(deviation, LIMIT, BOUND)
    assert status in {comparison.status(expected, deviation, LIMIT, BOUND), "skipped"}
    opinion = Opinion(verdict, difference, None if difference is None else LIMIT)
    finding = Finding(KEPT, status, expected, observed, deviation, LIMIT, BOUND, opinion=opinion)
    assert (finding.cause, finding.contradicted) == (cause, contradicted)


@pytest.mark.parametrize(("bound", "cause"), [(BOUND, "rounding"), (math.inf, None), (None, None)])
def test_an_infinite_bound_names_no_cause(bound, cause):
    """A results file has null for it."""
    opinion = Opinion("proved")
    finding = Finding(KEPT, "inconclusive", "holds", "within-rounding", 1e-10, LIMIT, bound, opinion=opinion)
    assert finding.cause == cause


@pytest.mark.parametrize(("dtype", "status", "cause"), [("float64", "fail", "mathematics"), ("float32", "pass", None)])
def test_in_a_coarse_precision_no_limit_is_smaller_than_its_rounding(dtype, status, cause):
    case = built(features={"key_shifts": [[0, 0], [0, 0], [2.0**-30, 0]]}, expect={KEPT: "holds"})
    finding = findings(cast(case, precision(dtype)), chosen=[KEPT])[KEPT]
    assert (finding.status, finding.opinion.verdict, finding.cause) == (status, "refuted", cause)
    assert 1e-12 < finding.opinion.difference < 1e-9
    assert not finding.contradicted


def test_without_an_opinion_nothing_is_said():
    finding = Finding(KEPT, "fail", "holds", "breaks", 0.3, LIMIT, BOUND)
    assert (finding.cause, finding.contradicted) == (None, False)


def test_without_balls_rational_cases_are_decided_and_others_say_what_to_install(monkeypatch):
    monkeypatch.setattr(exact, "balls_are_here", lambda: False)
    monkeypatch.setattr(exact, "balls", None)
    assert set(verdicts(article_case()).values()) == {"proved"}
    opinion = findings(built(features={"rope": {}}))[KEPT].opinion
    assert opinion.verdict == "undecided"
    assert INSTALL in opinion.reason
    text = table.render(report_of(built(features={"rope": {}})), width=200)
    assert INSTALL in text


def test_what_is_too_large_is_skipped_with_an_estimate(monkeypatch):
    draw = rng(7)
    case = random_case(draw, H=8, G=2, Tq=512, Tk=512, d_k=64, d_v=64)
    opinion = Expert(case, TOLERANCE).opinion(
        INVARIANTS[KEPT], Finding(KEPT, "pass", "holds", "holds", 0.0, 1e-12, 1e-9)
    )
    assert opinion.verdict == "skipped"
    assert "estimated at" in opinion.reason
    monkeypatch.setattr(exact, "MOST_SECONDS", {"closed form": 1e-9, "balls": 1e-9})
    assert set(verdicts(article_case()).values()) == {"skipped"}


def test_the_limit_of_printed_numbers_is_part_of_their_equation():
    from verify_attention.model import Published

    printed = "published-numbers-are-reproduced"

    def told(number):
        weights = np.array([[[number, 0.283995, 0.140029]]])
        return findings(article_case(published=Published(6, {"weights": {"none": weights}})))[printed].opinion.verdict

    assert told(0.575975) == "proved"  # the article's; 0.5759751… by the calculator
    assert told(0.575976) == "refuted"


def test_a_latent_and_its_keys_are_taken_without_rounding():
    case = next(case for case in load_cases(("cases/boundaries/mla.yaml",)) if case.latent is not None)
    assert findings(case)["absorbed-mla-equals-expanded"].opinion.verdict in {"proved", "bounded"}


@pytest.mark.parametrize("rotary_dims", [2, 6])
def test_frequencies_are_not_rounded(rotary_dims):
    draw = rng(3)
    case = random_case(draw, H=2, G=1, Tq=2, Tk=3, d_k=6, d_v=2)
    document = {name: getattr(case, name).tolist() for name in ("q", "keys", "bQ", "bK", "values", "bV")}
    case = build_case({"d_k": 6, **document, "features": {"rope": {"rotary_dims": rotary_dims}}}, id="turned")
    assert findings(case)["scores-follow-the-formula"].opinion.verdict == "bounded"


def test_a_wrong_formula_is_refuted():
    """The opinion asks the claim's own sides: one with a wrong right side is no longer proved."""
    from dataclasses import replace

    right = INVARIANTS[KEPT]

    def wrong(case, attend):
        for part in right.sides(case, attend):
            yield replace(part, right=part.right + 2.0**-60)

    finding = findings(article_case(), chosen=[KEPT])[KEPT]
    found = Expert(article_case(), TOLERANCE).opinion(replace(right, sides=wrong), finding)
    assert (found.verdict, found.difference) == ("refuted", 2.0**-60)


def document_of(case, implementation=CORE, name="core", chosen=None):
    return json.loads(results.encoded(report_of(case, implementation, name, chosen=chosen)))


def gate(made, chosen=tuple(INVARIANTS), asked=True):
    due = UnderTest(made["implementation"]["name"], "")
    return judge(made, [INVARIANTS[name] for name in chosen], TOLERANCE, {}, False, due, asked)


def test_the_gate_asks_again():
    made = document_of(built(features={"rope": {}}, expect={KEPT: "holds"}))
    assert gate(made).problems == []
    assert any(KEPT in line for line in gate(made).broken)
    other = {
        **next(one["opinion"]["worst"] for one in made["cases"][0]["findings"] if one["invariant"] == KEPT),
        "left": 0.5,
    }
    edits = {"verdict": "proved", "cause": "rounding", "difference": 0.5, "limit": 0.5, "worst": None, "reason": "so"}
    for field, value in [*edits.items(), ("worst", other)]:
        forged = copy.deepcopy(made)
        (entry,) = (finding for finding in forged["cases"][0]["findings"] if finding["invariant"] == KEPT)
        assert entry["opinion"][field] != value
        entry["opinion"][field] = value
        seal(forged)
        assert any("opinion" in problem for problem in gate(forged).problems), field


def test_the_gate_misses_an_opinion_where_it_is_asked_for():
    made = document_of(article_case())
    (entry,) = (finding for finding in made["cases"][0]["findings"] if finding["invariant"] == KEPT)
    del entry["opinion"]
    seal(made)
    assert any("no opinion" in problem for problem in gate(made).problems)
    assert gate(made, asked=False).problems == []


def test_the_gate_says_once_that_no_finding_has_an_opinion():
    reports = (run_case(article_case(), CORE, list(INVARIANTS.values()), TOLERANCE),)
    made = json.loads(results.encoded(Report(UnderTest("core", __version__), TOLERANCE, reports)))
    assert ["made with --exact" in problem for problem in gate(made).problems] == [True]


def test_a_file_without_balls_is_taken_where_they_are_but_not_against_them(monkeypatch):
    case = built(features={"softcap": 2}, expect={KEPT: "holds"})

    def uncapped(case):
        return CORE(case.but(features={}))

    with monkeypatch.context() as without:
        without.setattr(exact, "balls_are_here", lambda: False)
        honest, lying = document_of(built(features={"softcap": 2})), document_of(case, uncapped, "mine", chosen=[KEPT])
    (finding,) = lying["cases"][0]["findings"]
    assert (finding["status"], finding["opinion"]["verdict"]) == ("pass", "undecided")
    assert gate(honest).problems == []
    assert any("`expect: holds` is wrong" in problem for problem in gate(lying, chosen=[KEPT]).problems)


def test_what_closed_form_decides_is_asked_again_without_balls_too(monkeypatch):
    from verify_attention.gate import opinions

    made = document_of(built(features={"rope": {}}, expect={KEPT: "holds"}))
    for where in (exact, opinions):
        monkeypatch.setattr(where, "balls_are_here", lambda: False)
    assert gate(made).problems == []
    (entry,) = (finding for finding in made["cases"][0]["findings"] if finding["invariant"] == KEPT)
    entry["opinion"] |= {"verdict": "proved", "cause": "implementation", "reason": "the same number, in closed form"}
    seal(made)
    assert any("opinion" in problem for problem in gate(made).problems)


def test_the_gate_does_not_let_a_contradiction_pass():
    made = document_of(built(expect={KEPT: "breaks"}), CORE.but(keys=on_the_first_key), "mine", chosen=[KEPT])
    verdict = gate(made, chosen=[KEPT])
    assert verdict.problems == []
    assert any("`expect: breaks` is wrong" in line for line in verdict.broken)


def test_results_without_exact_are_as_they_were():
    reports = (run_case(article_case(), CORE, list(INVARIANTS.values()), TOLERANCE),)
    made = json.loads(results.encoded(Report(UnderTest("core", __version__), Tolerance(), reports)))
    assert not any("opinion" in finding for finding in made["cases"][0]["findings"])


def test_the_whole_of_a_case_decides_what_is_against_it():
    """Its first row moves by 1e-10, its second by a fifth: a control is right, and code without the cap is not."""
    case = built(
        q=[[0.001, 0], [2, 1]], keys=[[1, 0], [0, 1], [-1, 2]], bQ=[0, 0], scale=1.0,
        features={"softcap": 2}, expect={KEPT: "breaks"},
    )  # fmt: skip
    found = findings(case, chosen=[KEPT])[KEPT]
    assert (found.status, found.contradicted) == ("pass", False)
    found = findings(case, lambda case: CORE(case.but(features={})), chosen=[KEPT])[KEPT]
    assert (found.status, found.cause) == ("fail", "implementation")
    assert found.opinion.difference > 0.1

    def spoiled(case):
        trace = CORE(case)
        return Trace(trace.output, {**trace.inside, "weights": np.full_like(trace.inside["weights"], np.nan)})

    assert findings(case, spoiled, chosen=[KEPT])[KEPT].cause == "implementation"


@pytest.mark.parametrize(("tiny", "large"), [("refuted", "undecided"), ("undecided", "refuted")])
def test_what_is_not_told_may_differ_by_more_than_what_is(tiny, large):
    """One element differs by 1e-40, or by a half; of the other nothing is told: it may be what a control is about."""
    from verify_attention.exact.closed import UNKNOWN
    from verify_attention.exact.closed_form import CLOSED_FORM
    from verify_attention.exact.deciding import decide
    from verify_attention.model import Sides

    left = np.array([[Fraction(0), Fraction(0)]], dtype=object)
    left[0, 0] = Fraction(1, 10**40) if tiny == "refuted" else UNKNOWN
    left[0, 1] = Fraction(1, 2) if large == "refuted" else UNKNOWN
    found = decide([Sides("lse", left, np.zeros((1, 2)), 0.0)], CLOSED_FORM, None, TOLERANCE)
    assert found.verdict == ("refuted" if large == "refuted" else "undecided")


@pytest.mark.parametrize(
    ("loud", "limits", "named", "limit"),
    [
        (Fraction(1, 10**8), None, 1, 1e-12),  # both too small for a control: the one that is farther beyond its limit
        (Fraction(1, 10**3), None, 1, 1e-12),  # large enough for a control, but within its limit
        (Fraction(1), None, 0, 1e-2),  # large enough, and beyond: nobody looks further
        (Fraction(1, 10**3), [[1e-5, 1e-3]], 0, 1e-5),  # where the equation has limits of its own
    ],
)
def test_the_element_is_named_that_is_farthest_beyond_its_limit(loud, limits, named, limit):
    """Element 0 is of 1e10, with a limit of 1e-2, and differs by `loud`; element 1 of 0 differs by 1e-9."""
    from verify_attention.exact.closed_form import CLOSED_FORM
    from verify_attention.exact.deciding import decide
    from verify_attention.model import Sides

    left = np.array([[10**10 + loud, Fraction(1, 10**9)]], dtype=object)
    part = Sides("lse", left, np.array([[1e10, 0]]), 0.0, limit=limits and np.array(limits))
    found = decide([part], CLOSED_FORM, None, TOLERANCE)
    assert (found.verdict, found.worst.row) == ("refuted", named)
    assert math.isclose(found.limit, limit, rel_tol=1e-9)


def test_shares_far_below_floats_are_told_apart_at_once():
    case = built(q=[[1, 0.5], [0, 1], [1, 1]], features={"causal": "upper-left", "fill": -1.0e9})
    finding = findings(case, chosen=["weights-follow-the-formula", KEPT])[KEPT]
    assert finding.opinion.verdict == "refuted"
    assert "e-4342944" in finding.opinion.reason  # exp(−1e9) is 10^−434294481.9


def test_a_crash_and_a_nan_get_no_wrong_cause():
    def crashing(case):
        raise RuntimeError(case.id)

    assert {finding.cause for finding in findings(article_case(), crashing).values()} == {None}

    def spoiled(case):
        trace = CORE(case)
        return Trace(np.full_like(trace.output, np.nan), trace.inside)

    finding = findings(article_case(), spoiled)["key-bias-leaves-output"]
    assert (finding.status, finding.cause) == ("fail", "implementation")


def test_softmax_without_its_maximum_is_the_implementation():
    def naive(scores):
        powers = np.exp(scores * 1.0000001)
        return powers / powers.sum(axis=-1, keepdims=True), softmax(scores)[1]

    found = findings(built(bK=[1.0, 2.0]), CORE.but(softmax=naive))
    assert found["weight-ratios-follow-score-gaps"].cause == "implementation"


@pytest.mark.parametrize(
    "name", ["sink", "zero_key", "appended_key", "fill", "normaliser", "softmax_plus_one", "alibi"]
)
def test_balls_refute_what_closed_form_refutes_and_nothing_else(name):
    told = 0
    for case in load_cases((f"cases/boundaries/{name}.yaml",)):
        report = run_case(case, CORE, list(INVARIANTS.values()), TOLERANCE)
        expert = Expert(case, TOLERANCE)
        for finding in report.findings:
            if finding.observed is None:
                continue
            closed, balls = (expert._decided(INVARIANTS[finding.invariant], finding, bits) for bits in (0, 212))
            if "undecided" in {closed.verdict, balls.verdict}:
                continue
            told += 1
            assert (closed.verdict == "refuted") == (balls.verdict == "refuted"), (case.id, finding.invariant)
            if closed.verdict == "refuted" and closed.worst[:5] == balls.worst[:5]:  # closed form may miss the first
                assert math.isclose(closed.difference, balls.difference, rel_tol=1e-9)
    assert told > 15
