"""The study of continuous states in `examples` shows learning: most of the way from chance to the best known, with every seed."""

from dataclasses import replace
from pathlib import Path

import pytest
from study_tools import InlineEngine

from actmeasure.learning import AGENTS
from actmeasure.studies import read_results, read_study, run_study
from actmeasure.studies.report.tables import run_means

EXAMPLE = Path(__file__).parents[2] / "examples" / "continuous.toml"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "best"), [("cart-pole", 495.0), ("mountain-car", -110.0), ("pendulum", -150.0)])
def test_tabular_agents_learn_on_continuous_states(name, best, tmp_path):
    study = read_study(EXAMPLE)
    (part,) = [part for part in study.parts if part.name == name]
    learner, random = (next(agent for agent in part.agents if agent.name == name) for name in ("dyna-atmq", "random"))
    run_study(replace(study, parts=[replace(part, agents=[learner, random], seeds=3)]), tmp_path, InlineEngine())
    returns = run_means(read_results(tmp_path).episodes).groupby("agent")["scalarized_return"]
    chance = returns.max()[random.label]
    assert returns.min()[learner.label] > chance + 0.5 * (best - chance)


def test_every_environment_has_tabular_agents_beside_chance():
    parts = read_study(EXAMPLE).parts
    assert [problem.gymnasium for part in parts for problem in part.problems] == [
        "CartPole-v1", "MountainCar-v0", "Pendulum-v1"
    ]  # fmt: skip
    every = set(AGENTS) - {"schedule", "pomcp"}  # which are given a plan or the model
    assert [every - {agent.name for agent in part.agents} for part in parts] == [set(), {"acno-pomcp"}, {"acno-pomcp"}]
