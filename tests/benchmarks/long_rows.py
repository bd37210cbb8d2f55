"""Long rows: the core beside plain numpy attention, and all invariants, in time and peak memory.

Each way runs in a process of its own, which times itself and reports its largest resident set. This process imports
no numpy: a child's peak is never below what its parent held.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import timing

if TYPE_CHECKING:
    import numpy as np

    from verify_attention.model import Case

THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"
UNIT = 2**20 if sys.platform == "darwin" else 2**10
PLAIN, ONE, BLOCKS, ENGINE = "plain numpy", "core, one pipeline", "core, in blocks", "all invariants"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=4096, metavar="T", help="queries and keys of the core (4096)")
    parser.add_argument(
        "--engine", type=int, nargs="*", default=[4096, 8192], metavar="T", help="lengths of all invariants (4096 8192)"
    )
    parser.add_argument("--width", type=int, default=64, metavar="D", help="width of a head (64)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="interleaved rounds (5)")
    parser.add_argument("--engine-rounds", type=int, default=2, metavar="N", help="rounds with all invariants (2)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the BLAS (its own default)")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        sys.stdout.write(json.dumps(measured(given.child, given.length, given.width)))
        return
    if given.threads:
        os.environ.update(dict.fromkeys(THREADS, str(given.threads)))
    ways = [(name, given.length) for name in (PLAIN, ONE, BLOCKS)]
    compare(ways, given.width, given.rounds)
    if given.engine:
        compare(
            [(name, length) for length in given.engine for name in (PLAIN, ENGINE)], given.width, given.engine_rounds
        )


def measured(way: str, length: int, width: int) -> dict[str, Any]:
    """Run one way in this process, once to warm up where it is short, and tell time and memory."""
    case = synthetic(length, width)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT
    function = WAYS[way]
    seconds, cpu, said = [], [], ""
    for _ in range(1 if way == ENGINE else 4):
        start, start_cpu = time.perf_counter(), time.process_time()
        said = function(case)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT
    counted = slice(1, None) if len(seconds) > 1 else slice(None)
    return {
        "seconds": statistics.median(seconds[counted]),
        "cpu": statistics.median(cpu[counted]),
        "before": before,
        "peak": peak,
        "said": said,
    }


def synthetic(length: int, width: int) -> Case:
    """Return one head with both biases, values and a V bias."""
    import numpy as np

    from verify_attention.model import Case

    random = np.random.default_rng(1)
    q, keys, values = random.normal(size=(3, 1, length, width))
    bQ, bK, bV = random.normal(size=(3, 1, width))
    return Case(id="long", q=q, keys=keys, values=values, bQ=bQ, bK=bK, bV=bV, scale=width**-0.5)


def plain(case: Case) -> str:
    """Two products and a softmax: what a page of numpy would have."""
    import numpy as np

    q, keys, values = case.q[0] + case.bQ[0], case.keys[0] + case.bK[0], case.values[0] + case.bV[0]
    scores = q @ keys.T * case.scale
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return digest(weights @ values)


def one_pipeline(case: Case) -> str:
    from verify_attention.pipeline import CORE

    return digest(CORE(case.under("qk")).output[0])


def in_blocks(case: Case) -> str:
    import numpy as np

    from verify_attention.pipeline import CORE
    from verify_attention.selection import blocks

    return digest(np.concatenate([CORE(block.under("qk")).output[0] for block in blocks(case)]))


def all_invariants(case: Case) -> str:
    from collections import Counter

    from verify_attention import engine
    from verify_attention.model import Tolerance
    from verify_attention.pipeline import CORE

    report = engine.run_case(case, CORE, engine.invariants().values(), Tolerance())
    counts = Counter(finding.status for finding in report.findings)
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def digest(output: np.ndarray) -> str:
    """Return a number by which outputs can be seen to be the same."""
    return f"Σ|o| = {abs(output).sum():.9g}"


WAYS: Mapping[str, Callable[[Case], str]] = {
    PLAIN: plain,
    ONE: one_pipeline,
    BLOCKS: in_blocks,
    ENGINE: all_invariants,
}


def compare(ways: list[tuple[str, int]], width: int, rounds: int) -> None:
    """Run the ways in interleaved rounds and print a table; ratios are to plain numpy of the same length."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {way: [] for way in ways}
    for number in range(rounds):
        turn = number % len(ways)
        for way in ways[turn:] + ways[:turn]:
            found[way].append(child(*way, width))
    rows = []
    for (name, length), own in found.items():
        peer = found[PLAIN, length]
        peak, above = (statistics.median(key(one) for one in own) for key in (peak_of, above_start))
        square = 8 * length**2 / 2**20
        rows.append(
            [
                name,
                f"{length}",
                f"{statistics.median(one['seconds'] for one in own):.2f} s",
                ratio(own, peer, lambda one: one["seconds"]),
                f"{statistics.median(one['cpu'] for one in own):.2f} s",
                ratio(own, peer, lambda one: one["cpu"]),
                f"{peak:.0f} MiB",
                ratio(own, peer, peak_of),
                f"{above:.0f} MiB",
                f"{above / square:.2f}",
                own[0]["said"],
            ]
        )
    timing.say(f"one head, width {width}, medians of {rounds} rounds; ratios: to plain numpy, by round\n")
    timing.table(
        ["way", "T", "wall", "ratio", "CPU", "ratio", "peak", "ratio", "above start", "in T×T arrays", ""], rows
    )


def child(name: str, length: int, width: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", name, "--length", str(length), "--width", str(width)]
    process = subprocess.run(command, check=True, capture_output=True, text=True, env=timing.environment())
    return json.loads(process.stdout)


def peak_of(one: dict[str, Any]) -> float:
    return one["peak"]


def above_start(one: dict[str, Any]) -> float:
    return one["peak"] - one["before"]


def ratio(own: list[dict[str, Any]], peer: list[dict[str, Any]], key: Callable[[dict[str, Any]], float]) -> str:
    return f"{statistics.median(key(a) / key(b) for a, b in zip(own, peer, strict=True)):.2f}"


if __name__ == "__main__":
    main()
