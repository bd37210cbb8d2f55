"""What is put under test by name: adapters, functions of modules and of files, and what is said where that fails."""

from __future__ import annotations

import json
import pickle
import re
import sys
from pathlib import Path

import pytest
from test_cli import CASES, EXAMPLE, call

from verify_attention import loading
from verify_attention.errors import LoadError, UsageError
from verify_attention.loading import as_implementation, load
from verify_attention.model import Adapter, precision
from verify_attention.plugins import implementations

KERNEL = """
from verify_attention.kernel import attention
import numpy as np

__version__ = "3.1"


def right(q, k, v, *, scale=None, bQ=None, bK=None, bV=None):
    return attention(q, k, v, scale=scale, bQ=bQ, bK=bK, bV=bV)["output"]


def first_key_without_bias(q, k, v, *, scale=None, bQ=None, bK=None, bV=None):
    if bK is not None:
        k = k.copy()
        k[:, :, 1:] += bK[:, None]
    return attention(q, k, v, scale=scale, bQ=bQ, bV=bV)["output"]


def without_key_bias(q, k, v, *, scale=None, bQ=None, bK=None, bV=None):
    return attention(q, k, v, scale=scale, bQ=bQ, bV=bV)["output"]


def uniform(q, k, v):
    return np.repeat(v.mean(axis=2, keepdims=True), q.shape[1] // v.shape[1], axis=1).repeat(q.shape[2], axis=2)


def constant(q, k, v, **options):
    return np.zeros((*q.shape[:3], v.shape[3]))


def raising(q, k, v):
    raise ValueError("no such thing")


def torch_s_words(q, k, v, *, scale=None, attn_mask=None, is_causal=False):
    return attention(q, k, v, scale=scale)["output"]


def needy(q, k, v, *, dropout):
    return v


class Kernel:
    def __call__(self, q, k, v, **options):
        return attention(q, k, v, **options)

    def method(self, q, k, v):
        return attention(q, k, v)


ready = Kernel()
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with kernels of somebody's own and the worked example."""
    (tmp_path / "own_kernels.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def attention(:\n", encoding="utf-8")
    (tmp_path / "needy.py").write_text("import no_such_library\n", encoding="utf-8")
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "mine.yaml").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


# From Python


def test_a_function_is_found_by_module_and_by_file(folder):
    for name in ("own_kernels:right", "./own_kernels.py:right", f"{folder}/own_kernels.py:right", "own_kernels:ready"):
        loaded = load(name)
        assert (loaded.name, loaded.version) == (name.replace("./", "").replace(f"{folder}/", ""), "3.1")
        assert loaded.precision == precision("float64")


def test_an_implementation_travels_by_its_name(folder):
    loaded = load("own_kernels.py:right", "float16")
    again = pickle.loads(pickle.dumps(loaded))  # noqa: S301 - our own
    assert (again.name, again.precision) == (loaded.name, precision("float16"))


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("torch", UsageError, "no implementation is called 'torch'"),
        ("croe", UsageError, "no implementation is called 'croe' (did you mean 'core'?)"),
        (":right", UsageError, "':right' is not of the form module:function or path.py:function"),
        ("own_kernels:", UsageError, "'own_kernels:' is not of the form"),
        ("no_such_module:attention", LoadError, "no_such_module cannot be imported: ModuleNotFoundError: No module"),
        ("nowhere.py:attention", LoadError, "nowhere.py cannot be imported: FileNotFoundError: there is no such file"),
        ("broken.py:attention", LoadError, "broken.py cannot be imported: SyntaxError: invalid syntax"),
        ("needy.py:attention", LoadError, "needy.py cannot be imported: ModuleNotFoundError: No module named 'no_such"),
        ("leaving:attention", LoadError, "leaving cannot be imported: SystemExit: 0"),
        ("own_kernels.py:wrong", LoadError, "own_kernels.py has no 'wrong'"),
        ("own_kernels.py:rigth", LoadError, "own_kernels.py has no 'rigth' (did you mean 'right'?)"),
        ("own_kernels.py:needy", LoadError, "own_kernels.py:needy must be given dropout, which the interface of a"),
        ("own_kernels.py:number", LoadError, "own_kernels.py:number is int, expected a function"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_a_line(folder, name, kind, said):
    with pytest.raises(kind) as caught:
        load(name)
    (line,) = caught.value.lines
    assert line.startswith(said)
    assert "\n" not in line


def test_a_dtype_that_an_adapter_does_not_take_is_said():
    with pytest.raises(UsageError, match=r"^core takes float64, not float16$"):
        load("core", "float16")


def test_a_missing_library_is_said_with_the_command_that_installs_it(monkeypatch):
    adapter = Adapter(
        "x.lost", "Lost.", load=lambda _dtype: None, libraries=("no_such_library",), install=("lost-lib",)
    )
    monkeypatch.setattr(loading, "implementations", lambda: {"lost": adapter})
    with pytest.raises(UsageError) as caught:
        load("lost")
    assert caught.value.lines == ("lost needs no_such_library, which is not installed: pip install lost-lib",)


def test_a_declared_precision_must_be_one():
    def odd(q, k, v):
        return v

    odd.computes_in = "float8"
    with pytest.raises(LoadError, match="its computes_in is 'float8', allowed are float64, float32"):
        as_implementation(odd, "odd")
    odd.computes_in = "float32"
    assert as_implementation(odd, "odd").precision == precision("float64", "float32")


def test_the_core_is_an_implementation_as_any_other():
    assert "core" in implementations()
    assert load().is_core
    assert load().independent_heads
    assert not load("verify_attention.kernel:attention").is_core


# On the command line


def test_a_right_function_passes_and_says_how_much_was_really_checked(folder):
    done = call("run", "cases", "--implementation", "own_kernels:right", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS  own_kernels:right, float64: 1 case, 1" in done.stdout
    made = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    said = {"name": "own_kernels:right", "version": "3.1", "dtype": "float64", "computes_in": "float64"}
    assert made["implementation"] == said
    gate = ("gate", "results.json", "--cases", "cases", "--implementation", "own_kernels:right")
    assert call(*gate, folder=folder).returncode == 0
    assert call(*gate[:4], folder=folder).returncode == 4  # it is not the core's


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["first_key_without_bias", "without_key_bias", "uniform", "constant"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_wrong_function_is_named_with_equation_case_place_and_command(folder, name, dtype):
    """Code that ignores bK, or returns uniform weights or a constant, never ends in 0; nor on the shipped cases."""
    implementation = f"./own_kernels.py:{name}"
    done = call("run", CASES / "implementations", "--implementation", implementation, "--dtype", dtype, folder=folder)
    assert done.returncode == 1
    first, place, again, *_ = done.stdout.splitlines()
    assert first.startswith("FAIL  ")
    assert re.search(r" on [a-z-]+::[a-z-]+$", first)
    assert " at head " in place or " head " in place
    command = again.removeprefix("  again: verify-attention ")
    assert f"--implementation {implementation.removeprefix('./')}" in command
    assert (f"--dtype {dtype}" in command) == (dtype != "float64")
    repeated = call(*command.split(), folder=folder)
    assert repeated.returncode == 1
    assert repeated.stdout.splitlines()[:2] == [first, place]


def test_a_function_that_raises_crashes_case_by_case_and_the_run_goes_on(folder):
    done = call("run", "cases", CASES / "article", "--implementation", "own_kernels:raising", folder=folder)
    assert done.returncode == 4
    assert "CRASH" in done.stdout
    assert "ValueError: no such thing" in done.stdout
    assert "6 cases" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--implementation", "no_such:thing"), 4),
        (("--implementation", "leaving:attention"), 4),
        (("--implementation", "no-such"), 2),
        (("--dtype", "float32"), 2),
        (("--implementation", "own_kernels:right", "--dtype", "float8"), 2),
    ],
)
def test_what_cannot_be_loaded_ends_in_a_line_and_writes_nothing(folder, arguments, code):
    done = call("run", "cases", *arguments, folder=folder)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert not (folder / "results.json").exists()


@pytest.mark.thorough
def test_several_processes_find_the_same(folder):
    for name, processes in (("one.json", 1), ("two.json", 2)):
        options = ("--implementation", "./own_kernels.py:ready", "-n", processes, "-o", name)
        assert call("run", CASES / "bias", CASES / "implementations", *options, folder=folder).returncode == 0
    one, two = ((folder / name).read_bytes() for name in ("one.json", "two.json"))
    assert one == two


def test_results_on_stdout_are_not_mixed_with_what_a_function_prints(folder):
    text = (
        KERNEL + '\n\ndef chatty(q, k, v, **options):\n    print("hello")\n    return attention(q, k, v, **options)\n'
    )
    (folder / "own_kernels.py").write_text(text, encoding="utf-8")
    done = call("run", "cases", "--implementation", "own_kernels:chatty", "-o", "-", folder=folder)
    assert json.loads(done.stdout)["summary"]["fail"] == 0
    assert "hello" in done.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dtype": "bfloat16"}, "implementation.dtype: says bfloat16, expected float64"),
        ({"computes_in": "bfloat16"}, "implementation.computes_in: says bfloat16, expected float64"),
    ],
)
def test_a_gate_does_not_believe_a_precision(folder, changes, said):
    """From it limits follow: a wrong function in a coarse one may look right."""
    from verify_attention.sealing import seal

    assert call("run", "cases", "--implementation", "own_kernels:right", folder=folder).returncode == 0
    path = folder / "results.json"
    made = json.loads(path.read_text(encoding="utf-8"))
    made["implementation"] |= changes
    path.write_bytes(seal(made))
    done = call("gate", path, "--implementation", "own_kernels:right", folder=folder)
    assert done.returncode == 4
    assert said in done.stdout


def test_parameters_that_are_never_given_are_noted(folder):
    done = call("run", "cases", "--implementation", "own_kernels:torch_s_words", folder=folder)
    assert done.returncode == 0
    note = "attn_mask and is_causal are never given: they are no options of the interface"
    assert f"note: own_kernels:torch_s_words: {note}" in done.stderr


def test_another_implementation_than_the_core_is_asked_about_all_built_in_cases(tmp_path):
    implementation = "verify_attention.kernel:attention"
    done = call("run", "-k", "implementations/", "--implementation", implementation, folder=tmp_path)
    assert done.returncode == 0
    assert int(re.search(r"(\d+) cases", done.stdout)[1]) > 40
    assert call("gate", "results.json", "--implementation", implementation, folder=tmp_path).returncode == 0


def test_crashes_alike_are_told_once_with_their_place(folder):
    done = call("run", CASES / "article", "--implementation", "own_kernels:raising", folder=folder)
    assert done.stdout.count("ValueError: no such thing (own_kernels.py:") == 1
    more = re.search(r"^(\d+) more like the crashes that follow$", done.stdout, re.MULTILINE)
    assert int(more[1]) + 1 == int(re.search(r"(\d+) crashed", done.stdout)[1])


def test_list_names_what_can_be_put_under_test(tmp_path):
    assert "core" in call("list", "implementations", folder=Path(tmp_path)).stdout
