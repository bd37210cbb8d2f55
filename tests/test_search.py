"""The search for smallest counterexamples: what it draws and finds, how small that becomes, and how it is told."""

from __future__ import annotations

import itertools
import math
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from featured import draw_cases
from making import PEER, random_case, right_of, rng
from test_cli import PROGRAM, call

from verify_attention import plugins, results, selftest
from verify_attention.cases import build_case, load_cases
from verify_attention.engine import judge, run_case
from verify_attention.functions import Asked
from verify_attention.kernel import attention
from verify_attention.model import Case, Implementation, Latent, Tolerance, Trace, precision
from verify_attention.pipeline import CORE
from verify_attention.search import document, hunt, reduced, text
from verify_attention.search.cost import cost
from verify_attention.search.drawing import Order, case_of, printed
from verify_attention.search.ingredients import recipes
from verify_attention.search.parameters import Numbers

INVARIANTS = plugins.invariants()
SEEN = {one.mistake: one.implementation for one in selftest.planted() if one.claim is None}
SHIPPED = load_cases(shipped=".")


def drawn(count: int, claim: str, seed: int = 0, features: tuple[str, ...] = ()) -> list[Case]:
    """Return the cases that a hunt for a claim asks about, the first time that it asks."""
    asked: list[Case] = []

    def remember(case: Case) -> Trace:
        asked.append(case)
        return CORE(case)

    hunt(remember, [INVARIANTS[claim]], examples=count, seed=seed, features=features)
    return asked


# --- what is drawn


def inputs(cases: list[Case]) -> list[object]:
    return [results.inputs(case, "full") for case in cases]


def test_the_same_seed_draws_the_same_cases_and_another_draws_others() -> None:
    first, again, other = (inputs(drawn(20, "weights-sum-to-one", seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_sizes_differ_and_are_sometimes_larger() -> None:
    cases = drawn(300, "scores-follow-the-formula")
    shapes = {(*case.scores_shape, len(case.keys), case.d_k, case.d_v) for case in cases}
    columns = list(zip(*shapes, strict=True))
    assert [min(column) for column in columns] == [1] * 6
    assert [max(column) for column in columns][:5] == [4, 4, 12, 4, 9]
    assert sum(np.abs(case.q).max() > 50 for case in cases) > 5
    assert any(case.W_O is not None for case in drawn(20, "layer-sums-over-heads"))
    assert all(name in {key for case in cases for key in case.features} for name in plugins.features())


def test_every_drawn_case_has_the_features_that_are_asked_for() -> None:
    cases = drawn(100, "weights-follow-the-formula", features=("softcap", "causal"))
    assert len(cases) > 100
    asked = [case for case in cases if {"softcap", "causal"} <= case.features.keys()]
    assert len(asked) > 0.9 * len(cases)  # the others are questions about single features


def test_nothing_is_drawn_that_takes_away_what_a_claim_needs() -> None:
    for recipe in recipes([INVARIANTS["key-bias-leaves-weights"]], CORE):
        assert not {"softcap", "sink", "key_shifts"} & set(recipe.others)
        assert {"mask", "rope"} <= set(recipe.others)


def test_what_a_claim_asks_of_a_case_is_found_by_asking() -> None:
    needed = {recipe.claim.name: set(recipe.one_of) for recipe in recipes(list(INVARIANTS.values()), CORE)}
    assert needed["softcap-bounds-scores"] == {"softcap"}
    assert needed["future-keys-have-no-say"] == needed["one-pass-equals-step-by-step"] == {"causal"}
    assert needed["absorbed-mla-equals-expanded"] == {"latent"}
    assert needed["inert-query-bias-leaves-weights"] == {"inert"}
    assert needed["published-numbers-are-reproduced"] == {"published"}
    assert needed["sink-leaves-the-predicted-share"] == {"sink", "softmax_plus_one", "zero_key", "appended_key"}
    assert needed["weights-sum-to-one"] == set()


def test_a_function_is_asked_of_what_its_interface_has() -> None:
    [recipe] = recipes([INVARIANTS["weights-sum-to-one"]], PEER)
    assert {"mask", "causal", "rope"} <= set(recipe.others)
    assert not {"qk_norm", "temperature", "fill"} & set(recipe.others)


# --- nothing is found where nothing is wrong


@pytest.mark.parametrize("right", [CORE, PEER], ids=["core", "kernel"])
def test_nothing_is_found_in_what_is_right(right: object) -> None:
    state = hunt(right, list(INVARIANTS.values()), examples=600, seed=3)  # type: ignore[arg-type]
    assert state.found is None
    assert (state.examples, state.checked.total() > 300) == (600, True)


def test_every_claim_is_really_checked() -> None:
    unchecked = {
        name
        for name, claim in INVARIANTS.items()
        if not hunt(right_of(claim), [claim], examples=30, seed=1).checked[name]
    }
    assert unchecked == set()


def test_claims_of_the_formula_are_asked_before_those_about_code() -> None:
    state = hunt(Asked(attention), list(INVARIANTS.values()), examples=1)
    about_code = [INVARIANTS[name].of_others for name in state.asked]
    assert about_code == sorted(about_code)
    assert set(about_code) == {False, True}


def test_other_precisions_are_not_found_either() -> None:
    own = precision("float64", "float32")
    variation = next(one for one in selftest.variations() if one.computes_in == "float32")
    claims = list(INVARIANTS.values())
    assert hunt(variation.implementation, claims, examples=300, seed=2, own=own).found is None
    assert hunt(variation.implementation, claims, examples=300, seed=2).found is not None


def test_without_examples_nothing_is_found() -> None:
    state = hunt(SEEN["the scale is missing"], list(INVARIANTS.values()), examples=0)
    assert (state.examples, state.found) == (0, None)


# --- what is found, and how small it becomes

KEYS, WIDTH = 3, 2
SMALL = {  # ten mistakes seen in real code, with a claim that notices each
    "the K bias is lost under causality": "key-bias-shifts-scores-alike",
    "the K bias reaches the second half of the keys only": "key-bias-leaves-weights",
    "the Q bias is ignored": "query-bias-moves-score-gaps",
    "the V bias is dropped when no mask is given": "value-bias-passes-through",
    "the scale is missing": "scores-follow-the-formula",
    "one future key is visible": "future-keys-have-no-say",
    "key-value heads are tiled, not repeated": "grouped-heads-equal-repeated-heads",
    "no maximum is subtracted": "weights-sum-to-one",
    "the boolean mask is read the other way round: true hides": "masked-keys-have-no-say",
    "one undeclared zero key takes a share": "softmax-ignores-a-row-shift",
}


@pytest.mark.parametrize("mistake", SMALL)
def test_a_mistake_is_found_and_shrunk_to_what_a_pencil_can_check(mistake: str) -> None:
    wrong, claim = SEEN[mistake], INVARIANTS[SMALL[mistake]]
    found = hunt(wrong, [claim], examples=2000, seed=0).found
    assert found is not None
    small = reduced(found.case, claim, found.finding, wrong)
    assert not small.stopped
    assert small.case.scores_shape[2] <= KEYS
    assert small.case.d_k <= WIDTH
    assert cost(small.case) < cost(found.case)
    assert small.finding.status == judge(claim, small.case, wrong).status == "fail"
    assert judge(claim, small.case, CORE).status == "pass"
    assert not (small.finding.deviation or 0) < 1e-3
    again = reduced(found.case, claim, found.finding, wrong)
    assert text(again.case) == text(small.case)


def test_what_crashes_is_reduced_to_what_crashes() -> None:
    def crashing(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: object) -> object:
        if q.shape[2] > 1 and options.get("causal"):
            raise ZeroDivisionError
        return attention(q, k, v, **options)  # type: ignore[arg-type]

    claim = INVARIANTS["weights-sum-to-one"]
    found = hunt(Asked(crashing), [claim], examples=2000).found
    assert found is not None
    assert found.finding.status == "crashed"
    small = reduced(found.case, claim, found.finding, Asked(crashing))
    assert (small.case.scores_shape, small.finding.status) == ((1, 2, 1), "crashed")
    assert small.case.features == {"causal": "upper-left"}


def test_what_breaks_for_the_core_too_is_no_simpler_case() -> None:
    """A control must break: where it does not for the core either, it says nothing of an implementation."""
    claim, name = INVARIANTS["key-bias-leaves-weights"], "key-bias-leaves-weights"
    given = {"d_k": 1, "q": [2], "keys": [[3], [1], [0]], "bQ": [1], "bK": [2], "features": {"softcap": 2}}
    case = build_case({**given, "expect": {name: "breaks"}}, id="control")

    def uncapped(case: Case) -> Trace:
        return CORE(case.but(features={}))

    finding = judge(claim, case, uncapped)
    assert (finding.status, judge(claim, case, CORE).status) == ("fail", "pass")
    small = reduced(case, claim, finding, uncapped)
    assert small.case.expect == {name: "breaks"}
    assert judge(claim, small.case, CORE).status == "pass"
    assert cost(small.case) < cost(case)


def test_a_case_that_does_not_break_again_stays_as_it_is() -> None:
    case = build_case({"d_k": 1, "q": [0], "keys": [[1], [2]], "bQ": [1], "bK": [1]}, id="x")
    claim = INVARIANTS["scores-follow-the-formula"]
    finding = judge(claim, case, SEEN["the Q bias is ignored"])
    small = reduced(case, claim, finding, CORE)
    assert small.case is case
    assert "does not break again" in small.stopped


def test_work_that_is_cut_short_says_so() -> None:
    wrong, claim = SEEN["the scale is missing"], INVARIANTS["scores-follow-the-formula"]
    case = random_case(rng())
    finding = judge(claim, case, wrong)
    few = reduced(case, claim, finding, wrong, most=8)
    assert re.fullmatch(r"stopped after \d+ tries: there may be a smaller one", few.stopped)
    assert few.finding.status == "fail"
    assert cost(reduced(case, claim, finding, wrong).case) < cost(few.case) <= cost(case)


def test_ctrl_c_keeps_the_smallest_that_is_known() -> None:
    wrong, claim = SEEN["the scale is missing"], INVARIANTS["scores-follow-the-formula"]
    case, calls = random_case(rng()), [0]
    finding = judge(claim, case, wrong)

    def interrupted(case: Case) -> Trace:
        calls[0] += 1
        if calls[0] > 100:
            raise KeyboardInterrupt
        return wrong(case)

    small = reduced(case, claim, finding, interrupted)
    assert small.interrupted
    assert judge(claim, small.case, wrong).status == "fail"
    calls[0] = 0
    state = hunt(interrupted, [INVARIANTS["weights-sum-to-one"]], examples=10**6, seed=1)
    assert state.interrupted
    assert state.found is None


# --- as YAML


def same(one: Case, other: Case) -> bool:
    return results.inputs(one, "full") == results.inputs(other, "full")


def again(case: Case, folder: Path, name: str | None = None) -> Case:
    (folder / "case.yaml").write_text(text(case, name), encoding="utf-8")
    [read] = load_cases([folder / "case.yaml"])
    return read


def test_every_shipped_case_is_written_and_read_as_the_same(tmp_path: Path) -> None:
    small = [case for case in SHIPPED if math.prod(case.scores_shape) * case.d_k < 2000]
    assert len(small) > 250
    for case in small:
        read = again(case, tmp_path)
        assert same(read, case), case.id


def test_drawn_cases_are_written_and_read_as_the_same(tmp_path: Path) -> None:
    for case in [*drawn(60, "weights-follow-the-formula"), *draw_cases(rng(5), 40)]:
        assert same(again(case, tmp_path), case)


def test_a_parameter_that_must_be_given_is_written_though_it_is_the_default(tmp_path: Path) -> None:
    given = {"d_k": 1, "q": [1], "keys": [[1]], "bQ": [0], "bK": [0], "features": {"temperature": {"rows": [1]}}}
    case = build_case(given, id="x")
    assert list(document(case)["features"]["temperature"]) == ["rows"]
    assert same(again(case, tmp_path), case)


def test_a_case_is_written_as_a_person_would() -> None:
    given = {"q": [[[1.0, 0.5]], [[1, 0.5]]], "keys": [[[1, 2], [0, 1]]], "bQ": [[1, 0], [1, 0]], "bK": [[0, 0]]}
    case = build_case({"d_k": 2, **given, "features": {"rope": {}, "mask": [[[True, False]]] * 2}}, id="x")
    assert text(case, "small") == (
        "name: small\n"
        "d_k: 2\n"
        "q: [[[1, 0.5]], [[1, 0.5]]]\n"
        "keys: [[1, 2], [0, 1]]\n"
        "bQ: [1, 0]\n"
        "bK: [0, 0]\n"
        "features: {rope: {}, mask: [true, false]}\n"
    )
    assert document(case)["features"]["rope"] == {}


def test_long_arrays_have_a_line_for_each_part(tmp_path: Path) -> None:
    case = random_case(rng(2)).but(title="of a: colon, 'quotes' and −", source="no")
    lines = text(case).splitlines()
    assert max(map(len, lines)) <= 160
    assert len(lines) > 20
    assert same(again(case, tmp_path), case)


def test_published_numbers_and_latents_come_along(tmp_path: Path) -> None:
    sizes = {"H": 2, "G": 2, "Tq": 1, "Tk": 2, "d_k": 3, "d_v": 2}
    with_latent = case_of(Order(sizes, ("latent",)), Numbers(bytes(range(7, 200))))
    assert with_latent is not None
    assert isinstance(with_latent.latent, Latent)
    with_numbers = printed(with_latent.but(latent=None), {"weights": ("none", "qk")}, 4)
    assert with_numbers is not None
    for case in (with_latent, with_numbers):
        assert same(again(case, tmp_path), case)


# --- on the command line

KERNEL = """
from verify_attention.kernel import attention


def lost(q, k, v, *, causal=None, bK=None, **options):
    return attention(q, k, v, causal=causal, bK=None if causal else bK, **options)


def right(q, k, v, **options):
    return attention(q, k, v, **options)


def crashing(q, k, v, **options):
    raise ZeroDivisionError("as it must")


def interrupting(q, k, v, _count=[0], **options):
    _count[0] += 1
    if _count[0] > 300:
        raise KeyboardInterrupt
    return attention(q, k, v, **options)


def stopping(q, k, v, _count=[0], **options):
    _count[0] += 1
    if _count[0] > 40:
        raise KeyboardInterrupt
    return attention(q, 2 * k, v, **options)


def rounding(q, k, v, **options):
    import numpy as np
    answer = attention(q.astype(float), k.astype(float), v.astype(float), **options)
    return {name: part.astype(q.dtype) for name, part in answer.items()}


def nothing(q, k, v):
    raise NotImplementedError
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kern.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


def test_what_is_found_is_printed_as_a_case_and_ends_with_1(folder: Path) -> None:
    done = call("search", "--implementation", "kern.py:lost", "--select", "key-bias-shifts*", folder=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("# key-bias-shifts-scores-alike breaks for kern.py:lost\n#   0 against ")
    assert "again: verify-attention search --implementation kern.py:lost --select 'key-bias-shifts*'\n" in done.stdout
    made = yaml.safe_load(done.stdout)
    assert made["features"] == {"causal": "lower-right"}
    assert (made["d_k"], made["keys"], abs(made["bK"][0])) == (1, [[0]], 1)
    assert re.fullmatch(r"found in example [\d,]+ of 5,000, made smaller in \d+ steps\n", done.stderr)
    assert list(folder.glob(".hypothesis")) == []


def test_the_same_seed_prints_the_same_bytes(folder: Path) -> None:
    command = ("search", "--implementation", "kern.py:lost", "--seed", "7", "--examples", "900")
    first, second = (call(*command, folder=folder) for _ in range(2))
    assert first.stdout == second.stdout
    assert "--examples 900 --seed 7\n" in first.stdout


def test_a_case_is_written_beside_those_that_are_there(folder: Path) -> None:
    command = ("search", "--implementation", "kern.py:lost", "--select", "key-bias-shifts*", "--output-dir", "found")
    done = call(*command, folder=folder)
    path = folder / "found" / "key-bias-shifts-scores-alike.yaml"
    assert done.stderr.endswith("\ncase: found/key-bias-shifts-scores-alike.yaml\n")
    [repeat] = re.findall(r"again: verify-attention (run .*)\n", done.stdout)
    assert call(*repeat.split(), folder=folder).returncode == 1
    assert call(*repeat.replace("lost", "right").split(), folder=folder).returncode == 0
    assert call(*command, folder=folder).stderr.endswith(f"case: found/{path.name}\n")  # the same once more
    path.write_text("# mine\n", encoding="utf-8")
    assert call(*command, folder=folder).stderr.endswith("case: found/key-bias-shifts-scores-alike-2.yaml\n")
    assert path.read_text(encoding="utf-8") == "# mine\n"


def test_nothing_found_ends_with_0_and_counts(folder: Path) -> None:
    done = call("search", "--implementation", "kern:right", "--examples", "200", folder=folder)
    assert done.returncode == 0
    assert re.fullmatch(r"nothing found: 200 examples, \d+ equations really checked, of \d+ claims\n", done.stdout)


def test_where_nothing_is_checked_nothing_held(folder: Path) -> None:
    done = call("search", "--implementation", "kern:nothing", "--examples", "20", folder=folder)
    assert (done.returncode, " 0 equations really checked, of 0 claims" in done.stdout) == (1, True)


def test_what_crashes_ends_with_4(folder: Path) -> None:
    done = call("search", "--implementation", "kern.py:crashing", folder=folder)
    assert done.returncode == 4
    assert " crashes for kern.py:crashing\n#   ZeroDivisionError: as it must (kern.py:14 in crashing)\n" in done.stdout


def test_ctrl_c_says_what_is_known_and_ends_with_130(folder: Path) -> None:
    done = call("search", "--implementation", "kern.py:interrupting", folder=folder)
    assert done.returncode == 130
    assert re.fullmatch(
        r"interrupted: nothing found in \d+ examples, \d+ equations really checked \(of 5,000 examples\)\n", done.stdout
    )


def deaf(implementation: Implementation, call: int) -> Implementation:
    """Return an implementation during one call of which a Ctrl-C comes and is ignored, as in a callback."""
    calls = itertools.count(1)

    def attend(case: Case) -> Trace:
        if next(calls) == call:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return implementation(case)

    return attend


def test_a_ctrl_c_that_was_ignored_is_not_lost() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may ignore it
    try:
        claim, wrong = INVARIANTS["scores-follow-the-formula"], SEEN["the scale is missing"]
        state = hunt(deaf(CORE, 400), [claim], examples=2000)
        assert state.interrupted
        assert 20 < state.examples < 400
        found = hunt(wrong, [claim], examples=2000).found
        assert found is not None
        small = reduced(found.case, claim, found.finding, deaf(wrong, 20))
        assert (small.interrupted, small.tried < 20) == (True, True)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_real_ctrl_c_ends_with_130(folder: Path) -> None:
    command = [PROGRAM, "search", "--examples", "1000000", "--no-progress"]
    # A test run that was started in the background ignores the signal, and its children would too.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    heeding = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, cwd=folder, **pipes, **heeding) as running:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(4)
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert out.startswith("interrupted: nothing found in ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--select", "key-bias-leaves-wieghts"], "no invariant is called 'key-bias-leaves-wieghts'; did you mean"),
        (["--feature", "sofcap"], "error: no feature is called 'sofcap'; did you mean 'softcap'?\n"),
        (["--feature", "sink", "--select", "weights-sum-to-one"], "error: --feature sink takes away what each of the"),
        (["--output-dir", "kern.py"], "error: kern.py: is no folder\n"),
        (["--output-dir", "no/such/folder"], "error: no/such/folder: the folder "),
        (["--implementation", "nobody"], "error: no implementation is called 'nobody'"),
        (["--examples", "0"], "0 is not in the range x>=1"),
        (["--dtype", "bfloat16"], "error: core takes float64, not bfloat16\n"),
    ],
)
def test_usage_stops_before_anything_is_drawn(arguments: list[str], said: str, folder: Path) -> None:
    done = call("search", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_without_hypothesis_one_line_says_how_to_install_it(folder: Path) -> None:
    hide = "import sys; sys.modules['hypothesis'] = None; import runpy; sys.argv[0] = 'verify-attention';"
    run = f"{hide} runpy.run_module('verify_attention', run_name='__main__')"
    for command, code in (["search"], 2), (["validate"], 0), (["run", "--no-output", "--shrink"], 0):
        done = subprocess.run(
            [sys.executable, "-c", run, *command], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == code, done.stderr
        if code:
            said = "error: search needs hypothesis, which is not installed: pip install hypothesis\n"
            assert (done.stdout, done.stderr) == ("", said)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_cases_are_cast_to_the_dtype(dtype: str, folder: Path) -> None:
    command = ("search", "--implementation", "kern.py:rounding", "--dtype", dtype, "--examples", "400")
    done = call(*command, folder=folder)
    assert (done.returncode, done.stdout.startswith("nothing found: 400 examples")) == (0, True), done.stdout
    wrong = call("search", "--implementation", "kern.py:lost", "--dtype", dtype, folder=folder)
    assert wrong.returncode == 1
    assert f" --dtype {dtype}\n" in wrong.stdout


@pytest.mark.parametrize("features", [(), ("causal", "alibi")])
def test_a_feature_is_in_every_case(features: tuple[str, ...]) -> None:
    seen: set[frozenset[str]] = set()

    def noting(case: Case) -> Trace:
        seen.add(frozenset(case.features))
        return CORE(case)

    def begin(done: int, _total: int) -> None:
        if done == 1:
            seen.clear()  # what was asked before is what the implementation offers

    hunt(noting, [INVARIANTS["weights-sum-to-one"]], examples=60, features=features, progress=begin)
    assert len(seen) > 1
    assert frozenset.intersection(*seen) == set(features)


def test_colour_marks_the_comments_only(folder: Path) -> None:
    command = ("search", "--implementation", "kern.py:lost", "--color", "always")
    lines = call(*command, folder=folder).stdout.splitlines()
    assert lines[0].startswith("\x1b[31m#")
    assert [line for line in lines if line.startswith("d_k")] == ["d_k: 1"]


# --- run --shrink


def test_a_run_shrinks_the_first_case_of_each_claim_that_broke(folder: Path) -> None:
    command = ("run", "--implementation", "kern.py:lost", "--shrink", "-q", "--no-output", "--select", "key-bias*,lse*")
    done = call(*command, folder=folder)
    assert done.returncode == 1
    _, *parts = done.stdout.split("\n\n# ")
    assert [part.split()[0] for part in parts] == ["key-bias-shifts-scores-alike", "lse-moves-with-the-key-bias"]
    assert ", on a case made of boundaries/causal::lower-right\n" in parts[0]
    assert yaml.safe_load("# " + parts[0])["features"] == {"causal": "lower-right"}
    assert [path.name for path in folder.iterdir() if path.suffix != ".py" and path.name != "__pycache__"] == []


def test_what_a_case_wrongly_expects_is_shrunk_though_right_code_breaks_it(folder: Path) -> None:
    (folder / "wrong.yaml").write_text(
        "d_k: 3\nq: [[1, 2, 0], [0.5, 1, 1]]\nkeys: [[0, 1, 2], [1, 0, -1], [2, 1, 0], [1, 1, 1]]\nbQ: [0, 1, 0]\n"
        "bK: [3, -2, 1]\nfeatures: {softcap: 5, causal: lower-right}\nexpect: {key-bias-leaves-weights: holds}\n"
    )
    done = call("run", "wrong.yaml", "--shrink", "-q", "--no-output", folder=folder)
    assert done.returncode == 1
    made = yaml.safe_load("# " + done.stdout.partition("\n\n# ")[2])
    # By hand: tanh(1) − tanh(0) is not tanh(2) − tanh(1), so that one channel and two keys are enough.
    assert (made["d_k"], np.shape(made["keys"])) == (1, (2, 1))
    assert set(made["features"]) == {"softcap"}
    assert made["expect"] == {"key-bias-leaves-weights": "holds"}


def test_a_run_in_which_nothing_breaks_shrinks_nothing(folder: Path) -> None:
    assert call("run", "--shrink", "-q", "--no-output", folder=folder).stdout.count("\n") == 1


def test_large_cases_are_given_up_in_time_and_it_is_said() -> None:
    wrong, claim = SEEN["the scale is missing"], INVARIANTS["scores-follow-the-formula"]
    case = random_case(rng(), H=6, G=3, Tq=60, Tk=80, d_k=16)
    small = reduced(case, claim, judge(claim, case, wrong), wrong, most=400)
    assert small.stopped
    assert small.tried <= 400


def test_judging_without_traces_finds_the_same() -> None:
    case, claims = random_case(rng(4)), list(INVARIANTS.values())
    with_traces, without = (
        run_case(case, SEEN["the scale is missing"], claims, Tolerance(), traces=wanted) for wanted in (True, False)
    )
    assert with_traces.findings == without.findings
    assert with_traces.conditions["none"].keys() > set()
    assert without.conditions["none"] == {}


def test_ctrl_c_while_a_run_shrinks_prints_what_is_known(folder: Path) -> None:
    (folder / "case.yaml").write_text(text(random_case(rng(1))), encoding="utf-8")
    done = call(
        *("run", "case.yaml", "--implementation", "kern.py:stopping", "--shrink", "--no-output"),
        *("--select", "scores-follow-the-formula"),
        folder=folder,
    )
    assert done.returncode == 130
    assert "#   interrupted: there may be a smaller one\n" in done.stdout
