"""The page of many cases: how long it takes to write, how large it is, and how soon a browser shows and filters it."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import timing

sys.path.insert(0, str(Path(__file__).parent.parent))

NAVIGATION = """() => {
  const [load] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return { "first paint": paint?.startTime ?? NaN, "load event": load.loadEventEnd };
}"""
# Until the frame after the change has been made.
FILTER = """(action) => new Promise((done) => {
  const start = performance.now();
  new Function(action)();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
FIELDS = "const form = document.getElementById('filters'), at = form.elements;"
TOLD = "form.dispatchEvent(new Event('input'));"
ACTIONS = {
    "filter by status": f"{FIELDS} at.status[3].checked = !at.status[3].checked; {TOLD}",
    "filter by text": f"{FIELDS} at.text.value = at.text.value ? '' : 'causal'; {TOLD}",
    "open a case": "const one = document.querySelector('details.case:not([open])'); one.open = true;",
}


def main() -> None:
    from browser.conftest import chromium
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, metavar="N", help="cases on the page (1000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="visits (5)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        facts = {"render": write(file, given.cases), "size": f"{file.stat().st_size / 1e6:.1f} MB"}
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        visits = [visit(browser, file) for _ in range(given.rounds)]
        browser.close()
    facts["elements"] = f"{visits[0].pop('elements'):,.0f}"
    facts |= {name: f"{statistics.median(one[name] for one in visits):.0f} ms" for name in visits[0]}
    timing.table([f"{given.cases} cases", f"median of {given.rounds}"], [[name, fact] for name, fact in facts.items()])


def write(file: Path, number: int) -> str:
    """Write the page of shipped cases, again and again until there are so many, and return how long rendering took."""
    import pages

    from verify_attention.cases import load_cases
    from verify_attention.engine import run
    from verify_attention.model import Report, Tolerance, UnderTest
    from verify_attention.pipeline import CORE
    from verify_attention.plugins import invariants
    from verify_attention.reports.page import render

    cases = load_cases([Path(__file__).parent.parent.parent / "cases"])
    judged = tuple(run(cases, CORE, list(invariants().values()), Tolerance()))
    report = pages.many(Report(UnderTest("core", "1"), Tolerance(), judged), number)
    start = time.perf_counter()
    page = render(report)
    took = time.perf_counter() - start
    file.write_text(page, encoding="utf-8")
    return f"{1e3 * took:.0f} ms"


def visit(browser, file: Path) -> dict[str, float]:
    """Open the page in a fresh context and return what it took, in ms, and its number of elements."""
    context = browser.new_context(bypass_csp=True)  # what acts for a person is no script of the page
    page = context.new_page()
    page.goto(file.as_uri(), wait_until="load")
    page.wait_for_timeout(200)
    elements = page.evaluate("document.querySelectorAll('*').length")
    told = page.evaluate(NAVIGATION)
    told |= {name: page.evaluate(FILTER, action) for name, action in ACTIONS.items()}
    context.close()
    return {"elements": elements, **told}


if __name__ == "__main__":
    main()
