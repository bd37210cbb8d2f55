"""Start-up: what the tool's process costs beside one that only imports the same libraries."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import timing

ROOT = Path(__file__).parents[2]
HEAVY = "numpy", "yaml", "jsonschema", "rich"
LIBRARIES = "import click, numpy, yaml, jsonschema, rich.console, rich.table"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="interleaved rounds (21)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--python", default=sys.executable, help="interpreter whose environment has the tool")
    which.add_argument("--venv", action="store_true", help="install the tool, not editable, into a new environment")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = installed(Path(folder) / "venv") if given.venv else given.python
        compare(python, Path(folder), given.rounds)
        imports(python, Path(folder))


def installed(place: Path) -> str:
    """Install the tool as a user would."""
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(ROOT)]
    subprocess.run(pip, check=True, env=timing.environment())
    return python


def compare(python: str, folder: Path, rounds: int) -> None:
    """Time the tool's commands and their peers in the same rounds."""
    tool = timing.tool(python)
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "python -c 'import click'": [python, "-c", "import click"],
        "verify-attention --version": [*tool, "--version"],
        "verify-attention --help": [*tool, "--help"],
        f"python -c '{LIBRARIES}'": [python, "-c", LIBRARIES],
        "verify-attention run": [*tool, "run", "-o", str(folder / "results.json")],
    }
    samples = timing.interleaved(commands, rounds, cwd=folder)
    click, libraries = (samples[name] for name in commands if "import" in name)
    rows = []
    for name, own in samples.items():
        wall, cpu = timing.median(own), timing.median(own, "cpu")
        peers = [timing.ratio(own, peer) for peer in (click, libraries)]
        rows.append([name, f"{1e3 * wall:.0f} ms", *(f"{peer:.2f}" for peer in peers), f"{1e3 * cpu:.0f} ms"])
    timing.say(f"start-up, medians of {rounds} rounds; ratios: this row's time / the peer's, by round\n")
    timing.table(["process", "wall", "/ import click", "/ libraries", "CPU"], rows)


def imports(python: str, folder: Path) -> None:
    """Print which of the heavy libraries each command imports."""
    rows = []
    for arguments in (["--version"], ["--help"], ["run", "--help"], ["run", "-o", str(folder / "results.json")]):
        command = [python, "-X", "importtime", "-m", "verify_attention", *arguments]
        process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
        modules = {line.rpartition("|")[2].strip() for line in lines}
        cells = ["yes" if name in modules else "-" for name in HEAVY]
        shown = "run" if "-o" in arguments else " ".join(arguments)
        rows.append([f"verify-attention {shown}", *cells, str(len(modules) - 1)])
    timing.table(["imports", *HEAVY, "modules"], rows)


if __name__ == "__main__":
    main()
