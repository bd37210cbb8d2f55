"""From paths on the command line to case files: which there are, their ids, their names in messages, their bytes."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from verify_attention import resources
from verify_attention.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_BYTES = 64 * 2**20
SUFFIXES = (".yaml", ".yml")


@dataclass
class CaseFile:
    """A file of cases. `name` is how results call it; `shown`, how the user did, and so messages do.

    `documents` are those asked for as `file.yaml::name`; `whole`: the others were asked for too.
    """

    path: Path
    id: str
    name: str
    shown: str
    documents: list[str] = field(default_factory=list)
    whole: bool = True

    def merge(self, other: CaseFile) -> None:
        """Ask for what the same file was named for again."""
        self.documents += other.documents
        self.whole = self.whole or other.whole


def find(paths: Sequence[str | Path], shipped: str = "article") -> tuple[list[CaseFile], list[Problem]]:
    """Return the files that some paths mean, sorted, each once; and the folders that cannot be read, as problems.

    No path means a folder of shipped cases, which are part of the package.

    Raises:
        UsageError: a path does not exist or is no YAML file, or a folder holds no case.

    """
    if not paths:
        return _shipped(shipped), []
    found: dict[str, CaseFile] = {}
    problems: list[Problem] = []
    for given in paths:
        path, document = _split(str(given))
        before = len(problems)
        files = list(_in_folder(path, problems)) if path.is_dir() else [_by_itself(path, document)]
        if not files and len(problems) == before:
            raise UsageError(f"{given} holds no case: no file below it ends in .yaml or .yml")
        for file in files:
            known = found.setdefault(os.path.realpath(file.path), file)
            if known is not file:
                known.merge(file)
    named = [file for file in found.values() if _printable(file.name, problems)]
    return sorted(named, key=lambda file: PurePath(file.name).parts), problems


def _shipped(folder: str) -> list[CaseFile]:
    root = resources.folder("cases")
    files = sorted(_walk(root / folder, (), []), key=lambda path: path.parts)
    below = [path.relative_to(root) for path in files]
    return [CaseFile(root / path, _id(path), resources.SHIPPED + path.as_posix(), shown="") for path in below]


def _split(given: str) -> tuple[Path, str | None]:
    """Return the path, and the document's name where one was given as `file.yaml::name`."""
    path, colons, document = given.rpartition("::")
    if not colons or _exists(given):
        path, colons = given, ""
    if not _exists(path):
        raise UsageError(f"{path or given} does not exist")
    if colons and Path(path).is_dir():
        raise UsageError(f"{given}: {path} is a folder; ::{document} must follow a file")
    return Path(path), document if colons else None


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _printable(name: str, problems: list[Problem]) -> bool:
    """Return whether a file's name is text that can stand in a message and in JSON; add a problem where it is not."""
    printable = not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in name)
    if not printable:
        problems.append(Problem(ascii(name)[1:-1], 0, 0, "the file's name has characters that are no text; rename it"))
    return printable


def _by_itself(path: Path, document: str | None) -> CaseFile:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path} is no case: the name of a case file ends in .yaml or .yml")
    documents = [] if document is None else [document]
    return CaseFile(path, path.stem, _name(path, path.parent), path.as_posix(), documents, whole=document is None)


def _in_folder(folder: Path, problems: list[Problem]) -> Iterator[CaseFile]:
    for path in _walk(folder, (), problems):
        yield CaseFile(path, _id(path.relative_to(folder)), _name(path, _absolute(folder).parent), path.as_posix())


def _walk(folder: Path, around: tuple[tuple[int, int], ...], problems: list[Problem]) -> Iterator[Path]:
    """Yield the case files below a folder. Links to folders are followed, but not into a folder around them."""
    try:
        status = folder.stat()
        entries = [(entry, entry.is_dir()) for entry in sorted(folder.iterdir())]
    except OSError as error:
        problems.append(Problem(_name(folder, folder.parent), 0, 0, f"the folder cannot be read: {error.strerror}"))
        return
    here = (status.st_dev, status.st_ino)
    for entry, is_folder in entries if here not in around else ():
        if is_folder:
            yield from _walk(entry, (*around, here), problems)
        elif entry.suffix in SUFFIXES:
            yield entry


def _id(path: PurePath) -> str:
    return path.with_suffix("").as_posix()


def _name(path: Path, parent: Path) -> str:
    """Return a path below the current directory, or else below `parent`: never absolute, never with `..`."""
    absolute = _absolute(path)
    for folder in (Path.cwd(), _absolute(parent)):
        if absolute.is_relative_to(folder):
            return absolute.relative_to(folder).as_posix()
    return absolute.name


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links, which gives files other names


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        OSError: it cannot be read, is no ordinary file, or is larger than 64 MiB; the text completes `the file …`.

    """

    def opener(name: str, flags: int) -> int:
        # Without O_NONBLOCK a named pipe would wait for somebody to write.
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        with open(path, "rb", opener=opener) as stream:
            status = os.fstat(stream.fileno())
            ordinary, size = stat.S_ISREG(status.st_mode), status.st_size
            data = stream.read(MAX_BYTES + 1) if ordinary and size <= MAX_BYTES else b""
    except OSError as error:
        raise OSError(f"cannot be read: {error.strerror}") from None
    if not ordinary:
        raise OSError("is not an ordinary file")
    if max(size, len(data)) > MAX_BYTES:
        raise OSError(f"has {max(size, len(data)):,} bytes, allowed are {MAX_BYTES:,} (64 MiB)")
    return data
