"""The table of structures: what MHA, MQA, GQA and MLA keep of each token, counted by hand."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from verify_attention import resources
from verify_attention.cases import build_case, load_cases
from verify_attention.cli import main
from verify_attention.languages import ENGLISH, Language
from verify_attention.reports import structures

# Four query heads of width 6, two tokens that ask five. MHA stores 4 keys and 4 values of 6 numbers for each token,
# MQA one of each, GQA two of each; MLA a latent of 3 and a position part of 2.
BY_HAND = {"MHA": (48, 240), "MQA": (12, 60), "GQA": (24, 120), "MLA": (5, 25)}
WORDS = {
    "en": [
        "4 independent heads",
        "1 shared pair",
        "2 shared pairs (1 <= g <= h)",
        "compressed latent and a position part",
    ],
    "ja": ["4 個の独立ヘッド", "1 組を共有", "2 組を共有（1 ≤ g ≤ h）", "圧縮した潜在表現と位置の成分"],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 0
    return capsys.readouterr().out


def tables(*options: str, capsys: pytest.CaptureFixture[str]) -> str:
    return call("tables", "--of", "structures", *options, capsys=capsys)


def shipped() -> dict[str, Any]:
    return {case.id.rpartition("/")[2]: case for case in load_cases((), shipped="structures")}


def test_the_shipped_structures_are_of_equal_size() -> None:
    cases = shipped()
    assert set(cases) == {"mha", "mqa", "gqa", "mla"}
    assert {case.scores_shape for case in cases.values()} == {(4, 2, 5)}
    assert {(case.d_k, case.d_v) for case in cases.values()} == {(6, 6)}
    assert {name: len(case.keys) for name, case in cases.items()} == {"mha": 4, "mqa": 1, "gqa": 2, "mla": 4}


@pytest.mark.parametrize("lang", ["en", "ja"])
def test_numbers_and_words_are_those_of_the_source(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = tables("--format", "csv", "--lang", lang, capsys=capsys)
    headings, *rows = csv.reader(io.StringIO(text))
    assert headings == list(map(Language(lang), structures.HEADINGS))
    assert [row[0] for row in rows] == list(BY_HAND)
    assert [(int(row[3]), int(row[4])) for row in rows] == list(BY_HAND.values())
    assert [row[1] for row in rows] == ["4"] * 4
    assert [row[2] for row in rows] == WORDS[lang]


def test_equal_widths_cost_what_the_source_says() -> None:
    """2·B·T·g·Dh with B = 1."""
    for name, pairs in (("mha", 4), ("mqa", 1), ("gqa", 2)):
        found = structures.structure_of(shipped()[name])
        assert found.in_all == 2 * 1 * 5 * pairs * 6
        assert found.kv_heads == pairs


def test_the_japanese_headings_are_the_source_s(capsys: pytest.CaptureFixture[str]) -> None:
    text = tables("--format", "markdown", "--lang", "ja", capsys=capsys)
    assert "| 構造 | Query ヘッド | K/V の表現 |" in text
    assert "| MQA | 4 | 1 組を共有 | 12 | 60 |" in text


def test_every_form_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("rich", "markdown", "csv", "latex"):
        text = tables("--format", form, capsys=capsys)
        for name, numbers in BY_HAND.items():
            line = next(line for line in text.splitlines() if re.search(rf"{name}\b.*\d", line))
            assert all(str(number) in line for number in numbers), (form, line)
    assert r"1 $\le$ g $\le$ h" in text
    assert r"\begin{tabular}{lllll}" in text


def test_unequal_widths_count_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys of 3 and values of 2 numbers, in two key-value heads: 10 numbers of each of three tokens."""
    text = "d_k: 3\nq: [[[1, 0, 0]], [[1, 0, 0]], [[1, 1, 0]], [[1, 0, 1]]]\nbQ: [0, 0, 0]\nbK: [0, 0, 0]\n"
    text += f"keys: {[[[1, 0, 0]] * 3] * 2}\nvalues: {[[[1, 0]] * 3] * 2}\n"
    Path("a.yaml").write_text(text, encoding="utf-8")
    Path("b.yaml").write_text(text, encoding="utf-8")
    printed = tables("a.yaml", "b.yaml", "--format", "csv", capsys=capsys)
    words = "4,2 shared pairs (1 <= g <= h),10,30"
    assert printed.splitlines()[1:] == [f'"GQA, a",{words}', f'"GQA, b",{words}']
    assert tables("a.yaml", "b.yaml", "-k", "a", "--format", "csv", capsys=capsys).splitlines()[1:] == [f"GQA,{words}"]


def test_a_latent_without_positions_is_only_a_latent() -> None:
    document = {"d_k": 1, "q": [1], "keys": [[2], [6]], "values": [[1], [3]], "bQ": [0], "bK": [0]}
    case = build_case({**document, "latent": {"c": [[1], [3]], "W_UK": [[[2]]], "W_UV": [[[1]]]}}, id="x")
    assert structures.table([case], ENGLISH).rows == (("MLA", "1", "compressed latent", "1", "2"),)


def test_the_article_s_tables_are_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    article = call("tables", "--format", "markdown", capsys=capsys)
    assert call("tables", "--of", "article", "--format", "markdown", capsys=capsys) == article
    assert "softmax weights" in article


def test_the_structures_are_part_of_the_wheel() -> None:
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '"cases" = "verify_attention/data/cases"' in text
    assert (resources.folder("cases") / "structures" / "mla.yaml").is_file()
