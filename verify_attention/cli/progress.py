"""A progress bar on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A bar on stderr, where that is a terminal, once its work takes longer than a second; gone when that ends."""

    def __init__(self, what: str, wanted: bool) -> None:
        self._what = what
        self._wanted = wanted and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """Say how far the work is."""
        if not self._wanted or time.monotonic() - self._start < 1:
            return
        if self._bar is None:
            self._bar = _bar(self._what, total)
        self._bar.update(self._bar.task_ids[0], completed=done)


def _bar(what: str, total: int) -> Progress:
    from rich.console import Console  # noqa: PLC0415 - most work takes less than a second
    from rich.progress import Progress  # noqa: PLC0415

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
