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
