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
    path = import_module(package).__path__
    names = sorted(module.name for module in iter_modules(path) if not module.name.startswith("_"))
    return {name.replace("_", "-"): getattr(import_module(f"{package}.{name}"), constant) for name in names}
