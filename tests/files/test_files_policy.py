"""Policies in SARSOP's XML: parsed by the standard library, evaluated at the start, and valid everywhere."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from command_line import actmeasure
from pomdp_generators import hallway_like, tag_like

import actmeasure as am
from actmeasure.files.pomdp_writer import state_and_pair_numbers


def read(path):
    """Return the root, the actions and the vectors of a policy file."""
    root = ET.parse(path).getroot()
    (table,) = root
    vectors = np.array([[float(value) for value in vector.text.split()] for vector in table])
    assert vectors.shape == (int(table.get("numVectors")), int(table.get("vectorLength")))
    assert table.get("numObsValue") == "1"
    assert {vector.get("obsValue") for vector in table} == {"0"}
    return root, [int(vector.get("action")) for vector in table], vectors


def start(model):
    """Return the start of the `.pomdp` file of a model."""
    states, _ = state_and_pair_numbers(model)
    belief = np.zeros(len(states))
    if states[0] < 0:
        belief[0] = 1.0
    else:
        belief[-model.n_states :] = model.initial_distribution
    return belief, states[0] < 0


MODELS = {
    "tiger": am.problems.tiger,
    "inspection": lambda: am.problems.inspection().replace(initial=[0.5, 0.5, 0, 0, 0]),
    "shown start": lambda: am.problems.inspection().replace(initial=[0.5, 0.5, 0, 0, 0], reveal_start=True),
    "life": lambda: am.lifetime(am.problems.inspection(), 4),
    "ends": lambda: am.problems.pile_selection(0.7),
    "exact": lambda: am.problems.frozen_lake(4),
    "exact, random start": lambda: am.problems.frozen_lake(4).replace(initial=[0.5, 0.5] + [0.0] * 14),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_best_vector_at_the_start_is_the_lower_bound(name, tmp_path):
    model = MODELS[name]()
    solution = am.solve(model, budget=am.planning.Budget(work=300))
    path = tmp_path / "a & b.policy"
    solution.save_policy(path)
    root, actions, vectors = read(path)
    assert root.get("model") == "a & b.pomdp"
    states, pairs = state_and_pair_numbers(model)
    assert 0 <= min(actions) <= max(actions) < len(pairs)
    belief, begins = start(model)
    value = (vectors @ belief).max() / (model.discount if begins else 1.0)
    assert value >= solution.lower - 1e-9 * (1 + abs(value))
    assert value <= solution.upper + 1e-9 * (1 + abs(value))
    best = int(np.argmax(vectors @ belief))
    if not begins and solution.search is not None:
        assert pairs[actions[best]] in [(d.action, d.measurement) for d in solution.search.made.decisions]
    over = [i for i, state in enumerate(states) if state >= 0 and model.terminal[state]]
    assert not vectors[:, over].any()


FROM_ELSEWHERE = """discount: 0.9
values: cost
states: north south goal
actions: wait go
observations: dark light
start: 0.5 0.5 0
T: wait
identity
T: go : north
0.0 0.3 0.7
T: go : south
0.6 0.2 0.2
T: go : goal
reset
O: *
0.8 0.2
0.3 0.7
0.5 0.5
R: * : * : * : * 1
R: go : * : goal : * -10
"""


def test_a_policy_for_a_file_from_elsewhere_names_it_and_counts_as_it_does(tmp_path):
    (tmp_path / "road.pomdp").write_text(FROM_ELSEWHERE)
    words = (str(tmp_path / "road.pomdp"), "--policy", str(tmp_path / "out.policy"), "--relative-tolerance", "1e-6")
    text = actmeasure("solve", *words).stdout
    assert "value vectors" in text
    root, actions, vectors = read(tmp_path / "out.policy")
    assert root.get("model") == "road.pomdp"
    assert set(actions) <= {0, 1}
    # From the goal, going pays 10 times the chance of coming back at once, or the cost of 1; from the north it leads there.
    solution = am.solve(am.Model.load(tmp_path / "road.pomdp"), relative_tolerance=1e-6)
    assert solution.lower - 1e-9 <= (vectors @ [0.5, 0.5, 0]).max() <= solution.upper + 1e-9
    for state in range(3):
        known = am.solve(am.Model.load(tmp_path / "road.pomdp").replace(initial=state), relative_tolerance=1e-6)
        assert vectors[:, state].max() <= known.upper + 1e-9
    states, pairs = state_and_pair_numbers(solution.model)
    assert states.tolist() == [0, 1, 2]
    assert pairs == [(0, 0), (1, 0)]


def test_vectors_bound_every_known_state_from_below(tmp_path):
    model = am.problems.inspection()
    am.solve(model, budget=am.planning.Budget(work=300)).save_policy(tmp_path / "x.policy")
    _, _, vectors = read(tmp_path / "x.policy")
    for state in range(model.n_states):
        known = am.solve(model.replace(initial=state), budget=am.planning.Budget(work=300))
        assert vectors[:, state].max() <= known.upper + 1e-9


def test_files_that_cannot_be_written(tmp_path):
    solution = am.solve(am.problems.tiger())
    with pytest.raises(am.ModelError, match="there is no folder"):
        solution.save_policy(tmp_path / "none" / "x.policy")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hallway", "tag"])
def test_the_command_solves_files_of_others(kind, tmp_path):
    rng = np.random.default_rng(0)
    lines = hallway_like() if kind == "hallway" else tag_like(rng, n_states=40, n_observations=8)
    (tmp_path / "other.pomdp").write_text("".join(lines))
    words = ("solve", str(tmp_path / "other.pomdp"), "--time-limit", "1", "--policy", str(tmp_path / "out.policy"))
    text = actmeasure(*words).stdout
    assert "value vectors" in text
    model = am.Model.load(tmp_path / "other.pomdp")
    _, _, vectors = read(tmp_path / "out.policy")
    belief, begins = start(model)
    assert not begins
    assert (vectors @ belief).max() > -1e3
