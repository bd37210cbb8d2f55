"""YAML 1.2 values, positions and limits."""

from __future__ import annotations

import json
import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from verify_attention import documents
from verify_attention.documents import read_documents


def read(text: str):
    found, problems = read_documents(text.encode(), "x.yaml")
    assert not problems, problems
    return [document.value for document in found]


def refuse(data: str | bytes) -> list[str]:
    _, problems = read_documents(data.encode() if isinstance(data, str) else data, "x.yaml")
    assert problems
    return [str(problem).removeprefix("x.yaml:") for problem in problems]


SCALARS = {
    "1": 1, "-0": 0, "+7": 7, "010": 10, "0o17": 15, "0x1F": 31, "0xff": 255, "1e-3": 0.001, "1e-12": 1e-12,
    "5e-324": 5e-324, "1e+16": 1e16, "1.5e3": 1500.0, "1.": 1.0, "-.5": -0.5, "+.5E1": 5.0, "1e400": math.inf,
    "-1e400": -math.inf, ".inf": math.inf, "+.INF": math.inf, "-.Inf": -math.inf, "9" * 400: math.inf,
    "-" + "9" * 5000: -math.inf, "0x" + "f" * 300: math.inf, "0" * 5000 + "1": 1, "123456789012345678901234567890":
    123456789012345678901234567890, "~": None, "null": None, "Null": None, "NULL": None, "": None, "true": True,
    "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False, "no": "no", "yes": "yes", "on": "on",
    "off": "off", "y": "y", "tRUE": "tRUE", "nULL": "nULL", "1_000": "1_000", "1:30": "1:30", "0b11": "0b11",
    "0X1F": "0X1F", "-0x1F": "-0x1F", "0o8": "0o8", "2026-11-30": "2026-11-30", "inf": "inf", "NaN": "NaN",
    "Infinity": "Infinity", ".iNF": ".iNF", "1e": "1e", "e3": "e3", "1.2.3": "1.2.3", "--1": "--1", "١": "١",
    '"1"': "1", "'1e-3'": "1e-3", '"null"': "null", '""': "", "'~'": "~",
}  # fmt: skip


@pytest.mark.parametrize("text", SCALARS, ids=lambda text: text[:20])
def test_scalars_follow_the_core_schema(text: str) -> None:
    for document in (f"a: {text}\n", f"a:\n- {text}\n", f"a: {text} # comment\n"):
        [value] = read(document)
        found = value["a"][0] if isinstance(value["a"], list) else value["a"]
        assert found == SCALARS[text]
        assert type(found) is type(SCALARS[text]) or abs(found) == 1


def test_nan_is_read_as_nan() -> None:
    assert all(math.isnan(value) for value in read("[.nan, .NaN, .NAN]")[0])


@pytest.mark.parametrize("scalar", ["1", "1.5", "-0.5", "2e-3", "+1", ".5", "010", "0x10", "1e400", "~", "true", "no"])
def test_a_row_is_read_as_its_scalars_are(scalar: str) -> None:
    """Rows of plain numbers take a way of their own."""
    apart = read(f"- {scalar}\n- 1\n")[0]
    for row in (
        f"[{scalar}, 1]",
        f"[ {scalar},1 ]",
        f"[{scalar},\n  1]",
        f"[{scalar}, 1] # [2, 3]",
        f"[\n{scalar},\n1\n]",
    ):
        assert read(f"a: {row}\n")[0]["a"] == apart
        assert [*map(type, read(f"a: {row}\n")[0]["a"])] == [*map(type, apart)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 'the row [1, 2]'", {"a": "the row [1, 2]"}),
        ('a: "[1, 2]"', {"a": "[1, 2]"}),
        ("a: x [1, 2]", {"a": "x [1, 2]"}),
        ("a: |\n  [1, 2]\nb: [3, 4]", {"a": "[1, 2]\n", "b": [3, 4]}),
        ("a: >-\n  [1, 2]\n  [3, 4]\n", {"a": "[1, 2] [3, 4]"}),
        ("a: x\n  [1, 2]\n", {"a": "x [1, 2]"}),
        ("# [1, 2]\na: [3, 4] # [5, 6]\n", {"a": [3, 4]}),
        ("a: &r [1, 2]\nb: *r", {"a": [1, 2], "b": [1, 2]}),
        ("{a: [1, 2], b: [[3], [4]]}", {"a": [1, 2], "b": [[3], [4]]}),
        ("a:\r\n- [1,\r\n  2]\r\n- [3, 4]\r\n", {"a": [[1, 2], [3, 4]]}),
        ("a: [1 2]", {"a": ["1 2"]}),
        ("a: [1, 2, ]", {"a": [1, 2]}),
        ("a: [1-2]", {"a": ["1-2"]}),
        ("a: []", {"a": []}),
        ("a: [1, [2, 3], x]", {"a": [1, [2, 3], "x"]}),
        ("&k key: 1\nb: *k\n", {"key": 1, "b": "key"}),
        ("a: &k key\n*k : 1\n", {"a": "key", "key": 1}),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}),
        ('"<<": 1\n', {"<<": 1}),
    ],
)
def test_texts_that_look_like_rows_stay_texts(text: str, value: object) -> None:
    assert read(text) == [value]


@pytest.mark.parametrize(
    "text", ["a: [1, 2] 3", "a: [1, 2] b: 3", "a: [1,\n2] - 3", "- [1,\n2]- 3", "[1, 2]: 3", "a: [1, 2]]"]
)
def test_what_is_no_yaml_stays_none(text: str) -> None:
    refuse(text)


PLACES = """\
# comment
a: 1
b:  [10, -2.5,
     3e1]
"ключ": {x: [[1, 2], [3, 4]], 'y': 🙂}
c:
  - {d: 5}
  - - 6
    - [7, x, 8]
e: &n [1, 2]
f: *n
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_places_are_those_that_an_editor_shows(newline: str, bom: str) -> None:
    [document], problems = read_documents((bom + PLACES.replace("\n", newline)).encode(), "x")
    assert not problems
    values = {
        (): (2, 1), ("a",): (2, 4), ("b",): (3, 5), ("b", 0): (3, 6), ("b", 1): (3, 10), ("b", 2): (4, 6),
        ("ключ",): (5, 9), ("ключ", "x", 1): (5, 22), ("ключ", "x", 1, 1): (5, 26), ("ключ", "y"): (5, 36),
        ("c",): (7, 3), ("c", 0, "d"): (7, 9), ("c", 1, 0): (8, 7), ("c", 1, 1, 1): (9, 11), ("c", 1, 1, 2): (9, 14),
        ("f", 1): (10, 11),
    }  # fmt: skip
    assert {path: document.places.value(path) for path in values} == values
    keys = {("b",): (3, 1), ("ключ",): (5, 1), ("ключ", "y"): (5, 31), ("c", 0, "d"): (7, 6), ("f",): (11, 1)}
    assert {path: document.places.key(path) for path in keys} == keys
    assert document.places.document() == (2, 1)


def test_documents_begin_at_their_markers() -> None:
    found, problems = read_documents(b"# one\na: 1\n...\n# two\n---\n# more\nb: 2\n--- {c: 3}\n", "x")
    assert not problems
    assert [(document.value, document.places.document()) for document in found] == [
        ({"a": 1}, (2, 1)), ({"b": 2}, (5, 1)), ({"c": 3}, (8, 1)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"a: caf\xe9\n", "1:7: document: byte 0xe9 is not UTF-8"),
        (b"\xef\xbb\xbfa: b\nc: \xff\n", "2:4: document: byte 0xff is not UTF-8"),
        ("a: 日本 \x01\n".encode(), "1:7: document: character U+0001 is not allowed"),
        (b"a: \x00\n", "1:4: document: character U+0000"),
        ("a: 1\n".encode("utf-16"), "1:1: document: byte 0xff is not UTF-8"),
        ("\ufeff\ufeffa: 1\n".encode(), "1:1: document: character U+FEFF"),
    ],
)
def test_bytes_that_are_no_text_are_placed(data: bytes, place: str) -> None:
    [problem] = refuse(data)
    assert problem.startswith(place)


def test_nesting_may_have_32_levels_and_not_33() -> None:
    assert read("[" * 32 + "]" * 32)
    assert read("[" * 31 + "[1]" + "]" * 31)
    for text in ("[" * 33 + "]" * 33, "[" * 32 + "[1]" + "]" * 32, "[" * 32 + "&x [1]" + "]" * 32):
        assert "32 levels" in refuse(text)[0]
    assert "nest" in refuse("[" * 100_000)[0]  # PyYAML's parser may be the first to refuse it
    assert read("a: &x " + "[" * 15 + "]" * 15 + "\nb: " + "[" * 16 + "*x" + "]" * 16)
    assert "32 levels" in refuse("a: &x " + "[" * 15 + "]" * 15 + "\nb: " + "[" * 17 + "*x" + "]" * 17)[0]
    assert "32 levels" in refuse("a: &x [1]\nb: " + "[" * 31 + "*x" + "]" * 31)[0]


def test_values_are_counted_over_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_VALUES", 12)
    assert read("a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")  # the mapping, the list and ten numbers
    assert read("a: &x [1, 2, x]\nb: *x\nc: {d: 1}")
    for text in (
        "a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]",
        "a: &x [1, 2, 3]\nb: *x\nc: {d: 1, e: 2, f: 3}",
        "--- 1\n" * 13,
    ):
        assert "more than 12 values" in refuse(text)[0]


def test_anchors_of_one_document_are_unknown_in_the_next() -> None:
    assert refuse("a: &x 1\n---\nb: *x\n") == ["3:4: b: alias *x names nothing: no &x stands before it in the document"]


def test_an_anchor_may_be_set_again() -> None:
    assert read("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == [{"a": 1, "b": 1, "c": 2, "d": 2}]


def test_problems_are_listed_up_to_a_limit() -> None:
    problems = refuse("".join(f"k: {number}\n" for number in range(3_000)))
    assert len(problems) == documents.MAX_PROBLEMS + 1
    assert "the rest was not read" in problems[-1]


def test_the_slow_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [PLACES, "a: [1,\n2] - 3", "a: !!str 1\na: 2\n<<: {}\n", *(f"a: {text}" for text in SCALARS)]
    fast = [read_documents(text.encode(), "x") for text in texts]
    monkeypatch.setattr(documents, "_LOADER", yaml.SafeLoader)
    slow = [read_documents(text.encode(), "x") for text in texts]
    for (found, problems), (also, same) in zip(fast, slow, strict=True):
        assert [document.value for document in found] == [document.value for document in also]
        assert len(problems) == len(same)


# Left out: what YAML forbids, or folds into blanks where JSON does not.
LETTERS = st.characters(exclude_categories=["Cc", "Cn", "Cs", "Zl", "Zp"], exclude_characters="\ufeff")
TEXTS = st.text(LETTERS | st.sampled_from('\n\t\x01"\\[]{},:# -'), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(JSON.filter(lambda value: value is not None), st.sampled_from([None, 0, 2]))
@settings(max_examples=150, deadline=None)
def test_json_is_read_as_json_reads_it(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False).replace("Infinity", "1e400")
    assert repr(read(text)) == repr([json.loads(text)])


PIECES = """[1, 2] | [1,
2] | [1, 2 | ] | [ | , | : | - | a | ' | " | # | { | } | *a | &a | ? | !t | [3] | <<: | -1 | 🙂 | %"""


ROWS = st.lists(st.sampled_from([*PIECES.split(" | "), " ", "\n", ": ", "|\n", "---\n", "\r\n", "\x85"]), max_size=14)


@given(ROWS)
@settings(max_examples=400, deadline=None)
def test_taking_rows_out_changes_nothing(parts: list[str]) -> None:
    text = "".join(parts)
    data = text.encode()
    found, problems = read_documents(data, "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents.number_rows, "take_out", lambda text, **_: (text, {}))
        also, same = read_documents(data, "x")
    assert repr([document.value for document in found]) == repr([document.value for document in also])
    assert problems == same


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_documents_or_problems(data: bytes) -> None:
    found, problems = read_documents(data, "x")
    assert found or problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)
