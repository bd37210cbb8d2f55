"""Load what is put under test: an adapter by its name, or a function by `module:function` or `path.py:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from verify_attention import __version__
from verify_attention.errors import LoadError, UsageError, VerifyAttentionError
from verify_attention.functions import Asked, Function, strangers
from verify_attention.model import (
    DTYPES,
    FLOAT64,
    Adapter,
    Case,
    Divergence,
    Implementation,
    Precision,
    Trace,
    UnderTest,
    UnusableError,
    precision,
)
from verify_attention.plugins import implementations
from verify_attention.wording import join, suggest


@dataclass(frozen=True)
class Loaded:
    """An implementation under test, by the name with which it is loaded again in another process."""

    name: str
    implementation: Implementation
    version: str = __version__
    precision: Precision = FLOAT64
    divergences: tuple[Divergence, ...] = ()

    @property
    def under_test(self) -> UnderTest:
        """What a report says of it."""
        return UnderTest(self.name, self.version, self.precision.dtype, self.precision.computes_in)

    @property
    def is_core(self) -> bool:
        """Whether this is the float64 core itself."""
        return bool(getattr(self.implementation, "is_core", False))

    @property
    def forks(self) -> bool:
        """Whether a process may be split in two once this is loaded: libraries with threads of their own may hang."""
        return self.is_core

    @property
    def independent_heads(self) -> bool:
        """Whether cases may be judged together, as the core allows."""
        return bool(getattr(self.implementation, "independent_heads", False))

    def __call__(self, case: Case) -> Trace:
        """Make a trace of a case."""
        return self.implementation(case)

    def __reduce__(self) -> tuple[Callable[[str, str], Loaded], tuple[str, str]]:
        """Travel between processes by name: functions may be closures, and libraries are no data."""
        return _arrived, (self.name, self.precision.dtype)


@cache
def _arrived(name: str, dtype: str) -> Loaded:
    """Load once here what another process has loaded; where that fails, whatever is asked crashes."""
    try:
        return load(name, dtype)
    except VerifyAttentionError as error:
        return Loaded(name, partial(_crash, f"in another process, {error}"))


def _crash(said: str, _case: Case) -> Trace:
    raise UnusableError(said)


def load(name: str = "core", dtype: str = "float64") -> Loaded:
    """Load an implementation for arrays of a dtype.

    Raises:
        UsageError: no adapter has the name, its library is not installed, or it does not take the dtype.
        LoadError: a module cannot be imported, or has no such function.

    """
    if ":" in name:
        return _function(name, dtype)
    known = implementations()
    if name not in known:
        said = f"{suggest(name, known)}; a function is named module:function or path.py:function"
        raise UsageError(f"no implementation is called {name!r}{said}")
    adapter = known[name]
    if dtype not in adapter.dtypes:
        raise UsageError(f"{name} takes {join(adapter.dtypes)}, not {dtype}")
    _needed(name, adapter)
    try:
        made = adapter.load(dtype)
    except Exception as error:
        raise LoadError(f"{name} cannot be loaded: {_said(error)}") from error
    own = precision(dtype, adapter.computes_in.get(dtype))
    return Loaded(name, made, version_of(adapter) or "unknown", own, adapter.divergences)


def spoken(name: str) -> str:
    """Return a name as results hold it: a file's path as seen from here, whatever way it was given."""
    place, colon, attribute = name.rpartition(":")
    return f"{Path(os.path.relpath(place)).as_posix()}{colon}{attribute}" if place.endswith(".py") else name


def version_of(adapter: Adapter) -> str | None:
    """Return the version of an adapter's library, without importing it: None where one is missing."""
    if not adapter.libraries:
        return __version__
    if _missing(adapter):
        return None
    from importlib import metadata  # noqa: PLC0415 - a fifth of the start of a run that does not need it

    try:
        return metadata.version(adapter.install[0])
    except metadata.PackageNotFoundError:
        return "unknown"  # another package may bring the same module


def never_given(loaded: Loaded) -> list[str]:
    """Say which parameters of a function under test keep their defaults, as they are no options of the interface."""
    if not isinstance(loaded.implementation, Asked) or ":" not in loaded.name:
        return []
    names, _ = strangers(loaded.implementation.function)
    given = "are never given: they are no options" if len(names) > 1 else "is never given: it is no option"
    return [f"{loaded.name}: {join(names)} {given} of the interface"] if names else []


def ended(loaded: Loaded) -> list[str]:
    """Return, in words, what is listed as a divergence of the library's and happens no longer, or cannot be asked."""
    found = []
    for divergence in loaded.divergences:
        try:
            if not divergence.happens():
                found.append(f"a listed divergence no longer happens: {divergence.what}")
        except Exception as error:  # noqa: BLE001 - whatever a library raises
            found.append(f"a listed divergence cannot be asked about: {divergence.what}: {_said(error)}")
    return [f"{loaded.name}: {text}" for text in found]


def install_command(adapter: Adapter) -> str:
    """Return the command that installs an adapter's libraries."""
    return f"pip install {' '.join(adapter.install)}"


def _missing(adapter: Adapter) -> list[str]:
    return [library for library in adapter.libraries if importlib.util.find_spec(library) is None]


def _needed(name: str, adapter: Adapter) -> None:
    missing = _missing(adapter)
    if missing:
        raise UsageError(f"{name} needs {join(missing)}, which is not installed: {install_command(adapter)}")


def _function(name: str, dtype: str) -> Loaded:
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"{name!r} is not of the form module:function or path.py:function")
    try:
        module = _module(place)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(f"{place} cannot be imported: {_said(error)}") from error
    function: Any = module
    for part in attribute.split("."):
        try:
            function = getattr(function, part)
        except AttributeError:
            named = [one for one in vars(module) if one[:1] != "_"]
            raise LoadError(f"{place} has no {attribute!r}{suggest(part, named)}") from None
        except Exception as error:
            raise LoadError(f"{place} does not give its {attribute!r}: {_said(error)}") from error
    if not callable(function):
        raise LoadError(f"{name} is {type(function).__name__}, expected a function")
    version = getattr(module, "__version__", None)
    return as_implementation(function, spoken(name), dtype, version if isinstance(version, str) else "unknown")


def as_implementation(function: Function, name: str, dtype: str = "float64", version: str = "unknown") -> Loaded:
    """Return a function of arrays as an implementation; its attribute `computes_in` may declare a precision.

    Raises:
        UsageError: there is no such dtype.
        LoadError: it declares a precision that there is not.

    """
    inside = getattr(function, "computes_in", None)
    if dtype not in DTYPES:
        raise UsageError(f"there is no dtype {dtype!r}, allowed are {join(DTYPES)}")
    _, due = strangers(function)
    if due:
        raise LoadError(f"{name} must be given {join(due)}, which the interface of a function does not have")
    if inside is not None and inside not in DTYPES:
        raise LoadError(f"{name}: its computes_in is {inside!r}, allowed are {join(DTYPES)}")
    return Loaded(name, Asked(function), version, precision(dtype, inside))


def _module(place: str) -> Any:
    """Import a module by its name from the current folder or anywhere else, or a file by its path."""
    path = Path(place)
    if path.suffix != ".py":
        _first_on_path(Path.cwd())
        return importlib.import_module(place)
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    _first_on_path(path.resolve().parent)
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_under_test"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _first_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _said(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - it is not ours
        text = ""
    return " ".join(f"{type(error).__name__}: {text}".split()).rstrip(": ")
