"""Reports: every form shows the same report, fresh or stored; files, streams and exit codes of the commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import a_report
import numpy as np
import pytest
import xmlschema
from making import INVARIANTS, TOLERANCE
from markdown_it import MarkdownIt
from test_cli import call

from verify_attention import __version__, engine, resources, results
from verify_attention.cases import load_cases
from verify_attention.cli.run import _judged
from verify_attention.errors import ResultsError
from verify_attention.languages import ENGLISH, Language
from verify_attention.loading import load
from verify_attention.model import BROKEN, Report, UnderTest
from verify_attention.pipeline import CORE
from verify_attention.reports import FORMS as WRITTEN
from verify_attention.reports import figures, github, junit, markdown, overview, render, table
from verify_attention.restored import restored

HERE = Path(__file__).resolve().parent
JUNIT = xmlschema.XMLSchema(HERE / "data" / "junit-10.xsd")
CAUSAL = str(HERE / "example" / "causal.py") + ":attention"


@pytest.fixture(scope="module")
def of_the_core() -> Report:
    cases = load_cases([resources.folder("cases")])
    return Report(
        UnderTest("core", __version__), TOLERANCE, tuple(engine.run(cases, CORE, INVARIANTS.values(), TOLERANCE))
    )


@pytest.fixture(scope="module")
def of_a_mistake() -> Report:
    """Return a report on a function that loses the K bias where it is causal: passes, failures and skips."""
    loaded, cases = load(CAUSAL, "float64"), load_cases([resources.folder("cases") / "boundaries"])
    return Report(loaded.under_test, TOLERANCE, tuple(engine.run(cases, loaded, INVARIANTS.values(), TOLERANCE)))


def stored(report: Report, detail: str = "auto") -> dict:
    return json.loads(results.encoded(report, detail))


def counted(report: Report) -> Counter:
    return Counter(finding["status"] for case in stored(report)["cases"] for finding in case["findings"])


# The stored report


def test_a_report_comes_back_from_results_as_it_was(of_the_core: Report) -> None:
    """What is stored of the report that comes back is the same to the byte, where no array was summarised."""
    whole = results.encoded(of_the_core, "full")
    again = restored(json.loads(whole))
    assert again.version == of_the_core.version
    assert again.environment == of_the_core.environment
    for one, other in zip(json.loads(whole)["cases"], stored(again, "full")["cases"], strict=True):
        assert one == other, one["id"]
    assert json.loads(whole) == stored(again, "full")


def test_what_json_does_not_have_comes_back_as_bad_as_it_was() -> None:
    report = a_report.a_report()
    assert restored(stored(report)).tolerance == report.tolerance != TOLERANCE
    first, *others = report.cases
    endless = first.findings[0]._replace(deviation=float("inf"), rounding_bound=float("inf"))
    spoilt = replace(report, cases=(replace(first, findings=(endless,)), *others))
    back = restored(stored(spoilt)).cases[0].findings[0]
    assert (back.deviation, back.rounding_bound) == (float("inf"), float("inf"))
    assert re.search(r"key-bias-leaves-weights +FAIL +2 of 2 +inf ", table.render(restored(stored(spoilt))))


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("kind", ["of_the_core", "of_a_mistake"])
def test_every_form_shows_a_stored_report_as_a_fresh_one(form: str, kind: str, request: pytest.FixtureRequest) -> None:
    fresh: Report = request.getfixturevalue(kind)
    back = restored(stored(fresh))
    for say in (ENGLISH, Language("ja")):
        # A stored case is called by the path in the results, a shipped one by its id.
        paths = {entry.case.path: other.case.path for entry, other in zip(fresh.cases, back.cases, strict=True)}
        text = render(form, fresh, say)
        for path in sorted(filter(None, paths), key=len, reverse=True):
            text = text.replace(path, paths[path])
        assert render(form, back, say) == text


def test_every_finding_too(of_a_mistake: Report) -> None:
    fresh = table.render(of_a_mistake, verbose=True)
    assert table.render(restored(stored(of_a_mistake)), verbose=True).count("\n") == fresh.count("\n")


@pytest.mark.parametrize(
    ("where", "value"),
    [("weights", [[[[1.0]]]]), ("weights", [[[1.0]]]), ("lse", [[1.0, 2.0]]), ("scores", [[1.0, 2.0, 3.0]])],
)
def test_traces_of_another_shape_are_refused(where: str, value: list) -> None:
    made = stored(a_report.a_report())
    made["cases"][0]["conditions"]["k"][where] = value
    with pytest.raises(ResultsError, match="group/one: its arrays do not go together"):
        restored(made)


def test_what_passes_against_the_mathematics_is_told_however_much_else_broke() -> None:
    report = a_report.a_report()
    (against,) = (finding for _, finding in report.findings() if finding.contradicted)
    fails = tuple(report.cases[0].findings[0]._replace(invariant=f"claim-{number}") for number in range(60))
    many = replace(report, cases=(replace(report.cases[0], findings=(*fails, against)),))
    titles = [properties["title"] for properties, _ in annotations(github.render(many))]
    assert len(titles) == 10
    assert [case.id for case, finding in overview.broken(many)[:61] if finding.contradicted] == ["group/one"]
    alike = tuple(report.cases[0].findings[2]._replace(invariant=f"claim-{number}") for number in range(30))
    crashed = replace(report, cases=(replace(report.cases[0], findings=(*alike, against)),))
    titles = [properties["title"] for properties, _ in annotations(github.render(crashed))]
    assert titles == ["CRASH claim-0 on group/one", "FAIL weights-sum-to-one on group/one", "verify-attention"]


def test_a_run_stops_at_a_pass_against_the_mathematics_too() -> None:
    first, second = a_report.a_report().cases
    options = SimpleNamespace(maxfail=1, progress=False, quiet=True)
    assert list(_judged([second.case, first.case], [second, first], options)) == [second]


def test_a_report_in_which_nothing_was_checked_is_red_everywhere() -> None:
    report = a_report.a_report()
    nothing = replace(report, cases=(replace(report.cases[1], findings=report.cases[1].findings[1:3]),))
    whole = ET.fromstring(junit.render(nothing))  # noqa: S314 - it is ours
    assert whole.get("failures") == "1"
    JUNIT.validate(junit.render(nothing))
    assert len(annotations(github.render(nothing))) == 1


def test_a_command_to_repeat_is_one_word_after_another_whatever_a_file_says() -> None:
    report = a_report.a_report()
    finding = report.cases[0].findings[0]._replace(invariant="; rm -rf ~ #")
    words = shlex.split(figures.again(report.cases[0].case, finding, report))
    assert words[words.index("--select") + 1] == "; rm -rf ~ #"


def test_the_largest_deviation_is_found_beside_a_limit_of_zero() -> None:
    none = a_report.a_report().cases[0].findings[3]._replace(limit=0.0)
    some = none._replace(deviation=1e-13, limit=1e-12)
    assert overview.largest([none, some]) == overview.largest([some, none]) == some
    assert overview.largest([some, none._replace(deviation=1e-20)]).deviation == 1e-20


def test_summarised_arrays_stay_summaries() -> None:
    (small,) = load_cases([resources.folder("cases") / "article" / "no-query-bias.yaml"])
    large = small.but(keys=np.ones((1, 2200, small.d_k)), values=np.ones((1, 2200, 1)), published=None, features={})
    report = Report(UnderTest("core", __version__), TOLERANCE, (engine.run_case(large, CORE, [], TOLERANCE),))
    made = stored(report)
    back = restored(made).cases[0]
    assert back.case.keys.shape == (1, 2200, small.d_k)
    assert bool(np.isnan(back.case.keys).all())
    assert np.array_equal(back.case.q, large.q)
    assert back.conditions["k"]["weights"] == report.cases[0].conditions["k"]["weights"]
    assert back.conditions["k"]["weights"].sha256 == made["cases"][0]["conditions"]["k"]["weights"]["sha256"]


def test_a_stored_text_has_nothing_that_a_terminal_obeys(of_a_mistake: Report) -> None:
    made = stored(of_a_mistake)
    made["cases"][0] |= {"id": "a\x1b[31m", "file": "a\u202eb.yaml"}
    made["cases"][0]["inputs"] |= {"title": "\x07", "tags": ["\x1b]0;x"]}
    for finding in made["cases"][0]["findings"]:
        finding["reason"] = "\x1b[2J"
    made["implementation"]["name"] = "\x1b[1m"
    for form in WRITTEN:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", render(form, restored(made))), form
    assert "\x1b" not in table.render(restored(made), verbose=True)


def test_arrays_that_do_not_go_together_are_one_line(tmp_path: Path, of_a_mistake: Report) -> None:
    made = stored(of_a_mistake)
    made["cases"][3]["inputs"]["q"] = [[[1.0, 2.0]], [[1.0]]]
    (tmp_path / "results.json").write_text(json.dumps(made), encoding="utf-8")
    done = call("report", "results.json", folder=tmp_path)
    name = made["cases"][3]["id"]
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"error: results.json: {name}: its arrays do not go together; `gate` says what is wrong\n"


# The forms


@pytest.mark.parametrize("form", a_report.FORMS)
@pytest.mark.parametrize("code", ["en", "ja"])
def test_each_form_is_as_it_was_looked_at(form: str, code: str) -> None:
    wanted = a_report.golden(form, code).read_bytes().decode()
    made = render(form, a_report.a_report(), Language(code))
    assert made == wanted, f"where the new one is right: python tests/a_report.py {form}"


def test_junit_satisfies_its_schema(of_the_core: Report, of_a_mistake: Report) -> None:
    for report in (of_the_core, of_a_mistake, a_report.a_report()):
        JUNIT.validate(junit.render(report))


def test_the_schema_of_junit_notices_what_it_does_not_have() -> None:
    text = junit.render(a_report.a_report())
    for wrong in (
        text.replace("classname=", "klass="),
        text.replace("<error ", "<crash ").replace("/error>", "/crash>"),
    ):
        assert wrong != text
        with pytest.raises(xmlschema.XMLSchemaValidationError):
            JUNIT.validate(wrong)


def test_junit_says_of_every_finding_what_became_of_it(of_a_mistake: Report) -> None:
    whole = ET.fromstring(junit.render(of_a_mistake))  # noqa: S314 - it is ours
    tests = list(whole.iter("testcase"))
    named = [(test.get("classname"), test.get("name")) for test in tests]
    assert named == [
        (case["id"], finding["invariant"]) for case in stored(of_a_mistake)["cases"] for finding in case["findings"]
    ]
    count = counted(of_a_mistake)
    assert count["fail"]
    for kind, status in (("failure", "fail"), ("skipped", "skipped"), ("error", "crashed")):
        assert sum(test.find(kind) is not None for test in tests) == count[status], kind
    plural = {"failures": count["fail"], "errors": 0, "skipped": count["skipped"], "tests": count.total()}
    for name, number in plural.items():
        if name != "skipped":  # which the schema has for suites alone
            assert int(whole.get(name)) == number, name
        assert sum(int(suite.get(name)) for suite in whole) == number, name


def test_junit_calls_a_pass_against_the_mathematics_a_failure() -> None:
    whole = ET.fromstring(junit.render(a_report.a_report()))  # noqa: S314
    (second,) = (suite for suite in whole if suite.get("name") == "group/two::second, <b>")
    kinds = {test.get("name"): [child.tag for child in test] for test in second}
    assert kinds["weights-sum-to-one"] == ["failure"]
    assert kinds["key-bias-leaves-weights"] == []


def test_markdown_shows_texts_as_they_are() -> None:
    """Another reader of Markdown finds no markup that a case or a reason brought, and every text whole."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown.render(a_report.a_report()))
    inline = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or ()}
    assert kinds <= {"text", "strong_open", "strong_close", "code_inline", "hardbreak", "softbreak", "text_special"}
    assert not [token for token in tokens if token.type.startswith("html")]
    shown = ["".join(child.content for child in token.children or ()) for token in inline]
    first = a_report.EVIL.splitlines()[0]
    assert any(first in text for text in shown)
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows == 1 + 4
    commands = [token.content for token in tokens if token.type == "fence"]
    assert len(commands) == 4
    assert all(command.startswith("verify-attention run ") for command in commands)


def test_code_may_hold_backticks() -> None:
    for text in ("`", "a``b", "```", " x "):
        (token,) = (one for one in MarkdownIt().parse(markdown.code(text)) if one.type == "inline")
        (code,) = token.children or ()
        assert (code.type, code.content.strip(" ")) == ("code_inline", text.strip(" "))
        (fence,) = MarkdownIt().parse(markdown.fenced(text))
        assert fence.content == f"{text}\n"


def annotations(text: str) -> list[tuple[dict[str, str], str]]:
    """Read workflow commands as GitHub does."""
    found = []
    for line in text.splitlines():
        if not line.startswith("::"):
            continue
        command, _, message = line[2:].partition("::")
        kind, _, given = command.partition(" ")
        assert kind == "error"
        properties = dict(part.split("=", 1) for part in given.split(","))
        found.append(({name: decoded(value) for name, value in properties.items()}, decoded(message)))
    return found


def decoded(text: str) -> str:
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text


def test_github_gets_an_annotation_at_the_file_and_line(of_a_mistake: Report) -> None:
    broken = [(case, one) for case, one in of_a_mistake.findings() if one.status in BROKEN]
    found = annotations(github.render(of_a_mistake, place=lambda path: f"sub folder/{path}"))
    assert len(broken) > 10
    assert len(found) == 10
    for properties, message in found[:-1]:
        title = properties["title"].removeprefix("FAIL ")
        case, finding = next((case, one) for case, one in broken if f"{one.invariant} on {case.id}" == title)
        assert properties["line"] == str(case.line)
        text = Path(case.path).read_text(encoding="utf-8").splitlines()
        assert properties["file"] == f"sub folder/{case.path}"
        _, _, name = case.id.partition("::")
        assert f"name: {name}" in text[case.line - 1 : case.line + 2], "the document begins there"
        first, *_, again = message.split("\n")
        assert first == finding.reason
        assert again.startswith("again: verify-attention run ")
    assert found[-1] == ({"title": "verify-attention"}, f"… and {len(broken) - 9} more")


def test_github_gets_no_command_that_a_text_brought() -> None:
    found = annotations(github.render(a_report.a_report()))
    assert len(found) == 4
    assert (
        found[1][1].split("\n")[0].startswith("a|b `c` <script>alert(1)</script> [x](javascript:y) ]]> %25 ::error::")
    )
    assert found[2][0]["title"] == "FAIL weights-sum-to-one on group/two::second, <b>"


def test_a_job_summary_fits(of_a_mistake: Report) -> None:
    cases = of_a_mistake.cases
    whole = github.job_summary(of_a_mistake)
    assert whole == markdown.render(of_a_mistake)
    finding = cases[0].findings[0]._replace(status="crashed", reason="é" * 30_000)
    broken = type(cases[0])(cases[0].case, cases[0].conditions, (finding,) * 400)
    text = github.job_summary(Report(of_a_mistake.implementation, TOLERANCE, (broken,)))
    assert len(text.encode()) <= 2**20
    long = [
        type(broken)(broken.case.but(id=f"{'x' * 60_000}{index}"), broken.conditions, (finding,)) for index in range(40)
    ]
    text = github.job_summary(Report(of_a_mistake.implementation, TOLERANCE, tuple(long)))
    assert len(text.encode()) <= 2**20
    assert text.endswith("\n… the rest does not fit\n")


# The command line


def test_a_report_with_a_file_stands_beside_the_table(tmp_path: Path) -> None:
    plain = call("run", "--no-output", folder=tmp_path).stdout
    done = call(
        "run", "--report", "junit=j.xml", "--report", "markdown=m.md", "--report", "table=t.txt", folder=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, plain)
    JUNIT.validate((tmp_path / "j.xml").read_text(encoding="utf-8"))
    assert (tmp_path / "t.txt").read_text(encoding="utf-8") == plain
    for form, file in (("junit", "j.xml"), ("markdown", "m.md"), ("table", "t.txt")):
        again = call("report", "results.json", "--format", form, folder=tmp_path)
        assert (again.returncode, again.stderr) == (0, "")
        assert again.stdout == (tmp_path / file).read_text(encoding="utf-8")
        assert call("report", "results.json", "--format", form, "-o", "again", folder=tmp_path).stdout == ""
        assert (tmp_path / "again").read_bytes() == (tmp_path / file).read_bytes()


def test_a_report_without_a_file_stands_in_the_place_of_the_table(tmp_path: Path) -> None:
    done = call("run", "--report", "junit", "--shrink", folder=tmp_path)
    JUNIT.validate(done.stdout)
    assert done.stderr == "results: results.json\n"
    done = call("run", "--no-output", "--report", "markdown=-", "--report", "table", folder=tmp_path)
    assert done.stdout == call("report", "results.json", "--format", "markdown", folder=tmp_path).stdout + (
        call("report", "results.json", folder=tmp_path).stdout
    )
    done = call("run", "-o", "-", "--report", "markdown", folder=tmp_path)
    assert done.stdout == (tmp_path / "results.json").read_text(encoding="utf-8")
    assert done.stderr.startswith("# verify-attention\n")


def test_stdout_by_its_other_name_is_stdout(tmp_path: Path) -> None:
    for one, other in (
        (["-o", "-"], ["-o", "/dev/stdout"]),
        (["--report", "junit"], ["--report", "junit=/dev/stdout"]),
    ):
        done = call("run", *other, folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, call("run", *one, folder=tmp_path).stdout)


def test_what_breaks_is_shown_and_ends_with_1_but_a_stored_one_is_only_shown(tmp_path: Path) -> None:
    kernel = ["--implementation", CAUSAL, resources.folder("cases") / "boundaries"]
    done = call("run", *kernel, "--report", "github", "--report", "junit=j.xml", folder=tmp_path)
    assert done.returncode == 1
    assert len(annotations(done.stdout)) == 10
    shown = call("report", "results.json", "--format", "junit", folder=tmp_path)
    assert shown.returncode == 0
    assert ET.fromstring(shown.stdout).get("failures") == ET.parse(tmp_path / "j.xml").getroot().get("failures") != "0"  # noqa: S314


def test_the_job_summary_is_added_where_github_says(tmp_path: Path) -> None:
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    (tmp_path / "repo" / "sub" / "bad.yaml").write_text(
        "\n---\nname: x\nd_k: 1\nq: [1]\nkeys: [[1], [0]]\nbQ: [0]\nbK: [1]\n"
        "expect: {key-bias-leaves-weights: breaks}\n",
        encoding="utf-8",
    )
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    github_s = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_WORKSPACE": str(tmp_path / "repo")}
    done = call("run", "bad.yaml", "--report", "github", folder=tmp_path / "repo" / "sub", **github_s)
    assert done.returncode == 1
    ((properties, _),) = annotations(done.stdout)
    assert (properties["file"], properties["line"]) == ("sub/bad.yaml", "2")
    plain = call("report", "results.json", "--format", "markdown", folder=tmp_path / "repo" / "sub")
    assert summary.read_text(encoding="utf-8") == "before\n" + plain.stdout
    wrong = call("run", "--report", "github", folder=tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path))
    assert wrong.returncode == 4
    assert wrong.stderr.endswith(f"error: GITHUB_STEP_SUMMARY: {tmp_path} could not be written: Is a directory\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--report", "junt"], "'junt' is none of table, markdown, junit, github or html (did you mean 'junit'?)"),
        (["--report", "junit="], "'junit=' names no file behind the ="),
        (["--report", "junit=a", "--report", "markdown=./a"], "./a: two outputs cannot go to one file"),
        (["--report", "junit=results.json"], "results.json: two outputs cannot go to one file"),
        (["--report", "junit=nowhere/a"], "nowhere/a: the folder nowhere does not exist"),
        (["--report", "junit=a.yaml"], "a.yaml: a name that ends in .yaml is a case's; results end in .json"),
        (["--lang", "fr"], "'fr' is not one of 'en', 'ja'."),
    ],
)
def test_what_cannot_be_written_stops_before_anything_runs(tmp_path: Path, given: list[str], said: str) -> None:
    done = call("run", *given, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert done.stderr.rstrip().endswith(said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_a_report_needs_results(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "r.json").write_text(content, encoding="utf-8")
    done = call("report", "r.json", "--format", "junit", "-o", "j.xml", folder=tmp_path)
    assert done.returncode == (2 if content is None else 4)
    assert all(line.startswith("error: r.json") for line in done.stderr.splitlines())
    assert not (tmp_path / "j.xml").exists()


def test_nothing_is_written_over_the_results_that_are_shown(tmp_path: Path) -> None:
    call("run", folder=tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    done = call("report", "results.json", "--format", "junit", "-o", "results.json", folder=tmp_path)
    assert (done.returncode, (tmp_path / "results.json").read_bytes()) == (2, before)


@pytest.mark.parametrize("locale", ["ja_JP.UTF-8", "ja"])
def test_the_locale_chooses_the_language_and_an_option_another(tmp_path: Path, locale: str) -> None:
    japanese = call("run", "--no-output", folder=tmp_path, LC_ALL=locale).stdout
    assert japanese.splitlines()[-1].startswith("合格  5 件のケース")
    assert call("run", "--no-output", "--lang", "ja", folder=tmp_path).stdout == japanese
    english = call("run", "--no-output", "--lang", "en", folder=tmp_path, LC_ALL=locale).stdout
    assert english == call("run", "--no-output", folder=tmp_path).stdout
    assert english == call("run", "--no-output", folder=tmp_path, LC_ALL="java.UTF-8").stdout
    assert os.environ["LC_ALL"] == "C.UTF-8", "what the other tests rely on"
