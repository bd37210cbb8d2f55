"""Guards over the house: layers, lazy imports, texts that must not drift. Each has a test that it can fail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cogapp import Cog

from verify_attention import resources
from verify_attention.errors import ExitCode
from verify_attention.registry import discover

ROOT = Path(__file__).resolve().parent.parent
README, JAPANESE = ROOT / "README.md", ROOT / "README.ja.md"


def imported_by(code, folder=None):
    """Return the modules that a program imports."""
    command = [sys.executable, "-X", "importtime", *code]
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # which imports too
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=own)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


HEAVY = {"numpy", "rich", "rich.console", "jsonschema", "yaml", "importlib.metadata"}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_import_nothing_heavy(option):
    assert imported_by(["-m", "verify_attention", option]) & HEAVY == set()


def test_the_guard_on_imports_sees_them():
    assert {"numpy", "yaml"} <= imported_by(["-m", "verify_attention", "validate"])


@pytest.mark.parametrize(
    "command",
    ["--help", "run --help", "run --version", "gate --help", "completion zsh", "completion fish", "init --help"],
)
def test_what_needs_no_settings_reads_none(command, tmp_path):
    (tmp_path / "pyproject.toml").write_text("not = = TOML")
    loaded = imported_by(["-m", "verify_attention", *command.split()], tmp_path)
    assert loaded & (HEAVY | {"tomllib"}) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, set()),
        ("[tool.ruff]", {"tomllib"}),
        ("[tool.verify-attention]", {"tomllib", "jsonschema"}),
    ],
)
def test_settings_load_what_they_need(text, expected, tmp_path):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    code = "from pathlib import Path; from verify_attention.cli.config import nearest; nearest(Path.cwd())"
    loaded = imported_by(["-c", code], tmp_path)
    assert loaded & {"tomllib", "jsonschema", "numpy", "rich", "yaml"} == expected


def lint_imports(folder):
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_imports_point_down():
    code, text = lint_imports(ROOT)
    assert code == 0, text


def test_an_import_that_points_up_is_noticed(tmp_path):
    shutil.copytree(
        ROOT / "verify_attention", tmp_path / "verify_attention", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    model = tmp_path / "verify_attention" / "model" / "basics.py"
    model.write_text(model.read_text(encoding="utf-8") + "\nfrom verify_attention import engine\n", encoding="utf-8")
    code, text = lint_imports(tmp_path)
    assert code == 1
    assert "verify_attention.model.basics -> verify_attention.engine" in text


# --- the README

NOISE = re.compile(r"\b(0\.0|\d(\.\d)?e-1[5-9])\b")


def generated(text, folder):
    """Return the README with its passages made anew, by the command that renews it, in a folder of its own."""
    sys.modules.pop("passages", None)  # it writes through the module `cog`, of which each Cog makes another
    given, made = folder / "given.md", folder / "made.md"
    given.write_text(text, encoding="utf-8")
    assert Cog().main(["cog", "-I", str(ROOT / "tests"), "-n", "utf-8", "-o", str(made), str(given)]) == 0
    return made.read_text(encoding="utf-8")


def quiet(text):
    """Machines differ in the last bit: what is so small says nothing, nor where it is, and its width moves columns."""
    return re.sub(r"~0 \d\S*e-1[12]\b", "~0 a limit", re.sub(r" +", " ", NOISE.sub("~0", text)))


@pytest.mark.parametrize("readme", [README, JAPANESE], ids=lambda readme: readme.name)
def test_the_readme_says_what_the_program_says(readme, tmp_path):
    text = readme.read_text(encoding="utf-8")
    renew = f"renew it with: python -m cogapp -r -I tests {readme.name}"
    assert quiet(generated(text, tmp_path)) == quiet(text), renew


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("readme", "true", "false"),
    [
        (README, "| 3 | a case could not be read |", "| 3 | a case was refused |"),
        (README, "(0.707107, 0, -0.707107)", "(0.707107, 0, -0.707108)"),
        (README, "LSE_i(k) − LSE_i(none) = s·q_i·bK", "LSE_i(k) = LSE_i(none)"),
        (README, "--maxfail", "--max-fail"),
        (JAPANESE, "(0.707107, 0, -0.707107)", "(0.707107, 0, -0.707108)"),
        (JAPANESE, "| 基本スコア |", "| スコア |"),
        (JAPANESE, "K biasが最初のKeyにしか届かない", "K biasが届かない"),
    ],
)
def test_a_readme_that_drifts_is_noticed(readme, true, false, tmp_path):
    text = readme.read_text(encoding="utf-8")
    assert true in text
    assert quiet(generated(text.replace(true, false), tmp_path)) == quiet(text)


def test_the_readme_s_kernel_is_right_but_for_its_mistake(tmp_path, monkeypatch):
    from verify_attention.testing import assert_invariants

    wrong = (ROOT / "tests" / "example" / "kernel.py").read_text(encoding="utf-8")
    right = re.sub(r"np\.tile\(x, \(1, repeats, 1, 1\)\)", "np.repeat(x, repeats, axis=1)", wrong)
    assert right != wrong
    for name, text in (("wrong", wrong), ("right", right)):
        (tmp_path / f"{name}_kernel.py").write_text(text, encoding="utf-8")
    assert assert_invariants(f"{tmp_path}/right_kernel.py:attention") > 1000
    with pytest.raises(AssertionError, match="grouped-heads-equal-repeated-heads fails"):
        assert_invariants(f"{tmp_path}/wrong_kernel.py:attention")


def test_the_readme_s_test_fails_for_the_mistake_and_says_why():
    """In half precision too."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "tests/example"]
    done = subprocess.run(
        [*command, "tests/example/test_kernel.py"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("FF")
    assert "grouped-heads-equal-repeated-heads fails on" in done.stdout
    assert "attention in float16: " in done.stdout


def test_the_readme_s_example_of_a_control_is_a_case_that_passes(tmp_path, monkeypatch):
    from verify_attention.cases import load_cases
    from verify_attention.engine import judge
    from verify_attention.pipeline import CORE
    from verify_attention.plugins import invariants

    examples = re.findall(r"```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    text = next(part for part in examples if "key_shifts" in part)
    (tmp_path / "control.yaml").write_text(text, encoding="utf-8")
    (case,) = load_cases([tmp_path / "control.yaml"])
    statuses = {name: judge(invariant, case, CORE).status for name, invariant in invariants().items()}
    assert statuses["key-bias-leaves-weights"] == "pass"
    assert set(statuses.values()) == {"pass", "skipped"}


def test_the_japanese_readme_s_case_is_one_that_passes(tmp_path):
    from verify_attention.cases import load_cases
    from verify_attention.engine import judge
    from verify_attention.pipeline import CORE
    from verify_attention.plugins import invariants

    (text,) = re.findall(r"```yaml\n(.*?)```", JAPANESE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    (case,) = load_cases([tmp_path / "mine.yaml"])
    statuses = {name: judge(invariant, case, CORE).status for name, invariant in invariants().items()}
    assert statuses["key-bias-leaves-output"] == "pass"
    assert set(statuses.values()) == {"pass", "skipped"}


def test_the_ci_runs_the_readme_s_commands():
    text = README.read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(python3 -m venv .*)\n```", text)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert len(commands) == 2
    assert commands[1] in ci
    assert commands[0].rpartition("&& .venv/bin/")[2] in ci


@pytest.mark.parametrize("readme", [README, JAPANESE], ids=lambda readme: readme.name)
def test_every_file_named_in_the_readme_is_there(readme):
    text = readme.read_text(encoding="utf-8")
    names = set(re.findall(r"(?:schemas|cases)/[\w./-]+\.(?:json|yaml)", text)) - {"cases/mine.yaml"}
    assert "schemas/results.schema.json" in names
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_the_readmes_name_each_other_and_their_shell_commands_are_the_same():
    text, other = README.read_text(encoding="utf-8"), JAPANESE.read_text(encoding="utf-8")
    assert f"]({JAPANESE.name})" in text
    assert f"]({README.name})" in other
    commands = re.findall(r"```sh\n(.*? .*)\n```", other)
    assert len(commands) >= 3
    assert [command for command in commands if command not in text] == []


def test_nothing_names_this_machine_or_how_it_was_made():
    git = shutil.which("git")
    assert git is not None
    command = [git, "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    private = re.compile(rf"{re.escape(str(ROOT))}/|/home/\w+/|/root/")
    files = [ROOT / name for name in listed.stdout.split("\n") if name and name != "tests/test_guards.py"]
    texts = {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()}
    guilty = [name for name, text in texts.items() if private.search(text)]
    assert guilty == []


# --- registry and resources


def test_a_plugin_without_its_constant_is_an_error():
    with pytest.raises(AttributeError):
        discover("verify_attention.invariants", "NO_SUCH_CONSTANT")


def test_shipped_folders_are_found_from_anywhere():
    assert (resources.folder("cases") / "article" / "two-dimensions.yaml").is_file()
    assert resources.schema("case")["$schema"].endswith("2020-12/schema")


def test_exit_codes_are_the_specified_ones():
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 4, 130]
