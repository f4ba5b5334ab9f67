"""What POMCP earns in simulated episodes, from Python and from the command line."""

import json

import numpy as np
import pytest
from command_line import actmeasure

import actmeasure as am
from actmeasure import statistics
from actmeasure.text import interval_text

GAMBLE = am.problems.measuring_value(measuring_cost=0.05)


def planner(**settings):
    return am.planners.POMCP(
        GAMBLE, **{"simulations": 2_000, "depth": 10, "exploration": 0.5, "nodes": 10_000} | settings
    )


def test_the_interval_holds_the_certified_optimum():
    """The planner is as good as optimal here, so that the mean of its returns is the optimum."""
    found = am.planners.simulate(planner(depth=25), episodes=400, seed=1)
    assert found.discounted_return.low <= am.solve(GAMBLE).value <= found.discounted_return.high + 0.01
    assert (found.episodes, found.stopped, found.deprivations) == (400, "done", 0)


def test_episodes_are_those_of_training_with_the_agent():
    found = am.planners.simulate(planner(particles=300), episodes=30, seed=4)
    same = {"simulations": 2_000, "depth": 10, "exploration": 0.5, "particles": 300, "nodes": 10_000}
    agent = am.agents.make("pomcp", model=GAMBLE, **same)
    episodes = am.train(agent, GAMBLE, episodes=30, seed=4, max_steps=200)
    assert found.scalarized_return.value == pytest.approx(episodes.scalarized_return.mean())
    assert found.measurements.value == episodes.measurements.mean()
    assert found.steps.value == episodes.steps.mean()


def test_hidden_starts_and_beliefs_that_die_out():
    """A single particle reaches the goal sooner or later, mostly without the world."""
    lake = am.problems.frozen_lake(4, "deterministic", measuring_cost=0.05)
    hidden = lake.replace(initial=np.where(lake.terminal, 0.0, 1.0) / 11, reveal_start=False)
    tool = am.planners.POMCP(hidden, simulations=500, rollout="q-mdp", exploration=0.5, particles=1, nodes=1_000)
    found = am.planners.simulate(tool, episodes=20, max_steps=30)
    assert found.deprivations == tool.deprivations > 0
    assert (found.lost, tool.lost) == (found.deprivations, tool.deprivations)
    assert "use more particles" in str(found)


def test_means():
    assert interval_text(statistics.mean([1.0])) == "1"
    assert interval_text(statistics.mean([1.0, 2.0, 3.0])) == "2 (-0.4841 to 4.484)"


def test_progress_and_time():
    told = []
    found = am.planners.simulate(planner(), episodes=10**6, time_limit=0.05, progress=lambda *now: told.append(now))
    assert found.stopped == "time"
    assert found.episodes == len(told) == told[-1][0] < 10**6
    assert "fewer episodes than asked for, as the time limit was reached" in str(found)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"time_limit": 0}, "time_limit is 0, expected seconds above 0"),
        ({"time_limit": "x"}, "time_limit is 'x'"),
        ({"planner": GAMBLE}, "expected a POMCP"),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(am.PlanError, match=message):
        am.planners.simulate(**{"planner": planner()} | settings)


def run(*arguments, code=0):
    done = actmeasure("solve", *arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def test_the_command():
    options = (
        "measuring-value",
        "--method",
        "pomcp",
        "--simulations",
        "200",
        "--episodes",
        "20",
        "--depth",
        "10",
        "--seed",
        "3",
    )
    text = run(*options)
    for part in ("POMCP, 200 simulations a decision, depth 10", "discounted return  0.", "episodes           20 in"):
        assert part in text
    found = json.loads(run(*options, "--json"))
    assert (found["simulations"], found["depth"], found["seed"], found["episodes"]) == (200, 10, 3, 20)
    assert found["discounted_return"]["low"] < found["discounted_return"]["value"] < found["discounted_return"]["high"]


def test_options_that_do_not_go_together():
    assert "--episodes is for --method pomcp" in run("measuring-value", "--episodes", "3", code=2)
    assert "leave --plot out" in run("measuring-value", "--method", "pomcp", "--plot", "x.png", code=2)
    assert "depth is 0" in run("measuring-value", "--method", "pomcp", "--depth", "0", code=2)
