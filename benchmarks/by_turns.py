"""Speed of this version against another checkout, by turns: `python -m benchmarks.by_turns ../other --rounds 5`.

Each round runs every case once in each version, in processes of their own, so that both meet the same load of the machine.
Printed are the CPU times of the fastest rounds and their ratio; a ratio above 1.1 is a goal missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.goals import Goal

#: What is timed, in both versions: only names that both have. Each case is called once before it is timed, to compile.
CASES = """
import json, time
import numpy as np
import actmeasure as am

def lakes():
    for seed in range(12):
        am.solve(am.problems.frozen_lake(20, variant="semi-slippery", seed=seed), tolerance=1e-5)

def act_then_measure():
    am.solve(am.problems.frozen_lake(20, variant="semi-slippery", seed=0), "atm")
    am.solve(am.problems.snake_maze(), "atm")

def prices():
    am.tradeoff(am.problems.frozen_lake(4))

def training(name, episodes, **settings):
    model = am.problems.frozen_lake(4)
    return lambda: am.train(am.agents.make(name, **settings), model, episodes, seed=0)

def stepping():
    env = am.envs.TabularEnv(am.problems.frozen_lake(8), max_steps=10**9)
    env.reset(seed=0)
    for number in range(150_000):
        if env.step((number % 4, number % 2))[2]:
            env.reset()

def simulating(share, model=None):
    planner = am.planners.POMCP(model or am.problems.frozen_lake(8), simulations=300_000, share=share, seed=0)
    def decide():
        planner.start(am.Belief.at(0))
        planner.decide()
    return decide

def evaluating():
    model = am.problems.frozen_lake(60, seed=0)
    am.evaluate(model, SCHEDULES.setdefault("lake", am.solve(model, "always").schedule), horizon=500)

SCHEDULES = {}
cases = {
    "plan: twelve lakes 20x20": lakes,
    "plan: act-then-measure": act_then_measure,
    "plan: all prices of a look": prices,
    "learn: atmq": training("atmq", 60000),
    "learn: dyna-atmq": training("dyna-atmq", 30000),
    "learn: amrl-q": training("amrl-q", 400000),
    "learn: foresight": training("foresight", 3000),
    "learn: acno-otp": training("acno-otp", 54, simulations=200, exploiting_episodes=50),
    "learn: acno-pomcp": training("acno-pomcp", 20, simulations=200),
    "environment: 150,000 steps": stepping,
    "pomcp: 300,000 simulations": simulating(False),
    "pomcp, sharing": simulating(True),
    "pomcp, measuring value": simulating(False, am.problems.measuring_value()),
    "pomcp, sharing, measuring value": simulating(True, am.problems.measuring_value()),
    "evaluate: a schedule": evaluating,
}
times = {}
for name, case in cases.items():
    case()
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        case()
        best = min(best, time.process_time() - begin)
    times[name] = best
print(json.dumps(times))
"""
#: Largest time of a case, as a multiple of the other version's.
SLOWER = 1.1


def timed(checkout: Path) -> dict[str, float]:
    """Return CPU seconds by case, measured in a process that imports the version in `checkout`."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, "-c", CASES], capture_output=True, check=True, text=True, env=environment, cwd=checkout
    )
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def by_turns(other: Path, rounds: int) -> list[Goal]:
    """Return for every case how many times as long as the other version this one takes."""
    own = Path(__file__).resolve().parents[1]
    found = [(timed(own), timed(other)) for _ in range(rounds)]
    goals = []
    for name in found[0][0]:
        mine, theirs = (min(pair[version][name] for pair in found) for version in (0, 1))
        goals.append(Goal(f"{name}: {mine:.3g} s against {theirs:.3g} s", mine / theirs, SLOWER, "x"))
    return goals


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(*by_turns(arguments.other.resolve(), arguments.rounds), sep="\n")
