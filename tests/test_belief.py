"""Beliefs against dense matrix arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, general_models, models

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


def joint_distribution(model, belief, action, measurement):
    """P(state reached, outcome) given that the episode still runs, by brute force over dense arrays; None if it cannot run."""
    P, before = model.transitions.dense(), belief.dense(model.n_states)
    reached = sum(before[s] * P[s, action] for s in range(model.n_states)) * ~model.terminal
    if reached.sum() == 0:
        return None
    shows = model.shown_by(measurement)
    if shows is None:
        Z = np.ones((model.n_states, 1))
    elif shows.is_exact:
        Z = np.eye(model.n_states)
    else:
        Z = shows.law.of_action(action, model.n_states).toarray()
    return (reached / reached.sum())[:, None] * Z


class TestOutcomes:
    @examples(1000)
    @given(general_models(), st.integers(0, 2**32 - 1))
    def test_bayes_rule_by_brute_force(self, model, seed):
        rng = np.random.default_rng(seed)
        running = np.flatnonzero(~model.terminal)
        dense = np.zeros(model.n_states)
        dense[running] = rng.dirichlet(np.ones(len(running))) * (rng.random(len(running)) < 0.7)
        belief = am.Belief.from_distribution(dense) if dense.sum() else am.Belief.at(int(running[0]))
        for action, measurement in zip(*np.nonzero(model.allowed_decisions), strict=True):
            joint = joint_distribution(model, belief, int(action), int(measurement))
            chances = belief.outcomes(model, int(action), int(measurement))
            if joint is None:
                assert chances.sum() == 0
                continue
            np.testing.assert_allclose(chances, joint.sum(axis=0), atol=1e-14)
            for outcome, chance in enumerate(joint.sum(axis=0)):
                if model.shown_by(int(measurement)) is None:
                    updated = belief.update(model, int(action), 0, None)
                elif chance > 1e-300:
                    updated = belief.update(model, int(action), int(measurement), outcome)
                else:
                    with pytest.raises(am.ModelError, match="is impossible after action"):
                        belief.update(model, int(action), int(measurement), outcome)
                    continue
                np.testing.assert_allclose(updated.dense(model.n_states), joint[:, outcome] / chance, atol=1e-12)

    def test_exact_looks_give_the_state(self):
        model = am.problems.maintenance()
        belief = am.Belief.start(model).predict(model, 0)
        for state in belief.predict(model, 0).states:
            assert belief.update(model, 0, True, int(state)).is_close(am.Belief.at(int(state)))

    def test_outcomes_by_name_and_errors(self):
        visual = am.Measurement.detection("visual", 1.0, pod=[0.0, 0.5], with_actions=[0])
        P = np.array([[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
        model = am.Model.from_arrays(P, np.zeros((2, 2)), measurements=[visual], action_names=["wait", "repair"])
        start = am.Belief.at(0)
        assert start.update(model, 0, "visual", "hit").known == 1
        np.testing.assert_allclose(start.update(model, 0, 1, 0).probabilities, [0.9 / 0.95, 0.05 / 0.95])
        assert start.outcomes(model, 0, 0).tolist() == [1.0]
        assert start.update(model, 0, 0, np.int64(0)).is_close(
            start.predict(model, 0)
        )  # the number of the only outcome
        for arguments, message in [
            ((0, "visual", "hti"), "did you mean 'hit'"),
            ((0, "visual", 2), "the outcome of 'visual' is 2, expected a name, or a whole number from 0 to 1"),
            ((0, "visual", None), "'visual' always shows one"),
            ((0, 0, 1), "without a measurement nothing is seen"),
            ((1, "visual", 0), "'visual' cannot be made with action 'repair', only with wait"),
            ((0, 2, 0), "the measurement is 2"),
            ((0, "visul", 0), "did you mean 'visual'"),
        ]:
            with pytest.raises(am.ModelError, match=message):
                start.update(model, *arguments)
        repaired = am.Model.from_arrays(
            P, np.zeros((2, 2)), measurements=[am.Measurement.detection("v", 1.0, pod=[0.0, 0.5])]
        )
        with pytest.raises(am.ModelError, match="the outcome 'hit' of 'v' is impossible after action '1'"):
            start.update(repaired, 1, "v", "hit")
