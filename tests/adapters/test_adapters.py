"""Real libraries under test: every shipped case holds, every divergence happens, and wrong translations are noticed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from verify_attention.cases import load_cases
from verify_attention.casting import cast
from verify_attention.engine import run
from verify_attention.functions import OPTIONS, Asked, named
from verify_attention.implementations import torch_sdpa
from verify_attention.loading import ended, load
from verify_attention.model import BROKEN, Adapter, Case, Divergence, Tolerance, precision
from verify_attention.plugins import implementations, invariants

ROOT = Path(__file__).resolve().parent.parent.parent / "cases"
ADAPTERS: dict[str, Adapter] = {name: one for name, one in implementations().items() if one.libraries}
FLOORS = {  # of equations that are really checked, a little below what was counted
    ("jax", "float64"): 3050,
    ("jax", "float32"): 3000,
    ("onnx-reference", "float64"): 4100,
    ("onnx-reference", "float32"): 4050,
    ("onnx-reference", "float16"): 3750,
    ("onnx-reference", "bfloat16"): 2500,
    ("onnxruntime", "float64"): 4100,
    ("onnxruntime", "float32"): 4050,
    ("onnxruntime", "float16"): 3800,
    ("torch-mha", "float64"): 1250,
    ("torch-mha", "float32"): 1180,
    ("torch-mha", "float16"): 1010,
    ("torch-mha", "bfloat16"): 910,
    ("torch-sdpa", "float64"): 2900,
    ("torch-sdpa", "float32"): 2800,
    ("torch-sdpa", "float16"): 2650,
    ("torch-sdpa", "bfloat16"): 2600,
}
every_adapter = pytest.mark.parametrize("name", ADAPTERS)


def shipped(name: str) -> Case:
    return load_cases([f"{ROOT}/{name}.yaml"])[0]


@functools.cache
def cases() -> list[Case]:
    return load_cases([ROOT])


def broken(implementation: Any, chosen: list[Case]) -> tuple[list[str], int]:
    """Return what is not as it should be, and how many equations were really checked."""
    reports = run(chosen, implementation, invariants().values(), Tolerance())
    findings = [(report.case.id, finding) for report in reports for finding in report.findings]
    wrong = [f"{case} {one.invariant} {one.status}: {one.reason}" for case, one in findings if one.status in BROKEN]
    return wrong, sum(finding.checked for _, finding in findings)


def test_every_adapter_and_dtype_has_a_floor() -> None:
    assert set(FLOORS) == {(name, dtype) for name, one in ADAPTERS.items() for dtype in one.dtypes}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "dtype"), FLOORS)
def test_every_shipped_case_holds(name: str, dtype: str) -> None:
    loaded = load(name, dtype)
    assert loaded.version[0].isdigit()
    wrong, checked = broken(loaded, [cast(case, loaded.precision) for case in cases()])
    assert wrong == []
    assert checked >= FLOORS[name, dtype]


@pytest.mark.parametrize(
    ("name", "divergence"),
    [pytest.param(name, each, id=f"{name}: {each.what}") for name, one in ADAPTERS.items() for each in one.divergences],
)
def test_every_listed_divergence_happens(name: str, divergence: Divergence) -> None:
    assert divergence.happens() is True
    assert divergence.link.startswith("https://")


@every_adapter
def test_a_divergence_that_ends_is_an_error(name: str) -> None:
    loaded = load(name)
    assert ended(loaded) == []
    (first, *_), what = loaded.divergences, loaded.divergences[0].what
    over = replace(loaded, divergences=(replace(first, happens=lambda: False),))
    assert ended(over) == [f"{name}: a listed divergence no longer happens: {what}"]


@every_adapter
def test_a_signature_names_what_the_library_has(name: str) -> None:
    asked = load(name).implementation
    assert isinstance(asked, Asked)
    common = {"mask", "score_bias", "causal", "window", "scale"}
    own = {"torch-mha": {"bQ", "bK", "bV"}, "onnxruntime": {"softcap"}, "onnx-reference": {"softcap"}}
    assert named(asked.function) == common | own.get(name, set())
    assert named(asked.function) <= set(OPTIONS)


# --- wrong translations

Change = Callable[[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]], tuple[Any, ...]]


def inverted(q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    mask = options.get("mask")
    return q, k, v, options if mask is None else options | {"mask": ~mask}


def from_the_other_corner(q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    causal = {"lower-right": "upper-left", "upper-left": "lower-right"}.get(options.get("causal", ""))
    return q, k, v, options if causal is None else options | {"causal": causal}


def tiled(q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    times = q.shape[1] // k.shape[1]
    return q, np.tile(k, (1, times, 1, 1)), np.tile(v, (1, times, 1, 1)), options


def unscaled(q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    return q, k, v, {name: value for name, value in options.items() if name != "scale"}


def changed(asked: Asked, change: Change) -> Asked:
    """Return the function with a mistake before it; it still names the same options."""

    @functools.wraps(asked.function)
    def wrong(q: Any, k: Any, v: Any, **options: Any) -> Any:
        *vectors, others = change(q, k, v, options)
        return asked.function(*vectors, **others)

    return Asked(wrong)


@pytest.mark.parametrize(
    ("change", "case"),
    [
        (inverted, "structure/mask-of-each-head"),
        (from_the_other_corner, "structure/causal-behind-a-cache"),
        (tiled, "structure/query-heads-share-key-value-heads"),
        (unscaled, "bias/scale-one"),
    ],
)
@every_adapter
def test_a_wrong_translation_is_noticed(name: str, change: Change, case: str) -> None:
    loaded, given = load(name), shipped(case)
    if name == "torch-mha" and len(given.keys) != len(given.q):
        given = given.but(
            keys=given.keys[given.kv_head],
            bK=given.bK[given.kv_head],
            values=None if given.values is None else given.values[given.kv_head],
            bV=None if given.bV is None else given.bV[given.kv_head],
            expect={},  # which may be about groups
        )
    given = cast(given, loaded.precision)
    right, checked = broken(loaded, [given])
    assert (right, checked > 5) == ([], True)
    assert isinstance(loaded.implementation, Asked)
    wrong, _ = broken(changed(loaded.implementation, change), [given])
    if name == "torch-mha" and change is tiled:
        assert wrong == []  # it has no groups: nothing is tiled
    else:
        assert wrong


@every_adapter
def test_a_dropped_key_bias_is_noticed_where_it_can_be(name: str) -> None:
    """Scores and LSE show it. The output of plain attention cannot, but a layer that takes a bias has to read it."""
    loaded = load(name)
    asked = loaded.implementation
    assert isinstance(asked, Asked)
    case = cast(shipped("bias/scale-one"), loaded.precision)

    @functools.wraps(asked.function)
    def deaf(q: Any, k: Any, v: Any, bK: Any = None, **options: Any) -> Any:
        return asked.function(q, k, v, **options)

    wrong, _ = broken(lambda given: loaded(given.but(bK=np.zeros_like(given.bK))), [case])
    assert bool(wrong) == (name in {"jax", "onnx-reference", "onnxruntime"})
    if "bK" in named(asked.function):
        wrong, _ = broken(Asked(deaf), [case])
        assert any("every-argument-has-its-effect" in line for line in wrong)


@pytest.mark.parametrize(("name", "dtype"), [("torch-sdpa", "float16"), ("torch-sdpa", "bfloat16")])
def test_a_coarser_sum_than_declared_is_noticed(name: str, dtype: str) -> None:
    """Sums are in float32, as `computes_in` says: 4,096 equal weights summed in the dtype itself give a half."""
    asked = torch_sdpa.load(dtype)
    case = Case(
        id="equal",
        q=np.zeros((1, 1, 4)),
        keys=np.zeros((1, 4096, 4)),
        bQ=np.zeros((1, 4)),
        bK=np.zeros((1, 4)),
        values=np.ones((1, 4096, 4)),
        scale=0.5,
    )
    given = cast(case, precision(dtype, ADAPTERS[name].computes_in[dtype]))
    assert (asked(given).output == 1).all()


def test_no_multi_head_attention_with_groups() -> None:
    pytest.importorskip("torch")
    case = shipped("structure/query-heads-share-key-value-heads")
    with pytest.raises(NotImplementedError, match="as many key heads as query heads"):
        load("torch-mha")(case)
