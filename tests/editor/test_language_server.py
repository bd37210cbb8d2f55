"""What an author sees in an editor: yaml-language-server is asked for completions, hovers and flaws.

It runs where node and the package are: `npm install --prefix FOLDER yaml-language-server`, and
`VERIFY_ATTENTION_EDITOR=FOLDER`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from language_server import LanguageServer

from verify_attention.plugins import features, invariants

FOLDER = os.environ.get("VERIFY_ATTENTION_EDITOR")
pytestmark = pytest.mark.skipif(not (FOLDER and shutil.which("node")), reason="needs node and VERIFY_ATTENTION_EDITOR")
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "cases"
SCRIPT = Path(FOLDER or "") / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
PATH = CASES / "mine" / "new.yaml"  # it need not be there
FIRST = "# yaml-language-server: $schema=../../schemas/case.schema.json\n"
CASE = FIRST + "d_k: 2\nq: [1, 0]\nkeys: [[1, 0], [0, 1]]\nbQ: [0, 1]\nbK: [3, -2]\n"
FULL = CASE + "features:\n  causal: lower-right\n  rope: {layout: half}\nexpect:\n  key-bias-leaves-weights: breaks\n"


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    """Return a server that knows of a schema only what a file says."""
    with LanguageServer(SCRIPT, ROOT, {}) as one:
        yield one


@pytest.fixture(scope="module")
def workspace() -> Iterator[LanguageServer]:
    """Return a server with this repository's settings."""
    settings = json.loads((ROOT / ".vscode" / "settings.json").read_text("utf-8"))
    with LanguageServer(SCRIPT, ROOT, settings["yaml.schemas"]) as one:
        yield one


def test_an_empty_file_is_offered_a_whole_case_and_each_field(server: LanguageServer) -> None:
    offered = server.completions(PATH, FIRST + "|")
    assert {"A new case: queries, keys and biases", "A new case: a whole layer"} < set(offered)
    assert {"d_k", "q", "keys", "bQ", "bK", "features", "expect", "published"} < set(offered)
    assert "`[d_k]`" in offered["bK"]["documentation"]["value"]


def test_features_are_offered_by_name_and_by_example(server: LanguageServer) -> None:
    offered = server.completions(PATH, CASE + "features:\n  |")
    assert set(features()) < set(offered)
    assert offered["rope: {}"]["textEdit"]["newText"] == "rope: {}\n"
    assert features()["rope"].claim in offered["rope"]["documentation"]["value"]


@pytest.mark.parametrize("text", ["features: {rope: {b|}}\n", "features:\n  rope:\n    |"])
def test_a_feature_s_parameters_are_offered(server: LanguageServer, text: str) -> None:
    assert {"base", "layout", "rotary_dims", "bias"} < set(server.completions(PATH, CASE + text))


def test_what_a_parameter_may_be_is_explained_value_by_value(server: LanguageServer) -> None:
    offered = server.completions(PATH, CASE + "features:\n  rope:\n    layout: |")
    assert {label: one["documentation"]["value"] for label, one in offered.items()} == {
        "half": "channel t with t + `rotary_dims/2`",
        "interleaved": "2t with 2t + 1",
    }


def test_every_invariant_is_offered_with_its_claim(server: LanguageServer) -> None:
    offered = server.completions(PATH, CASE + "expect:\n  |")
    assert set(offered) == set(invariants())
    for name, invariant in invariants().items():
        assert invariant.formula in offered[name]["documentation"]["value"]
    assert set(server.completions(PATH, CASE + "expect:\n  weights-sum-to-one: |")) == {
        "holds", "breaks", "within-rounding",
    }  # fmt: skip


def test_a_matrix_is_offered_as_a_matrix(server: LanguageServer) -> None:
    offered = server.completions(PATH, FIRST + "d_k: 2\nkeys: |")
    first = min(offered.values(), key=lambda one: one.get("sortText", one["label"]))
    assert yaml.safe_load(first["textEdit"]["newText"]) in (
        [[1, 0], [0, 1], [-1, 0]],
        [[[1, 0], [0, 1], [-1, 0]], [[2, 1], [0, 0], [1, 1]]],
    )


@pytest.mark.parametrize(
    ("word", "title", "said"),
    [
        ("bK", "#### K bias", "`scores = scale·(q + bQ)·(keys + bK)ᵀ`"),
        ("causal", "#### Causality", "* `lower-right`: the last query stands at the last key"),
        ("rope", "#### Rotation by position", "`verify-attention explain rope`"),
        ("layout", "#### Which channels turn together", "Absent: `half`."),
        ("key-bias-leaves", "#### Key bias leaves weights", "A K bias shared by every key changes no weight."),
    ],
)
def test_hovering_explains(server: LanguageServer, word: str, title: str, said: str) -> None:
    shown = server.hover(PATH, FULL, word)
    assert shown.startswith(title)
    assert said in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FULL, []),
        (CASE.replace("[3, -2]", "three"), ['5:4 Incorrect type. Expected "array".']),
        (CASE.replace("bK", "bk"), ["5:0 Property bk is not allowed.", '1:0 Missing property "bK".']),
        (CASE + "features: {causel: true}\n", ["6:11 Property causel is not allowed."]),
        (CASE + "expect: {key-bias: holds}\n", ["6:9 Property key-bias is not allowed."]),
        (CASE + "features: {rope: {layout: hlaf}}\n",
         ['6:26 Value is not accepted. Valid values: "half", "interleaved".']),
        (CASE.replace("schemas/", "schema/"), ["1:0 Unable to load schema"]),
    ],
)  # fmt: skip
def test_flaws_are_underlined_where_they_are(server: LanguageServer, text: str, said: list[str]) -> None:
    found = server.flaws(PATH, text)
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True))


def test_a_shipped_case_has_no_flaw(server: LanguageServer) -> None:
    for path in sorted((CASES / "article").glob("*.yaml")) + sorted((CASES / "layers").glob("*.yaml")):
        assert server.flaws(path, path.read_text("utf-8")) == [], path


def test_elsewhere_the_schema_that_the_program_prints_does(server: LanguageServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "verify_attention", "schema", "case"]
    done = subprocess.run(command, capture_output=True, check=True)
    (tmp_path / "case.schema.json").write_bytes(done.stdout)
    first, mine = "# yaml-language-server: $schema=case.schema.json\n", tmp_path / "mine.yaml"
    assert set(invariants()) == set(server.completions(mine, CASE.replace(FIRST, first) + "expect:\n  |"))
    assert server.flaws(mine, FULL.replace(FIRST, first)) == []


def test_each_document_needs_a_line_of_its_own_or_the_setting(
    server: LanguageServer, workspace: LanguageServer
) -> None:
    second = CASE.replace("bK", "bk")
    wrong = ["Property bk is not allowed.", 'Missing property "bK".']

    def said(asked: LanguageServer, text: str) -> list[str]:
        return [flaw.partition(" ")[2] for flaw in asked.flaws(PATH, f"{CASE}---\n{text}")]

    assert said(server, second) == wrong
    assert said(server, second.removeprefix(FIRST)) == []
    assert said(workspace, second.removeprefix(FIRST)) == wrong


def test_the_setting_is_for_the_smallest_cases_too(workspace: LanguageServer) -> None:
    path = ROOT / "verify_attention" / "smallest" / "weights-sum-to-one.yaml"
    text = path.read_text("utf-8")
    assert workspace.flaws(path, text) == []
    assert workspace.flaws(path, text.replace("bK:", "bk:", 1)) != []
