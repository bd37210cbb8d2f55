"""Find plugins: each is one module of a package, with one constant."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@cache
def discover(package: str, constant: str) -> dict[str, Any]:
    """Return `{name: constant}` for every module of a package, in the order of their names.

    A module's name is its plugin's name, with hyphens for underscores.

    Raises:
        AttributeError: a module of the package lacks the constant.

    """
    found = names(package)
    return {name.replace("_", "-"): getattr(import_module(f"{package}.{name}"), constant) for name in found}


@cache
def names(package: str) -> tuple[str, ...]:
    """Return the names of a package's modules, sorted, without loading them."""
    path = import_module(package).__path__
    return tuple(sorted(module.name for module in iter_modules(path) if not module.name.startswith("_")))
