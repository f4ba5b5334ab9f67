"""POMCP: its value at the root, its options, its particles and its memory."""

import numpy as np
import pytest
from scipy import stats

import actmeasure as am

PLANNER = am.planners.POMCP
#: Plain POMCP, as most of what is checked here was first published.
PLAIN = {"depth": 10, "exploration": 10.0, "rollout": "blind", "share": False}


def tiny(seed, n_states=4, n_actions=2):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions))
    return am.Model.from_arrays(P, rng.random((n_states, n_actions)), measuring_cost=0.05, discount=0.6, initial=0)


def roots(model, simulations, seeds=5, **settings):
    """The value at the root, for several seeds."""
    found = []
    for seed in range(seeds):
        planner = PLANNER(model, simulations=simulations, seed=seed, **PLAIN | settings)
        planner.decide(am.Belief.start(model))
        found.append(planner.value)
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "most", "settings"),
    [
        (am.problems.measuring_value(measuring_cost=0.05), 300_000, {"depth": 25, "rollout": "looking"}),
        pytest.param(
            am.problems.measuring_value(measuring_cost=0.10), 300_000, {"depth": 25, "rollout": "looking"}, marks=pytest.mark.slow
        ),
        (am.problems.measuring_value(measuring_cost=0.20), 300_000, {"depth": 25}),
        pytest.param(
            am.problems.frozen_lake(4, "deterministic", measuring_cost=0.05), 300_000, {"depth": 12, "rollout": "looking"},
            marks=pytest.mark.slow,
        ),
        (am.problems.frozen_lake(4, "deterministic", measuring_cost=0.05), 300_000, {"depth": 12, "share": True}),
        pytest.param(tiny(0), 300_000, {"depth": 18}, marks=pytest.mark.slow),
        *(pytest.param(tiny(seed), 300_000, {"depth": 18}, marks=pytest.mark.slow) for seed in (1, 2)),
        pytest.param(tiny(3, 5, 3), 300_000, {"depth": 18, "share": True}, marks=pytest.mark.slow),
        (tiny(4).replace(initial=[0.5, 0.2, 0.2, 0.1], reveal_start=False), 300_000, {"depth": 18}),
    ],
)  # fmt: skip
def test_the_value_at_the_root_converges_to_the_certified_optimum(model, most, settings):
    """From below, as choices that are only tried are in the mean: nearer with more simulations, and in the end within 2 %."""
    optimum = am.solve(model).value
    few, more, many = (
        roots(model, count, exploration=0.5, nodes=400_000, **settings) for count in (1_000, 20_000, most)
    )
    assert few.mean() < more.mean() < many.mean()
    low, high = stats.t.interval(0.99, len(many) - 1, many.mean(), max(stats.sem(many), 1e-4))
    assert low <= optimum + 1e-3
    assert high >= 0.98 * optimum


def corridor(length, cost):
    """Quit at once for 0.05, or go on to the end for 1, with one of three actions; others lead nowhere."""
    P, R = np.zeros((length + 1, 3, length + 1)), np.zeros((length + 1, 3))
    for state in range(length):
        P[state, 2, state + 1] = 1.0
        P[state, :2, state] = 1.0
    P[0, 0] = np.eye(length + 1)[length]
    R[0, 0], R[length - 1, 2] = 0.05, 1.0
    terminal = np.arange(length + 1) == length
    return am.Model.from_arrays(P, R, measuring_cost=cost, discount=0.95, initial=0, terminal=terminal)


def goes_on(model, **settings):
    """With how many of 20 seeds it goes on from the start."""
    chosen = [
        PLANNER(model, 1_000, **PLAIN | {"depth": 20, "exploration": 1.0} | settings, nodes=2_000, seed=seed)
        .decide(am.Belief.at(0))
        .action
        for seed in range(20)
    ]
    return chosen.count(2)


class TestTheFailuresOfTheAppendix:
    def test_looks_in_rollouts_hide_what_is_ahead(self):
        model = corridor(5, cost=0.5)
        assert am.solve(model).schedule[0].actions[0] == 2
        assert goes_on(model, rollout="random") == 0
        assert goes_on(model, rollout="blind") == 20

    def test_looks_in_the_tree_drag_the_way_to_them_down(self):
        model = corridor(5, cost=1.0)
        assert am.solve(model).schedule[0].actions[0] == 2
        assert goes_on(model, rollout="blind") == 0
        assert goes_on(model, rollout="blind", clamp=True) == 20

    def test_an_action_with_and_without_a_look_are_learned_apart(self):
        """20 gambles, each simulated 10 times with and 10 times without a look; shared, that is 20 samples for each."""
        chances = np.linspace(0.2, 0.8, 20)
        P = np.zeros((3, 20, 3))
        P[0, :, 1], P[0, :, 2] = chances, 1 - chances
        R = np.zeros((3, 20, 3))
        R[0, :, 1] = 1.0
        model = am.Model.from_arrays(P, R, measuring_cost=0.1, initial=0, terminal=[False, True, True])
        truth = np.stack([chances, chances - 0.1], axis=1)
        errors = []
        for share in (False, True):
            planners = [
                PLANNER(model, 400, 3, 100.0, rollout="blind", share=share, seed=seed, nodes=100) for seed in range(40)
            ]
            for planner in planners:
                planner.decide(am.Belief.at(0))
            errors.append(np.sqrt(np.mean([(planner.q_values() - truth) ** 2 for planner in planners])))
        assert errors[1] / errors[0] == pytest.approx(np.sqrt(0.5), abs=0.08)


class TestParticles:
    def test_blind_steps_move_them_as_the_belief_is_predicted(self):
        model = am.problems.frozen_lake(4, "slippery")
        planner = PLANNER(model, simulations=10, particles=20_000, nodes=100, seed=1)
        belief = am.Belief.at(0)
        planner.start(belief)
        for action in (1, 2, 1, 2, 2):
            belief = belief.predict(model, action)
            planner.observe(None, am.Decision(action, False))
            found, exact = (b.dense(16) for b in (planner.belief(), belief))
            # Some are copies of others: fewer than half, so that the variance is at most twice that of as many of their own.
            deviation = np.sqrt(2 * exact * (1 - exact) / 20_000)
            assert (np.abs(found - exact) <= 4.5 * deviation + 1e-12).all()
        assert planner.reinvigorated > 0
        assert planner.deprivations == 0

    def test_a_start_that_is_not_known(self):
        model = am.problems.measuring_value()
        planner = PLANNER(model, simulations=10, particles=50_000, nodes=100)
        planner.start(am.Belief.from_distribution([0.5, 0.3, 0.2, 0.0]))
        assert planner.belief().probabilities == pytest.approx([0.5, 0.3, 0.2], abs=0.01)

    def test_a_look_puts_all_of_them_where_it_shows(self):
        planner = PLANNER(am.problems.frozen_lake(4), simulations=100, nodes=100)
        decision = planner.decide(am.Belief.at(0))
        planner.observe(4, decision._replace(measure=True))
        assert planner.belief().known == 4

    def test_a_belief_that_dies_out_is_made_up_and_counted(self):
        """In state 8 of this lake, going left stays; going down cannot go on, as 12 is a hole."""
        model = am.problems.frozen_lake(4, "deterministic")
        planner = PLANNER(model, simulations=200, particles=300, nodes=100)
        planner.decide(am.Belief.at(8))
        planner.observe(None, am.Decision(1, False))
        assert (planner.deprivations, planner.reinvigorated) == (1, 300)
        assert (planner.lost, planner.made_up) == (1, 300)  # the former names
        assert not model.terminal[planner.belief().states].any()
        assert len(planner.belief().states) == 11
        assert 0 <= planner.decide().action < 4


class TestTheTreeInUse:
    def test_what_was_learned_is_kept_for_the_next_decision(self):
        model = am.problems.frozen_lake(4, "deterministic")
        planner = PLANNER(model, 5_000, **PLAIN | {"exploration": 0.5}, nodes=20_000)
        planner.decide(am.Belief.at(0))
        before = planner.histories
        planner.observe(None)
        assert 1 < planner.histories < before

    def test_what_never_came_up_begins_anew(self):
        planner = PLANNER(am.problems.frozen_lake(4), simulations=50, nodes=1_000)
        planner.decide(am.Belief.at(0))
        planner.observe(14, am.Decision(0, True))
        assert planner.histories == 1

    def test_memory_is_bounded_by_the_setting(self):
        model = am.problems.frozen_lake(4, "semi-slippery")
        planner = PLANNER(model, simulations=3_000, nodes=2_000)
        memory = planner.memory
        planner.start(am.Belief.at(0))
        for _ in range(30):
            planner.observe(None, planner.decide())
            assert planner.histories <= 2_000
        assert planner.memory == memory
        assert PLANNER(model, nodes=4_000).memory == pytest.approx(2 * memory, rel=0.05)

    def test_the_same_seed_gives_the_same_decisions(self):
        model = am.problems.frozen_lake(4, "semi-slippery")

        def values(seed):
            planner = PLANNER(model, simulations=500, seed=seed, share=True)
            return [
                (planner.observe(None, planner.decide(None if i else am.Belief.at(0))), planner.value)[1]
                for i in range(5)
            ]

        assert values(3) == values(3)
        assert values(3) != values(4)

    def test_values_of_actions(self):
        planner = PLANNER(am.problems.measuring_value(), simulations=2_000)
        assert np.isnan(planner.q_values()).all()
        planner.decide(am.Belief.at(0))
        assert planner.q_values().shape == (2, 2)
        assert planner.value == planner.q_values().max()

    def test_ties_are_broken_at_random(self):
        """Where nothing is to be gained, every action is as good, but no look."""
        model = am.Model.from_arrays(
            np.eye(2)[None].repeat(4, 0).swapaxes(0, 1), np.zeros((2, 4)), measuring_cost=0.1, initial=0
        )
        chosen = {PLANNER(model, 200, **PLAIN, nodes=100, seed=seed).decide(am.Belief.at(0)) for seed in range(40)}
        assert chosen == {am.Decision(action, False) for action in range(4)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"simulations": 0}, "simulations is 0"),
        ({"depth": 2.5}, "depth is 2.5"),
        ({"exploration": -1}, "exploration is -1, expected a finite number that is 0 or more"),
        ({"exploration": np.inf}, "exploration is inf"),
        ({"particles": 0}, "particles is 0"),
        ({"discount": 0}, "discount is 0, expected a number above 0"),
        ({"rollout": "blnd"}, "unknown rollout 'blnd'; did you mean 'blind'"),
        ({"rollout": None}, "unknown rollout None"),
        ({"clamp": 1}, "clamp is 1, expected True or False"),
        ({"share": "no"}, "share is 'no'"),
        ({"nodes": 1}, "nodes is 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(am.PlanError, match=message):
        PLANNER(am.problems.measuring_value(), **settings)


def test_what_cannot_be_planned():
    model = am.problems.measuring_value()
    with pytest.raises(am.PlanError, match="expected a Model"):
        PLANNER("lake")
    with pytest.raises(am.PlanError, match="no belief to decide from"):
        PLANNER(model).decide()
    for belief in (am.Belief.at(3), am.Belief.at(9), am.Belief(np.zeros(0, np.int64), np.zeros(0))):
        with pytest.raises(am.PlanError, match="the belief is empty, or holds states"):
            PLANNER(model).decide(belief)
    losing = am.Model.from_arrays(np.ones((1, 1, 1)), [[-1.0]], measuring_cost=0.1)
    with pytest.raises(am.PlanError, match="negative rewards; use clamp=False"):
        PLANNER(losing, clamp=True)
    at_times = am.Model.from_arrays(np.full((2, 1, 2), 0.5), np.array([[[2.0, -1.0]]] * 2), measuring_cost=0.1)
    with pytest.raises(am.PlanError, match="negative rewards"):
        PLANNER(at_times, clamp=True)


@pytest.mark.parametrize("rollout", ["q-mdp", "looking", "blind", "random"])
def test_without_a_discount(rollout):
    """The optimum is 1 - c / p, and nothing is lost by beginning again."""
    model = am.problems.measuring_value(p=0.8, measuring_cost=0.05, discount=1.0)
    planner = PLANNER(model, 20_000, 20, None, rollout=rollout, share=False)
    assert planner.decide(am.Belief.at(0)) == am.Decision(1, True)
    assert planner.value == pytest.approx(0.9375, abs=0.06)
