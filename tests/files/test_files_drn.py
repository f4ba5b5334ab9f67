"""Storm's explicit format: what the file says is the model, by brute force over beliefs of both."""

import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from model_strategies import measuring_models
from strategies import examples
from test_files_pomdps import best_measuring_value

import actmeasure as am


def parsed(text):
    """The states of a file: observation, labels, and choices with reward and successors; by a reader of its own."""
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    head = lines.index("@model")
    states = []
    for line in lines[head + 1 :]:
        if found := re.fullmatch(r"state (\d+) \{(\d+)\} \[0(?:, 0)?\](.*)", line):
            assert int(found[1]) == len(states)
            states.append({"observation": int(found[2]), "labels": found[3].split(), "choices": []})
        elif found := re.fullmatch(r"\taction (\S+) \[([^],]+)(?:, ([^],]+))?\]", line):
            assert found[3] is None or float(found[3]) == -float(found[2])
            states[-1]["choices"].append((found[1], float(found[2]), {}))
        else:
            target, probability = re.fullmatch(r"\t\t(\d+) : (\S+)", line).groups()
            states[-1]["choices"][-1][2][int(target)] = float(probability)
    assert lines[lines.index("@nr_states") + 1] == str(len(states))
    assert lines[lines.index("@nr_choices") + 1] == str(sum(len(state["choices"]) for state in states))
    return states


def checked(states):
    """A file that Storm accepts: distributions, one initial state, and equal choices where the observation is equal."""
    assert [number for number, state in enumerate(states) if "init" in state["labels"]] == [0]
    names = {}
    for state in states:
        own = [name for name, _, _ in state["choices"]]
        assert names.setdefault(state["observation"], own) == own
        for _, _, row in state["choices"]:
            assert sum(row.values()) == pytest.approx(1.0)
    return states


def best_value(states, belief, steps):
    """The largest expected total reward over so many steps; the belief is not normalised, of states with one observation."""
    running = {state: mass for state, mass in belief.items() if "end" not in states[state]["labels"]}
    if steps == 0 or not running:
        return 0.0
    values = []
    for choice in range(len(states[next(iter(running))]["choices"])):
        earned, later = 0.0, defaultdict(dict)
        for state, mass in running.items():
            _, reward, row = states[state]["choices"][choice]
            earned += mass * reward
            for target, chance in row.items():
                group = later[states[target]["observation"]]
                group[target] = group.get(target, 0.0) + mass * chance
        values.append(earned + sum(best_value(states, group, steps - 1) for group in later.values()))
    return max(values)


def written(model, tmp_path):
    path = tmp_path / "model.drn"
    model.save(path)
    return checked(parsed(path.read_text()))


@examples(25)
@given(measuring_models())
def test_the_best_return_of_a_few_steps_is_that_of_the_model(tmp_path_factory, model):
    states = written(model, tmp_path_factory.mktemp("drn"))
    if model.n_states * len(np.argwhere(model.allowed_decisions)) > 30:
        return
    begins = states[0]["choices"][0][0] == "begin"
    steps = 2
    found = best_value(states, {0: 1.0}, steps + begins)
    groups = np.diag(model.initial_distribution) if model.reveal_start else [model.initial_distribution]
    expected = sum(best_measuring_value(model, belief, steps) for belief in groups)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_problem_with_exact_looks(tmp_path):
    model = am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.9)
    states = written(model, tmp_path)
    assert len(states) == 7  # s0, s+ and s-, each seen or not, and the end
    # The optimum with as many steps as matter: gamble, look, and go back if it failed.
    assert best_value(states, {0: 1.0}, 6) == pytest.approx(best_measuring_value(model, model.initial_distribution, 6))


def test_costs_are_a_reward_model_to_be_minimised(tmp_path):
    """Where no reward is positive: Storm's exploration assumes that no value that it maximises is below 0."""
    path = tmp_path / "model.drn"

    def head(model):
        model.save(path)
        return path.read_text().partition("@model\n")[0]

    costs = head(am.problems.maintenance())
    assert '// Optimum: R{"cost"}min=? [F "end"]\n' in costs
    assert "@reward_models\nreward cost\n" in costs
    gains = head(am.problems.measuring_value(measuring_cost=0.0))
    assert '// Optimum: R{"reward"}max=? [F "end"]\n' in gains
    assert "both signs" not in gains
    assert "// Rewards have both signs." in head(am.problems.tiger())


def test_names_are_in_comments_and_files_are_not_read(tmp_path):
    path = tmp_path / "inspection.drn"
    am.problems.inspection().save(path)
    text = path.read_text()
    assert '// choice nothing-ultrasonic: "nothing" and "ultrasonic"' in text
    assert re.search(r'// observation \d+: "visual" shows "', text)
    with pytest.raises(am.ModelError, match=r"unknown file ending '\.drn'"):
        am.Model.load(path)


def test_a_pomdp_file_says_which_names_it_changed(tmp_path):
    path = tmp_path / "model.pomdp"
    model = am.problems.measuring_value()
    model.save(path)
    text = path.read_text()
    assert '# The state "s+" is written as s_.\n' in text
    assert "states: s0 s_ s- " in text  # a minus is allowed
    assert am.Model.load(path).state_names == model.state_names
    am.problems.frozen_lake(4).save(path)
    assert "is written as" not in path.read_text()
    gauge = am.Measurement.noisy("gauge 1", cost=0.1, outcomes=("low!", "high"), probabilities=[[0.9, 0.1], [0.2, 0.8]])
    P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    noisy = am.Model.from_arrays(
        P, np.zeros((2, 1)), measurements=[gauge], state_names=("a b", "c"), action_names=("wait",)
    )
    noisy.save(path)
    lines = [line for line in path.read_text().splitlines() if "is written as" in line]
    assert lines == [
        '# The measurement "gauge 1" is written as gauge_1.',
        '# The outcome "low!" is written as low_.',
        '# The state "a b" is written as a_b.',
    ]
    assert am.Model.load(path) == noisy
