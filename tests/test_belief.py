"""Beliefs against dense matrix arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import models

import actmeasure as am


@given(models(), st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_predict_is_matrix_multiplication_given_running(model, actions):
    belief, dense = am.Belief.start(model), model.initial_distribution
    for action in (a % model.n_actions for a in actions):
        dense = dense @ model.transitions.dense()[:, action]
        running = np.where(model.terminal, 0.0, dense)
        assert belief.running_probability(model, action) == pytest.approx(running.sum(), abs=1e-12)
        belief = belief.predict(model, action)
        if running.sum() == 0:
            assert belief.is_over
            return
        dense = running / running.sum()
        assert belief.dense(model.n_states) == pytest.approx(dense, abs=1e-12)
        assert belief.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert (np.diff(belief.states) > 0).all()


def test_small_facts():
    model = am.problems.measuring_value()
    known = am.Belief.at(0)
    assert known.known == 0
    after = known.predict(model, 1)
    assert (after.known, after.states.tolist()) == (None, [1, 2])
    assert after.expected(np.array([0.0, 1.0, 0.0, 0.0])) == pytest.approx(0.8)
    assert after.expected(np.eye(4)).shape == (4,)
    assert after.predict(model, 1).is_over
    assert after.predict(model, 1).known is None
    assert after.is_close(am.Belief.from_distribution([0, 8, 2, 0]))
    assert not after.is_close(known)
    assert repr(after) == "Belief({1: 0.8, 2: 0.2})"


@pytest.mark.parametrize("bad", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [[1.0]]])
def test_bad_distributions(bad):
    with pytest.raises(am.ModelError, match="a belief needs one probability"):
        am.Belief.from_distribution(bad)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: am.Belief.at(0).predict(model, 2), "the action is 2, expected a whole number from 0 to 1"),
        (lambda model: am.Belief.at(0).predict(model, -1), "the action is -1"),
        (lambda model: am.Belief.at(0).predict(model, 0.5), "the action is 0.5"),
        (lambda model: am.Belief.at(0).running_probability(model, 7), "the action is 7"),
        (lambda model: am.Belief.at(4).predict(model, 0), "states from 4 to 4, expected states of the model"),
        (lambda model: am.Belief(np.array([-1]), np.ones(1)).predict(model, 0), "states from -1 to -1"),
        (lambda model: am.Belief.at(-1), "the state is -1"),
        (lambda model: am.Belief.at(0.5), "the state is 0.5"),
        (lambda model: am.Belief.at("s0"), "the state is 's0'"),
        (lambda model: am.Belief.at(3).expected(np.zeros(3)), "there are 3 values, but the belief has state 3"),
        (lambda model: am.Belief.at(3).expected(1.0), "there are 0 values"),
        (lambda model: am.Belief.at(3).dense(3), "there are 3 probabilities, but the belief has state 3"),
        (lambda model: am.Belief.from_distribution("ab"), "a belief is 'ab'"),
        (lambda model: am.Belief.from_distribution([[1.0], [0.5, 0.5]]), "expected one probability for every state"),
    ],
)
def test_questions_that_do_not_fit(ask, message):
    with pytest.raises(am.ModelError, match=message):
        ask(am.problems.measuring_value())


def test_numpys_integers_are_states_and_actions():
    model = am.problems.measuring_value()
    assert am.Belief.at(np.int32(0)).predict(model, np.int8(1)).states.tolist() == [1, 2]
