"""Policies: the protocol, its check, those that ship, and what `unroll` and `evaluate` make of them."""

import inspect

import numpy as np
import pytest

import actmeasure as am
from actmeasure.policy import SchedulePolicy

LAKE = am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05)
GAMBLE = am.problems.measuring_value(measuring_cost=0.05)
HIDDEN = am.problems.frozen_lake(4, "deterministic", measuring_cost=0.05).replace(
    initial=[0.5, 0.5] + [0.0] * 14, reveal_start=False
)


class Greedy:
    """Best action by `q_mdp` in the belief that it keeps itself, with a look after `blind_steps` steps without one."""

    def __init__(self, model, blind_steps=1):
        self.model, self.most_blind, self.values = model, blind_steps, am.q_mdp(model)

    def start(self, belief):
        self.belief, self.blind_steps = belief, 0

    def decide(self):
        self.action = int(np.argmax(self.belief.expected(self.values)))
        return am.Decision(self.action, self.blind_steps == self.most_blind)

    def observe(self, outcome):
        if outcome is None:
            self.belief, self.blind_steps = self.belief.predict(self.model, self.action), self.blind_steps + 1
        else:
            self.belief, self.blind_steps = am.Belief.at(outcome), 0


class TestSchedules:
    @pytest.mark.parametrize("model", [LAKE, GAMBLE, HIDDEN], ids=["lake", "gamble", "hidden start"])
    @pytest.mark.parametrize("method", ["optimal", "always", "every-3", "never"])
    def test_their_policy_keeps_the_contract_and_earns_what_they_do(self, model, method):
        schedule = am.solve(model, method=method).schedule
        policy = schedule.policy(model)
        assert isinstance(policy, am.Policy)
        am.testing.check_policy(policy, model)
        assert am.unroll(model, policy) is schedule
        exact = am.evaluate(model, schedule, horizon=50)
        assert repr(am.evaluate(model, policy, horizon=50)) == repr(exact)
        episodes = am.train(am.agents.PolicyAgent(policy, model), model, 2_000, seed=0, max_steps=50)
        deviation = episodes.scalarized_return.std() / np.sqrt(len(episodes))
        assert episodes.scalarized_return.mean() == pytest.approx(exact.scalarized_return, abs=4 * deviation + 1e-9)

    def test_an_agent_that_follows_one_has_it(self):
        schedule = am.solve(LAKE).schedule
        agent = am.agents.make("schedule", schedule=schedule, model=LAKE)
        assert isinstance(agent.policy, SchedulePolicy)
        followed = am.train(am.agents.PolicyAgent(schedule.policy(LAKE), LAKE), LAKE, 50, seed=3)
        np.testing.assert_array_equal(am.train(agent, LAKE, 50, seed=3).scalarized_return, followed.scalarized_return)

    def test_a_start_that_the_schedule_says_nothing_about(self):
        policy = am.solve(LAKE).schedule.policy(LAKE)
        with pytest.raises(am.ScheduleError, match="has plans for known states and for the model's own start"):
            policy.start(am.Belief.from_distribution([0.5, 0.5] + [0.0] * 14))
        policy.start(am.Belief.at(5))
        with pytest.raises(am.ScheduleError, match="no plan for state 5"):
            policy.decide()

    def test_outcomes_and_models_that_do_not_fit(self):
        schedule = am.solve(LAKE).schedule
        with pytest.raises(am.ScheduleError, match="is for 16 states, the model has 4"):
            schedule.policy(GAMBLE)
        policy = schedule.policy(LAKE)
        policy.start(am.Belief.at(0))
        with pytest.raises(am.ScheduleError, match="the state that was seen is 16"):
            policy.observe(16)


class TestPomcp:
    def test_it_keeps_the_contract(self):
        planner = am.planners.POMCP(LAKE, simulations=50, particles=50, nodes=500)
        assert isinstance(planner, am.Policy)
        am.testing.check_policy(planner, LAKE, episodes=3, max_steps=10)

    def test_the_agent_is_the_same_planner_with_the_same_defaults(self):
        planner = inspect.signature(am.planners.POMCP).parameters
        agent = inspect.signature(am.agents.PomcpAgent).parameters
        assert {name: p.default for name, p in agent.items()} == {
            n: p.default for n, p in planner.items() if n != "seed"
        }
        made = am.agents.make("pomcp", model=GAMBLE)
        assert isinstance(made.policy, am.planners.POMCP)
        assert made.policy is made.planner

    def test_both_orders_of_what_is_observed(self):
        found = []
        for new in (True, False):
            planner = am.planners.POMCP(LAKE, simulations=300, nodes=2_000)
            decision = planner.decide(am.Belief.at(0))
            planner.observe(None, decision) if new else planner.observe(decision, None)
            planner.decide()
            found.append(planner.value)
        planner = am.planners.POMCP(LAKE, simulations=300, nodes=2_000)
        planner.decide(am.Belief.at(0))
        planner.observe(None)
        planner.decide()
        assert found == [planner.value] * 2

    def test_what_cannot_be_observed(self):
        planner = am.planners.POMCP(LAKE, simulations=10, nodes=100)
        planner.start(am.Belief.at(0))
        with pytest.raises(am.PlanError, match=r"call decide\(\) before observe"):
            planner.observe(None)
        planner.decide()
        with pytest.raises(am.PlanError, match="the outcome is 99, expected None or a state from 0 to 15"):
            planner.observe(99)

    def test_it_has_no_exact_evaluation(self):
        with pytest.raises(am.ScheduleError, match=r"decisions are random.*simulate"):
            am.evaluate(LAKE, am.planners.POMCP(LAKE, simulations=10, nodes=100))


class TestEvaluating:
    @pytest.mark.parametrize("blind_steps", [0, 2, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (1, 5))])
    @pytest.mark.parametrize("model", [LAKE, GAMBLE, HIDDEN], ids=["lake", "gamble", "hidden start"])
    def test_a_policy_with_a_memory_of_its_own(self, model, blind_steps):
        policy = Greedy(model, blind_steps)
        am.testing.check_policy(policy, model)
        exact = am.evaluate(model, policy, horizon=40)
        episodes = am.train(am.agents.PolicyAgent(policy, model), model, 1_500, seed=1, max_steps=40)
        for name in ("scalarized_return", "measurements", "steps"):
            mean, values = getattr(exact, name), getattr(episodes, name)
            assert values.mean() == pytest.approx(mean, abs=4 * values.std() / np.sqrt(len(values)) + 1e-9)

    def test_as_a_function_of_the_belief(self):
        values = am.q_mdp(LAKE)

        def always(belief):
            return am.Decision(int(np.argmax(belief.expected(values))), True)

        assert am.unroll(LAKE, always) == am.unroll(LAKE, Greedy(LAKE, 0))

    def test_a_repeated_belief_is_not_yet_a_repetition(self):
        """Two states that swap places: the belief stays, but the policy counts to ten before it looks."""
        swap = am.Model.from_arrays(
            np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), [[1.0], [0.0]], measuring_cost=0.1, initial=[0.5, 0.5], reveal_start=False,
        )  # fmt: skip
        plan = am.unroll(swap, Greedy(swap, 10)).start
        assert plan == am.BlindPlan((0,) * 11, then="measure")
        never = am.unroll(swap, Greedy(swap, 10**6), depth=50).start
        assert never == am.BlindPlan((0,), then="repeat", repeat=1)

    def test_a_repeating_tail_is_found_whatever_comes_before_it(self):
        class Pattern:
            def start(self, belief):
                self.step = -1
                self.observe(None)

            def observe(self, outcome):
                self.step += 1

            def decide(self):
                return am.Decision(([0, 0, 1] + [1, 0, 0] * 100)[self.step], False)

        mixed = am.Model.from_arrays(
            np.full((2, 2, 2), 0.5), np.eye(2), measuring_cost=0.1, initial=[0.5, 0.5], reveal_start=False
        )
        plan = am.unroll(mixed, Pattern(), depth=100).start
        assert (plan.actions[: 3 + 3], plan.repeat) == ((0, 0, 1, 1, 0, 0), 3)

    def test_one_that_remembers_more_than_a_schedule_can(self):
        class SecondLook(Greedy):
            """After the first look it goes another way."""

            def start(self, belief):
                super().start(belief)
                self.looks = 0

            def observe(self, outcome):
                super().observe(outcome)
                self.looks += outcome is not None

            def decide(self):
                action, _ = super().decide()
                return am.Decision((action + self.looks) % 4, True)

        am.testing.check_policy(SecondLook(LAKE), LAKE)
        with pytest.raises(am.ScheduleError, match="decided otherwise after a look showed state"):
            am.evaluate(LAKE, SecondLook(LAKE))

    def test_one_that_never_settles(self):
        class Drift(Greedy):
            def decide(self):
                self.action = int(self.blind_steps**0.5) % 2
                return am.Decision(self.action, False)

        drifting = am.Model.from_arrays(
            np.array([[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]]), np.eye(2), measuring_cost=0.1, initial=0
        )
        with pytest.raises(am.ScheduleError, match="neither looked nor came to repeat itself within 60 blind steps"):
            am.unroll(drifting, Drift(drifting), depth=60)
        assert am.unroll(drifting, Drift(drifting), depth=60, settle=True)[0].repeat == 1

    def test_what_is_no_policy(self):
        with pytest.raises(am.ScheduleError, match="expected a Schedule, a Policy"):
            am.evaluate(LAKE, 3)


class Broken(Greedy):
    """A policy with one thing replaced."""

    def __init__(self, **methods):
        super().__init__(LAKE)
        for name, method in methods.items():
            setattr(self, name, method)


class Forgets(Greedy):
    """Does not forget the episode before."""

    episodes = 0

    def start(self, belief):
        super().start(belief)
        self.episodes += 1

    def decide(self):
        action, measure = super().decide()
        return am.Decision((action + self.episodes) % 4, measure)


class Rolls(Greedy):
    """Draws random numbers, and does not say so."""

    rng = np.random.default_rng(0)

    def decide(self):
        return am.Decision(super().decide().action, bool(self.rng.integers(2)))


class Scribbles(Greedy):
    def start(self, belief):
        super().start(am.Belief(belief.states.copy(), belief.probabilities.copy()))
        belief.probabilities[:] = 0.0


class OnlySeen(Greedy):
    def observe(self, outcome):
        super().observe(int(outcome))


class OnlyKnownStarts(Greedy):
    def start(self, belief):
        super().start(am.Belief.at(int(belief.known)))


def returning(decision):
    return Broken(decide=lambda: decision)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Greedy, "is the class .*; pass an instance"),
        (am.agents.RandomAgent(), "is the agent .* its attribute `policy`"),
        (am.solve(LAKE).schedule, r"pass schedule.policy\(model\)"),
        (Broken(start=None), r"Broken has no method start\(belief\)"),
        (Broken(observe=None), r"Broken has no method observe\(outcome\)"),
        (lambda belief: am.Decision(0, True), r"function has no method start\(belief\)"),
        (Broken(decide=lambda belief: am.Decision(0, True)), r"cannot be called as decide\(\): missing"),
        (Broken(observe=lambda: None), r"cannot be called as observe\(outcome\): too many"),
        (Scribbles(LAKE), "has changed the arrays of the belief"),
        (returning((0, True)), r"decide\(\) returned \(0, True\), expected a Decision"),
        (returning(am.Decision(4, True)), r"returned Decision\(action=4, .* from 0 to 3"),
        (returning(am.Decision(True, True)), "action=True"),
        (returning(am.Decision(0.0, True)), "action=0.0"),
        (returning(am.Decision(0, 2)), "measurement=2"),
        (returning(None), r"decide\(\) returned None"),
        (Broken(decide=lambda: 1 / 0), r"decide\(\) raised ZeroDivisionError"),
        (OnlySeen(LAKE), r"observe\(None\) raised TypeError"),
        (Forgets(LAKE), "must forget the episode before"),
        (Rolls(LAKE), "deterministic = False"),
    ],
)
def test_broken_policies_are_found(policy, message):
    with pytest.raises(AssertionError, match=message):
        am.testing.check_policy(policy, LAKE)


def test_one_that_cannot_start_in_a_belief():
    am.testing.check_policy(OnlyKnownStarts(LAKE), LAKE)
    with pytest.raises(AssertionError, match=r"start\(Belief\({0: 0.5, 1: 0.5}\)\) raised TypeError"):
        am.testing.check_policy(OnlyKnownStarts(HIDDEN), HIDDEN)


def test_one_that_says_that_it_is_random_is_not_asked_to_repeat_itself():
    policy = Rolls(LAKE)
    policy.deterministic = False
    am.testing.check_policy(policy, LAKE)
    with pytest.raises(am.ScheduleError, match="decisions are random"):
        am.evaluate(LAKE, policy)


def test_agents_of_policies_refuse_what_they_cannot_follow():
    with pytest.raises(am.AgentError, match="expected a Policy, with the methods start, decide and observe"):
        am.agents.PolicyAgent(3, LAKE)
    with pytest.raises(am.AgentError, match="expected the Model"):
        am.agents.PolicyAgent(Greedy(LAKE), 3)
    with pytest.raises(am.AgentError, match="is for 16 states and 4 actions, the task has 4 and 2"):
        am.train(am.agents.PolicyAgent(Greedy(LAKE), LAKE), GAMBLE, 1)
    am.testing.check_agent(lambda model: am.agents.PolicyAgent(Greedy(model, 2), model), episodes=4)


def test_agent_and_planner_have_the_same_settings_and_defaults():
    planner, agent = (inspect.signature(made).parameters for made in (am.planners.POMCP, am.agents.AGENTS["pomcp"]))
    assert {name: parameter.default for name, parameter in planner.items() if name != "seed"} == {
        name: parameter.default for name, parameter in agent.items()
    }
