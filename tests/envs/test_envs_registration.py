"""The registered environments: found, checked, vectorised, made again."""

import inspect
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rollouts import rollout

import actmeasure as am
from actmeasure.envs.registration import PROBLEM_NAMES, environment_id, register_environments

IDS = [environment_id(name) for name in PROBLEM_NAMES]
#: These are made small here; as made without settings they are checked in a slow test.
SMALLER = {
    "actmeasure/Drone-v0": {"size": 5, "width": 3, "top_speed": 1},
    "actmeasure/FatigueCrack-v0": {"years": 5, "samples": 2_000},
    "actmeasure/CrackLife-v0": {"periods": 5, "samples": 2_000},
}
SETTINGS = {"actmeasure/FrozenLake-v0": {"size": 8, "variant": "slippery", "measuring_cost": 0.02}} | SMALLER


def test_every_problem_is_registered():
    assert set(PROBLEM_NAMES) == set(am.problems.PROBLEMS)
    assert set(IDS) <= set(gymnasium.registry)
    assert {"actmeasure/FrozenLake-v0", "actmeasure/MeasuringValue-v0", "actmeasure/TwoStateBelief-v0"} <= set(IDS)


def test_no_setting_of_a_problem_is_taken_by_the_environment():
    for build in am.problems.PROBLEMS.values():
        assert not {"problem", "max_steps", "reveal_start", "render_mode"} & set(inspect.signature(build).parameters)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("settings", [{}, {"reveal_start": False}, {"measuring_cost": 0.5, "max_steps": 4}])
def test_check_env_as_made_and_unwrapped(name, settings):
    env = gymnasium.make(name, **settings, **SMALLER.get(name, {}))
    check_env(env.unwrapped)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(env)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLER)
def test_check_env_of_large_ones_as_made_without_settings(name):
    check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_seeding_is_reproducible(name):
    env = gymnasium.make(name, max_steps=20, **SMALLER.get(name, {}))
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(100)]

    assert rollout(env, actions, seed=9) == rollout(env, actions, seed=9)


@pytest.mark.parametrize("name", IDS)
def test_made_again_from_its_spec_and_pickled(name):
    env = gymnasium.make(name, reveal_start=False, max_steps=5, **SETTINGS.get(name, {}))
    for again in (gymnasium.make(env.spec), pickle.loads(pickle.dumps(env))):
        assert again.unwrapped.model.equals(env.unwrapped.model)
        assert again.unwrapped.max_steps == 5
        assert again.reset(seed=0) == env.reset(seed=0)


def test_settings_reach_the_problem():
    env = gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="semi-slippery", measuring_cost=0.05)
    assert env.unwrapped.model.equals(am.problems.frozen_lake(size=4, variant="semi-slippery", measuring_cost=0.05))
    assert env.get_wrapper_attr("measuring_cost") == 0.05
    assert type(env.unwrapped) is am.envs.FrozenLakeEnv
    value = gymnasium.make("actmeasure/MeasuringValue-v0", p=0.7)
    assert value.unwrapped.model.equals(am.problems.measuring_value(p=0.7))


@pytest.mark.parametrize(
    ("setting", "meant"), [("varient", "variant"), ("max_step", "max_steps"), ("reveal", "reveal_start")]
)
def test_unknown_settings(setting, meant):
    with pytest.raises(am.ModelError, match=f"unknown setting of frozen-lake '{setting}'; did you mean '{meant}'"):
        gymnasium.make("actmeasure/FrozenLake-v0", **{setting: 3})


def test_unknown_values_and_problems():
    with pytest.raises(am.ModelError, match="did you mean 'slippery'"):
        gymnasium.make("actmeasure/FrozenLake-v0", variant="slipery")
    with pytest.raises(am.ModelError, match="did you mean 'tight-bound'"):
        am.envs.ProblemEnv("tight-bond")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised(mode):
    envs = gymnasium.make_vec(
        "actmeasure/FrozenLake-v0",
        num_envs=3,
        vectorization_mode=mode,
        size=4,
        variant="deterministic",
        measuring_cost=0.05,
    )
    observations, info = envs.reset(seed=0)
    assert observations.tolist() == [0, 0, 0]
    assert info["measured"].tolist() == [True] * 3
    observations, rewards, terminated, _, info = envs.step(np.array([[1, 1], [1, 0], [2, 1]]))
    assert observations.tolist() == [4, 16, 1]
    np.testing.assert_allclose(rewards, [-0.05, 0.0, -0.05])
    assert info["measuring_cost"].tolist() == [0.05, 0.0, 0.05]
    assert not terminated.any()
    envs.close()


def test_registering_again_changes_nothing():
    before = dict(gymnasium.registry)
    register_environments()  # and does not warn
    assert gymnasium.registry == before


def in_a_new_process(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    ).stdout


MADE = "; assert gymnasium.make('actmeasure/FrozenLake-v0').reset(seed=0)[0] == 0"


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, actmeasure",
        "import actmeasure, gymnasium",
        # The rest are ways of the same two orders.
        *(
            pytest.param(code, marks=pytest.mark.slow)
            for code in (
                "import actmeasure.envs, gymnasium",
                "import gymnasium, actmeasure.envs",
                "import gymnasium; gymnasium.make('actmeasure:actmeasure/FrozenLake-v0')",
                "import actmeasure.envs, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium",
                "import actmeasure as am; am.ActiveMeasuring; import gymnasium",
                "import gymnasium; gymnasium.make('actmeasure.envs:actmeasure/FrozenLake-v0')",
            )
        ),
    ],
)
def test_the_order_of_imports_is_free(imports):
    in_a_new_process(imports + MADE)


def test_registering_imports_gymnasium_and_nothing_else_that_is_heavy():
    code = "import sys, actmeasure; hooks = sys.meta_path; import gymnasium; assert sys.meta_path is hooks"
    code += "; assert 'actmeasure/TightBound-v0' in gymnasium.registry"
    code += "; print(*{'numba', 'scipy', 'actmeasure.model', 'actmeasure.problems'} & set(sys.modules))"
    assert in_a_new_process(code).split() == []


def test_the_command_loads_gymnasium_only_when_it_needs_it():
    """`-X importtime` writes every module that is imported, a line each."""
    script = Path(sys.executable).parent / "actmeasure"
    for command in (["-m", "actmeasure", "--help"], [str(script), "--help"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *command], check=True, capture_output=True, text=True
        )
        imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
        assert "actmeasure.envs.registration" in imported
        assert not {"gymnasium", "numpy"} & imported


def test_environments_are_registered_in_the_command_once_they_can_be_used():
    code = "import sys; sys.argv[0] = 'actmeasure'; import actmeasure; assert 'gymnasium' not in sys.modules"
    code += "; actmeasure.train; import gymnasium; assert 'actmeasure/TightBound-v0' in gymnasium.registry"
    in_a_new_process(code)


def test_public_names():
    assert set(am.envs.__all__) <= set(dir(am.envs))
    assert all(getattr(am.envs, name) for name in am.envs.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Lake'"):
        am.envs.Lake  # noqa: B018
