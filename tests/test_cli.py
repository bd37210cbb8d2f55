"""The command line, through the real executable where streams, exit codes or signals matter."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify_attention import __version__, resources

PROGRAM = str(Path(sys.executable).parent / "verify-attention")
CASES = resources.folder("cases")
ARTICLE = CASES / "article"
EXAMPLE = (ARTICLE / "two-dimensions.yaml").read_text(encoding="utf-8")


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


@pytest.fixture
def mine(tmp_path):
    """A folder with a copy of the worked example."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "mine.yaml").write_text(EXAMPLE, encoding="utf-8")
    return tmp_path


def change(folder, old, new):
    path = folder / "cases" / "mine.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_run_without_a_path_judges_the_article_s_cases(tmp_path):
    done = call("run", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "results: results.json\n")
    assert "article/two-dimensions: 24 printed numbers reproduced" in done.stdout
    assert "largest difference between base and K-bias weights: 0.0" in re.sub(r"\s+", " ", done.stdout)
    made = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert made["summary"]["fail"] == made["summary"]["inconclusive"] == made["summary"]["crashed"] == 0
    assert call("gate", "results.json", folder=tmp_path).returncode == 0


@pytest.mark.thorough
def test_all_shipped_cases_hold_twice_with_the_same_bytes(tmp_path):
    texts = []
    for name in ("one.json", "two.json"):
        assert call("run", CASES, "-q", "-o", name, folder=tmp_path).returncode == 0
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    done = call("gate", "one.json", "--cases", CASES, "--baseline", "two.json", folder=tmp_path)
    assert (done.returncode, done.stdout.startswith("PASS  sound, and everything held")) == (0, True)


@pytest.mark.parametrize("printed", ["0.575975", "-0.140029"])
def test_a_published_number_changed_in_its_last_digit_is_named(mine, printed):
    old = printed.removeprefix("-")
    change(mine, old, f"{float(old) + 1e-6:.6f}")
    done = call("run", "cases", folder=mine)
    assert done.returncode == 1
    assert "FAIL  published-numbers-are-reproduced on mine" in done.stdout
    assert "weights[none] at head 0, row 0, key" in done.stdout
    again = re.search(r"again: verify-attention (.*)", done.stdout)[1].split()
    assert again == ["run", "cases/mine.yaml", "--select", "published-numbers-are-reproduced", "--no-output"]
    before = (mine / "results.json").read_bytes()
    assert call(*again, folder=mine).returncode == 1
    assert (mine / "results.json").read_bytes() == before
    tables = call("tables", "cases", folder=mine)
    assert tables.returncode == 1
    assert "NOT all reproduced" in tables.stdout


# --- exit codes and streams


def test_the_command_that_repeats_a_finding_works_from_where_the_user_is(mine):
    change(mine, "0.575975", "0.575976")
    (mine / "else").mkdir()
    named = (mine / "cases" / "mine.yaml").read_text(encoding="utf-8").replace("d_k:", "name: one\nd_k:", 1)
    (mine / "cases" / "mine.yaml").write_text(named, encoding="utf-8")
    done = call("run", mine / "cases", folder=mine / "else")
    again = re.search(r"again: verify-attention (.*)", done.stdout)[1].split()
    assert again[1] == f"{mine}/cases/mine.yaml::one"
    assert call(*again, folder=mine / "else").returncode == 1
    assert str(mine) not in (mine / "else" / "results.json").read_text(encoding="utf-8")


def test_a_refused_case_ends_with_3_and_writes_nothing(mine):
    (mine / "results.json").write_text("old")
    change(mine, "bQ: [0, 1]", "bQ: [0, 1, 2]")
    (mine / "cases" / "other.yml").write_text("d_k: two\n")
    done = call("run", "cases", folder=mine)
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: cases/mine.yaml:" in done.stderr
    assert "bQ: has 3 numbers, d_k is 2" in done.stderr
    assert "error: cases/other.yml:1:6: d_k" in done.stderr
    assert (mine / "results.json").read_text() == "old"


USAGE = [
    (["run", "nowhere.yaml"], "nowhere.yaml"),
    (["run", "empty"], "empty"),
    (["run", "cases", "-k", "nothing-like-it"], "nothing-like-it"),
    (["run", "cases", "--select", "key-bias-leaves-wieghts"], "did you mean 'key-bias-leaves-weights'?"),
    (["run", "cases", "--select", "*", "--ignore", "*"], "leave no invariant"),
    (["run", "cases", "-o", "missing/results.json"], "does not exist"),
    (["run", "cases", "-o", "empty"], "is a folder"),
    (["run", "cases", "--shard", "3/2"], "3/2"),
    (["run", "cases", "--shard", "2/2"], "holds no case"),
    (["run", "cases", "--jobs", "0"], "neither a number above 0 nor auto"),
    (["run", "cases", "--rtol", "-1"], "--rtol"),
    (["run", "cases", "--rtol", "nan"], "--rtol"),
    (["run", "--no-such-option"], "No such option"),
    (["run", "cases", "-o", "cases/mine.yaml"], "is a case's"),
    (["run", "cases", "-o", "nowhere/"], "a file name is needed"),
    (["run", "cases", "-o", "x" * 300], "File name too long"),
    (["run", "cases", "--shard", "1/" + "9" * 5000], "is not of the form I/N"),
    (["run", "cases", "-n", "9" * 5000], "neither a number above 0 nor auto"),
    (["run", "cases", "-q", "-v"], "exclude each other"),
    (["gate", "nowhere.json"], "no such file"),
    (["gate"], "Missing argument"),
    (["explain", "key-bias-leaves-wieghts"], "did you mean 'key-bias-leaves-weights'?"),
    (["tables", "nowhere.yaml"], "nowhere.yaml"),
    (["no-such-command"], "No such command"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(row[0])[:60] for row in USAGE])
def test_usage_ends_with_2_in_a_line_and_writes_nothing(mine, arguments, message, capsys, monkeypatch):
    (mine / "empty").mkdir()
    code, out, err = inside(arguments, mine, capsys, monkeypatch)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert not (mine / "results.json").exists()


def inside(arguments, folder, capsys, monkeypatch):
    """Run the command line in this process: much faster, for what needs no process of its own."""
    from verify_attention.cli import main

    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as exited:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return exited.value.code, captured.out, captured.err


def test_results_to_stdout_are_only_results(mine):
    done = call("run", "cases", "-o", "-", folder=mine)
    assert json.loads(done.stdout)["summary"]["cases"] == 1
    assert "equations really checked" in done.stderr
    assert not (mine / "results.json").exists()


def test_a_run_that_shows_nothing_is_no_pass(mine, capsys, monkeypatch):
    code, out, _ = inside(["run", "cases", "--select", "value-bias-passes-through"], mine, capsys, monkeypatch)
    assert code == 1
    assert "nothing was shown" in out


def test_inconclusive_ends_with_1(mine, capsys, monkeypatch):
    change(mine, "bK: [3, -2]", "bK: [3.3e11, -2]")
    code, out, _ = inside(["run", "cases", "--ignore", "published*"], mine, capsys, monkeypatch)
    assert code == 1
    assert "INCONCLUSIVE  key-bias-leaves-weights" in out


def test_a_repeated_finding_is_judged_with_the_same_tolerance(mine, capsys, monkeypatch):
    _, out, _ = inside(["run", "cases", "--rtol", "0", "--atol", "0", "--no-output"], mine, capsys, monkeypatch)
    assert "really checked, rtol 0.0, atol 0.0: " in out
    again = re.search(r"again: verify-attention (.*)", out)[1].split()
    code, _, _ = inside(again, mine, capsys, monkeypatch)
    assert code == 1
    assert not (mine / "results.json").exists()


def test_a_failure_shows_both_sides_and_what_was_expected(mine, capsys, monkeypatch):
    change(mine, "0.575975", "0.6")
    _, out, _ = inside(["run", "cases"], mine, capsys, monkeypatch)
    assert "0.575975345 against 0.6, which differ by 0.024, at weights[none] at head 0, row 0, key 0" in out


def test_cases_are_chosen_by_id_or_tag(tmp_path, capsys, monkeypatch):
    inside(["run", CASES, "-k", "control"], tmp_path, capsys, monkeypatch)
    assert ids(tmp_path) == ["bias/key-shifts-break-the-claims"]
    inside(["run", CASES, "-k", "WIDTH-6"], tmp_path, capsys, monkeypatch)
    assert ids(tmp_path) == ["bias/width-64"]


def test_selection_by_name_glob_and_comma(mine, capsys, monkeypatch):
    select = ["--select", "key-bias-*,weights-sum-to-one", "--ignore", "key-bias-leaves-output"]
    assert inside(["run", "cases", *select], mine, capsys, monkeypatch)[0] == 0
    made = json.loads((mine / "results.json").read_text())
    names = [finding["invariant"] for finding in made["cases"][0]["findings"]]
    assert names == ["key-bias-leaves-weights", "key-bias-shifts-scores-alike", "weights-sum-to-one"]
    assert inside(["gate", "results.json"], mine, capsys, monkeypatch)[0] == 4
    assert inside(["gate", "results.json", *select], mine, capsys, monkeypatch)[0] == 0


def many(folder, count, spoil=()):
    body = EXAMPLE.replace("0.575975", "0.575976")
    documents = [f"---\nname: c{i}\n{body if i in spoil else EXAMPLE}" for i in range(count)]
    (folder / "cases" / "mine.yaml").write_text("\n".join(documents), encoding="utf-8")


def ids(folder):
    return [entry["id"] for entry in json.loads((folder / "results.json").read_text())["cases"]]


def test_shards_share_all_cases_between_them(mine, capsys, monkeypatch):
    many(mine, 5)
    inside(["run", "cases", "--shard", "1/2"], mine, capsys, monkeypatch)
    first = ids(mine)
    inside(["run", "cases", "--shard", "2/2"], mine, capsys, monkeypatch)
    assert (first, ids(mine)) == (["mine::c0", "mine::c2", "mine::c4"], ["mine::c1", "mine::c3"])


@pytest.mark.parametrize(
    ("option", "reached"), [(["-x"], 2), (["--maxfail", "2"], 3), (["--maxfail", "9"], 6), ([], 6)]
)
def test_a_run_can_stop_at_the_first_that_breaks(mine, option, reached, capsys, monkeypatch):
    many(mine, 6, spoil={1, 2, 4})
    code, _, err = inside(["run", "cases", *option], mine, capsys, monkeypatch)
    assert (code, len(ids(mine))) == (1, reached)
    assert ("stopped after" in err) == (reached < 6)


def test_processes_give_the_same_bytes(mine):
    many(mine, 300)
    for jobs in ("1", "2"):
        assert call("run", "cases", "-q", "-n", jobs, "-o", f"{jobs}.json", folder=mine).returncode == 0
    assert (mine / "1.json").read_bytes() == (mine / "2.json").read_bytes()


def test_a_reader_that_goes_away_is_no_error(mine):
    with subprocess.Popen(
        [PROGRAM, "run", "cases", "-v"], cwd=mine, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        run.stdout.close()
        assert run.stderr.read() == b"results: results.json\n"
        assert run.wait(60) == 0


def test_a_kill_in_the_middle_leaves_the_old_file(mine):
    many(mine, 4000)
    (mine / "results.json").write_text("old")
    with subprocess.Popen(
        [PROGRAM, "run", "cases"], cwd=mine, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as run:
        time.sleep(1.2)
        run.kill()
    assert run.returncode == -signal.SIGKILL
    assert (mine / "results.json").read_text() == "old"


def test_a_full_disk_leaves_the_old_file_and_says_so(mine):
    """A limit on the size of files stands for a full disk."""
    (mine / "results.json").write_text("old")
    limited = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from verify_attention.cli import main
main(["run", "cases"])
"""
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, "-c", limited]
    done = subprocess.run(command, cwd=mine, capture_output=True, text=True, check=False, env=unmeasured)
    assert done.returncode == 4
    assert done.stderr == "error: results.json: could not be written, the old file is unchanged: File too large\n"
    assert (mine / "results.json").read_text() == "old"
    assert sorted(path.name for path in mine.iterdir()) == ["cases", "results.json"]


# --- what people see


def test_plain_text_has_no_escapes_and_words_for_every_status(mine):
    change(mine, "0.575975", "0.575976")
    for environment in ({}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        out = call("run", "cases", "--verbose", folder=mine, **environment).stdout
        assert "\x1b" not in out
        assert {"FAIL", "PASS", "SKIP"} <= set(out.split())
    assert "\x1b[" in call("run", "cases", "--color", "always", folder=mine).stdout


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_fits_its_columns(mine, columns):
    out = call("run", "cases", folder=mine, COLUMNS=str(columns)).stdout
    table = out.partition("\n\n")[0].splitlines()
    assert len(table) == 1 + 14  # not: one row, no bV, no key shifts, no inert Q bias, no structure
    assert max(map(len, table)) <= 80
    assert all("…" not in line for line in table)


def in_a_terminal(folder, *arguments):
    """Return what a command writes to a terminal of 80 columns."""
    leader, follower = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "CI", "COLUMNS"}}
    environment |= {"TERM": "xterm"}
    with subprocess.Popen([PROGRAM, *arguments], cwd=folder, stdout=follower, stderr=follower, env=environment) as run:
        os.close(follower)
        seen = b""
        try:
            while chunk := os.read(leader, 65536):
                seen += chunk
        except OSError:
            pass  # the terminal is closed with its last process
    os.close(leader)
    return run.returncode, seen


def test_a_terminal_gets_colour(mine):
    code, seen = in_a_terminal(mine, "run", "cases")
    assert code == 0
    assert b"\x1b[32mPASS" in seen


@pytest.mark.parametrize(
    ("terminal", "wanted", "seconds", "shown"),
    [(True, True, 2, True), (True, True, 0, False), (True, False, 2, False), (False, True, 2, False)],
)
def test_a_bar_is_shown_in_a_terminal_once_work_takes_longer_than_a_second(
    terminal, wanted, seconds, shown, monkeypatch
):
    from verify_attention.cli import progress

    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress.Bar("judging cases", wanted) as bar:
        start = time.monotonic()
        monkeypatch.setattr(progress.time, "monotonic", lambda: start + seconds)
        bar.show(1, 2)
    assert ("judging cases" in screen.getvalue()) is shown


def test_names_that_look_like_markup_are_printed_as_they_are(mine):
    (mine / "cases" / "mine.yaml").rename(mine / "cases" / "[red]x:100:y.yaml")
    change_to = (mine / "cases" / "[red]x:100:y.yaml").read_text().replace("0.575975", "0.575976")
    (mine / "cases" / "[red]x:100:y.yaml").write_text(change_to)
    out = call("run", "cases", folder=mine).stdout
    assert "on [red]x:100:y" in out
    assert "again: verify-attention run 'cases/[red]x:100:y.yaml'" in out


def test_a_terminal_without_the_characters_gets_their_numbers(mine):
    done = call("run", "cases", folder=mine, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "results: results.json\n")


def test_verbose_gives_every_finding_a_row_with_its_reason(mine, capsys, monkeypatch):
    _, out, _ = inside(["run", "cases", "-v"], mine, capsys, monkeypatch)
    assert re.search(r"value-bias-passes-through +SKIP +– +–\n +the case has no bV\n", out)
    assert re.search(r"key-bias-leaves-weights +PASS +0\.0 +1e-12", out)


def test_many_broken_findings_are_folded_unless_verbose(mine, capsys, monkeypatch):
    many(mine, 30, spoil=range(30))
    _, out, _ = inside(["run", "cases"], mine, capsys, monkeypatch)
    assert out.count("FAIL  published") == 20
    assert "… and 10 more; --verbose shows all" in out
    _, out, _ = inside(["run", "cases", "-v"], mine, capsys, monkeypatch)
    assert out.count("FAIL  published") == 30


# --- the other commands


@pytest.mark.parametrize("option", ["-V", "--version", "run -V", "gate --version"])
def test_version(tmp_path, option):
    assert call(*option.split(), folder=tmp_path).stdout == f"verify-attention, version {__version__}\n"


@pytest.mark.parametrize("command", ["run", "gate", "tables", "validate", "explain", "list", "schema"])
def test_h_works_everywhere(command, tmp_path, capsys, monkeypatch):
    code, out, _ = inside([command, "-h"], tmp_path, capsys, monkeypatch)
    assert code == 0
    assert out.startswith(f"Usage: verify-attention {command}")
    assert re.search(r"\n  -[^\n]*\n\n|  --?\S+ *$", out) is None  # no option without help


def test_python_m_is_the_same_program(mine):
    done = subprocess.run(
        [sys.executable, "-m", "verify_attention", "validate", "cases"],
        cwd=mine,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1 case in 1 file: all well-formed\n")


def test_schema_prints_the_shipped_schemas(tmp_path, capsys, monkeypatch):
    for name in ("case", "results"):
        code, out, _ = inside(["schema", name], tmp_path, capsys, monkeypatch)
        assert (code, json.loads(out)) == (0, resources.schema(name))


def test_list_names_everything(tmp_path, capsys, monkeypatch):
    _, out, _ = inside(["list"], tmp_path, capsys, monkeypatch)
    assert {"key-bias-leaves-weights", "key_shifts", "core"} <= set(out.split())
    _, out, _ = inside(["list", "features"], tmp_path, capsys, monkeypatch)
    assert out.split()[:3] == ["key_shifts", "qk_norm", "rope"]


def test_explain_knows_what_list_and_map_name(tmp_path, capsys, monkeypatch):
    code, out, _ = inside(["explain", "core"], tmp_path, capsys, monkeypatch)
    assert (code, "float64 core" in out) == (0, True)
    code, _, err = inside(["explain", "MLA"], tmp_path, capsys, monkeypatch)
    assert (code, "a row of the map: `verify-attention map -v`" in err) == (2, True)
    _, out, _ = inside(["explain", "window"], tmp_path, capsys, monkeypatch)
    assert "for example: features: {window: [null, 1]}" in out


def test_explain_tells_claim_formula_derivation_and_faults(tmp_path, capsys, monkeypatch):
    _, out, _ = inside(["explain", "key-bias-leaves-weights"], tmp_path, capsys, monkeypatch)
    for part in (
        "A K bias shared by every key changes no weight.",
        "formula: weights(q, k, 0, bK) = weights(q, k, 0, 0)",
        "taken away by: key_shifts",
        "- the K bias reaches the first key only",
        "needs: common key shift, shift-invariant softmax",
    ):
        assert part in out
    assert "softmax does not see a common shift" in re.sub(r"\s+", " ", out)
    _, out, _ = inside(["explain", "key_shifts"], tmp_path, capsys, monkeypatch)
    assert "takes away: common key shift" in out
    assert "- key-bias-leaves-weights" in out
    _, out, _ = inside(["explain"], tmp_path, capsys, monkeypatch)
    assert "    A K bias shared by every key changes no weight.\n" in out


# --- gate


def test_the_gate_says_what_was_edited_and_where(mine):
    call("run", "cases", folder=mine)
    text = (mine / "results.json").read_text()
    (mine / "results.json").write_text(text.replace("0.28399540974126", "0.28399540974127", 1))
    done = call("gate", "results.json", folder=mine)
    assert done.returncode == 4
    assert "not sound: mine: was changed after it was written" in done.stdout
    assert "not sound: mine: conditions.none.weights[0][0][1]: says" in done.stdout


def test_the_gate_finds_the_case_files_by_itself_and_notices_a_change(mine, capsys, monkeypatch):
    inside(["run", "cases"], mine, capsys, monkeypatch)
    assert inside(["gate", "results.json"], mine, capsys, monkeypatch)[0] == 0
    change(mine, "bK: [3, -2]", "bK: [3, -1]")
    code, out, _ = inside(["gate", "results.json"], mine, capsys, monkeypatch)
    assert code == 4
    assert "cases/mine.yaml has changed since the run" in out
    (mine / "cases" / "mine.yaml").unlink()
    code, _, err = inside(["gate", "results.json"], mine, capsys, monkeypatch)
    assert code == 0
    assert "note: not here: cases/mine.yaml; inputs were taken from the results" in err


def test_the_gate_passes_on_what_the_run_found(mine, capsys, monkeypatch):
    change(mine, "0.575975", "0.575976")
    assert inside(["run", "cases"], mine, capsys, monkeypatch)[0] == 1
    code, out, _ = inside(["gate", "results.json"], mine, capsys, monkeypatch)
    assert code == 1
    assert "broken: mine: published-numbers-are-reproduced: fail" in out


def test_cases_of_the_same_name_in_two_folders_are_told_apart(mine, capsys, monkeypatch):
    (mine / "cases" / "other").mkdir()
    text = (mine / "cases" / "mine.yaml").read_text(encoding="utf-8")
    (mine / "cases" / "other" / "mine.yaml").write_text(text, encoding="utf-8")
    assert inside(["run", "cases"], mine, capsys, monkeypatch)[0] == 0
    assert ids(mine) == ["mine", "other/mine"]
    code, _, err = inside(["gate", "results.json"], mine, capsys, monkeypatch)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("detail", ["auto", "full", "summary"])
def test_detail_says_what_becomes_of_large_arrays_and_the_gate_reads_all_forms(mine, detail, capsys, monkeypatch):
    rows = [[0.25, 0.5 * (index % 3)] for index in range(80)]
    case = {"d_k": 2, "q": rows, "keys": rows, "values": rows, "bQ": [0, 1], "bK": [3, -2]}
    (mine / "cases" / "large.yaml").write_text(json.dumps(case))
    assert inside(["run", "cases", "--detail", detail], mine, capsys, monkeypatch)[0] == 0
    made = json.loads((mine / "results.json").read_text())["cases"]
    forms = [type(entry["conditions"]["k"][name]) for entry in made for name in ("weights", "lse")]
    expected = {"auto": [dict, list, list, list], "full": [list] * 4, "summary": [dict] * 4}
    assert forms == expected[detail]
    assert inside(["gate", "results.json", "--cases", "cases"], mine, capsys, monkeypatch)[0] == 0


@pytest.mark.parametrize("arguments", [["schema", "case"], ["run", "-q", "--no-output"], ["explain"]])
def test_an_output_that_cannot_be_written_ends_with_4(mine, arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=mine, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr == "error: the output could not be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [["--help"], ["explain"], ["run", "--help"], ["-V"]])
def test_help_for_a_reader_that_goes_away_is_no_error(mine, arguments):
    with subprocess.Popen([PROGRAM, *arguments], cwd=mine, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shown:
        shown.stdout.close()
        assert shown.stderr.read() == b""
        assert shown.wait(60) == 0


@pytest.mark.parametrize(
    ("closing", "code"), [("run --no-output >&-", 0), ("run --no-output 2>&-", 0), ("run nowhere 2>/dev/full", 2)]
)
def test_a_closed_stream_changes_no_verdict(mine, closing, code):
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{PROGRAM}' {closing}"], cwd=mine, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("arguments", [["run", "cases", "-o", "-"], ["schema", "results"]])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_data_is_utf_8_whatever_the_terminal_speaks(mine, arguments, encoding):
    (mine / "cases" / "mine.yaml").rename(mine / "cases" / "é😀.yaml")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([PROGRAM, *arguments], cwd=mine, capture_output=True, check=True, env=environment)
    made = json.loads(done.stdout.decode("utf-8"))
    assert "cases" not in made or made["cases"][0]["id"] == "é😀"


def test_an_overflow_warns_nobody(mine, capsys, monkeypatch):
    change(mine, "q: [1, 0]", "q: [1e200, 1e200]")
    change(mine, "bK: [3, -2]", "bK: [1e200, 1e200]")
    done = call("run", "cases", folder=mine, PYTHONWARNINGS="error")
    assert (done.returncode, done.stderr) == (1, "results: results.json\n")
    done = call("gate", "results.json", folder=mine, PYTHONWARNINGS="error")
    assert (done.returncode, done.stderr) == (1, "")


def test_a_text_of_a_file_cannot_speak_for_the_program(mine, capsys, monkeypatch):
    (mine / "cases" / "mine.yaml").write_text('"a\\nerror: cases/x.yaml:1:1: d_k: fake\\e[31m": 1\n', encoding="utf-8")
    _, _, err = inside(["run", "cases"], mine, capsys, monkeypatch)
    assert "\nerror: cases/x.yaml" not in err
    assert "\x1b" not in err
    assert "a\\nerror" in err


def test_numbers_of_large_tables_are_judged_though_they_are_not_printed(mine, capsys, monkeypatch):
    rows = [[float(index % 5)] for index in range(70)]
    printed = [[0.5] * 70] * 70
    case = {
        "d_k": 1,
        "q": rows,
        "keys": rows,
        "bQ": [0],
        "bK": [1],
        "published": {"decimals": 3, "weights": {"none": printed}},
    }
    (mine / "cases" / "mine.yaml").write_text(json.dumps(case))
    code, out, _ = inside(["tables", "cases"], mine, capsys, monkeypatch)
    assert code == 1
    assert "4,900 printed numbers NOT all reproduced" in out


def test_many_problems_of_one_file_are_cut(mine, capsys, monkeypatch):
    (mine / "cases" / "mine.yaml").write_text("---\n1\n" * 5000)
    code, _, err = inside(["run", "cases"], mine, capsys, monkeypatch)
    assert code == 3
    assert "has more than 1,000 problems; the rest is not listed" in err
    assert err.count("\n") == 1001


def test_a_defect_of_the_program_is_no_broken_invariant(mine, capsys, monkeypatch):
    from verify_attention.reports import lines

    monkeypatch.setattr(lines, "wrapped", lambda *_: 1 / 0)
    code, _, err = inside(["explain", "key_shifts"], mine, capsys, monkeypatch)
    assert code == 4
    assert err.endswith(
        "ZeroDivisionError: division by zero\nerror: this is a defect of verify-attention, please report it\n"
    )


@pytest.mark.parametrize(
    ("statuses", "code"), [(["pass", "fail", "crashed"], 4), (["pass", "inconclusive"], 1), (["pass", "skipped"], 0)]
)
def test_the_exit_code_is_the_worst_finding_s(statuses, code):
    from verify_attention.cli.run import exit_code
    from verify_attention.model import CaseReport, Finding, Report, Tolerance

    findings = tuple(Finding("some", status, "holds", None if status == "crashed" else "holds") for status in statuses)
    assert exit_code(Report("mine", Tolerance(), (CaseReport(None, {}, findings),))) == code


def test_fail_fast_is_stronger_than_maxfail_and_auto_is_a_number_of_jobs(mine, capsys, monkeypatch):
    many(mine, 6, spoil={1, 2, 4})
    inside(["run", "cases", "-x", "--maxfail", "9", "-n", "auto"], mine, capsys, monkeypatch)
    assert len(ids(mine)) == 2


def test_color_never_is_stronger_than_the_environment(mine):
    assert "\x1b" not in call("run", "cases", "--color", "never", folder=mine, FORCE_COLOR="1").stdout
    assert "\x1b" in call("run", "cases", folder=mine, FORCE_COLOR="1").stdout


def test_the_gate_compares_with_a_baseline(mine, capsys, monkeypatch):
    inside(["run", "cases", "-o", "old.json"], mine, capsys, monkeypatch)
    change(mine, "0.575975", "0.575976")
    inside(["run", "cases"], mine, capsys, monkeypatch)
    code, out, _ = inside(["gate", "results.json", "--baseline", "old.json"], mine, capsys, monkeypatch)
    assert code == 1
    assert "worse: mine: published-numbers-are-reproduced: was pass, is fail" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "results.json"),
        ('{"schema": "verify-attention/results/2"}', "verify-attention/results/1"),
    ],
)
def test_a_file_that_is_no_results_file_ends_with_4_in_lines(mine, text, message, capsys, monkeypatch):
    (mine / "results.json").write_text(text)
    code, out, err = inside(["gate", "results.json"], mine, capsys, monkeypatch)
    assert (code, out) == (4, "")
    assert message in err


# --- tables


def test_the_article_s_table_in_japanese_to_the_letter(mine, capsys, monkeypatch):
    code, out, err = inside(["tables", "cases", "--lang", "ja", "--format", "markdown"], mine, capsys, monkeypatch)
    assert code == 0
    assert (
        out
        == """**mine**

| 条件 | softmax前のスコア (s₁, s₂, s₃) | softmax重み (p₁, p₂, p₃) |
| --- | --- | --- |
| biasなし | (0.707107, 0, -0.707107) | (0.575975, 0.283995, 0.140029) |
| Q biasのみ追加 | (0.707107, 0.707107, -0.707107) | (0.445808, 0.445808, 0.108383) |
| 共通K biasのみ追加 | (2.828427, 2.121320, 1.414214) | (0.575975, 0.283995, 0.140029) |
| Q・K biasすべて追加 | (1.414214, 1.414214, 0) | (0.445808, 0.445808, 0.108383) |
"""
    )
    assert "mine: 公表値 24 個を再現" in err


def test_tables_as_csv_and_latex_and_for_a_terminal(mine, capsys, monkeypatch):
    import csv
    import io

    _, out, _ = inside(["tables", "cases", "--format", "csv", "--decimals", "2"], mine, capsys, monkeypatch)
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["case", "condition", "scores before softmax", "softmax weights"]
    assert rows[3] == ["mine", "common K bias only", "(2.83, 2.12, 1.41)", "(0.58, 0.28, 0.14)"]
    _, out, _ = inside(["tables", "cases", "--format", "latex"], mine, capsys, monkeypatch)
    assert "Q bias only & (0.707107, 0.707107, -0.707107) & (0.445808, 0.445808, 0.108383) \\\\\n" in out
    _, out, _ = inside(["tables", "cases"], mine, capsys, monkeypatch)
    assert "(2.828427, 2.121320, 1.414214)" in out
    assert "PASS          softmax kept under K (key-bias-leaves-weights)" in out


def test_tables_name_heads_and_rows_and_leave_out_what_is_too_large(tmp_path, capsys, monkeypatch):
    _, out, _ = inside(["tables", CASES / "bias" / "heads.yaml", "--format", "markdown"], tmp_path, capsys, monkeypatch)
    assert "**heads, head 1, row 0**" in out
    rows = [[0.25] * 2] * 70
    (tmp_path / "large.yaml").write_text(json.dumps({"d_k": 2, "q": rows, "keys": rows, "bQ": [0, 1], "bK": [1, 1]}))
    code, out, _ = inside(["tables", tmp_path / "large.yaml"], tmp_path, capsys, monkeypatch)
    assert code == 0
    assert "left out, more than 4,096 scores: large" in out


# --- the map, and what explains it


def test_the_map_of_the_built_in_cases(tmp_path, capsys, monkeypatch):
    code, out, err = inside(["map"], tmp_path, capsys, monkeypatch)
    assert (code, err) == (0, "")
    assert re.search(r"^rope +depends \(0\.\d+\) +holds +holds$", out, re.MULTILINE)
    code, out, _ = inside(["map", "--format", "csv", "--verbose"], tmp_path, capsys, monkeypatch)
    assert code == 0
    assert "rope::bias-after-the-rotation,vectors,holds,holds,holds," in out


def test_the_map_of_a_case_of_one_s_own(mine, capsys, monkeypatch):
    code, out, _ = inside(["map", "cases"], mine, capsys, monkeypatch)
    assert code == 0
    assert re.search(r"^mine +holds +holds +–$", out, re.MULTILINE)  # it has no bV


def test_a_boundary_case_that_expects_the_wrong_thing_ends_with_1(tmp_path, capsys, monkeypatch):
    text = (CASES / "boundaries" / "softcap.yaml").read_text("utf-8")
    wrong = text.replace("key-bias-leaves-weights: breaks", "key-bias-leaves-weights: holds")
    assert wrong != text
    (tmp_path / "softcap.yaml").write_text(wrong, "utf-8")
    code, out, err = inside(["map", "softcap.yaml"], tmp_path, capsys, monkeypatch)
    assert code == 1
    assert "not as expected" in out
    assert "softcap: key-bias-leaves-weights is fail" in err


def test_everything_is_explained(tmp_path, capsys, monkeypatch):
    from verify_attention.plugins import features, invariants

    for name, plugin in {**invariants(), **features()}.items():
        code, out, _ = inside(["explain", name], tmp_path, capsys, monkeypatch)
        assert code == 0
        assert " ".join(plugin.claim.split()) in " ".join(out.split())


def test_a_feature_is_explained_with_its_place_its_parameters_and_what_it_takes(tmp_path, capsys, monkeypatch):
    _, out, _ = inside(["explain", "softcap"], tmp_path, capsys, monkeypatch)
    assert "acts on: scores, number 5 of 16" in out
    assert "takes away: bilinear scores, common key shift" in out
    _, out, _ = inside(["explain", "rope"], tmp_path, capsys, monkeypatch)
    assert "  - base: Base of the frequencies. Absent: 10000." in out
    assert "takes away: common key shift (with some parameters)" in out
    _, out, _ = inside(["explain", "mask"], tmp_path, capsys, monkeypatch)
    assert "takes away: nothing" in out
