"""On what a run was made."""

from __future__ import annotations

import platform

import numpy as np


def this_machine() -> dict[str, str]:
    """Return what numbers may depend on in their last digits."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
