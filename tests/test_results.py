import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import results_schema
from jsonschema import Draft202012Validator
from making import INVARIANTS, TOLERANCE, random_case, rng

from verify_attention import __version__, files, resources, results, validation
from verify_attention.cases import build_case, load_cases
from verify_attention.engine import run
from verify_attention.errors import ResultsError, UsageError
from verify_attention.model import Report, UnderTest
from verify_attention.pipeline import CORE
from verify_attention.sealing import digest, seal
from verify_attention.summary import LARGEST

CASES = load_cases([resources.folder("cases")])


def report(cases, implementation=CORE, name="core", largest=4096.0):
    return Report(
        UnderTest(name, __version__),
        TOLERANCE,
        tuple(run(cases, implementation, INVARIANTS.values(), TOLERANCE, largest=largest)),
    )


@pytest.fixture(scope="module")
def run_of_all():
    return report(CASES)


@pytest.fixture(scope="module")
def shipped(run_of_all):
    return json.loads(results.encoded(run_of_all))


def test_the_schema_is_a_schema_and_closed():
    schema = resources.schema("results")
    Draft202012Validator.check_schema(schema)

    def objects(part):
        if isinstance(part, dict):
            if "properties" in part:
                yield part
            for value in part.values():
                yield from objects(value)

    for part in objects(schema):
        assert "additionalProperties" in part, part.get("title")
        for name, field in part["properties"].items():
            described = field if "$ref" not in field else schema["$defs"][field["$ref"].rpartition("/")[2]] | field
            assert described.get("title"), name
            assert described.get("description"), name


def test_results_of_the_shipped_cases_satisfy_the_schema_plainly_read(shipped):
    assert list(Draft202012Validator(resources.schema("results")).iter_errors(shipped)) == []


def test_the_text_is_strict_json_that_reads_back_as_itself(shipped, run_of_all):
    written = results.encoded(run_of_all)
    assert json.loads(written, parse_constant=pytest.fail) == shipped
    again = seal({name: value for name, value in shipped.items() if name != "digest"})
    assert again == written


def test_each_field_condition_and_finding_has_its_line(shipped, run_of_all):
    lines = results.encoded(run_of_all).decode().splitlines()
    findings = sum(len(case["findings"]) for case in shipped["cases"])
    assert sum('"invariant":' in line for line in lines) == findings
    assert all(line.count('"invariant":') <= 1 for line in lines)
    per_case = (
        '"id":',
        '"inputs": ',
        '"conditions": ',
        '"q":{"scores":',
        '"k":{"scores":',
        '"qk":{"scores":',
        '"digest": ',
    )
    for start in per_case:
        own = sum(line.lstrip(" {").startswith(start) for line in lines)
        assert own == len(CASES) + (start == '"digest": '), start


@pytest.mark.parametrize(("given", "sample"), [([1.0, 1e200], [0.5]), ([1.0, -np.inf], [0.5, None])])
def test_what_stands_for_an_array_has_no_null_unless_the_array_has_one(given, sample):
    """The sum of the squares of the first overflows."""
    found = results.numbers(np.array(given))
    assert found.sample == sample
    assert found == [1.0, given[1] if None not in sample else None]


def test_the_same_run_gives_the_same_bytes():
    some = CASES[::7]
    assert results.encoded(report(some)) == results.encoded(report(some))


def test_numbers_survive_to_the_last_bit(shipped):
    trace = CORE(CASES[0].under("qk"))
    entry = next(entry for entry in shipped["cases"] if entry["id"] == CASES[0].id)
    for name, array in (*trace.inside.items(), ("output", trace.output)):
        assert np.array_equal(np.array(entry["conditions"]["qk"][name]), array)


def test_stored_inputs_are_a_case_again(shipped):
    for case, entry in zip(CASES, shipped["cases"], strict=True):
        if any(isinstance(value, np.ndarray) and value.size > LARGEST["auto"] for value in case.features.values()):
            continue  # a summary is no case
        given = {name: value for name, value in entry["inputs"].items() if value is not None}
        rebuilt = build_case(given, id=entry["id"])
        for name in ("q", "keys", "bQ", "bK", "values", "bV", "key_shifts"):
            one, other = getattr(case, name), getattr(rebuilt, name)
            assert (one is None) == (other is None)
            assert one is None or np.array_equal(one, other)
        assert (case.scale, case.expect, case.tags) == (rebuilt.scale, rebuilt.expect, rebuilt.tags)


def test_the_summary_counts_what_is_there(shipped):
    statuses = [finding["status"] for entry in shipped["cases"] for finding in entry["findings"]]
    assert shipped["summary"]["cases"] == len(CASES)
    assert sum(shipped["summary"][status] for status in ("pass", "fail", "inconclusive", "skipped", "crashed")) == len(
        statuses
    )
    assert shipped["summary"]["pass"] == statuses.count("pass") == shipped["summary"]["checked"]


def test_numbers_that_json_lacks_are_null():
    case = random_case(rng(41), q=np.full((6, 4, 7), 1e200), keys=np.full((3, 5, 7), 1e200))
    made = json.loads(results.encoded(report([case])), parse_constant=pytest.fail)
    assert made["cases"][0]["conditions"]["none"]["scores"][0][0] == [None] * 5
    finding = next(f for f in made["cases"][0]["findings"] if f["invariant"] == "key-bias-leaves-weights")
    assert (finding["status"], finding["deviation"], finding["rounding_bound"]) == ("inconclusive", None, None)


def test_an_array_of_more_than_4096_numbers_is_summarised_unless_full():
    case = random_case(rng(42), H=2, G=1, Tq=70, Tk=30)
    short = json.loads(results.encoded(report([case])))["cases"][0]
    assert short["conditions"]["k"]["scores"]["shape"] == [2, 70, 30]
    assert isinstance(short["conditions"]["k"]["lse"], list)
    whole = json.loads(results.encoded(report([case], largest=np.inf), "full"))["cases"][0]
    assert np.array(whole["conditions"]["k"]["scores"]).shape == (2, 70, 30)


def test_no_absolute_path_in_it(shipped):
    text = json.dumps(shipped)
    assert str(Path.cwd()) not in text
    assert str(Path.home()) + "/" not in text
    assert all(not Path(entry["file"]).is_absolute() for entry in shipped["cases"])


# --- writing


def test_a_file_is_replaced_and_its_permissions_stay(tmp_path):
    target = tmp_path / "results.json"
    target.write_text("old")
    target.chmod(0o640)
    files.write_atomically(target, b"new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_gets_the_usual_permissions(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("")
    files.write_atomically(ours, b"")
    assert ours.stat().st_mode == plain.stat().st_mode


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    files.write_atomically(Path(os.devnull), b"gone")
    assert Path(os.devnull).is_char_device()


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "results.json"
    target.write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultsError, match="No space left on device"):
        files.write_atomically(target, b"new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "results.json"
    target.write_text("old")
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from verify_attention import files
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        files.write_atomically(Path({str(target)!r}), b"new" * 100_000)
    """)
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -9
    assert target.read_text() == "old"


@pytest.mark.parametrize("place", ["", "missing/results.json"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, place):
    with pytest.raises(UsageError):
        files.check_writable(tmp_path / place)


# --- reading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "1:2: not JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "1e999 is beyond float64"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ("[" * 100_000, "recursion"),
        ("", "1:1: not JSON"),
        ("1" * 5000, "limit"),
        ('{"a": "\\ud800"}', "surrogates"),
        ("[" * 50 + "]" * 50, "nested more than 32 deep"),
    ],
)
def test_json_is_read_strictly(tmp_path, text, message):
    target = tmp_path / "results.json"
    target.write_text(text)
    with pytest.raises(ResultsError, match=message):
        files.read_json(target)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "results.json")
    with pytest.raises(ResultsError, match="no ordinary file"):
        files.read_json(tmp_path / "results.json")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "results.json").write_bytes(b'{"\xff": 1}')
    with pytest.raises(ResultsError, match="not UTF-8"):
        files.read_json(tmp_path / "results.json")
    with pytest.raises(UsageError, match="no such file"):
        files.read_json(tmp_path / "other.json")


def test_the_schema_closes_features_as_the_schema_of_cases_does():
    closed = resources.schema("results")["$defs"]["inputs"]["properties"]["features"]
    assert closed["additionalProperties"] is False
    assert closed["properties"] == results_schema.features(), "renew it with: python tests/results_schema.py"


@pytest.mark.parametrize(
    ("feature", "wrong"),
    [
        ("causl", "lower-right"),
        ("causal", "middle"),
        ("rope", {"bass": 10.0}),
        ("mask", [[[1, 0]]]),
        ("temperature", {"heads": [[True]]}),
        ("window", [1]),
    ],
)
def test_a_wrong_parameter_in_results_is_refused(feature, wrong):
    made = json.loads(results.encoded(report([random_case(rng(3))])))
    assert validation.valid(made, "results")
    made["cases"][0]["inputs"]["features"] = {feature: wrong}
    assert not validation.valid(made, "results")


# --- sealing


def test_an_edit_of_a_document_is_written_and_stays_its_own(run_of_all):
    """Findings that measured nothing are one entry for many cases, in one document and no other."""
    made = results.document(run_of_all)
    edited = next(finding for finding in made["cases"][0]["findings"] if finding["worst"] is None)
    edited["reason"] = "edited by hand"
    assert '"reason":"edited by hand"' in seal(made).decode()
    assert "edited by hand" not in results.encoded(run_of_all).decode()


def test_a_finding_in_another_order_of_keys_is_sealed_as_it_is(shipped):
    entry = shipped["cases"][0]
    other = {**entry, "findings": [dict(reversed(finding.items())) for finding in entry["findings"]]}
    assert digest(other) != digest(entry)
    assert digest({**entry, "findings": [dict(finding) for finding in entry["findings"]]}) == entry["digest"]
    made = {**shipped, "cases": [other]}
    assert json.loads(seal(made)) == made
