"""Completion in real shells; one that is not installed is skipped, but where VERIFY_ATTENTION_SHELLS asks for all."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify_attention import resources
from verify_attention.cli.completion import VARIABLE

BIN = Path(sys.executable).parent
PROGRAM = str(BIN / "verify-attention")
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def shell(name):
    """Return the path of a shell."""
    found = shutil.which(name)
    if found is None and not os.environ.get("VERIFY_ATTENTION_SHELLS"):
        pytest.skip(f"{name} is not installed")
    assert found, f"{name} is not installed, and VERIFY_ATTENTION_SHELLS asks for it"
    return found


def output(*command, folder, **environment):
    environment = {**ENVIRONMENT, "HOME": str(folder), **environment}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    return done.stdout


def in_bash(line, folder):
    """Return what bash completes, with the function that it has been given."""
    words = line.split(" ")
    script = f"""
        source <(verify-attention completion bash)
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1}
        function=$(complete -p verify-attention | sed -E 's/.*-F ([^ ]+) .*/\\1/')
        $function verify-attention
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return output(shell("bash"), "--norc", "-c", script, folder=folder).split()


def in_zsh(line, folder):
    """Return what zsh completes: the function is called as zsh does, and what it adds is printed."""
    words = line.split(" ")
    script = f"""
        compdef() {{ completer=$1 }}
        _describe() {{ print -rl -- ${{(P)3}} }}
        compadd() {{ print -rl -- $completions }}
        _path_files() {{ print files }}
        source <(verify-attention completion zsh)
        words=({" ".join(f"'{word}'" for word in words)}) CURRENT={len(words)}
        $completer
    """
    made = output(shell("zsh"), "-f", "-c", script, folder=folder)
    return [entry.partition(":")[0] for entry in made.split("\n") if entry]


def in_fish(line, folder):
    script = f"verify-attention completion fish | source; complete -C '{line}'"
    made = output(shell("fish"), "--no-config", "-c", script, folder=folder)
    return [entry.partition("\t")[0] for entry in made.split("\n") if entry]


SHELLS = pytest.mark.parametrize("complete", [in_bash, in_zsh, in_fish])


@SHELLS
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("verify-attention ru", {"run"}),
        ("verify-attention completion ", {"bash", "zsh", "fish"}),
        ("verify-attention run --no-", {"--no-output", "--no-progress"}),
        ("verify-attention run --select key-bias-leaves-", {"key-bias-leaves-output", "key-bias-leaves-weights"}),
        ("verify-attention gate --ignore lse-", {"lse-moves-with-the-key-bias"}),
        (
            "verify-attention explain soft",
            {"softmax-ignores-a-row-shift", "softcap-bounds-scores", "softcap", "softmax_plus_one"},
        ),
        ("verify-attention explain torch-s", {"torch-sdpa"}),
        ("verify-attention run -k article/two", {"article/two-dimensions"}),
        ("verify-attention run -k two-dim", {"article/two-dimensions"}),
        ("verify-attention run mine -k ", {"first", "below/second"}),
        ("verify-attention run --implementation onnxr", {"onnxruntime"}),
        ("verify-attention plot --of scores -o a.svg -k article/two", {"article/two-dimensions"}),
        ("verify-attention run --report mark", {"markdown"}),
        ("verify-attention tables --format m", {"markdown"}),
        ("verify-attention run --dtype bf", {"bfloat16"}),
        ("verify-attention schema c", {"case", "config"}),
        ("verify-attention list i", {"invariants", "implementations"}),
        ("verify-attention search --feature softm", {"softmax_plus_one"}),
    ],
)
def test_names_and_values_are_completed(complete, line, expected, tmp_path):
    (tmp_path / "mine" / "below").mkdir(parents=True)
    for name in ("first", "below/second"):
        (tmp_path / "mine" / f"{name}.yaml").touch()
    assert set(complete(line, tmp_path)) == expected


@pytest.mark.parametrize("complete", [in_bash, in_zsh])  # click's script for fish divides at commas
def test_the_last_of_several_names_is_completed(complete, tmp_path):
    made = complete("verify-attention run --ignore lse-moves-with-the-key-bias,weights-sum", tmp_path)
    assert made == ["lse-moves-with-the-key-bias,weights-sum-to-one"]


def test_zsh_takes_the_script(tmp_path):
    script = tmp_path / "_verify-attention"
    script.write_text(output(PROGRAM, "completion", "zsh", folder=tmp_path), encoding="utf-8")
    assert output(shell("zsh"), "-n", str(script), folder=tmp_path) == ""


def test_zsh_completes_at_a_prompt(tmp_path):
    """A terminal, the line editor and a press of TAB."""
    command = [shell("zsh"), "-f", "-i"]
    terminal, inside = pty.openpty()
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "TERM": "dumb", "PS1": "> "}
    with subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment, cwd=tmp_path) as run:
        os.close(inside)
        try:
            said(terminal, "autoload -Uz compinit && compinit -u -D; source <(verify-attention completion zsh)\n", 4)
            said(terminal, "print -r -- re''ady\n", 30, "ready")
            line = said(terminal, "verify-attention explain inert-q\t", 30, "inert-query-bias-leaves-weights")
        finally:
            run.kill()
            os.close(terminal)
    assert "inert-query-bias-leaves-weights" in line


def said(terminal, text, seconds, wanted=None):
    """Type, and return what comes back until that is what was wanted, or the time is over."""
    os.write(terminal, text.encode())
    heard, end = "", time.monotonic() + seconds
    while time.monotonic() < end and (wanted is None or wanted not in heard):
        if select.select([terminal], [], [], 0.2)[0]:
            heard += os.read(terminal, 65536).decode(errors="replace")
    return heard


def test_no_name_is_offered_that_a_shell_would_run(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("a;touch pwned;", "a$(touch pwned)", "a b", "a\x1b[1m", "a\nb", "a-plain"):
        (tmp_path / "mine" / f"{name}.yaml").touch()
    assert in_bash("verify-attention run mine -k a", tmp_path) == ["a-plain"]


def test_case_ids_are_those_that_a_run_knows(tmp_path):
    from verify_attention.cases import load_cases

    made = in_bash("verify-attention run -k ", tmp_path)
    assert made == [case.id for case in load_cases()]
    assert len(made) == len(list((resources.folder("cases") / "article").glob("*.yaml")))


@pytest.mark.parametrize(
    "line", ["run --select key", "run -k art", "explain soft", "run --implementation ", "run --dtype "]
)
def test_completion_loads_nothing_heavy(line, tmp_path):
    """Nor reads a settings file, not even one that is broken."""
    (tmp_path / "pyproject.toml").write_text("not = = TOML")
    words = f"verify-attention {line}"
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # which imports too
    environment = {**own, VARIABLE: "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-X", "importtime", "-m", "verify_attention"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert re.search(r"^plain,", done.stdout, re.MULTILINE)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert loaded & {"numpy", "rich", "jsonschema", "yaml", "tomllib"} == set()
    assert [line for line in done.stderr.splitlines() if not line.startswith("import time:")] == []
