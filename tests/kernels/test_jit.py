"""Compiled code: where it is kept, when it is made anew, and what is said meanwhile.

The kernels are two small files in a folder of their own, run by other processes: `outer.py` calls what is in `callee.py`.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from actmeasure.kernels import dispatcher, jit
from actmeasure.planning.budget import Budget

CALLEE = """
from actmeasure.kernels.jit import inner

@inner
def term(x):
    return {factor} * x
"""
OUTER = """
from actmeasure.kernels.jit import no_refcount
from callee import term

@no_refcount
def twice(x):
    return term(x) + term(x)
"""
CALL = "from outer import twice; print(twice(3))"


needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "callee.py").write_text(CALLEE.format(factor=10))
    (folder / "outer.py").write_text(OUTER)
    return folder


def environment(kernels: Path) -> dict[str, str]:
    """As in a plain installation, with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    home = str(kernels.parent / "home")
    return {**kept, "PYTHONPATH": str(kernels), "PYTHONDONTWRITEBYTECODE": "1", "HOME": home, "XDG_CACHE_HOME": home}


def run(kernels: Path, code: str = CALL) -> tuple[str, bool]:
    """What a new process prints, and whether it said that it compiles; it says nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment(kernels)
    )
    assert done.stderr in ("", f"{dispatcher.NOTICE}\n")
    return done.stdout.strip(), done.stderr != ""


def code_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_code_is_compiled_once_and_kept_beside_the_kernels(kernels):
    assert run(kernels) == ("60", True)
    assert len(code_files(kernels / "__pycache__")) == 1  # the callee is a part of it, and has no file of its own
    assert run(kernels) == ("60", False)
    assert not (kernels.parent / "home").exists()


@pytest.mark.slow
def test_a_change_in_a_callee_compiles_the_caller_anew(kernels):
    run(kernels)
    (kernels / "callee.py").write_text(CALLEE.format(factor=11))
    assert run(kernels) == ("66", True)
    (kernels / "callee.py").write_text(CALLEE.format(factor=10))
    assert run(kernels) == ("60", False)


@pytest.mark.slow
def test_code_of_old_versions_is_removed_when_there_is_a_new_one(kernels):
    run(kernels)
    (old,) = (kernels / "__pycache__").glob("actmeasure-*")
    long_ago = time.time() - 2 * dispatcher.OLD
    os.utime(old, (long_ago, long_ago))
    (kernels / "callee.py").write_text(CALLEE.format(factor=11))
    run(kernels)
    (new,) = (kernels / "__pycache__").glob("actmeasure-*")
    assert new != old


def test_where_the_installation_is_read_only_code_goes_to_the_users_cache(kernels):
    (kernels / "__pycache__").write_text("a file in its place: root may write to any folder")
    assert run(kernels) == ("60", True)
    assert len(code_files(kernels.parent / "home")) == 1
    assert run(kernels) == ("60", False)
    (kernels / "callee.py").write_text(CALLEE.format(factor=11))  # an upgrade
    assert run(kernels) == ("66", True)


@pytest.mark.slow
def test_without_any_place_to_write_to_it_works_all_the_same(kernels):
    (kernels / "__pycache__").write_text("")
    (kernels.parent / "home").write_text("")
    assert run(kernels) == ("60", True)
    assert run(kernels) == ("60", True)


@pytest.mark.slow
def test_a_damaged_file_is_compiled_anew(kernels):
    run(kernels)
    (file,) = code_files(kernels)
    file.write_bytes(file.read_bytes()[:100])
    assert run(kernels) == ("60", True)
    assert run(kernels) == ("60", False)


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_do_not_mix_their_code(kernels):
    calls = {"60": CALL, "15.0": CALL.replace("3", "0.75"), "(60+0j)": CALL.replace("3", "3 + 0j")}
    at_once = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment(kernels), text=True)
        for code in calls.values()
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in at_once] == list(calls)
    assert [run(kernels, code) for code in calls.values()] == [(printed, False) for printed in calls]


@pytest.mark.slow
def test_a_session_that_is_older_than_an_edit_keeps_nothing_under_its_name(kernels):
    """Neither what it has compiled from the old code, nor what it compiles from a mixture of both."""
    edit = f"import pathlib; pathlib.Path({str(kernels / 'callee.py')!r}).write_text({CALLEE.format(factor=11)!r})"
    assert run(kernels, f"from outer import twice; {edit}; print(twice(3))") == ("60", True)
    assert code_files(kernels) == []
    assert run(kernels) == ("66", True)


def test_old_code_that_cannot_be_looked_at_is_no_reason_to_keep_none(kernels):
    (kernels / "__pycache__").mkdir()
    (kernels / "__pycache__" / "actmeasure-0").symlink_to("nowhere")  # as if another process had just removed it
    run(kernels)
    assert len(code_files(kernels / "__pycache__")) == 1
    assert not (kernels.parent / "home").exists()


WITHOUT = """
import sys
from numba.core import caching
if {is_missing}:
    del caching._CacheLocator
import actmeasure as am
model = am.problems.measuring_value(measuring_cost=0.1)
print(repr(am.solve(model).value), "actmeasure.kernels.dispatcher" in sys.modules)
"""


@needs_jit
@pytest.mark.slow
def test_without_a_part_of_numba_that_may_change_everything_works(tmp_path):
    printed = []
    for is_missing in (False, True):
        code = WITHOUT.format(is_missing=is_missing)
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        printed.append(done.stdout.split())
    assert printed[0][0] == printed[1][0]
    assert [kind for _, kind in printed] == ["True", "False"]


@pytest.mark.slow
def test_worker_processes_compile_in_silence(kernels):
    (kernels / "work.py").write_text("def work():\n    from outer import twice\n    print(twice(3), flush=True)\n")
    code = """
import multiprocessing
from work import work
if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work)
    worker.start()
    worker.join(120)
"""
    (kernels.parent / "main.py").write_text(code)
    done = subprocess.run(
        [sys.executable, str(kernels.parent / "main.py")],
        check=True,
        capture_output=True,
        text=True,
        env=environment(kernels),
    )
    assert (done.stdout.strip(), done.stderr) == ("60", "")


def load(kernels: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """A module of the folder, in this process."""
    spec = importlib.util.spec_from_file_location(name, kernels / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@needs_jit
def test_a_function_is_compiled_once_for_all_sizes_of_integers(kernels, monkeypatch):
    callee = load(kernels, "callee", monkeypatch)
    outer = load(kernels, "outer", monkeypatch)
    assert [outer.twice(x) for x in (1, np.int32(2), np.int8(3), np.int64(4))] == [20, 40, 60, 80]
    assert len(callee.term._parts) == 1
    assert outer.twice(0.5) == 10.0
    assert len(callee.term._parts) == 2


@needs_jit
def test_an_inner_function_is_not_compiled_for_python(kernels, monkeypatch):
    callee = load(kernels, "callee", monkeypatch)
    assert callee.term(4) == 40
    assert not callee.term.overloads
    assert not callee.term._parts


@needs_jit
def test_compiling_is_not_timed(kernels, monkeypatch):
    load(kernels, "callee", monkeypatch)
    outer = load(kernels, "outer", monkeypatch)
    budget, wall = Budget(seconds=1.0), time.perf_counter()
    outer.twice(3)  # takes some tenths of a second to compile, and microseconds to run
    assert budget.elapsed < (time.perf_counter() - wall) / 2


def test_a_time_limit_does_not_run_out_while_compiling(monkeypatch):
    budget = Budget(seconds=1.0)
    monkeypatch.setattr(jit.spent, "seconds", jit.spent.seconds - 2.0)
    assert budget.is_over  # as if two seconds had passed ...
    monkeypatch.setattr(jit.spent, "seconds", jit.spent.seconds + 2.0)
    assert not budget.is_over  # ... in which kernels were compiled


ONE_SEARCH = """
import actmeasure as am
from actmeasure.kernels import graph_search, jit
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search
lake = am.problems.frozen_lake(4)
am.solve(lake)
assert len(graph_search.expand_below.signatures) == 1
assert not graph_search.solve_cycle.signatures
search, spent = Search(lake, Budget(seconds=60.0)), jit.spent.seconds
search.mixes_above = 8
assert search.run(tolerance=1e-6) == "closed"
assert len(graph_search.expand_below.signatures) == 2
assert jit.spent.seconds > spent
"""


def test_garbage_of_compiling_is_collected_while_the_clock_is_stopped():
    was_stopped = []

    def note(phase, info):
        was_stopped.append(jit.spent.is_compiling)

    gc.callbacks.append(note)
    try:
        with jit.timed():
            kept = [[] for _ in range(100_000)]
        assert gc.isenabled()
        more = [[] for _ in range(10_000)]
    finally:
        gc.callbacks.remove(note)
    assert (len(kept), len(more)) == (100_000, 10_000)
    assert was_stopped[0]  # the collection that looks at what was made meanwhile


@needs_jit
def test_what_few_searches_need_is_compiled_in_the_middle_of_one_and_not_timed():
    subprocess.run([sys.executable, "-c", ONE_SEARCH], check=True, env=os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
