"""The page, without a browser: escaped, self-contained, well-formed, the same each time, and complete."""

import hashlib
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pages
import pytest
from pages import HOSTILE, JAPANESE, TURNED, Tree

from verify_attention.boundaries import CLAIMS
from verify_attention.cases import load_cases
from verify_attention.engine import run
from verify_attention.model import Report, Tolerance, UnderTest
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants
from verify_attention.reports.figures import WORDS, figure
from verify_attention.reports.page import render
from verify_attention.reports.page.markup import case_id, el, encoded, finding_id, text
from verify_attention.reports.page.scale import WIDTH, position
from verify_attention.restored import restored
from verify_attention.results import document

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden" / "page.html"


@pytest.fixture(scope="module")
def article():
    cases = load_cases((), shipped="article")
    return Report(
        UnderTest("core", "1"), Tolerance(), tuple(run(cases, CORE, list(invariants().values()), Tolerance()))
    )


@pytest.fixture(scope="module")
def small():
    return render(pages.small_report())


# --- what somebody else wrote


@pytest.fixture(scope="module")
def hostile():
    return render(pages.hostile_report())


def test_nothing_of_a_hostile_report_becomes_markup(hostile):
    tree = Tree(hostile)
    assert tree.problems == []
    assert len(tree.all("script")) == 1
    assert tree.all("img") == []
    assert [key for _, attributes in tree.elements for key in attributes if key.startswith("on")] == []
    assert HOSTILE in "".join(tree.text)  # it is shown as the text that it is


def test_every_address_of_a_hostile_report_stays_on_the_page(hostile):
    addresses = [attributes["href"] for attributes in Tree(hostile).all("a")]
    assert len(addresses) > 20
    assert {address[0] for address in addresses} == {"#"}


def test_what_turns_text_around_is_written_out(hostile):
    assert not set(hostile) & set("\u202e\u2066")
    assert r"abc\u202edef\u2066" in hostile


def test_the_guard_sees_what_is_not_escaped():
    page = render(pages.small_report()).replace("The worked example", HOSTILE)
    assert len(Tree(page).all("script")) == 2
    assert Tree(page.replace("</summary>", "", 1)).problems != []


def test_an_element_escapes_all_but_markup():
    assert el("p", "<b>", el("i", "&"), title='"', hidden=True, lang=None) == (
        '<p title="&quot;" hidden>&lt;b&gt;<i>&amp;</i></p>'
    )
    assert text("a\u202e\nb") == r"a\u202e\nb"


# --- ids


def test_ids_are_unique_and_every_address_leads_somewhere(hostile, small):
    for page in (hostile, small):
        tree = Tree(page)
        ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
        assert [name for name, times in Counter(ids).items() if times > 1] == []
        assert all(re.fullmatch(r"[A-Za-z0-9/:._~-]+", name) for name in ids)
        targets = {attributes["href"][1:] for attributes in tree.all("a")}
        assert {target for target in targets if "=" not in target} <= set(ids)
        assert {
            attributes["popovertarget"] for attributes in tree.all("button") if "popovertarget" in attributes
        } <= set(ids)


def test_different_names_have_different_ids():
    names = ["a", "a-", "a--", "a--b", "a-b", "a b", "a~20~b", "a/b", "a.b", "ä", "a\u0308", "Ａ", "", "\ud800", "日本"]
    assert len({encoded(name) for name in names}) == len(names)
    # Whose finding it is can be read in one way.
    assert finding_id("a", "b") != case_id("a--b")
    assert finding_id("a-", "b") != finding_id("a", "-b")
    assert "--" not in "".join(encoded(name) + "." for name in names)


def test_an_id_is_what_people_would_write():
    assert case_id("boundaries/causal::lower-right") == "case-boundaries/causal::lower-right"


# --- one file, whatever else is there


def test_the_page_loads_nothing(hostile, small):
    for page in (hostile, small):
        tree = Tree(page)
        for name, attributes in tree.elements:
            assert name not in {
                "link",
                "img",
                "iframe",
                "object",
                "embed",
                "base",
                "video",
                "audio",
                "source",
                "form action",
            }
            assert not attributes.keys() & {
                "src",
                "srcset",
                "action",
                "formaction",
                "background",
                "style",
                "poster",
                "data",
            }
        assert "url(" not in page
        assert "@import" not in page
        assert (
            re.findall(r"(?:fetch|XMLHttpRequest|WebSocket|import\(|sendBeacon|eval)\(?", page.partition("<body>")[0])
            == []
        )


def test_its_policy_allows_its_own_style_and_script_only(small):
    policy = next(each["content"] for each in Tree(small).all("meta") if "http-equiv" in each)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for name in ("style", "script"):
        content = re.search(rf"<{name}>(.*?)</{name}>", small, re.DOTALL)[1]
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"


def test_the_page_is_well_formed_with_scripts_and_without(small, article):
    for page in (small, render(article)):
        assert page.startswith("<!DOCTYPE html>")
        assert Tree(page).problems == []
        assert Tree(page, scripts=True).problems == []
        names = Counter(name for name, _ in Tree(page, scripts=True).elements)
        assert [names[name] for name in ("h1", "header", "nav", "main", "footer", "title")] == [1] * 6


def test_the_same_report_gives_the_same_bytes(article):
    assert render(article) == render(article)
    seeds = []
    for seed in ("1", "2"):
        code = (
            "import sys, pages; from verify_attention.reports.page import render\n"
            "sys.stdout.buffer.write(render(pages.small_report()).encode())"
        )
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
        seeds.append(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert seeds[0] == seeds[1] == render(pages.small_report()).encode()


def test_a_stored_run_gives_the_page_of_the_run(article):
    stored = json.loads(json.dumps(document(article)))
    assert render(restored(stored)) == render(article)


# --- it says what the report says


def rows(page):
    """Return the text of every finding's row, by its id."""
    found = re.findall(r'<tr id="(case-[^"]+)"[^>]*>(.*?)</tr>', page, re.DOTALL)
    return {place: "".join(Tree(row).text) for place, row in found}


def test_every_finding_is_there_with_its_numbers(article, small):
    for report, page in ((article, render(article)), (pages.small_report(), small)):
        told = rows(page)
        for case, finding in report.findings():
            place = finding_id(case.id, finding.invariant)
            if finding.status == "skipped":
                assert f'<span id="{place}"' in page
                continue
            row = told[place]
            assert WORDS[finding.status] in row
            for number in (finding.deviation, finding.limit, finding.rounding_bound):
                assert figure(number) in row
            assert finding.reason is None or finding.reason in row


def test_the_article_s_numbers_are_shown(small):
    shown = "".join(Tree(small).text)
    for number in ("0.707107", "2.82843", "2.12132", "1.41421", "0.575975", "0.445808", "0.108383"):
        assert number in shown
    assert "Largest difference of weights: 0.0 between no bias and K bias, 0.0 between Q bias and both biases." in shown


def test_what_broke_comes_first_with_both_sides_and_a_command(small):
    part = re.search(r'<section id="broken".*?</section>', small, re.DOTALL)[0]
    shown = "".join(Tree(part).text)
    assert [attributes["href"] for attributes in Tree(part).all("a")] == [
        "#case-article/two-dimensions--value-bias-passes-through",
        "#case-article/two-dimensions--key-bias-leaves-weights",
        "#case-article/two-dimensions--lse-moves-with-the-key-bias",
    ]
    for words in (
        "ValueError: shapes",
        "Left side0.25",
        "Right side0.125",
        "weights[k] at head 0, row 0, key 2",
        "implementation: proved: the sides are the same rational numbers",
        "expect: {lse-moves-with-the-key-bias: within-rounding}",
        "verify-attention run cases/two.yaml --select key-bias-leaves-weights --exact --no-output",
    ):
        assert words in shown


def test_a_page_on_which_nothing_broke_has_no_such_part(article):
    page = render(article)
    assert 'id="broken"' not in page
    assert "All as expected: 73 equations really checked in 5 cases." in page  # the README's run


def test_many_crashes_of_one_kind_are_told_once():
    report = pages.small_report()
    crash = report.cases[0].findings[4]
    entries = [replace(entry, findings=(crash,)) for entry in report.cases]
    part = re.search(r'<section id="broken".*?</section>', render(replace(report, cases=tuple(entries))), re.DOTALL)[0]
    assert part.count("ValueError: shapes") == 1
    assert "… and 1 more, or alike" in part


def test_a_pass_against_the_mathematics_is_told_among_what_broke():
    report = pages.small_report()
    opinion = pages.Opinion("refuted", 0.5, 1e-12, None, "the sides differ")
    entry = replace(report.cases[0], findings=(pages.found("weights-sum-to-one", opinion=opinion),))
    page = render(replace(report, cases=(entry,)))
    assert "1 finding is not as its case expects: 1 equation really checked in 1 case." in page
    assert "passes, against the mathematics" in page


def test_claims_that_were_never_checked_are_said_to_be(small):
    part = re.search(r"<h3>Claims that were never really checked: 4</h3>.*?</section>", small, re.DOTALL)[0]
    for name in ("heads-do-not-talk", "rotation-depends-on-distance", "softmax-ignores-a-row-shift"):
        assert name in part
    assert "scores-follow-the-formula" not in part


def test_the_map_counts_statuses_and_what_was_observed(small):
    part = re.search(r'<section id="features".*?</section>', small, re.DOTALL)[0]
    lines = ["".join(Tree(row).text) for row in re.findall(r"<tr>(.*?)</tr>", part)]
    assert lines == [
        f"featurecases{''.join(CLAIMS.values())}",
        "plain attention1FAIL 1breaks 1not askedCRASH 1",
        "key_shifts1PASS 1breaks 1not askedSKIP 1",
    ]
    assert "#status=fail&amp;invariant=key-bias-leaves-weights&amp;feature=plain" in part


def test_large_cases_say_their_size_and_what_is_stored():
    page = render(replace(pages.small_report(), cases=pages.large_case()))
    shown = "".join(Tree(page).text)
    assert "1 head × 1 query row × 3 keys: results.json has the shape, smallest, largest, mean and digest" in shown
    assert "no biasscores-1.52.50.25" in shown
    assert "too many for bars; results.json has every number" in shown
    assert "Largest difference of weights: 0.5 between no bias and K bias, 0.0 between" in shown
    assert "The implementation showed no scores, weights or output of this case." in shown
    assert "Nothing was shown" in shown


def test_hidden_and_overflowed_scores_have_a_mark_and_a_word():
    report = pages.small_report()
    shown = {name: {"scores": np.array([[[1.0, -np.inf, np.nan]]])} for name in pages.SCORES}
    page = render(replace(report, cases=(replace(report.cases[0], conditions=shown),)))
    assert page.count('<path class="x" d="M15 ') == 4
    assert "1   −∞  NaN" in page


def test_only_the_first_rows_of_many_are_drawn():
    report = pages.small_report()
    case = pages.example(q=np.ones((2, 4, 2)), bQ=np.ones((2, 2)))
    shown = {name: {"scores": np.zeros((2, 4, 3))} for name in pages.SCORES}
    page = render(replace(report, cases=(replace(report.cases[0], case=case, conditions=shown),)))
    assert page.partition("<body>")[2].count('scope="rowgroup"') == 6
    assert "The first 6 rows of 2 heads × 4 query rows × 3 keys; results.json has all." in page


def test_an_exact_zero_has_a_ring_and_a_word_and_what_is_near_zero_a_bar(small):
    told = dict(re.findall(r'<tr id="case-article/two-dimensions--([^"]+)"[^>]*>(.*?)</tr>', small, re.DOTALL))
    zero, near = told["weights-sum-to-one"], told["scores-follow-the-formula"]
    assert "0.0 <small>exactly</small>" in zero
    assert "<circle" in zero
    assert "<circle" not in near
    assert "exactly" not in near
    assert f'd="M0 5h{position(5.6e-17):g}v6H0z"' in near


def test_each_case_has_the_statuses_of_its_findings_by_the_order_of_the_invariants(article):
    tree = Tree(render(article), scripts=True)
    order = [each["value"] for each in tree.all("option") if each["value"] in invariants()]
    kept = [each["data-f"] for each in tree.all("details")]
    told = [{finding.invariant: finding.status[0] for finding in entry.findings} for entry in article.cases]
    assert kept == ["".join(statuses[name] for name in order) for statuses in told]
    assert len(set(kept)) > 1


def test_the_scale_is_logarithmic_and_ends():
    assert position(1e-18) == 0
    assert position(1e-8) == WIDTH / 2
    assert position(100) == WIDTH
    assert position(1e300) == position(np.inf) == position(np.nan) == WIDTH
    assert position(0) == position(1e-25) == 0


# --- words


def test_the_japanese_page_is_japanese():
    page = render(pages.small_report(), JAPANESE)
    tree = Tree(page)
    assert tree.all("html") == [{"lang": "ja"}]
    assert tree.problems == []
    shown = "".join(tree.text)
    for words in (
        "判定結果のうち3件が期待どおりではありません",
        "不合格",
        "共通K biasのみ追加",
        "一度も実際には検証されていない主張：4件",
    ):
        assert words in shown
    for words in ("Findings", "Invariants", "really checked", "holds"):
        assert words not in shown
    assert Counter(name for name, _ in tree.elements) == Counter(
        name for name, _ in Tree(render(pages.small_report())).elements
    )


def test_the_page_is_the_golden_one(small):
    """All but style and script; a change that is meant is written with UPDATE_GOLDEN=1."""
    body = "<!DOCTYPE html>\n" + small[small.index("<body>") :].replace("><", ">\n<")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(body, encoding="utf-8")
    assert body == GOLDEN.read_text(encoding="utf-8"), "if that is meant: UPDATE_GOLDEN=1 pytest tests/test_page.py"


def test_render_of_a_thousand_cases_folds_them(article):
    page = render(pages.many(article, 1000))
    folded = Tree(page, scripts=True)
    assert len(folded.all("details")) == 1000
    assert len(folded.elements) < 12_000
    assert TURNED not in page
