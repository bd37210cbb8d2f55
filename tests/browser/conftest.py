"""The page in a browser: skipped where Playwright or Chromium is missing, unless the environment says otherwise."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # what tests share

REQUIRED = "VERIFY_ATTENTION_BROWSER"
LIBRARIES = "playwright", "axe_playwright_python"


def chromium() -> str | None:
    """Return the path of a browser of this machine; Playwright's own is not downloaded."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser():
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    missing += [] if chromium() else ["chromium"]
    if missing and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{', '.join(missing)} missing, and {REQUIRED}=1 says that all is installed")
    if missing:
        pytest.skip(f"the page in a browser needs {', '.join(missing)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
