"""Explanations at a belief agree with backward induction over beliefs, and say what may be seen and what follows."""

import numpy as np
import pytest
from brute_force import optimal_value

import actmeasure as am


def small_life(periods=3, discount=0.9):
    """A part that wears out, with an imperfect and an exact inspection, over a short life."""
    P = np.array([[[0.8, 0.2], [1.0, 0.0]], [[0.0, 1.0], [0.9, 0.1]]])
    R = np.array([[0.0, -2.0], [-3.0, -2.0]])
    looks = [
        am.Measurement.detection("visual", cost=0.05, pod=[0.1, 0.8]),
        am.Measurement.exact("opening", cost=0.4, with_actions=("wait",)),
    ]
    model = am.Model.from_arrays(
        P,
        R,
        measurements=looks,
        discount=discount,
        initial=[0.6, 0.4],
        action_names=["wait", "replace"],
        state_names=["good", "worn"],
    )
    return am.lifetime(model, periods)


def value_at(model, belief):
    """The optimum from a belief, by backward induction."""
    return optimal_value(model.replace(initial=belief.dense(model.n_states), reveal_start=False))


def decision_value(model, belief, action, measurement):
    """The value of a decision with the optimum after it, by backward induction."""
    total = float(belief.expected(model.rewards[:, action]))
    if measurement:
        prices = model.measurements[measurement - 1].table(model.n_states, model.n_actions)
        total -= float(belief.expected(prices[:, action]))
    running = belief.running_probability(model, action)
    sees = model.shown_by(measurement) is not None
    for outcome, chance in enumerate(belief.outcomes(model, action, measurement)):
        if running * chance > 0:
            after = belief.update(model, action, measurement, outcome if sees else None)
            total += model.discount * running * chance * value_at(model, after)
    return total


def test_bounds_and_measuring_values_hold_those_of_backward_induction():
    model = small_life()
    solution = am.solve(model, tolerance=1e-9, relative_tolerance=0.0)
    explained = solution.explain()
    assert [one.decision for one in explained.decisions] == [
        am.Decision(int(a), int(m)) for a, m in np.argwhere(model.allowed_decisions)
    ]
    belief = am.Belief.start(model)
    truth = {
        one.decision: decision_value(model, belief, one.decision.action, one.decision.measurement)
        for one in explained.decisions
    }
    for one in explained.decisions:
        assert one.lower <= truth[one.decision] + 1e-9
        assert one.upper >= truth[one.decision] - 1e-9
        assert one.lower == pytest.approx(truth[one.decision], abs=0.05)
        low, high = one.measuring_value_bounds
        worth = truth[one.decision] - truth[am.Decision(one.decision.action)]
        assert low - 1e-9 <= worth <= high + 1e-9
    assert explained.best.lower == pytest.approx(optimal_value(model), abs=1e-8)
    assert explained.best.decision == solution.policy.decide_at(belief)
    assert explained.best.measuring_value == pytest.approx(
        truth[explained.best.decision] - truth[am.Decision(explained.best.decision.action)], abs=0.05
    )


def test_prices_outcomes_and_what_follows():
    model = small_life()
    solution = am.solve(model)
    belief = am.Belief.start(model).update(model, 0, "visual", "hit")
    explained = solution.explain(belief)
    visual = explained.of("wait", "visual")
    assert visual.price == 0.05
    assert {o.name: o.probability for o in visual.outcomes} == pytest.approx(
        dict(zip(("miss", "hit"), belief.outcomes(model, 0, "visual"), strict=True))
    )
    for outcome in visual.outcomes:
        after = belief.update(model, 0, "visual", outcome.outcome)
        assert outcome.belief.is_close(after)
        assert outcome.decision == solution.policy.decide_at(after)
    assert explained.of(0).outcomes[0].name == "nothing"
    assert explained.of(0).measuring_value == 0
    text = str(explained)
    for word in ("visual", "opening", "hit", "miss", "best", "measuring value"):
        assert word in text
    with pytest.raises(
        am.PlanError, match="there is no decision of the action 'replace' with the measurement 'opening'"
    ):
        explained.of("replace", "opening")


def test_a_known_state_and_a_table():
    pytest.importorskip("pandas")
    model = small_life(2)
    explained = am.solve(model).explain(1)
    assert explained.belief.known == 1
    frame = explained.to_pandas()
    assert set(frame["measurement"]) == {"", "visual", "opening"}
    sums = frame.groupby(["action", "measurement"])["probability"].sum()
    assert sums.to_numpy() == pytest.approx(1.0)


def test_after_the_last_decision_nothing_is_seen():
    model = small_life(1)
    assert all(one.outcomes == () for one in am.solve(model).explain().decisions)


def test_exact_looks_at_a_belief():
    lake = am.problems.frozen_lake(4)
    solution = am.solve(lake)
    explained = solution.explain(am.Belief.from_distribution(np.eye(16)[1] + np.eye(16)[2]))
    assert np.isnan(explained.best.upper)
    assert explained.best.lower <= solution.upper / lake.discount
    assert "look" in str(explained)


def test_beliefs_that_cannot_be_explained_are_refused():
    model = small_life()
    solution = am.solve(model)
    with pytest.raises(am.PlanError, match="mixes periods"):
        solution.explain(am.Belief.from_distribution([0.5, 0, 0.5] + [0] * (model.n_states - 3)))
    with pytest.raises(am.PlanError, match="expected a belief of a running episode"):
        solution.explain(am.Belief(np.array([], dtype=np.int64), np.array([])))
    with pytest.raises(am.PlanError, match="method 'always' has no values for beliefs"):
        am.solve(model, "always").explain()
    with pytest.raises(am.PlanError, match="there is no state 99"):
        solution.explain(99)


def test_explaining_does_not_change_the_solution():
    solution = am.solve(am.problems.tiger(), relative_tolerance=0.5)
    search = solution.search
    before = [array.copy() for array in (*search.points, *search.vectors)]
    bounds = search.lower, search.upper
    explained = solution.explain()
    assert explained.best.decision == solution.policy.decide_at(am.Belief.start(solution.model))
    assert (search.lower, search.upper) == bounds
    assert all(np.array_equal(*pair) for pair in zip(before, (*search.points, *search.vectors), strict=True))
