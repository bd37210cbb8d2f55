"""For tests of attention code: one call that puts a function under test, and says in an assertion what broke.

from verify_attention.testing import assert_invariants

def test_my_kernel() -> None:
    assert_invariants(my_kernel)
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verify_attention import engine, resources
from verify_attention.cases import load_cases
from verify_attention.casting import cast
from verify_attention.loading import Loaded, as_implementation, load
from verify_attention.model import BROKEN, Case, Finding, Report, Tolerance
from verify_attention.plugins import chosen, implementations
from verify_attention.reports.figures import again, counted

MOST = 10  # findings that a message tells of
VERBS = {"fail": "fails", "inconclusive": "stays open", "crashed": "crashes"}


def assert_invariants(
    function: Callable[..., Any] | str,
    cases: str | Path | Case | Sequence[str | Path | Case] = (),
    *,
    dtype: str = "float64",
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    rtol: float = 1e-12,
    atol: float = 1e-12,
) -> int:
    """Assert that every claim holds for a function of arrays, and return how many equations were really checked.

    Args:
        function: a function with the interface of `verify_attention.functions`, or a name as `run --implementation`
            takes it: `torch-sdpa`, `module:function`, `path.py:function`.
        cases: case files, folders, or cases; all shipped ones, unless given.
        dtype: of the arrays that it gets; limits follow from it.
        select: claims by name or glob; all, unless given.
        ignore: claims to leave out, by name or glob.
        rtol: the relative tolerance, in float64.
        atol: the absolute tolerance, in float64.

    Raises:
        AssertionError: a claim broke, could not be decided, or nothing was really checked.
        VerifyAttentionError: there is no such case, claim, dtype or implementation.

    """
    __tracebackhide__ = True
    loaded = load(function, dtype) if isinstance(function, str) else as_implementation(function, _name(function), dtype)
    tolerance = Tolerance(rtol, atol)
    own = [cast(case, loaded.precision) for case in _cases(cases)]
    reports = engine.run(
        own, loaded, chosen(*([given] if isinstance(given, str) else given for given in (select, ignore))), tolerance
    )
    report = Report(loaded.under_test, tolerance, tuple(reports))
    broken = [(case, finding) for case, finding in report.findings() if finding.status in BROKEN]
    checked = sum(finding.checked for _, finding in report.findings())
    if broken:
        raise AssertionError(_message(loaded, report, broken))
    if not checked:
        raise AssertionError(f"{loaded.name}: no equation was really checked on {counted(len(own), 'case')}")
    return checked


def _name(function: Callable[..., Any]) -> str:
    """Return the name by which the command line finds a function: its file and its name there."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        file = inspect.getsourcefile(function)
    except TypeError:  # an object that can be called
        file = None
    if file is None or "<locals>" in name or inspect.ismethod(function):
        return str(name)
    if getattr(sys.modules.get(function.__module__), "__package__", ""):
        return f"{function.__module__}:{name}"
    path = Path(file)
    return f"{os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path}:{name}"


def _cases(given: str | Path | Case | Sequence[str | Path | Case]) -> list[Case]:
    parts = [given] if isinstance(given, str | Path | Case) else list(given)
    paths = [part for part in parts if not isinstance(part, Case)]
    loaded = load_cases(paths or [resources.folder("cases")]) if paths or not parts else []
    return [*loaded, *(part for part in parts if isinstance(part, Case))]


def _again(loaded: Loaded, report: Report, case: Case, finding: Finding) -> str:
    """Return the command that repeats a finding, or the call where the command line has no name for one of both."""
    if case.path and (":" in loaded.name or loaded.name in implementations()):
        return again(case, finding, report)
    _, colons, document = case.id.partition("::")
    where = f", {case.path + colons + document!r}" if case.path else ""
    return f"assert_invariants(…{where}, select={finding.invariant!r})"


def _message(loaded: Loaded, report: Report, broken: list[tuple[Case, Finding]]) -> str:
    """Tell of the first finding on each broken claim what, where, why, and how to repeat it."""
    first: dict[str, tuple[Case, Finding]] = {}
    for case, finding in broken:
        first.setdefault(finding.invariant, (case, finding))
    findings, claims = counted(len(broken), "finding"), counted(len(first), "claim")
    lines = [f"{loaded.name} in {loaded.precision.dtype}: {findings} on {claims} broke, stayed open or crashed"]
    for case, finding in list(first.values())[:MOST]:
        lines += [f"  {finding.invariant} {VERBS[finding.status]} on {case.id}", f"    {finding.reason}"]
        lines.append(f"    again: {_again(loaded, report, case, finding)}")
    if len(first) > MOST:
        lines.append(f"  … and {counted(len(first) - MOST, 'claim')} more")
    return "\n".join(lines)
