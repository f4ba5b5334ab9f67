"""Exact evaluation against closed forms, a dense product chain and simulation."""

import os
import signal
import threading

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models, random_schedule

import actmeasure as am
from actmeasure import evaluation, markov
from actmeasure.kernel_arrays import dynamics
from actmeasure.kernels.schedule_chain import trace_tail

LOOK, FINISH, BACK = am.BlindPlan((1,)), am.BlindPlan((1,), then="end"), am.BlindPlan((0,), then="known")


@pytest.mark.parametrize("cost", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("p", [0.5, 0.8])
def test_measuring_value_closed_forms(p, cost):
    model = am.problems.measuring_value(p=p, measuring_cost=cost, discount=1.0)
    looking = am.evaluate(model, am.Schedule({0: LOOK, 1: FINISH, 2: BACK}, 4))
    assert looking.scalarized_return == pytest.approx(1 - cost / p, abs=1e-12)
    assert looking.discounted_return == pytest.approx(1 - cost / p, abs=1e-12)
    assert looking.measurements == pytest.approx(1 / p, abs=1e-12)
    assert looking.average_reward is None
    assert looking.ending_probability == 1.0
    blind = am.evaluate(model, am.Schedule({0: am.BlindPlan((1, 1), then="end")}, 4), horizon=5)
    assert blind.scalarized_return == pytest.approx(p, abs=1e-12)
    assert blind.measurements == 0
    assert blind.steps == 2


def test_measuring_value_discounted_as_certified():
    values = {0.05: 0.8664, 0.10: 0.8054}
    for cost, value in values.items():
        model = am.problems.measuring_value(measuring_cost=cost)
        schedule = am.Schedule({0: LOOK, 1: FINISH, 2: BACK}, 4)
        assert am.evaluate(model, schedule).discounted_return == pytest.approx(value, abs=5e-5)


def test_certified_lake_figures():
    """The semi-slippery 4x4 lake's optimal schedule is not typed in: the deterministic lake's is, six steps to the goal."""
    lake = am.problems.frozen_lake(4, "deterministic")
    path = am.BlindPlan((1, 1, 2, 1, 2, 2), then="end")
    result = am.evaluate(lake, am.Schedule({0: path}, 16), horizon=200)
    assert result.discounted_return == pytest.approx(0.95**5, abs=1e-14)
    assert (result.scalarized_return, result.measurements, result.steps) == (1.0, 0.0, 6.0)


def test_cost_is_paid_also_when_the_measuring_action_ends_the_episode():
    model = am.Model.from_arrays(
        [[[0.0, 1.0]], [[0.0, 0.0]]], [[2.0], [0.0]], measuring_cost=0.3, discount=0.9, terminal=[False, True]
    )
    assert am.evaluate(model, am.Schedule({0: am.BlindPlan((0,))}, 2)).discounted_return == pytest.approx(1.7)


def test_endless_schedules_do_not_hang_and_have_averages():
    model = am.problems.tight_bound(measuring_cost=0.1)
    always = am.Schedule({0: am.BlindPlan((1,)), 2: am.BlindPlan((0,)), 3: am.BlindPlan((1,))}, 4)
    result = am.evaluate(model, always)
    assert result.steps == np.inf
    assert result.scalarized_return == np.inf
    assert result.average_return == pytest.approx(0.9)
    assert result.average_reward == pytest.approx(1.0)
    assert result.average_measurements == pytest.approx(1.0)
    blind = am.evaluate(model, am.Schedule({0: am.BlindPlan((1, 0, 1), then="repeat", repeat=2)}, 4), horizon=1001)
    assert blind.average_reward == pytest.approx(0.5)
    assert blind.reward == pytest.approx(500.0)
    assert blind.ending_probability == 0.0


def test_long_horizons_add_up():
    model = am.problems.tight_bound(measuring_cost=0.1)
    always = am.Schedule({0: am.BlindPlan((1,)), 2: am.BlindPlan((0,)), 3: am.BlindPlan((1,))}, 4)
    result = am.evaluate(model, always, horizon=1_000_000)
    assert result.steps == 1_000_000
    assert result.scalarized_return == pytest.approx(0.9 * 999_999 - 0.1, rel=1e-9)


def test_nothing_is_pushed_on_after_the_end():
    """With a step of work per step of the horizon this would take hours."""
    model = am.problems.measuring_value()
    gamble = am.Schedule({0: am.BlindPlan((1, 1), then="end")}, 4)
    result = am.evaluate(model, gamble, horizon=10**13)
    assert (result.reward, result.steps) == (pytest.approx(0.8), 2.0)


def test_long_repeating_tails_cost_what_they_reach():
    """A hundred thousand phases on a lake of a million cells, of which few can be reached."""
    rows = ["S" + "F" * 999, "F" * 1000, *["H" * 1000] * 997, "F" * 999 + "G"]
    lake = am.problems.frozen_lake(map=rows, variant="deterministic")
    circle = np.array([2, 1, 0, 3] * 25_000)
    # A number for every state and phase would be 800 GB.
    assert len(trace_tail(dynamics(lake), circle, np.array([0])).states) == len(circle)


@given(models(max_states=6), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_tails_are_the_pairs_of_state_and_phase_that_can_be_reached(model, actions, seed):
    actions = [action % model.n_actions for action in actions]
    running = np.flatnonzero(~model.terminal)
    first = np.unique(np.random.default_rng(seed).choice(running, size=len(running)))
    P = model.transitions.dense()
    reached = [(int(state), 0) for state in first]
    moves = {}
    for state, phase in reached:
        for successor in np.flatnonzero((P[state, actions[phase]] > 0) & ~model.terminal):
            target = (int(successor), (phase + 1) % len(actions))
            moves[(state, phase), target] = P[state, actions[phase], successor]
            if target not in reached:
                reached.append(target)
    tail = trace_tail(dynamics(model), np.array(actions), first)
    nodes = list(zip(tail.states.tolist(), tail.phases.tolist(), strict=True))
    assert nodes == reached
    entries = zip(tail.entry_nodes, tail.entry_targets, tail.entry_weights, strict=True)
    assert {(nodes[a], nodes[b]): weight for a, b, weight in entries} == moves
    ends = [(P[state, actions[phase]] * model.terminal).sum() for state, phase in nodes]
    assert tail.ending == pytest.approx(ends, rel=1e-15, abs=0.0)


def test_many_pairs_of_state_and_phase():
    """More than the table has room for at first, so that it grows."""
    lake = am.problems.frozen_lake(60, variant="slippery", seed=1)
    tail = trace_tail(dynamics(lake), np.arange(7) % 4, np.array(lake.initial_states))
    keys = tail.phases * lake.n_states + tail.states
    assert len(keys) > 10_000
    assert len(np.unique(keys)) == len(keys)


def test_an_evaluation_in_words():
    model = am.problems.tight_bound(measuring_cost=0.1)
    always = am.Schedule({0: am.BlindPlan((1,)), 2: am.BlindPlan((0,)), 3: am.BlindPlan((1,))}, 4)
    words = repr(am.evaluate(model, always, horizon=1))
    assert "over 1 step: return -0.1" in words
    assert words.endswith("; per step: return 0.9, reward 1, measurements 1)")


def test_alternating_rewards_have_no_total():
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    model = am.Model.from_arrays(swap, [[1.0], [-1.0]], measuring_cost=0.0, discount=0.5)
    result = am.evaluate(model, am.Schedule({0: am.BlindPlan((0,), then="repeat", repeat=1)}, 2))
    assert np.isnan(result.reward)
    assert result.average_reward == pytest.approx(0.0)
    assert result.discounted_return == pytest.approx(1 / 1.5)


@given(models(), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 7, 40]))
@examples(150)
def test_agrees_with_the_dense_product_chain(model, seed, horizon):
    schedule = random_schedule(model, np.random.default_rng(seed))
    discounted, sums = reference.evaluate(model, schedule, horizon)
    result = am.evaluate(model, schedule, horizon=horizon)
    expected = {
        "discounted_return": discounted[0] - discounted[1],
        "discounted_reward": discounted[0],
        "discounted_measurements": discounted[2],
        "scalarized_return": sums[0] - sums[1],
        "reward": sums[0],
        "measurements": sums[2],
        "steps": sums[3],
    }
    for name, value in expected.items():
        assert getattr(result, name) == pytest.approx(value, rel=1e-9, abs=1e-9), name


@given(models(max_states=4), st.integers(0, 2**32 - 1))
@examples(100)
def test_all_time_sums_and_averages_agree_with_the_far_future(model, seed):
    schedule = random_schedule(model, np.random.default_rng(seed))
    result = am.evaluate(model, schedule)
    T, values, begin = reference.product_chain(model, schedule)
    now = begin @ np.linalg.matrix_power(T, 2**30)
    if result.ending_probability > 1 - 1e-12:
        assert now.sum() < 1e-6
        sums = begin @ np.linalg.solve(np.eye(len(T)) - T, values)
        assert result.steps == pytest.approx(sums[3], rel=1e-6)
        assert result.reward == pytest.approx(sums[0], rel=1e-6, abs=1e-6)
        assert result.scalarized_return == pytest.approx(sums[0] - sums[1], rel=1e-6, abs=1e-6)
        assert result.average_reward is None
        return
    assert result.steps == np.inf
    assert now.sum() == pytest.approx(1 - result.ending_probability, abs=1e-6)
    sums = np.zeros(4)
    for _ in range(2520):  # a multiple of every period that such a small chain can have
        sums += now @ values
        now = now @ T
    per_step = sums / sums[3]
    assert result.average_reward == pytest.approx(per_step[0], abs=1e-6)
    assert result.average_return == pytest.approx(per_step[0] - per_step[1], abs=1e-6)
    assert result.average_measurements == pytest.approx(per_step[2], abs=1e-6)


@given(models(max_states=5, discounts=(0.5, 0.9)), st.integers(0, 2**32 - 1))
@examples(25)
def test_agrees_with_simulation_within_its_error(model, seed):
    """Independent play, one step at a time; 5 standard errors over some hundred comparisons."""
    rng = np.random.default_rng(seed)
    schedule = random_schedule(model, rng)
    horizon, episodes = 60, 400
    played = reference.simulate(model, schedule, episodes, horizon, rng)
    result = am.evaluate(model, schedule, horizon=horizon)
    exact = (
        result.discounted_return, result.scalarized_return, result.reward, result.measurements, result.steps
    )  # fmt: skip
    tail = model.discount**horizon / (1 - model.discount) * (np.abs(model.rewards).max() + 1)
    error = played.std(axis=0, ddof=1) / np.sqrt(episodes)
    for column, value in enumerate(exact):
        slack = 5 * error[column] + (tail if column == 0 else 0) + 1e-9 * (1 + abs(value))
        assert abs(played[:, column].mean() - value) <= slack


@given(models(), st.integers(0, 2**32 - 1))
@examples(60)
def test_compiled_agent_earns_what_evaluation_says(model, seed):
    schedule = random_schedule(model, np.random.default_rng(seed))
    agent = am.agents.make("schedule", schedule=schedule, model=model)
    played = am.train(agent, model, episodes=4_000, seed=seed, max_steps=30)
    result = am.evaluate(model, schedule, horizon=30)
    for name in ("scalarized_return", "reward", "measurements", "steps"):
        values = getattr(played, name)
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - getattr(result, name)) <= 5 * error + 1e-9, name


@given(models(may_end=(True,)), st.integers(0, 2**32 - 1))
@examples(60)
def test_policies_of_the_belief_are_unrolled(model, seed):
    """A policy that looks when in doubt, as a function and as the schedule it amounts to."""
    weights = np.random.default_rng(seed).normal(size=(model.n_states, model.n_actions))

    def policy(belief):
        return am.Decision(int(np.argmax(belief.expected(weights))), bool(belief.probabilities.max() < 0.9))

    schedule = am.unroll(model, policy)
    by_function, by_schedule = am.evaluate(model, policy, horizon=20), am.evaluate(model, schedule, horizon=20)
    assert by_function.discounted_return == by_schedule.discounted_return
    for state, plan in schedule.items():
        belief = am.Belief.at(state)
        for step in range(len(plan)):
            assert plan.decision(step) == policy(belief)
            belief = belief.predict(model, plan.actions[step])


def test_a_policy_that_comes_to_rest_repeats_for_ever():
    lake = am.problems.frozen_lake(4)
    schedule = am.unroll(lake, lambda belief: am.Decision(3, False))
    assert schedule[0] == am.BlindPlan((3,), then="known")
    result = am.evaluate(lake, schedule, horizon=10)
    assert (result.discounted_return, result.steps) == (0.0, 10.0)


def test_a_policy_that_never_settles_is_refused_with_the_remedy():
    mixing = am.problems.tight_bound().transitions.dense()
    biased = am.Model.from_arrays(
        np.stack([mixing[:, 1], 0.1 * mixing[:, 1] + 0.9 * np.eye(4)], axis=1),
        np.zeros((4, 2)),
        measuring_cost=0.1,
        initial=[0.0, 0.0, 0.9, 0.1],
        reveal_start=False,
    )
    with pytest.raises(am.ScheduleError, match="within 3 blind steps after the start; raise depth"):
        am.evaluate(biased, lambda belief: am.Decision(1, False), depth=3)


@pytest.mark.parametrize(
    ("plans", "message"),
    [
        ({}, "comes to know state 0 .*no plan"),
        ({0: am.BlindPlan((1,), then="known")}, "state 0 .*more than one state"),
        ({0: am.BlindPlan((1,), then="end")}, "state 0 .*may still be running"),
        ({0: am.BlindPlan((7,))}, "action 7, expected actions from 0 to 1"),
    ],
)
def test_schedules_that_do_not_fit(plans, message):
    model = am.problems.measuring_value()
    with pytest.raises(am.ScheduleError, match=message):
        am.evaluate(model, am.Schedule(plans, 4))


def test_bad_arguments():
    model = am.problems.measuring_value()
    schedule = am.Schedule({0: am.BlindPlan((1, 1), then="end")}, 4)
    with pytest.raises(am.ScheduleError, match="horizon is 0"):
        am.evaluate(model, schedule, horizon=0)
    with pytest.raises(am.ScheduleError, match="horizon is 'long', expected None for all time, or a whole number"):
        am.evaluate(model, schedule, horizon="long")
    with pytest.raises(am.ScheduleError, match="depth is 'deep', expected a whole number"):
        am.evaluate(model, lambda belief: am.Decision(1, True), depth="deep")
    with pytest.raises(am.ModelError, match="the model is None, expected a Model"):
        am.evaluate(None, schedule)
    with pytest.raises(am.ScheduleError, match="expected a Schedule, a Policy"):
        am.evaluate(model, 3)
    with pytest.raises(am.ScheduleError, match="schedule is for 3 states"):
        am.evaluate(model, am.Schedule({0: am.BlindPlan((1,))}, 3))
    hidden = model.replace(initial=[0.5, 0.5, 0, 0], reveal_start=False)
    with pytest.raises(am.ScheduleError, match="first state is not shown"):
        am.evaluate(hidden, schedule)
    with pytest.raises(am.ScheduleError, match="the policy decided"):
        am.evaluate(model, lambda belief: "left")


def test_an_end_that_1_minus_it_would_lose_is_counted():
    tiny = 1e-17  # 1 - tiny is 1 in floating point
    P = np.array([[[0.0, 1.0, 0.0]], [[1.0, 0.0, tiny]], [[0.0, 0.0, 1.0]]])
    model = am.Model.from_arrays(
        P, np.array([[1.0], [1.0], [0.0]]), measuring_cost=0.1, discount=0.9, terminal=[False, False, True]
    )
    plan = am.BlindPlan((0,), then="known")
    result = am.evaluate(model, am.Schedule({0: plan, 1: plan}, n_states=3))
    assert result.discounted_return == pytest.approx(10)
    assert result.scalarized_return == pytest.approx(2 / tiny, rel=1e-14)
    assert am.evaluate(model, am.Schedule({0: plan, 1: plan}, n_states=3), horizon=7).reward == pytest.approx(7)


def two_until_the_end(tiny, n_pairs=1):
    """States in pairs that lead to each other; the first of a pair ends with a chance of `tiny`, or leads to another pair."""
    n = 2 * n_pairs + 1
    P = np.zeros((n, 1, n))
    for k in range(0, n - 1, 2):
        P[k, 0, [k, k + 1, n - 1]] = 0.6 - tiny, 0.3, tiny
        P[k, 0, (k + 2) % (n - 1)] += 0.1
        P[k + 1, 0, [k, k + 1]] = 0.4, 0.6
    P[-1, 0, -1] = 1.0
    rewards = np.append(np.tile([1.0, 2.0], n_pairs), 0.0)[:, None]
    model = am.Model.from_arrays(P, rewards, measuring_cost=0.1, discount=0.9, terminal=np.arange(n) == n - 1)
    return model.replace(initial=0)


@pytest.mark.parametrize("tiny", [1e-8, 1e-12, 1e-16, 1e-25])
def test_sums_over_all_time_keep_their_digits_however_rare_an_end_is(tiny):
    """From the first state, 1 / tiny visits to it and 0.75 / tiny to the second: of schedules and of policy graphs."""
    model = two_until_the_end(tiny)
    schedule = am.Schedule({k: am.BlindPlan((0,)) for k in range(2)}, 3)
    graph = am.PolicyGraph([am.Decision(0, 1)], edges=[{"0": 0, "1": 0}])
    for acts in (schedule, graph):
        result = am.evaluate(model, acts)
        assert result.steps == pytest.approx(1.75 / tiny, rel=1e-13)
        assert result.reward == pytest.approx(2.5 / tiny, rel=1e-13)
        assert result.measurements == pytest.approx(1.75 / tiny, rel=1e-13)
        assert result.ending_probability == 1.0
    repeated = am.Schedule({0: am.BlindPlan((0,), then="repeat", repeat=1)}, 3)
    assert am.evaluate(model, repeated).reward == pytest.approx(2.5 / tiny, rel=1e-13)


def test_figures_that_rounding_leaves_unknown_are_said_to_be(monkeypatch):
    """Chains with more nodes than are solved by elimination: sums of 1e14 steps are not known, discounted ones are."""
    monkeypatch.setattr(markov, "MOST_DENSE", 3)
    solution = am.solve(two_until_the_end(1e-15, n_pairs=2), "always")
    assert np.isnan(solution.evaluation.steps)
    assert np.isfinite(solution.value)
    assert "looks    an unknown number, lost in rounding" in str(solution)
    assert "episode  lasts so long that its length is lost in rounding" in str(solution)


def test_a_chance_that_is_lost_leaves_the_discounted_figures(monkeypatch):
    """An end that is too rare to be told from none, beside a class that is never left."""
    monkeypatch.setattr(markov, "MOST_DENSE", 0)
    P = np.zeros((3, 1, 3))
    P[0, 0, [0, 2]] = 1.0, 1e-17
    P[1, 0, 1] = P[2, 0, 2] = 1.0
    terminal = [False, False, True]
    model = am.Model.from_arrays(
        P, [[1.0], [0.0], [0.0]], measuring_cost=0.1, terminal=terminal, initial=[0.5, 0.5, 0.0]
    )
    solution = am.solve(model.replace(discount=0.9))
    assert solution.value == pytest.approx(5.0)
    assert np.isnan(solution.evaluation.ending_probability)
    assert np.isnan(solution.evaluation.average_return)
    assert "lost in rounding" in str(solution)


def two_ways(stay=0.9, back=0.3, cost=0.05):
    """A machine that never ends, looked at after three steps or one."""
    P = np.array([[[stay, 1 - stay]], [[back, 1 - back]]])
    model = am.Model.from_arrays(P, [[1.0], [-0.5]], measuring_cost=cost)
    plans = {0: am.BlindPlan((0, 0, 0), then="measure"), 1: am.BlindPlan((0,), then="measure")}
    return model, am.Schedule(plans, n_states=2)


FIGURES = ("scalarized_return", "reward", "measurements", "steps")


class TestLongHorizons:
    """Horizons that cannot be walked step by step."""

    def test_the_longest_of_all(self):
        model, schedule = two_ways()
        found, averages = am.evaluate(model, schedule, horizon=10**18), am.evaluate(model, schedule)
        assert found.steps == pytest.approx(1e18, rel=1e-13)
        assert found.scalarized_return == pytest.approx(1e18 * averages.average_return, rel=1e-12)
        assert found.reward == pytest.approx(1e18 * averages.average_reward, rel=1e-12)
        assert found.measurements == pytest.approx(1e18 * averages.average_measurements, rel=1e-12)

    def test_a_horizon_that_no_number_counts(self):
        model, schedule = two_ways()
        with pytest.raises(
            am.ScheduleError, match=r"horizon is 1000000000000000001, expected .* to 1000000000000000000"
        ):
            am.evaluate(model, schedule, horizon=10**18 + 1)
        with pytest.raises(am.ScheduleError, match="horizon is 1000"):
            am.evaluate(model, schedule, horizon=10**400)

    def test_an_alternating_sum_is_exact(self):
        model = am.Model.from_arrays([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [-1.0]], measuring_cost=0.05)
        schedule = am.Schedule({state: am.BlindPlan((0,), then="known") for state in range(2)}, n_states=2)
        assert am.evaluate(model, schedule, horizon=10**18).reward == 0.0
        assert am.evaluate(model, schedule, horizon=10**18 - 1).reward == 1.0

    @pytest.mark.parametrize("leak", [1e-3, 1e-6, 1e-9])
    def test_an_end_that_is_long_in_coming(self, leak, monkeypatch):
        monkeypatch.setattr(evaluation, "DOUBLED_FROM", 10**6)
        model = am.Model.from_arrays(
            [[[1 - leak, leak]], [[0.0, 1.0]]], [[1.0], [0.0]], measuring_cost=0.25, terminal=[False, True]
        )
        schedule = am.Schedule({0: am.BlindPlan((0,), then="measure")}, n_states=2)
        for horizon in (10**9, 10**12 + 1, 10**18):
            found = am.evaluate(model, schedule, horizon=horizon)
            expected = -np.expm1(horizon * np.log1p(-leak)) / leak
            assert found.steps == pytest.approx(expected, rel=1e-6)
            assert found.scalarized_return == pytest.approx(0.75 * expected, rel=1e-6)

    def test_an_end_that_is_lost_in_rounding(self, monkeypatch):
        monkeypatch.setattr(evaluation, "DOUBLED_FROM", 10**6)
        model = am.Model.from_arrays(
            [[[1.0, 1e-17]], [[0.0, 1.0]]], [[1.0], [0.0]], measuring_cost=0.25, terminal=[False, True]
        )
        with pytest.raises(am.ScheduleError, match="known to few digits only; give a shorter horizon"):
            am.evaluate(model, am.Schedule({0: am.BlindPlan((0,), then="measure")}, n_states=2), horizon=10**18)

    @given(models(), st.integers(0, 10**6), st.integers(1, 3000))
    @examples(60)
    def test_both_ways_agree(self, model, seed, horizon):
        schedule = random_schedule(model, np.random.default_rng(seed))
        walked = am.evaluate(model, schedule, horizon=horizon)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evaluation, "DOUBLED_FROM", 0)
            doubled = am.evaluate(model, schedule, horizon=horizon)
        scale = (np.abs(model.rewards).max() + np.max(model.measuring_costs) + 1) * walked.steps
        for name in FIGURES:
            assert getattr(doubled, name) == pytest.approx(getattr(walked, name), rel=1e-10, abs=1e-10 * scale)

    def test_walking_in_pieces_is_walking_to_the_last_bit(self, monkeypatch):
        model, schedule = two_ways()
        whole = am.evaluate(model, schedule, horizon=20_000)
        monkeypatch.setattr(evaluation, "PIECE_OF_WORK", 1)
        pieces = am.evaluate(model, schedule, horizon=20_000)
        assert [getattr(pieces, name) for name in FIGURES] == [getattr(whole, name) for name in FIGURES]

    def test_large_chains_are_refused_with_a_limit(self, monkeypatch):
        monkeypatch.setattr(evaluation, "MOST_DOUBLED", 1)
        model, schedule = two_ways()
        with pytest.raises(
            am.ScheduleError, match=r"need not end; give at most ([0-9,]+) steps, or horizon=None"
        ) as told:
            am.evaluate(model, schedule, horizon=10**18)
        monkeypatch.setattr(evaluation, "MOST_WORK", 10**6)
        limit = evaluation.MOST_WORK // (2 * evaluation.WORK_OF_NODE + 4)
        assert am.evaluate(model, schedule, horizon=limit).steps == pytest.approx(limit)
        with pytest.raises(am.ScheduleError, match=f"at most {limit:,} steps"):
            am.evaluate(model, schedule, horizon=limit + 1)
        assert "average_return" in str(told.value)

    def test_large_chains_that_end_are_walked_until_nothing_is_left(self, monkeypatch):
        monkeypatch.setattr(evaluation, "MOST_DOUBLED", 0)
        end = {"measuring_cost": 0.25, "terminal": [False, True]}
        model = am.Model.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], **end)
        schedule = am.Schedule({0: am.BlindPlan((0,), then="measure")}, n_states=2)
        assert am.evaluate(model, schedule, horizon=10**18).steps == pytest.approx(2.0)
        slow = am.Model.from_arrays([[[1 - 1e-9, 1e-9]], [[0.0, 1.0]]], [[1.0], [0.0]], **end)
        monkeypatch.setattr(evaluation, "MOST_WORK", 10**6)
        with pytest.raises(am.ScheduleError, match=r"still runs with probability 1 after .* of them; give at most"):
            am.evaluate(slow, schedule, horizon=10**18)

    def test_ctrl_c_stops_a_long_walk(self, monkeypatch):
        monkeypatch.setattr(evaluation, "MOST_DOUBLED", 0)
        monkeypatch.setattr(evaluation, "MOST_WORK", 10**18)
        model, schedule = two_ways()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            am.evaluate(model, schedule, horizon=10**13)
        timer.join(60)
