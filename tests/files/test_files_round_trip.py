"""A model saved and loaded is the same model."""

import numpy as np
import pytest
from hypothesis import given, settings
from model_strategies import check_sound, measuring_models, models, small_model
from strategies import examples

import actmeasure as am
from actmeasure.files.pomdp_writer import exact_decimal, identifiers

EXACT = (".npz", ".json")


def round_trip(model, folder, suffix):
    path = folder / f"model{suffix}"
    model.save(path)
    return am.Model.load(path)


def without_comment(model, folder):
    """The model as others read it: from the body of its .pomdp file alone."""
    path = folder / "body.pomdp"
    model.save(path)
    comment, body = path.read_text(encoding="ascii").split("\n", 1)
    assert comment.startswith("# actmeasure {")
    path.write_text(body, encoding="ascii")
    return am.Model.load(path)


def assert_same_world(one, other):
    """Equal up to names and rounding."""
    np.testing.assert_array_equal(one.transitions.offsets, other.transitions.offsets)
    np.testing.assert_array_equal(one.transitions.successors, other.transitions.successors)
    np.testing.assert_array_equal(one.transitions.probabilities, other.transitions.probabilities)
    np.testing.assert_array_equal(one.terminal, other.terminal)
    np.testing.assert_array_equal(one.initial_distribution, other.initial_distribution)
    np.testing.assert_allclose(one.rewards, other.rewards, rtol=1e-15, atol=1e-15)
    assert one.discount == other.discount


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@settings(max_examples=150)
@given(model=models())
@pytest.mark.parametrize("suffix", EXACT)
def test_exact(model, suffix, folder):
    loaded = round_trip(model, folder, suffix)
    assert loaded.equals(model)
    assert (loaded.transition_rewards is None) == (model.transition_rewards is None)
    assert loaded.state_names == model.state_names
    assert loaded.action_names == model.action_names
    check_sound(loaded)


@examples(300)
@given(model=measuring_models())
@pytest.mark.parametrize("suffix", EXACT)
def test_measurements_are_exact(model, suffix, folder):
    loaded = round_trip(model, folder, suffix)
    assert loaded == model
    assert loaded.measurements == () or loaded.measurements[0].name == model.measurements[0].name
    assert [one.with_actions for one in loaded.measurements] == [one.with_actions for one in model.measurements]
    check_sound(loaded)


@settings(max_examples=200)
@given(model=models())
def test_pomdp(model, folder):
    loaded = round_trip(model, folder, ".pomdp")
    assert_same_world(loaded, model)
    np.testing.assert_array_equal(loaded.measuring_cost, model.measuring_cost)
    assert (loaded.transition_rewards is None) == (model.transition_rewards is None)
    if model.transition_rewards is not None:
        np.testing.assert_array_equal(loaded.transition_rewards, model.transition_rewards)
    assert loaded.reveal_start == model.reveal_start
    assert loaded.state_names == model.state_names
    assert loaded.action_names == model.action_names
    check_sound(loaded)


@examples(400)
@given(model=measuring_models())
def test_pomdp_with_measurements(model, folder):
    loaded = round_trip(model, folder, ".pomdp")
    check_sound(loaded)
    if np.array_equal(loaded.rewards, model.rewards):
        assert loaded == model
    assert_same_world(loaded, model)
    assert loaded.measurements == model.measurements or all(
        one.equals(other) for one, other in zip(loaded.measurements, model.measurements, strict=True)
    )
    assert (loaded.passive is None) == (model.passive is None)
    assert model.passive is None or loaded.passive.equals(model.passive)
    assert loaded.reveal_start == model.reveal_start
    assert loaded.state_names == model.state_names
    assert loaded.action_names == model.action_names
    if model.transition_rewards is not None:
        np.testing.assert_array_equal(loaded.transition_rewards, model.transition_rewards)


@settings(max_examples=150)
@given(model=models())
def test_pomdp_without_the_comment(model, folder):
    loaded = without_comment(model, folder)
    check_sound(loaded)
    if model.reveal_start and len(model.initial_states) > 1:
        assert loaded.n_states == model.n_states + 1
        assert loaded.state_names[0] == "begin"
        for action in range(model.n_actions):
            successors, probabilities = loaded.transitions.row(0, action)
            np.testing.assert_array_equal(successors - 1, model.initial_states)
            np.testing.assert_array_equal(probabilities, model.initial_probabilities)
        assert not loaded.rewards[0].any()
        assert not loaded.measuring_costs[0].any()
        np.testing.assert_allclose(loaded.rewards[1:], model.rewards, rtol=1e-15, atol=1e-15)
        costs, rewards = loaded.measuring_costs[1:], model.rewards
    else:
        assert_same_world(loaded, model)
        assert loaded.start_is_known == model.start_is_known
        costs, rewards = loaded.measuring_costs, model.rewards
    size = 1 + np.abs(rewards) if model.transition_rewards is None else 1 + np.abs(model.transition_rewards).max()
    running = ~model.terminal
    error = np.abs(costs - model.measuring_costs) / (size + model.measuring_costs)
    assert error[running].max() <= 1e-9


def test_value_at_the_beginning_is_discounted_once(folder):
    model = small_model(initial=[0.25, 0.5, 0.25, 0])
    body = without_comment(model, folder)
    plan = np.array([0, 0, 1, -1])
    value = am.evaluate(model, am.Schedule.always_measure(plan)).discounted_return
    at_begin = am.evaluate(body, am.Schedule.always_measure(np.append(0, plan))).discounted_return
    assert at_begin == pytest.approx(model.discount * value, rel=1e-12)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
@pytest.mark.parametrize("seed", [None, 3])
def test_lakes(suffix, seed, folder):
    for variant in ("deterministic", "slippery", "semi-slippery"):
        lake = am.problems.frozen_lake(4 if seed is None else 7, variant, seed=seed)
        assert round_trip(lake, folder, suffix).equals(lake)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
def test_undiscounted(suffix, folder):
    model = am.problems.measuring_value(discount=1)
    assert round_trip(model, folder, suffix).equals(model)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
def test_large_and_small_numbers(suffix, folder):
    P = np.full((2, 1, 2), 0.5)
    P[1, 0] = 5e-324, 1.0
    R = np.array([[[1e-310, -1e16]], [[1e22, 0.0]]])
    model = am.Model.from_arrays(P, R, measuring_cost=3e-17, discount=0.9999999999999999)
    assert round_trip(model, folder, suffix).equals(model)


@pytest.mark.parametrize("suffix", EXACT)
def test_expected_rewards_keep_their_last_bit(suffix, folder):
    model = small_model()
    rewards = model.rewards.copy()
    rewards[0, 0] = np.nextafter(rewards[0, 0], 1)
    other = am.Model.assemble(
        model.transitions, rewards, model.transition_rewards, model.terminal, 0, 0.05, 0.95, True,
        model.state_names, model.action_names,
    )  # fmt: skip
    assert not other.equals(model)
    assert round_trip(other, folder, suffix).equals(other)


@pytest.mark.parametrize("suffix", [*EXACT, ".pomdp"])
def test_lives_with_rewards_of_successors(suffix, folder):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        look = am.Measurement.noisy("look", 0.1, probabilities=rng.dirichlet(np.ones(2), size=3))
        P, R = rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2, 3))
        life = am.lifetime(am.Model.from_arrays(P, R, measurements=[look]), periods=2, final=rng.normal(size=3))
        assert round_trip(life, folder, suffix) == life


def test_pomdp_refuses_to_write_infinity(tmp_path):
    model = small_model()
    object.__setattr__(model, "discount", np.inf)  # a model itself cannot hold such numbers
    with pytest.raises(am.ModelError, match="scale the rewards down"):
        model.save(tmp_path / "model.pomdp")
    assert list(tmp_path.iterdir()) == []


def test_identifiers():
    found = identifiers(["a b", "a_b", "a#b", "", "9", "T", "nothing", "é"], 8, "s", taken=("nothing",))
    assert found == ["a_b", "a_b_2", "a_b_3", "s", "s9", "T_2", "nothing_2", "s_"]
    assert identifiers(["a_2", "a", "a_2_2", "a"], 4, "s") == ["a_2", "a", "a_2_2", "a_3"]
    assert identifiers(None, 2, "a") == ["a0", "a1"]


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.0"), (0.1, "0.1"), (1e-5, "1.0e-05"), (-2.5e300, "-2.5e+300"), (1e22, "1.0e+22")]
)
def test_numbers_have_digits_around_the_point(value, text):
    assert exact_decimal(value) == text
    assert float(text) == value


def test_pomdp_file_reads_well(written):
    lines = written(small_model(initial=[0.5, 0.5, 0, 0])).splitlines()
    assert "states: begin here there stuck end" in lines
    assert "actions: go-blind go-measure wait-blind wait-measure" in lines
    assert "observations: begin here there stuck end nothing" in lines
    assert "start: begin" in lines
    assert "T: * : begin : here 0.5" in lines
    assert "T: * : stuck : stuck 1.0" in lines
    assert "R: go-measure : * : * : * -0.05" in lines
    assert "R: * : end : * : * 0.0" in lines
    assert any("times the discount, 0.95" in line for line in lines)
    assert all(line.count("*") <= 1 for line in lines if line.startswith(("T:", "O:")))
