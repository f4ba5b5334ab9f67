"""Studies as data: what a trial's hash depends on, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_tools import small_study

import actmeasure as am
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, Trial

LAKE = ProblemSpec("lake", "frozen-lake", {"size": 4, "variant": "slippery"})
AGENT = AgentSpec("learner", "atmq", {"preset": "published", "learning_rate": 0.2})
TRAIN = Trial.train(LAKE, AGENT, episodes=100, seed=3, max_steps=50)
PLAN = Trial.plan(LAKE, "optimal", max_steps=50, tolerance=1e-5, beliefs=1000)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def test_labels_and_the_order_of_settings_do_not_matter():
    lake = ProblemSpec("another", "frozen-lake", {"variant": "slippery", "size": np.int64(4)})
    agent = AgentSpec("other", "atmq", {"learning_rate": 0.2, "preset": "published"}, seeds=7, episodes=9)
    assert replace(TRAIN, problem=lake, agent=agent).hash == TRAIN.hash
    assert replace(PLAN, problem=lake).hash == PLAN.hash


@pytest.mark.parametrize(
    "changed",
    [
        replace(TRAIN, seed=4),
        replace(TRAIN, episodes=101),
        replace(TRAIN, max_steps=51),
        replace(TRAIN, problem=ProblemSpec("lake", "frozen-lake", {"size": 4})),
        replace(TRAIN, problem=ProblemSpec("lake", "chain")),
        replace(TRAIN, agent=AgentSpec("learner", "atmq", {"preset": "published", "learning_rate": 0.3})),
        replace(TRAIN, agent=AgentSpec("learner", "dyna-atmq", AGENT.settings)),
        PLAN,
        replace(PLAN, method="atm"),
        replace(PLAN, max_steps=51),
        replace(PLAN, settings={"tolerance": 1e-6, "beliefs": 1000}),
        replace(PLAN, settings={"tolerance": 1e-5, "beliefs": 1001}),
    ],
)
def test_a_changed_setting_is_a_new_trial(changed):
    others = {TRAIN.hash, PLAN.hash} if changed != PLAN else {TRAIN.hash}
    assert changed.hash not in others


def test_the_hash_is_what_it_always_was():
    """Stored results are found again by later versions, unless the format is raised on purpose."""
    assert TRAIN.specification == (
        '{"agent":{"name":"atmq","settings":{"learning_rate":0.2,"preset":"published"}},"episodes":100,"format":3,'
        '"kind":"train","max_steps":50,"problem":{"name":"frozen-lake","settings":{"size":4,"variant":"slippery"}},"seed":3}'
    )
    assert PLAN.specification == (
        '{"format":3,"kind":"plan","method":"optimal","problem":{"name":"frozen-lake","settings":{"size":4,'
        '"variant":"slippery"}},"settings":{"beliefs":1000,"horizon":50,"tolerance":1e-05}}'
    )
    assert len(TRAIN.hash) == 64


@given(st.dictionaries(st.text(), plain, max_size=4))
def test_json_gives_everything_back(settings):
    problem, agent = ProblemSpec("p", "chain", settings), AgentSpec("a", "atmq", settings, seeds=2)
    study = Study("s", "S", [Part("a", "A", [problem], [agent], methods=["optimal", "every-2"], first_seed=5)])
    again = Study.from_json(study.to_json())
    assert again == study
    for trial, same in zip(study.trials(), again.trials(), strict=True):
        assert Trial.from_json(trial.to_json()) == trial
        assert same.hash == trial.hash


def test_parts_share_trials_and_agents_have_their_own_seeds_and_episodes():
    study = small_study(seeds=3)
    first, second = study.parts
    assert len(first.trials()) == 2 * (3 + 3 + 1) + 2 * 2
    assert len(second.trials()) == 4
    assert len(study.trials()) == len(first.trials()) + 1
    part = Part("p", "P", "chain", [AgentSpec("a", "atmq", episodes=7)], episodes=9, seeds=2, first_seed=5)
    assert [(trial.seed, trial.episodes) for trial in part.trials()] == [(5, 7), (6, 7)]


def test_a_quick_study_is_small_and_has_another_name():
    study = Study("s", "S", [Part("a", "A", ["chain"], ["atmq", AgentSpec("b", "amrl-q", seeds=1, episodes=5)])])
    quick = study.quick()
    assert quick.name == "s-quick"
    assert [(trial.agent.name, trial.episodes, trial.seed) for trial in quick.trials()] == [
        ("atmq", 100, 0), ("atmq", 100, 1), ("amrl-q", 5, 0),
    ]  # fmt: skip


def test_of_a_model_file_the_content_counts(tmp_path):
    model = am.problems.chain(5)
    first, copy = tmp_path / "model.json", tmp_path / "copy.json"
    model.save(first)
    model.save(copy)
    trial = Trial.train(ProblemSpec("file", str(first)), AGENT, 10, 0)
    assert Trial.train(ProblemSpec("file", str(copy)), AGENT, 10, 0).hash == trial.hash
    cheaper = ProblemSpec("file", str(first), {"measuring_cost": 0.01})
    assert Trial.train(cheaper, AGENT, 10, 0).hash != trial.hash
    am.problems.chain(6).save(first)
    assert Trial.train(ProblemSpec("file", str(first)), AGENT, 10, 0).hash != trial.hash
    with pytest.raises(am.StudyError, match="has changed since the study was read"):
        am.experiments.run_trial(trial)
    with pytest.raises(am.StudyError, match="no such file"):
        ProblemSpec("file", str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ProblemSpec("", "chain"), "the label of a problem is ''"),
        (lambda: ProblemSpec("a\ud800", "chain"), r"the label of a problem is 'a\ud800', which is not valid Unicode"),
        (lambda: ProblemSpec("a", 3), "the problem 'a' is called 3"),
        (lambda: ProblemSpec("a", "chain", [1]), "the settings of the problem 'a' are"),
        (lambda: ProblemSpec("a", "chain", {1: 2}), "is called 1, expected text"),
        (lambda: ProblemSpec("a", "chain", {"n": float("nan")}), "'n' of the problem 'a' is nan, expected a finite"),
        (lambda: AgentSpec("a", "atmq", {"x": object()}), "expected a number, text, a truth value or a list"),
        (lambda: AgentSpec("a", ""), "the agent 'a' is called ''"),
        (lambda: AgentSpec("a", "atmq", seeds=0), "seeds of the agent 'a' is 0"),
        (lambda: Part("a b", "A", ["chain"], ["atmq"]), "the name of a part is 'a b'"),
        (lambda: Part("a", "", ["chain"], ["atmq"]), "its title is ''"),
        (lambda: Part("a", "A", [], ["atmq"]), "has no problems"),
        (lambda: Part("a", "A", ["chain"]), "neither agents nor methods"),
        (
            lambda: Part("a", "A", ["chain"], [dict]),
            "the agent 'dict' is <class 'dict'>, expected a subclass of Agent, or a name",
        ),
        (lambda: Part("a", "A", ["chain"], ["atmq"], seeds=0), "seeds of the part 'a' is 0, expected a whole number"),
        (lambda: Part("a", "A", ["chain"], ["atmq"], episodes=2.5), "episodes of the part 'a' is 2.5"),
        (lambda: Part("a", "A", ["chain"], ["atmq"], tolerance=0), "tolerance of the part 'a' is 0"),
        (lambda: Part("a", "A", ["chain", "chain"], ["atmq"]), "'chain' is twice a label among the problems"),
        (lambda: Part("a", "A", ["chain"], ["atmq", 3]), "one of the agents of the part 'a' is 3"),
        (lambda: Part("a", "A", ["chain"], methods=[3]), "one of the methods of the part 'a' is 3"),
        (lambda: Part("a", "A", ["chain"], methods=["atm", "atm"]), "'atm' is twice"),
        (lambda: Study("s", "S", []), "has no parts"),
        (lambda: Study("s", "S", ["a"]), "a part of the study 's' is 'a'"),
        (lambda: Study("../s", "S", []), "the name of the study is '../s'"),
        (lambda: Study("s", "S", [Part("a", "A", "chain", "atmq")] * 2), "'a' is twice a name among the parts"),
    ],
)
def test_what_cannot_be_is_a_sentence(make, sentence):
    with pytest.raises(am.StudyError) as caught:
        make()
    assert sentence in str(caught.value)
