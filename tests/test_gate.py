"""The gate trusts nothing: here files are edited in every place, clumsily and with care."""

import copy
import json
import math

import numpy as np
import pytest
from making import INVARIANTS, TOLERANCE, AsCore, article_case, random_case, rng

from verify_attention import __version__, resources, results, validation
from verify_attention.cases import build_case, load_cases
from verify_attention.engine import run
from verify_attention.gate import judge
from verify_attention.gate.baseline import unsound, worse
from verify_attention.model import Published, Report, Tolerance, Trace, UnderTest
from verify_attention.pipeline import CORE, Pipeline, softmax
from verify_attention.sealing import seal
from verify_attention.selection import blocks
from verify_attention.summary import LARGEST, summarised

CHOSEN = list(INVARIANTS.values())
BOTH, INERT, OUTPUT = "both-biases-weigh-like-query-bias", "inert-query-bias-leaves-weights", "key-bias-leaves-output"


def made_by(implementation, name, *cases, tolerance=TOLERANCE, chosen=CHOSEN):
    asked = AsCore(implementation) if name == "core" and implementation is not CORE else implementation
    reports = tuple(run(list(cases), asked, chosen, tolerance))
    return json.loads(results.encoded(Report(UnderTest(name, __version__), tolerance, reports)))


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


def gate(made, chosen=CHOSEN, tolerance=TOLERANCE, files=None, complete=False, implementation=None):
    """Judge results; what was under test is believed unless a test says otherwise."""
    return judge(made, chosen, tolerance, files or {}, complete, UnderTest(implementation or "core", ""))


def resealed(made):
    """Return an edited document with digests that match again, as a careful forger would."""
    made = copy.deepcopy(made)
    seal(made)
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


def finding_on(findings, name):
    return next(finding for finding in findings if finding["invariant"] == name)


def without_both(findings):
    return [finding for finding in findings if finding["invariant"] != BOTH]


def edited(made, path, change):
    """Change what is at a path; a finding may be named by its invariant."""
    made = copy.deepcopy(made)
    part = made
    for key in path[:-1]:
        part = finding_on(part, key) if key in {BOTH, INERT, OUTPUT} else part[key]
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
    (("cases", 0, "findings", BOTH, "deviation"), lambda x: 1e-13, "deviation"),
    (("cases", 0, "findings", BOTH, "limit"), lambda x: 1.0, "limit"),
    (("cases", 0, "findings", BOTH, "rounding_bound"), lambda x: 1.0, "rounding_bound"),
    (("cases", 0, "findings", BOTH, "observed"), lambda x: "breaks", "observed"),
    (("cases", 0, "findings", BOTH, "expected"), lambda x: "breaks", "expected"),
    (("cases", 0, "findings", BOTH, "worst", "left"), lambda x: 0.9, "deviation"),
    (("cases", 0, "findings", BOTH, "worst"), lambda x: None, "no place"),
    (("cases", 0, "findings"), without_both, f"lacks findings on {BOTH}"),
    (("cases", 0, "findings"), lambda x: [*x, x[0]], "2 findings on"),
    (("cases", 0, "findings", BOTH, "invariant"), lambda x: "made-up", "made-up"),
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
    verdict = gate(WRONG, implementation="mine")
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
    problems = gate(resealed(forged), implementation="mine").problems
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

    verdict = gate(made_by(crashing, "mine", article_case()), implementation="mine")
    assert verdict.crashed
    assert any("RuntimeError: no device" in line for line in verdict.broken)
    assert verdict.problems == ["cases: no equation was really checked"]


def test_a_selection_is_refused_unless_the_gate_makes_it_too():
    some = [one for one in CHOSEN if one.name.startswith("key-bias")]
    made = made_by(CORE, "core", article_case(), chosen=some)
    twice = resealed({**made, "cases": [*made["cases"], {**made["cases"][0], "id": "again"}]})
    (said,) = [problem for problem in gate(twice).problems if "lacks findings on" in problem]
    assert said.startswith("two-dimensions and 1 more: lacks findings on absorbed-mla-equals-expanded, agrees-")
    assert f" and {len(CHOSEN) - len(some) - 3} more; if the run was made with --select" in said
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


# --- what an attack found


def without_traces(made, change):
    """Return a wrong implementation's results with the core's findings, and traces that cannot contradict them."""
    forged = copy.deepcopy(made)
    for entry, sound in zip(forged["cases"], SMALL["cases"], strict=True):
        entry["findings"] = copy.deepcopy(sound["findings"])
        for shown in entry["conditions"].values():
            change(shown)
    forged["summary"] = results.summary(forged["cases"])
    return resealed(forged)


def summarise(shown):
    array = np.array(shown["lse"])
    shown["lse"] = results.numbers(summarised(array, 0))


@pytest.mark.parametrize(
    "change",
    [
        lambda shown: shown.update(dict.fromkeys(shown)),
        lambda shown: shown.update(output=None),
        summarise,
    ],
    ids=["no traces", "no output", "a summary"],
)
def test_findings_without_the_traces_that_they_need_are_not_believed(change):
    forged = without_traces(WRONG, change)
    problems = gate(forged, implementation="mine").problems
    assert any("weight-ratios-follow-score-gaps: cannot be judged anew" in problem for problem in problems)


@pytest.mark.parametrize(
    ("name", "value"), [("name", "mine"), ("name", "Core"), ("dtype", "float16"), ("version", "9")]
)
def test_what_was_under_test_must_be_what_the_gate_expects(name, value):
    forged = edited(SMALL, ("implementation", name), lambda _: value)
    assert gate(resealed(forged)).problems


WORDS = [
    (("cases", 0, "id"), lambda _: "six-dimensions"),
    (("cases", 0, "file"), lambda _: "/etc/passwd"),
    (("cases", 0, "file"), lambda _: "../two-dimensions.yaml"),
    (("cases", 0, "findings", OUTPUT, "reason"), lambda _: "looks great"),
    (("cases", 0, "findings", INERT, "reason"), lambda _: "not worth a look"),
    (("cases", 0, "findings", OUTPUT, "worst", "left"), lambda _: None),
    (("cases", 0, "findings", BOTH, "worst", "right"), lambda x: x + 1e-6),
]


@pytest.mark.parametrize(("path", "change"), WORDS)
def test_words_and_places_cannot_be_made_up(path, change):
    made = copy.deepcopy(SMALL)
    made["cases"][0]["file"] = "cases/two-dimensions.yaml"
    assert gate(resealed(made)).problems == []
    assert gate(resealed(edited(made, path, change))).problems


@pytest.mark.parametrize(
    ("name", "value"), [("head", 99), ("row", 10**12), ("index", 12345), ("of", "lies"), ("index", None)]
)
def test_a_place_must_be_one_where_the_numbers_are_what_they_say(name, value):
    made = copy.deepcopy(SMALL)
    for finding in made["cases"][1]["findings"]:
        if finding["worst"] is not None and finding["worst"]["axis"] is not None:
            finding["worst"][name] = value
    assert any("worst: there is no" in problem for problem in gate(resealed(made)).problems)


def test_a_rounding_bound_cannot_be_made_up():
    made = copy.deepcopy(SMALL)
    for finding in made["cases"][1]["findings"]:
        if finding["rounding_bound"] is not None:
            finding["rounding_bound"] = 123.0
    assert any("rounding_bound says 123.0" in problem for problem in gate(resealed(made)).problems)


def test_elements_that_differ_by_noise_only_are_told_apart_by_their_place():
    """Beside a right side of 0 every element is off by 1e12 limits: noise must not choose among them."""
    draw = rng(56)
    case = random_case(draw, bK=np.zeros((3, 7)), features={"key_shifts": 3 * draw.normal(size=(3, 5, 7))}).but(
        id="tie"
    )

    def nudged(case):
        trace = CORE(case)
        up = draw.integers(-1, 2, size=trace.scores.shape)
        scores = np.where(up > 0, np.nextafter(trace.scores, np.inf), trace.scores)
        return Trace(trace.output, {**trace.inside, "scores": np.where(up < 0, np.nextafter(scores, -np.inf), scores)})

    for _ in range(20):
        assert gate(made_by(nudged, "core", case)).problems == []


def test_one_document_cannot_stand_for_two_cases():
    made = copy.deepcopy(SMALL)
    twice = copy.deepcopy(made["cases"][0])
    made["cases"][0]["file"] = twice["file"] = "a/two-dimensions.yaml"
    twice["id"] = "a/two-dimensions"
    made["cases"].append(twice)
    made["summary"] = results.summary(made["cases"])
    assert any("the same document stands 2 times" in problem for problem in gate(resealed(made)).problems)


def test_rounding_of_another_processor_is_no_forgery_where_numbers_are_large():
    """Findings that rounding explains may end one way here and the other there; a break may not."""
    case = random_case(rng(54), bK=3e5 * rng(54).normal(size=(3, 7))).but(id="large")
    plain = made_by(CORE, "core", case)["cases"][0]
    order = np.arange(7)[::-1]

    def reversed_sums(case):
        return CORE(
            case.but(q=case.q[..., order], keys=case.keys[..., order], bQ=case.bQ[:, order], bK=case.bK[:, order])
        )

    made = made_by(reversed_sums, "core", case)
    other = made["cases"][0]
    assert [f["deviation"] for f in plain["findings"]] != [f["deviation"] for f in other["findings"]]
    assert gate(made).problems == []
    forged = edited(made, ("cases", 0, "conditions", "k", "weights", 0, 0, 0), lambda x: x + 1e-3)
    assert gate(resealed(forged)).problems


def test_results_in_full_with_large_published_arrays_are_sound(tmp_path):
    rows = [[0.25 * (index % 3)] for index in range(70)]
    printed = CORE(random_case(rng(55), H=1, G=1, Tq=70, Tk=70, d_k=1, q=np.array([rows]), keys=np.array([rows])))
    case = random_case(
        rng(55), H=1, G=1, d_k=1, q=np.array([rows]), keys=np.array([rows]), values=None, bV=None,
        published=Published(3, {"scores": {"none": np.round(printed.scores, 3)}}),
    ).but(id="large")  # fmt: skip
    for detail in ("auto", "full", "summary"):
        reports = tuple(run([case], CORE, CHOSEN, TOLERANCE, largest=LARGEST[detail]))
        made = json.loads(results.encoded(Report(UnderTest("core", __version__), TOLERANCE, reports), detail))
        assert gate(made, files={"large": case}).problems == []


def test_a_summary_of_an_overflow_is_sound():
    q, keys = np.array([[[1.0], [1e200]]]), np.array([[[1.0], [1e200], [2.0]]])
    case = article_case(q=q, keys=keys, bQ=np.zeros((1, 1)), bK=np.ones((1, 1)), scale=1.0).but(id="inf")
    for detail in ("auto", "summary"):
        reports = tuple(run([case], CORE, CHOSEN, TOLERANCE, largest=LARGEST[detail]))
        assert (
            gate(
                json.loads(results.encoded(Report(UnderTest("core", __version__), TOLERANCE, reports), detail))
            ).problems
            == []
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["cases"].clear(),
        lambda made: made["cases"].append(made["cases"][0]),
        lambda made: made["cases"][0]["findings"][0].update(status="fail"),
    ],
    ids=["empty", "twice", "edited"],
)
def test_a_baseline_must_be_sound_itself(change):
    old = copy.deepcopy(SMALL)
    assert list(unsound(old)) == []
    change(old)
    assert list(unsound(old))


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


def test_a_document_begins_where_the_results_say(article):
    made = made_by(CORE, "core", *from_files(article).values())
    assert [entry["line"] for entry in made["cases"] if entry["id"] == "two-dimensions"] == [5]  # behind its comments
    made["cases"][0]["line"] += 1
    problems = gate(resealed(made), files=from_files(article)).problems
    assert len(problems) == 1
    assert "its document begins at" in problems[0]


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
    without = edited(SMALL, ("cases", 0, "findings"), without_both)
    assert list(worse(SMALL, without)) == [f"two-dimensions: {BOTH}: has disappeared, was pass"]
    skipped = edited(SMALL, ("cases", 0, "findings", BOTH, "status"), lambda _: "skipped")
    assert "was pass, is skipped" in next(worse(SMALL, skipped))
    loosened = edited(SMALL, ("cases", 0, "findings", BOTH, "expected"), lambda _: "within-rounding")
    assert "was expected holds, is expected within-rounding" in next(worse(SMALL, loosened))


# --- cases with features


def featured_case():
    draw = rng(51)
    mask = np.array([[[True, True, False, True], [False, True, True, True]]])
    case = random_case(draw, H=1, G=1, Tq=2, Tk=4, d_k=3, d_v=5)
    return case.but(id="masked", features={"mask": mask, "softcap": 3.0})


SPARSE = {"normaliser": {"kind": "sparsemax"}}
FEATURED = made_by(CORE, "core", featured_case(), featured_case().but(id="sparse", features=SPARSE))
ABOUT_CHANGED = ("masked-keys-have-no-say", "keys-permute-freely", "query-rows-permute", "each-query-stands-alone")


def featured_edit(change):
    made = copy.deepcopy(FEATURED)
    change(made["cases"])
    return gate(resealed(made)).problems


def test_a_run_with_features_is_sound():
    verdict = gate(FEATURED)
    assert verdict.problems == []
    assert verdict.broken == []


@pytest.mark.parametrize("name", ABOUT_CHANGED)
@pytest.mark.parametrize(
    "forged",
    [
        {"of": "the moon"},
        {"head": 999},
        {"row": 7},
        {"left": 1e300, "right": 1e300},
        {"left": 0.25, "right": 0.25},
    ],
)
def test_evidence_of_claims_about_changed_cases_cannot_be_forged(name, forged):
    def forge(cases):
        finding = finding_on(cases[0]["findings"], name)
        assert finding["status"] == "pass"
        finding["worst"].update(forged)

    assert featured_edit(forge)


def test_an_lse_that_the_core_does_not_have_is_noticed():
    def forge(cases):
        cases[1]["conditions"]["k"]["lse"] = [[0.5, 0.5]]

    assert any("lse: is there, but the core has none" in problem for problem in featured_edit(forge))


def test_a_feature_that_is_taken_out_is_noticed():
    assert featured_edit(lambda cases: cases[0]["inputs"]["features"].pop("softcap"))


def test_a_mask_of_ones_is_no_mask():
    def forge(cases):
        cases[0]["inputs"]["features"]["mask"] = [[[1, 1, 0, 1], [0, 1, 1, 1]]]

    assert featured_edit(forge)


def test_a_place_that_is_written_as_a_fraction_is_still_a_place():
    def forge(cases):
        worst = finding_on(cases[0]["findings"], "scores-follow-the-formula")["worst"]
        worst["index"] = float(worst["index"])

    featured_edit(forge)  # it is a whole number to JSON Schema: no error, whatever is said of it


@pytest.mark.parametrize("place", [("mask", 0, 0, 0), ("softcap",)])
def test_a_changed_parameter_is_noticed(place):
    def forge(cases):
        *inner, last = place
        part = cases[0]["inputs"]["features"]
        for step in inner:
            part = part[step]
        part[last] = not part[last] if isinstance(part[last], bool) else part[last] * 1.5

    assert featured_edit(forge)


# --- what another attack found


def test_what_rounding_leaves_open_here_is_no_pass_whatever_the_file_says():
    """A pass with equal sides may be honest on another processor; here nothing can be told, and the gate is red."""
    case = random_case(rng(57), bK=3e7 * rng(57).normal(size=(3, 7))).but(id="large")
    made = made_by(CORE, "core", case)
    forged = copy.deepcopy(made)
    turned = [finding for finding in forged["cases"][0]["findings"] if finding["status"] == "inconclusive"]
    assert turned
    for finding in turned:
        left = finding["worst"]["left"]
        finding.update(status="pass", observed="holds", deviation=0.0, reason=None, limit=max(1e-12, 1e-12 * abs(left)))
        finding["worst"]["right"] = left
    forged["summary"] = results.summary(forged["cases"])
    verdict = gate(resealed(forged))
    assert verdict.problems or verdict.broken
    for finding in turned:
        assert any(finding["invariant"] in said for said in [*verdict.problems, *verdict.broken])


@pytest.mark.parametrize(
    ("name", "forge"),
    [
        ("keys-permute-freely", lambda finding: finding.update(expected="within-rounding")),
        ("masked-keys-have-no-say", lambda finding: finding["worst"].update(axis="key")),
        ("key-bias-leaves-weights", lambda finding: finding.update(reason="vacuous: this K bias is harmless")),
        ("key-bias-leaves-weights", lambda finding: finding.update(reason=None)),
        ("output-mixes-values-by-weight", lambda finding: finding["worst"].update(axis="key")),
        ("absorbed-mla-equals-expanded", lambda finding: finding.update(reason="nobody asked")),
    ],
)
def test_what_follows_from_the_case_cannot_be_said_otherwise(name, forge):
    assert featured_edit(lambda cases: forge(finding_on(cases[0]["findings"], name)))


def test_a_file_is_where_the_id_says():
    made = copy.deepcopy(SMALL)
    made["cases"][0].update(id="article/two-dimensions", file="cases/article/two-dimensions.yaml")
    assert gate(resealed(made)).problems == []
    for wrong in ("somewhere/two-dimensions.yaml", "article/another.yaml", "two-dimensions.yaml"):
        made["cases"][0]["file"] = wrong
        assert any("its file is" in problem for problem in gate(resealed(made)).problems)


def test_findings_of_a_case_in_blocks_are_looked_at_in_their_block(monkeypatch):
    from verify_attention.gate import anew

    case = random_case(rng(58), H=2, G=1, Tq=11, Tk=9).but(id="blocks")
    made = made_by(CORE, "core", case)
    monkeypatch.setattr(anew, "blocks", lambda case: blocks(case, largest=27))
    assert len(list(anew.blocks(case))) > 4
    assert gate(made).problems == []
    for forged in ({"of": "nonsense"}, {"head": 7}, {"row": 99_999}, {"left": 1234.5, "right": 1234.5}):
        wrong = copy.deepcopy(made)
        finding_on(wrong["cases"][0]["findings"], "key-bias-leaves-weights")["worst"].update(forged)
        assert gate(resealed(wrong)).problems, forged


def test_scores_that_overflowed_are_sound():
    q, keys = np.array([[[1e200]]]), np.array([[[-1e200], [1.0]]])
    case = article_case(q=q, keys=keys, bQ=np.zeros((1, 1)), bK=np.ones((1, 1)), scale=1.0).but(id="inf")
    made = made_by(CORE, "core", case)
    assert made["cases"][0]["conditions"]["none"]["scores"] == [[[None, 1e200]]]
    assert gate(made).problems == []


def test_a_row_s_number_has_no_axis():
    made = copy.deepcopy(SMALL)
    finding_on(made["cases"][0]["findings"], "weights-sum-to-one")["worst"]["axis"] = "channel"
    assert any("worst.axis says channel, it is none" in problem for problem in gate(resealed(made)).problems)


def test_a_case_of_a_file_is_not_said_to_be_of_another():
    case = load_cases([resources.folder("cases") / "article" / "two-dimensions.yaml"])[0]
    made = made_by(CORE, "core", case)
    assert gate(made, files={case.id: case}).problems == []
    for wrong in ("", "two-dimensions", "two-dimensions.txt"):
        made["cases"][0]["file"] = wrong
        assert any("its file is" in problem for problem in gate(resealed(made), files={case.id: case}).problems)


def test_a_bound_that_overflowed_forgives_what_it_cannot_tell():
    keys = {"keys": [[1e200, -2e200], [1, 1]], "features": {"softcap": 5, "appended_key": {"key": [2e200, -1e200]}}}
    case = build_case({"d_k": 2, "q": [[1e200, 1e200]], "bQ": [0, 0], "bK": [0, 0], **keys}, id="far")
    assert gate(made_by(CORE, "core", case)).problems == []
