"""Results files, as commands read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify_attention.errors import ResultsError

if TYPE_CHECKING:
    from verify_attention.model import Report

MOST_PROBLEMS = 20


def read_results(path: Path) -> dict[str, Any]:
    """Read a results file and check it against its schema.

    Raises:
        UsageError: there is no such file.
        ResultsError: it is not strict JSON, or does not satisfy the schema.

    """
    from verify_attention import files, validation, wording  # noqa: PLC0415

    made = files.read_json(path)
    if not validation.valid(made, "results"):
        found = validation.problems(made, "results")
        lines = [f"{path}: {wording.place(place)}: {message}" for place, message in found[:MOST_PROBLEMS]]
        more = [f"{path}: … and {len(found) - MOST_PROBLEMS} more"] if len(found) > MOST_PROBLEMS else []
        raise ResultsError(*lines, *more)
    document: dict[str, Any] = made
    return document


def stored_report(path: Path) -> Report:
    """Return what a results file says, which is checked against its schema, and not judged.

    Raises:
        UsageError: there is no such file.
        ResultsError: it is no results file.

    """
    from verify_attention.restored import restored  # noqa: PLC0415

    made = read_results(path)
    try:
        return restored(made)
    except ResultsError as error:
        raise ResultsError(*(f"{path}: {line}" for line in error.lines)) from None
