"""Many small documents: the tool against pytest files that check the same equations."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import timing

HERE = Path(__file__).parent
PEERS = {
    "pytest, one test an equation": "peer_test_equations.py",
    "pytest, one test a document": "peer_test_documents.py",
}
TOOL = "verify-attention run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000, metavar="N", help="documents in the file (1000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="interleaved rounds (5)")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter whose environment has the tool and pytest"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), given)


def compare(folder: Path, given: argparse.Namespace) -> None:
    """Time all three on many documents and on one, in the same rounds."""
    for name in PEERS.values():
        shutil.copy(HERE / name, folder / name)
    files = {count: folder / f"documents-{count}.yaml" for count in (1, given.documents)}
    for count, file in files.items():
        file.write_text(generated(count, given.seed), encoding="utf-8")
    env = timing.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    commands = {}
    for count, file in files.items():
        commands[TOOL, count] = [*timing.tool(given.python), "run", "-q", "-o", f"{file}.json", str(file)]
        for peer, name in PEERS.items():
            pytest = [given.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
            commands[peer, count] = ["/usr/bin/env", f"DOCUMENTS={file}", *pytest]
    same_equations(commands[TOOL, 1], folder, Path(f"{files[1]}.json"))
    samples = timing.interleaved(commands, given.rounds, env, folder)
    report(samples, given)


def generated(count: int, seed: int) -> str:
    """Return documents of two queries, six keys and width four, in general position."""
    random = np.random.default_rng(seed)
    return "---\n".join(
        f"name: document-{number}\nd_k: 4\n"
        f"q: {random.normal(size=(2, 4)).tolist()}\n"
        f"keys: {random.normal(size=(6, 4)).tolist()}\n"
        f"bQ: {random.normal(size=4).tolist()}\n"
        f"bK: {random.normal(size=4).tolist()}\n"
        for number in range(count)
    )


def same_equations(command: list[str], folder: Path, results: Path) -> None:
    """Make sure that the peer has a test for every equation that the tool really checks on such a document."""
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [case] = json.loads(results.read_text(encoding="utf-8"))["cases"]
    checked = {found["invariant"].replace("-", "_") for found in case["findings"] if found["status"] == "pass"}
    source = (HERE / "peer_test_equations.py").read_text(encoding="utf-8")
    tested = {line[len("def test_") :].partition("(")[0] for line in source.splitlines() if line.startswith("def test")}
    if checked != tested:
        raise SystemExit(f"the peer and the tool check different equations: {sorted(checked ^ tested)}")


def report(samples: dict[tuple[str, int], list[timing.Sample]], given: argparse.Namespace) -> None:
    """Print whole processes, then what each further document costs."""
    many = given.documents
    timing.say(f"{many} documents, medians of {given.rounds} rounds; ratio: the tool's time / this one's, by round\n")
    rows, further = [], []
    for name in (TOOL, *PEERS):
        mine, own = samples[TOOL, many], samples[name, many]
        rows.append([name, *timing.compared(mine, own), f"{timing.median(own, 'peak'):.0f} MiB"])
        wall, start = timing.median(own), timing.median(samples[name, 1])
        net = (wall - start) / max(1, many - 1)
        further.append([name, f"{1e3 * wall / many:.2f} ms", f"{1e3 * start:.0f} ms", f"{1e3 * net:.2f} ms"])
    timing.table(["whole process", *timing.COMPARED, "peak"], rows)
    timing.table(["for each document", "whole/N", "one document", "start-up taken off"], further)


if __name__ == "__main__":
    main()
