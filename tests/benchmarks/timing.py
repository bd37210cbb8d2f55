"""Whole processes against each other: interleaved rounds, medians, and ratios within a round."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Command = Sequence[str]


@dataclass(frozen=True)
class Sample:
    """One run of a process: wall seconds, seconds of CPU time, and the largest resident set in MiB."""

    wall: float
    cpu: float
    peak: float


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a timed process: bytecode may be written, so that later rounds find it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **changes}


def once(command: Command, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Sample:
    """Run a command to its end, with its output thrown away; a failure ends the benchmark."""
    sink = os.open(os.devnull, os.O_WRONLY)
    redirect = [(os.POSIX_SPAWN_DUP2, sink, 1), (os.POSIX_SPAWN_DUP2, sink, 2)]
    before = Path.cwd()
    os.chdir(cwd or before)
    try:
        start = time.perf_counter()
        child = os.posix_spawn(command[0], command, dict(env or environment()), file_actions=redirect)
        _, status, usage = os.wait4(child, 0)
        wall = time.perf_counter() - start
    finally:
        os.chdir(before)
        os.close(sink)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise SystemExit(f"exit {code}: {' '.join(command)}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def interleaved(
    commands: Mapping[str, Command], rounds: int, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, list[Sample]]:
    """Run every command once a round, after one round that does not count; each round starts with another command."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    names = list(commands)
    for name in names:
        once(commands[name], env, cwd)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            samples[name].append(once(commands[name], env, cwd))
    return samples


def median(samples: Sequence[Sample], what: str = "wall") -> float:
    """Return the median of one number of the samples."""
    return statistics.median(getattr(sample, what) for sample in samples)


def ratio(left: Sequence[Sample], right: Sequence[Sample], what: str = "wall") -> float:
    """Return the median of left/right, each within its own round."""
    return statistics.median(getattr(a, what) / getattr(b, what) for a, b in zip(left, right, strict=True))


COMPARED = "wall", "ratio", "CPU", "ratio"


def compared(mine: Sequence[Sample], own: Sequence[Sample]) -> list[str]:
    """Return the cells of `COMPARED` for one row: its own medians, and the ratios of `mine` to it."""
    return [
        f"{1e3 * median(own):.0f} ms",
        f"{ratio(mine, own):.2f}",
        f"{1e3 * median(own, 'cpu'):.0f} ms",
        f"{ratio(mine, own, 'cpu'):.2f}",
    ]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column to the left, the others to the right."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        first, *others = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        say("  ".join([first, *others]))
    say("")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tool(python: str) -> list[str]:
    """Return the command of the tool that is installed beside an interpreter."""
    script = Path(python).parent / "verify-attention"
    return [str(script)] if script.exists() else [python, "-m", "verify_attention"]
