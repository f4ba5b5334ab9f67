"""Foresight where it is easily misled: undiscounted tasks, hidden starts, rare ends, steps that cost, contradicted plans."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.interrupts import deferred_interrupts
from actmeasure.learning.foresight import Phase
from actmeasure.planning.solve import solve_by_work

LAKE = am.problems.frozen_lake(4, measuring_cost=0.05)


def trained(model: am.Model, episodes: int, seed: int = 0, max_steps: int = 100, **settings: float):
    agent = am.agents.make("foresight", **settings)
    return agent, am.train(agent, model, episodes, seed=seed, max_steps=max_steps)


def corridor(length: int, step: float = 0.0, back: float = 0.0, end: float = 0.0) -> am.Model:
    """Forward, which may throw back to the start or end the episode, or stay; 1 at the far end, a reward for each other step."""
    P, R = np.zeros((length + 1, 2, length + 1)), np.full((length + 1, 2), step)
    for state in range(length):
        P[state, 0, state + 1] = 1 - back - end
        P[state, 0, 0] += back
        P[state, 0, length] += end
        P[state, 1, state] = 1
    P[length, :, length], R[length], R[length - 1, 0] = 1, 0, 1 + step
    return am.Model.from_arrays(P, R, measuring_cost=0.02, terminal=[False] * length + [True], initial=0)


def test_a_task_without_discount_is_explored_as_any_other():
    lake = am.problems.frozen_lake(12, "semi-slippery", measuring_cost=0.05, seed=1002, discount=1.0)
    agent, episodes = trained(lake, 1200, max_steps=1000)
    assert agent.phase is Phase.FOLLOWING
    assert episodes.scalarized_return[-500:].mean() > 0.4  # the best known is 0.475


@pytest.mark.parametrize("seed", range(4))
def test_a_task_without_discount_in_which_no_end_was_seen_yet(seed):
    P = np.zeros((3, 1, 3))
    P[0, 0, 1], P[1, 0, 1:], P[2, 0, 2] = 1, [0.98, 0.02], 1
    model = am.Model.from_arrays(
        P, np.array([[-1.0], [-1.0], [0.0]]), measuring_cost=0.05, discount=1.0, terminal=[False, False, True]
    )
    agent, episodes = trained(model, 60, seed, max_steps=5)
    assert len(episodes) == 60
    assert agent.plans_made > 0


def test_a_start_that_is_known_but_not_shown_is_learned():
    P, R = np.zeros((3, 2, 3)), np.zeros((3, 2))
    P[0, 0, 1] = P[0, 1, 2] = 1
    P[1, :, 2] = P[2, :, 2] = R[1, 1] = 1
    model = am.Model.from_arrays(
        P, R, measuring_cost=0.05, initial=0, terminal=[False, False, True], reveal_start=False
    )
    _, episodes = trained(model, 200)
    assert (episodes.scalarized_return[-50:] == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_ends_are_learned_without_looks(seed):
    agent, _ = trained(corridor(4, end=0.03), 2000, seed)
    successors, chances = agent.model().transitions.row(0, 0)
    (ends,) = chances[successors == agent.model().n_states - 1]
    ended, taken = agent._tables.ended[0], agent._tables.taken[0]
    assert ends == pytest.approx(ended / taken)
    assert ends == pytest.approx(0.03, abs=4 * np.sqrt(0.03 * 0.97 / 2000))


def test_the_outlook_is_there_at_any_time():
    model, contradicted = corridor(6, back=0.01), 0
    for seed in range(4):
        agent = am.agents.make("foresight", beliefs=5_000)
        with pytest.raises(am.ActMeasureError):
            agent.outlook()
        for _ in range(12):
            am.train(agent, model, 10, seed=seed, max_steps=200)
            contradicted += not np.isfinite(agent._value_of_plan(agent.model()))
            seen = agent.outlook(samples=2)
            assert seen.low <= seen.high
            assert 0 <= seen.gain <= seen.most_gain
            assert 0 <= seen.unexplored <= 1
    assert contradicted > 0


def test_the_outlook_covers_what_the_schedule_is_worth():
    agent, _ = trained(LAKE, 600, max_steps=1000)
    truth = am.evaluate(LAKE.replace(discount=agent.model().discount), _for(LAKE, agent.schedule)).discounted_return
    seen = agent.outlook(samples=40)
    assert seen.low - 0.02 <= truth <= seen.high + 0.02
    assert seen.value == pytest.approx(am.evaluate(agent.model(), agent.schedule).discounted_return)
    assert seen.gain < 0.05
    assert seen.value + seen.most_gain <= 1


def _for(model: am.Model, schedule: am.Schedule) -> am.Schedule:
    """Without the state in which learned models end."""
    plans = {state: plan for state, plan in schedule.items() if state < model.n_states}
    return am.Schedule(plans, model.n_states, schedule.start)


def test_ctrl_c_does_not_change_a_plan():
    lake = am.problems.frozen_lake(8, "semi-slippery", measuring_cost=0.05, discount=0.99)
    undisturbed = solve_by_work(lake, 0.01, 20_000, interruptible=False)
    with deferred_interrupts() as interrupts:
        interrupts.requested = True
        disturbed = solve_by_work(lake, 0.01, 20_000, interruptible=False)
    assert (disturbed.value, disturbed.upper) == (undisturbed.value, undisturbed.upper)


def test_steps_that_cost_are_no_reason_to_search_on():
    agent, episodes = trained(corridor(15, step=-0.1), 500, max_steps=200)
    assert agent.phase is Phase.FOLLOWING
    assert agent.explored < 100
    assert episodes.scalarized_return[-100:].mean() == pytest.approx(-0.5)


def test_looks_of_different_prices_are_paid_as_they_are():
    cost = np.full((LAKE.n_states, LAKE.n_actions), 0.05)
    cost[3] = 20.0
    agent, episodes = trained(LAKE.replace(measuring_cost=cost), 1000, max_steps=1000)
    assert agent.phase is Phase.FOLLOWING
    assert episodes.scalarized_return[-500:].mean() > 0.8


def test_the_belief_at_a_start_that_is_not_shown():
    free = np.where(LAKE.terminal, 0.0, 1.0)
    model = LAKE.replace(initial=free / free.sum(), reveal_start=False)
    agent, _ = trained(model, 600, max_steps=1000)
    assert agent.phase is not Phase.EXPLORING
    agent.begin(None)
    assert agent.belief().states.tolist() == np.flatnonzero(free).tolist()


def test_the_belief_in_a_plan_that_repeats():
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[2, 0, 0] = 1
    P[1, 0, 1:] = 0.5
    model = am.Model.from_arrays(P, np.array([[1.0], [0.0], [0.0]]), measuring_cost=5.0, discount=0.9)
    agent, _ = trained(model, 60, max_steps=60)
    assert agent.schedule[0].then == "repeat"
    agent.begin(0)
    expected = am.Belief.at(0)
    for _ in range(7):
        expected = expected.predict(agent.model(), agent.decide().action)
        agent.observe(0.0, 0.0, None, False, False)
    assert agent.belief().dense(4) == pytest.approx(expected.dense(4))


def test_starts_that_were_not_seen_yet_are_something_new():
    # One of ten starts is drawn; every action ends the episode.
    P = np.zeros((11, 2, 11))
    P[:, :, 10] = 1
    R = np.zeros((11, 2))
    R[:10, 1] = 1
    start = np.r_[0.91, np.full(9, 0.01), 0.0]
    model = am.Model.from_arrays(P, R, measuring_cost=0.05, terminal=[False] * 10 + [True], initial=start)
    agent, _ = trained(model, 30)
    unseen = start[:10][~agent._tables.is_seen[:10]].sum()
    assert agent.outlook(samples=1).unexplored >= unseen > 0
    assert agent.phase is not Phase.FOLLOWING
