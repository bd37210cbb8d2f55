"""Adapters of libraries: skipped where a library is missing, unless the environment says that all must be there."""

from __future__ import annotations

import importlib.util
import os

import pytest

from verify_attention.plugins import implementations

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before PyTorch is imported: the arrays are small

REQUIRED = "VERIFY_ATTENTION_ADAPTERS"


def need(name: str) -> None:
    """Skip where an adapter's library is missing; fail where it has to be there."""
    missing = [one for one in implementations()[name].libraries if importlib.util.find_spec(one) is None]
    if missing and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{name} needs {', '.join(missing)}, and {REQUIRED}=1 says that it is installed")
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}")


@pytest.fixture(autouse=True)
def _library(request: pytest.FixtureRequest) -> None:
    if "name" in request.fixturenames:
        need(request.getfixturevalue("name"))
