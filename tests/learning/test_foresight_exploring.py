"""Foresight: what it explores, how it takes turns with the plan, and what it leaves alone."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.kernels import foresight
from actmeasure.learning.foresight import FollowedPlan, Phase

LAKE = am.problems.frozen_lake(4, measuring_cost=0.05)


class TestExploring:
    def test_looks_are_paid_from_a_budget(self):
        agent = am.agents.make("foresight", budget=100)
        episodes = am.train(agent, LAKE.replace(measuring_cost=5.0), 60, seed=0)
        # The largest reward is 1, so that 100 times it pays for 20 looks.
        assert episodes.measurements.sum() == 20
        assert agent.phase is Phase.FOLLOWING

    def test_it_takes_turns_with_the_plan_when_exploring_does_not_end(self):
        lake = am.problems.frozen_lake(8, variant="semi-slippery", measuring_cost=0.05)
        agent = am.agents.make("foresight", first=1000, undisturbed=100, turns=0.25, beliefs=2000)
        episodes = am.train(agent, lake, 600, seed=0)
        assert agent.phase is not Phase.FOLLOWING
        assert agent.explored == pytest.approx(0.25 * 600, abs=2)
        # What the plan relies on is still measured while it is followed.
        following = episodes.measurements[100:400]
        assert following.mean() < 0.5 * episodes.measurements[:100].mean()
        assert episodes.scalarized_return[100:].mean() > episodes.scalarized_return[:100].mean() + 0.3

    def test_what_the_plan_relies_on_is_measured_while_it_is_followed(self):
        lake = am.problems.frozen_lake(8, variant="semi-slippery", measuring_cost=0.05)
        agent = am.agents.make("foresight", first=1000, undisturbed=100, turns=0.01, beliefs=2000)
        am.train(agent, lake, 101, seed=0)
        before = agent.counts.measured.sum()
        looks = am.train(agent, lake, 100, seed=0).measurements.sum()
        assert agent.explored == 100
        assert agent.counts.measured.sum() - before > 0.5 * looks > 0

    def test_values_do_not_go_stale(self):
        # Half of the episodes end with the first step, which is measured far more often than needed.
        agent = am.agents.make("foresight")
        am.train(agent, am.problems.frozen_lake(12, "semi-slippery", measuring_cost=0.05, seed=1002), 300, seed=0)
        agent.begin(0)
        seen = agent._tables.seen[: agent._tables.memory[foresight.N_SEEN]]
        assert agent._tables.values[seen] == pytest.approx(agent.q_values()[seen].max(axis=1), abs=1e-4)

    def test_a_plan_that_holds_is_not_made_again_and_again(self):
        for seed in range(3):
            agent = am.agents.make("foresight")
            am.train(
                agent, am.problems.frozen_lake(12, "semi-slippery", measuring_cost=0.05, seed=1002), 2000, seed=seed
            )
            assert agent.phase is Phase.FOLLOWING
            assert agent.plans_made < 15

    def test_it_stops_looking_for_what_it_does_not_come_to(self):
        # The second state can be reached by the second action, but next to never.
        P = np.zeros((2, 2, 2))
        P[0, 0, 0], P[0, 1], P[1, :, 0] = 1.0, [0.999, 0.001], 1.0
        model = am.Model.from_arrays(P, np.array([[0.0, 0.0], [1.0, 1.0]]), measuring_cost=0.01, discount=0.9)
        agent = am.agents.make("foresight", first=5, sure=5)
        looks = am.train(agent, model, 30, seed=1, max_steps=5_000).measurements
        assert looks.max() < 5 * (2 * model.n_states + 50)

    def test_an_action_that_ended_an_episode_is_left_alone_where_another_is_better(self):
        # Of two actions one pays and ends, the other ends for nothing.
        P = np.array([[[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
        model = am.Model.from_arrays(
            P, np.array([[0.8, 0.0], [0.0, 0.0]]), measuring_cost=0.01, discount=0.95, terminal=[False, True]
        )
        agent = am.agents.make("foresight", first=20, sure=20)
        am.train(agent, model, 200, seed=0)
        assert agent.counts.measured[1] == 1
        assert agent.explored <= 25


class TestPhases:
    """One episode at a time, with the phase that each of them had."""

    def phases(self, agent, model, episodes, max_steps=1000):
        found = []
        for _ in range(episodes):
            run = am.train(agent, model, 1, seed=0, max_steps=max_steps, planned_episodes=episodes)
            found.append((agent.phase, int(run.measurements[0]), int(run.steps[0])))
        return found

    def test_it_explores_until_the_plan_is_confirmed_and_then_follows_it(self):
        agent = am.agents.make("foresight", beliefs=2000)
        found = self.phases(agent, LAKE, 250)
        phases = [phase for phase, _, _ in found]
        assert phases[0] is Phase.EXPLORING
        assert phases[-1] is Phase.FOLLOWING
        assert Phase.CONFIRMING not in phases
        assert all(looks == steps for phase, looks, steps in found if phase is Phase.EXPLORING)
        assert sum(phase is Phase.EXPLORING for phase in phases) == agent.explored
        following = [(looks, steps) for phase, looks, steps in found if phase is Phase.FOLLOWING]
        assert sum(looks for looks, _ in following) < sum(steps for _, steps in following)

    def test_a_plan_is_made_before_it_is_followed_for_the_first_time(self):
        agent = am.agents.make("foresight", beliefs=2000)
        for _ in range(250):
            am.train(agent, LAKE, 1, seed=0)
            if agent.phase is Phase.FOLLOWING:
                break
        assert agent.plans_made > 0
        assert agent.state.plan_is_precise
        assert np.isfinite(agent.value)

    def test_exploring_and_confirming_take_turns_while_exploring_is_not_done(self):
        lake = am.problems.frozen_lake(8, variant="semi-slippery", measuring_cost=0.05)
        agent = am.agents.make("foresight", first=1000, undisturbed=30, turns=0.25, beliefs=500)
        phases = [phase for phase, _, _ in self.phases(agent, lake, 160)]
        assert set(phases[:30]) == {Phase.EXPLORING}
        assert set(phases[30:]) == {Phase.EXPLORING, Phase.CONFIRMING}
        for episode in range(31, 160):
            explored = sum(phase is Phase.EXPLORING for phase in phases[:episode])
            expected = Phase.CONFIRMING if explored >= max(30, 0.25 * episode) else Phase.EXPLORING
            assert phases[episode] is expected

    def test_a_spent_budget_ends_exploring(self):
        agent = am.agents.make("foresight", budget=1, beliefs=500)
        phases = [phase for phase, _, _ in self.phases(agent, LAKE, 30)]
        first = phases.index(Phase.FOLLOWING)
        assert agent._tables.budget[foresight.SPENT] >= 1
        assert set(phases[:first]) == {Phase.EXPLORING}
        assert set(phases[first:]) == {Phase.FOLLOWING}

    def test_a_new_plan_that_relies_on_undersampled_pairs_ends_following(self):
        agent = am.agents.make("foresight", beliefs=2000)
        am.train(agent, LAKE, 400, seed=0)
        assert agent.phase is Phase.FOLLOWING
        # As if the plan had failed, and every pair needed many more measurements.
        agent._tables.needed[:] = agent._tables.counts.measured + 1000
        agent._plan = FollowedPlan.none(LAKE.n_states + 1)
        agent.state.plan_failed, agent.state.planned_at = True, 1
        am.train(agent, LAKE, 1, seed=0)
        assert agent.phase is Phase.EXPLORING
        assert not agent.state.plan_failed
