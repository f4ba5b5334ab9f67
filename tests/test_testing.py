"""The public checks find what is broken: for each part of them, something that only this part catches."""

from dataclasses import replace

import numpy as np
import pytest

import actmeasure as am


class Broken(am.agents.Agent):
    """Decides the same at every step, or at random with a generator of its own."""

    def __init__(self, decision=None, own_randomness=False):
        self.decision, self.own = decision or am.Decision(0, False), np.random.default_rng() if own_randomness else None

    def begin(self, observation):
        self.seen = observation

    def decide(self):
        return am.Decision(0, bool(self.own.integers(2))) if self.own else self.decision

    def observe(self, reward, cost, observation, terminated, truncated):
        self.seen = observation


class BrokenLater(Broken):
    """Chooses an action that does not exist, but only from its tenth episode on."""

    def decide(self):
        return am.Decision(99 if self.episodes_done >= 9 else 0, False)


class Forgetful(Broken):
    """Does not tell its parent about the task."""

    def prepare(self, task):
        self.n_actions = task.n_actions


class Countless(Broken):
    """Always says that it has played no episode."""

    episodes_done = property(lambda self: 0, lambda self, value: None)


class Compiled(am.agents.CompiledAgent):
    """Looks at every step; its compiled run is given to it."""

    def __init__(self, fill):
        self.fill = fill

    def begin(self, observation):
        pass

    def decide(self):
        return am.Decision(0, True)

    def observe(self, reward, cost, observation, terminated, truncated):
        pass

    def run(self, model, seed, first_episode, max_steps, episodes):
        self.fill(seed, first_episode, episodes)


def one_stream_for_each_call(seed, first_episode, episodes):
    """Depends on how a run is cut into calls."""
    episodes.scalarized_return[:] = np.random.default_rng([seed, first_episode]).random(len(episodes))


def something_else(seed, first_episode, episodes):
    episodes.scalarized_return[:] = 7.0


TRAINED = am.agents.RandomAgent()
TRAINED.episodes_done = 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda model: Broken((0, 1)), r"decide\(\) of Broken gave \(0, 1\), expected a Decision"),
        (lambda model: Broken(am.Decision(9, False)), r"gave Decision\(action=9.*from 0 to 1"),
        (lambda model: Broken(am.Decision(0, "yes")), "measurement='yes'.*a measurement 0 .none. or 1"),
        (lambda model: Broken(am.Decision(0.5, False)), "action=0.5"),
        (lambda model: Broken(am.Decision(True, False)), "action=True"),
        (lambda model: BrokenLater(), "action=99"),
        (lambda model: Forgetful(), r"prepare\(\) of Forgetful .*super\(\).prepare\(task\)"),
        (lambda model: Broken(own_randomness=True), "two runs with the same seed differ"),
        (lambda model: Countless(), "episodes_done does not count"),
        (lambda model: Compiled(one_stream_for_each_call), "a run that was continued differs"),
        (lambda model: Compiled(something_else), "the compiled run differs"),
        (lambda model: "agent", r"make\(model\) gave 'agent', expected an Agent"),
        (lambda model: None, r"make\(model\) gave None"),
        (lambda model: TRAINED, "trained before; make a new one"),
        (lambda: TRAINED, "make does not take a model"),
        (Broken, "make is <class .*expected a function from Model to Agent"),
        (Broken(), "make is .*expected a function from Model to Agent"),
        (3, "make is 3"),
    ],
)
def test_broken_agents_are_found(make, message):
    with pytest.raises(AssertionError, match=message):
        am.testing.check_agent(make)


@pytest.mark.parametrize("episodes", [0, 1])
def test_too_few_episodes_to_continue(episodes):
    with pytest.raises(AssertionError, match=f"episodes is {episodes}, expected at least 2"):
        am.testing.check_agent(lambda model: am.agents.RandomAgent(), episodes=episodes)


class Memory(Broken):
    """Counts its steps over all episodes, and so goes on only if the second run leaves it as the first one left it."""

    def prepare(self, task):
        super().prepare(task)
        self.steps = 0

    def decide(self):
        self.steps += 1
        return am.Decision(0, self.steps % 3 == 0)


def test_agents_that_can_be_continued_pass():
    am.testing.check_agent(lambda model: Memory())


def test_models_that_are_none_are_refused():
    with pytest.raises(AssertionError, match="expected a Model"):
        am.testing.check_model("model")


def model(**settings):
    """Rewards per successor, costs per state and action, and a random start: every array there can be."""
    P = np.array([[[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [[0.0] * 3] * 2])
    R = np.where(P > 0, np.arange(18.0).reshape(3, 2, 3), 0.0)
    defaults = {"measuring_cost": np.full((3, 2), 0.25), "initial": [0.5, 0.5, 0.0], "terminal": [False, False, True]}
    return am.Model.from_arrays(P, R, **defaults | settings)


def read_only(values):
    array = np.array(values)
    array.setflags(write=False)
    return array


def with_table(**changes):
    sound = model()
    return replace(sound, transitions=replace(sound.transitions, **changes))


ARRAYS = ("rewards", "transition_rewards", "terminal", "initial_states", "initial_probabilities")
TABLE_ARRAYS = ("offsets", "successors", "probabilities")


class Dear(am.Measurement):
    """Charges another price than it has."""

    def of(self, state, action):
        return 3.0


def with_names(*names):
    broken = model()
    object.__setattr__(broken, "state_names", names)
    return broken


def test_a_sound_model_passes():
    am.testing.check_model(model())
    am.testing.check_model(model(reveal_start=False))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        *((replace(model(), **{name: getattr(model(), name).copy()}), f"^{name} can be written to") for name in ARRAYS),
        *(
            (with_table(**{name: getattr(model().transitions, name).copy()}), f"^transitions.{name} can be written to")
            for name in TABLE_ARRAYS
        ),
        (
            replace(model(), measurements=(am.Measurement("look", np.zeros((3, 2))),)),
            "^measuring_cost can be written to",
        ),
        (
            replace(model(), transition_rewards=read_only([1.0])),
            r"transition_rewards has shape \(1,\), expected \(6,\)",
        ),
        (replace(model(), rewards=read_only([1.0])), r"rewards has shape \(1,\), expected \(3, 2\)"),
        (replace(model(), terminal=[False, False, True]), "terminal is of type list, expected an array"),
        (with_table(probabilities=read_only(model().transitions.probabilities * 0.9)), "does not sum to 1"),
        (replace(model(), terminal=read_only([False, True, True])), "a terminal state has transitions"),
        (replace(model(), rewards=read_only(model().rewards * np.nan)), "a reward is not a finite number"),
        (replace(model(), rewards=read_only(model().rewards + 1)), "are not the mean of the transition rewards"),
        (replace(model(), initial_probabilities=read_only([0.5, 0.4])), "initial distribution does not sum to 1"),
        (replace(model(), initial_states=read_only([0, 2])), "may begin in a terminal state"),
        (with_names("a", "a", "b"), r"cannot be saved and loaded as .npz: .*'a' more than once"),
        (replace(model(), measurements=(Dear("look", 0.25),)), "as .pomdp: .*it has the measuring cost 0.25 where"),
    ],
)
def test_broken_models_are_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        am.testing.check_model(broken)


def test_what_only_the_pomdp_format_cannot_hold(monkeypatch):
    def too_large(value):
        raise am.ModelError("a number of the file would be inf")

    monkeypatch.setattr("actmeasure.files.pomdp_writer.exact_decimal", too_large)
    with pytest.raises(AssertionError, match=r"cannot be saved and loaded as .pomdp: .*would be inf"):
        am.testing.check_model(model())


@pytest.mark.parametrize("suffix", [".npz", ".json", ".pomdp"])
@pytest.mark.parametrize("changes", [{"discount": 0.5}, {"measuring_cost": 0.25 * (1 + 1e-14)}])
def test_files_that_come_back_different(suffix, changes, monkeypatch):
    load = am.Model.load

    def changed(path):
        loaded = load(path)
        return loaded.replace(**changes) if path.suffix == suffix else loaded

    monkeypatch.setattr(am.Model, "load", changed)
    with pytest.raises(AssertionError, match=f"not the same after saving and loading it as {suffix}"):
        am.testing.check_model(model(measuring_cost=0.25))


def test_beliefs_that_are_not_the_transition_row(monkeypatch):
    monkeypatch.setattr(am.Belief, "predict", lambda belief, model, action: am.Belief.at(0))
    with pytest.raises(AssertionError, match="the belief after action"):
        am.testing.check_model(model())


def test_environments_that_gymnasium_finds_fault_with(monkeypatch):
    reset = am.envs.TabularEnv.reset
    monkeypatch.setattr(am.envs.TabularEnv, "reset", lambda env, seed=None, options=None: reset(env))
    with pytest.raises(AssertionError, match="does not pass Gymnasium's check_env"):
        am.testing.check_model(model())


def change_steps(monkeypatch, change):
    step = am.envs.TabularEnv.step
    monkeypatch.setattr(am.envs.TabularEnv, "step", lambda env, action: change(*step(env, action)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda seen, reward, *rest: (min(seen, 2), reward, *rest), "does not show the state exactly when"),
        (lambda seen, reward, *rest: (seen, reward + 1, *rest), "the reward is not scalarized"),
        (
            lambda seen, reward, ended, cut, info: (
                seen, reward + 1, ended, cut, info | {"reward": info["reward"] + 1}
            ),
            "the environment pays",
        ),
        (
            lambda seen, reward, ended, cut, info: (
                seen, reward - 1, ended, cut, info | {"measuring_cost": info["measuring_cost"] + 1}
            ),
            "charges 1.25 for looking with action . in state ., the model 0.25",
        ),
        (lambda seen, *rest: (seen if seen == 3 else 1, *rest), "leads to state 1 after .* which the model does not"),
    ],
)  # fmt: skip
def test_environments_that_do_not_play_by_the_model(change, message, monkeypatch):
    change_steps(monkeypatch, change)
    with pytest.raises(AssertionError, match=message):
        am.testing.check_model(model())


def test_starts_that_are_shown_by_mistake(monkeypatch):
    reset = am.envs.TabularEnv.reset

    def shown(env, *, seed=None, options=None):
        _, info = reset(env, seed=seed, options=options)
        return env._state, info

    monkeypatch.setattr(am.envs.TabularEnv, "reset", shown)
    with pytest.raises(AssertionError, match="at the start, against reveal_start"):
        am.testing.check_model(model(reveal_start=False))
