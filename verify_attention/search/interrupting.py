"""Ctrl-C that is not lost: Hypothesis asks Python's collector to call it back, and what is raised there is ignored.

So nothing is raised in its code, which soon comes back to ours.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Progress = Callable[[int, int], None]


@contextmanager
def heeding(progress: Progress) -> Iterator[Progress]:
    """Yield a progress that raises KeyboardInterrupt where there was a Ctrl-C before.

    A handler that is not Python's own stays as it is.
    """
    came = False

    def note(_number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        if frame is None or not str(frame.f_globals.get("__name__")).startswith("hypothesis."):
            raise KeyboardInterrupt

    def heeded(done: int, total: int) -> None:
        if came:
            raise KeyboardInterrupt
        progress(done, total)

    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield heeded
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)
