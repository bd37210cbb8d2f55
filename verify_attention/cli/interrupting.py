"""Ctrl-C: one that Python ignores comes again; during a run the first shows what is known, the second ends at once."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from verify_attention.errors import ExitCode

Thing = TypeVar("Thing")

LATER = 0.01
"""Seconds after which a Ctrl-C that was ignored comes again: what ignored it has ended by then."""


@contextmanager
def none_lost() -> Iterator[None]:
    """Let a Ctrl-C come again that came where Python ignores exceptions: `__del__`, or a weak reference's callback."""
    before, here = sys.unraisablehook, threading.get_ident()

    def heeded(ignored: sys.UnraisableHookArgs) -> None:
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            before(ignored)
            return
        if signal.getsignal(signal.SIGINT) is _at_once:  # the user's first, still
            signal.signal(signal.SIGINT, _first)
        again = threading.Timer(LATER, _interrupt, (here,))
        again.daemon = True
        again.start()

    sys.unraisablehook = heeded
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def twice_ends_at_once() -> Iterator[None]:
    """Let a second Ctrl-C end the program where it stands. A handler that is not Python's own stays as it is."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, _first)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def _interrupt(thread: int) -> None:
    """Interrupt the thread that commands run in, also where it waits, as far as the system can."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(thread, signal.SIGINT)


def _first(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _at_once)
    raise KeyboardInterrupt


def _at_once(_number: int, _frame: FrameType | None) -> None:
    """End without cleaning up; other processes of ours, which ignore Ctrl-C, would wait for work for ever."""
    parallel = sys.modules.get("multiprocessing")
    for process in parallel.active_children() if parallel else []:
        process.kill()
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\x1b[?25h\n")  # a progress bar has hidden the cursor
    os._exit(ExitCode.INTERRUPTED)


def until_interrupted(things: Iterable[Thing]) -> tuple[tuple[Thing, ...], bool]:
    """Return what there is before a Ctrl-C, and whether there was one."""
    found: list[Thing] = []
    try:
        found.extend(things)
    except KeyboardInterrupt:
        return tuple(found), True
    return tuple(found), False
