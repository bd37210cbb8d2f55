"""What can be put under test by name, without any of the libraries: what is told of it, and what is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verify_attention import loading
from verify_attention.model import Adapter, Divergence
from verify_attention.pipeline import CORE
from verify_attention.plugins import implementations

ARTICLE = str(Path(__file__).resolve().parent.parent / "cases" / "article")
LIBRARIES = {library for adapter in implementations().values() for library in adapter.libraries}


def inside(arguments: list[str], folder: Any, capsys: Any, monkeypatch: Any) -> tuple[int, str, str]:
    from verify_attention.cli import main

    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    captured = capsys.readouterr()
    return int(exited.value.code or 0), captured.out, captured.err


def hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every library look as if it were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in LIBRARIES else real(name, *rest)
    )


@pytest.mark.parametrize("name", [name for name, one in implementations().items() if one.libraries])
def test_a_missing_library_is_one_line_with_the_command(name: str, tmp_path, capsys, monkeypatch) -> None:
    hide(monkeypatch)
    code, out, err = inside(["run", "--implementation", name], tmp_path, capsys, monkeypatch)
    adapter = implementations()[name]
    command = f"pip install {' '.join(adapter.install)}"
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {name} needs {adapter.libraries[0]}")
    assert err.endswith(f", which is not installed: {command}\n")
    assert err.count("\n") == 1
    _, out, _ = inside(["explain", name], tmp_path, capsys, monkeypatch)
    assert f"installed: no: {command}" in out


def test_the_list_tells_what_is_missing(tmp_path, capsys, monkeypatch) -> None:
    hide(monkeypatch)
    _, out, _ = inside(["list", "implementations"], tmp_path, capsys, monkeypatch)
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == list(implementations())
    assert lines[0].split()[1:] == [loading.__version__, "float64"]
    assert next(line for line in lines if "onnxruntime" in line).endswith("not installed: pip install onnxruntime onnx")
    assert max(map(len, lines)) <= 80


def test_the_list_aligns_versions_and_dtypes(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(loading, "version_of", lambda adapter: "2.13.0+cpu" if adapter.libraries else "0.1.0")
    _, out, _ = inside(["list", "implementations"], tmp_path, capsys, monkeypatch)
    lines = out.splitlines()
    assert len({line.index("float64") for line in lines}) == 1
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", implementations())
def test_an_implementation_is_explained(name: str, tmp_path, capsys, monkeypatch) -> None:
    code, out, _ = inside(["explain", name], tmp_path, capsys, monkeypatch)
    adapter = implementations()[name]
    said = "".join(out.split())
    assert code == 0
    for part in (adapter.claim, *(f"{one.what}: {one.reason}; {one.link}" for one in adapter.divergences)):
        assert "".join(part.split()) in said
    for dtype, other in adapter.computes_in.items():
        assert f"{dtype}(computedin{other})" in said


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["explain", "jax"]])
def test_no_library_is_imported_to_tell_of_it(arguments: list[str]) -> None:
    code = (
        "import runpy, sys; sys.argv[1:] = sys.argv[1:]\ntry: runpy.run_module('verify_attention', run_name='__main__')"
    )
    code += f"\nexcept SystemExit: pass\nprint(sorted({LIBRARIES!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def happening() -> bool:
    raise RuntimeError("no such option")


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda: True, None),
        (lambda: False, "mine: a listed divergence no longer happens: rows are upside down"),
        (happening, "cannot be asked about: rows are upside down: RuntimeError: no such option"),
    ],
    ids=["happens", "ended", "raises"],
)
def test_a_run_asks_for_each_divergence(happens, said, tmp_path, capsys, monkeypatch) -> None:
    known = Divergence("rows are upside down", "they are turned", "https://example.org", happens)
    adapter = Adapter("mine", "Mine.", load=lambda _dtype: CORE, divergences=(known,))
    monkeypatch.setattr(loading, "implementations", lambda: {"mine": adapter})
    arguments = ["run", ARTICLE, "-q", "--no-output", "--implementation", "mine"]
    code, _, err = inside(arguments, tmp_path, capsys, monkeypatch)
    assert code == (0 if said is None else 1)
    assert (said or "") in err
    assert said is not None or err == ""


def test_another_package_may_bring_a_library(monkeypatch) -> None:
    """`onnxruntime-gpu` is imported as `onnxruntime`."""
    adapter = Adapter("mine", "Mine.", load=lambda _dtype: CORE, libraries=("json",), install=("no-such-package",))
    assert loading.version_of(adapter) == "unknown"
    assert loading.version_of(Adapter("x", "X.", load=lambda _dtype: CORE, libraries=("no_such",))) is None
