"""The gate trusts nothing: here files are edited in every place, clumsily and with care."""

import copy
import json
import math

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng

from verify_attention import resources, results, validation
from verify_attention.cases import load_cases
from verify_attention.engine import run
from verify_attention.gate import judge
from verify_attention.gate.baseline import worse
from verify_attention.model import Published, Report, Tolerance, Trace
from verify_attention.pipeline import CORE, Pipeline, softmax

CHOSEN = list(INVARIANTS.values())


def made_by(implementation, name, *cases, tolerance=TOLERANCE, chosen=CHOSEN):
    reports = tuple(run(list(cases), implementation, chosen, tolerance))
    return json.loads(results.text(Report(name, tolerance, reports)))


def small_cases():
    draw = rng(50)
    printed = Published(6, {"weights": {"none": np.array([[[0.575975, 0.283995, 0.140029]]])}})
    return (
        article_case(published=printed),
        random_case(draw, H=2, G=1, Tq=2, Tk=3, d_k=2, d_v=1).but(id="general"),
        random_case(draw, H=1, G=1, Tq=2, Tk=3, d_k=2, d_v=1, features={"key_shifts": draw.normal(size=(1, 3, 2))}).but(
            id="shifted", expect={"key-bias-leaves-weights": "breaks"}
        ),
    )


SMALL = made_by(CORE, "core", *small_cases())


def gate(made, chosen=CHOSEN, tolerance=TOLERANCE, files=None, complete=False):
    return judge(made, chosen, tolerance, files or {}, complete)


def resealed(made):
    """Return an edited document with digests that match again, as a careful forger would."""
    made = copy.deepcopy(made)
    results.seal(made)
    return made


def places(part, path=()):
    """Yield the path of every number, text and null in a document."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from places(value, (*path, key))
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from places(value, (*path, index))
    else:
        yield path


def edited(made, path, change):
    made = copy.deepcopy(made)
    part = made
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = change(part[path[-1]])
    return made


def noticed(made):
    return not validation.valid(made, "results") or bool(gate(made).problems)


def another(value):
    """Return a value that differs as little as can be: the next float, the next integer, another text."""
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, int):
        return value + 1
    return "x" if value is None else value + "x"


def test_a_sound_file_passes():
    verdict = gate(SMALL)
    assert (verdict.problems, verdict.broken, verdict.rejudged) == ([], [], 3)


def test_any_edit_of_any_value_is_noticed():
    one = made_by(CORE, "core", small_cases()[0])
    every = list(places(one))
    assert len(every) > 300
    unnoticed = [path for path in every if not noticed(edited(one, path, another))]
    assert unnoticed == []


def test_an_edited_number_is_named():
    weight = ("cases", 1, "conditions", "qk", "weights", 1, 0, 2)
    problems = gate(edited(SMALL, weight, another)).problems
    assert any("general: conditions.qk.weights[1][0][2]: says" in problem for problem in problems)


FORGERIES = [
    (("cases", 0, "conditions", "none", "weights", 0, 0, 1), lambda x: x + 1e-6, "conditions.none.weights"),
    (("cases", 0, "conditions", "q", "scores", 0, 0, 1), lambda x: x + 1e-9, "conditions.q.scores"),
    (("cases", 1, "conditions", "k", "output", 0, 1, 0), lambda x: x - 1e-9, "conditions.k.output"),
    (("cases", 1, "conditions", "k", "lse", 0, 1), lambda x: None, "conditions.k.lse"),
    (("cases", 1, "conditions", "k", "lse"), lambda x: None, "conditions.k.lse"),
    (("cases", 1, "conditions", "k", "lse"), lambda x: x[:1], "has the shape"),
    (("cases", 1, "conditions", "k", "lse"), lambda x: [x[0], x[0][:1]], "uneven"),
    (("cases", 0, "inputs", "bK", 0, 0), lambda x: 30.0, "conditions.k.scores"),
    (("cases", 0, "inputs", "scale"), lambda x: 0.5, "conditions"),
    (("cases", 0, "inputs", "q", 0, 0), lambda x: [*x, 1.0], "inputs are not a case"),
    (("cases", 0, "inputs", "expect"), lambda x: {"key-bias-leaves-weights": "breaks"}, "expected"),
    (("cases", 2, "inputs", "expect"), lambda x: {}, "expected"),
    (("cases", 0, "inputs", "published", "decimals"), lambda x: 3, "limit"),
    (("cases", 0, "findings", 0, "deviation"), lambda x: 1e-13, "deviation"),
    (("cases", 0, "findings", 0, "limit"), lambda x: 1.0, "limit"),
    (("cases", 0, "findings", 0, "rounding_bound"), lambda x: 1.0, "rounding_bound"),
    (("cases", 0, "findings", 0, "observed"), lambda x: "breaks", "observed"),
    (("cases", 0, "findings", 0, "expected"), lambda x: "breaks", "expected"),
    (("cases", 0, "findings", 0, "worst", "left"), lambda x: 0.9, "deviation"),
    (("cases", 0, "findings", 0, "worst"), lambda x: None, "no place"),
    (("cases", 0, "findings"), lambda x: x[1:], "lacks findings on both-biases-weigh-like-query-bias"),
    (("cases", 0, "findings"), lambda x: [*x, x[0]], "2 findings on"),
    (("cases", 0, "findings", 0, "invariant"), lambda x: "made-up", "made-up"),
    (("cases",), lambda x: [], "the run is empty"),
    (("cases",), lambda x: [*x, x[0]], "stands 2 times"),
    (("summary", "pass"), lambda x: x + 1, "summary.pass"),
    (("summary", "checked"), lambda x: x - 1, "summary.checked"),
    (("tolerance", "rtol"), lambda x: 1e-3, "tolerance.rtol"),
    (("tolerance", "atol"), lambda x: 1e-9, "tolerance.atol"),
]


@pytest.mark.parametrize(("path", "change", "message"), FORGERIES)
def test_a_forgery_with_right_digests_is_found_and_named(path, change, message):
    problems = gate(resealed(edited(SMALL, path, change))).problems
    assert any(message in problem for problem in problems), problems


def test_a_status_cannot_be_turned_whatever_it_says():
    for index, finding in enumerate(SMALL["cases"][0]["findings"]):
        for status in {"pass", "fail", "inconclusive", "skipped", "crashed"} - {finding["status"]}:
            forged = edited(SMALL, ("cases", 0, "findings", index, "status"), lambda _, status=status: status)
            forged["summary"] = results.summary(forged["cases"])
            assert gate(resealed(forged)).problems, (finding["invariant"], status)


def uniform(scores):
    return np.full_like(scores, 1 / scores.shape[-1]), softmax(scores)[1]


WRONG = made_by(Pipeline(softmax=uniform), "mine", *small_cases())


def test_a_sound_file_of_a_wrong_implementation_is_broken_not_unsound():
    verdict = gate(WRONG)
    assert verdict.problems == []
    assert any("weight-ratios-follow-score-gaps: fail" in line for line in verdict.broken)
    assert not verdict.crashed


def test_a_wrong_implementation_cannot_be_made_to_pass_by_its_findings():
    """Every failing finding is given the numbers of a pass; the stored traces still say what they say."""
    forged = copy.deepcopy(WRONG)
    for entry in forged["cases"]:
        for finding in entry["findings"]:
            if finding["status"] == "fail":
                side = finding["worst"]["left"]
                finding["worst"]["right"] = side
                limit = max(1e-12 * abs(side), 1e-12)
                finding |= {"status": "pass", "observed": "holds", "deviation": 0.0, "limit": limit, "reason": None}
    forged["summary"] = results.summary(forged["cases"])
    problems = gate(resealed(forged)).problems
    assert any("weight-ratios-follow-score-gaps: status says pass, the stored traces say fail" in p for p in problems)


def test_a_core_run_cannot_be_passed_off_from_another_s_traces():
    forged = edited(WRONG, ("implementation", "name"), lambda _: "core")
    assert any("conditions.none.weights" in problem for problem in gate(resealed(forged)).problems)


def test_noise_of_another_machine_is_no_forgery():
    """Every stored number of the traces moves by an ulp, and the findings with it: that is rounding."""

    def nudged(case):
        trace = CORE(case)
        away = {name: np.nextafter(array, np.inf) for name, array in trace.inside.items()}
        return Trace(np.nextafter(trace.output, np.inf), away)

    made = made_by(nudged, "core", *small_cases())
    assert gate(made).problems == []


def test_crashes_are_told_from_breaks():
    def crashing(case):
        raise RuntimeError("no device")

    verdict = gate(made_by(crashing, "mine", article_case()))
    assert verdict.crashed
    assert any("RuntimeError: no device" in line for line in verdict.broken)
    assert verdict.problems == ["cases: no equation was really checked"]


def test_a_selection_is_refused_unless_the_gate_makes_it_too():
    some = [one for one in CHOSEN if one.name.startswith("key-bias")]
    made = made_by(CORE, "core", article_case(), chosen=some)
    assert any("lacks findings on" in problem and "weights-sum-to-one" in problem for problem in gate(made).problems)
    assert gate(made, chosen=some).problems == []


def test_a_stricter_tolerance_than_asked_is_fine_and_a_wider_one_is_not():
    wide = made_by(CORE, "core", article_case(), tolerance=Tolerance(1e-9, 1e-9))
    assert gate(wide).problems
    assert gate(wide, tolerance=Tolerance(1e-9, 1e-9)).problems == []
    assert gate(SMALL, tolerance=Tolerance(1e-9, 1e-9)).problems == []


def test_numbers_that_another_machine_would_not_round_to_are_forged_though_the_digests_are_right():
    """Twice the bound is forgiven in a trace, not two hundred times."""
    case = random_case(rng(53), H=1, G=1, Tq=2, Tk=3, d_k=2, d_v=1, bK=np.array([[1e8, 0.0]])).but(id="large")
    made = made_by(CORE, "core", case.but(expect=dict.fromkeys(INVARIANTS, "within-rounding")))
    weight = ("cases", 0, "conditions", "k", "weights", 0, 0, 0)
    problems = gate(resealed(edited(made, weight, lambda x: x + 1e-5))).problems
    assert any("conditions.k.weights[0][0][0]" in problem for problem in problems)


# --- case files


@pytest.fixture
def article(tmp_path):
    for path in (resources.folder("cases") / "article").glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def from_files(folder):
    return {case.id: case for case in load_cases([folder])}


def test_case_files_must_be_the_ones_of_the_run(article):
    made = made_by(CORE, "core", *from_files(article).values())
    assert gate(made, files=from_files(article), complete=True).problems == []
    changed = article / "two-dimensions.yaml"
    changed.write_text(changed.read_text() + "# a comment\n")
    problems = gate(made, files=from_files(article), complete=True).problems
    assert len(problems) == 1
    assert "two-dimensions: " in problems[0]
    assert "has changed since the run" in problems[0]


def test_a_case_lost_from_the_results_or_from_the_folder_is_named(article):
    made = made_by(CORE, "core", *from_files(article).values())
    (article / "two-dimensions.yaml").rename(article / "three-dimensions.yaml")
    problems = gate(made, files=from_files(article), complete=True).problems
    assert "three-dimensions: the case is in the folder, but not in the results" in problems
    assert "two-dimensions: the case is in the results, but not in the folder" in problems


def test_inputs_that_are_not_those_of_the_file_are_named_by_place(article):
    made = made_by(CORE, "core", *from_files(article).values())
    index = next(i for i, entry in enumerate(made["cases"]) if entry["id"] == "two-dimensions")
    forged = resealed(edited(made, ("cases", index, "inputs", "keys", 0, 2, 0), another))
    problems = gate(forged, files=from_files(article)).problems
    assert any("inputs.keys[0][2][0]: says -0.9999999999999999, the case file" in problem for problem in problems)


def test_summarised_inputs_need_their_file():
    large = random_case(rng(51), H=1, G=1, Tq=3, Tk=700).but(id="large")
    made = made_by(CORE, "core", large)
    assert any("its inputs are summarised" in problem for problem in gate(made).problems)
    assert gate(made, files={"large": large}).problems == []
    forged = edited(made, ("cases", 0, "conditions", "k", "output", 0, 0, 0), lambda x: x + 1e-9)
    assert gate(resealed(forged), files={"large": large}).problems


def test_summaries_of_traces_are_judged_too():
    large = random_case(rng(52), H=2, G=1, Tq=70, Tk=30).but(id="large")
    made = made_by(CORE, "core", large)
    assert gate(made).problems == []
    for name in ("smallest", "largest", "mean"):
        forged = edited(made, ("cases", 0, "conditions", "k", "scores", name), lambda x: x + 1e-9)
        assert any(f"conditions.k.scores.{name}" in problem for problem in gate(resealed(forged)).problems)


def test_another_folder_is_told_in_one_line(article, tmp_path):
    made = made_by(CORE, "core", *from_files(article).values())
    others = {f"article/{name}": case for name, case in from_files(article).items()}
    problems = gate(made, files=others, complete=True).problems
    assert len(problems) == 1
    assert "give the folder that the run was given" in problems[0]


# --- baseline


def test_a_baseline_names_what_got_worse_and_what_disappeared():
    assert list(worse(SMALL, SMALL)) == []
    assert any("weight-ratios-follow-score-gaps: was pass, is fail" in line for line in worse(SMALL, WRONG))
    assert list(worse(WRONG, SMALL)) == []
    fewer = edited(SMALL, ("cases",), lambda cases: cases[1:])
    assert list(worse(SMALL, fewer)) == ["two-dimensions: the case has disappeared"]
    without = edited(SMALL, ("cases", 0, "findings"), lambda findings: findings[1:])
    assert list(worse(SMALL, without)) == [
        "two-dimensions: both-biases-weigh-like-query-bias: has disappeared, was pass"
    ]
    skipped = edited(SMALL, ("cases", 0, "findings", 0, "status"), lambda _: "skipped")
    assert "was pass, is skipped" in next(worse(SMALL, skipped))
    loosened = edited(SMALL, ("cases", 0, "findings", 0, "expected"), lambda _: "within-rounding")
    assert "was expected holds, is expected within-rounding" in next(worse(SMALL, loosened))
