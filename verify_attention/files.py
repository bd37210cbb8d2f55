"""Write a file so that it is either the old one or the new one, and read JSON strictly."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from verify_attention.errors import ResultsError, UsageError

DEEPEST = 32


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be written, before any work is done.

    Raises:
        UsageError: the path is a folder, or its folder does not exist or may not be written to.

    """
    if path.suffix in {".yaml", ".yml"}:
        raise UsageError(f"{path}: a name that ends in {path.suffix} is a case's; results end in .json")
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise UsageError(f"{path}: is a folder, a file name is needed")
        if not target.parent.is_dir():
            raise UsageError(f"{path}: the folder {path.parent} does not exist")
        if not os.access(target if _is_special(target) else target.parent, os.W_OK):
            raise UsageError(f"{path}: the folder {path.parent} may not be written to")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by a complete new one, or leave it as it was. A link is followed; a device or pipe is written to.

    Raises:
        ResultsError: the file could not be written; the old one is unchanged.

    """
    target = Path(os.path.realpath(path))
    try:
        if _is_special(target):
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise ResultsError(f"{path}: could not be written, the old file is unchanged: {error.strerror}") from error


def _is_special(target: Path) -> bool:
    """Say whether a path is there and is neither file nor folder: /dev/null must not be replaced by a file."""
    return target.exists() and not stat.S_ISREG(target.stat().st_mode)


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".results-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:  # Ctrl-C too must leave no half-written file behind
        with suppress(OSError):
            Path(name).unlink()
        raise


def _mode(target: Path) -> int:
    """Return the permissions of the old file, or those that a new one would get."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def read_json(path: Path) -> Any:
    """Read strict JSON: UTF-8, no NaN or Infinity, no number beyond float64, no key twice.

    Raises:
        UsageError: there is no such file.
        ResultsError: the file cannot be read, or is not strict JSON.

    """
    try:
        if path.exists() and not path.is_file():
            raise ResultsError(f"{path}: is no ordinary file")
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file") from error
    except OSError as error:
        raise ResultsError(f"{path}: could not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ResultsError(f"{path}: not UTF-8 (byte 0x{error.object[error.start]:02x})") from error
    try:
        made = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
        _look_through(made)
    except json.JSONDecodeError as error:
        raise ResultsError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: {error}") from error
    return made


def _look_through(part: Any, depth: int = 0) -> None:
    """Refuse half characters, which cannot be written again, and nesting that nobody means."""
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} deep")
    if isinstance(part, str):
        part.encode()
    elif isinstance(part, dict):
        for key, value in part.items():
            key.encode()
            _look_through(value, depth + 1)
    elif isinstance(part, list) and part and not isinstance(part[0], float):
        for value in part:
            _look_through(value, depth + 1)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(literal: str) -> float:
    number = float(literal)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{literal} is beyond float64")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made
