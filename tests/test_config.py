"""Settings in a pyproject.toml and in the environment: which file, which option, what comes first, what is refused."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from verify_attention import resources
from verify_attention.cli import group
from verify_attention.cli.settings import SETTINGS, Configured, variable

PROGRAM = str(Path(sys.executable).parent / "verify-attention")
CASE = "d_k: 2\nq: [1, 0]\nkeys: [[1, 0], [0, 1]]\nbQ: [0, 1]\nbK: [3, -2]\n"
# The second key is at right angles to the query: its score is 0, and not what is printed here.
OFF = CASE + "published: {decimals: 12, scores: {none: [0.707106781187, 0.000000001]}}\n"


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


def settings(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.verify-attention]\n{text}\n", encoding="utf-8")


def made(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path):
    """A folder with one case, and a folder in it from which commands are called."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "mine.yaml").write_text(CASE, encoding="utf-8")
    (tmp_path / "below").mkdir()
    return tmp_path


# --- which file


def test_the_nearest_file_with_the_table_is_taken_and_said(project):
    settings(project, 'paths = ["cases"]\nrtol = 1e-6')
    (project / "below" / "pyproject.toml").write_text("[tool.other]\nrtol = 1\n")  # not ours
    done = call("run", folder=project / "below")
    assert (done.returncode, done.stderr) == (
        0,
        "note: settings from ../pyproject.toml (paths, rtol)\nresults: results.json\n",
    )
    assert made(project / "below")["tolerance"] == {"rtol": 1e-6, "atol": 1e-12}
    assert [entry["id"] for entry in made(project / "below")["cases"]] == ["mine"]
    assert call("run", "-q", folder=project / "below").stderr == ""


def test_files_are_never_merged(project):
    settings(project, 'paths = ["cases"]\nrtol = 1e-6')
    settings(project / "below", "atol = 1e-6")
    call("run", folder=project / "below")
    assert made(project / "below")["tolerance"] == {"rtol": 1e-12, "atol": 1e-6}
    assert len(made(project / "below")["cases"]) == 5


def test_a_file_may_be_named_and_all_may_be_ignored(project):
    settings(project, "rtol = 1e-6")
    settings(project / "other", "rtol = 1e-7")
    done = call("run", "cases", "--config", "other/pyproject.toml", folder=project)
    assert done.stderr.startswith("note: settings from other/pyproject.toml (rtol)\n")
    assert made(project)["tolerance"]["rtol"] == 1e-7
    done = call("run", "cases", "--isolated", folder=project)
    assert (done.stderr, made(project)["tolerance"]["rtol"]) == ("results: results.json\n", 1e-12)
    for command in (["--config", "pyproject.toml", "--isolated"], ["--isolated", "--config", "pyproject.toml"]):
        done = call("run", *command, folder=project)
        assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


# --- what comes first


def test_an_option_comes_before_the_environment_before_the_file_before_the_default(project):
    def rtol(*arguments, **environment):
        assert call("run", "cases", "-q", *arguments, folder=project, **environment).returncode == 0
        return made(project)["tolerance"]["rtol"]

    assert rtol() == 1e-12
    settings(project, "rtol = 1e-6")
    assert rtol() == 1e-6
    assert rtol(VERIFY_ATTENTION_RTOL="1e-7") == 1e-7
    assert rtol("--rtol", "1e-8", VERIFY_ATTENTION_RTOL="1e-7") == 1e-8
    assert rtol("--isolated") == 1e-12
    assert rtol("--isolated", VERIFY_ATTENTION_RTOL="1e-7") == 1e-7


def test_a_switch_of_the_file_is_switched_off_by_the_environment(project):
    settings(project, "exact = true")
    call("run", "cases", "-q", folder=project)
    assert "opinion" in (project / "results.json").read_text()
    call("run", "cases", "-q", folder=project, VERIFY_ATTENTION_EXACT="0")
    assert "opinion" not in (project / "results.json").read_text()


@pytest.mark.parametrize(
    ("text", "option", "shown"),
    [
        ("verbose = true", "-q", False),
        ("quiet = true", "-v", True),
    ],
)
def test_what_is_typed_comes_before_its_contrary_in_the_file(text, option, shown, project):
    settings(project, text)
    done = call("run", "cases", option, folder=project)
    assert done.returncode == 0
    assert ("Never really checked" in done.stdout or "not applicable" in done.stdout.split("PASS  1 case")[0]) == shown


def test_maxfail_on_the_command_line_comes_before_fail_fast_in_the_file(project):
    for name in "abc":
        (project / "cases" / f"{name}.yaml").write_text(OFF, encoding="utf-8")
    settings(project, "fail-fast = true")
    assert "stopped after 1 of 4 cases" in call("run", "cases", folder=project).stderr
    assert "stopped after 2 of 4 cases" in call("run", "cases", "--maxfail", "2", folder=project).stderr
    settings(project, "maxfail = 3")
    assert "stopped after 3 of 4 cases" in call("run", "cases", folder=project).stderr
    assert "stopped after 1 of 4 cases" in call("run", "cases", "-x", folder=project).stderr


def test_several_names_in_a_variable(project):
    call(
        "run",
        "cases",
        "-q",
        folder=project,
        VERIFY_ATTENTION_SELECT="key-bias-* weights-sum-to-one,lse-moves-with-the*",
    )
    names = {finding["invariant"] for finding in made(project)["cases"][0]["findings"]}
    assert names == {
        *("key-bias-leaves-output", "key-bias-leaves-weights", "key-bias-shifts-scores-alike"),
        *("weights-sum-to-one", "lse-moves-with-the-key-bias"),
    }


def test_several_paths_in_a_variable(project):
    (project / "other.yaml").write_text(CASE, encoding="utf-8")
    paths = os.pathsep.join(["cases", "other.yaml"])
    assert call("validate", folder=project, VERIFY_ATTENTION_PATHS=paths).stdout.startswith("2 cases in 2 files")


# --- which option


def test_relative_paths_are_relative_to_the_file(project):
    kernel = "def attention(q, k, v, *, scale=None):\n    raise NotImplementedError('mine')\n"
    (project / "kernel.py").write_text(kernel, encoding="utf-8")
    settings(project, 'paths = ["cases/mine.yaml"]\nimplementation = "kernel.py:attention"\noutput = "out.json"')
    done = call("run", folder=project / "below")
    assert done.stderr.endswith("results: ../out.json\n")
    document = json.loads((project / "out.json").read_text(encoding="utf-8"))
    assert document["implementation"]["name"] == "../kernel.py:attention"
    assert document["cases"][0]["file"].endswith("mine.yaml")


def test_other_commands_share_what_they_have(project):
    settings(project, 'paths = ["cases"]\nlang = "ja"\noutput = "out.json"\nno-progress = true\nrtol = 0.5')
    assert call("validate", folder=project).stdout.startswith("1 case in 1 file")
    done = call("tables", "--format", "markdown", folder=project)
    assert "共通K biasのみ追加" in done.stdout  # the article's cases still: `paths` are those of `run`
    assert "two-dimensions" in done.stdout
    assert call("self-test", "-k", "masks: ", folder=project).returncode == 0
    assert not (project / "out.json").exists()  # a kill matrix is no results file


def test_a_setting_of_another_command_is_ignored(project):
    settings(project, 'paths = ["cases"]\nreport = ["markdown=out.md"]')
    assert call("explain", "rope", folder=project).returncode == 0
    assert call("validate", folder=project).returncode == 0


# --- the gate


def test_a_gate_that_a_file_weakens_says_so_on_stdout(project):
    (project / "cases" / "mine.yaml").write_text(OFF, encoding="utf-8")
    names = ["--ignore", "published-*", "--rtol", "1e-3"]
    assert call("run", "cases", folder=project).returncode == 1
    assert call("run", "cases", "-q", *names, folder=project).returncode == 0
    assert call("gate", "results.json", folder=project).returncode == 4
    settings(project, 'ignore = ["published-*"]\nrtol = 1e-3')
    done = call("gate", "results.json", folder=project / "below", VERIFY_ATTENTION_ATOL="1e-11")
    assert done.returncode == 2
    done = call("gate", "../results.json", folder=project / "below", VERIFY_ATTENTION_ATOL="1e-11")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:-1] == [
        "setting: rtol = 0.001 (from ../pyproject.toml)",
        "setting: atol = 1e-11 (from VERIFY_ATTENTION_ATOL)",
        "setting: ignore = published-* (from ../pyproject.toml)",
    ]
    done = call("gate", "results.json", *names, "--isolated", folder=project)
    assert (done.returncode, "setting:" in done.stdout) == (0, False)
    assert call("gate", "results.json", "--isolated", folder=project).returncode == 4


def test_what_the_gate_says_of_a_file_cannot_forge_a_line(project):
    call("run", "cases", "-q", folder=project)
    settings(project, r'implementation = "core\nPASS  sound\u001b[2J"')
    done = call("gate", "results.json", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: pyproject.toml:2: implementation: has a character that no name has\n"
    (project / "pyproject.toml").unlink()
    done = call("gate", "results.json", folder=project, VERIFY_ATTENTION_IMPLEMENTATION="x\nPASS")
    assert done.stdout.splitlines()[0].startswith(r"setting: implementation = x\nPASS (from")


# --- what is refused


def test_every_mistake_is_told_with_its_line_and_nothing_runs(project):
    settings(project, 'rtl = 1\njobs = "many"\nselect = "weights"\nrtol = nan\nmaxfail = 0\ndtype = 4\nexact = "yes"')
    done = call("run", "cases", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [line.partition(": is")[0] for line in sorted(lines)] == [
        "error: pyproject.toml:2: rtl",
        "error: pyproject.toml:3: jobs",
        "error: pyproject.toml:4: select",
        "error: pyproject.toml:5: rtol",
        "error: pyproject.toml:6: maxfail",
        "error: pyproject.toml:7: dtype",
        "error: pyproject.toml:8: exact",
    ]
    assert "is no known key (did you mean 'rtol'?)" in lines[0]
    assert "is the text 'many', allowed is auto or a number of processes" in done.stderr
    assert not (project / "results.json").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"rtol = = 1", "error: pyproject.toml: not TOML: Invalid value (at line 1, column 8)\n"),
        (b"x = '\xff'", "error: pyproject.toml: not UTF-8 (byte 0xff)\n"),
        (
            b"[tool]\nverify-attention = 3",
            "error: pyproject.toml: tool.verify-attention: is the number 3, allowed is a ",
        ),
        (b"a=" + b"[" * 5000, "error: pyproject.toml: not TOML: "),
        (b"[tool.verify-attention]\nlang = 'de'\n", "error: pyproject.toml:2: lang: is the text 'de', allowed are en "),
    ],
)
def test_a_broken_file_is_one_line(text, said, project):
    (project / "pyproject.toml").write_bytes(text)
    done = call("run", "cases", folder=project)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(said)
    assert call("run", "cases", "--isolated", folder=project).returncode == 0


def test_a_key_of_another_table_is_not_taken_for_ours(project):
    text = "[tool.other]\nrtol = 1\n[tool.verify-attention]  # ours\natol = 0\n'rtol' = 2\n[tool.third]\nrtol = 1\n"
    (project / "pyproject.toml").write_text(text)
    done = call("run", "cases", folder=project)
    assert done.stderr == "error: pyproject.toml:5: rtol: is the number 2, allowed are numbers from 0 up to 1\n"


def test_a_key_whose_line_is_not_seen_is_told_without_one(project):
    (project / "pyproject.toml").write_text("tool.verify-attention = {rtol = 2}\n")
    done = call("run", "cases", folder=project)
    assert done.stderr == "error: pyproject.toml: rtol: is the number 2, allowed are numbers from 0 up to 1\n"


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    command = f"cd gone && rmdir ../gone && exec '{PROGRAM}' validate"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: the current folder is there no more\n")


@pytest.mark.parametrize("text", ["", "tool = 3", "[tool.ruff]\n", "[[tool.other]]\n"])
def test_a_file_without_our_table_is_ignored_unless_it_is_named(text, project):
    (project / "pyproject.toml").write_text(text)
    done = call("run", "cases", folder=project)
    assert (done.returncode, done.stderr) == (0, "results: results.json\n")
    done = call("run", "--config", "pyproject.toml", folder=project)
    assert (done.returncode, done.stderr) == (2, "error: pyproject.toml: has no table [tool.verify-attention]\n")


def test_a_folder_of_that_name_is_no_file(project):
    (project / "pyproject.toml").mkdir()
    assert call("run", "cases", folder=project).returncode == 0


def test_a_wrong_value_of_the_environment_is_told_with_the_variable(project):
    done = call("run", "cases", folder=project, VERIFY_ATTENTION_RTOL="wide")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: Invalid value for '--rtol': 'wide' is not a valid float")
    assert done.stderr.endswith("(from VERIFY_ATTENTION_RTOL)\n")


def test_an_unknown_name_in_the_file_is_told(project):
    settings(project, 'select = ["weights-sum-to-two"]')
    done = call("run", "cases", folder=project)
    assert done.returncode == 2
    assert "did you mean 'weights-sum-to-one'" in done.stderr


# --- the schema


def test_the_schema_is_strict_and_tells_of_every_key():
    schema = resources.schema("config")
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert all(one["title"] and one["description"].endswith(".") for one in schema["properties"].values())
    printed = subprocess.run([PROGRAM, "schema", "config"], capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == schema


def test_the_schema_has_the_settings_and_no_other():
    assert tuple(resources.schema("config")["properties"]) == SETTINGS


def test_the_choices_of_the_schema_are_those_of_the_options():
    allowed = {key: one["enum"] for key, one in resources.schema("config")["properties"].items() if "enum" in one}
    seen = set()
    for command in group.commands.values():
        for param in command.params:
            key = param.opts[0].removeprefix("--")
            if getattr(param.type, "choices", None) and param.envvar == variable(key):
                assert list(param.type.choices) == allowed[key], (command.name, key)
                seen.add(key)
    assert seen == set(allowed)


def test_an_option_that_a_file_may_set_has_its_variable_and_no_other_has():
    commands = [command for command in group.commands.values() if isinstance(command, Configured)]
    assert {command.name for command in commands} == {
        *("run", "gate", "report", "tables", "map", "plot", "validate", "explain", "self-test", "search")
    }
    elsewhere = {"self-test", "report", "plot"}  # what they write is no results
    for command in commands:
        for param in command.params:
            key = next((name[2:] for name in param.opts if name.startswith("--")), param.name)
            own = (command.name, key) in {("run", "paths"), ("validate", "paths")}
            expected = own or (
                key in SETTINGS and key != "paths" and not (command.name in elsewhere and key == "output")
            )
            assert param.envvar == (variable(key) if expected else None), (command.name, key)


def test_what_init_prints_is_a_valid_table_with_every_line_in_use():
    printed = CliRunner().invoke(group, ["init", "--pyproject"]).stdout
    _, header, lines = printed.partition("[tool.verify-attention]\n")
    for text in (printed, header + lines.replace("\n# ", "\n")):
        table = tomllib.loads(text)["tool"]["verify-attention"]
        assert list(Draft202012Validator(resources.schema("config")).iter_errors(table)) == []
    assert len(table) == 5
