"""The page as people use it: filters, links, keyboard, schemes, paper, without scripts, and by the rules of axe."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from urllib.parse import quote

import pages
import pytest
from pages import JAPANESE

from verify_attention.cases import load_cases
from verify_attention.engine import run
from verify_attention.languages import ENGLISH
from verify_attention.model import Report, Tolerance, UnderTest
from verify_attention.pipeline import CORE
from verify_attention.plugins import invariants
from verify_attention.reports.page import render
from verify_attention.reports.page.markup import case_id, finding_id

BROKEN_CASE = "by hand/two-dimensions"
FAILED = finding_id(BROKEN_CASE, "key-bias-leaves-weights")


@pytest.fixture(scope="session")
def report():
    """Return a report of the article's cases, those of the map, and two by hand, one of which breaks in every way."""
    cases = [*load_cases((), shipped="article"), *load_cases((), shipped="boundaries")]
    judged = tuple(run(cases, CORE, list(invariants().values()), Tolerance()))
    first, second = pages.small_report().cases
    own = replace(first, case=replace(first.case, id=BROKEN_CASE)), second
    return Report(UnderTest("core", "1"), Tolerance(), (*judged, *own))


@pytest.fixture(scope="session")
def file(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report), encoding="utf-8")
    return path


@pytest.fixture
def visit(browser, file):
    """Open the page, and end with no error in its console and no request but for the file itself."""
    contexts, asked, complaints = [], [], []

    def opened(address="", path=file, **options):
        context = browser.new_context(**options)
        contexts.append(context)

        def watched(route):
            asked.append(route.request.url)
            route.continue_() if route.request.url.partition("#")[0] == path.as_uri() else route.abort()

        context.route("**/*", watched)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri() + address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.partition("#")[0].rpartition("/")[2] for url in asked} <= {"report.html", "other.html"}


def shown(page):
    """Return what the page says of the number of findings and cases that are shown."""
    words = page.locator("#shown").inner_text().replace(",", "").split()
    return int(words[0]), int(words[5])


def counted(report, status=None, invariant=None, feature=None, text=""):
    """Count findings and cases in the report itself, in the filter's sense."""
    by_case = Counter(
        case.id
        for case, finding in report.findings()
        if (status is None or finding.status in status)
        and (invariant is None or finding.invariant == invariant)
        and (feature is None or feature in case.features or (feature == "plain" and not case.features))
        and text in f"{case.id} {' '.join(case.tags)}"
    )
    return by_case.total(), len(by_case)


def box(page, word):
    return page.get_by_role("checkbox", name=word)


def eventually(page, check):
    """Wait until something is so. Playwright's own way evaluates texts inside the page, which the page forbids."""
    for _ in range(500):
        if check():
            return
        page.wait_for_timeout(10)
    pytest.fail(f"never so; {page.locator('#shown').inner_text()} at {page.url}")


def visible_cases(page):
    return page.locator("details.case:visible").count()


# --- what is there


def test_all_cases_are_there_and_closed(visit, report):
    page = visit()
    assert page.title() == "Report of verify-attention: core"
    assert page.locator("details.case").count() == len(report.cases) == visible_cases(page)
    assert page.locator("details[open]").count() == 0
    assert shown(page) == counted(report) == (sum(1 for _ in report.findings()), len(report.cases))


def test_the_guard_hears_errors_and_requests(browser, tmp_path):
    """The page's policy stops what is planted, and says so in the console."""
    path = tmp_path / "report.html"
    planted = render(pages.small_report()).replace(
        "</main>", "<script>alert(1)</script><img src='http://x.invalid/a.png'>"
    )
    path.write_text(planted, encoding="utf-8")
    context = browser.new_context()
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("dialog", lambda dialog: pytest.fail("a planted script runs"))
    page.goto(path.as_uri())
    assert len([text for text in heard if "Content Security Policy" in text]) == 2
    context.close()


def test_a_hostile_report_does_nothing(visit, tmp_path):
    path = tmp_path / "other.html"
    path.write_text(render(pages.hostile_report()), encoding="utf-8")
    page = visit(path=path)
    for summary in page.locator("details.case > summary").all():
        summary.click()
    opened = page.locator("tr[id^=case-]")
    eventually(page, lambda: opened.count() == len(pages.hostile_report().cases))
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, [onerror], [onclick]").count() == 0


# --- filters


@pytest.mark.parametrize("status", ["crashed", "fail", "inconclusive", "pass", "skipped"])
def test_a_status_leaves_its_findings(visit, report, status):
    page = visit()
    for box in page.locator("#filters [name=status]").all():
        box.set_checked(box.get_attribute("value") == status)
    assert shown(page) == counted(report, [status])
    assert visible_cases(page) == counted(report, [status])[1]


@pytest.mark.parametrize("status", [["pass"], ["pass", "fail"], ["skipped"]])
@pytest.mark.parametrize("invariant", ["key-bias-leaves-weights", "value-bias-passes-through"])
@pytest.mark.parametrize("feature", ["plain", "rope", "softcap"])
def test_an_address_filters(visit, report, status, invariant, feature):
    page = visit(f"#status={','.join(status)}&invariant={invariant}&feature={feature}")
    assert shown(page) == counted(report, status, invariant, feature)
    assert visible_cases(page) == counted(report, status, invariant, feature)[1]


def test_a_text_is_looked_for_in_ids_and_tags(visit, report):
    page = visit()
    for text in ("causal", "article", "BY HAND/", "nowhere"):
        page.get_by_label("Text in id or tags").fill(text)
        assert shown(page) == counted(report, text=text.lower())
    page.get_by_role("button", name="Show all").click()
    eventually(page, lambda: page.evaluate("location.hash") == "")
    assert shown(page) == counted(report)


def test_the_controls_make_an_address_that_leads_back(visit, report):
    page = visit()
    box(page, "SKIP").uncheck()
    page.get_by_label("Invariant", exact=True).select_option("weights-sum-to-one")
    page.get_by_label("Text in id or tags").fill("a ü&=#")
    page.get_by_label("Text in id or tags").fill("article")
    address = page.evaluate("location.hash")
    again = visit(address)
    expected = counted(report, ["crashed", "fail", "inconclusive", "pass"], "weights-sum-to-one", text="article")
    assert shown(page) == shown(again) == expected
    assert not box(again, "SKIP").is_checked()


def test_every_link_of_the_page_to_a_filter_leaves_what_it_counts(visit, report):
    page = visit()
    addresses = {}
    for link in page.locator("#features a, .counts a").all():
        words = link.inner_text().replace(",", "").split()
        number = words[-1] if words[-1].isdigit() else words[0]  # `PASS 3` in the map, `3 PASS` beside the verdict
        addresses[link.get_attribute("href")] = int(number)
    assert len(addresses) > 70
    for address, number in addresses.items():
        page.evaluate("(hash) => { location.hash = hash }", address)
        eventually(page, lambda which=0 if "status=" in address else 1, number=number: shown(page)[which] == number)


def test_open_cases_show_only_what_the_filter_leaves(visit, report):
    page = visit(f"#{case_id(BROKEN_CASE)}")
    assert page.locator("tr[id]:visible").count() == 5
    box(page, "PASS").uncheck()
    assert page.locator("tr[id]:visible").count() == 3
    box(page, "FAIL").uncheck()
    assert page.locator("tr[id]:visible").count() == 2
    for word in ("CRASH", "INCONCLUSIVE"):
        box(page, word).uncheck()
    assert page.locator("tr[id]:visible").count() == 0
    case = page.locator("details.case[open]")
    assert case.locator("[data-n]:visible").count() == 3  # what is skipped is unfolded
    assert case.locator("summary .s").first.is_visible()


# --- links


@pytest.mark.parametrize("invariant", ["key-bias-leaves-weights", "heads-do-not-talk", None])
def test_a_deep_link_opens_and_marks(visit, invariant):
    place = finding_id(BROKEN_CASE, invariant) if invariant else case_id(BROKEN_CASE)
    page = visit(f"#{place}")
    target = page.locator(f"[id='{place}']")
    target.wait_for(state="visible")
    assert page.locator("details.case[open]").count() == 1
    focused = page.evaluate("document.activeElement.id || document.activeElement.parentElement.id")
    assert focused == place
    assert target.evaluate(
        "(element) => { const box = element.getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight }"
    )
    if invariant:
        assert "marked" in target.get_attribute("class")


def test_a_deep_link_is_followed_on_the_open_page_and_against_the_filter(visit, report):
    page = visit("#status=skipped&text=article")
    page.get_by_role("link", name=f"key-bias-leaves-weights — {BROKEN_CASE}").click()
    page.locator(f"[id='{FAILED}'].marked").wait_for(state="visible")
    assert shown(page) == counted(report)


def test_going_back_takes_the_filter_away(visit, report):
    page = visit()
    page.locator("#features a").first.click()
    eventually(page, lambda: shown(page) != counted(report))
    page.go_back()
    eventually(page, lambda: shown(page) == counted(report))


def test_unicode_and_encoded_addresses_lead_to_their_cases(visit, tmp_path):
    path = tmp_path / "other.html"
    path.write_text(render(pages.hostile_report()), encoding="utf-8")
    for case in ("日本語/場合", "a--b", "a b", pages.HOSTILE):
        for address in (f"#{case_id(case)}", f"#{quote(case_id(case), safe='')}"):
            page = visit(address, path=path)
            page.locator(f"[id='{case_id(case)}'][open]").wait_for()


def test_each_finding_has_a_link_of_its_own(visit):
    page = visit(f"#{case_id(BROKEN_CASE)}")
    links = page.get_by_role("link", name="Link to this finding").all()
    assert len(links) == 5
    links[1].click()
    page.locator("tr.marked").wait_for()
    assert page.locator("tr.marked").get_attribute("id") == links[1].get_attribute("href")[1:]


def test_a_claim_opens_by_its_button_and_closes_with_escape(visit):
    page = visit(f"#{case_id(BROKEN_CASE)}")
    page.get_by_role("button", name="key-bias-leaves-weights").focus()
    page.keyboard.press("Enter")
    box = page.locator("#claim-key-bias-leaves-weights")
    assert box.is_visible()
    assert "A K bias shared by every key changes no weight." in box.inner_text()
    page.keyboard.press("Escape")
    assert not box.is_visible()


def test_a_command_is_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    command = page.locator("#broken .command").nth(1)
    command.get_by_role("button").click()
    page.locator("#said", has_text="Copied").wait_for(state="attached")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == command.locator("code").inner_text()
    assert copied == "verify-attention run cases/two.yaml --select key-bias-leaves-weights --exact --no-output"


def test_a_command_is_copied_where_the_clipboard_is_refused(visit):
    page = visit()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    page.locator("#broken .copy").first.click()
    page.locator("#said", has_text="opied").wait_for(state="attached")
    command = page.locator("#broken .command code").first.inner_text()
    assert page.evaluate("getSelection().toString()") == command  # at least it is selected


# --- keyboard


def test_with_the_keyboard_alone_from_the_verdict_to_a_finding(visit):
    page = visit()
    focused = "document.activeElement.textContent.trim()"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Skip to the verdict"
    seen = []
    while "key-bias-leaves-weights — by hand/two-dimensions" not in seen:
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert len(seen) < 40
    assert {"Verdict", "Cases", "Dark"} <= set(seen)
    page.keyboard.press("Enter")
    page.locator(f"[id='{FAILED}'].marked").wait_for(state="visible")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "key-bias-leaves-weights"  # the claim of this very finding
    page.keyboard.press("Enter")
    assert page.locator("#claim-key-bias-leaves-weights").is_visible()


def test_a_case_opens_with_the_keyboard(visit):
    page = visit()
    page.locator("details.case > summary").first.focus()
    page.keyboard.press("Enter")
    page.locator("details.case[open] table.figure").wait_for(state="visible")
    page.keyboard.press(" ")
    assert page.locator("details[open]").count() == 0


# --- schemes, paper, narrow, without scripts


PAPER = "getComputedStyle(document.body).backgroundColor"


def test_light_and_dark_follow_the_system_and_the_button(visit):
    light, dark = (visit(color_scheme=scheme) for scheme in ("light", "dark"))
    colours = [page.evaluate(PAPER) for page in (light, dark)]
    assert colours == ["rgb(252, 252, 251)", "rgb(21, 23, 27)"]
    light.get_by_role("button", name="Dark").click()
    assert light.evaluate(PAPER) == colours[1]
    light.get_by_role("button", name="Light").click()
    assert light.evaluate(PAPER) == colours[0]
    dark.get_by_role("button", name="Light").click()
    assert dark.evaluate(PAPER) == colours[0]


def test_on_paper_everything_is_open_and_no_control_is_there(visit, report):
    page = visit(f"#text={quote('by hand')}")
    page.emulate_media(media="print", color_scheme="dark")
    page.locator("details.case[open]").wait_for()
    assert page.locator("details.case:visible").count() == 1
    assert page.locator("details.case:visible details:not([open])").count() == 0
    assert page.locator("tr[id]:visible").count() == 5
    for control in ("#filters", "#theme", ".copy", "nav", ".skip"):
        assert page.locator(f"{control}:visible").count() == 0
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    eventually(page, lambda: page.locator("details[open]").count() == 0)
    assert page.pdf()[:4] == b"%PDF"


def test_without_scripts_everything_can_be_read(visit, report):
    page = visit(java_script_enabled=False)
    for control in ("#filters", "#theme", ".copy"):
        assert page.locator(f"{control}:visible").count() == 0
    assert page.locator("details.case").count() == len(report.cases)
    told = sum(finding.status != "skipped" for _, finding in report.findings())
    assert page.locator("tr[id^=case-]").count() == told
    assert page.locator("span[id^=case-]").count() == sum(1 for _ in report.findings()) - told
    page.locator("details.case > summary").last.click()
    page.locator("table.findings:visible").wait_for()
    assert page.locator("table.findings:visible").count() == 1
    assert page.get_by_text("0.25 against 0.125").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator("table.figure:visible").count() > 20


def test_nothing_is_wider_than_a_telephone(visit):
    page = visit(f"#{FAILED}", viewport={"width": 360, "height": 740})
    page.locator("tr.marked").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


# --- a thousand cases


def test_a_thousand_cases_are_folded_and_filtered(visit, report, tmp_path):
    path = tmp_path / "other.html"
    large = pages.many(report, 1000)
    path.write_text(render(large), encoding="utf-8")
    page = visit(path=path)
    assert page.locator("details.case").count() == 1000
    assert page.evaluate("document.querySelectorAll('*').length") < 15_000
    box(page, "PASS").uncheck()
    box(page, "SKIP").uncheck()
    assert shown(page) == counted(large, ["fail", "crashed", "inconclusive"])
    assert page.evaluate("document.querySelectorAll('*').length") < 15_000


# --- axe


def axe(page):
    """Return the rules of axe that a page breaks, with where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response
    return [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_axe_finds_nothing(visit, report, tmp_path, scheme, language):
    path = tmp_path / "other.html"
    path.write_text(render(report, JAPANESE if language == "ja" else ENGLISH), encoding="utf-8")
    page = visit(f"#{FAILED}", path=path, color_scheme=scheme)
    page.locator("tr.marked").wait_for()
    page.locator("details.case > summary").first.click()
    page.locator("details.skipped > summary").first.click()
    assert axe(page) == []
    page.locator("tr.marked button").click()
    assert axe(page) == []


def test_axe_finds_what_is_planted(visit):
    page = visit()
    page.evaluate("document.querySelector('.facts dd').style.color = 'rgb(200, 200, 200)'")
    page.evaluate("document.querySelector('h1').remove()")
    page.evaluate("document.querySelector('[for=filter-text]').remove()")
    assert {"color-contrast", "page-has-heading-one", "label"} <= {rule for rule, _ in axe(page)}
