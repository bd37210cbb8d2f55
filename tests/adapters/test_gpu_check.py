"""The check for GPUs, as far as a CPU goes: it runs, offers what there is, and can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import need

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["--cases", str(ROOT.parent / "cases" / "boundaries" / "gqa.yaml"), "--keys", "300"]
sys.path.insert(0, str(ROOT / "gpu"))

import check  # noqa: E402 - it lies beside the script that runs it


@pytest.fixture(autouse=True)
def _torch() -> None:
    need("torch-sdpa")


def test_backends_are_checked_or_not_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["cpu", *SMALL, "--dtypes", "float32,bfloat16"]) == 0
    lines = {tuple(line.split()[:2]): line for line in capsys.readouterr().out.splitlines()[1:]}
    assert lines["cudnn", "float32"].endswith("not offered")
    assert lines["memory-efficient", "bfloat16"].endswith("not offered")
    for backend in ("math", "flash"):
        checked, broken = map(int, lines[backend, "float32"].split()[2:4])
        assert (checked > 0, broken) == (True, 0)
        assert "limit" in lines[backend, "bfloat16"]


@pytest.mark.parametrize("value", [1e-3, float("nan")])
def test_a_backend_that_is_off_is_noticed(value: float, monkeypatch: Any, capsys: Any) -> None:
    import torch

    right = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", lambda *a, **o: right(*a, **o) + value)
    assert check.main(["cpu", *SMALL, "--dtypes", "float32"]) == 1
    assert "breaks" in (out := capsys.readouterr().out) or "differ" in out


def test_the_script_says_so_where_there_is_no_gpu() -> None:
    import torch

    if torch.cuda.is_available():
        return  # then it is the script that matters
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run([ROOT / "gpu" / "run.sh"], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "skipped: there is no GPU\n")
