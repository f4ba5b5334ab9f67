"""What must hold for every planning method, on random models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import Judge
from strategies import examples, models

import actmeasure as am
from actmeasure.planning import Budget, optimal
from actmeasure.planning.bounds import Control
from actmeasure.planning.optimal import Search

METHODS = ("optimal", "atm", "atm-qmdp", "atm-linear", "always", "never", "every-1", "every-2", "every-3")
ROUNDING = 1e-9
SETTLED = 1e-8


@given(models(max_states=3, max_actions=2, discounts=(0.3, 0.5, 0.7)))
@examples(60)
def test_the_bounds_of_every_method_contain_the_optimum(model):
    judge = Judge(model)
    for method in METHODS:
        solution = am.solve(model, method)
        assert solution.lower <= solution.upper, method
        assert solution.lower <= judge.upper + ROUNDING, method
        assert solution.upper >= judge.lower - ROUNDING, method


@given(models(discounts=(0.5, 0.9, 0.95)))
@examples(60)
def test_bounds_and_values_of_every_method_are_consistent(model):
    optimum = am.solve(model, "optimal", tolerance=1e-4, time_limit=2)
    for method in METHODS[1:]:
        solution = am.solve(model, method, tolerance=1e-4, time_limit=2 if method == "never" else None)
        assert solution.value == am.evaluate(model, solution.schedule).discounted_return, method
        assert solution.lower <= solution.upper, method
        assert solution.lower <= optimum.upper + ROUNDING, method
        assert solution.upper >= optimum.lower - ROUNDING, method


@given(models())
@examples(100)
def test_act_then_measure_is_at_least_as_good_as_looking_always(model):
    assert am.solve(model, "atm").value >= am.solve(model, "always").value - SETTLED


@given(models())
@examples(60)
def test_looking_at_every_step_is_looking_always(model):
    assert am.solve(model, "every-1").value == pytest.approx(am.solve(model, "always").value, abs=SETTLED)


def plan_with_control(model, control, belief, steps):
    """Follow the control for some steps and look with the last; what it can show is returned too."""
    actions = []
    while len(actions) < steps:
        actions.append(control(belief))
        belief = belief.predict(model, actions[-1])
        if belief.is_over:
            return am.BlindPlan(tuple(actions), then="end"), []
        if belief.known is not None:
            return am.BlindPlan(tuple(actions), then="known"), [belief.known]
    return am.BlindPlan(tuple(actions), then="measure"), [int(state) for state in belief.states]


def some_measuring_rule(model, rng):
    """Act-then-measure's control with a look after a random number of steps from each state."""
    control = Control(model)
    start, waiting = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, waiting = plan_with_control(model, control, am.Belief.start(model), int(rng.integers(1, 7)))
    plans = {}
    while waiting:
        state = waiting.pop()
        if state not in plans:
            plans[state], shown = plan_with_control(model, control, am.Belief.at(state), int(rng.integers(1, 7)))
            waiting += shown
    return am.Schedule(plans, model.n_states, start)


@given(models(), st.integers(0, 2**32 - 1))
@examples(100)
def test_no_other_measuring_rule_with_the_same_control_is_better(model, seed):
    best, rng = am.solve(model, "atm").value, np.random.default_rng(seed)
    for _ in range(5):
        assert am.evaluate(model, some_measuring_rule(model, rng)).discounted_return <= best + SETTLED


@given(models(discounts=(0.5, 0.9)), st.sampled_from([0.0, 0.05, 0.3, 1.0]))
@examples(100)
def test_act_then_measure_loses_at_most_a_look_at_every_step(model, cost):
    model = model.replace(measuring_cost=cost)
    optimum = am.solve(model, tolerance=1e-6, time_limit=5)
    assert am.solve(model, "atm").value >= optimum.lower - cost / (1 - model.discount) - SETTLED


@given(models(discounts=(0.5, 0.9)))
@examples(60)
def test_never_does_not_look_and_bounds_the_best_that_does_not(model):
    solution = am.solve(model, "never", tolerance=1e-4, time_limit=2)
    assert solution.evaluation.discounted_measurements == 0
    assert solution.lower <= solution.method_upper + ROUNDING
    for action in range(model.n_actions):
        repeat = am.BlindPlan((action,), then="repeat", repeat=1)
        schedule = am.Schedule({int(s): repeat for s in np.flatnonzero(~model.terminal)}, model.n_states, repeat)
        assert am.evaluate(model, schedule).discounted_return <= solution.method_upper + ROUNDING


@given(models(max_states=3, max_actions=2, discounts=(0.3, 0.5, 0.7)))
@examples(60)
def test_never_is_the_optimum_when_a_look_is_too_dear(model):
    dear = model.replace(measuring_cost=1e6)
    judge, solution = Judge(dear), am.solve(model, "never", tolerance=1e-6)
    assert solution.lower <= judge.upper + ROUNDING
    assert solution.method_upper >= judge.lower - ROUNDING
    assert solution.method_upper - solution.lower <= 1e-6 + ROUNDING


@given(models(discounts=(0.5, 0.9, 0.95)))
@examples(60)
def test_q_mdp_solves_the_bellman_equations_from_above(model):
    values = am.q_mdp(model)
    P, R = model.transitions.dense(), np.array(model.rewards)
    exact = np.zeros(model.n_states)
    for _ in range(2000):
        exact = np.where(model.terminal, 0.0, (R + model.discount * P @ exact).max(axis=1))
    expected = np.where(np.array(model.terminal)[:, None], 0.0, R + model.discount * P @ exact)
    assert np.all(values >= expected - 1e-12 * (1 + np.abs(expected)))
    assert np.all(values <= expected + 1e-9 * (1 + np.abs(expected).max()))


def test_simulation_agrees_with_the_exact_value():
    model = am.problems.frozen_lake(4)
    schedule = am.solve(model).schedule
    exact = am.evaluate(model, schedule, horizon=200)
    agent = am.agents.make("schedule", schedule=schedule, model=model)
    episodes = am.train(agent, model, episodes=100_000, seed=1, max_steps=200)
    for simulated, value in (
        (episodes.scalarized_return, exact.scalarized_return),
        (episodes.reward, exact.reward),
        (episodes.measurements, exact.measurements),
        (episodes.steps, exact.steps),
    ):
        assert abs(simulated.mean() - value) <= 4 * simulated.std() / np.sqrt(len(simulated)) + 1e-12


@pytest.mark.parametrize("seed", [0, 1, 48, 222, 251])
def test_act_then_measure_comes_to_an_end(seed):
    """A plan without end is valued once from its path and once exactly; the rounding in between must not count as progress."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(2), size=(2, 1))
    model = am.Model.from_arrays(
        P, rng.normal(size=(2, 1)), measuring_cost=rng.random((2, 1)), discount=0.95, initial=1
    )
    solution = am.solve(model, "atm", time_limit=2)
    assert solution.value == pytest.approx(am.solve(model, "never").value, abs=SETTLED)


def equations_have_their_values(model, seed):
    """Check the values of random choices: blind ones to other nodes, in cycles and to nodes outside, looks, and ends."""
    rng = np.random.default_rng(seed)
    search = Search(model, Budget(work=500))
    search.run(1e-9)
    graph = search._graph
    expanded = np.flatnonzero(graph.expanded[: search.nodes])
    nodes = expanded[rng.random(len(expanded)) < rng.choice([0.5, 0.9, 1.0])]
    if len(nodes) == 0:
        return
    equations = optimal._OptimalityEquations.of(graph, search.bounds, model.discount, nodes)
    if rng.random() < 0.5:
        equations.choose_shown(graph.upper[nodes])
    choices = rng.integers(2 * model.n_actions, size=len(nodes))
    if rng.random() < 0.5:
        choices -= choices % 2  # blind everywhere
    if rng.random() < 0.5:
        choices %= 2  # always the first action
    values = equations.evaluate(choices)
    every, actions, pays = np.arange(len(nodes)), choices // 2, choices % 2 == 1
    shown, unseen = equations._if_shown(values)[every, actions], equations._unseen(values)[every, actions]
    ahead = np.where(pays | equations.counts_as_shown[every, actions], shown, unseen)
    expected = equations.rewards[every, actions] - pays * equations.costs[every, actions]
    expected += equations.factors[every, actions] * ahead
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(values).max()))


@given(models(discounts=(0.5, 0.9, 0.99)), st.integers(0, 2**32 - 1))
@examples(60)
def test_policy_iteration_evaluates_choices_exactly(model, seed):
    equations_have_their_values(model, seed)


@pytest.mark.parametrize("seed", range(8))
def test_policy_iteration_evaluates_cycles_of_beliefs_exactly(seed):
    """On a ring of 12 states the two actions move a hidden start to and fro, so blind choices lead round in cycles."""
    rng = np.random.default_rng(seed)
    P = np.stack([np.roll(np.eye(12), step, axis=1) for step in (1, -1)], axis=1)
    model = am.Model.from_arrays(
        P, rng.normal(size=(12, 2)), measuring_cost=5.0, discount=0.99, initial=[0.5, 0.3, *[0.0] * 9, 0.2],
        reveal_start=False,
    )  # fmt: skip
    equations_have_their_values(model, seed)


def test_policy_iteration_ends_where_choices_of_equal_value_take_turns(monkeypatch):
    steps = []
    solve, evaluate = optimal._OptimalityEquations.solve, optimal._OptimalityEquations.evaluate

    def counted_solve(self, *arguments):
        steps.append(0)
        return solve(self, *arguments)

    def counted_evaluate(self, choices):
        steps[-1] += 1
        return evaluate(self, choices)

    monkeypatch.setattr(optimal._OptimalityEquations, "solve", counted_solve)
    monkeypatch.setattr(optimal._OptimalityEquations, "evaluate", counted_evaluate)
    monkeypatch.setattr(optimal, "FIRST_BELOW", 16)
    lake = am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=109)
    Search(lake, Budget(work=20_000)).run(1e-5)
    assert len(steps) > 3
    assert max(steps) < optimal.MOST_STEPS // 2


def test_a_search_does_not_give_up_while_bounds_inside_the_graph_fall():
    """Near discount 1 many rounds pass before the start's bound follows: it ended here as `exhausted` after 516,168."""
    search = Search(am.problems.frozen_lake(4, measuring_cost=0.05, discount=0.99999), Budget(work=520_000))
    assert search.run(1e-4) == "beliefs"


def test_policy_iteration_takes_at_most_as_much_work_as_the_rounds_between(monkeypatch):
    """On this lake nine calls in a row took longer than all rounds until then: a call takes the work of some 24,000 beliefs."""
    calls = []
    settle = Search._settle

    def recorded(self, threshold):
        calls.append(self.work)
        settle(self, threshold)

    monkeypatch.setattr(Search, "_settle", recorded)
    lake = am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=801)
    Search(lake, Budget(work=40_000)).run(1e-5)
    assert len(calls) == 1  # the second comes later
