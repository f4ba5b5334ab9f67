"""Agents, problems and environments of one's own in studies: by name, as classes, registered, and from installed packages."""

import json
import subprocess
import sys
import textwrap

import gymnasium
import numpy as np
import pytest
from command_line import actmeasure
from study_tools import InlineEngine, stored, tables

import actmeasure as am
from actmeasure import learning
from actmeasure.learning.fixed_agents import RandomAgent
from actmeasure.studies import (
    AgentSpec,
    LocalEngine,
    Part,
    ProblemSpec,
    RayEngine,
    Study,
    code_digest,
    read_study,
    run_study,
)
from actmeasure.studies.code_digest import code_of, own_code

AGENT = """
    from {helper} import PROBABILITY
    from actmeasure.learning.fixed_agents import RandomAgent


    class Looks(RandomAgent):
        def __init__(self, probability: float = PROBABILITY, weights=None):
            super().__init__(measure_probability=probability)


    def pump(p: float = 0.8, measuring_cost: float = 0.1):
        import actmeasure as am

        return am.problems.measuring_value(p=p, measuring_cost=measuring_cost)
"""
STUDY = """
name = "own"
[[part]]
name = "a"
episodes = 6
seeds = 2
problems = ["{name}:pump", {{name = "{name}:pump", label = "sure", settings = {{p = 1.0}}}}]
agents = ["{name}:Looks", {{name = "{name}:Looks", label = "often", settings = {{probability = 1.0}}}}, "random"]
methods = ["optimal"]
"""


@pytest.fixture
def forget(monkeypatch):
    """Forget modules, registered agents and the path of a test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    agents, before = dict(learning.AGENTS), set(sys.modules)
    yield
    learning.AGENTS.clear()
    learning.AGENTS.update(agents)
    for name in set(sys.modules) - before:
        if name.startswith(("mine_", "tiny_")):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path, forget):
    """A folder with an agent and a problem in a module, which imports another, and a study beside it."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(AGENT).format(helper=f"{name}_helper"))
    (tmp_path / f"{name}_helper.py").write_text("PROBABILITY = 0.25\n")
    (tmp_path / "study.toml").write_text(STUDY.format(name=name))
    return tmp_path, name


def test_a_study_file_names_own_agents_and_problems(folder):
    place, _ = folder
    study = read_study(place / "study.toml")
    (part,) = study.parts
    assert [agent.label for agent in part.agents] == ["Looks", "often", "random"]
    assert [problem.label for problem in part.problems] == ["pump", "sure"]
    run_study(study, place / "here", InlineEngine())
    results = am.studies.read_results(place / "here")
    assert not results.missing
    by_agent = results.episodes.groupby("agent")[["measurements", "steps"]].sum()
    assert by_agent.loc["often", "measurements"] == by_agent.loc["often", "steps"]
    assert by_agent.loc["Looks", "measurements"] < 0.6 * by_agent.loc["Looks", "steps"]
    # In a worker process, and again: nothing is left to do.
    assert run_study(study, place / "there", LocalEngine(1)).stopped == "done"
    assert tables(place / "there") == tables(place / "here")
    engine = InlineEngine()
    run_study(read_study(place / "study.toml"), place / "there", engine)
    assert not engine.ran


@pytest.mark.extras("ray")
@pytest.mark.slow
def test_own_agents_on_ray(folder):
    place, _ = folder
    code = (
        "import sys\nfrom actmeasure.studies import RayEngine, read_study, run_study\n"
        "print(run_study(read_study(sys.argv[1]), sys.argv[2], RayEngine(workers=2)).stopped)\n"
    )
    command = [sys.executable, "-P", "-c", code, place / "study.toml", place / "ray"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout == "done\n", done.stderr
    run_study(read_study(place / "study.toml"), place / "here", InlineEngine())
    assert tables(place / "ray") == tables(place / "here")
    assert RayEngine.name == "ray"


@pytest.mark.slow
def test_the_module_of_an_agent_and_what_it_imports_beside_it_are_part_of_a_trial(folder):
    place, name = folder
    code = (
        "import sys\nfrom actmeasure.studies import read_study\nfrom actmeasure.studies.code_digest import code_of\n"
        "trials = [trial for trial in read_study(sys.argv[1]).trials() if trial.agent and trial.seed == 0]\n"
        "print(*map(code_of, trials))\n"
    )

    def digests():
        command = [sys.executable, "-c", code, place / "study.toml"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    before = digests()
    (place / f"{name}_helper.py").write_text("PROBABILITY = 0.25  # a comment\n")
    assert digests() == before
    (place / f"{name}_helper.py").write_text("PROBABILITY = 0.5\n")
    after = digests()
    assert all(one != other for one, other in zip(before, after, strict=True))  # the problem is in that module, too


@pytest.mark.parametrize("is_package", [True, False])
def test_what_a_package_imports_from_beside_it_counts_too(tmp_path, tmp_path_factory, forget, is_package):
    """Modules of a package beside a study file, with or without `__init__.py`, import from its folder and another one."""
    other = tmp_path_factory.mktemp("mine_library")
    name = f"mine_{other.name.replace('-', '_')}"
    package = tmp_path / name
    package.mkdir()
    (package / "agents.py").write_text(
        f"from actmeasure.learning.fixed_agents import RandomAgent\nfrom {name}_beside import A\n"
        f"from {name}_library import B\n\n\nclass Mine(RandomAgent):\n    pass\n"
    )
    if is_package:
        (package / "__init__.py").write_text("C = 0\n")
    (tmp_path / f"{name}_beside.py").write_text("A = 0\n")
    (other / f"{name}_library.py").write_text("B = 0\n")
    sys.path[:0] = [str(tmp_path), str(other)]
    trial = am.studies.Trial.train(ProblemSpec("c", "chain"), AgentSpec("a", f"{name}.agents:Mine"), 1, 0)
    assert set(own_code(trial)["path"]) == {str(tmp_path.resolve()), str(other.resolve())}
    files = [tmp_path / f"{name}_beside.py", other / f"{name}_library.py", *[package / "__init__.py"] * is_package]
    found = [code_of(trial)]
    for file in files:
        file.write_text(file.read_text().replace("0", "1"))
        code_digest._code.cache_clear()
        code_digest._module.cache_clear()
        found.append(code_of(trial))
    assert len(set(found)) == 1 + len(files)


@pytest.mark.slow
def test_a_class_in_a_python_study(tmp_path, forget):
    file = tmp_path / "mine_study.py"
    file.write_text(
        "from actmeasure.learning.fixed_agents import RandomAgent\nfrom actmeasure.studies import AgentSpec, Part, Study\n"
        "import actmeasure as am\n\n\n"
        "class Mine(RandomAgent):\n    pass\n\n\n"
        "def lake():\n    return am.problems.frozen_lake(4)\n\n\n"
        'study = Study("s", "S", [Part("a", "A", [lake], [Mine, AgentSpec("other", Mine, {"measure_probability": 1.0})], '
        "episodes=3, seeds=2)])\n"
    )
    study = read_study(file)
    assert [agent.name for agent in study.parts[0].agents] == ["mine_study:Mine"] * 2
    assert study.parts[0].problems[0].name == "mine_study:lake"
    assert run_study(study, tmp_path / "out", LocalEngine(2)).stopped == "done"


@pytest.mark.slow
def test_a_class_of_a_script(tmp_path):
    """Run as `python script.py`; without the guard a sentence says what is missing."""
    text = (
        "from actmeasure.learning.fixed_agents import RandomAgent\n"
        "from actmeasure.studies import LocalEngine, Part, Study, run_study\n\n\n"
        "class Mine(RandomAgent):\n    pass\n\n\n"
        "{guard}\n"
        '    study = Study("s", "S", [Part("a", "A", ["chain"], [Mine], episodes=3, seeds=2)])\n'
        '    summary = run_study(study, "out{number}", LocalEngine(1))\n'
        "    print(summary.stopped, *{{failure.why for failure in summary.failures}})\n"
    )
    for number, guard in enumerate(("if __name__ == '__main__':", "if True:")):
        script = tmp_path / f"mine_script{number}.py"
        script.write_text(text.format(guard=guard, number=number))
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
        if number == 0:
            assert done.stdout == "done\n"
        else:
            assert "failed the study was started once more as a worker imported the script" in done.stdout


def test_registered_agents_are_made_and_sent_to_workers(folder, monkeypatch):
    place, name = folder
    sys.path.insert(0, str(place))
    module = __import__(name)
    am.agents.register("looks", module.Looks)
    am.agents.register("looks", module.Looks)  # again changes nothing
    assert am.agents.make("looks", probability=0.5).measure_probability == 0.5
    study = Study("s", "S", [Part("a", "A", ["chain"], ["looks"], episodes=3, seeds=2)])
    trial = study.trials()[0]
    assert own_code(trial) == {"modules": [name], "agent": f"{name}:Looks", "path": [str(place)]}
    assert run_study(study, place / "out", LocalEngine(1)).stopped == "done"
    with pytest.raises(am.AgentError, match="the agent 'random' exists already"):
        am.agents.register("random", module.Looks)
    with pytest.raises(am.AgentError, match="without a colon"):
        am.agents.register("a:b", module.Looks)
    with pytest.raises(am.AgentError, match=r"expected a subclass of actmeasure\.agents\.Agent"):
        am.agents.register("other", dict)


def test_agents_of_installed_packages(tmp_path, forget, monkeypatch):
    """A tiny package, as pip would install it."""
    (tmp_path / "tiny_agents.py").write_text(
        "from actmeasure.learning.fixed_agents import RandomAgent\n\n\nclass Tiny(RandomAgent):\n    pass\n"
    )
    about = tmp_path / "tiny_agents-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-agents\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[actmeasure.agents]\ntiny = tiny_agents:Tiny\nbroken = tiny_agents:Nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert type(am.agents.make("tiny")).__name__ == "Tiny"
    with pytest.raises(
        am.AgentError, match="the agent 'broken' of the entry point 'tiny_agents:Nothing' cannot be imp"
    ):
        am.agents.make("broken")
    with pytest.raises(am.AgentError, match="did you mean 'broken'"):
        am.agents.make("brokn")
    del learning.AGENTS["tiny"]
    listed = {row["agent"]: row["what"] for row in json.loads(actmeasure("agents", "--json").stdout)}
    assert listed["tiny"] == ""  # it has no docstring
    assert listed["broken"].startswith("the agent 'broken' of the entry point 'tiny_agents:Nothing' cannot be imported")
    assert actmeasure("agents", "tiny").stdout.startswith("tiny(measure_probability=0.5)")
    study = Study("s", "S", [Part("a", "A", ["chain"], ["tiny"], episodes=3, seeds=2)])
    assert run_study(study, tmp_path / "out", LocalEngine(1)).stopped == "done"
    assert len(stored(tmp_path / "out")) == 2


def test_commands_find_modules_of_the_present_folder(folder, monkeypatch):
    place, name = folder
    monkeypatch.chdir(place)
    assert actmeasure("agents", f"{name}:Looks").stdout.startswith(f"{name}:Looks(probability=0.25, weights=None)")
    arguments = (
        "train",
        "--problem",
        "chain",
        "--agent",
        f"{name}:Looks",
        "--episodes",
        "3",
        "--workers",
        "1",
        "--json",
    )
    assert len(json.loads(actmeasure(*arguments).stdout)["seeds"]) == 1


def test_a_module_that_ends_the_program_is_a_sentence(tmp_path, forget):
    (tmp_path / "mine_exit.py").write_text("import sys\n\nsys.exit(3)\n")
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(am.AgentError, match="'mine_exit:Mine' cannot be imported: SystemExit: 3"):
        am.agents.make("mine_exit:Mine")


def test_an_own_problem_or_agent_that_cannot_be_made_is_a_sentence(tmp_path, forget):
    (tmp_path / "mine_raising.py").write_text(
        "from actmeasure.learning.fixed_agents import RandomAgent\n\n\n"
        "def problem():\n    raise KeyError('q')\n\n\n"
        "class Mine(RandomAgent):\n    def __init__(self):\n        1 / 0\n"
    )
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(
        am.ModelError, match="the problem 'mine_raising:problem' cannot be made: KeyError: 'q'; correct"
    ):
        am.problems.make("mine_raising:problem")
    with pytest.raises(am.AgentError, match="the agent 'mine_raising:Mine' cannot be made: ZeroDivisionError"):
        am.agents.make("mine_raising:Mine")


def test_what_workers_cannot_import_is_a_sentence():
    class Local(RandomAgent):
        pass

    with pytest.raises(am.StudyError, match="define it at the top level of a module"):
        Part("a", "A", ["chain"], [Local])
    with pytest.raises(am.AgentError, match=r"cannot be imported: ModuleNotFoundError: No module named 'nowhere'"):
        am.agents.make("nowhere:Mine")
    with pytest.raises(am.ModelError, match="cannot be imported: ModuleNotFoundError"):
        am.problems.make("nowhere:problem")


def test_a_module_of_the_same_name_elsewhere_is_a_sentence(folder, tmp_path_factory):
    place, name = folder
    other = tmp_path_factory.mktemp("other")
    (other / f"{name}.py").write_text((place / f"{name}.py").read_text())
    sys.path.insert(0, str(place))
    __import__(name)
    (other / "study.toml").write_text((place / "study.toml").read_text())
    with pytest.raises(am.StudyError, match=r"was imported from .*, but the study has another one beside it"):
        read_study(other / "study.toml")


TAXI = ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=0.01)


def test_gymnasium_environments_are_problems(tmp_path):
    slow = ProblemSpec("cliff", gymnasium="CliffWalking-v1", measuring_cost=0.1, settings={"is_slippery": True})
    lake = ProblemSpec("lake", gymnasium="actmeasure/FrozenLake-v0", settings={"size": 4, "measuring_cost": 0.2})
    part = Part(
        "a", "A", [TAXI, slow, lake], ["amrl-q", "random"], episodes=3, seeds=2, max_steps=50, methods=["every-3"]
    )
    study = Study("gym", "Gym", [part])
    assert run_study(study, tmp_path / "here", InlineEngine()).failures == ()
    assert run_study(study, tmp_path / "there", LocalEngine(1)).stopped == "done"
    assert tables(tmp_path / "here") == tables(tmp_path / "there")
    results = am.studies.read_results(tmp_path / "here")
    own = results.episodes[(results.episodes.problem == "taxi") & (results.episodes.agent == "amrl-q")]
    env = am.ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01)
    trained = am.train(am.agents.make("amrl-q"), env, 3, seed=1, max_steps=50)
    assert own[own.seed == 1].scalarized_return.tolist() == trained.scalarized_return.tolist()
    # The lake is the model's own environment: the same episodes as on the model.
    model = am.train(am.agents.make("amrl-q"), am.problems.frozen_lake(4, measuring_cost=0.2), 3, seed=0, max_steps=50)
    of_lake = results.episodes[(results.episodes.problem == "lake") & (results.episodes.agent == "amrl-q")]
    assert of_lake[of_lake.seed == 0].scalarized_return.tolist() == model.scalarized_return.tolist()


def test_settings_of_an_environment_identify_the_trial():
    agent = AgentSpec("a", "random")
    specs = [
        TAXI,
        ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=0.02),
        ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=0.01, discount=0.9),
        ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=0.01, settings={"is_rainy": True}),
        ProblemSpec("cart", gymnasium="CartPole-v1", measuring_cost=0.01, grid={"bins": 3}),
        ProblemSpec("cart", gymnasium="CartPole-v1", measuring_cost=0.01, grid={"bins": 4}),
    ]
    trials = [am.studies.Trial.train(spec, agent, 1, 0) for spec in specs]
    assert len({trial.hash for trial in trials}) == len(specs)
    for trial in trials:
        assert am.studies.Trial.from_json(trial.to_json()).hash == trial.hash
    assert code_of(trials[0]) != code_of(am.studies.Trial.train(ProblemSpec("c", "chain"), agent, 1, 0))


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        ('{gymnasium = "Taxi-v4"}', "line 4: the problem 'Taxi-v4' has no measuring_cost"),
        ('{gymnasium = "Nowhere-v0", measuring_cost = 0.1}', "line 4: gymnasium.make cannot make 'Nowhere-v0'"),
        (
            '{gymnasium = "FrozenLake-v1", measuring_cost = 0.1, settings = {map_name = "5x5"}}',
            "line 4: gymnasium.make cannot make 'FrozenLake-v1': KeyError: '5x5'; correct the id or the settings",
        ),
        ('{gymnasium = "Taxi-v4", measuring_cost = -1}', "measuring_cost of the problem 'Taxi-v4' is -1"),
        ('{gymnasium = "Taxi-v4", name = "chain"}', "has both a name and the id of a Gymnasium environment"),
        ('{label = "x"}', "a problem has no name; give it one"),
        ('{gymnasium = "CartPole-v1", measuring_cost = 0.1}', "actmeasure.envs.Grid(env, bins=10)"),
        ('{gymnasium = "CartPole-v1", measuring_cost = 0.1, grid = {bin = 3}}', "did you mean 'bins'?"),
        ('{name = "chain", measuring_cost = 0.1}', "put it into the settings"),
        ('{gymnasium = "Taxi-v4", measuring_cost = "a"}', "measuring_cost is 'a', expected a number, or a list"),
        ('"nowhere_at_all:problem"', "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_with_an_environment_is_said_with_its_line(tmp_path, problem, sentence, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "study.toml"
    file.write_text(f'name = "s"\n[[part]]\nname = "a"\nproblems = [{problem}]\nagents = ["random"]\n')
    with pytest.raises(am.StudyError) as caught:
        read_study(file)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_nothing_can_be_planned_for_an_environment_without_tables(tmp_path):
    cart = ProblemSpec("cart", gymnasium="CartPole-v1", measuring_cost=0.01, grid={"bins": 2})
    study = Study("s", "S", [Part("a", "A", [cart], methods=["optimal"])])
    with pytest.raises(am.StudyError, match="CartPoleEnv has no transition table P"):
        run_study(study, tmp_path, InlineEngine())


def environment():
    return am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.1)


@pytest.mark.parametrize(
    ("world", "more"),
    [
        pytest.param(environment(), {}, marks=pytest.mark.slow),
        ("CliffWalking-v1", {"measuring_cost": 0.1}),
        (environment, {}),
    ],
)
def test_train_seeds_on_environments(world, more):
    runs = am.train_seeds("amrl-q", world, 4, seeds=2, max_steps=30, workers=1, discount=0.9, **more)
    for seed in range(2):
        alone = am.train(am.agents.make("amrl-q"), environment(), 4, seed, max_steps=30, discount=0.9)
        assert np.array_equal(runs.episodes[seed].scalarized_return, alone.scalarized_return)
    if not callable(world):
        several = am.train_seeds("amrl-q", world, 4, seeds=2, max_steps=30, workers=2, discount=0.9, **more)
        assert np.array_equal(several.episodes[1].scalarized_return, runs.episodes[1].scalarized_return)


def test_what_train_seeds_cannot_train_on_is_a_sentence():
    with pytest.raises(am.SpaceError, match="expected a Model, a Gymnasium environment, its id"):
        am.train_seeds("random", 3, 4)
    with pytest.raises(am.SpaceError, match=r"gymnasium\.make cannot make 'Nowhere-v0'"):
        am.train_seeds("random", "Nowhere-v0", 4)
    with pytest.raises(am.SpaceError, match="looking costs nothing in this environment; give the price of a look"):
        am.train_seeds("random", "Taxi-v4", 4)
    with pytest.raises(am.SpaceError, match=r"CartPoleVectorEnv, .* one of its environments"):
        am.train_seeds("random", gymnasium.make_vec("CartPole-v1", 2), 4)
