"""Reasons of all kinds that results may hold: of the shipped cases, of wrong code, and as the code has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import article_case, random_case, rng

import verify_attention
from verify_attention import exact, kernel
from verify_attention.cases import load_cases
from verify_attention.casting import cast
from verify_attention.engine import run_case
from verify_attention.exact.deciding import Decision
from verify_attention.loading import as_implementation
from verify_attention.model import Case, Implementation, Invariant, Tolerance, Trace, Worst, precision
from verify_attention.model.claims import IN_BLOCKS
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants
from verify_attention.search import smallest_cases

PACKAGE = Path(verify_attention.__file__).parent


def raised() -> set[str]:
    """Return the texts of what the package raises for an implementation, with something in each field."""
    kinds = {"NotImplementedError": "not offered: ", "UnusableError": "", "CrashedError": ""}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
                continue
            name, text = ast.unparse(node.exc.func), filled(node.exc.args[0])
            if name in kinds and text.strip("9"):
                found.add(kinds[name] + text)
    return found


def refused() -> set[str]:
    """Return the reasons for which claims are not asked, as the code has them."""
    found = set()
    for path in (PACKAGE / "invariants").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "applies":
                returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
                parts = [[each.body, each.orelse] if isinstance(each, ast.IfExp) else [each] for each in returned]
                found |= {filled(part) for pair in parts for part in pair if isinstance(part, ast.expr)}
    return found - {"None", ""}


def filled(text: ast.expr) -> str:
    """Return a text as the code has it, with a 9 in each field."""
    if isinstance(text, ast.Constant):
        return str(text.value)
    if not isinstance(text, ast.JoinedStr):
        return ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "9" for part in text.values)


def shows_nothing(case: Case) -> Trace:
    """Show the output only, which is wrong."""
    return Trace(CORE(case).output * 1.5)


def off_by_rounding(case: Case) -> Trace:
    """Show what is off by more than the tolerance allows, and less than a control asks for."""
    trace = CORE(case)
    return Trace(trace.output * (1 + 3e-12), {name: array * (1 + 3e-12) for name, array in trace.inside.items()})


def noisy() -> Callable[[Case], Trace]:
    """Return an implementation that shows noise, of another size in each array of each call."""
    draw = rng(5)

    def noise(array: np.ndarray) -> np.ndarray:
        return array + draw.normal(size=array.shape) * 10.0 ** draw.uniform(-4, 4)

    def attend(case: Case) -> Trace:
        trace = CORE(case)
        return Trace(noise(trace.output), {name: noise(array) for name, array in trace.inside.items()})

    return attend


def noisy_function() -> Callable[..., Any]:
    """Return a function of arrays that gives noise."""
    draw = rng(6)

    def attend(*arrays: np.ndarray, **options: Any) -> Any:
        answer = kernel.attention(*arrays, **options)
        return {name: array + draw.normal() * 10.0 ** draw.uniform(-4, 4) for name, array in answer.items()}

    return attend


def does_nothing(case: Case) -> Trace:
    """Say no more than that."""
    raise NotImplementedError


def without_options(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, bK: np.ndarray | None = None) -> Any:
    """Attend, and take no option."""
    return kernel.attention(q, k, v, bK=bK)["output"]


def exchanged(*arrays: np.ndarray, **options: Any) -> Any:
    """Give the output with two axes exchanged."""
    return kernel.attention(*arrays, **options)["output"].swapaxes(1, 2)


def writing(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: Any) -> Any:
    """Attend in place, with nothing that reads a bias."""
    q *= 1.5
    return kernel.attention(q, k, v, **options)["output"] + np.nan


def odd_cases() -> list[Case]:
    """Return cases that expect what is not so, and cases of numbers for which floats are too coarse."""
    names = list(invariants())
    return [
        *(article_case(expect=dict.fromkeys(names, expected)) for expected in ("breaks", "within-rounding")),
        *(article_case(bK=np.array([[size, -size]])) for size in (1e10, 1e160, 1e308)),
        random_case(rng(), bK=np.full((3, 7), 1e7)),
    ]


def found_reasons() -> set[str | None]:
    """Return the reasons of all shipped cases, and of some with wrong code."""
    cases, chosen, least = load_cases(shipped="."), list(invariants().values()), Tolerance()
    odd = odd_cases()
    asked: list[tuple[Case, Implementation, list[Invariant]]] = [(case, CORE, chosen) for case in [*cases, *odd]]
    for name, invariant in invariants().items():
        small = smallest_cases(name)
        asked += [(small[each.mistake], each.implementation, [invariant]) for each in invariant.faults]
    some = [*odd, *cases[::6]]
    functions = [
        as_implementation(one, "kernel.py:f") for one in (without_options, exchanged, writing, noisy_function())
    ]
    asked += [
        (case, one, chosen) for case in some for one in (shows_nothing, off_by_rounding, does_nothing, *functions)
    ]
    asked += [(cast(case, precision(dtype)), CORE, chosen) for case in cases[::3] for dtype in ("float16", "bfloat16")]
    asked += [(case, noisy(), chosen) for case in cases[::3]]
    reports = [run_case(case, one, claims, least, traces=False) for case, one, claims in asked]
    return {finding.reason for report in reports for finding in report.findings}


def opinions(patch: pytest.MonkeyPatch) -> set[str]:
    """Return what exact arithmetic says of some cases."""
    chosen, shipped = list(invariants().values()), load_cases(shipped=".")
    small = [case for case in shipped if np.prod(case.scores_shape) <= 30 and case.precision == precision("float64")]
    cases = [next(case for case in small if set(case.features) == {name}) for name in ("softcap", "rope", "sink")]
    cases += [next(case for case in small if set(case.features) == {"key_shifts"}), article_case()]
    reports = [run_case(case, shows_nothing, chosen, Tolerance(), traces=False) for case in cases]
    reports += [run_case(case, CORE, chosen, Tolerance(), traces=False) for case in cases]
    made = [exact.opined(report, Tolerance()) for report in reports]
    with patch.context() as inside:
        inside.setattr(exact, "MOST_SECONDS", dict.fromkeys(exact.MOST_SECONDS, 0.0))
        made += [exact.opined(report, Tolerance()) for report in reports]
    found = {finding.opinion.reason for report in made for finding in report.findings if finding.opinion}
    tiny = Decision("refuted", Decimal("1e-40"), 1e-12, Worst("output", 0, 0, "channel", 0, 0.5, 0.5))
    by_balls = [exact._said(each, "by balls of 212 bits") for each in (Decision("proved"), Decision("undecided"), tiny)]
    return found | {*by_balls, exact._said(tiny, exact.IN_CLOSED_FORM)}


@cache
def reasons() -> frozenset[str]:
    """Return reasons of all kinds that results may hold: of findings and of opinions."""
    found = {IN_BLOCKS, exact.WITHOUT_BALLS.reason, *raised(), *refused(), *opinions(pytest.MonkeyPatch())}
    found |= {text for text in found_reasons() if text}
    return frozenset(text for text in found if not re.match(r"\w+Error\b", text))
