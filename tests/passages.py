"""The generated passages of the READMEs: what they say is asked of the program itself.

Renew them with `python -m cogapp -r -I tests README.md README.ja.md`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cog

from verify_attention import resources, selftest
from verify_attention.cli import group
from verify_attention.cli.settings import variable
from verify_attention.errors import ExitCode
from verify_attention.languages import Language
from verify_attention.plugins import features, implementations, invariants

ROOT = Path(__file__).resolve().parent.parent
CHECKS = {"en": ("the article's check", "invariant"), "ja": ("記事の検証", "主張")}
COMMAND = [sys.executable, "-m", "verify_attention"]


def output(*arguments: str, folder: str | None = None) -> str:
    """Run the program as a user with a terminal of 80 columns would, and return what it prints."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, encoding="utf-8", env=environment, cwd=folder, check=False
    )
    return done.stdout


def run() -> None:
    """Show a run of the built-in cases."""
    with tempfile.TemporaryDirectory() as folder:
        _text("$ verify-attention run\n" + output("run", folder=folder))


def command_help(command: str) -> None:
    """Show a command's help."""
    _text(output(command, "--help"))


def table(lang: str = "en") -> None:
    """Show the article's table as Markdown."""
    cog.out("\n" + output("tables", "-k", "two-dimensions", "--format", "markdown", "--lang", lang) + "\n")


def explanation(name: str, lang: str) -> None:
    """Show what a plugin is, in a language."""
    _text(f"$ verify-attention explain {name} --lang {lang}\n{output('explain', name, '--lang', lang)}")


def limits() -> None:
    """List the features that take away what the claims about a K bias need, and why, in Japanese."""
    say, needed = Language("ja"), {"common key shift", "shift-invariant softmax"}
    rows = [f"| `{name}` | {_cell(say(each.why))} |" for name, each in features().items() if each.takes & needed]
    cog.out("\n".join(["", "| 機能 | K biasについて |", "| --- | --- |", *rows]) + "\n\n")


def invariant_table() -> None:
    """List every invariant with its formula."""
    rows = [f"| `{name}` | {one.claim} | {_cell(one.formula)} |" for name, one in invariants().items()]
    cog.out("\n".join(["", "| invariant | claim | formula |", "| --- | --- | --- |", *rows]) + "\n\n")


def adapter_table() -> None:
    """List every library that can be put under test by name."""
    extras = {"jax": "jax", "onnx": "onnx", "onnxruntime": "onnx", "torch": "torch"}
    rows = [
        f"| `{name}` | {_cell(one.claim)} | `{extras[one.libraries[0]]}` | {_kinds(one.dtypes, one.computes_in)} |"
        for name, one in implementations().items()
        if one.libraries
    ]
    cog.out("\n".join(["", "| name | what | extra | numbers |", "| --- | --- | --- | --- |", *rows]) + "\n\n")


def _kinds(dtypes: tuple[str, ...], inside: Any) -> str:
    return ", ".join(dtype + (f" (in {inside[dtype]})" if dtype in inside else "") for dtype in dtypes)


def checks(lang: str = "en") -> None:
    """List the article's checks with the invariant that repeats each."""
    say, (check, invariant) = Language(lang), CHECKS[lang]
    rows = [f"| {say(one.check)} | `{name}` |" for name, one in invariants().items() if one.check]
    cog.out("\n".join(["", f"| {check} | {invariant} |", "| --- | --- |", *rows]) + "\n\n")


def feature_table() -> None:
    """List every feature in the order in which they act, with its parameters from the schema."""
    known = resources.schema("case")["properties"]["features"]["properties"]
    rows = [
        f"| `{name}` | {each.stage} | {_parameters(known[name])} | {_cell(each.claim)} |"
        for name, each in features().items()
    ]
    head = ["", "| feature | acts on | parameters, for example | what it is |", "| --- | --- | --- | --- |"]
    cog.out("\n".join([*head, *rows]) + "\n\n")


def _parameters(schema: dict[str, Any]) -> str:
    example = schema.get("examples", schema.get("enum"))[-1]
    text = json.dumps(example, ensure_ascii=False).replace('"', "")
    return f"`{text}`" + (f"; {', '.join(schema['properties'])}" if "properties" in schema else "")


def boundary_map() -> None:
    """Show the map of where the conclusion stops."""
    cog.out("\n" + output("map", "--format", "markdown") + "\n")


def self_test() -> None:
    """Say how many faults there are, and how many correct variations: `test_shipped_cases` runs all of them."""
    faults, right = len(selftest.planted()), len(selftest.variations())
    said = f"PASS  {faults} of {faults} faults killed, {right} of {right} correct variations pass"
    _text(f"$ verify-attention self-test --quiet\n{said}\n")


def kill_matrix(text: str) -> None:
    """Show what becomes of some faults, down to the legend."""
    shown = output("self-test", "-k", text).partition("\n no  ")[0]
    _text(f"$ verify-attention self-test -k {text!r}\n{shown}")


def smallest() -> None:
    """Show the small case that is left of a shipped one; what a search draws depends on Hypothesis's version."""
    kernel = ["--implementation", "tests/example/causal.py:attention", "--no-output"]
    command = ["run", "cases/boundaries/causal.yaml", *kernel, "--select", "key-bias-shifts*", "--shrink"]
    made = output(*command, folder=str(ROOT))
    _text(f"$ verify-attention {' '.join(command)}\n…\n{made[made.index('# key-bias') :]}")


def bars(claim: str) -> None:
    """Show the bars of a mistake on its smallest case, with the case above them."""
    lines = output("explain", claim).splitlines()
    last = max(index for index, line in enumerate(lines) if "█" in line)
    first = next(index for index, line in enumerate(lines) if line.startswith("  - "))
    _text("\n".join(lines[first : last + 1]))


def exact() -> None:
    """Show what exact arithmetic says of two cases that break: its sums are of one product each, so every machine's."""
    command = ["run", "tests/example/mathematics-or-rounding.yaml", "--exact", "--no-output", "--quiet"]
    command += ["--select", "key-bias-leaves-weights"]
    _text(f"$ verify-attention {' '.join(command)}\n{output(*command, folder=str(ROOT))}")


def settings() -> None:
    """List what a file and the environment may set: the schema's keys, and the commands whose options they are."""
    rows = []
    for key, one in resources.schema("config")["properties"].items():
        commands = [name for name, command in group.commands.items() if _settable(command, variable(key))]
        told = f"{one['title']}. {one['description']}"
        rows.append(f"| `{key}` | {', '.join(commands)} | {_cell(told)} |")
    cog.out("\n".join(["", "| key | commands | what |", "| --- | --- | --- |", *rows]) + "\n\n")


def _settable(command: Any, name: str) -> bool:
    return any(param.envvar == name for param in command.params)


def exit_codes() -> None:
    """List the exit codes."""
    rows = [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    cog.out("\n".join(["", "| exit code | meaning |", "| --- | --- |", *rows]) + "\n\n")


def wrong_kernel() -> None:
    """Show what a run says of the example's mistake: the first finding, and the last line."""
    kernel = ["--implementation", "tests/example/kernel.py:attention", "--no-output"]
    command = ["run", "cases/", *kernel, "--select", "grouped-heads-equal-repeated-heads"]
    lines = output(*command, folder=str(ROOT)).rstrip().split("\n")
    _text("\n".join([f"$ verify-attention {' '.join(command)}", *lines[:3], "…", lines[-1]]))


def file(name: str, language: str = "yaml") -> None:
    """Show a shipped file."""
    _text((ROOT / name).read_text(encoding="utf-8"), language)


def _text(text: str, language: str = "text") -> None:
    cog.out(f"\n```{language}\n{text.rstrip()}\n```\n\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
