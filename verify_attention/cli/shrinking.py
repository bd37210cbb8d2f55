"""What `run --shrink` prints: of each claim that broke, a small case that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify_attention.cli.choices import colored
from verify_attention.cli.progress import Bar

if TYPE_CHECKING:
    from verify_attention.loading import Loaded
    from verify_attention.model import Case, Finding, Report


def smallest(report: Report, loaded: Loaded, *, width: int, color: bool, progress: bool) -> str:
    """Return for each claim that broke a case made of the first that shows it; nothing is written."""
    from verify_attention.plugins import invariants  # noqa: PLC0415
    from verify_attention.reports.figures import again  # noqa: PLC0415
    from verify_attention.search import reduced, told  # noqa: PLC0415

    made = []
    for case, finding in _first_of_each(report):
        with Bar(f"making {case.id} smaller", progress) as bar:
            small = reduced(
                case,
                invariants()[finding.invariant],
                finding,
                loaded,
                loaded.precision,
                tolerance=report.tolerance,
                progress=bar.show,
            )
        made.append(colored(told(small, loaded.name, [again(case, finding, report)], width, of=case.id), color))
        if small.interrupted:
            raise KeyboardInterrupt
    return "".join(f"\n{text}" for text in made)


def _first_of_each(report: Report) -> Iterator[tuple[Case, Finding]]:
    """Yield of each claim that broke the first case that shows it."""
    seen: set[str] = set()
    for case, finding in report.findings():
        if finding.status in {"fail", "crashed"} and finding.invariant not in seen:
            seen.add(finding.invariant)
            yield case, finding
