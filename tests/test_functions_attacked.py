"""Functions under test that misbehave: each ends in findings or in one line, with the exit code that it deserves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from verify_attention.cases import load_cases
from verify_attention.engine import judge, run_case
from verify_attention.errors import LoadError
from verify_attention.functions import Function
from verify_attention.kernel import attention
from verify_attention.loading import as_implementation, load
from verify_attention.model import Array, Tolerance
from verify_attention.plugins import invariants

ROOT = Path(__file__).resolve().parent.parent / "cases"
CASES = {case.id: case for case in load_cases([ROOT / "implementations"])}
OPTION = "each-option::"
CLAIMS = invariants()


class LeavesError(BaseException):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


def leaving(*arrays: Array, **options: object) -> Array:
    raise LeavesError("for good")


def closing(*arrays: Array, **options: object) -> Array:
    raise GeneratorExit


def mute(*arrays: Array, **options: object) -> Array:
    raise MuteError


@pytest.mark.parametrize(
    ("function", "said"), [(leaving, "LeavesError: for good"), (closing, "GeneratorExit"), (mute, "MuteError")]
)
def test_whatever_a_function_raises_is_a_finding(function: Function, said: str) -> None:
    loaded = as_implementation(function, "bad")
    finding = judge(CLAIMS["agrees-with-the-core"], CASES[f"{OPTION}no-option"], loaded)
    assert finding.status == "crashed"
    assert said in str(finding.reason)


def test_numpy_s_error_state_is_given_back() -> None:
    def strict(q: Array, k: Array, v: Array, **options: object) -> Array:
        found = attention(q, k, v, **options)["output"]  # type: ignore[arg-type]
        np.seterr(all="raise")
        return found

    before = np.geterr()
    report = run_case(CASES[f"{OPTION}mask"], as_implementation(strict, "strict"), CLAIMS.values(), Tolerance())
    assert {finding.status for finding in report.findings} == {"pass", "skipped"}
    assert np.geterr() == before


def test_a_module_that_leaves_by_any_exception_is_named(tmp_path: Path) -> None:
    (tmp_path / "away.py").write_text("class Away(BaseException):\n    pass\nraise Away('now')\n", encoding="utf-8")
    with pytest.raises(LoadError, match=r"away\.py cannot be imported: Away: now"):
        load(f"{tmp_path / 'away.py'}:f")


def test_an_attribute_that_raises_is_named(tmp_path: Path) -> None:
    (tmp_path / "lazily.py").write_text(
        "class Lazy:\n    def __getattr__(self, name):\n        raise RuntimeError('no library')\n\nlazy = Lazy()\n",
        encoding="utf-8",
    )
    with pytest.raises(LoadError, match=r"lazily\.py does not give its 'lazy\.f': RuntimeError: no library"):
        load(f"{tmp_path / 'lazily.py'}:lazy.f")


def test_results_lie_where_the_run_began_though_a_function_goes_away(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mover.py").write_text(
        "import os\nfrom verify_attention.kernel import attention\n\n"
        "def f(q, k, v, **options):\n    os.chdir(os.path.dirname(__file__) + '/elsewhere')\n"
        "    return attention(q, k, v, **options)\n",
        encoding="utf-8",
    )
    case = f"{ROOT / 'implementations' / 'each-option.yaml'}::mask"
    command = [sys.executable, "-m", "verify_attention", "run", case, "--implementation", "mover.py:f", "-q"]
    ended = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["summary"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
