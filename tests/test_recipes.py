"""The recipes for a CI are run: the GitHub workflow step by step, the shell script, and the hook of pre-commit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "verify_attention" / "templates"
WORKFLOW = (TEMPLATES / "github-workflow.yml").read_text("utf-8")
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
GOOD = (ROOT / "cases" / "article" / "two-dimensions.yaml").read_text("utf-8")
BROKEN = GOOD.replace("2.121320", "2.121321")  # a printed number that is wrong
UNREADABLE = GOOD.replace("d_k: 2", "d_k: 3")
ALWAYS = "always()"
Results = dict[str, list[int]]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="these are recipes for sh")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this program on the path."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "verify-attention"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m verify_attention "$@"\n', "utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(program: None, tmp_path: Path) -> Path:
    """Return a repository with one good case."""
    (tmp_path / "repository" / "cases" / "mine").mkdir(parents=True)
    (tmp_path / "repository" / "cases" / "mine" / "new.yaml").write_text(GOOD, "utf-8")
    return tmp_path / "repository"


def spoilt(folder: Path, text: str) -> Path:
    (folder / "cases" / "mine" / "new.yaml").write_text(text, "utf-8")
    return folder


def call(command: str | list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-e", "-c", command] if isinstance(command, str) else command
    return subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", check=False)


# GitHub Actions


class Runner:
    """As much of GitHub's as the workflow uses: jobs in their order, each in a fresh checkout, and artifacts."""

    def __init__(self, checkout: Path, away: Path) -> None:
        self._checkout, self._away = checkout, away
        self.red: set[str] = set()
        self.on_upload: Callable[[Path], None] = lambda _path: None

    def run(self, text: str) -> Results:
        """Return the exit codes of the commands of each job that ran."""
        results: Results = {}
        for name, job in yaml.safe_load(text)["jobs"].items():
            needed = {job["needs"]} & self.red if "needs" in job else set()
            if needed and job.get("if") != ALWAYS:
                continue
            results[name], good = self._job(job, self._away / name)
            self.red |= set() if good else {name}
        return results

    def _job(self, job: dict[str, Any], folder: Path) -> tuple[list[int], bool]:
        codes, good = [], True
        for step in job["steps"]:
            if not good and step.get("if") != ALWAYS:
                continue
            if "uses" in step:
                good &= self._action(step["uses"].partition("@")[0], step.get("with", {}), folder)
            elif not step["run"].startswith("pip install "):
                codes.append(call(step["run"], folder).returncode)
                good &= codes[-1] == 0
        return codes, good

    def _action(self, action: str, given: dict[str, Any], folder: Path) -> bool:
        store = self._away / "artifacts"
        if action == "actions/checkout":
            shutil.copytree(self._checkout, folder)
        elif action == "actions/upload-artifact":
            if (folder / given["path"]).is_file():
                (store / given["name"]).mkdir(parents=True)
                shutil.copy(folder / given["path"], store / given["name"])
                self.on_upload(store / given["name"] / given["path"])
        elif action == "actions/download-artifact":
            if not (store / given["name"]).is_dir():
                return False
            shutil.copytree(store / given["name"], folder, dirs_exist_ok=True)
        else:
            assert action == "actions/setup-python", action
        return True


def commands(text: str, job: str) -> list[str]:
    steps = yaml.safe_load(text)["jobs"][job]["steps"]
    return [step["run"] for step in steps if step.get("run", "").startswith("verify-attention ")]


def test_the_workflow_is_green_where_everything_holds(folder: Path, tmp_path: Path) -> None:
    runner = Runner(folder, tmp_path)
    assert runner.run(WORKFLOW) == {job: [0] * len(commands(WORKFLOW, job)) for job in ("run", "gate")}
    assert runner.red == set()


def test_a_case_that_breaks_reddens_both_jobs(folder: Path, tmp_path: Path) -> None:
    results = Runner(spoilt(folder, BROKEN), tmp_path).run(WORKFLOW)
    assert results["run"] == [1]
    assert results["gate"][0] == 1
    assert len(results["gate"]) == len(commands(WORKFLOW, "gate"))


def test_a_case_that_cannot_be_read_reddens_both_jobs(folder: Path, tmp_path: Path) -> None:
    """There are no results then, and no artifact."""
    runner = Runner(spoilt(folder, UNREADABLE), tmp_path)
    assert runner.run(WORKFLOW)["run"] == [3]
    assert runner.red == {"run", "gate"}


def test_results_that_were_changed_on_their_way_redden_the_gate_alone(folder: Path, tmp_path: Path) -> None:
    def forge(path: Path) -> None:
        path.write_text(path.read_text("utf-8").replace('"pass"', '"skipped"', 1), "utf-8")

    runner = Runner(folder, tmp_path)
    runner.on_upload = forge
    results = runner.run(WORKFLOW)
    assert results["run"] == [0]
    assert results["gate"][0] == 4


@pytest.mark.parametrize("place", ["the gate", "the upload"])
def test_without_always_the_gate_says_nothing_of_what_broke(place: str, folder: Path, tmp_path: Path) -> None:
    """So the workflow's are needed, and these tests would see that one is missing."""
    before = "    needs: run\n" if place == "the gate" else "      - uses: actions/upload-artifact@v4\n"
    pattern = rf"({re.escape(before)} +)if: always\(\)"
    assert re.search(pattern, WORKFLOW)
    results = Runner(spoilt(folder, BROKEN), tmp_path).run(re.sub(pattern, r"\1x: 1", WORKFLOW))
    assert results["run"] == [1]
    assert results.get("gate", []) == []


def agrees_with_github(path: Path) -> bool:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    return call(command, ROOT).returncode == 0


def test_the_workflow_is_one_that_github_reads(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOW.replace("runs-on", "run-on"), "utf-8")
    assert agrees_with_github(TEMPLATES / "github-workflow.yml")
    assert not agrees_with_github(wrong)


# The shell script


def gated(folder: Path, *options: str) -> int:
    return call(["sh", str(TEMPLATES / "gate.sh"), "cases/", *options], folder).returncode


def test_the_script_is_green_where_everything_holds(folder: Path) -> None:
    assert gated(folder) == 0
    assert (folder / "results.json").is_file()


def test_the_script_is_red_where_a_case_breaks_or_cannot_be_read(folder: Path) -> None:
    assert gated(folder) == 0
    assert gated(spoilt(folder, BROKEN)) == 1
    assert gated(spoilt(folder, UNREADABLE)) != 0
    assert not (folder / "results.json").exists(), "what the gate would judge is of another run"


def test_the_script_says_what_is_under_test_to_both(folder: Path) -> None:
    kernel = "import numpy as np\n\n\ndef attention(q, k, v):\n    return np.ones((*q.shape[:-1], v.shape[-1]))\n"
    (folder / "wrong.py").write_text(kernel, "utf-8")
    assert gated(folder, "--implementation", "wrong.py:attention") == 1
    assert '"wrong.py:attention"' in (folder / "results.json").read_text("utf-8")


def test_the_script_is_red_where_only_the_gate_objects(folder: Path, tmp_path: Path) -> None:
    """As where the run's word was taken: here it says nothing but 0."""
    program = tmp_path / "bin" / "verify-attention"
    program.write_text(program.read_text("utf-8").replace("exec", '[ "$1" = run ] && exit 0\nexec'), "utf-8")
    assert gated(folder) != 0


def test_the_readme_s_line_is_red_where_a_case_breaks(folder: Path) -> None:
    [line] = re.findall(r"```sh\n(verify-attention run .* && .*)\n```", (ROOT / "README.md").read_text("utf-8"))
    assert call(line, folder).returncode == 0
    assert call(line, spoilt(folder, BROKEN)).returncode == 1


# pre-commit

[HOOK] = yaml.safe_load(MANIFEST.read_text("utf-8"))


def hooked(folder: Path) -> int:
    """Call the hook as pre-commit does."""
    assert HOOK["pass_filenames"] is False
    return call([*shlex.split(HOOK["entry"]), *HOOK["args"]], folder).returncode


def test_the_hook_refuses_what_breaks_and_what_cannot_be_read(folder: Path) -> None:
    assert hooked(folder) == 0
    assert hooked(spoilt(folder, BROKEN)) == 1
    assert hooked(spoilt(folder, UNREADABLE)) == 3
    assert not (folder / "results.json").exists()


def test_the_hook_is_called_for_cases_alone() -> None:
    files = re.compile(HOOK["files"])
    named = ["cases/mine/new.yaml", "cases/new.yml", "README.md", "cases/notes.md", "other/cases/new.yaml"]
    assert [name for name in named if files.search(name)] == named[:2]


def test_files_of_one_name_are_why_the_hook_passes_no_file_names(folder: Path) -> None:
    (folder / "cases" / "other").mkdir()
    (folder / "cases" / "other" / "new.yaml").write_text(GOOD, "utf-8")
    entry = shlex.split(HOOK["entry"])
    assert call([*entry, "cases/mine/new.yaml", "cases/other/new.yaml"], folder).returncode == 3
    assert hooked(folder) == 0


def test_pre_commit_reads_the_manifest(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    validate = [sys.executable, "-m", "pre_commit", "validate-manifest"]
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFEST.read_text("utf-8").replace("language: python", "language: snake"), "utf-8")
    assert call([*validate, str(MANIFEST)], ROOT).returncode == 0
    assert call([*validate, str(wrong)], ROOT).returncode != 0


# The wheel


def packed(tree: Path, out: Path) -> set[str]:
    """Return the names of the recipes in the wheel of a source tree."""
    pytest.importorskip("hatchling")
    done = call([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], tree)
    assert done.returncode == 0, done.stderr
    [wheel] = out.glob("*.whl")
    names = map(PurePosixPath, zipfile.ZipFile(wheel).namelist())
    return {name.name for name in names if name.parent == PurePosixPath("verify_attention/templates")}


def test_a_wheel_carries_the_recipes(tmp_path: Path) -> None:
    there = {path.name for path in TEMPLATES.iterdir()}
    assert {"gate.sh", "github-workflow.yml"} <= there
    assert packed(ROOT, tmp_path) == there


def test_a_wheel_without_a_recipe_is_noticed(tmp_path: Path) -> None:
    copied = ("pyproject.toml", "README.md", "LICENSE")
    (tmp_path / "verify_attention" / "templates").mkdir(parents=True)
    for name in copied:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "verify_attention" / "__init__.py", tmp_path / "verify_attention")
    for name in ("cases", "schemas"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").touch()
    shutil.copy(TEMPLATES / "gate.sh", tmp_path / "verify_attention" / "templates")
    (tmp_path / ".gitignore").write_text("*.yml\n", "utf-8")
    shutil.copy(TEMPLATES / "github-workflow.yml", tmp_path / "verify_attention" / "templates")
    assert packed(tmp_path, tmp_path / "dist") == {"gate.sh"}
