"""Plain POMDPs and models with measurements as `.pomdp` files: what is read is what was meant."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_strategies import check_sound, measuring_model, measuring_models, small_model
from pomdp_generators import TIGER, RockSample, tag_like, tiger_arrays
from strategies import examples

import actmeasure as am
from actmeasure.testing import _check_files, _check_shapes


def arrays(model):
    """P (S, A, S) with absorbing terminal states, R (S, A) and the initial distribution of a model."""
    P = model.transitions.dense()
    P[model.terminal, :, np.flatnonzero(model.terminal)] = 1.0
    return P, model.rewards, model.initial_distribution


def laws(model, measurement):
    """Probabilities of outcomes, shape (A, S, O), in states that are not terminal."""
    shows = model.shown_by(measurement)
    if shows is None:
        return np.ones((model.n_actions, model.n_states, 1))
    if shows.law is None:
        return np.broadcast_to(np.eye(model.n_states), (model.n_actions, model.n_states, model.n_states))
    return np.stack([shows.law.of_action(action, model.n_states).toarray() for action in range(model.n_actions)])


def best_value(P, R, Z, belief, steps, discount):
    """The best expected return of a POMDP over so many steps, by trying all actions and all observations."""
    if steps == 0 or belief.sum() == 0:
        return 0.0
    values = []
    for action in range(P.shape[1]):
        joint = (belief @ P[:, action])[:, None] * Z[action]
        later = sum(best_value(P, R, Z, joint[:, seen], steps - 1, discount) for seen in range(joint.shape[1]))
        values.append(belief @ R[:, action] + discount * later)
    return max(values)


def best_measuring_value(model, belief, steps):
    """The same for a model with measurements, which has terminal states; the belief is not normalised."""
    P, R, _ = arrays(model)
    belief = np.where(model.terminal, 0.0, belief)
    if steps == 0 or belief.sum() == 0:
        return 0.0
    values = []
    for action, number in np.argwhere(model.allowed_decisions):
        prices = model.measurements[number - 1].table(model.n_states, model.n_actions)[:, action] if number else 0.0
        joint = (np.where(model.terminal, 0.0, belief @ P[:, action]))[:, None] * laws(model, number)[action]
        later = sum(best_measuring_value(model, joint[:, seen], steps - 1) for seen in range(joint.shape[1]))
        values.append(belief @ (R[:, action] - prices) + model.discount * later)
    return max(values)


def test_tiger(load, tmp_path):
    model = load(TIGER)
    check_sound(model)
    assert model.measurements == ()
    assert model.passive.outcomes == ("tiger-left", "tiger-right")
    assert model.state_names == ("tiger-left", "tiger-right")
    assert model.action_names == ("listen", "open-left", "open-right")
    assert not model.reveal_start
    P, R, Z, start = tiger_arrays()
    expected = am.Model.from_arrays(
        P, R, passive=am.Measurement.noisy("observation", probabilities=Z, outcomes=model.passive.outcomes),
        discount=0.95, initial=start, state_names=model.state_names, action_names=model.action_names,
    )  # fmt: skip
    assert model == expected
    path = tmp_path / "again.pomdp"
    model.save(path)
    assert am.Model.load(path) == model
    value = best_value(*arrays(model)[:2], laws(model, 0), start, 4, 0.95)
    assert value == pytest.approx(best_value(P, R, Z, start, 4, 0.95), abs=1e-12)
    # Listening twice, opening if both agree, is the best over four steps: computed by hand for the first three.
    listen_twice = (
        -1
        - 0.95
        + 0.95**2 * max((0.85**2 + 0.15**2) * (10 - 110 * 0.15**2 / (0.85**2 + 0.15**2)) + 2 * 0.85 * 0.15 * -1, -1)
    )
    assert best_value(P, R, Z, start, 3, 0.95) == pytest.approx(listen_twice, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (4, 3)])
def test_rock_sample(load, tmp_path, n, k):
    rocks = RockSample(n, k)
    model = load("".join(rocks.text()))
    check_sound(model)
    P, R, Z, start = rocks.arrays()
    expected = am.Model.from_arrays(
        P, R, passive=am.Measurement.noisy("observation", probabilities=Z, outcomes=rocks.observations), discount=0.95,
        initial=start, action_names=rocks.actions,
    )  # fmt: skip
    assert model == expected
    path = tmp_path / "again.pomdp"
    model.save(path)
    assert am.Model.load(path) == model
    steps = 3 if n < 4 else 2
    value = best_value(*arrays(model)[:2], laws(model, 0), start, steps, 0.95)
    assert value == pytest.approx(best_value(P, R, Z, start, steps, 0.95), abs=1e-12)


def test_a_file_of_the_size_of_tag(load):
    text = "".join(tag_like(np.random.default_rng(0), n_states=200))
    model = load(text)
    assert (model.n_states, model.n_actions, model.n_outcomes(0)) == (200, 5, 30)
    assert not model.passive.law.by_action
    assert model.transition_rewards is None
    assert model.rewards[30].tolist() == [-1, -1, -1, -1, 10]
    line = re.search(r"T: 3 : 7 : (\d+) (\S+)", text)
    successors, chances = model.transitions.row(7, 3)
    assert (successors[0], chances[0]) == (int(line[1]), float(line[2]))


OBSERVED = """
discount: 0.9 values: {values} states: 2 actions: go observations: no yes start: 0
T: go 0.5 0.5 0.25 0.75
O: go 0.75 0.25 0.0 1.0
R: go : * : * : yes {yes}
R: go : 1 : 0 : no {no}
R: go : 1 : 1 {pair}
"""


@pytest.mark.parametrize("sign", [1, -1])
def test_rewards_by_observation_are_expectations(load, sign):
    words = {"values": "reward" if sign > 0 else "cost", "yes": sign * 8, "no": sign * 4, "pair": f"7 {sign * 2}"}
    model = load(OBSERVED.format(**words))
    expected = np.array([[0.25 * 8, 8.0], [0.75 * 4 + 0.25 * 8, 2.0]])
    np.testing.assert_array_equal(model.transition_rewards.reshape(2, 2), expected)
    np.testing.assert_allclose(model.rewards[:, 0], [0.5 * 2 + 0.5 * 8, 0.25 * 5 + 0.75 * 2], rtol=1e-15)
    assert model.state_names is None
    assert model.passive.outcomes == ("no", "yes")


def test_rewards_by_observation_without_rounding_where_they_are_equal(load):
    text = OBSERVED.format(values="reward", yes=0.1, no=0.1, pair="0.1 0.1") + "R: go : * : * : no 0.1"
    text = text.replace("0.75 0.25 0.0 1.0", "0.3 0.7 0.6 0.4")
    model = load(text)
    assert model.transition_rewards is None
    assert model.rewards.tolist() == [[0.1], [0.1]]


def test_many_rewards_by_observation_are_averaged_in_parts(load, monkeypatch):
    from actmeasure.files import pomdp_reader

    rng = np.random.default_rng(3)
    P, Z = rng.dirichlet(np.ones(4), (2, 4)), rng.dirichlet(np.ones(3), (2, 4))
    R = rng.normal(size=(2, 4, 4, 3))
    text = "discount: 0.9 values: reward states: 4 actions: 2 observations: 3 start: uniform\n"
    for a in range(2):
        text += f"T: {a} {' '.join(map(str, P[a].ravel()))}\nO: {a} {' '.join(map(str, Z[a].ravel()))}\n"
        text += "".join(f"R: {a} : {s} {' '.join(map(str, R[a, s].ravel()))}\n" for s in range(4))
    whole = load(text)
    np.testing.assert_allclose(whole.rewards, np.einsum("ast,ato,asto->sa", P, Z, R), rtol=1e-12)
    monkeypatch.setattr(pomdp_reader, "CHUNK", 5)
    assert load(text) == whole


@pytest.mark.parametrize("by_action", [False, True])
def test_laws_are_by_action_only_where_they_differ(load, by_action):
    change = "O: open-left : * uniform" if by_action else "O: * : * uniform"
    model = load(TIGER.replace("O:listen\n0.85 0.15\n0.15 0.85", "O:listen\n0.85 0.15\n0.15 0.85") + change)
    assert model.passive.law.by_action == by_action


def test_observations_that_never_come_are_no_reason_to_warn(load, recwarn):
    text = TIGER.replace("observations: tiger-left tiger-right", "observations: tiger-left tiger-right roar")
    text = text.replace("0.85 0.15\n0.15 0.85", "0.85 0.15 0\n0.15 0.85 0")
    for door in ("open-left", "open-right"):
        text = text.replace(f"O:{door}\nuniform", f"O:{door} : * : 1 1")
    model = load(text)
    assert model.n_outcomes(0) == 3
    assert model.passive.law.outcomes.max() == 1
    assert not recwarn.list


def test_a_start_of_six_digits(load):
    text = "discount: 0.9 values: reward states: 39 actions: 1 observations: 1\nO: * uniform\nT: * uniform\nT: 0 : 3 reset\n"
    start = f"start: {'0.026316 ' * 38} 0.0"
    model = load(text.replace("T: *", f"{start}\nT: *"))
    np.testing.assert_allclose(model.initial_probabilities, np.full(38, 1 / 38), rtol=1e-15)
    np.testing.assert_array_equal(model.transitions.row(3, 0)[1], model.initial_probabilities)


def test_long_rows_of_six_digits(load):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(300), size=300)
    text = "discount: 0.9 values: reward states: 300 actions: 1 observations: 1\nO: * uniform\nT: 0\n"
    model = load(text + "\n".join(" ".join(f"{chance:.6f}" for chance in row) for row in rows))
    np.testing.assert_allclose(model.transitions.dense()[:, 0], rows, atol=2e-6)
    np.testing.assert_allclose(model.transitions.dense().sum(axis=2), 1, atol=1e-13)


def test_costs_and_wild_cards_in_all_places(load):
    text = TIGER.replace("values: reward", "values: cost") + "R: * : * : * : * 3\nR: 1 : * : 0 : tiger-right -2\n"
    model = load(text)
    np.testing.assert_allclose(model.rewards, [[-3, (-3 + (-3 + 2) / 2) / 2, -3]] * 2)
    assert load(TIGER + "start exclude: 0").initial_states.tolist() == [1]
    assert load(TIGER + "start include: tiger-left").initial_states.tolist() == [0]


def test_names_in_the_file(written):
    lines = written(measuring_model()).splitlines()
    assert "states: here there stuck end" in lines
    assert "actions: go-blind go-visual go-echo wait-blind wait-visual wait-opening" in lines
    assert "observations: off on miss hit here there stuck end_2 clear end" in lines
    assert "O: go-echo : there : hit 0.8" in lines
    assert "O: wait-opening : there : there 1.0" in lines
    assert "O: * : end : end 1.0" in lines
    assert "R: go-visual : * : * : * -0.25" in lines
    assert "R: * : end : * : * 0.0" in lines
    assert all(line.count("*") <= 1 for line in lines if line.startswith(("T:", "O:")))


def test_a_shown_start_has_copies(tmp_path):
    path = tmp_path / "model.pomdp"
    model = measuring_model(initial=[0.5, 0.25, 0.25, 0], reveal_start=True)
    model.save(path)
    text = path.read_text(encoding="ascii")
    assert "states: begin here-start there-start stuck-start here there stuck end" in text
    assert "O: * : there-start : there-start 1.0" in text
    assert am.Model.load(path) == model


def without_comment(text):
    comment, body = text.split("\n", 1)
    assert comment.startswith("# actmeasure {")
    return body


@examples(150)
@given(model=measuring_models(3), steps=st.integers(1, 2))
def test_the_file_is_worth_what_the_model_is_worth(model, steps, tmp_path_factory):
    """Read by others, that is as a plain POMDP, its optimum is the model's; a shown start takes a step more."""
    path = tmp_path_factory.mktemp("files") / "model.pomdp"
    model.save(path)
    path.write_text(without_comment(path.read_text(encoding="ascii")), encoding="ascii")
    plain = am.Model.load(path)
    if plain.measurements:  # the one measurement is exact, or nothing is there to be seen
        assert model.looks_are_exact or model.n_states - model.terminal.sum() == 1
        return
    assert not plain.terminal.any()
    P, R, start = arrays(plain)
    if model.reveal_start and len(model.initial_states) > 1:
        value = best_value(P, R, laws(plain, 0), start, steps + 1, model.discount)
        expected = model.discount * sum(
            chance * best_measuring_value(model, np.eye(model.n_states)[state], steps)
            for state, chance in zip(model.initial_states, model.initial_probabilities, strict=True)
        )
    else:
        value = best_value(P, R, laws(plain, 0), start, steps, model.discount)
        expected = best_measuring_value(model, model.initial_distribution, steps)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


CHANGES = [
    ('"name": "visual"', '"name": "visuel"', "other actions"),
    ('"states": ["here", ', '"states": ["hers", ', "other states"),
    ('"states": ["here", ', '"states": [', "other states"),
    ('"outcomes": ["off", "on"]', '"outcomes": ["of", "on"]', "other observations"),
    ('"cost": 0.25', '"cost": 0.5', "the reward of action 'go-visual' in state 'here' is -0.15, the comment implies -0.4"),
    ('"cost": 0.25', '"cost": -0.25', "expected a finite number that is 0 or more"),
    ('"cost": 0.25', '"cost": "x"', r"measurements\[0\]: 'cost' is 'x'"),
    ('"by_action": false', '"by_action": 0', "expected true or false"),
    ('"ends": true', '"ends": false', "other observations"),
    ('"with_actions": [1]', '"with_actions": [0]', "other actions"),
    ('"with_actions": [1]', '"with_actions": [0, 1]', "other actions"),
    ('"passive": {', '"passiv": {', "unknown key 'passiv'"),
    ('"successor_rewards": true', '"successor_rewards": false', "do not depend on the successor, but they do"),
    ('"reveal_start": false', '"reveal_start": 1', "true or false"),
    ('"statements": ', '"statements": 9', "the file is incomplete"),
    ('"unused": [[1, 0, 0, 0.6]', '"unused": [[0, 0, 0, 0.6]', "an action that it does not have"),
    ('"unused": [[1, 0, 0, 0.6]', '"unused": [[1, 0, 0, 0.5]', "sum to 0.9"),
    ("T: go-visual : here : there 0.8", "T: go-visual : here : there 0.7", "sum to 0.9"),
    ("O: go-visual : here : miss 0.9", "O: go-visual : here : clear 0.9", "observations that are no outcomes of it"),
    (
        "O: wait-visual : here : miss 0.9\nO: wait-visual : here : hit 0.1",
        "O: wait-visual : here : miss 0.8\nO: wait-visual : here : hit 0.2",
        "the observations of action 'wait-visual' in state 'here' are others",
    ),
    ("start: here", "start: end", "terminal"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), CHANGES)
def test_the_comment_is_trusted_only_where_it_agrees(load, written, old, new, message):
    text = written(measuring_model())
    assert old in text
    with pytest.raises(am.ModelError, match=message):
        load(text.replace(old, new, 1))


def test_consistent_changes_are_taken_over(load, written):
    text = written(measuring_model())
    for action in ("go", "wait"):
        text = text.replace(f"O: {action}-visual : here : miss 0.9", f"O: {action}-visual : here : miss 0.5")
        text = text.replace(f"O: {action}-visual : here : hit 0.1", f"O: {action}-visual : here : hit 0.5")
    model = load(text)
    assert model.measurements[0].law.of_action(0, 4).toarray()[0].tolist() == [0.5, 0.5]
    assert model.measurements[1].equals(measuring_model().measurements[1])


@pytest.mark.parametrize(
    "model", [measuring_model(), measuring_model(measurements=[]), measuring_model(passive=None)], ids=str
)
def test_check_model_takes_measurements(model):
    _check_shapes(model)
    _check_files(model)


def test_files_of_exact_looks_stay_as_they_are(tmp_path):
    """Version 1, whether the price or the measurement was given; any other name or limit is version 2."""
    model = small_model()
    same = model.replace(measurements=[am.Measurement.exact("look", cost=0.05)])
    other = model.replace(measurements=[am.Measurement.exact("opening", cost=0.05)])
    for suffix in (".json", ".npz", ".pomdp"):
        paths = [tmp_path / f"{name}{suffix}" for name in ("model", "same", "other")]
        for path, one in zip(paths, (model, same, other), strict=True):
            one.save(path)
            assert am.Model.load(path) == one
        assert paths[0].read_bytes() == paths[1].read_bytes() != paths[2].read_bytes()
        if suffix != ".npz":
            assert '"version": 1' in paths[0].read_text()
            assert '"version": 2' in paths[2].read_text()
