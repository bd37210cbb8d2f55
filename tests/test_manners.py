"""Manners of the command line: help that fits a screen, names that are nearly right, files to begin with."""

import json
import os
import re
import shlex
import subprocess
import sys
from math import exp
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.cli import group
from verify_attention.plugins import features, implementations, invariants

PROGRAM = str(Path(sys.executable).parent / "verify-attention")
CASE = "d_k: 2\nq: [1, 0]\nkeys: [[1, 0], [0, 1]]\nbQ: [0, 1]\nbK: [3, -2]\n"
BREAKS = CASE + "published: {decimals: 3, scores: {none: [0.707, 1]}}\n"


def call(*arguments, folder, **environment):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        timeout=120,
    )


# --- help


def lacking_help(commands):
    return [
        (name, param.name)
        for name, command in commands
        for param in command.params
        if isinstance(param, click.Option) and not (param.help or "").endswith((".", "?"))
    ]


def test_every_option_has_help():
    assert lacking_help([("", group), *group.commands.items()]) == []


def test_an_option_without_help_is_noticed():
    command = click.Command("bad", params=[click.Option(["--odd"])])
    assert lacking_help([("bad", command)]) == [("bad", "odd")]


def test_the_help_of_each_command_fits_a_screen(tmp_path):
    for name in group.commands:
        done = call(name, "--help", folder=tmp_path, COLUMNS="100")
        lines = done.stdout.splitlines()
        assert len(lines) <= 50, name
        assert max(map(len, lines)) <= 100, name


# --- -k


def ids(text, *, files=("masks/one", "masks/other", "plain")):
    from verify_attention.cli.choices import chosen_cases

    cases = [case.but(id=name, tags=("Alpha",) if name == "plain" else ()) for name in files for case in SAMPLE]
    return [case.id for case in chosen_cases(cases, text)]


SAMPLE = load_cases([resources.folder("cases") / "article" / "two-dimensions.yaml"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mask", ["masks/one", "masks/other"]),
        ("MASKS/o", ["masks/one", "masks/other"]),
        ("alph", ["plain"]),
        ("masks/*", ["masks/one", "masks/other"]),
        ("*O?E", ["masks/one"]),
        ("*asks*", ["masks/one", "masks/other"]),
        ("[mp]*", ["masks/one", "masks/other", "plain"]),
        ("alph?", ["plain"]),
        ("a*a", ["plain"]),
        ("", ["masks/one", "masks/other", "plain"]),
    ],
)
def test_k_takes_a_part_or_a_glob(text, expected):
    assert ids(text) == expected


@pytest.mark.parametrize(
    ("text", "near"), [("maks/one", "masks/one"), ("plaim", "plain"), ("othre", "other"), ("aplha", "Alpha")]
)
def test_k_suggests_what_is_near(text, near):
    from verify_attention.errors import UsageError

    with pytest.raises(UsageError, match=rf"none of the 3 cases has '{text}' .* \(did you mean '{near}'\?\)"):
        ids(text)


def test_a_glob_that_is_not_all_of_an_id_matches_nothing():
    from verify_attention.errors import UsageError

    with pytest.raises(UsageError, match="none of the 3 cases"):
        ids("asks*")


def test_k_is_the_same_for_run_and_tables(tmp_path):
    done = call("run", "-k", "*/two-*", "--no-output", folder=tmp_path)
    assert re.search(r"^PASS  1 case, ", done.stdout, re.MULTILINE)
    done = call("tables", "-k", "*/two-*", "--format", "csv", folder=tmp_path)
    assert {line.split(",")[0] for line in done.stdout.splitlines()[1:]} == {"article/two-dimensions"}
    done = call("run", "-k", "two-dimenssions", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "did you mean 'two-dimensions'?" in done.stderr


# --- stopping, and how much is said


@pytest.fixture
def broken(tmp_path):
    """Three cases, of which the last two break."""
    (tmp_path / "cases").mkdir()
    for name, text in (("a", CASE), ("b", BREAKS), ("c", BREAKS)):
        (tmp_path / "cases" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "judged"),
    [(["-x"], 2), (["--fail-fast"], 2), (["--maxfail", "1"], 2), (["--maxfail", "2"], 3), ([], 3)],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_stops_where_it_is_told(options, judged, jobs, broken):
    done = call("run", "cases", *options, "-n", jobs, folder=broken)
    assert done.returncode == 1
    assert json.loads((broken / "results.json").read_text())["summary"]["cases"] == judged
    assert (f"stopped after {judged} of 3 cases" in done.stderr) == (judged < 3)


def test_quiet_says_what_broke_and_verbose_everything(broken):
    quiet = call("run", "cases", "-q", folder=broken)
    assert quiet.stdout.count("published-numbers-are-reproduced on") == 2
    assert quiet.stdout.splitlines()[-1].startswith("FAIL  3 cases")
    assert "weights-sum-to-one" not in quiet.stdout
    assert quiet.stderr == ""
    verbose = call("run", "cases", "-v", folder=broken)
    assert len(verbose.stdout) > len(call("run", "cases", folder=broken).stdout) > len(quiet.stdout)
    assert call("run", "cases", "-q", "-v", folder=broken).returncode == 2


# --- list and explain


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("invariants", "invariants"),
        ("invariant", "invariants"),
        ("Inv", "invariants"),
        ("checks", "invariants"),
        ("claim", "invariants"),
        ("feature", "features"),
        ("impl", "implementations"),
        ("adapters", "implementations"),
        ("cases", "cases"),
    ],
)
def test_list_knows_what_is_meant(word, kind, tmp_path):
    done = call("list", word, folder=tmp_path)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    known = {
        "invariants": list(invariants()),
        "features": list(features()),
        "implementations": list(implementations()),
        "cases": [case.id for case in load_cases(shipped=".")],
    }
    assert (done.returncode, names) == (0, known[kind])


@pytest.mark.parametrize("word", ["i", "", "c", "numbers"])
def test_list_refuses_what_may_mean_two_things_or_nothing(word, tmp_path):
    assert call("list", word, folder=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("key-bias-l", "names with it: key-bias-leaves-output and key-bias-leaves-weights"),
        ("Softmax_plus", "did you mean 'softmax_plus_one'?"),
        ("torch", "names with it: torch-mha and torch-sdpa"),
        ("key_bias_leaves_weights", "did you mean 'key-bias-leaves-weights'?"),
        ("weights-sum-too-one", "did you mean 'weights-sum-to-one'?"),
        ("torch-sdap", "did you mean 'torch-sdpa'?"),
        ("", "`verify-attention list` shows all names"),
    ],
)
def test_explain_says_which_names_have_a_text_in_them(name, said, tmp_path):
    done = call("explain", name, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.rstrip().endswith(said)


def test_select_says_which_names_have_a_text_in_them(tmp_path):
    done = call("run", "--select", "key-bias-l", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("'key-bias-l'; names with it: key-bias-leaves-output and key-bias-leaves-weights\n")


# --- init


def test_init_in_an_empty_folder_then_run(tmp_path):
    done = call("init", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    *wrote, then = done.stdout.splitlines()
    assert wrote == ["wrote cases/example.yaml", "wrote cases/case.schema.json"]
    command = then.removeprefix("next: verify-attention ")
    done = call(*shlex.split(command), "-q", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PASS  1 case")


def test_what_the_example_invites_to(tmp_path):
    call("init", folder=tmp_path)
    example = tmp_path / "cases" / "example.yaml"
    text = example.read_text(encoding="utf-8")
    key_bias, query_bias = text.replace("bK: [3,", "bK: [30,"), text.replace("bQ: [0, 2,", "bQ: [0, 1,")
    assert len({text, key_bias, query_bias}) == 3
    example.write_text(key_bias, encoding="utf-8")
    assert call("run", "cases", "-q", folder=tmp_path).returncode == 0
    example.write_text(query_bias, encoding="utf-8")
    done = call("run", "cases", "-q", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "FAIL  published-numbers-are-reproduced on example")


def test_the_example_s_numbers_are_right():
    """By hand: without bQ the scores are 2, 0, 0, divided by no less than their width's root; with it 2, 2, 0."""
    case = yaml.safe_load(resources.template("example.yaml"))
    e = exp(2 * 1 / 2)
    none, q = [e / (e + 2), 1 / (e + 2), 1 / (e + 2)], [e / (2 * e + 1), e / (2 * e + 1), 1 / (2 * e + 1)]
    printed = case["published"]["weights"]
    assert printed["none"] == printed["k"] == [round(number, 4) for number in none]
    assert printed["q"] == printed["qk"] == [round(number, 4) for number in q]
    assert sum(a * b for a, b in zip(case["q"], case["bK"], strict=True)) / 2 == 3  # the comment on bK
    assert sum((a + c) * b for a, b, c in zip(case["q"], case["bK"], case["bQ"], strict=True)) / 2 == 1


def test_the_editor_finds_the_schema_beside_the_example(tmp_path):
    call("init", "mine", folder=tmp_path)
    first = (tmp_path / "mine" / "cases" / "example.yaml").read_text(encoding="utf-8").partition("\n")[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((tmp_path / "mine" / "cases" / name).read_text(encoding="utf-8"))
    assert schema == resources.schema("case")


def test_init_never_overwrites_unless_told_to(tmp_path):
    call("init", folder=tmp_path)
    example, schema = tmp_path / "cases" / "example.yaml", tmp_path / "cases" / "case.schema.json"
    example.write_text("mine", encoding="utf-8")
    done = call("init", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cases/example.yaml: is there already (--force overwrites it)\n"
    assert example.read_text() == "mine"
    schema.write_text("mine", encoding="utf-8")
    example.unlink()
    done = call("init", folder=tmp_path)
    assert (done.returncode, example.exists()) == (2, False)  # all or none
    assert call("init", "--force", folder=tmp_path).returncode == 0
    assert call("run", "cases", "-q", folder=tmp_path).returncode == 0
    assert json.loads(schema.read_text(encoding="utf-8")) == resources.schema("case")


def test_a_dangling_link_is_not_followed(tmp_path):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "example.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert call("init", folder=tmp_path).returncode == 2
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    done = call("init", "file", folder=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    (tmp_path / "cases").write_text("")
    done = call("init", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)


def test_ci_adds_a_workflow_and_no_example_where_there_are_cases(tmp_path):
    done = call("init", "--ci", "github", folder=tmp_path)
    assert "wrote .github/workflows/verify-attention.yml" in done.stdout.splitlines()
    assert "wrote cases/example.yaml" in done.stdout.splitlines()
    workflow = tmp_path / ".github" / "workflows" / "verify-attention.yml"
    assert workflow.read_bytes() == resources.template("github-workflow.yml")
    done = call("init", "--ci", "github", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (tmp_path / "other" / "cases").mkdir(parents=True)
    (tmp_path / "other" / "cases" / "mine.yml").write_text(CASE, encoding="utf-8")
    done = call("init", "other", "--ci", "github", folder=tmp_path)
    place = "other/.github/workflows/verify-attention.yml"
    package = f"next: let PACKAGE in {place} be a wheel of verify-attention, or its source"
    assert done.stdout.splitlines()[:-1] == [f"wrote {place}", package]


def test_the_table_for_a_pyproject_is_only_printed(tmp_path):
    done = call("init", "--pyproject", folder=tmp_path)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])
    (tmp_path / "pyproject.toml").write_text(done.stdout, encoding="utf-8")
    call("init", folder=tmp_path)
    done = call("run", folder=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "note: settings from pyproject.toml (paths)")


def test_templates_are_part_of_the_package():
    assert (Path(resources.__file__).parent / "templates" / "example.yaml").is_file()
    assert CliRunner().invoke(group, ["completion", "fish"]).exit_code == 0
