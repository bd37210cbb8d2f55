"""Whole layers: read from projections, judged with W_O, and latent attention in its two forms."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from making import random_case, rng

from verify_attention import __version__, gate, resources, results, rounding, selection
from verify_attention.cases import build_case, latents, load_cases
from verify_attention.cli import main
from verify_attention.engine import judge, run, run_case
from verify_attention.engine.attend import Attend, CrashedError
from verify_attention.engine.stack import shape_key
from verify_attention.errors import CasesRefusedError
from verify_attention.invariants import absorbed_mla_equals_expanded as mla
from verify_attention.model import (
    CONDITIONS,
    Array,
    Case,
    CaseReport,
    Latent,
    NotShownError,
    Report,
    Tolerance,
    Trace,
    UnderTest,
)
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants
from verify_attention.sealing import seal

ROOT = Path(__file__).resolve().parent.parent / "cases"
CASES = load_cases([ROOT / "layers", ROOT / "structures"])
LAYER, ABSORBED = "layer-sums-over-heads", "absorbed-mla-equals-expanded"
INVARIANTS = invariants()


def shipped(name: str) -> Case:
    return next(case for case in CASES if case.id.rpartition("/")[2] == name)


def numbers(draw: np.random.Generator, *shape: int) -> list[Any]:
    found: list[Any] = draw.normal(size=shape).round(2).tolist()
    return found


def plain_layer(draw: np.random.Generator) -> dict[str, Any]:
    """H = 4, G = 2, Tq = 3, Tk = 5, d_k = 6, d_v = 2, d_model = 7, d_context = 8, d_out = 9."""
    projections = {
        "heads": 4,
        "kv_heads": 2,
        "x": numbers(draw, 3, 7),
        "context": numbers(draw, 5, 8),
        "W_Q": numbers(draw, 7, 24),
        "W_K": numbers(draw, 8, 12),
        "W_V": numbers(draw, 8, 4),
        "W_O": numbers(draw, 8, 9),
        "bQ": numbers(draw, 24),
        "bK": numbers(draw, 12),
        "bV": numbers(draw, 4),
    }
    return {"d_k": 6, "projections": projections}


def latent_layer(draw: np.random.Generator, **features: Any) -> dict[str, Any]:
    """H = 3, Tq = 2, Tk = 4, d_r = 2, d_n = 3, d_v = 6, d_c = 7, d_model = 8, d_out = 9."""
    bias = draw.normal(size=(3, 5)).round(2)
    bias[:, :2] = bias[0, :2]
    projections = {
        "heads": 3,
        "x": numbers(draw, 2, 8),
        "context": numbers(draw, 4, 8),
        "W_Q": numbers(draw, 8, 15),
        "W_KR": numbers(draw, 8, 2),
        "W_DKV": numbers(draw, 8, 7),
        "W_UK": numbers(draw, 7, 9),
        "W_UV": numbers(draw, 7, 18),
        "W_O": numbers(draw, 18, 9),
        "bQ": numbers(draw, 15),
        "bK": bias.ravel().tolist(),
        "bV": numbers(draw, 18),
    }
    return {"d_k": 5, "projections": projections, "features": {"rope": {"rotary_dims": 2}, **features}}


def built(document: dict[str, Any], **changes: Any) -> Case:
    return build_case({**document, **changes}, id="x")


def complaints(document: dict[str, Any], **changes: Any) -> list[str]:
    with pytest.raises(CasesRefusedError) as caught:
        built(document, **changes)
    return [problem.message for problem in caught.value.problems]


def without(projections: dict[str, Any], *names: str, **others: Any) -> dict[str, Any]:
    return {**{name: value for name, value in projections.items() if name not in names}, **others}


# The textbook, with @ and loops over heads


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def turned(vectors: Array, positions: Array, base: float = 10000.0) -> Array:
    """Rotate channels t and t + r/2 by position·base^(−2t/r), as complex numbers."""
    half = vectors.shape[-1] // 2
    angles = positions[:, None] * base ** (-2 * np.arange(half) / vectors.shape[-1])
    found = (vectors[..., :half] + 1j * vectors[..., half:]) * np.exp(1j * angles)
    return np.concatenate([found.real, found.imag], axis=-1)


def split(flat: Array, heads: int) -> list[Array]:
    """The source's reshape and transpose: `[T, H·d]` to H times `[T, d]`."""
    return list(flat.reshape(len(flat), heads, -1).transpose(1, 0, 2))


def textbook(document: dict[str, Any], condition: str) -> tuple[Array, Array]:
    """Return the heads' outputs and the layer, as a module with linear layers computes them."""
    given = {name: np.array(value) for name, value in document["projections"].items()}
    heads, kv_heads = int(given["heads"]), int(given.get("kv_heads", given["heads"]))
    context = given.get("context", given["x"])
    q = given["x"] @ given["W_Q"] + given.get("bQ", 0) * ("q" in condition)
    k = context @ given["W_K"] + given.get("bK", 0) * ("k" in condition)
    v = context @ given["W_V"] + given.get("bV", 0)
    queries, keys, values = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    outputs = []
    for head in range(heads):
        shared = head // (heads // kv_heads)
        outputs.append(softmax(queries[head] @ keys[shared].T / document["d_k"] ** 0.5) @ values[shared])
    joined = np.stack(outputs).transpose(1, 0, 2).reshape(len(q), -1)
    return np.stack(outputs), joined @ given["W_O"] if "W_O" in given else joined


def textbook_mla(document: dict[str, Any], condition: str) -> tuple[Array, Array]:
    """Return the heads' outputs and the layer of latent attention, expanded, with rope on the first d_r channels."""
    given = {name: np.array(value) for name, value in document["projections"].items()}
    heads, context = int(given["heads"]), given.get("context", given["x"])
    latent = given["latent"] if "latent" in given else context @ given["W_DKV"]
    q_bias = split(given["bQ"][None], heads) if "bQ" in given and "q" in condition else np.zeros(heads)
    k_bias = split(given["bK"][None], heads) if "bK" in given and "k" in condition else np.zeros(heads)
    width = given["W_KR"].shape[1]
    keys_at = np.arange(len(context), dtype=float)
    rows_at = keys_at[len(context) - len(given["x"]) :]
    outputs = []
    for head in range(heads):
        q = split(given["x"] @ given["W_Q"], heads)[head] + q_bias[head]
        k = np.hstack([context @ given["W_KR"], latent @ split(given["W_UK"], heads)[head]]) + k_bias[head]
        q = np.hstack([turned(q[:, :width], rows_at), q[:, width:]])
        k = np.hstack([turned(k[:, :width], keys_at), k[:, width:]])
        v = latent @ split(given["W_UV"], heads)[head]
        if "bV" in given:
            v = v + split(given["bV"][None], heads)[head]
        outputs.append(softmax(q @ k.T / document["d_k"] ** 0.5) @ v)
    joined = np.concatenate(outputs, axis=-1)
    return np.stack(outputs), joined @ given["W_O"] if "W_O" in given else joined


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_layer_is_what_linear_layers_make(condition: Any, seed: int) -> None:
    document = plain_layer(rng(seed))
    trace = CORE(built(document).under(condition))
    output, layer = textbook(document, condition)
    assert trace.output == pytest.approx(output, rel=1e-11, abs=1e-11)
    assert trace.layer == pytest.approx(layer, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("made", ["W_DKV", "latent"])
def test_a_latent_layer_is_what_linear_layers_make(condition: Any, made: str) -> None:
    document = latent_layer(rng(7))
    if made == "latent":
        document["projections"] = without(document["projections"], "W_DKV", latent=numbers(rng(8), 4, 7))
    trace = CORE(built(document).under(condition))
    output, layer = textbook_mla(document, condition)
    assert trace.output == pytest.approx(output, rel=1e-11, abs=1e-11)
    assert trace.layer == pytest.approx(layer, rel=1e-11, abs=1e-11)


def test_what_is_absent_has_its_default() -> None:
    document = plain_layer(rng(1))
    own = without(document["projections"], "kv_heads", "context", "bQ", "bK", "bV", "W_O")
    own |= {"W_K": numbers(rng(2), 7, 24), "W_V": numbers(rng(3), 7, 4)}
    case = built(document, projections=own)
    assert (case.bV, case.W_O, case.latent) == (None, None, None)
    assert not case.bQ.any()
    assert not case.bK.any()
    assert case.scores_shape == (4, 3, 3)
    assert case.keys.shape == (4, 3, 6)
    assert case.scale == 1 / 6**0.5
    output, _ = textbook({**document, "projections": own}, "qk")
    assert CORE(case.under("qk")).output == pytest.approx(output, rel=1e-11, abs=1e-11)
    with pytest.raises(NotShownError):
        CORE(case).layer  # noqa: B018


def test_by_hand() -> None:
    """x = (1, 2) and (0, 1), two heads of width 1: every number can be followed."""
    own = {"heads": 2, "x": [[1, 2], [0, 1]], "W_Q": [[1, 2], [3, 4]], "W_K": [[1, 0], [0, 1]], "W_V": [[5, 6], [7, 8]]}
    case = built({"d_k": 1, "projections": {**own, "bQ": [10, 20], "W_O": [[2], [3]]}})
    assert case.q.tolist() == [[[7], [3]], [[10], [4]]]
    assert case.keys.tolist() == [[[1], [0]], [[2], [1]]]
    assert case.values is not None
    assert case.W_O is not None
    assert case.values.tolist() == [[[19], [7]], [[22], [8]]]
    assert case.bQ.tolist() == [[10], [20]]
    assert case.W_O.tolist() == [[[2]], [[3]]]


def test_features_and_published_numbers_work_beside_projections() -> None:
    document = plain_layer(rng(4))
    output, _ = textbook(document, "qk")
    printed = {"decimals": 9, "output": {"qk": output.round(9).tolist()}}
    case = built(document, published=printed, features={"mask": [[True] * 5] * 3, "sink": [0, 1, 2, 3]})
    assert case.features["mask"].shape == (4, 3, 5)
    assert judge(INVARIANTS["published-numbers-are-reproduced"], built(document, published=printed), CORE).checked
    assert complaints(document, features={"sink": [0, 1]}) == [
        "features.sink: has 2 numbers, the layer has 4 heads",
    ]


def test_projections_and_their_features_are_refused_together() -> None:
    document = plain_layer(rng(4))
    own = {**document["projections"], "W_K": [[1]] * 8, "bV": [1]}
    assert sorted(complaints(document, projections=own, features={"mask": [[True] * 4] * 3})) == [
        "features.mask: has 4 flags in each row, the layer has 5 keys",
        "projections.W_K: has 1 number in each row, 2 heads of 6 (d_k) make 12",
        "projections.bV: has 1 number, 2 heads of 2 (d_v) make 4",
    ]


def test_a_misspelt_matrix_is_one_problem() -> None:
    document = latent_layer(rng(4))
    own = without(document["projections"], "W_UK", W_Uk=document["projections"]["W_UK"])
    assert [line.partition(";")[0] for line in complaints(document, projections=own)] == [
        "projections.W_Uk: is no known key (did you mean 'W_UK'?)",
    ]


@pytest.mark.parametrize("make", [plain_layer, latent_layer])
def test_damaged_projections_are_cases_or_problems(make: Any) -> None:
    """What is accepted is valid for the schema, read plainly."""
    validator, draw = Draft202012Validator(resources.schema("case")), random.Random(3)  # noqa: S311
    odd = [[], [[]], 1, 0, -1, 2.5, "x", True, None, {}, [1], [1, 0], [[1, 0]], [[1] * 8] * 4, [[1, "0"]], 10**400]
    accepted = 0
    for _ in range(400):
        document = make(rng(5))
        own = document["projections"]
        for _ in range(draw.randint(1, 2)):
            if draw.random() < 0.3:
                own.pop(draw.choice(list(own)), None)
            else:
                own[draw.choice([*own, "W_O", "kv_heads", "latent", "W_DKV", "x_"])] = draw.choice(odd)
        try:
            built(document)
        except CasesRefusedError:
            continue
        else:
            accepted += 1
            assert validator.is_valid(json.loads(json.dumps(document))), document
    assert accepted > 20


# Parts and changes of a case


def test_changed_keys_or_values_do_not_follow_from_the_latent() -> None:
    case = built(latent_layer(rng(6)))
    assert case.latent is not None
    assert case.under("qk").latent is case.latent
    assert case.but(bK=case.bK * 2).latent is case.latent
    assert case.but(keys=case.keys * 2).latent is None
    assert case.but(values=None).latent is None


def test_w_o_goes_with_the_heads_and_widths_that_it_is_for() -> None:
    case = built(latent_layer(rng(6)))
    assert case.W_O is not None
    assert case.but(values=case.values).W_O is case.W_O
    assert case.but(values=None, bV=None).W_O is None
    assert case.but(q=case.q[:1], keys=case.keys[:1], W_O=None).W_O is None


def test_parts_of_a_case_are_cases() -> None:
    case = built(latent_layer(rng(6)))
    parts = [
        selection.keys(case, np.array([2, 0])),
        selection.heads(case, np.array([2, 1])),
        selection.rows(case, np.array([1])),
        selection.first_tokens(case, 1, 3),
        *selection.blocks(case, largest=4),
    ]
    for part in parts:
        assert part.latent is not None
        assert list(latents.refused(part)) == []
    chosen = parts[1]
    assert case.W_O is not None
    assert chosen.W_O is not None
    assert np.array_equal(chosen.W_O, case.W_O[[2, 1]])


def test_arrays_are_read_only() -> None:
    case = built(latent_layer(rng(6)))
    assert case.W_O is not None
    assert case.latent is not None
    for array in (case.q, case.keys, case.W_O, case.latent.c, case.latent.W_UK, case.latent.W_UV):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_layers_are_judged_one_by_one() -> None:
    case = random_case(rng(), H=2, G=1, d_v=3)
    layer = case.but(W_O=rng(1).normal(size=(2, 3, 4)))
    assert shape_key(case) is not None
    assert shape_key(layer) is None
    first, second = run([layer, layer], CORE, INVARIANTS.values(), Tolerance())
    assert first.findings == second.findings
    assert next(finding for finding in first.findings if finding.invariant == LAYER).status == "pass"


# Results and the gate


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_stored_inputs_are_the_same_case_again(case: Case) -> None:
    stored = results.inputs(case, "full")
    again = build_case({name: value for name, value in stored.items() if value is not None}, id=case.id)
    assert results.inputs(again, "full") == stored
    assert (again.W_O is None) == (case.W_O is None)
    assert (again.latent is None) == (case.latent is None)


def test_inputs_of_other_cases_have_no_new_keys() -> None:
    assert {"W_O", "latent"}.isdisjoint(results.inputs(random_case(rng())))


def judged(made: dict[str, Any], name: str = "core") -> gate.Verdict:
    return gate.judge(made, list(INVARIANTS.values()), Tolerance(), {}, implementation=UnderTest(name, ""))


def written(reports: tuple[CaseReport, ...], name: str, detail: str = "auto") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        results.encoded(Report(UnderTest(name, __version__), Tolerance(), reports), detail)
    )
    return made


@pytest.mark.parametrize("detail", ["auto", "full", "summary"])
def test_a_run_on_layers_passes_the_gate(detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["run", str(ROOT / "layers"), "-o", "r.json", "-q", "--detail", detail],
        ["gate", "r.json"],
        ["gate", "r.json", "--cases", str(ROOT / "layers")],
    ):
        with pytest.raises(SystemExit) as exited:
            main(arguments)
        assert exited.value.code == 0, arguments
    text = Path("r.json").read_text(encoding="utf-8")
    assert '"latent"' in text
    assert '"layer"' not in text


def test_the_gate_judges_a_changed_latent_and_a_changed_w_o() -> None:
    case = shipped("latent-query-and-value-biases")
    made = written((run_case(case, CORE, INVARIANTS.values(), Tolerance()),), "core")
    assert judged(made).problems == []
    for change in ("W_O", "latent"):
        edited = json.loads(json.dumps(made))
        inputs = edited["cases"][0]["inputs"]
        (inputs["W_O"][0][0] if change == "W_O" else inputs["latent"]["c"][0])[0] += 0.5
        said = judged(edited).problems
        assert any("was changed after it was written" in line for line in said)
    seal(edited)  # whoever can do that can make up a case, but not a latent that contradicts the keys
    assert any("inputs are not a case: latent.W_UK: c·W_UK at head 0" in line for line in judged(edited).problems)


def test_the_gate_takes_a_layer_of_another_implementation() -> None:
    """The layer itself is not stored; what needs it is judged by its own numbers."""

    def other(case: Case) -> Trace:
        return CORE(case)

    found = run_case(shipped("cross-attention"), other, INVARIANTS.values(), Tolerance())
    assert next(finding for finding in found.findings if finding.invariant == LAYER).status == "pass"
    assert judged(written((found,), "other"), "other").problems == []


def test_an_output_by_itself_is_no_layer() -> None:
    found = judge(INVARIANTS[LAYER], shipped("cross-attention"), lambda case: Trace(CORE(case).output))
    assert (found.status, found.reason) == ("skipped", "not shown: the implementation does not show its layer")


def test_a_layer_is_looked_at_before_it_is_used() -> None:
    case = random_case(rng(), H=2, G=1, d_v=3)
    layer = case.but(W_O=rng(1).normal(size=(2, 3, 4)))
    trace = CORE(layer)
    assert trace.layer.shape == (4, 4)
    assert Attend(CORE)(layer).layer.shape == (4, 4)
    with pytest.raises(CrashedError, match=r"returned layer of shape \(4, 4\), expected \(4, 5\)"):
        Attend(lambda _case: trace)(case.but(W_O=np.ones((2, 3, 5))))
    with pytest.raises(CrashedError, match="returned layer, expected any of scores, weights, lse"):
        Attend(lambda _case: trace)(case)


# The layer is the sum over heads


def test_a_layer_by_hand() -> None:
    """One key: each head's output is its value, 1 and 2; W_O has 3 and 5: the layer is 13."""
    document = {"d_k": 1, "q": [[[1]], [[1]]], "keys": [[[1]], [[1]]], "bQ": [0], "bK": [0], "values": [[[1]], [[2]]]}
    case = build_case({**document, "W_O": [[[3]], [[5]]]}, id="x")
    assert CORE(case).layer.tolist() == [[13]]
    found = judge(INVARIANTS[LAYER], case, CORE)
    assert (found.status, found.checked) == ("pass", True)


def test_one_head_alone_proves_nothing() -> None:
    case = random_case(rng(), H=1, G=1, d_v=3).but(W_O=rng(1).normal(size=(1, 3, 4)), bV=None)
    found = judge(INVARIANTS[LAYER], case, CORE)
    assert found.status == "skipped"
    assert str(found.reason).startswith("vacuous: ")


def test_a_v_bias_adds_a_constant_to_the_layer() -> None:
    case = random_case(rng(2), H=4, G=2, d_v=3).but(W_O=rng(3).normal(size=(4, 3, 5)))
    assert case.bV is not None
    assert case.W_O is not None
    constant = sum(case.bV[head // 2] @ case.W_O[head] for head in range(4))
    moved = CORE(case).layer - CORE(case.but(bV=None)).layer
    assert moved == pytest.approx(np.tile(constant, (4, 1)), abs=1e-12)

    def twice(trace: Trace, case: Case) -> Trace:
        more = 0.0 if case.bV is None or case.W_O is None else case.bV.sum() * 1e-3
        return Trace(trace.output, {**trace.inside, **({"layer": trace.layer + more} if case.W_O is not None else {})})

    found = judge(INVARIANTS[LAYER], case, lambda case: twice(CORE(case), case))
    assert found.status == "fail"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_layer_that_is_wrong_under_one_condition_is_caught_under_that(condition: Any) -> None:
    case = random_case(rng(4), H=4, G=2, Tq=3, d_v=6, bV=None).but(W_O=rng(5).normal(size=(4, 6, 8)))

    def attend(case: Case) -> Trace:
        trace = CORE(case)
        if case.condition != condition:
            return trace
        return Trace(trace.output, {**trace.inside, "layer": trace.layer + 1e-3})

    found = judge(INVARIANTS[LAYER], case, attend)
    assert found.status == "fail"
    assert found.worst is not None
    assert found.worst.of == f"layer[{condition}] − Σ_h o_h·W_O[h]"


def test_a_layer_that_is_summed_channel_by_channel_may_lose_all_that_is_small() -> None:
    """Each output is 1, and W_O is 2^53, then 448 ones, then −2^53: the layer is 448.

    Added in this order, each one is lost, as 2^53 + 1 rounds to 2^53, and the layer is 0. That is correct code; by
    heads, the ones of a head are added to each other first. What the heads' own outputs may be off by, 30 units of
    rounding on each side, is 120 in the layer, whose summands have 2^54 in all.
    """

    def one_by_one(matrix: Array, output: Array) -> Array:
        layer = np.zeros((output.shape[1], matrix.shape[2]))
        for head, channel in np.ndindex(matrix.shape[:2]):
            layer = layer + output[head, :, channel, None] * matrix[head, channel]
        return layer

    projection = np.ones((30, 15, 5))
    projection[0, 0], projection[29, 14] = 2.0**53, -(2.0**53)
    case = Case(
        id="far apart",
        q=np.zeros((30, 3, 4)),
        keys=np.ones((1, 2, 4)),
        bQ=np.zeros((30, 4)),
        bK=np.zeros((1, 4)),
        scale=0.5,
        values=np.ones((1, 2, 15)),
        W_O=projection,
    )
    attend = CORE.but(layer=one_by_one)
    assert not attend(case).layer.any()
    found = judge(INVARIANTS[LAYER], case, attend)
    assert found.deviation is not None
    assert found.deviation > 120
    assert (found.status, found.observed) == ("inconclusive", "within-rounding")


def test_a_dropped_v_bias_is_seen_by_the_layer_without_it_alone() -> None:
    """Each head alone drops it too, so that the layer is their sum all the same."""
    [dropped] = [fault for fault in INVARIANTS[LAYER].faults if fault.mistake == "the V bias is dropped"]
    found = judge(INVARIANTS[LAYER], shipped("output-projection"), dropped.implementation)
    assert found.status == "fail"
    assert found.worst is not None
    assert found.worst.of == "layer[bV] − layer[no bV]"


def test_no_constant_is_claimed_where_rows_do_not_sum_to_one() -> None:
    case = shipped("latent-with-a-sink")
    layer = case.but(W_O=rng(3).normal(size=(3, 6, 5)))
    parts = [sides.of for sides in INVARIANTS[LAYER].sides(layer, Attend(CORE))]
    assert parts == [f"layer[{condition}] − Σ_h o_h·W_O[h]" for condition in ("none", "q", "k", "qk")]
    assert judge(INVARIANTS[LAYER], layer, CORE).status == "pass"


# Latent attention, absorbed


def absorbed_by_hand(document: dict[str, Any], condition: str) -> tuple[Array, Array]:
    """Return weights and outputs of the absorbed form: no key and no value of a head is made, and no bK_n is used."""
    given = {name: np.array(value) for name, value in document["projections"].items()}
    heads, context = 3, given["context"]
    latent = context @ given["W_DKV"]
    positions = np.arange(4.0)
    k_r = context @ given["W_KR"] + given["bK"][:2] * ("k" in condition)
    weights, outputs = [], []
    for head in range(heads):
        q = split(given["x"] @ given["W_Q"] + given["bQ"] * ("q" in condition), heads)[head]
        inner = q[:, 2:] @ split(given["W_UK"], heads)[head].T @ latent.T
        scores = (turned(q[:, :2], positions[2:]) @ turned(k_r, positions).T + inner) / 5**0.5
        weights.append(softmax(scores))
        up, bias = split(given["W_UV"], heads)[head], split(given["bV"][None], heads)[head]
        outputs.append(weights[-1] @ latent @ up + bias)
    return np.stack(weights), np.stack(outputs)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_core_agrees_with_the_absorbed_form(condition: Any) -> None:
    document = latent_layer(rng(9))
    case = built(document)
    weights, output = absorbed_by_hand(document, condition)
    assert CORE(case.under(condition)).weights == pytest.approx(weights, rel=1e-11, abs=1e-11)
    assert CORE(case.under(condition)).output == pytest.approx(output, rel=1e-11, abs=1e-11)
    assert case.latent is not None
    short = CORE(mla.absorbed(case.under(condition), case.latent))
    assert short.weights == pytest.approx(weights, rel=1e-11, abs=1e-11)


def compared(case: Case) -> list[str]:
    return [sides.of for sides in INVARIANTS[ABSORBED].sides(case, Attend(CORE))]


def test_what_the_absorbed_form_is_compared_with() -> None:
    every = [f"{part}[{name}], expanded − absorbed" for part in ("output", "weights") for name in CONDITIONS]
    no_key_bias = [line for line in every if "k]" not in line]
    case = built(latent_layer(rng(9)))
    assert compared(case) == every
    uneven = case.bK.copy()
    uneven[1, 0] += 1
    assert compared(case.but(bK=uneven)) == no_key_bias
    with_sink = built(latent_layer(rng(9), sink=0.5))
    assert compared(with_sink) == no_key_bias
    on_positions = with_sink.bK.copy()
    on_positions[:, 2:] = 0
    assert compared(with_sink.but(bK=on_positions)) == every
    assert compared(built(latent_layer(rng(9), causal="lower-right"))) == every
    assert compared(built(latent_layer(rng(9), softcap=2))) == no_key_bias
    shifts = {"key_shifts": numbers(rng(10), 4, 5)}
    assert compared(built(latent_layer(rng(9), **shifts))) == no_key_bias


def test_key_shifts_keep_conditions_with_the_key_bias_out_though_the_bias_has_no_latent_part() -> None:
    """The absorbed form has no key shifts, so that k and qk would compare layers with and without them."""
    case = built(latent_layer(rng(9), key_shifts=numbers(rng(10), 4, 5)))
    on_positions = case.bK.copy()
    on_positions[:, 2:] = 0
    case = case.but(bK=on_positions)
    assert compared(case) == [
        f"{part}[{name}], expanded − absorbed" for part in ("output", "weights") for name in ("none", "q")
    ]
    assert judge(INVARIANTS[ABSORBED], case, CORE).status == "pass"


@pytest.mark.parametrize(
    "features",
    [
        {"sink": 0.5},
        {"causal": "lower-right", "softcap": 2},
        {"normaliser": {"kind": "sigmoid"}},
        {"normaliser": {"kind": "sparsemax"}},
        {"zero_key": True},
        {"alibi": {}},
        {"rope": {"rotary_dims": 2, "layout": "interleaved", "base": 10}},
        {"rope": {"rotary_dims": 2, "bias": "after"}},
        {"temperature": {"heads": [0.5, 1, 2]}},
    ],
)
def test_the_core_passes_with_features(features: dict[str, Any]) -> None:
    found = judge(INVARIANTS[ABSORBED], built(latent_layer(rng(11), **features)), CORE)
    assert (found.status, found.checked) == ("pass", True), found


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({"rope": {}}, "rope turns 4 channels, of which only 2 do not come from the latent"),
        (
            {"qk_norm": {"kind": "rms"}},
            "qk_norm acts on the up-projected channels, which the absorbed form does not have",
        ),
        (
            {"appended_key": {"key": [1, 0, 0, 0, 1]}},
            "appended_key acts on the up-projected channels, which the absorbed form does not have",
        ),
    ],
)
def test_features_on_channels_that_the_absorbed_form_lacks(features: dict[str, Any], reason: str) -> None:
    found = judge(INVARIANTS[ABSORBED], built(latent_layer(rng(11), **features)), CORE)
    assert (found.status, found.reason) == ("skipped", reason)


def test_a_key_bias_that_may_not_be_dropped_is_seen() -> None:
    """Were the sink not looked at, the absorbed form without bK_n would have other weights."""
    case = built(latent_layer(rng(9), sink=0.5))
    assert case.latent is not None
    short = CORE(mla.absorbed(case.under("k"), case.latent)).weights
    assert np.abs(short - CORE(case.under("k")).weights).max() > 1e-3


def test_a_latent_that_contradicts_the_keys_is_refused() -> None:
    case = built(latent_layer(rng(9)))
    stored = {name: value for name, value in results.inputs(case, "full").items() if value is not None}
    assert case.latent is not None
    keys = case.keys.copy()
    keys[1, 2, 4] += 1e-9
    [said] = complaints({**stored, "keys": keys.tolist()})
    assert said.startswith("latent.W_UK: c·W_UK at head 1, key 2, channel 2 is ")
    product = np.einsum("tc,hcn->htn", case.latent.c, case.latent.W_UK)
    near = build_case({**stored, "keys": np.concatenate([case.keys[..., :2], product], -1).tolist()}, id="x")
    assert near.latent
    assert np.array_equal(near.keys, case.keys)  # rounded otherwise in the file; a case has the products rounded once


def test_a_latent_that_does_not_fit_is_no_case() -> None:
    case = random_case(rng(), H=2, G=1).but(latent=Latent(np.ones((5, 1)), np.ones((2, 1, 3)), np.ones((2, 1, 2))))
    assert [flaw.path for flaw in latents.refused(case)] == [("latent",)]


# Shipped cases


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_shipped_layers_pass_far_from_the_limit(case: Case) -> None:
    for finding in run_case(case, CORE, INVARIANTS.values(), Tolerance()).findings:
        assert finding.status in {"pass", "skipped"}, finding
        if finding.status == "pass":
            assert finding.rounding_bound is not None
            assert finding.limit is not None
            assert finding.rounding_bound <= finding.limit, finding


@pytest.mark.parametrize("name", [LAYER, ABSORBED])
def test_declared_faults_are_caught_on_two_shipped_cases(name: str) -> None:
    for fault in INVARIANTS[name].faults:
        caught = [case.id for case in CASES if judge(INVARIANTS[name], case, fault.implementation).status == "fail"]
        assert len(caught) >= 2, fault.mistake


@pytest.mark.parametrize("name", [LAYER, ABSORBED])
def test_bounds_are_bounds_and_not_absurd(name: str) -> None:
    ratios = []
    for seed in range(60):
        draw = rng(seed)
        document = latent_layer(draw) if seed % 2 else {**latent_layer(draw), "features": {}}
        found = judge(INVARIANTS[name], built(document), CORE)
        assert found.status == "pass"
        assert found.deviation is not None
        assert found.rounding_bound is not None
        ratios.append(found.deviation / found.rounding_bound)
    assert 1e-4 < max(ratios) < 0.5


def test_bounds_of_single_precision_hold_too() -> None:
    """An implementation in float32 deviates by more than the bound of float64, or the bound would say nothing."""

    def rounded(case: Case) -> Trace:
        trace = CORE(case)
        inside = {name: array.astype(np.float32) for name, array in trace.inside.items()}
        return Trace(trace.output.astype(np.float32), inside)

    for name, case in ((LAYER, shipped("cross-attention")), (ABSORBED, shipped("latent-key-bias"))):
        assert judge(INVARIANTS[name], case, rounded).status == "fail"
    assert np.isfinite(rounding.output(shipped("latent-key-bias"))).all()
