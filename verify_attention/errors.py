"""What a user can do wrong, and what the program then answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """How a command ends. Usage stops before anything runs; otherwise the worst wins: 4 over 3 over 1."""

    OK = 0, "everything held"
    BROKEN = 1, "an invariant broke or stayed inconclusive"
    USAGE = 2, "usage, or no case found"
    REFUSED = 3, "a case could not be read"
    CRASHED = 4, "an implementation crashed, or a results file is invalid or could not be written"
    INTERRUPTED = 130, "Ctrl-C"

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Carry the meaning beside the number, so that help and README say the same."""
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code


@dataclass(frozen=True, order=True)
class Problem:
    """One reason why a case file is refused: where it is, what was found, what is allowed.

    `line` and `column` are 1-based, the column in characters; 0 where the file as a whole is meant.
    """

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{place}: {self.message}"


class VerifyAttentionError(Exception):
    """Anything that a user can mend. The text is for people: a line for each thing to mend."""

    exit_code = ExitCode.USAGE

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


class UsageError(VerifyAttentionError):
    """The command line asks for something that is not there."""


class LoadError(VerifyAttentionError):
    """What is to be put under test cannot be imported."""

    exit_code = ExitCode.CRASHED


class CasesRefusedError(VerifyAttentionError):
    """Case files with problems; all of them, sorted by file, line and column."""

    exit_code = ExitCode.REFUSED

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(*map(str, sorted(problems)))
        self.problems = sorted(problems)


class ResultsError(VerifyAttentionError):
    """A results file is invalid, or could not be written."""

    exit_code = ExitCode.CRASHED
