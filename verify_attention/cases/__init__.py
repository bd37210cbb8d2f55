"""Load cases: YAML files with positions become frozen cases, or everything that is wrong with them is listed."""

from __future__ import annotations

import hashlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify_attention import documents
from verify_attention.cases.building import build
from verify_attention.cases.files import find, read_bytes
from verify_attention.errors import CasesRefusedError, Problem, UsageError
from verify_attention.validation.messages import Flaw
from verify_attention.wording import join, place, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verify_attention.cases.files import CaseFile
    from verify_attention.documents import Document
    from verify_attention.model import Case

_NAMELESS = Flaw(("name",), "is missing; it is required where a file holds several documents", lacks=(("name",),))


def load_cases(
    paths: str | PathLike[str] | Sequence[str | Path] = (),
    *,
    shipped: str = "article",
    progress: Callable[[int, int], None] | None = None,
) -> list[Case]:
    """Return the cases that some paths mean, in the order of their files' paths, then of the documents.

    A path is a file, a folder or `file.yaml::name`; none means the `shipped` folder, by default the cases of the
    article. One may be given by itself. `progress` is called after each file with the number of files read and of all.

    Raises:
        UsageError: a path does not exist, a folder holds no case, or a file has no document of that name.
        CasesRefusedError: files have problems; all of all files are listed.

    """
    files, problems = find([str(paths)] if isinstance(paths, str | PathLike) else paths, shipped)
    cases: list[Case] = []
    places: list[tuple[int, int]] = []
    missing: list[str] = []
    for number, file in enumerate(files, 1):
        found, wrong = _read(file)
        problems += wrong
        missing += [] if wrong else _missing(file, [case for case, _ in found])
        for case, begins in found:
            if file.whole or _name(case) in file.documents:
                cases.append(case)
                places.append(begins)
        if progress:
            progress(number, len(files))
    problems += _clashes(cases, places)
    if missing:
        raise UsageError(*missing)
    if problems:
        raise CasesRefusedError(problems)
    return cases


def build_case(
    document: Mapping[str, Any],
    *,
    id: str,  # noqa: A002 - the name of the case's field
    file: str = "",
    sha256: str = "",
) -> Case:
    """Return the case that a document without positions describes, such as the inputs in a results file.

    Raises:
        CasesRefusedError: the document is no case; the problems' lines are 0.

    """
    case, flaws = build(dict(document), id=id, file=file, sha256=sha256)
    if case is None:
        raise CasesRefusedError([Problem(file or id, 0, 0, f"{place(flaw.path)}: {flaw.message}") for flaw in flaws])
    return case


def _read(file: CaseFile) -> tuple[list[tuple[Case, tuple[int, int]]], list[Problem]]:
    """Return a file's cases, each with where it begins, and everything that is wrong with the file."""
    shown = file.shown or file.name
    try:
        data = read_bytes(file.path)
    except OSError as error:
        return [], [Problem(shown, 0, 0, f"the file {error}")]
    read, problems = documents.read_documents(data, shown)
    digest = hashlib.sha256(data).hexdigest()
    cases: list[tuple[Case, tuple[int, int]]] = []
    for document in read:
        begins = document.places.document()
        name = document.value.get("name", "") if isinstance(document.value, dict) else None
        ident = f"{file.id}::{name}" if name and isinstance(name, str) else file.id
        case, flaws = build(document.value, id=ident, file=file.name, path=file.shown, line=begins[0], sha256=digest)
        if len(read) > 1 and name == "" and "name" not in document.value:
            flaws.append(_NAMELESS)
        elif case is not None:
            cases.append((case, begins))
        problems += _problems(shown, document, flaws)
        if len(problems) > documents.MAX_PROBLEMS + 1:  # one document's own cut is one more
            more = f"has more than {documents.MAX_PROBLEMS:,} problems; the rest is not listed"
            problems = [*problems[: documents.MAX_PROBLEMS], Problem(shown, 0, 0, more)]
            break
    return cases, problems


def _problems(file: str, document: Document, flaws: list[Flaw]) -> list[Problem]:
    """Return flaws with their positions; one that an alias shows in several places counts once."""
    found: dict[Any, Problem] = {}
    for flaw in flaws[: documents.MAX_PROBLEMS]:
        position = _position(document, flaw)
        problem = Problem(file, *position, f"{place(flaw.path)}: {flaw.message}")
        found.setdefault((position, flaw.message, flaw.lacks), problem)
    if len(flaws) > documents.MAX_PROBLEMS:
        more = f"document: has more than {documents.MAX_PROBLEMS:,} problems; the rest is not listed"
        found[None] = Problem(file, *document.places.document(), more)
    return list(found.values())


def _position(document: Document, flaw: Flaw) -> tuple[int, int]:
    if flaw.path in flaw.lacks:
        around = flaw.path[:-1]
        return document.places.key(around) if around else document.places.document()
    return document.places.key(flaw.path) if flaw.at_key else document.places.value(flaw.path)


def _name(case: Case) -> str:
    return case.id.partition("::")[2]


def _missing(file: CaseFile, cases: list[Case]) -> list[str]:
    """Return what to say of documents that were asked for by a name that the file does not hold."""
    names = [_name(case) for case in cases if _name(case)]
    held = f"it has {join(names)}" if names else "its document has no name"
    unknown = [name for name in file.documents if name not in names]
    return [f"{file.shown} has no document named {quote(name)}{suggest(name, names)}; {held}" for name in unknown]


def _clashes(cases: list[Case], places: list[tuple[int, int]]) -> list[Problem]:
    first: dict[str, Case] = {}
    problems = []
    for case, begins in zip(cases, places, strict=True):
        other = first.setdefault(case.id, case)
        if other is not case:
            taken = f"the id {case.id} is taken by {other.path or other.file}:{other.line}; ids must be unique in a run"
            problems.append(Problem(case.path or case.file, *begins, f"document: {taken}"))
    return problems
