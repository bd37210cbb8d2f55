"""Settings in a pyproject.toml: the nearest that has the table `tool.verify-attention`, checked by its schema.

tomllib is imported where there is a file, and jsonschema where it has the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify_attention.errors import UsageError

FILE, TABLE = "pyproject.toml", "verify-attention"


@dataclass(frozen=True)
class Config:
    """What a file sets, by the options' long names, with paths as seen from here; and the file, as seen from here."""

    file: str
    settings: dict[str, Any]


def nearest(folder: Path) -> Config | None:
    """Return the settings of the nearest file, from a folder upwards, that has any.

    Raises:
        UsageError: a file on the way is not TOML, or its table is not what the schema allows.

    """
    for place in (folder, *folder.parents):
        if _is_there(place / FILE):
            found = _read(place / FILE)
            if found is not None:
                return found
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that may not be looked into
        return False


def given(file: Path) -> Config:
    """Return the settings of a file that has been named.

    Raises:
        UsageError: as above, or there is no such file, or no such table.

    """
    found = _read(file)
    if found is None:
        raise UsageError(f"{file}: has no table [tool.{TABLE}]")
    return found


def _read(path: Path) -> Config | None:
    import tomllib  # noqa: PLC0415 - most folders have no such file above them

    name = os.path.relpath(path)
    try:
        text = path.read_bytes().decode("utf-8")
        tool = tomllib.loads(text).get("tool")
    except OSError as error:
        raise UsageError(f"{name}: could not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not UTF-8 (byte 0x{error.object[error.start]:02x})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not TOML: {error}") from error
    if not isinstance(tool, dict) or TABLE not in tool:
        return None
    problems = list(_problems(tool[TABLE], text))
    if problems:
        raise UsageError(*(f"{name}{problem}" for problem in problems))
    return Config(name, _from_here(tool[TABLE], path.parent))


def _problems(table: Any, text: str) -> Iterator[str]:
    from verify_attention import validation, wording  # noqa: PLC0415

    lines = _lines(text)
    for key in _unprintable(table) if isinstance(table, dict) else ():
        yield f":{lines.get(key, 1)}: {key}: has a character that no name has"
    for place, message in validation.problems(table, "config"):
        line = lines.get(str(place[0])) if place else None
        yield f"{f':{line}' if line else ''}: {wording.place(place) if place else f'tool.{TABLE}'}: {message}"


def _unprintable(table: dict[str, Any]) -> Iterator[str]:
    """Yield the keys whose texts hold control characters, which name no file and no claim."""
    for key, value in table.items():
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(one, str) and not one.isprintable() for one in texts):
            yield key


def _lines(text: str) -> dict[str, int]:
    """Return the line of each key below the table's header, as far as it is written in the usual way."""
    found: dict[str, int] = {}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[[^\[\]]+\]\s*(#.*)?$", line):
            inside = re.match(rf"""\s*\[\s*tool\s*\.\s*["']?{TABLE}["']?\s*\]""", line) is not None
        key = re.match(r"""\s*(["']?)([\w-]+)\1\s*=""", line)
        if inside and key:
            found.setdefault(key[2], number)
    return found


def _from_here(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return settings with the file's relative paths as they are called from the current folder."""

    def seen(path: str) -> str:
        return path if Path(folder).resolve() == Path.cwd() else os.path.relpath(folder / path)

    def of_function(name: str) -> str:
        file, colon, function = name.rpartition(":")
        return f"{seen(file)}{colon}{function}" if file.endswith(".py") else name

    def of_report(report: str) -> str:
        form, sign, file = report.partition("=")
        return f"{form}{sign}{seen(file) if file not in {'', '-'} else file}"

    moved: dict[str, Callable[[Any], Any]] = {
        "paths": lambda paths: [seen(path) for path in paths],
        "output": lambda file: file if file == "-" else seen(file),
        "implementation": of_function,
        "report": lambda reports: [of_report(report) for report in reports],
    }
    return {key: moved[key](value) if key in moved else value for key, value in table.items()}
