"""The pool of worker processes: what is lost with one, and what workers are given."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actmeasure.studies.pool import WorkerDiedError, WorkerPool

#: Seconds after which a test fails that waits for workers.
MOST_SECONDS = 300.0


def results(pool, workers):
    """What the present calls of these workers give, in order; a sentence for one that died."""
    found, end = {}, time.monotonic() + MOST_SECONDS
    while len(found) < len(workers):
        assert time.monotonic() < end, f"{len(workers) - len(found)} workers gave no result within {MOST_SECONDS:g} s"
        for worker in pool.wait(1.0):
            try:
                found[worker] = worker.result()
            except WorkerDiedError as error:
                found[worker] = str(error)
    return [found[worker] for worker in workers]


def about_this_process():
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    return os.environ["OMP_NUM_THREADS"], signal.SIGINT in blocked, multiprocessing.parent_process() is not None


@pytest.mark.slow
def test_a_killed_worker_loses_its_own_call_only():
    with WorkerPool(2) as pool:
        first, second = pool.workers
        assert results(pool, [first, second]) == [first.pid, second.pid]
        first.submit(time.sleep, 600)
        second.submit(about_this_process)
        os.kill(first.pid, signal.SIGKILL)
        why, (threads, is_blocked, is_child) = results(pool, [first, second])
        assert why == "a worker process was killed (signal 9), perhaps for lack of memory; try fewer workers"
        assert (threads, is_blocked, is_child) == ("1", True, True)
        pool.replace(first)
        second.submit(pow, 2, 10)
        new = pool.workers[0]
        assert results(pool, [new, second]) == [new.pid, 1024]
        new.submit(os._exit, 3)
        (why,) = results(pool, [new])
        assert why.startswith("a worker process ended unexpectedly (exit code 3)")
        second.submit(time.sleep, 600)
        begun = time.perf_counter()
    assert time.perf_counter() - begun < 600
    assert not multiprocessing.active_children()


def test_ctrl_c_is_blocked_in_the_first_worker_of_a_process_too():
    code = (
        "from test_pool import WorkerPool, about_this_process, results\n"
        "if __name__ == '__main__':\n"
        "    with WorkerPool(2) as pool:\n"
        "        for worker in pool.workers: worker.submit(about_this_process)\n"
        "        print([blocked for _, blocked, _ in results(pool, pool.workers)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[True, True]\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_neither_workers_nor_warnings(number):
    """The pipe is read to its end, which comes when all processes that hold it have ended."""
    code = (
        "import os, signal\n"
        "from test_pool import WorkerPool, results\n"
        "if __name__ == '__main__':\n"
        "    with WorkerPool(1) as pool:\n"
        "        results(pool, pool.workers)\n"
        f"        os.killpg(0, {number:d}) if {number:d} == signal.SIGTERM else os.kill(os.getpid(), {number:d})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=MOST_SECONDS,
        start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == -number
    assert done.stderr == ""
