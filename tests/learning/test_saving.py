"""Agents as files: a run that is interrupted and continued equals one that was not; damaged files are refused with a sentence."""

import io
import json
import zipfile

import gymnasium
import numpy as np
import pytest

import actmeasure as am

LEARNERS = ("atmq", "dyna-atmq", "amrl-q")
LAKE = am.problems.frozen_lake(4, measuring_cost=0.05)
WORLDS = {
    "lake": LAKE,
    "costs and hidden starts": LAKE.replace(
        measuring_cost=np.random.default_rng(0).random((16, 4)),
        initial=np.eye(16)[[0, 4, 8]].mean(axis=0),
        reveal_start=False,
    ),
    "tabular environment": am.envs.TabularEnv(am.problems.measuring_value()),
    "taxi": am.ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01),
    "hidden cliff": am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.01, reveal_start=False),
}
EPISODES = ("scalarized_return", "reward", "measurements", "steps", "terminated")


def make(name, **settings):
    return am.agents.make(name, **({"training_updates": 5} if name == "dyna-atmq" else {}) | settings)


def same_state(one, other):
    """Whether two agents know the same, bit for bit."""
    mine, theirs = one.learned(), other.learned()
    tables = mine.keys() == theirs.keys() and all(mine[k].tobytes() == theirs[k].tobytes() for k in mine)
    task = [(t.n_states, t.n_actions, np.asarray(t.measuring_cost).tolist(), t.discount, t.reveal_start, t.largest_reward,
             t.planned_episodes, None if t.start is None else (t.start.states.tolist(), t.start.probabilities.tolist()))
            for t in (one.task, other.task)]  # fmt: skip
    return (
        tables
        and task[0] == task[1]
        and one.starts == other.starts
        and one.settings == other.settings
        and one.episodes_done == other.episodes_done
        and type(one) is type(other)
    )


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("which", WORLDS)
def test_a_run_that_is_interrupted_and_continued_equals_one_that_was_not(which, name, tmp_path):
    world, path = WORLDS[which], tmp_path / "agent.npz"
    uninterrupted = make(name)
    whole = am.train(uninterrupted, world, episodes=24, seed=5, max_steps=30)
    agent, parts = make(name), []
    for _ in range(3):
        parts.append(am.train(agent, world, episodes=8, seed=5, max_steps=30, planned_episodes=24))
        agent.save(path)
        loaded = am.agents.load(path)
        assert same_state(agent, loaded)
        agent = loaded
    for field in EPISODES:
        joined = np.concatenate([getattr(part, field) for part in parts])
        assert joined.tolist() == getattr(whole, field).tolist()
    assert same_state(agent, uninterrupted)
    if which != "hidden cliff":
        assert agent.model().equals(uninterrupted.model())


@pytest.mark.parametrize("name", LEARNERS)
def test_long_runs_on_a_model(name, tmp_path):
    """Long enough for training, the dropped prior, and the end of exploration."""
    agent, path = make(name), tmp_path / "agent.npz"
    whole = am.train(make(name), LAKE, episodes=400, seed=1, max_steps=100)
    first = am.train(agent, LAKE, episodes=250, seed=1, max_steps=100, planned_episodes=400)
    agent.save(path)
    second = am.train(am.agents.load(path), LAKE, episodes=150, seed=1, max_steps=100)
    assert np.concatenate([first.steps, second.steps]).tolist() == whole.steps.tolist()
    assert np.concatenate([first.reward, second.reward]).tolist() == whole.reward.tolist()


def test_every_setting_is_kept(tmp_path):
    chosen = {
        "learning_rate": 0.25, "discount": 0.5, "particles": 33, "optimism": 4, "largest_reward": 2.5,
        "exploratory_measurements": 3, "prior_until": None, "measure_when_spread": None, "measure_when_settled": 0.25,
        "random_measuring": 0.125, "optimistic_measuring": False, "observed_target": False, "cost_in_target": True,
        "prior_in_rewards": True, "own_rewards": False, "knows_it_runs": False, "training_updates": 3,
        "training_greedy": 0.75, "training_needs": 2,
    }  # fmt: skip
    agent = am.agents.make("dyna-atmq", **chosen)
    assert set(chosen) == set(vars(agent.settings))
    assert all(getattr(agent.settings, key) != getattr(am.agents.make("dyna-atmq").settings, key) for key in chosen)
    am.train(agent, LAKE, episodes=2)
    agent.save(tmp_path / "agent.npz")
    assert vars(am.agents.load(tmp_path / "agent.npz").settings) == chosen


def test_belief_after_loading_is_empty_until_an_episode_begins(tmp_path):
    agent = make("atmq")
    am.train(agent, LAKE, episodes=5)
    agent.save(tmp_path / "agent.npz")
    assert am.agents.load(tmp_path / "agent.npz").belief().is_over


def test_files_are_the_same_every_time_and_replaced_in_one_step(tmp_path):
    agent = make("atmq")
    am.train(agent, LAKE, episodes=5)
    agent.save(tmp_path / "one.npz")
    agent.save(str(tmp_path / "TWO.NPZ"))
    agent.save(tmp_path / "one.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "TWO.NPZ").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["TWO.NPZ", "one.npz"]


# What cannot be loaded or saved


def saved(name, tmp_path, world=LAKE, episodes=60, **settings):
    agent, path = make(name, **settings), tmp_path / f"{name}.npz"
    am.train(agent, world, episodes=episodes, seed=3, max_steps=30)
    agent.save(path)
    return agent, path


def attempt(path, contents, original):
    """Load bytes as a file: an `AgentError` with a sentence, or an agent that is the same and can go on."""
    path.write_bytes(contents)
    agent = load_or_refuse(path)
    assert agent is None or same_state(agent, original)
    return agent is not None


def load_or_refuse(path):
    """The agent, or None after an `AgentError` that names the file and says something of it."""
    try:
        return am.agents.load(path)
    except am.AgentError as error:
        said = str(error)
    assert said.startswith(f"{path}: ")
    assert len(said) > len(str(path)) + 20
    return None


@pytest.mark.parametrize("name", LEARNERS)
def test_truncated_files(name, tmp_path):
    agent, path = saved(name, tmp_path)
    contents = path.read_bytes()
    ends = {*range(0, len(contents), 37), *range(len(contents) - 40, len(contents))}
    assert not any(attempt(path, contents[:end], agent) for end in sorted(ends))
    assert attempt(path, contents, agent)


@pytest.mark.parametrize("name", LEARNERS)
def test_bytes_that_flipped(name, tmp_path):
    agent, path = saved(name, tmp_path)
    contents, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(400):
        damaged = bytearray(contents)
        for place in rng.integers(len(contents), size=rng.integers(1, 4)):
            damaged[place] ^= int(rng.integers(1, 256))
        attempt(path, bytes(damaged), agent)


def members(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def load_members(path, arrays, load=am.agents.load):
    file = io.BytesIO()
    np.savez(file, **arrays)
    path.write_bytes(file.getvalue())
    return load(path)


def altered(array, rng):
    """A copy of an array with an entry, its type or its shape changed."""
    values = [0, 1, -1, 0.5, 1e300, -1e300, np.nan, np.inf, 2**31, 2**62, -(2**62), 7, 2**63 - 1, 16]
    flat = array.reshape(-1)
    if not flat.size:
        return np.zeros(1, array.dtype)
    somewhere = int(rng.integers(flat.size))
    other = flat.copy()
    with np.errstate(all="ignore"):
        other[somewhere] = np.array(values[int(rng.integers(len(values)))]).astype(flat.dtype)
        kinds = array.astype(rng.choice(["<f8", "<i8", "<i4", "|u1", "<f4", "<U3", "<c16"]))
    choices = [
        np.delete(flat, somewhere), np.append(flat, flat[:1]), rng.permutation(flat).reshape(array.shape), kinds,
        array.reshape(-1, 1), flat[:0], *[other.reshape(array.shape)] * 6,
    ]  # fmt: skip
    return choices[int(rng.integers(len(choices)))]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("which", ["lake", "costs and hidden starts", pytest.param("taxi", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings(
    "ignore:overflow encountered:RuntimeWarning"
)  # with values of 1e300, which can be told from no others
def test_arrays_that_contradict_each_other(name, which, tmp_path):
    """Behind a sound archive, so that our own checks are what is left: an `AgentError`, or an agent that can go on."""
    world = WORLDS[which]
    _, path = saved(name, tmp_path, world, episodes=10 if which == "taxi" else 60)
    arrays, rng = members(path), np.random.default_rng(2)
    names = [key for key in arrays if key not in ("about", "measuring_cost")]  # another cost is another task
    refused = 0
    for _ in range(120):
        damaged = str(rng.choice(names))
        agent = load_members(path, arrays | {damaged: altered(arrays[damaged], rng)}, load_or_refuse)
        refused += agent is None
        if agent is not None:
            am.train(agent, world, episodes=2, seed=3, max_steps=30)
    assert refused > 60


def entry(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("first", lambda a: entry(a, 0, 10**6), "counts of transitions contradict"),
        ("first", lambda a: entry(a, 0, -1), "counts of transitions contradict"),
        ("first", lambda a: a[:-1], "pairs of state and action"),
        ("first", np.zeros_like, "counts of transitions contradict"),
        ("following", lambda a: entry(a, 2, 2), "counts of transitions contradict"),  # a circle
        ("following", lambda a: entry(a, 0, 1), "counts of transitions contradict"),
        ("following", lambda a: a[:-1], "'following' has shape"),
        ("measured", lambda a: entry(a, 0, a[0] + 1), "counts of transitions contradict"),
        ("successors", lambda a: entry(a, 1, 17), "counts of transitions contradict"),
        ("successors", lambda a: a[:0], "has shape|contradict"),
        ("times", lambda a: entry(a, 1, 0), "counts of transitions contradict"),
        ("times", lambda a: entry(a, 0, 3), "counts of transitions contradict"),
        ("rewards", lambda a: entry(a, 0, np.nan), "'rewards' holds numbers above"),
        ("rewards", lambda a: entry(a, 0, 1e300), "'rewards' holds numbers above"),
        ("values", lambda a: entry(a, 0, np.inf), "'values' holds numbers above"),
        ("values", lambda a: entry(a, -1, 1.0), "tables of values contradict"),
        ("optimistic", lambda a: entry(a, 0, 100.0), "tables of values contradict"),
        ("best", lambda a: entry(a, 0, 100.0), "tables of values contradict"),
        ("best", lambda a: entry(a, -1, 100.0), "tables of values contradict"),
        ("greedy", lambda a: entry(a, 0, 4), "tables of values contradict"),
        ("greedy", lambda a: entry(a, 0, -1), "tables of values contradict"),
        ("greedy", lambda a: entry(a, 0, (a[0] + 1) % 4), "tables of values contradict"),
        ("ready", lambda a: entry(a, 0, 16), "states it trains"),
        ("ready", lambda a: a[:-1], "states it trains"),
        ("ready", lambda a: np.arange(16), "states it trains"),  # would leave no room for the next one
        ("ready", lambda a: entry(a, 0, a[1]), "states it trains"),
        ("sums", lambda a: a[:1], "'sums' has shape"),
        ("measuring_cost", lambda a: np.array(-1.0), "out of range"),
        ("measuring_cost", lambda a: np.array(np.nan), "out of range"),
        ("measuring_cost", lambda a: np.zeros((4, 16)), "pairs of state and action"),
        ("start_states", lambda a: entry(a, 0, 16), "distribution of the start"),
        ("start_states", lambda a: a[:0], "distribution of the start"),
        ("start_probabilities", lambda a: a * 0.5, "distribution of the start"),
        ("start_probabilities", lambda a: a * np.nan, "distribution of the start"),
        ("seen_starts", lambda a: np.array([3]), "starts it has seen"),
    ],
)
def test_damage_is_named(key, change, message, tmp_path):
    _, path = saved("dyna-atmq", tmp_path, training_needs=2)
    arrays = members(path)
    with pytest.raises(am.AgentError, match=message):
        load_members(path, arrays | {key: change(arrays[key])})


@pytest.mark.parametrize(("name", "former", "present"), [
    ("amrl-q", {"exploration": 0.25}, {"random_decisions": 0.25}),
    ("acno-otp", {"exploration": "euler"}, {"exploring_method": "euler"}),
    ("acno-otp", {"exploration": "euler", "ucb": 3.0}, {"exploring_method": "euler", "exploration": 3.0}),
    ("acno-pomcp", {"ucb": 3.0}, {"exploration": 3.0}),
])  # fmt: skip
def test_former_names_of_settings_are_understood(name, former, present):
    made, meant = am.agents.make(name, **former), am.agents.make(name, **present)
    assert made.settings == meant.settings == type(made)(**former).settings


def test_a_setting_is_not_given_under_its_former_name_and_its_present_one():
    with pytest.raises(am.AgentError, match="'exploration' is given twice, once by its former name"):
        am.agents.make("acno-pomcp", ucb=3.0, exploration=3.0)


@pytest.mark.parametrize("place", [-1, 10**6, "of another pair", "of a rarer one"])
def test_damaged_likeliest_successors(place, tmp_path):
    agent, path = saved("amrl-q", tmp_path, random_decisions=1.0)
    arrays = members(path)
    pair = next(
        pair for pair in range(64) if arrays["following"][arrays["first"][pair]] and agent.counts.measured[pair] % 2
    )
    chain = [arrays["first"][pair], arrays["following"][arrays["first"][pair]]]
    other = next(p for p in range(64) if p != pair and arrays["first"][p])
    rarer = min(chain, key=lambda e: arrays["times"][e])
    place = {"of another pair": arrays["first"][other], "of a rarer one": rarer}.get(place, place)
    with pytest.raises(am.AgentError, match="likeliest successors"):
        load_members(path, arrays | {"likeliest": entry(arrays["likeliest"], pair, place)})


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "atmk"}, "unknown agent 'atmk'; did you mean"),
        ({"agent": "random"}, "unknown agent 'random'"),
        ({"agent": 3}, "unknown agent 3"),
        ({"settings": []}, "settings"),
        ({"settings": {}}, "settings"),
        ({"n_states": 15}, "pairs of state and action|shape"),
        ({"n_states": 4, "n_actions": 16}, "shape|contradict|pairs"),
        ({"n_states": 17}, "pairs of state and action|shape"),
        ({"n_states": 0}, "'n_states' is 0, expected a whole number of at least 1"),
        ({"n_actions": 4.0}, "'n_actions' is 4.0"),
        ({"n_states": 10**30}, "n_states|pairs"),
        ({"discount": 1.5}, "out of range"),
        ({"discount": "most"}, "'discount' is 'most'"),
        ({"episodes_done": -1}, "'episodes_done' is -1"),
        ({"episodes_done": 10**30}, "'episodes_done' is 10+, expected"),
        ({"planned_episodes": 0}, "'planned_episodes' is 0"),
        ({"largest_reward": True}, "'largest_reward' is True"),
        ({"reveal_start": 1}, "'reveal_start' is 1"),
        ({"start_is_told": "yes"}, "'start_is_told' is 'yes'"),
        ({"version": 4}, "update actmeasure"),
        ({"version": 3}, "do not tell of the same measurements"),
        ({"format": "actmeasure model"}, "not an agent file of actmeasure"),
        ({"surprise": 1}, "unknown key 'surprise'"),
    ],
)
def test_what_the_file_says_about_itself(name, changes, message, tmp_path):
    _, path = saved(name, tmp_path, episodes=5)
    arrays = members(path)
    about = json.loads(arrays["about"].tobytes()) | changes
    with pytest.raises(am.AgentError, match=message):
        load_members(path, arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})


@pytest.mark.parametrize(
    ("setting", "value"),
    [("self", 1), ("preset", "paper"), ("particles", 10**12), ("particles", 0), ("learning_rate", 7), ("discount", -1)],
)
def test_settings_that_cannot_be(setting, value, tmp_path):
    _, path = saved("atmq", tmp_path, episodes=5)
    arrays = members(path)
    about = json.loads(arrays["about"].tobytes())
    about["settings"][setting] = value
    with pytest.raises(am.AgentError, match=setting):
        load_members(path, arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})


@pytest.mark.parametrize("name", LEARNERS)
def test_missing_and_surplus_arrays(name, tmp_path):
    _, path = saved(name, tmp_path, episodes=5)
    arrays = members(path)
    for key in arrays:
        with pytest.raises(am.AgentError, match=key):
            load_members(path, {other: values for other, values in arrays.items() if other != key})
    with pytest.raises(am.AgentError, match="surprise"):
        load_members(path, arrays | {"surprise": np.zeros(3)})


def test_files_of_another_kind(tmp_path):
    path = tmp_path / "model.npz"
    LAKE.save(path)
    with pytest.raises(am.AgentError, match="not an agent file of actmeasure"):
        am.agents.load(path)
    _, agent_file = saved("atmq", tmp_path)
    with pytest.raises(am.ModelError, match="not a model file"):
        am.Model.load(agent_file)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(am.AgentError, match="not a file of actmeasure"):
        am.agents.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(am.AgentError, match="not a file of actmeasure"):
        am.agents.load(path)
    path.write_bytes(b"")
    with pytest.raises(am.AgentError, match="archive"):
        am.agents.load(path)


@pytest.mark.parametrize("path", ["agent", "agent.json", "agent.npz.txt", "", "a\0.npz", None, 3, b"agent.npz"])
def test_paths_without_the_suffix(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent, _ = saved("amrl-q", tmp_path)
    for use in (agent.save, am.agents.load):
        with pytest.raises(am.AgentError, match=r"expected the name of a file that ends in \.npz"):
            use(path)


def test_places_that_cannot_be_read_or_written(tmp_path):
    agent, path = saved("amrl-q", tmp_path)
    (tmp_path / "folder.npz").mkdir()
    for place in (tmp_path / "nowhere" / "agent.npz", tmp_path / "folder.npz", path / "agent.npz"):
        with pytest.raises(am.AgentError, match=r"\.npz"):
            agent.save(place)
        with pytest.raises(am.AgentError, match=r"\.npz"):
            am.agents.load(place)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["amrl-q.npz", "folder.npz"]
    assert same_state(am.agents.load(path), agent)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_saved_agent_on_a_task_of_another_size(name, tmp_path):
    _, path = saved(name, tmp_path)
    loaded = am.agents.load(path)
    for world in (am.problems.measuring_value(), WORLDS["taxi"]):
        with pytest.raises(am.AgentError, match="trained with 16 states and 4 actions, but this task has"):
            am.train(loaded, world, episodes=1)
    am.train(loaded, LAKE, episodes=1)


def test_a_huge_number_of_planned_episodes(tmp_path):
    for name in LEARNERS:
        agent = make(name)
        am.train(agent, LAKE, episodes=1, planned_episodes=10**12)
        agent.save(tmp_path / "agent.npz")
        assert am.agents.load(tmp_path / "agent.npz").task.planned_episodes == 10**12
