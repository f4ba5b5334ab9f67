"""Models without discount on which planning once failed."""

import itertools

import numpy as np
import pytest

import actmeasure as am
from actmeasure.kernel_arrays import dynamics
from actmeasure.kernels import belief_graph, graph_search
from actmeasure.planning.bounds import Control, first_bounds, mdp_values
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search, make_graph, make_scratch

SETTLED = 1e-8


def losing_model(rng):
    """Up to 4 states from which the end can be reached; rewards are losses, often none, except on the way to a sure end.

    So circles that cost nothing are frequent, and none has gains.
    """
    while True:
        n_states, n_actions = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        P = np.zeros((n_states, n_actions, n_states))
        for state, action in itertools.product(range(n_states - 1), range(n_actions)):
            successors = rng.choice(n_states, size=int(rng.integers(1, 3)), replace=False)
            P[state, action, successors] = 1 / len(successors)
        P[-1, :, -1] = 1.0
        R = -rng.integers(0, 3, size=(n_states, n_actions)) * (rng.random((n_states, n_actions)) < 0.5)
        R = np.where((P[:, :, -1] == 1) & (rng.random(R.shape) < 0.3), 1.0, R)
        R[-1] = 0.0
        per_pair = rng.choice([0.0, 0.3, 2.0], size=R.shape)
        initial = np.append(np.full(n_states - 1, 1 / (n_states - 1)), 0.0)
        try:
            return am.Model.from_arrays(
                P, R, measuring_cost=per_pair if rng.random() < 0.4 else float(rng.choice([0.0, 0.1, 1.0, 5.0])),
                discount=1.0, initial=initial if rng.random() < 0.6 else 0,
                terminal=np.arange(n_states) == n_states - 1, reveal_start=bool(rng.random() < 0.6),
            )  # fmt: skip
        except am.ModelError:  # the end cannot be reached for sure from everywhere
            continue


def rules_from(model, control, belief, longest):
    """All plans that follow the control: a look after 1 to `longest` actions, or never."""
    plans, actions, seen = [], [], []
    for _ in range(40):
        key = (belief.states.tobytes(), np.round(belief.probabilities, 12).tobytes())
        if key in seen:
            return [*plans, am.BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - seen.index(key))]
        seen.append(key)
        actions.append(control(belief))
        belief = belief.predict(model, actions[-1])
        if belief.is_over:
            return [*plans, am.BlindPlan(tuple(actions), then="end")]
        if len(actions) <= longest:
            plans.append(am.BlindPlan(tuple(actions), then="measure" if belief.known is None else "known"))
    return plans


def best_combination(model, plans_from, longest, most=300):
    """The highest value of schedules with one of the plans from each state, and from the start if it is hidden.

    Of all combinations, or of `most` at random.
    """
    states = np.flatnonzero(~model.terminal).tolist()
    options = [plans_from(am.Belief.at(state), longest) for state in states]
    starts = [None] if model.start_is_known else plans_from(am.Belief.start(model), longest)
    combinations = list(itertools.islice(itertools.product(*options, starts), most + 1))
    if len(combinations) > most:
        rng = np.random.default_rng(0)
        combinations = [[each[rng.integers(len(each))] for each in (*options, starts)] for _ in range(most)]
    best = -np.inf
    for *chosen, start in combinations:
        schedule = am.Schedule(dict(zip(states, chosen, strict=True)), model.n_states, start)
        best = np.fmax(best, am.evaluate(model, schedule).discounted_return)
    return best


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 80))])
def test_no_measuring_rule_with_the_same_control_beats_act_then_measure(seed):
    model = losing_model(np.random.default_rng(seed))
    control = Control(model)
    best = best_combination(model, lambda belief, longest: rules_from(model, control, belief, longest), 3)
    solution = am.solve(model, "atm")
    assert solution.value >= best - SETTLED
    assert solution.stopped == "done"


def plans_of_all_actions(model, belief, longest):
    """All action strings of up to `longest`, with a look at the end or the last action for ever."""
    plans = []
    for length in range(1, longest + 1):
        for actions in itertools.product(range(model.n_actions), repeat=length):
            plans += [am.BlindPlan(actions, then="measure"), am.BlindPlan(actions, then="repeat", repeat=length)]
    return plans


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))])
def test_no_schedule_beats_a_bound_of_the_search(seed):
    model = losing_model(np.random.default_rng(seed))
    small = model.n_states <= 4 and model.n_actions <= 2
    best = best_combination(
        model, lambda belief, longest: plans_of_all_actions(model, belief, longest), 2 if small else 1
    )
    search = Search(model, Budget())
    search.run(1e-6)
    assert search.upper >= best - SETTLED
    assert min(progress.upper for progress in search.budget.record) >= best - SETTLED


def test_going_round_for_nothing_at_no_risk():
    """Looking always is worth 1 - 0.9 / 0.5; the control goes back when it does not know, and that costs nothing."""
    solution = am.solve(am.problems.measuring_value(p=0.5, measuring_cost=0.9, discount=1.0), "atm")
    assert solution.value == 0
    assert solution.schedule[0] == am.BlindPlan((1, 0), then="known")


def test_a_shortcut_in_a_circle_that_loses():
    """0 -> 1 -> 2 -> 0 loses 1 each round, but 0 -> 1 -> 0 costs nothing: no bound of 0 and 1 may fall below 0."""
    successors = [[1, 3], [2, 0], [0, 3], [3, 3]]
    R = [[0.0, -2.0], [0.0, 0.0], [-1.0, -2.0], [0.0, 0.0]]
    model = am.Model.from_arrays(
        np.eye(4)[successors], R, measuring_cost=0.1, discount=1.0, terminal=[False, False, False, True]
    )
    graph, scratch, bounds = make_graph(model), make_scratch(4), first_bounds(model, Budget())
    circle = np.array([belief_graph.node_of(graph, bounds, scratch, state) for state in range(3)])
    for node in circle:
        belief_graph.expand(graph, dynamics(model), bounds, scratch, 1.0, node)
    graph_search.solve_cycle(graph, bounds, scratch, 1.0, circle)
    assert graph.upper[circle[0]] >= 0
    assert graph.upper[circle[1]] >= 0
    assert graph.upper[circle[2]] >= -1
    assert am.solve(model).value == pytest.approx(0.0, abs=1e-6)


def test_gains_and_losses_that_alternate_for_ever_count_for_nothing():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 0] = 1.0
    P[:, 1, 2] = 1.0
    model = am.Model.from_arrays(
        P, [[1.0, -3.0], [-1.0, -3.0], [0.0, 0.0]], measuring_cost=1.0, discount=1.0, terminal=[False, False, True]
    )
    for method in ("optimal", "atm", "never"):
        solution = am.solve(model, method)
        assert solution.lower <= solution.upper


def test_a_schedule_that_loses_for_ever_is_worth_minus_infinity():
    """Looking at every step in a circle that one does better not to leave."""
    P = np.zeros((3, 2, 3))
    P[:2, 0, :2] = 0.5
    P[:2, 1, 2] = 1.0
    model = am.Model.from_arrays(
        P, [[0.0, -5.0], [0.0, -5.0], [0.0, 0.0]], measuring_cost=1.0, discount=1.0, terminal=[False, False, True]
    )
    assert am.solve(model, "always").value == -np.inf
    assert am.solve(model, "always").upper >= 0
    assert am.solve(model, "atm").value == 0


def test_a_schedule_that_was_found_is_not_lost():
    P = np.zeros((4, 2, 4))
    P[0, 0, 2:] = 0.5
    P[0, 1, 1] = P[1, 0, 1] = P[2, 0, 2] = P[2, 1, 0] = 1.0
    P[1, 1, 0] = P[1, 1, 2] = 0.5
    R = np.array([[-1.0, -1.0], [0.0, -1.0], [-1.0, -1.0], [0.0, 0.0]])
    model = am.Model.from_arrays(
        P, R, measuring_cost=0.1, discount=1.0, initial=[1 / 3, 1 / 3, 1 / 3, 0], reveal_start=False,
        terminal=[False, False, False, True],
    )  # fmt: skip
    solution = am.solve(model)
    assert -1.77 < solution.lower <= solution.upper


def test_act_then_measure_where_looking_always_never_ends():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 0] = P[1, 0, 1] = P[1, 1, 2] = 1.0
    P[2] = [1, 0, 0]
    model = am.Model.from_arrays(
        P, np.zeros((3, 2)), measuring_cost=1.0, discount=1.0, initial=[0.5, 0.5, 0], reveal_start=False,
        terminal=[False, False, True],
    )  # fmt: skip
    solution = am.solve(model, "atm")
    assert solution.lower <= 0.0 <= solution.upper


def test_going_round_at_a_loss_is_not_taken_for_a_plan():
    """Guess which of two states it is, or shuffle for 1 and look for 10: act-then-measure must at least look always."""
    P = np.zeros((3, 3, 3))
    P[:2, :2, 2] = 1.0
    P[:2, 2, :2] = 0.5
    R = np.array([[0.0, -100.0, -1.0], [-100.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    model = am.Model.from_arrays(
        P,
        R,
        measuring_cost=10.0,
        discount=1.0,
        initial=[0.5, 0.5, 0],
        reveal_start=False,
        terminal=[False, False, True],
    )
    atm, always = am.solve(model, "atm").value, am.solve(model, "always").value
    assert atm >= always - 1e-9
    assert am.solve(model).value == pytest.approx(-11.0, abs=1e-6)


def test_a_belief_is_not_taken_for_one_of_another_path():
    """From 0 the control goes 1, 2, 2 and knows that it is back; it does not repeat itself after 1, 2."""
    P = np.zeros((5, 3, 5))
    P[0, 0, 3] = P[1, :2, 3] = P[2, 1, 2] = P[2, 2, 4] = P[3, 0, 1] = P[3, 2, 1] = P[4, :, 4] = 1.0
    P[0, 1, [0, 2]] = P[0, 2, [1, 2]] = P[1, 2, [0, 4]] = P[2, 0, [2, 3]] = P[3, 1, [2, 3]] = 0.5
    R = [[-1.0, 0.0, 0.0], [-1.0, 0.0, -1.0], [-2.0, -2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    model = am.Model.from_arrays(
        P, R, measuring_cost=5.0, discount=1.0, initial=[0.25, 0.25, 0.25, 0.25, 0], terminal=np.arange(5) == 4
    )
    assert am.solve(model, "atm").value == pytest.approx(-1 / 14)


@pytest.mark.parametrize("end", [1e-12, 1e-14, 1e-16, 1e-20])
def test_where_nothing_is_gained_no_bound_is_above_0_however_unlikely_an_end_is(end):
    """Rounding may leave nothing of a bound where sums of 1 / end steps are added up; that none gains is certain all the same."""
    P = np.zeros((4, 2, 4))
    P[0, 0], P[0, 1] = (1 - end, 0, 0, end), (0.5, 0.5, 0, 0)
    P[1, 0], P[1, 1] = (0, 1 - end, 0, end), (0.3, 0.3, 0.4, 0)
    P[2, 0], P[2, 1] = (0.5, 0.5 - end, 0, end), (0, 0, 1 - end, end)
    P[3, :, 3] = 1.0
    P /= P.sum(axis=2, keepdims=True)
    rewards, terminal = -np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0], [0.0, 0.0]]), np.arange(4) == 3
    model = am.Model.from_arrays(P, rewards, measuring_cost=0.1, discount=1.0, terminal=terminal, initial=0)
    bound = mdp_values(model, Budget())
    assert (bound <= 0).all()
    assert (bound[:3] >= -1 / end * (1 + 1e-9)).all()
