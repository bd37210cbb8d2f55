"""Ctrl-C during a run, with real signals: what is known is shown, nothing is written, no process is left."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).parent / "verify-attention")
KERNEL = """
import time
from pathlib import Path

import numpy as np


def attention(q, k, v, *, scale=None):
    if q.shape[-1] == 3:  # the case that takes for ever
        Path("ready").touch()
        {wait}
    scores = q @ np.swapaxes(k, -1, -2) * (scale or q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return dict(output=weights @ v, weights=weights, scores=scores)
"""
STUBBORN = """
        try:
            time.sleep(60)
        except KeyboardInterrupt:  # as libraries do
            Path("again").touch()
            time.sleep(60)
"""
QUICK = "d_k: 2\nq: [1, 0]\nkeys: [[1, 0], [0, 1]]\nbQ: [0, 1]\nbK: [3, -2]\n"
ENDLESS = "d_k: 3\nq: [1, 0, 0]\nkeys: [[1, 0, 0], [0, 1, 0]]\nbQ: [0, 1, 0]\nbK: [3, -2, 1]\n"


def until(there, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def interrupted(folder, *arguments, signals=("ready",), pause=0.0):
    """Run in a process group of its own, interrupt it once for each file that appears, and return what it says."""
    command = [PROGRAM, "run", "cases", "--implementation", "kernel.py:attention", *arguments]
    # A test run that was started in the background ignores the signal, and its children would too.
    group = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen(command, cwd=folder, **pipes, **group) as run:
        try:
            for name in signals:
                until((folder / name).exists)
                time.sleep(pause)
                os.killpg(run.pid, signal.SIGINT)
            out, err = run.communicate(timeout=30)
            until(lambda: gone(run.pid), 10)
        finally:
            if not gone(run.pid):
                os.killpg(run.pid, signal.SIGKILL)
    return run.returncode, out, err


@pytest.fixture
def slow(tmp_path):
    """Four cases, of which the third takes for ever, and an old results file."""
    (tmp_path / "cases").mkdir()
    for name, text in (("a", QUICK), ("b", QUICK), ("c", ENDLESS), ("d", QUICK)):
        (tmp_path / "cases" / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "kernel.py").write_text(KERNEL.format(wait="time.sleep(60)"), encoding="utf-8")
    (tmp_path / "results.json").write_text("old")
    return tmp_path


def test_what_is_known_is_shown_and_the_old_results_stay(slow):
    code, out, err = interrupted(slow, "--select", "weights-sum-to-one")
    assert code == 130
    assert re.search(r"weights-sum-to-one +PASS +2 of 2 ", out)
    assert out.splitlines()[-1].startswith(
        "INTERRUPTED  kernel.py:attention, float64: 2 cases, 2 equations really checked"
    )
    assert err.splitlines()[-1] == "interrupted after 2 of 4 cases: no results are written"
    assert "Traceback" not in out + err
    assert (slow / "results.json").read_text() == "old"
    assert sorted(path.name for path in slow.iterdir() if "tmp" in path.name) == []


def test_results_on_stdout_are_not_written_in_part(slow):
    code, out, err = interrupted(slow, "-o", "-", "--select", "weights-sum-to-one")
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted after 2 of 4 cases: no results are written"


def test_before_the_first_case_a_word_is_enough(slow):
    asleep = "import time\nfrom pathlib import Path\nPath('ready').touch()\ntime.sleep(60)\n"
    (slow / "kernel.py").write_text(asleep, encoding="utf-8")
    code, out, err = interrupted(slow)
    assert (code, out, err.strip()) == (130, "", "interrupted")
    assert (slow / "results.json").read_text() == "old"


def test_several_processes_die_and_what_they_found_is_shown(slow):
    (slow / "cases" / "a.yaml").write_text(
        "---\n".join(f"name: n{number}\n{QUICK}" for number in range(560)), encoding="utf-8"
    )
    code, out, err = interrupted(slow, "-n", "2", "--select", "weights-sum-to-one", pause=1.0)
    assert code == 130
    found = re.fullmatch(r"interrupted after (\d+) of 563 cases: no results are written", err.splitlines()[-1])
    assert found
    assert int(found[1]) in range(36, 563, 36), "as many as come from a process at a time"
    assert "Traceback" not in out + err
    assert (slow / "results.json").read_text() == "old"


def test_a_second_ctrl_c_ends_at_once(slow):
    (slow / "kernel.py").write_text(KERNEL.format(wait=STUBBORN.strip()), encoding="utf-8")
    begin = time.monotonic()
    code, out, err = interrupted(slow, "--select", "weights-sum-to-one", signals=("ready", "again"))
    assert (code, out, "Traceback" in err) == (130, "", False)
    assert time.monotonic() - begin < 50


TWICE = """
import multiprocessing, signal, sys, time
from verify_attention.cli.interrupting import twice_ends_at_once
signal.signal(signal.SIGINT, signal.default_int_handler)
with twice_ends_at_once():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
        child.start()
        print(child.pid, flush=True)
        signal.raise_signal(signal.SIGINT)
print("goes on")
"""


def test_a_second_ctrl_c_leaves_no_process():
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 130
    child = int(done.stdout)
    until(lambda: ended(child), 5)


def ended(pid):
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_usual_handler_comes_back():
    from verify_attention.cli.interrupting import twice_ends_at_once

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with twice_ends_at_once():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


IGNORED = """
import signal, sys, time
from verify_attention.cli.interrupting import none_lost, twice_ends_at_once
class Collected:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
with none_lost(), twice_ends_at_once():
    for _ in range(2):
        try:
            Collected()
            time.sleep(20)
            print("lost")
        except KeyboardInterrupt:
            print("heard", flush=True)
"""


def test_a_ctrl_c_where_python_ignores_exceptions_comes_again_as_what_it_was():
    done = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, "heard\n", ""), "the first is told, the second ends"


def test_what_else_python_ignores_is_still_said():
    broken = "from verify_attention.cli.interrupting import none_lost\nclass C:\n    def __del__(self): 1 / 0\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{broken}with none_lost(): C()"], capture_output=True, text=True, check=True, timeout=50
    )
    assert "ZeroDivisionError" in done.stderr


COLLECTED = """
        class Collected:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGINT)
        import os, signal
        Collected()
        time.sleep(60)
"""


def test_a_run_hears_one_that_python_ignores(slow):
    (slow / "kernel.py").write_text(KERNEL.format(wait=COLLECTED.strip()), encoding="utf-8")
    code, _, err = interrupted(slow, "--select", "weights-sum-to-one", signals=())
    assert (code, err) == (130, "interrupted after 2 of 4 cases: no results are written\n")


def test_other_commands_say_it_in_a_word(tmp_path):
    heeding = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen([PROGRAM, "self-test", "--all"], cwd=tmp_path, **pipes, **heeding) as run:
        time.sleep(3)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
    assert (run.returncode, out, err.strip()) == (130, "", "interrupted")
