"""The catalogue of other languages: nothing is missing, nothing is stale, and reasons of results can be told."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import messages
import pytest
from reasons import reasons
from rich.cells import cell_len

from verify_attention import languages
from verify_attention.boundaries import boundary_map
from verify_attention.cases import load_cases
from verify_attention.cli import explaining, main
from verify_attention.languages import Language
from verify_attention.model import BROKEN, DTYPES, Tolerance
from verify_attention.model.basics import Cause, Verdict
from verify_attention.pipeline import CORE
from verify_attention.plugins import features, implementations, invariants
from verify_attention.reports import article, boundaries, structures
from verify_attention.reports.figures import WORDS
from verify_attention.reports.lines import WHOLE, wrapped

PACKAGE = Path(languages.__file__).parent.parent
OWN = PACKAGE / "languages" / "ja.plugins.json"
REASONS: dict[str, str] = json.loads((PACKAGE / "languages" / "ja.reasons.json").read_text("utf-8"))
SAID: dict[str, str] = json.loads((PACKAGE / "languages" / "ja.json").read_text("utf-8"))
CATALOGUE: dict[str, str] = json.loads(OWN.read_text("utf-8")) | REASONS
JAPANESE = Language("ja")

# Words in Latin letters that stand in Japanese too: names, options and symbols.
NAMES = {
    *(word for name in (*invariants(), *features(), *implementations(), *DTYPES) for word in re.split(r"[-_\d]", name)),
    *re.findall(
        r"\w+", "Latin attention atanh bias decimals layer MultiheadAttention none normalise numpy output Query"
    ),
    *re.findall(r"\w+", "Query repeat Trace Value scores softmax tanh weights pip install verify exact base"),
    *re.findall(r"\w+", "holds breaks within rounding"),
}


def english(text: str) -> list[str]:
    """Return the words of a text that are not in Japanese, and no names either."""
    return [word for word in re.findall(r"[A-Za-z]{4,}", text) if word not in NAMES]


# What explain says


class Listening:
    """A language that notes what it is asked to say."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def __call__(self, message: str, **fields: object) -> str:
        """Say it in Japanese."""
        self.said.add(message)
        return JAPANESE(message, **fields)


@cache
def explained() -> frozenset[str]:
    """Return every message of every explanation, as it stands in the code."""
    listening: Any = Listening()
    explaining.claims({**invariants(), **features()}, listening)
    for name in (*invariants(), *features()):
        explaining.explanation(name, listening)
    for name in implementations():
        explaining.of_implementation(name, listening)
    return frozenset(listening.said)


FORMULAS = {invariant.formula for invariant in invariants().values()}
LIBRARIES_MAY_BE_MISSING = {"version {version}", "no: {how}"}


def missing(catalogue: Mapping[str, str]) -> set[str]:
    """Return what explanations say and the catalogue does not have; a formula without words needs no other words."""
    said = explained() | LIBRARIES_MAY_BE_MISSING
    return {one for one in said - catalogue.keys() - SAID.keys() if one not in FORMULAS or english(one)}


def test_everything_that_is_explained_is_in_the_catalogue() -> None:
    assert missing(CATALOGUE) == set()


def test_explanations_are_of_all_that_there_is() -> None:
    whole = {invariant.derivation for invariant in invariants().values()}
    whole |= {feature.why for feature in features().values()}
    whole |= {fault.mistake for invariant in invariants().values() for fault in invariant.faults}
    whole |= {each.reason for adapter in implementations().values() for each in adapter.divergences}
    assert whole <= explained()
    assert len(whole) > 200


@pytest.mark.parametrize(
    "key",
    [
        next(iter(invariants().values())).claim,
        features()["rope"].why,
        "the K bias is ignored",
        "common key shift",
        "acts on: {stage}, number {place} of {all}",
    ],
)
def test_an_entry_that_is_missing_is_found(key: str) -> None:
    assert missing({one: said for one, said in CATALOGUE.items() if one != key}) == {key}


@pytest.mark.parametrize("lang", ["en", "ja"])
def test_lines_of_explanations_are_no_longer_than_the_terminal_is_wide(lang: str) -> None:
    say, columns = Language(lang), 80
    texts = [explaining.explanation(name, say) for name in (*invariants(), *features())]
    texts += [explaining.of_implementation(name, say) for name in implementations()]
    for text in texts:
        lines = wrapped(text, columns).splitlines()
        assert [line for line in lines if cell_len(line) > columns and "://" not in line] == []
        assert [line for line in lines if line.lstrip()[:1] in set("、。）」，ーっょ")] == []
        assert squeezed("".join(lines)) == squeezed(text)


def squeezed(text: str) -> str:
    """Return a text without blanks."""
    return "".join(text.replace(WHOLE, "").split())


def test_a_line_is_filled_before_it_is_broken() -> None:
    made = wrapped("  - " + "共通のbiasは、重みを変えない。" * 20, 60).splitlines()
    assert len(made) > 5
    assert all(56 <= cell_len(line) <= 60 for line in made[:-1])
    assert {line[:4] for line in made} == {"  - ", "    "}


@pytest.mark.parametrize("name", ["key-bias-leaves-weights", "rope", "torch-sdpa", ""])
def test_explain_speaks_japanese(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["explain", *([name] if name else []), "--lang", "ja"])
    assert exited.value.code == 0
    words = r"(?<![\w-])(the|of|and|is|are|that|which|with|for|not|from|each|it|its)(?![\w-])"
    assert re.findall(words, capsys.readouterr().out) == []


@pytest.mark.parametrize(("locale", "lang"), [("ja_JP.UTF-8", "ja"), ("en_US.UTF-8", "en"), ("C", "en")])
def test_explain_follows_the_locale(
    locale: str, lang: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    with pytest.raises(SystemExit):
        main(["explain", "sink"])
    assert explaining.explanation("sink", Language(lang)).split("\n")[1] in capsys.readouterr().out


# What results say


def untold(texts: Iterable[str]) -> list[str]:
    """Return the reasons that are not told in Japanese, whole."""
    return [text for text in texts if JAPANESE.told(text) == text or english(JAPANESE.told(text))]


def test_every_reason_can_be_told_in_japanese() -> None:
    assert untold(reasons()) == []
    assert len(reasons()) > 2000


@pytest.mark.parametrize(
    "text",
    [
        "the case has no such thing",
        'not claimed: rope takes away "another trait"',
        "0 against 1, which differ by 1, at something else at head 0, row 0",
        "vacuous: bK is 0; and more",
    ],
)
def test_a_reason_that_cannot_be_told_is_found(text: str) -> None:
    assert untold([text]) == [text]


def used(catalogue: Mapping[str, str], texts: Iterable[str], patch: pytest.MonkeyPatch) -> set[str]:
    """Return the messages with which reasons are told: each is marked, and the marks are looked for."""
    keys = list(catalogue)
    marked = {key: f"{said}⟦{index}⟧" for index, (key, said) in enumerate(catalogue.items())}
    with patch.context() as inside:
        inside.setattr(languages, "_catalogue", lambda _code: marked)
        recognised = {key: said for key, said in marked.items() if key in REASONS or key not in CATALOGUE}
        inside.setattr(languages, "_reasons", lambda _code: recognised)
        languages._patterns.cache_clear()
        languages._told.cache_clear()
        made = "".join(JAPANESE.told(text) for text in texts)
    languages._patterns.cache_clear()
    languages._told.cache_clear()
    return {keys[int(index)] for index in re.findall(r"⟦(\d+)⟧", made)}


def stale(catalogue: Mapping[str, str], patch: pytest.MonkeyPatch) -> set[str]:
    """Return the messages that no explanation says, and with which no reason is told."""
    return (
        catalogue.keys()
        - explained()
        - LIBRARIES_MAY_BE_MISSING
        - used(catalogue, [*reasons(), "reproduced as far as float32 tells"], patch)
    )


def test_no_entry_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stale(CATALOGUE, monkeypatch) == set()


@pytest.mark.parametrize("key", ["nobody says this", "nor {this}; but {that}", "vacuous: {why}, of course"])
def test_a_stale_entry_is_found(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key in stale({**CATALOGUE, key: key}, monkeypatch)


def test_ten_thousand_reasons_are_told_in_no_time() -> None:
    text = 'not claimed: rope takes away "common key shift"; {} against 1, which differ by 1, at lse at head 0, row 0'
    texts = [text.format(number) for number in range(10_000)]
    start = time.process_time()
    told = [JAPANESE.told(text) for text in texts]
    assert time.process_time() - start < 5
    assert len(set(told)) == 10_000


def test_what_the_program_says_is_no_reason() -> None:
    """Its messages are short, and would stand for nearly any text."""
    for text in ("2 of 3", "the K bias on the weights", "a in b", "row 1", "expected: this"):
        assert JAPANESE.told(text) == text


def test_somebody_s_own_text_of_very_many_parts_stays_as_it_is() -> None:
    assert JAPANESE.told("a; " * 1500) == "a; " * 1500


def test_parts_are_told_one_by_one() -> None:
    told = JAPANESE.told("vacuous: bK is 0; limit 1e-12, rounding bound 3e-15; something else")
    assert told.split("; ")[1:] == [JAPANESE.told("limit 1e-12, rounding bound 3e-15"), "something else"]


# What reports and commands say

TITLES = {row.why for row in boundary_map(load_cases(shipped="boundaries"), CORE, Tolerance()) if row.stage == "–"}
LISTS = TITLES | {
    *WORDS.values(),
    *(*get_args(Verdict), *get_args(Cause), "exact"),
    *(f"{{count}} {word}" for word in (*BROKEN, *get_args(Verdict))),
    *(f"{{count}} {noun}" for noun in ("case", "cases", "equation", "equations")),
    *(*article.HEADINGS, *article.CONDITION_NAMES.values(), *article.SHIFTED_NAMES.values()),
    *(*structures.HEADINGS, *structures.REPRESENTATIONS.values(), structures.TITLE),
    *(*boundaries.HEADINGS, *boundaries.SHORT, "holds", "breaks", "depends", "rounding", "–"),
    *(f"{{count}} {kind}" for kind in ("vacuous", "not claimed", "not offered", "not shown", "not applicable")),
    *("invariant", "status", "checked", "deviation", "limit"),
    *("all as expected", "nothing was shown", "reproduced", "NOT all reproduced", "not compared"),
}


def test_everything_that_is_said_is_in_the_catalogue() -> None:
    assert (messages.said() | LISTS) - whole_catalogue().keys() - {""} == set()


def test_a_message_without_japanese_is_found(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(
        'say("brand {new}", new=1); say("x" if y else "z"); counted(2, "one", say)', "utf-8"
    )
    assert messages.said(tmp_path) == {"brand {new}", "x", "z", "{count} one", "{count} ones"}


def unsaid(catalogue: Mapping[str, str]) -> set[str]:
    """Return the messages that nothing says."""
    said = messages.said() | LISTS | explained() | REASONS.keys()
    return {key for key in catalogue if key not in said}


def test_no_message_is_stale() -> None:
    assert unsaid(SAID) == set()
    assert unsaid({**SAID, "nobody says {this}": ""}) == {"nobody says {this}"}


# The files


def fields(text: str) -> list[str]:
    """Return the names of the fields of a message."""
    return sorted(set(re.findall(r"\{(\w+)\}", text)))


def unlike(catalogue: Mapping[str, str]) -> list[str]:
    """Return the messages whose fields are others in Japanese, and those that are not in Japanese."""
    return [
        key
        for key, said in catalogue.items()
        if fields(key) != fields(said)
        or (key == said and english(re.sub(r"{\w+}", "", said)))
        or said != said.strip() != ""
    ]


def whole_catalogue() -> dict[str, str]:
    """Return what the language knows."""
    return {key: said for file in languages.files("ja") for key, said in pairs(file)}


def pairs(file: Path) -> list[tuple[str, str]]:
    """Return what a file says, key by key, also where a key stands there twice."""
    found: list[tuple[str, str]] = json.loads(file.read_text("utf-8"), object_pairs_hook=list)
    return found


def doubled(files: Iterable[Path]) -> set[str]:
    """Return the keys that stand in two files, or twice in one."""
    keys = [key for file in files for key, _ in pairs(file)]
    return {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else set()


def test_messages_have_the_same_fields_in_both_languages() -> None:
    assert unlike(whole_catalogue()) == []


@pytest.mark.parametrize(
    ("key", "said"), [("a {b} {c}", "{b}"), ("a {b}", "{b}{c}"), ("nothing there", "nothing there"), ("a", " b ")]
)
def test_other_fields_are_found(key: str, said: str) -> None:
    assert unlike({"{a}": "{a}", key: said}) == [key]


def test_no_key_stands_in_two_files(tmp_path: Path) -> None:
    files = languages.files("ja")
    assert OWN in files
    assert doubled(files) == set()
    other = tmp_path / "ja.other.json"
    other.write_text(json.dumps({"something": "何か", "the K bias is ignored": "無視"}), "utf-8")
    assert doubled([*files, other]) == {"the K bias is ignored"}
    other.write_text('{"something": "何か", "something": "何か"}', "utf-8")
    assert doubled([*files, other]) == {"something"}


def test_the_files_are_one_catalogue() -> None:
    known = whole_catalogue()
    assert {Language("ja")(key) for key in known if not fields(key)} == {known[key] for key in known if not fields(key)}
    assert len(known) > len(CATALOGUE)
