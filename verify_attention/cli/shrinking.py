"""What `run --shrink` prints: of each claim that broke, a small case that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify_attention.cli.choices import colored
from verify_attention.cli.progress import Bar

if TYPE_CHECKING:
    from verify_attention.loading import Loaded
    from verify_attention.model import Case, Finding, Report


def smallest(report: Report, loaded: Loaded, *, width: int, color: bool, progress: bool) -> Iterator[str]:
    """Yield for each claim that broke a case made of the first that shows it; nothing is written.

    Raises:
        KeyboardInterrupt: Ctrl-C, after what is known.

    """
    from verify_attention.plugins import invariants  # noqa: PLC0415
    from verify_attention.reports.figures import again  # noqa: PLC0415
    from verify_attention.search import reduced, told  # noqa: PLC0415

    for case, finding in _first_of_each(report):
        claim = invariants()[finding.invariant]
        with Bar(f"making {case.id} smaller", progress) as bar:
            small = reduced(
                case, claim, finding, loaded, loaded.precision, tolerance=report.tolerance, progress=bar.show
            )
        text = told(small, loaded.name, [again(case, finding, report)], width, of=case.id)
        yield f"\n{colored(text, color)}"
        if small.interrupted:
            raise KeyboardInterrupt


def _first_of_each(report: Report) -> Iterator[tuple[Case, Finding]]:
    """Yield of each claim that broke the first case that shows it."""
    seen: set[str] = set()
    for case, finding in report.findings():
        if finding.status in {"fail", "crashed"} and finding.invariant not in seen:
            seen.add(finding.invariant)
            yield case, finding
