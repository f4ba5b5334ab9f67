"""Building models, and refusing what is not one."""

import re
import zipfile

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from strategies import examples, models

import actmeasure as am
from actmeasure.inspection.page import page_html

P = np.array([[[0.9, 0.1, 0.0], [0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]] * 2])
R = np.array([[1.0, -2.0], [0.5, 0.0], [0.0, 0.0]])


def build(P=P, R=R, **settings):
    settings = {"measuring_cost": 0.05, "discount": 0.9, "terminal": [False, False, True]} | settings
    return am.Model.from_arrays(P, R, **settings)


def changed(array, index, value):
    copy = np.array(array, dtype=float)
    copy[index] = value
    return copy


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"P": changed(P, (1, 1, 1), 0.43)},
            r"P\[state 1, action 1\] sums to 0.93, expected 1 \(missing 0.07\).*divide",
        ),
        ({"P": changed(P, (0, 0, 0), 1.2)}, r"P\[state 0, action 0, state 0\] is 1.2, expected a probability"),
        ({"P": changed(P, (0, 0), [0, 0, 0])}, r"P\[state 0, action 0\] sums to 0, .*mark state 0 as terminal"),
        ({"P": changed(P, (0, 0, 2), -0.1)}, r"P\[state 0, action 0, state 2\] is -0.1, expected a probability"),
        ({"P": changed(P, (1, 0, 0), np.nan)}, r"P\[state 1, action 0, state 0\] is nan"),
        ({"P": P[:, :, :2]}, r"P has shape \(3, 2, 2\).*pass P.transpose\(1, 0, 2\)"),
        ({"P": P[0]}, r"P has shape \(2, 3\), expected \(S, A, S\)"),
        ({"P": "abc"}, "P is not an array of numbers"),
        ({"P": sparse.eye_array(3)}, r"one sparse matrix, expected a list.*pass \[P\]"),
        ({"P": [sparse.eye_array(3), sparse.eye_array(2)]}, r"P\[action 1\] has shape \(2, 2\)"),
        ({"P": np.zeros((0, 2, 0))}, "at least one of each"),
        ({"R": R[:2]}, r"R has shape \(2, 2\), expected \(3, 2\) or \(3, 2, 3\)"),
        ({"R": R[:, 0]}, r"R has shape \(3,\).*np.repeat"),
        ({"R": changed(R, (1, 0), np.nan)}, r"R\[1, 0\] is nan, expected a finite number"),
        ({"R": changed(R, (1, 0), -np.inf)}, r"R\[1, 0\] is -inf"),
        ({"R": changed(R, (2, 0), 5.0)}, r"R\[state 2\] is not 0, but state 2 is terminal.*R\[s, a, s'\]"),
        ({"R": [sparse.eye_array(3)]}, "list of 1 sparse matrices, expected 2"),
        ({"measuring_cost": -0.1}, "measuring_cost is -0.1"),
        ({"measuring_cost": np.nan}, "measuring_cost is nan"),
        ({"measuring_cost": "much"}, "measuring_cost is 'much'"),
        ({"measuring_cost": np.zeros(3)}, r"measuring_cost has shape \(3,\)"),
        ({"measuring_cost": changed(R * 0, (1, 1), -3)}, r"measuring_cost\[state 1, action 1\] is -3"),
        ({"discount": 0.0}, "discount is 0.0"),
        ({"discount": 1.1}, "discount is 1.1"),
        ({"discount": np.nan}, "discount is nan"),
        ({"discount": "high"}, "discount is 'high'"),
        ({"initial": 3}, "initial is state 3, expected a whole number from 0 to 2"),
        ({"initial": -1}, "initial is state -1"),
        ({"initial": 0.5}, "initial is state 0.5"),
        ({"initial": 2}, "state 2 a chance, but it is terminal"),
        ({"initial": [0.5, 0.4, 0.0]}, "initial sums to 0.9"),
        ({"initial": [1.5, -0.5, 0.0]}, r"initial\[state 1\] is -0.5"),
        ({"initial": [1.0, 0.0]}, r"initial has shape \(2,\)"),
        ({"terminal": [True, True, True]}, "every state is terminal"),
        ({"terminal": [True, False]}, r"terminal has shape \(2,\)"),
        ({"terminal": [2, 0, 1]}, "expected 3 values True or False"),
        ({"state_names": ["a", "b"]}, "state_names has 2 names, expected 3"),
        ({"state_names": ["a", "b", "a"]}, "'a' more than once"),
        ({"action_names": "ab"}, "action_names must be a list"),
        ({"action_names": [1, 2]}, "action_names must be a list"),
        ({"state_names": 5}, "state_names must be a list of 3 strings, got 5"),
        ({"P": P + 0j}, "P is not an array of numbers but of type complex128"),
        ({"R": R + 0j}, "R is not an array of numbers but of type complex128"),
        ({"P": [sparse.csr_array(P[:, a] + 0j) for a in range(2)]}, r"P\[action 0\] is a sparse array .*complex128"),
        ({"R": [sparse.csr_array(P[:, a] * 1j) for a in range(2)]}, r"R\[action 0\] is a sparse array .*complex128"),
        ({"P": [sparse.coo_array([1.0, 0.0])]}, r"P\[action 0\] is a sparse array of shape \(2,\).*expected a matrix"),
        ({"R": [sparse.csr_array((3, 3)), sparse.csr_array(np.diag([0, 0, 1.0]))]}, "state 2 is terminal"),
        (
            {"R": [sparse.csr_array((3, 3)), sparse.csr_array([[0, 0, 0], [0, 0, np.nan], [0, 0, 0]])]},
            r"R\[state 1, action 1, state 2\] is nan, expected a finite number",
        ),
        ({"R": R.T}, r"R has shape \(2, 3\).*looks like \(A, S\): pass R.T"),
        ({"R": np.zeros((2, 3, 3))}, r"R has shape \(2, 3, 3\).*pass R.transpose\(1, 0, 2\)"),
        ({"terminal": [2]}, r"from the numbers of the states make them with np.isin\(np.arange\(3\), \[...\]\)"),
        ({"reveal_start": "no"}, "reveal_start is 'no', expected True or False"),
        ({"reveal_start": 1}, "reveal_start is 1"),
        ({"discount": "0.9"}, "discount is '0.9', expected a number"),
        ({"discount": True}, "discount is True"),
        ({"measuring_cost": "0.1"}, "measuring_cost is '0.1', expected a number"),
        ({"measuring_cost": np.zeros(2)}, r"measuring_cost has shape \(2,\).*np.tile\(cost, \(3, 1\)\)"),
        ({"measuring_cost": [["a", "b"]] * 3}, "measuring_cost is an array of type <U1, expected real numbers"),
        ({"measuring_cost": [[0.1], [0.1, 0.2]]}, r"measuring_cost is \[\[0.1\], \[0.1, 0.2\]\]"),
    ],
)
def test_bad_input_is_a_sentence(settings, message):
    with pytest.raises(am.ModelError, match=message) as caught:
        build(**settings)
    assert isinstance(caught.value, ValueError)


def test_dense_and_sparse_input_give_the_same_model():
    dense_rewards = np.arange(18.0).reshape(3, 2, 3)
    dense_rewards[2] = 0
    dense = build(R=dense_rewards)
    matrices = [sparse.csr_array(P[:, a]) for a in range(2)]
    rewards = [sparse.coo_array(dense_rewards[:, a]) for a in range(2)]
    assert build(P=matrices, R=rewards).equals(dense)
    assert build(P=matrices).equals(build())
    assert not build().equals(dense)


def test_duplicates_in_sparse_input_add_up():
    halves = sparse.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    model = am.Model.from_arrays([halves], np.zeros((2, 1)), measuring_cost=0.0)
    assert model.transitions.row(0, 0)[1].tolist() == [1.0]


def test_rewards_per_successor_have_their_expectation():
    rewards = np.zeros((3, 2, 3))
    rewards[0, 0] = (1.0, 11.0, 99.0)
    model = build(R=rewards)
    assert model.rewards[0, 0] == pytest.approx(0.9 * 1 + 0.1 * 11)
    assert model.largest_reward == 11.0


def test_arrays_are_read_only_and_do_not_follow_the_input():
    own_P, own_R, cost = P.copy(), R.copy(), np.full((3, 2), 0.1)
    model = build(P=own_P, R=own_R, measuring_cost=cost)
    own_R[0, 0], cost[0, 0] = 99.0, 99.0
    assert model.rewards[0, 0] == 1.0
    assert model.measuring_cost[0, 0] == 0.1
    arrays = (
        model.rewards,
        model.terminal,
        model.transitions.probabilities,
        model.initial_states,
        model.measuring_cost,
    )
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    elsewhere = model.replace(initial=[0.5, 0.5, 0.0])
    for array in (elsewhere.initial_states, elsewhere.initial_probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        model.discount = 0.5


def test_numbers_and_truth_values_of_numpy():
    model = build(discount=np.float32(0.5), measuring_cost=np.array(0.25), reveal_start=np.bool_(False))
    assert (model.discount, model.measuring_cost, model.reveal_start) == (0.5, 0.25, False)


def test_equality_is_equals_and_goes_with_the_hash():
    model = build()
    assert model == build()
    assert hash(model) == hash(build())
    assert len({model, build(), model.replace(discount=0.5)}) == 2
    for other in (
        model.replace(discount=0.5),
        model.replace(initial=1),
        model.replace(measuring_cost=1.0),
        model.replace(state_names=list("abc")),
        build(R=R * 2),
        "model",
    ):
        assert model != other
        assert not model.equals(other)


def test_single_precision_rows_are_accepted_and_scaled():
    thirds = np.full((3, 1, 3), 1 / 3, dtype=np.float32)
    model = am.Model.from_arrays(thirds, np.zeros((3, 1)), measuring_cost=0.0)
    assert model.transitions.stacked().sum(axis=1) == pytest.approx(1.0, abs=1e-15)


def test_an_absorbing_state_is_not_taken_for_terminal():
    model = build(terminal=None, R=changed(R, (2, 0), 1.0))
    assert not model.terminal.any()
    stay = am.Schedule({0: am.BlindPlan((1, 0), then="repeat", repeat=1)}, 3)
    assert am.evaluate(model, stay).discounted_return == pytest.approx(-2 + 0.9 / 0.1)


def test_terminal_costs_are_free_and_names_are_kept():
    model = build(measuring_cost=np.ones((3, 2)), state_names=["a", "b", "c"], action_names=["x", "y"])
    assert model.measuring_costs[2].tolist() == [0.0, 0.0]
    assert (model.state_name(1), model.action_name(0), model.describe_state(2)) == ("b", "x", "state 2 ('c')")
    assert build().state_name(1) == "1"


def test_replace():
    model = build()
    other = model.replace(measuring_cost=0.5, discount=0.5, initial=1, reveal_start=False, state_names=list("abc"))
    assert (other.measuring_cost, other.discount, other.reveal_start) == (0.5, 0.5, False)
    assert other.initial_states.tolist() == [1]
    assert other.transitions is model.transitions
    assert other.replace(action_names=["u", "v"]).action_names == ("u", "v")
    assert model.replace().equals(model)
    with pytest.raises(am.ModelError, match="did you mean 'measuring_cost'"):
        model.replace(measure_cost=1)
    with pytest.raises(am.ModelError, match="discount is 2"):
        model.replace(discount=2)
    with pytest.raises(am.ModelError, match="'cost'; did you mean 'measuring_cost'"):
        model.replace(cost=5)
    with pytest.raises(am.ModelError, match="'xyz'; choose one of: action_names, discount"):
        model.replace(xyz=5)


class TestDiscountOne:
    def test_allowed_where_every_state_can_end_and_no_cycle_pays(self):
        model = am.problems.frozen_lake(8, discount=1.0)
        assert model.discount == 1

    def test_refused_where_a_state_cannot_end(self):
        with pytest.raises(am.ModelError, match="from state 0 no policy is sure to end"):
            build(P=changed(P, (0, 1), [1, 0, 0]), discount=1.0)

    def test_refused_where_ending_is_not_sure(self):
        risky = np.array([[[0.0, 0.5, 0.5]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
        with pytest.raises(am.ModelError, match="from state 0"):
            am.Model.from_arrays(
                risky, np.zeros((3, 1)), measuring_cost=0.1, discount=1.0, terminal=[False, False, True]
            )

    def test_refused_where_a_cycle_pays(self):
        with pytest.raises(am.ModelError, match=r"a cycle through state 0.*earns a positive reward on average"):
            build(discount=1.0)

    def test_allowed_where_a_cycle_costs_more_than_it_pays(self):
        swap = np.zeros((3, 2, 3))
        swap[0, 0, 1] = swap[1, 0, 0] = 1.0
        swap[:2, 1, 2] = 1.0
        for second, fits in ((-1.5, True), (-0.5, False)):
            rewards = np.array([[1.0, 0.0], [second, 0.0], [0.0, 0.0]])
            settings = {"measuring_cost": 0.1, "discount": 1.0, "terminal": [False, False, True]}
            if fits:
                assert am.Model.from_arrays(swap, rewards, **settings).discount == 1
            else:
                with pytest.raises(am.ModelError, match="earns a positive reward on average"):
                    am.Model.from_arrays(swap, rewards, **settings)

    def test_refused_where_a_cycle_pays_next_to_nothing(self):
        stay_or_end = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]] * 2])
        rewards = np.array([[1e-10, 0.0], [0.0, 0.0]])
        with pytest.raises(am.ModelError, match=r"a cycle through state 0.*earns a positive reward on average"):
            am.Model.from_arrays(stay_or_end, rewards, measuring_cost=0.1, discount=1.0, terminal=[False, True])

    @pytest.mark.parametrize("seed", range(10))
    def test_allowed_where_large_rewards_cancel_out(self, seed):
        """Rewards h(s) - P(s, a) h add up to nothing along any cycle, however large they are."""
        rng, n = np.random.default_rng(seed), 8
        moves, rewards = np.zeros((n + 1, 3, n + 1)), np.zeros((n + 1, 3))
        moves[:n, :2, :n] = rng.dirichlet(np.ones(n), size=(n, 2))
        moves[:, 2, n] = 1.0
        potential = 1e8 * rng.normal(size=n)
        rewards[:n, :2] = potential[:, None] - moves[:n, :2, :n] @ potential
        settings = {"measuring_cost": 0.1, "discount": 1.0, "terminal": np.arange(n + 1) == n}
        assert am.Model.from_arrays(moves, rewards, **settings).discount == 1


class Tabled:
    """The least that a toy-text environment is."""

    initial_state_distrib = (1.0,)

    def __init__(self, table):
        self.P, self.unwrapped = table, self


class TestFromGymnasium:
    def test_frozen_lake_equals_our_own(self):
        env = gymnasium.make("FrozenLake-v1", is_slippery=True)
        theirs = am.Model.from_gymnasium(env, measuring_cost=0.05, discount=0.95)
        ours = am.problems.frozen_lake(4, "slippery")
        assert theirs.n_states == 17
        assert theirs.terminal.tolist() == [False] * 16 + [True]
        assert theirs.rewards[:16][~ours.terminal] == pytest.approx(ours.rewards[~ours.terminal], abs=1e-12)
        rng = np.random.default_rng(0)
        for _ in range(5):
            plans = {s: am.BlindPlan(tuple(rng.integers(0, 4, size=3))) for s in range(16)}
            values = [
                am.evaluate(model, am.Schedule(plans, model.n_states), horizon=50).scalarized_return
                for model in (theirs, ours)
            ]
            assert values[0] == pytest.approx(values[1], abs=1e-12)

    @pytest.mark.parametrize("name", ["Taxi-v4", "CliffWalking-v1"])
    def test_rewards_and_ends_are_those_of_the_environment(self, name):
        env = gymnasium.make(name)
        model = am.Model.from_gymnasium(env, measuring_cost=0.01)
        n_states = env.observation_space.n
        assert model.n_states == n_states + 1
        assert model.initial_distribution[:n_states] == pytest.approx(env.unwrapped.initial_state_distrib)
        for state in range(n_states):
            for action in range(env.action_space.n):
                successors, probabilities = model.transitions.row(state, action)
                ((p, to, reward, done),) = env.unwrapped.P[state][action]
                assert (successors.tolist(), probabilities.tolist()) == ([n_states if done else to], [p])
                assert model.rewards[state, action] == reward
        am.testing.check_model(model)

    def test_taxi_passes_its_drop_off_cells_without_ending(self):
        model = am.Model.from_gymnasium(gymnasium.make("Taxi-v4"), measuring_cost=0.01)
        assert model.terminal.sum() == 1

    def test_environments_without_a_table_or_start(self):
        with pytest.raises(am.ModelError, match=r"CartPoleEnv has no transition table P.*ActiveMeasuring"):
            am.Model.from_gymnasium(gymnasium.make("CartPole-v1"), measuring_cost=0.1)

        class Bare:
            P = {0: {0: [(1.0, 0, 0.0, False)]}}  # noqa: RUF012

            @property
            def unwrapped(self):
                return self

        with pytest.raises(am.ModelError, match="does not tell where it begins"):
            am.Model.from_gymnasium(Bare(), measuring_cost=0.1)
        assert am.Model.from_gymnasium(Bare(), measuring_cost=0.1, initial=0).n_states == 2
        Bare.P = {0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}
        with pytest.raises(am.ModelError, match=r"P\[state 1\] does not list the actions"):
            am.Model.from_gymnasium(Bare(), measuring_cost=0.1, initial=0)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (5, "P is 5, expected a dictionary or list"),
            ({}, r"P does not list the states 0\.\.0"),
            ({1: {0: [(1.0, 0, 0.0, False)]}}, r"P does not list the states 0\.\.0"),
            ({0: 5}, r"P\[state 0\] is 5, expected a dictionary or list"),
            ({0: {1: [(1.0, 0, 0.0, False)]}}, r"P\[state 0\] does not list the actions 0\.\.0"),
            ({0: {0: []}}, r"P\[state 0, action 0\] is \[\], expected a list of \(probability"),
            ({0: {0: [3]}}, r"P\[state 0, action 0\] has 3, expected \(probability"),
            ({0: {0: [(1.0, 0, 0.0)]}}, r"P\[state 0, action 0\] has \(1.0, 0, 0.0\), expected \(probability"),
            ({0: {0: [("x", 0, 0.0, False)]}}, r"P\[state 0, action 0\]: the probability is 'x'"),
            ({0: {0: [(1.5, 0, 0.0, False)]}}, r"P\[state 0, action 0\]: the probability is 1.5"),
            ({0: {0: [(1.0, 3, 0.0, False)]}}, r"P\[state 0, action 0\]: the next state is 3.*from 0 to 0"),
            ({0: {0: [(1.0, 0.5, 0.0, False)]}}, r"P\[state 0, action 0\]: the next state is 0.5"),
            ({0: {0: [(1.0, 0, np.nan, False)]}}, r"P\[state 0, action 0\]: the reward is nan"),
            ({0: {0: [(1.0, 0, "x", False)]}}, r"P\[state 0, action 0\]: the reward is 'x'"),
            ({0: {0: [(1.0, 0, 0.0, "no")]}}, r"P\[state 0, action 0\]: terminated is 'no'"),
        ],
    )
    def test_tables_that_are_none(self, table, message):
        with pytest.raises(am.ModelError, match=message):
            am.Model.from_gymnasium(Tabled(table), measuring_cost=0.1)

    def test_lists_are_tables_too(self):
        outcome = (1.0, 0, 2.0, np.bool_(True))
        by_list, by_dictionary = Tabled([[[outcome]]]), Tabled({0: {0: [outcome]}})
        models = [am.Model.from_gymnasium(env, measuring_cost=0.1) for env in (by_list, by_dictionary)]
        assert models[0] == models[1]

    def test_a_start_that_is_no_distribution(self):
        env = Tabled([[[(1.0, 0, 2.0, True)]]])
        env.initial_state_distrib = "first"
        with pytest.raises(am.ModelError, match="initial_state_distrib is 'first', expected a distribution"):
            am.Model.from_gymnasium(env, measuring_cost=0.1)

    def test_no_environment(self):
        with pytest.raises(am.ModelError, match="env is None, expected a Gymnasium environment"):
            am.Model.from_gymnasium(None, measuring_cost=0.1)

    def test_endings_with_different_rewards_become_their_mean(self):
        class Coin:
            P = {0: {0: [(0.25, 0, 4.0, True), (0.75, 0, 0.0, True)]}}  # noqa: RUF012
            initial_state_distrib = (1.0,)

            @property
            def unwrapped(self):
                return self

        model = am.Model.from_gymnasium(Coin(), measuring_cost=0.0)
        assert model.rewards[0, 0] == pytest.approx(1.0)


@given(models())
@examples(100)
def test_random_models_pass_the_public_check(model):
    am.testing.check_model(model)


def test_repr_tells_the_essentials():
    assert repr(build()) == "Model(3 states, 2 actions, measuring_cost=0.05, discount=0.9, 1 terminal)"
    assert "per state and action" in repr(build(measuring_cost=np.ones((3, 2))))


def two_states(reward=1.0, probability=0.5, **settings):
    P = np.array([[[1 - probability, probability]], [[0.0, 1.0]]])
    settings = {"measuring_cost": 0.1, "terminal": [False, True]} | settings
    return am.Model.from_arrays(P, np.array([[reward], [0.0]]), **settings)


class TestLargeNumbers:
    """Values that cannot be represented, or computed with, are refused with the reason, however the model is made."""

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            (
                {"reward": 1e308},
                "the largest reward is 1e+308 in size, which adds up to more than 1e308 at discount 0.95",
            ),
            ({"reward": -1e308}, "the largest reward is 1e+308 in size"),
            (
                {"reward": 1e99, "discount": 0.999},
                "the largest reward is 1e+99 in size, which adds up to 1e+102 at discount",
            ),
            ({"reward": -1e101, "discount": 1.0}, "the largest reward is 1e+101 in size, which adds up to 1e+104 in"),
            # Planning without discount begins with one of .999, at which this is too much.
            (
                {"reward": 1e98, "discount": 1.0},
                "the largest reward is 1e+98 in size, which adds up to 1e+101 in 1,001 steps",
            ),
            ({"measuring_cost": 1e308}, "the largest price of a look is 1e+308 in size"),
            ({"measuring_cost": [[1e120], [0.0]]}, "the largest price of a look is 1e+120 in size"),
            ({"reward": -1.0, "discount": 1.0, "probability": 1e-320}, "can take as many as 1e320 steps"),
            ({"reward": -1e60, "discount": 1.0, "probability": 1e-50}, "can take as many as 1e50 steps"),
        ],
    )
    def test_refused(self, settings, reason):
        with pytest.raises(am.ModelError, match=re.escape(reason)):
            two_states(**settings)

    @pytest.mark.parametrize("method", ["optimal", "atm", "always", "never"])
    def test_what_is_accepted_without_discount_can_be_planned(self, method):
        model = two_states(reward=9.9e96, discount=1.0, probability=0.5)
        assert am.solve(model, method).value == pytest.approx(2 * 9.9e96)

    def test_rewards_by_successor_that_cancel_out(self):
        P = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
        R = np.array([[[1e200, -1e200]], [[0.0, 0.0]]])
        with pytest.raises(am.ModelError, match=r"the largest reward is 1e\+200"):
            am.Model.from_arrays(P, R, measuring_cost=0.1)

    @pytest.mark.parametrize("changes", [{"discount": 1 - 1e-15}, {"measuring_cost": 1e119}], ids=repr)
    def test_refused_when_replaced(self, changes):
        model = two_states(reward=1e90)
        with pytest.raises(am.ModelError, match="cannot be computed with; divide all rewards and prices"):
            model.replace(**changes)

    def test_a_long_way_to_the_end_is_multiplied(self):
        p, n = 1e-30, 5
        P = np.zeros((n, 1, n))
        for state in range(n - 1):
            P[state, 0, [0, state + 1]] = [1 - p, p]
        P[-1] = 1.0
        with pytest.raises(am.ModelError, match="can take as many as 1e121 steps"):
            am.Model.from_arrays(P, [[-1.0]] * 4 + [[0.0]], measuring_cost=0.1, discount=1.0, terminal=[0, 0, 0, 0, 1])

    def test_from_gymnasium(self):
        env = gymnasium.make("CliffWalking-v1").unwrapped
        env.P = {
            s: {a: [(p, t, 1e305 * r, d) for p, t, r, d in rows] for a, rows in acts.items()}
            for s, acts in env.P.items()
        }
        with pytest.raises(am.ModelError, match="the largest reward is 1e"):
            am.Model.from_gymnasium(env, measuring_cost=0.1)

    @pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
    def test_from_files(self, suffix, tmp_path):
        path = tmp_path / f"model{suffix}"
        two_states(reward=3e90).save(path)
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            old, new = np.float64(3e90).tobytes(), np.float64(3e300).tobytes()
            with zipfile.ZipFile(path, "w") as archive:
                for name, contents in members.items():
                    archive.writestr(name, contents.replace(old, new))
        else:
            path.write_text(path.read_text().replace("e+90", "e+300"))
        with pytest.raises(am.ModelError, match=r"model\S*: the largest reward is 3e\+300"):
            am.Model.load(path)

    @pytest.mark.parametrize("reward", [1e98, -1e98, 1e-320])
    def test_the_largest_and_smallest_are_solved(self, reward):
        solution = am.solve(two_states(reward=reward, discount=0.9), time_limit=20)
        assert solution.lower == pytest.approx(reward / 0.55)
        assert solution.upper == pytest.approx(reward / 0.55)

    @pytest.mark.parametrize("probability", [5e-324, 1e-320, 1e-300, 1e-17])
    def test_tiny_probabilities_are_kept(self, probability, tmp_path):
        model = two_states(probability=probability)
        assert model.transitions.row(0, 0)[1].tolist() == [1.0, probability]
        for suffix in (".npz", ".json", ".pomdp"):
            model.save(tmp_path / f"m{suffix}")
            assert am.Model.load(tmp_path / f"m{suffix}").transitions.row(0, 0)[1].tolist() == [1.0, probability]
        assert am.solve(model).value == pytest.approx(20.0)
        found = am.evaluate(model, am.Schedule({0: am.BlindPlan((0,), then="measure")}, n_states=2), horizon=50)
        assert found.steps == pytest.approx(50.0)
        assert found.measurements == pytest.approx(50.0)


EVIL = "\u202eevil\x1b[31m\x00\n\u2028"


class TestNamesOfAnybodys:
    """Control characters in names stay in the data and are escaped where people read them."""

    def model(self):
        return build(state_names=[f"{EVIL}{state}" for state in range(3)], action_names=[f"a{EVIL}", f"b{EVIL}"])

    def test_data_keep_them(self, tmp_path):
        model = self.model()
        assert model.state_names[1] == f"{EVIL}1"
        for suffix in (".json", ".npz", ".pomdp"):
            model.save(tmp_path / f"model{suffix}")
            assert am.Model.load(tmp_path / f"model{suffix}").state_names == model.state_names

    def test_texts_do_not(self):
        model = self.model()
        solution = am.solve(model, time_limit=60)
        env = am.envs.TabularEnv(model, render_mode="ansi")
        env.reset(seed=0)
        env.step([0, 1])
        advice = am.inspection.advise(model, time_limit=60, title=EVIL, currency=EVIL, period=EVIL)
        texts = [model.state_name(0), model.action_name(0), repr(model), repr(solution), str(solution), env.render()]
        texts += [
            solution.schedule.describe(model),
            str(solution.explain()),
            str(advice),
            repr(advice),
            page_html(advice),
        ]
        for text in texts:
            assert "evil" in text or "(" in text
            for line in text.split("\n"):
                assert not set(line) & set(EVIL) - set("evil[31m\n"), line

    def test_errors_do_not(self):
        with pytest.raises(am.ModelError) as told:
            am.Model.from_arrays(P, R, measuring_cost=0.1, state_names=[EVIL] * 3)
        assert str(told.value).isprintable()
        with pytest.raises(am.PlanError) as told:
            am.solve(self.model(), time_limit=60).explain("no such")
        assert str(told.value).isprintable()
        assert am.errors.shown("caf\u00e9 \u00a0") == "caf\u00e9 \u00a0"  # ordinary letters and spaces are left alone


@pytest.mark.parametrize("name", ["P", "R", "initial"])
def test_missing_entries_of_masked_arrays_are_not_taken_for_numbers(name):
    given = {"P": np.ones((1, 1, 1)), "R": np.ones((1, 1)), "initial": np.ones(1)}
    given[name] = np.ma.masked_equal(given[name], 1)
    with pytest.raises(am.ModelError, match=f"{name} is a masked array with missing entries"):
        am.Model.from_arrays(**given, measuring_cost=0.1, discount=0.9)
