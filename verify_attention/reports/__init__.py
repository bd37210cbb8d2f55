"""Forms in which a report is shown, one a file; each has a function that returns text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from verify_attention.languages import ENGLISH, Language

if TYPE_CHECKING:
    from verify_attention.model import Report

FORMS = ("table", "markdown", "junit", "github", "html")


def render(form: str, report: Report, say: Language = ENGLISH, **options: object) -> str:
    """Return a report in one of the forms; `options` are those of the form's own `render`."""
    module = import_module(f"{__name__}.{'page' if form == 'html' else form}")
    text: str = module.render(report, say, **options)
    return text
