"""Models over a finite life: against backward induction written for the test, and published values."""

import numpy as np
import pytest
from brute_force import fatigue, optimal_value, pile_selection
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, general_models, models

import actmeasure as am


class TestPublishedValues:
    @pytest.mark.parametrize(
        ("periods", "discount", "value"),
        [
            (5, 1.0, -17.950688),
            (5, 0.95, -15.756466),
            pytest.param(10, 1.0, -44.097019, marks=pytest.mark.slow),
            pytest.param(10, 0.95, -34.390916, marks=pytest.mark.slow),
        ],
    )
    def test_simplified_fatigue(self, periods, discount, value):
        assert optimal_value(am.lifetime(fatigue(), periods, discount=discount)) == pytest.approx(value, abs=1e-6)

    @pytest.mark.parametrize(("probability", "value"), [(0.2, -50), (0.3, -50), (0.4, -50), (0.5, -50), (0.7, -30)])
    def test_pile_selection(self, probability, value):
        assert optimal_value(pile_selection(probability)) == pytest.approx(value)


def backward(made, model_of, periods, final, discount):
    """The value of always knowing the state, by backward induction over the original arrays, shape (S,)."""
    value = np.zeros(model_of(0).n_states) if final is None else np.where(model_of(0).terminal, 0.0, final)
    for period in reversed(range(periods)):
        model = model_of(period)
        q = model.rewards + discount * model.transitions.dense() @ value
        value = np.where(model.terminal, 0.0, q.max(axis=1))
    return value


@examples(60)
@given(models(may_end=(True, False)), st.integers(1, 5), st.booleans(), st.integers(0, 2**32 - 1))
def test_values_with_free_looks_are_those_of_backward_induction(model, periods, has_final, seed):
    model = model.replace(measuring_cost=0.0, reveal_start=True)
    final = np.random.default_rng(seed).normal(size=model.n_states) if has_final else None
    made = am.lifetime(model, periods, final)
    expected = backward(made, lambda period: model, periods, final, model.discount)
    value = am.solve(made, "always").lower
    assert value == pytest.approx(float(model.initial_distribution @ expected), abs=1e-9)


@examples(30)
@given(general_models(max_states=3, max_actions=2), st.integers(1, 2))
def test_a_list_of_equal_models_is_the_model(model, periods):
    one, several = am.lifetime(model, periods), am.lifetime([model] * periods)
    assert optimal_value(one) == pytest.approx(optimal_value(several), abs=1e-12)
    assert one == several
    am.testing.check_model(one) if one.is_exact_look_model else None


def test_models_that_change_with_the_period():
    base = fatigue()
    later = base.replace(measurements=[am.Measurement.noisy(
        "inspection", 3.0, probabilities=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), outcomes=("no defect", "defect"),
        with_actions=("nothing",),
    )])  # fmt: skip
    made = am.lifetime([base, later, base])
    measurement = made.measurements[0]
    law = measurement.law.of_action(0, made.n_states).toarray()
    np.testing.assert_allclose(law[3:6, 0], [0.8, 0.15, 0.05])  # reached by the action of period 0
    np.testing.assert_allclose(law[6:9, 0], [1.0, 0.0, 0.0])  # by that of period 1
    assert [measurement.of(state, 0) for state in (0, 3, 6)] == [1.0, 3.0, 1.0]
    assert made.state_names[4] == "damaged, period 1"
    assert made.state_names[-1] == "over"
    assert made.origin.periods == 3


def test_the_period_is_known_and_the_number_of_decisions_exact():
    made = am.lifetime(fatigue(), 7)
    belief = am.Belief.start(made)
    for period in range(7):
        assert set(belief.states // 3) == {period}
        belief = belief.predict(made, 0)
    assert belief.is_over


def test_the_final_reward_is_discounted_by_the_whole_life():
    P, R = np.ones((1, 1, 1)), np.zeros((1, 1))
    model = am.Model.from_arrays(P, R, measuring_cost=1.0, discount=0.5)
    assert am.solve(am.lifetime(model, 3, final=[8.0])).value == pytest.approx(1.0)


def test_entries_keep_their_rewards():
    P = np.array([[[0.5, 0.5, 0.0]], [[0.0, 0.5, 0.5]], [[0.0, 0.0, 1.0]]])
    R = np.arange(9.0).reshape(3, 1, 3) * (np.arange(3) < 2)[:, None, None]
    model = am.Model.from_arrays(P, R, measuring_cost=1.0, terminal=[False, False, True], discount=0.9)
    made = am.lifetime(model, 2)
    np.testing.assert_allclose(made.rewards[:4, 0], np.tile(model.rewards[:2, 0], 2))
    stated = made.transitions.stacked(made.transitions.probabilities * made.transition_rewards).sum(axis=1)
    np.testing.assert_allclose(stated, made.rewards.ravel(), atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "the model is 3, expected a Model"),
        (([],), r"the model is \[\], expected a Model"),
        ((fatigue(),), "periods is missing"),
        ((fatigue(), 0), "periods is 0, expected a whole number from 1"),
        (([fatigue(), fatigue()], 3), "periods is 3, but there are 2 models"),
        ((fatigue(), 3, [1.0]), "expected 3 rewards, one for every state"),
        ((fatigue(), 3, [1.0, np.nan, 0.0]), r"final\[state 1 \('damaged'\)\] is nan"),
        (([fatigue(), fatigue(0.9)],), "the model of period 1 differs from that of period 0 in its discount"),
        (([fatigue(), fatigue().replace(measurements=[])],), "in its measurements"),
        (([fatigue(), am.problems.maintenance()],), "in its states"),
        ((fatigue(), 10**9), "are too many for one model"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(am.ModelError, match=message):
        am.lifetime(*arguments)


def test_prices_may_become_tables_later():
    base = fatigue()
    table = np.arange(6.0).reshape(3, 2)
    later = base.replace(measuring_cost=table)
    for models_of_periods in ([base, later], [later, base]):
        made = am.lifetime(models_of_periods).measurements[0]
        assert {made.of(0, 0), made.of(3, 0)} == {1.0, 0.0}


@pytest.mark.parametrize("periods", [10**15, 10**20])
def test_absurd_numbers_of_periods_are_refused(periods):
    with pytest.raises(am.ModelError, match="too many for one model"):
        am.lifetime(fatigue(), periods)
