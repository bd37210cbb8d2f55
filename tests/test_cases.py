"""From paths to cases: which files, which ids, which shapes, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from verify_attention import resources
from verify_attention.cases import build_case, files, load_cases
from verify_attention.errors import CasesRefusedError, ExitCode, Problem, UsageError
from verify_attention.model import Case

BAD_CASES = Path(__file__).parent / "bad_cases"
REFUSED = sorted(path.name for path in BAD_CASES.glob("*.yaml"))
CASE = "d_k: 2\nq: [1, 0]\nkeys: [[1, 0], [0, 1], [-1, 0]]\nbQ: [0, 1]\nbK: [3, -2]\n"
DOCUMENT: dict[str, Any] = {"d_k": 2, "q": [1, 0], "keys": [[1, 0], [0, 1], [-1, 0]], "bQ": [0, 1], "bK": [3, -2]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str = CASE) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def ids(*paths: str | Path) -> list[str]:
    return [case.id for case in load_cases(paths)]


def refused(*paths: str | Path) -> list[str]:
    with pytest.raises(CasesRefusedError) as caught:
        load_cases(paths)
    assert caught.value.exit_code == ExitCode.REFUSED
    return str(caught.value).splitlines()


def usage(*paths: str | Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_cases(paths)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


def build(**changes: Any) -> Case:
    return build_case({**DOCUMENT, **changes}, id="x")


# Refusals


@given(st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_a_damaged_file_gives_cases_or_problems(seed: int, damages: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    text = CASE + "values: [[1, 2], [3, 4], &x [5, 6]]\nbV: *x\npublished: {decimals: 3, scores: {k: [1, 2, 3]}}\n"
    data = bytearray(text.encode())
    for _ in range(damages):
        place = draw.randrange(len(data))
        data[place : place + draw.randrange(3)] = draw.choice(
            [b"", b"[", b"]", b"\n", b": ", b"- ", b"&x ", b"*x", b"1", b"\xc3"]
        )
    Path("damaged.yaml").write_bytes(data)
    try:
        outcome: Any = load_cases(["damaged.yaml"])
    except CasesRefusedError as error:
        outcome = error.problems
    assert outcome
    assert all(isinstance(entry, Case) or (entry.line and ": " in entry.message) for entry in outcome)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_case_is_refused_in_these_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD_CASES)
    assert refused(name) == Path(name).with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def test_there_is_a_bad_case_for_every_message() -> None:
    assert len(REFUSED) >= 50
    assert {path.stem for path in BAD_CASES.glob("*.txt")} == {Path(name).stem for name in REFUSED}


def test_all_problems_of_all_files_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD_CASES.parent)
    expected = [line for name in REFUSED for line in (BAD_CASES / name).with_suffix(".txt").read_text().splitlines()]
    found = refused("bad_cases")
    assert sorted(found) == sorted(
        f"bad_cases/{line}".replace("is taken by ", "is taken by bad_cases/") for line in expected
    )


def test_one_bad_file_stops_the_good_ones() -> None:
    write("good.yaml")
    write("bad.yaml", CASE.replace("[3, -2]", "[3]"))
    assert refused("good.yaml", "bad.yaml") == ["bad.yaml:5:5: bK: has 1 number, d_k is 2"]


def test_a_named_pipe_does_not_hang() -> None:
    os.mkfifo("pipe.yaml")
    assert refused("pipe.yaml") == ["pipe.yaml: the file is not an ordinary file"]
    write("cases/a.yaml")
    os.mkfifo("cases/pipe.yml")
    assert refused("cases") == ["cases/pipe.yml: the file is not an ordinary file"]


def test_a_device_and_a_dangling_link_are_refused() -> None:
    write("cases/a.yaml")
    Path("cases/null.yaml").symlink_to("/dev/zero")
    Path("cases/gone.yaml").symlink_to("nowhere.yaml")
    assert refused("cases") == [
        "cases/gone.yaml: the file cannot be read: No such file or directory",
        "cases/null.yaml: the file is not an ordinary file",
    ]


def test_a_file_above_64_mib_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.MAX_BYTES == 64 * 1024 * 1024
    with Path("sparse.yaml").open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    expected = "sparse.yaml: the file has 67,108,865 bytes, allowed are 67,108,864 (64 MiB)"
    assert refused("sparse.yaml") == [expected]
    monkeypatch.setattr(files, "MAX_BYTES", len(CASE))
    assert ids(write("a.yaml")) == ["a"]
    assert len(refused(write("a.yaml", CASE + "#"))) == 1


def test_a_thousand_problems_are_enough() -> None:
    keys = "\n".join(["- [x, y]"] * 1500)
    found = refused(write("a.yaml", CASE.replace("[[1, 0], [0, 1], [-1, 0]]", "\n" + keys)))
    assert len(found) == 1001
    assert found[0] == "a.yaml:1:1: document: has more than 1,000 problems; the rest is not listed"
    assert found[-1].startswith("a.yaml:503:7: keys[499][1]: is the text 'y'")


def test_more_than_five_million_values_are_refused() -> None:
    row = "[" + ", ".join(["0"] * 1000) + "]"
    assert "5,000,000 values" in refused(write("a.yaml", f"a: &a {row}\nb: [" + ", ".join(["*a"] * 5000) + "]\n"))[-1]


def test_a_folder_named_like_a_file_is_a_folder() -> None:
    write("cases/x.yaml/y.yaml")
    assert ids("cases") == ["x.yaml/y"]
    assert ids("cases/x.yaml") == ["y"]


# Paths


def test_a_folder_gives_ids_below_it_in_the_order_of_parts() -> None:
    for path in ("b.yaml", "a/z.yml", "a/b/c.yaml", "a-b/x.yaml", "a.yaml", "B.yaml", "a/notes.txt"):
        write(f"cases/{path}")
    assert ids("cases") == ["B", "a/b/c", "a/z", "a-b/x", "a", "b"]
    assert ids("cases/") == ids("./cases") == ids(Path("cases").resolve()) == ids("cases/../cases") == ids("cases")
    assert ids("cases/a") == ["b/c", "z"]
    assert [case.file for case in load_cases(["cases/a"])] == ["cases/a/b/c.yaml", "cases/a/z.yml"]


def test_a_file_by_itself_has_its_stem() -> None:
    write("cases/a/b.yaml")
    assert ids("cases/a/b.yaml") == ["b"]


def test_the_order_is_that_of_paths_not_of_the_command_line() -> None:
    write("2.yaml")
    write("1/b.yaml")
    write("1/a.yaml", "".join(f"---\nname: {name}\n{CASE}" for name in ("z", "y")))
    assert ids("2.yaml", "1") == ids("1", "2.yaml") == ["a::z", "a::y", "b", "2"]


def test_a_file_named_twice_counts_once() -> None:
    write("cases/a.yaml")
    Path("link").symlink_to("cases")
    assert ids("cases/a.yaml", "cases/../cases/a.yaml", "./cases/a.yaml") == ["a"]
    assert ids("cases", "cases/a.yaml", "link") == ["a"]


def test_ids_are_unique() -> None:
    write("1/a.yaml")
    write("2/a.yaml", "# two\n" + CASE)
    write("2/a.yml")
    assert refused("1", "2") == [
        "2/a.yaml:2:1: document: the id a is taken by 1/a.yaml:1; ids must be unique in a run",
        "2/a.yml:1:1: document: the id a is taken by 1/a.yaml:1; ids must be unique in a run",
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing.yaml", "nothing.yaml does not exist"),
        ("nothing/", "nothing/ does not exist"),
        ("nothing.yaml::a", "nothing.yaml does not exist"),
        ("empty", "empty holds no case: no file below it ends in .yaml or .yml"),
        ("x.json", "x.json is no case: the name of a case file ends in .yaml or .yml"),
        ("empty::a", "empty::a: empty is a folder; ::a must follow a file"),
        ("x.yaml::fist", "x.yaml has no document named 'fist' (did you mean 'first'?); it has first and second"),
        ("x.yaml::", "x.yaml has no document named ''; it has first and second"),
        ("y.yaml::y", "y.yaml has no document named 'y'; its document has no name"),
    ],
)
def test_a_path_that_is_not_there_is_usage(path: str, message: str) -> None:
    Path("empty").mkdir()
    write("x.json", "{}")
    write("y.yaml")
    write("x.yaml", "".join(f"---\nname: {name}\n{CASE}" for name in ("first", "second")))
    assert usage(path) == usage("y.yaml", path) == message


def test_usage_comes_before_refusal() -> None:
    write("bad.yaml", "")
    assert usage("bad.yaml", "nothing.yaml") == "nothing.yaml does not exist"
    assert refused("bad.yaml::name") == ["bad.yaml:1:1: document: the file is empty, a case is a mapping"]


def test_documents_are_asked_for_by_name() -> None:
    write("x.yaml", "".join(f"---\nname: {name}\n{CASE}" for name in ("a", "b", "c")))
    assert ids("x.yaml::c", "x.yaml::a") == ["x::a", "x::c"]
    assert ids("x.yaml::c", "x.yaml") == ids("x.yaml", "x.yaml::c") == ["x::a", "x::b", "x::c"]
    write("y::z.yaml")
    assert ids("y::z.yaml") == ["y::z"]


def test_a_name_is_part_of_the_id() -> None:
    assert ids(write("x.yaml", f"name: a\n{CASE}")) == ["x::a"]


def test_files_are_named_without_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("project/cases/a/b.yaml")
    write("other/c.yaml")
    monkeypatch.chdir("project")

    def files(*paths: str | Path) -> list[str]:
        return [case.file for case in load_cases(paths)]

    assert files("cases") == files(tmp_path / "project/cases") == files(".") == ["cases/a/b.yaml"]
    assert files("../project/cases/a/b.yaml") == ["cases/a/b.yaml"]
    assert files("../other") == files(tmp_path / "other") == ["other/c.yaml"]
    assert files("../other/c.yaml") == ["c.yaml"]
    monkeypatch.chdir("cases/a")
    assert files("..") == ["b.yaml"]
    assert files("../../../other") == ["other/c.yaml"]


def test_links_to_folders_are_followed_but_not_in_circles() -> None:
    write("shared/a.yaml")
    write("cases/b.yaml")
    Path("cases/linked").symlink_to("../shared")
    Path("cases/circle").symlink_to(".")
    Path("shared/up").symlink_to("../cases")
    assert ids("cases") == ["b", "linked/a"]


def test_one_path_may_stand_by_itself() -> None:
    write("some/a.yaml")
    assert [case.id for case in load_cases("some")] == ["a"]
    assert [case.id for case in load_cases(Path("some"))] == ["a"]


def test_the_shipped_cases_are_those_of_the_article() -> None:
    cases = load_cases()
    assert "article/two-dimensions" in [case.id for case in cases]
    assert all(case.id.startswith("article/") and case.file == f"built-in/{case.id}.yaml" for case in cases)
    text = (resources.folder("cases") / "article" / "two-dimensions.yaml").read_bytes()
    [case] = [case for case in cases if case.id == "article/two-dimensions"]
    assert case.sha256 == hashlib.sha256(text).hexdigest()


def test_names_of_files_are_text() -> None:
    write("cases/a.yaml")
    write("cases/説明 🙂.yaml")
    assert ids("cases") == ["a", "説明 🙂"]
    write("cases/two\nlines.yaml")
    write(os.fsdecode(b"cases/latin-\xe9.yaml"))
    assert refused("cases") == [
        "cases/latin-\\udce9.yaml: the file's name has characters that are no text; rename it",
        "cases/two\\nlines.yaml: the file's name has characters that are no text; rename it",
    ]


def test_a_folder_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write("cases/a.yaml")
    write("cases/closed/b.yaml")
    Path("empty").mkdir()

    def is_dir(path: Path) -> bool:
        if path.name == "b.yaml":
            raise PermissionError(13, "Permission denied")
        return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir is what is replaced here

    monkeypatch.setattr(Path, "is_dir", is_dir)
    assert refused("cases") == ["cases/closed: the folder cannot be read: Permission denied"]
    assert "empty holds no case" in usage("cases", "empty")


def test_a_path_too_long_to_exist_is_usage() -> None:
    assert "cannot be read: File name too long" in usage("x" * 5000 + ".yaml")


def test_a_link_given_as_a_folder_keeps_its_name() -> None:
    write("cases/a.yaml")
    Path("link").symlink_to("cases")
    assert [case.file for case in load_cases(["link"])] == ["link/a.yaml"]


def test_progress_is_told() -> None:
    for name in "abc":
        write(f"cases/{name}.yaml")
    seen: list[tuple[int, int]] = []
    load_cases(["cases"], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# Documents


def test_fields_are_those_of_the_file() -> None:
    text = """\
# a comment
title: T
source: S
tags: [a, b]
d_k: 2.0
q: [1, 0]
keys: [[1, 0], [0, 1], [-1, 0]]
bQ: [0, 1e-3]
bK: [3, -.5]
scale: 1
expect: {key-bias-leaves-weights: breaks}
published:
  decimals: 2
  scores: {none: [0.71, 0, -0.71], qk: [1, 2, 3]}
  output: {k: [0, 1, 2]}
"""
    [case] = load_cases([write("x.yaml", text)])
    assert (case.title, case.source, case.tags, case.line, case.file) == ("T", "S", ("a", "b"), 2, "x.yaml")
    assert (case.scale, type(case.scale), case.values, case.bV, case.features) == (1.0, float, None, None, {})
    assert case.expect == {"key-bias-leaves-weights": "breaks"}
    assert case.q.tolist() == [[[1.0, 0.0]]]
    assert case.keys.tolist() == [[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]
    assert (case.bQ.tolist(), case.bK.tolist()) == ([[0.0, 0.001]], [[3.0, -0.5]])
    assert case.published is not None
    assert case.published.decimals == 2
    numbers = {q: {c: a.tolist() for c, a in by.items()} for q, by in case.published.numbers.items()}
    assert numbers == {
        "scores": {"none": [[[0.71, 0.0, -0.71]]], "qk": [[[1.0, 2.0, 3.0]]]},
        "output": {"k": [[[0.0, 1.0, 2.0]]]},
    }
    assert case.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_defaults() -> None:
    case = build(values=None, bV=None, features={}, tags=[])
    assert case.scale == 1 / math.sqrt(2)
    assert (case.values, case.bV, case.published, case.title, case.tags) == (None, None, None, None, ())
    assert build(scale=5e-324).scale == 5e-324


def test_several_documents_have_lines_of_their_own() -> None:
    cases = load_cases([write("x.yaml", f"name: a\n{CASE}--- # b\nname: b\n{CASE}")])
    assert [(case.id, case.line) for case in cases] == [("x::a", 1), ("x::b", 7)]
    assert cases[0].sha256 == cases[1].sha256


def filled(*shape: int) -> Any:
    """Return nested lists of that shape, holding 1, 2, 3 and so on."""
    return np.arange(1.0, 1 + math.prod(shape)).reshape(shape).tolist()


@pytest.mark.parametrize(
    ("q", "keys", "bQ", "bK", "values", "bV", "shifts"),
    [
        ((2,), (3, 2), (2,), (2,), (3, 5), (5,), (3, 2)),
        ((4, 2), (3, 2), (1, 2), (1, 2), (3, 5), (1, 5), (1, 3, 2)),
        ((6, 4, 2), (3, 5, 2), (6, 2), (3, 2), (3, 5, 7), (3, 7), (3, 5, 2)),
        ((6, 4, 2), (3, 5, 2), (2,), (2,), (3, 5, 1), (1,), (5, 2)),
        ((6, 4, 2), (5, 2), (6, 2), (1, 2), (5, 1), (1,), (1, 5, 2)),
        ((1, 1, 2), (1, 1, 2), (2,), (2,), (1, 1, 1), (1,), (1, 2)),
    ],
)
def test_shapes_inside_are_always_the_same(q, keys, bQ, bK, values, bV, shifts) -> None:
    given = {"q": q, "keys": keys, "bQ": bQ, "bK": bK, "values": values, "bV": bV}
    heads, tq = ((1, 1, *q)[-3:])[:2]
    kv_heads, tk = ((1, *keys)[-3:])[:2]
    d_v = values[-1]
    case = build(**{name: filled(*shape) for name, shape in given.items()}, features={"key_shifts": filled(*shifts)})
    assert case.values is not None
    assert case.bV is not None
    shapes = {
        "q": (heads, tq, 2), "keys": (kv_heads, tk, 2), "bQ": (heads, 2), "bK": (kv_heads, 2),
        "values": (kv_heads, tk, d_v), "bV": (kv_heads, d_v),
    }  # fmt: skip
    for name, shape in {**given, "key_shifts": shifts}.items():
        array = case.features[name] if name == "key_shifts" else getattr(case, name)
        assert array.shape == shapes.get(name, (kv_heads, tk, 2))
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        assert 0 not in array.strides
        assert np.array_equal(
            array, np.broadcast_to(np.array(filled(*shape)).reshape((-1, *array.shape[1:])), array.shape)
        )


def test_the_identity_is_never_stored() -> None:
    case = build(keys=filled(900, 2), published={"decimals": 1, "output": {"k": [0.5] * 900}})
    held = [getattr(case, field.name) for field in dataclasses.fields(case)]
    assert max(array.size for array in held if isinstance(array, np.ndarray)) == 1800
    assert case.d_v == 900


def test_published_numbers_are_nested_as_q_is() -> None:
    for q, printed in ((filled(2), filled(3)), (filled(4, 2), filled(4, 3)), (filled(2, 4, 2), filled(2, 4, 3))):
        case = build(q=q, published={"decimals": 0, "weights": {"q": printed}})
        assert case.published is not None
        assert np.array_equal(case.published.numbers["weights"]["q"].ravel(), np.ravel(printed))
        assert case.published.numbers["weights"]["q"].shape == case.scores_shape


def test_a_document_without_positions_is_refused_with_places() -> None:
    with pytest.raises(CasesRefusedError) as caught:
        build_case({**DOCUMENT, "bQ": [1, 2, 3], "scale": 0}, id="x", file="f.yaml")
    assert caught.value.problems == [
        Problem("f.yaml", 0, 0, "bQ: has 3 numbers, d_k is 2"),
        Problem("f.yaml", 0, 0, "scale: is the number 0, allowed are numbers above 0"),
    ]
    with pytest.raises(CasesRefusedError, match=r"^x: q\[1\]: is a number beyond float64"):
        build(q=[1, 10**5000])


def test_numpy_numbers_are_numbers() -> None:
    assert build(q=[np.float64(1.5), 2]).q.tolist() == [[[1.5, 2.0]]]


def test_what_is_accepted_is_valid_for_plain_jsonschema() -> None:
    """Arrays are judged by hand and kept from the schema; both must agree."""
    validator, draw = Draft202012Validator(resources.schema("case")), random.Random(0)  # noqa: S311
    odd = [
        [],
        [[]],
        1,
        "x",
        True,
        [1],
        [1, 0],
        [[1, 0]],
        [[1, 0]] * 3,
        [[[1, 0]] * 3],
        None,
        [1, "0"],
        [[[[1, 0]]]],
        {},
    ]
    accepted = refusals = 0
    for _ in range(1500):
        document = {**DOCUMENT, draw.choice([*DOCUMENT, "values", "bV", "scale"]): draw.choice(odd)}
        try:
            build_case(document, id="x")
        except CasesRefusedError:
            refusals += 1
        else:
            accepted += 1
            assert validator.is_valid(json.loads(json.dumps(document))), document
        if not validator.is_valid(document):
            with pytest.raises(CasesRefusedError):
                build_case(document, id="x")
    assert min(accepted, refusals) > 100


def test_a_large_case_is_read_by_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(5000, 64))
    text = "d_k: 64\nq: &zero " + str([0] * 64) + "\nbQ: *zero\nbK: *zero\nkeys:\n"
    [case] = load_cases([write("x.yaml", text + "".join(f"- {row}\n" for row in rows.tolist()))])
    assert np.array_equal(case.keys[0], rows)
