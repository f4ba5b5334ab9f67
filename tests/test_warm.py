"""Compiling ahead: what `make setup` compiles is what the first commands need."""

import os
import subprocess
import sys

import pytest

from actmeasure import warm
from actmeasure.kernels.dispatcher import NOTICE
from actmeasure.studies import pool

FIRST = {
    "solve": ["-m", "actmeasure", "solve", "frozen-lake"],
    "solve with imperfect looks": ["-m", "actmeasure", "solve", "tiger"],
    "solve without discount": ["-m", "actmeasure", "solve", "frozen-lake", "--discount", "1"],
    "solve for longer": [
        "-c",
        "import actmeasure as am; am.certificate(am.solve(am.problems.tiger(), tolerance=1e-9, time_limit=3))",
    ],
    "solve on a larger lake": [
        "-m",
        "actmeasure",
        "solve",
        "frozen-lake",
        "--set",
        "size=20",
        "--set",
        "seed=109",
        "--time-limit",
        "2",
    ],
    "solve and explain": ["-m", "actmeasure", "solve", "tiger", "--explain"],
    "certify": ["-c", "import actmeasure as am; am.certificate(am.solve(am.problems.frozen_lake(4)))"],
    "plan": ["-m", "actmeasure", "plan", "maintenance", "--time-limit", "5"],
    "learn in a model": [
        "-c",
        "import actmeasure as am; am.train(am.agents.make('acno-otp', simulations=10), am.problems.frozen_lake(4), episodes=60)",
    ],
    "train": [
        "-c",
        "import actmeasure as am; am.train(am.agents.make('dyna-atmq'), am.problems.frozen_lake(4), episodes=5)",
    ],
    "fit": [
        "-c",
        "import actmeasure as am; am.fit({'unit': [1, 1], 'time': [0, 2], 'state': ['a', 'b'], 'action': ['x'] * 2})",
    ],
    "fit with errors": [
        "-c",
        "import actmeasure as am; "
        "am.fit({'unit': [1] * 3, 'time': [0, 1, 2], 'state': [*'aba'], 'action': ['x'] * 3}, errors={'b': ['a']})",
    ],
}


@pytest.mark.parametrize("part", [warm._plan, warm._learn, warm._search])
def test_every_part_runs(part):
    part()


def test_a_worker_that_dies_is_a_sentence(monkeypatch):
    def die(*arguments, **settings):
        raise pool.WorkerDiedError("a worker ended unexpectedly (exit code 9)")

    monkeypatch.setattr(pool, "run_calls", die)
    with pytest.raises(SystemExit, match=r"compiling the kernels failed: a worker ended unexpectedly \(exit code 9\)"):
        warm.warm()


@pytest.mark.slow
def test_first_commands_compile_nothing_more(tmp_path):
    def stderr(arguments):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
        return done.stderr

    assert NOTICE in stderr(FIRST["solve"])  # the cache is empty
    stderr(["-m", "actmeasure.warm"])
    assert [name for name, arguments in FIRST.items() if NOTICE in stderr(arguments)] == []
