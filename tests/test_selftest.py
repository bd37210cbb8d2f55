"""The self-test: mistakes that were seen, what survives, what is blamed, and how it is told."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from verify_attention import files, selftest
from verify_attention.cases import load_cases
from verify_attention.cli import group
from verify_attention.engine import judge
from verify_attention.functions import Asked
from verify_attention.kernel import attention
from verify_attention.plugins import faults, invariants
from verify_attention.reports import kill_matrix
from verify_attention.selftest import Fate, Planted, SelfTest, Variation, self_test, telling_first

CASES = load_cases(shipped=".")
ARTICLE = load_cases()
RIGHT = Planted("heads", "nothing is wrong", Asked(attention))

# The list of faults seen in real attention code, item by item: the mistake that stands for it here, and a claim that
# has to notice it.
SEEN = {
    "biases": {
        "K bias reaches only the second half of the keys": (
            "the K bias reaches the second half of the keys only",
            "key-bias-leaves-weights",
        ),
        "Q bias ignored": ("the Q bias is ignored", "query-bias-moves-score-gaps"),
        "bias of head 0 broadcast to all heads": (
            "the K bias of head 0 is every head's",
            "key-bias-shifts-scores-alike",
        ),
        "V bias dropped when no mask is given": (
            "the V bias is dropped when no mask is given",
            "value-bias-passes-through",
        ),
        "K bias added after RoPE": ("the K bias is added after the rotation", "key-bias-leaves-weights"),
        "fused bias read in the order K, Q, V": (
            "the fused bias is read in the order K, Q, V",
            "query-bias-moves-score-gaps",
        ),
        "K-bias slot left uninitialised": (
            "without a K bias its slot is left uninitialised",
            "no-bias-equals-a-zero-bias",
        ),
        "K centred in place": ("keys are centred in the caller's array", "arguments-are-left-as-they-were"),
    },
    "scale, scores": {
        "scale from H·d_k": ("the scale is 1/√(H·d_k)", "scores-follow-the-formula"),
        "from the number of heads": ("the scale is 1/√H", "scores-follow-the-formula"),
        "or missing": ("the scale is missing", "scores-follow-the-formula"),
        "scale applied to the weights after softmax": (
            "the scale is applied to the weights, after softmax",
            "weights-sum-to-one",
        ),
        "additive score bias scaled along with q·k": (
            "the score bias is scaled along with the products",
            "score-bias-moves-log-odds",
        ),
        "ALiBi sign reversed": (
            "the sign of the score bias, such as ALiBi's, is reversed",
            "score-bias-moves-log-odds",
        ),
        "softcap after the mask": (
            "the cap comes after the mask, so that hidden scores are −cap",
            "masked-keys-have-no-say",
        ),
    },
    "masks": {
        "boolean meaning inverted": (
            "the boolean mask is read the other way round: true hides",
            "masked-keys-have-no-say",
        ),
        "boolean added as 0/1": ("the boolean mask is added to the scores, as 0 and 1", "masked-keys-have-no-say"),
        "mask transposed": ("the mask is read transposed where Tq = Tk", "masked-keys-have-no-say"),
        "scores multiplied by the mask": ("scores are multiplied by the mask", "masked-keys-have-no-say"),
        "fill value −1e−9": ("hidden scores are −1e−9", "masked-keys-have-no-say"),
        "per-sample mask tiled over B·H": (
            "the mask of each sample is tiled over the heads of all, not repeated",
            "samples-do-not-talk",
        ),
        "row maximum taken over unmasked scores": (
            "the row's maximum is taken over unmasked scores, the mask applied after",
            "masked-keys-have-no-say",
        ),
    },
    "empty rows": {
        "NaN for a row without visible key": (
            "a row whose first block of two keys is hidden is NaN",
            "weights-sum-to-one",
        ),
        "NaN replaced by 0 everywhere": (
            "a row whose first block of two keys is hidden is NaN, which is replaced by 0 everywhere",
            "weights-sum-to-one",
        ),
    },
    "causal": {
        "upper-left where lower-right is declared": (
            "causality is measured from the upper left, whatever is declared",
            "future-keys-have-no-say",
        ),
        "one future key visible": ("one future key is visible", "future-keys-have-no-say"),
        "causal dropped when weights are wanted": (
            "causality is dropped when weights are wanted",
            "future-keys-have-no-say",
        ),
        "skipped when a cache exists": (
            "causality is skipped where there is a cache",
            "one-pass-equals-step-by-step",
        ),
    },
    "heads": {
        "KV heads tiled instead of repeated": (
            "key-value heads are tiled, not repeated",
            "grouped-heads-equal-repeated-heads",
        ),
        "heads merged without transpose": ("heads are merged without a transpose", "heads-do-not-talk"),
        "fused projection read per head where stored in blocks": (
            "the fused projection is read head by head where it is stored in blocks",
            "heads-do-not-talk",
        ),
    },
    "RoPE, norm": {
        "q rotated in the half layout, k in the interleaved one": (
            "queries turn in the layout half, keys in the interleaved one",
            "rotation-depends-on-distance",
        ),
        "partial rotary uses the head width for frequencies": (
            "frequencies are taken from the width instead of rotary_dims",
            "padding-the-width-changes-nothing",
        ),
        "undeclared QK normalisation": ("queries and keys are normalised, undeclared", "key-bias-leaves-weights"),
    },
    "cache": {
        "unused zero slots attended": (
            "the cache's unused slots hold zeros, and are attended",
            "duplicated-keys-change-nothing",
        ),
        "cached K rotated again each step": (
            "cached keys are rotated again at each step",
            "one-pass-equals-step-by-step",
        ),
    },
    "softmax": {
        "no maximum subtracted": ("no maximum is subtracted", "weights-sum-to-one"),
        "running maximum starts at 0": ("the running maximum starts at 0", "weights-sum-to-one"),
        "one maximum for all rows": ("one maximum serves all rows of a head", "each-query-stands-alone"),
        "scores held in float16": ("scores are held in float16", "weights-follow-the-formula"),
        "softmax over the query axis": ("softmax runs over the query axis", "each-query-stands-alone"),
    },
    "hidden keys": {
        "last block padded with zero keys": (
            "the last block of four keys is filled up with zero keys, which take a share",
            "duplicated-keys-change-nothing",
        ),
        "one undeclared zero key": ("one undeclared zero key takes a share", "softmax-ignores-a-row-shift"),
    },
    "batch": {
        "ten per cent of sample 1 leaks into sample 0": (
            "ten per cent of sample 1 leaks into sample 0",
            "samples-do-not-talk",
        ),
    },
    "memory": {
        "non-contiguous input read as if contiguous": (
            "keys that are not contiguous are read as if they were",
            "memory-layout-changes-nothing",
        ),
    },
}
ITEMS = [(kind, item) for kind, items in SEEN.items() for item in items]


def test_every_kind_of_fault_that_was_seen_is_there() -> None:
    kinds = {kind.title: {fault.mistake for fault in kind.faults} for kind in faults().values()}
    assert kinds.keys() - {"stand-ins"} == SEEN.keys()
    for kind, items in SEEN.items():
        assert {mistake for mistake, _ in items.values()} <= kinds[kind]
    assert {kind: len(items) for kind, items in SEEN.items()} == {
        "biases": 8,
        "scale, scores": 7,
        "masks": 7,
        "empty rows": 2,
        "causal": 4,
        "heads": 3,
        "RoPE, norm": 3,
        "cache": 2,
        "softmax": 5,
        "hidden keys": 2,
        "batch": 1,
        "memory": 1,
    }
    assert len(kinds["stand-ins"]) == 12


@pytest.mark.parametrize(("kind", "item"), ITEMS)
def test_a_fault_that_was_seen_is_noticed_by_the_claim_that_names_it(kind: str, item: str) -> None:
    mistake, claim = SEEN[kind][item]
    [wrong] = [one for one in selftest.planted() if (one.kind, one.mistake) == (kind, mistake)]
    assert any(judge(invariants()[claim], case, wrong.implementation).status == "fail" for case in CASES)


SHOWN_ONLY = "the weights that are shown know nothing of causality"


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [one for one in selftest.planted() if one.claim is None], ids=lambda one: one.mistake)
def test_mistakes_are_noticed_by_the_output_alone(wrong: Planted) -> None:
    silent = replace(wrong, implementation=Asked(wrong.implementation.function.but(shows=())))  # type: ignore[attr-defined]
    fate = selftest.fate_of(silent, telling_first(CASES), list(invariants().values()), whole=False)
    assert fate.killed != (wrong.mistake == SHOWN_ONLY)


def test_mistakes_of_one_kind_have_names_of_their_own() -> None:
    names = [(one.kind, one.mistake) for one in selftest.planted()]
    assert len(set(names)) == len(names)
    assert {one.claim for one in selftest.planted()} == {None, *invariants()}


# Survivors and the blamed


def longer_keys(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: object) -> object:
    return attention(q, k * (1 + 1e-7), v, **options)  # type: ignore[arg-type]


LONGER = Asked(longer_keys)


def test_what_nobody_notices_survives() -> None:
    result = self_test([RIGHT], [], ARTICLE)
    assert [fate.mistake for fate in result.survivors] == ["nothing is wrong"]
    assert result.fates[0].cases == len(ARTICLE)
    text = kill_matrix.render(result, quiet=True)
    assert "SURVIVES  heads: nothing is wrong\n  noticed by nobody; tried on 5 cases" in text
    assert "self-test -v --all -k 'nothing is wrong'" in text
    assert text.endswith("FAIL  0 of 1 fault killed\n")


def test_a_declared_fault_must_be_noticed_by_its_own_claim() -> None:
    result = self_test([Planted("x", "keys are longer", LONGER, "weights-sum-to-one")], [], ARTICLE)
    assert result.fates[0].by >= {"scores-follow-the-formula"}
    assert result.survivors == result.fates
    assert "but not by its own claim" in kill_matrix.render(result, quiet=True)
    assert self_test([Planted("x", "keys are longer", LONGER, "scores-follow-the-formula")], [], ARTICLE).passed


def test_a_variation_that_is_blamed_is_named_with_a_reason() -> None:
    result = self_test([], [Variation("longer keys", LONGER), Variation("the kernel", Asked(attention))], ARTICLE)
    assert [passage.name for passage in result.blamed] == ["longer keys"]
    text = kill_matrix.render(result)
    assert text.startswith("BLAMED  longer keys, which is correct\n  agrees-with-the-core on article/")
    assert text.endswith("FAIL  1 of 2 correct variations pass\n")


def test_what_is_never_checked_does_not_pass() -> None:
    def nothing(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    result = self_test([], [Variation("nothing at all", Asked(nothing))], ARTICLE)
    assert not result.passed
    assert "nothing was really checked" in kill_matrix.render(result, quiet=True)


def test_a_crash_is_noticed_and_marked() -> None:
    def crashing(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError

    result = self_test([Planted("x", "it crashes", Asked(crashing))], [], ARTICLE)
    assert result.passed
    assert {notice.status for notice in result.fates[0].notices} == {"crashed"}
    assert "!" in kill_matrix.render(result).splitlines()[3]


# How it is tried


def test_all_cases_show_more_than_the_first() -> None:
    some = [one for one in selftest.planted() if one.kind == "batch"]
    few, whole = self_test(some, [], CASES), self_test(some, [], CASES, whole=True)
    assert few.fates[0].cases < whole.fates[0].cases == len(CASES)
    assert few.fates[0].by <= whole.fates[0].by


def test_the_order_of_cases_keeps_all_of_them_and_does_not_depend_on_theirs() -> None:
    ordered = telling_first(CASES)
    assert sorted(case.id for case in ordered) == sorted(case.id for case in CASES)
    assert len(ordered[0].features) > 5
    assert telling_first(ordered)[:10] == ordered[:10]


def test_faults_and_variations_travel_by_name() -> None:
    for one in (*selftest.planted()[::40], *selftest.variations()):
        again = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
        assert getattr(again, "mistake", None) == getattr(one, "mistake", None)
        assert getattr(again, "name", None) == getattr(one, "name", None)


def test_the_work_that_is_done_is_counted() -> None:
    said: list[tuple[int, int]] = []
    self_test([RIGHT, RIGHT], [], ARTICLE[:1], progress=lambda *numbers: said.append(numbers))
    assert said == [(1, 2), (2, 2)]


# On the command line


def call(*arguments: str, **environment: str) -> tuple[int, str, bytes]:
    done = CliRunner().invoke(group, ["self-test", *arguments], standalone_mode=False, env=environment)
    if done.exception is not None:
        raise done.exception
    return int(done.return_value or 0), done.stderr, done.stdout_bytes


def test_several_processes_write_the_same_bytes_as_one(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        assert call("-k", "rotat", "-q", "-n", jobs, "-o", str(tmp_path / f"{jobs}.json"))[0] == 0
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    made = files.read_json(tmp_path / "1.json")
    assert made["schema"] == "verify-attention/self-test/1"
    assert {one["kind"] for one in made["faults"]} >= {"cache", "biases", "rotation-depends-on-distance"}
    assert all(one["killed"] and one["noticed"] for one in made["faults"])
    assert made["summary"]["killed"] == made["summary"]["faults"] == len(made["faults"])


def test_the_matrix_gives_way_to_json_on_stdout() -> None:
    code, beside, out = call("-k", "ten per cent", "-o", "-")
    assert (code, json.loads(out)["summary"]["killed"]) == (0, 2)
    assert "2 of 2 faults killed" in beside


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_every_line_of_the_matrix_fits(columns: int) -> None:
    _, _, out = call("-k", "hidden", COLUMNS=str(columns), NO_COLOR="1")
    lines = out.decode().splitlines()
    assert max(map(len, lines)) <= columns
    beside = [line for line in lines if "hidden scores are −1e−9" in line]
    assert ("x" in beside[0].rpartition("9")[2]) == (columns > 80)
    assert "\x1b" not in out.decode()


def test_more_is_said_on_request_and_less() -> None:
    assert b"samples-do-not-talk on implementations/" in call("-k", "ten per cent", "-v")[2]
    assert call("-k", "ten per cent", "-q")[2] == b"PASS  2 of 2 faults killed\n"
    assert b"\x1b" in call("-k", "ten per cent", "--color", "always")[2]


def test_a_survivor_and_a_blamed_variation_end_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "planted", lambda: [RIGHT])
    code, _, out = call("-q", "-k", "nothing is wrong")
    assert (code, b"SURVIVES  heads: nothing is wrong" in out) == (1, True)
    monkeypatch.setattr(selftest, "variations", lambda: [Variation("longer keys", LONGER)])
    code, _, out = call("-q", "-k", "longer")
    assert (code, b"BLAMED  longer keys" in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["-k", "no such thing"], "none of the"), (["-q", "-v"], "exclude"), (["-o", "no/such/folder.json"], "folder")],
)
def test_usage_stops_before_anything_runs(arguments: list[str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        call(*arguments)


def test_fates_tell_who_killed_whom() -> None:
    fate = Fate("k", "m", None, (), 3)
    assert (fate.by, fate.killed) == (frozenset(), False)
    assert SelfTest(("a",), 1, True, (), ()).passed
