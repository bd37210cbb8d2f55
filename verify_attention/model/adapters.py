"""Implementations that can be put under test by name, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from verify_attention.model.claims import Plugin
from verify_attention.model.trace import Implementation


@dataclass(frozen=True)
class Divergence:
    """What a library does otherwise than is the convention here, and what becomes of that; `happens` asks the library.

    `what` and `reason` are clauses; `link` is where the library's own people say so.
    """

    what: str
    reason: str
    link: str
    happens: Callable[[], bool]


@dataclass(frozen=True)
class Adapter(Plugin):
    """A loader of an implementation, and its ledger.

    `load(dtype)` imports the `libraries`, named as they are imported, and returns an implementation for arrays of that
    dtype; the first of them gives the version. `install` are the names by which pip knows them. `computes_in` says in
    which precision it really computes, where that is not the dtype.
    """

    load: Callable[[str], Implementation]
    libraries: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float64",)
    computes_in: Mapping[str, str] = field(default_factory=dict)
    divergences: tuple[Divergence, ...] = ()
