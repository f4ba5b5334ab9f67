"""The general search against a slow tree of beliefs, on random models of every kind; its policies; unusual arguments."""

import os
import signal
import warnings

import numpy as np
import pytest
from brute_force import decision_value, optimal_value, start_value
from hypothesis import given
from hypothesis import strategies as st
from outcome_judge import OutcomeJudge, random_model
from strategies import examples, models, systems

import actmeasure as am
from actmeasure import planning
from actmeasure.errors import ModelError, PlanError
from actmeasure.kernels import outcome_search
from actmeasure.markov import RoundingError
from actmeasure.planning.budget import Budget
from actmeasure.planning.outcome_search import OutcomeSearch

SEEDS = st.integers(0, 2**32 - 1)
#: Relative to the largest value: what the judge's own sums may be off.
ROUNDING = 1e-13


def searched(model, tolerance, work=1500):
    """Return a search that ended by its tolerance, its work, or because there was nothing more to do."""
    search = OutcomeSearch(model, Budget(work=work))
    search.run(tolerance)
    return search


def assert_sound(search, judge):
    tiny = ROUNDING * judge.scale
    assert np.isfinite([search.lower, search.upper]).all()
    assert search.lower <= search.upper
    assert search.lower <= judge.upper + tiny
    assert search.upper >= judge.lower - tiny


def followed(model, decide_at):
    """Return what deciding by the belief earns in a model in which every episode ends, and the decisions that were made."""
    made = set()

    def value(belief):
        decision = decide_at(belief)
        made.add(decision)
        return decision_value(model, belief, *decision, value)

    return start_value(model, value), made


@given(SEEDS, st.sampled_from([1, 5, 50, 1500]))
@examples(1200)
def test_bounds_agree_with_the_judge_whenever_the_search_is_stopped(seed, work):
    model = random_model(np.random.default_rng(seed))
    judge = OutcomeJudge(model, most_beliefs=600)
    try:
        search = OutcomeSearch(model, Budget(work=work))
    except PlanError as error:  # rewards over 13 orders of magnitude, without discount
        assert model.discount == 1
        assert "cannot be proved" in str(error)  # noqa: PT017
        return
    stopped = search.run(1e-6 * judge.scale)
    assert_sound(search, judge)
    if stopped == "closed":
        assert search.upper - search.lower <= 1e-6 * judge.scale
    graph = search.policy_graph()
    if graph is not None:
        try:
            value = am.evaluate(model, graph).discounted_return
        except RoundingError:  # outcomes of probability 1e-300, without discount
            return
        assert value >= search.lower - ROUNDING * judge.scale


@given(SEEDS)
@examples(300)
def test_at_small_discounts_both_are_narrow_and_the_same(seed):
    model = random_model(np.random.default_rng(seed), max_states=3, max_actions=2, discounts=(0.3, 0.5))
    judge = OutcomeJudge(model, precision=1e-4, most_beliefs=2000)
    search = searched(model, 1e-5 * judge.scale, work=4000)
    assert_sound(search, judge)
    assert abs(search.upper - judge.upper) <= 2e-5 * judge.scale + (judge.upper - judge.lower)


@given(SEEDS, st.integers(1, 3), st.sampled_from([None, 1.0]))
@examples(300)
def test_finite_lives_have_the_value_of_backward_induction_and_decisions_earn_the_lower_bound(seed, periods, discount):
    rng = np.random.default_rng(seed)
    base = random_model(rng, max_states=3, max_actions=2, discounts=(0.5, 0.9, 0.99))
    final = rng.normal(size=base.n_states) if rng.random() < 0.5 else None
    model = am.lifetime(base, periods, final, discount=discount)
    optimum = optimal_value(model)
    scale = max(1e-300, abs(optimum), np.abs(base.rewards).max(), 0 if final is None else np.abs(final).max()) * periods
    search = searched(model, 1e-8 * scale)
    assert search.lower - ROUNDING * scale <= optimum <= search.upper + ROUNDING * scale
    value, _ = followed(model, search.decide_at)
    assert search.lower - ROUNDING * scale <= value <= search.upper + ROUNDING * scale


@given(SEEDS)
@examples(120)
def test_what_tells_nothing_or_is_dearer_is_never_bought(seed):
    rng = np.random.default_rng(seed)
    base = random_model(rng, max_states=4, max_actions=2, discounts=(0.5, 0.9)).replace(passive=None, measurements=())
    Z = rng.dirichlet(np.ones(2), size=base.n_states)
    looks = [
        am.Measurement.noisy("good", 0.02, probabilities=Z),
        am.Measurement.noisy("the same, dearer", 0.03, probabilities=Z),
        am.Measurement.noisy("says nothing", 0.01, probabilities=np.full((base.n_states, 3), 1 / 3)),
    ]
    model = am.lifetime(base.replace(measurements=looks, reveal_start=False), 3)
    search = searched(model, 1e-9)
    _, made = followed(model, search.decide_at)
    assert {decision.measurement for decision in made} <= {0, 1}
    graph = search.policy_graph()
    assert {decision.measurement for decision in graph.decisions} <= {0, 1}


@given(systems(max_components=2, max_states=3, max_actions=2, discounts=(0.5, 0.7)))
@examples(30)
def test_systems_with_the_bound_of_their_grid_agree_with_the_judge(model):
    judge = OutcomeJudge(model, precision=1e-3, most_beliefs=600)
    search = OutcomeSearch(model, Budget(seconds=0.5, work=300))
    search.run(1e-4 * judge.scale)
    assert search.grid is not None
    assert_sound(search, judge)


@given(models(max_states=3, max_actions=2, discounts=(0.5, 0.8)))
@examples(60)
def test_the_general_search_finds_the_optimum_of_the_search_for_exact_looks(model):
    exact = am.solve(model, tolerance=1e-6)
    search = searched(model, 1e-5, work=3000)
    assert search.lower <= exact.upper + 1e-11
    assert search.upper >= exact.lower - 1e-11
    assert search.upper - search.lower <= 1e-4


@pytest.mark.parametrize("size", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_exact_looks_written_as_a_noisy_measurement_have_the_optimum_of_a_lake(size):
    model = am.problems.frozen_lake(size, measuring_cost=0.05)
    exact = am.solve(model, tolerance=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)  # terminal states are never shown
        identity = am.Measurement.noisy("identity", 0.05, probabilities=np.eye(model.n_states))
        same = model.replace(measurements=[identity], reveal_start=model.reveal_start)
    general = am.solve(same, tolerance=1e-4, relative_tolerance=0)
    assert general.search is not None
    assert general.stopped == "closed"
    assert general.lower <= exact.upper + 1e-11
    assert general.upper >= exact.lower - 1e-11


def nearly_equal_beliefs():
    """A gamble on a hidden state, after a free outcome that says next to nothing: two beliefs that differ by 2^-41 merge.

    The likelier one is better, and comes second, so that it has the upper bound of the other one.
    """
    middle, shift, rare = 0.5 + 2.0**-20, 0.9 * 2.0**-42, 0.1
    share = rare * (middle - shift) + (1 - rare) * (middle + shift)  # of the good state
    good, bad = rare * (middle - shift) / share, rare * (1 - middle + shift) / (1 - share)
    P = np.zeros((4, 2, 4))
    P[0, :, 1:3] = share, 1 - share
    P[1:, :, 3] = 1
    hint = am.Measurement.noisy("hint", probabilities=[[0.5, 0.5], [good, 1 - good], [bad, 1 - bad], [0.5, 0.5]])
    R = [[0, 0], [1, 0], [-0.5, 0], [0, 0]]
    return am.Model.from_arrays(P, R, passive=hint, discount=0.99, initial=0, terminal=[0, 0, 0, 1], reveal_start=False)


def test_the_judge_finds_it_if_merging_beliefs_is_free(monkeypatch):
    model = nearly_equal_beliefs()
    judge = OutcomeJudge(model, precision=1e-15)
    search = searched(model, 1e-300)
    assert search.n_nodes == 2  # the start and what follows
    assert_sound(search, judge)
    monkeypatch.setattr(outcome_search, "DELTA", 0.0)
    with pytest.raises(AssertionError):
        assert_sound(searched(model, 1e-300), judge)


def test_the_judge_knows_tiger():
    judge = OutcomeJudge(tiger(discount=0.5), precision=1e-5, most_beliefs=10_000)
    search = searched(tiger(discount=0.5), 1e-9)
    assert judge.upper - judge.lower < 0.1
    assert_sound(search, judge)


# Unusual models and arguments


def tiger(discount=0.95):
    rows = np.stack([np.stack([np.eye(2)[s], [0.5, 0.5], [0.5, 0.5]]) for s in range(2)])
    listen = am.Measurement.noisy("listen", 1.0, probabilities=[[0.85, 0.15], [0.15, 0.85]], with_actions=[0])
    return am.Model.from_arrays(
        rows, [[0, 10, -100], [0, -100, 10]], measurements=[listen], discount=discount, initial=[0.5, 0.5]
    )


def test_a_prohibitive_price_costs_no_precision():
    """Slack was relative to the largest price: .004 for one of 1e9, and the search did not end."""
    model = tiger()
    dear = am.Measurement.noisy("dear", 1e9, probabilities=[[0.9, 0.1], [0.1, 0.9]])
    search = searched(model.replace(measurements=[*model.measurements, dear]), 1e-6, work=20_000)
    assert search.upper - search.lower <= 1e-6
    assert search.lower <= 19.3721
    assert search.upper >= 19.3711


@pytest.mark.parametrize("relative", [0.0, None])
def test_a_tolerance_below_rounding_ends_the_search(relative):
    solution = am.solve(tiger(), tolerance=1e-300, relative_tolerance=relative)
    assert solution.stopped == ("exhausted" if relative == 0 else "closed")
    assert 19.3711 < solution.upper < 19.40
    assert solution.gap < (1e-6 if relative == 0 else 0.02)


def test_where_all_rewards_are_0_there_is_nothing_to_search():
    rng = np.random.default_rng(3)
    look = am.Measurement.noisy("look", 0.5, probabilities=rng.dirichlet(np.ones(2), size=3))
    model = am.Model.from_arrays(
        rng.dirichlet(np.ones(3), size=(3, 2)), np.zeros((3, 2)), measurements=[look], discount=0.9, initial=np.full(3, 1 / 3)
    )  # fmt: skip
    solution = am.solve(model, tolerance=1e-300)
    assert solution.stopped in ("closed", "exhausted")
    assert -1e-9 < solution.lower <= 0 <= solution.upper < 1e-9


def test_a_tolerance_of_any_size_is_met_at_once():
    solution = am.solve(tiger(), tolerance=1e300)
    assert solution.stopped == "closed"
    assert solution.lower <= 19.3721
    assert solution.upper >= 19.3711


@pytest.mark.parametrize("seconds", [1e-9, 1e-4, 1e-3, 3e-3])
def test_with_hardly_any_time_bounds_are_sound_or_refused(seconds):
    for model, low, high in ((tiger(), 19.3711, 19.3721), (am.lifetime(tiger(), 1), -1e-9, 1e-9)):
        try:
            solution = am.solve(model, time_limit=seconds)
        except PlanError as error:
            assert "time limit" in str(error)  # noqa: PT017
            continue
        assert solution.lower <= high
        assert solution.upper >= low


def test_ctrl_c_returns_the_bounds_so_far():
    rng = np.random.default_rng(1)
    looks = [am.Measurement.noisy(f"m{i}", 0.05, probabilities=rng.dirichlet(np.ones(4), size=12)) for i in range(3)]
    model = am.Model.from_arrays(
        rng.dirichlet(np.ones(12), size=(12, 4)), rng.normal(size=(12, 4)), measurements=looks, discount=0.97,
        initial=np.full(12, 1 / 12),
    )  # fmt: skip
    searched(model, 1e-3, work=20)  # compiled by now
    search = OutcomeSearch(model, Budget())
    pressed = []

    def press(progress):
        if not pressed:
            pressed.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    search.budget.progress = press
    assert search.run(1e-12) == "interrupted"
    assert search.lower <= search.upper


def test_close_to_discount_1_vectors_are_added():
    """A vector had to improve a node by at least a share of .0004 of the gap, which none did: the search gave up."""
    wear, renewal = [[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]], np.tile([1.0, 0.0, 0.0], (3, 1))
    look = am.Measurement.noisy("look", 0.3, probabilities=[[0.8, 0.2], [0.3, 0.7], [0.05, 0.95]], with_actions=[0])
    model = am.Model.from_arrays(
        np.stack([wear, renewal], axis=1),
        [[0, -4], [-0.2, -4.2], [-5, -9]],
        measurements=[look],
        discount=0.99999,
        initial=0,
    )
    search = OutcomeSearch(model, Budget(work=800))
    assert search.run(1e-3) != "exhausted"
    assert search.lower > -4 / (1 - model.discount) + 1000  # what renewing at every step earns, and more


def test_a_search_ends_when_it_may_not_grow(monkeypatch):
    monkeypatch.setattr(planning.outcome_search, "MOST_BYTES", 3_000_000)
    model = am.problems.component_line(2)
    solution = am.solve(model, tolerance=1e-12, relative_tolerance=0.0)
    assert solution.stopped == "memory"
    assert solution.lower <= -1.74897
    assert solution.upper >= -1.74901
    assert am.evaluate(model, solution.policy_graph(nodes=5)).discounted_return <= solution.upper


@pytest.mark.parametrize("discount", [1e-300, 1e-9, 0.5])
@pytest.mark.parametrize("passive", [None, am.Measurement.noisy("free", probabilities=[[1.0]])])
def test_one_state_and_one_action(discount, passive):
    look = am.Measurement.noisy("look", 0.1, probabilities=[[1.0]])
    model = am.Model.from_arrays(np.ones((1, 1, 1)), [[2.0]], measurements=[look], passive=passive, discount=discount)
    search = searched(model, 1e-8)
    assert search.lower <= 2 / (1 - discount) <= search.upper
    assert search.upper - search.lower <= 1e-8
    assert search.decide_at(am.Belief.at(0)) == am.Decision(0, 0)


def test_without_any_measurement_a_blind_plan_is_found():
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2))
    model = am.Model.from_arrays(P, R, measurements=[], discount=0.5, initial=[0.2, 0.3, 0.5])
    judge = OutcomeJudge(model)
    search = searched(model, 1e-7)
    assert_sound(search, judge)
    assert search.upper - search.lower <= 1e-7


def test_without_discount_a_model_in_which_no_action_alone_ends_is_refused():
    """Slack was 1e238, and so were the bounds."""
    P = np.zeros((3, 2, 3))
    P[0, 0] = [0.2, 0.8, 0]
    P[0, 1, 0] = P[1, 0, 1] = P[1, 1, 2] = 1
    P[2, :, 2] = 1
    look = am.Measurement.noisy("look", 0.1, probabilities=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    model = am.Model.from_arrays(
        P, [[-1, -1], [-1, -1], [0, 0]], measurements=[look], discount=1.0, initial=[0.5, 0.5, 0], terminal=[0, 0, 1]
    )
    with pytest.raises(PlanError, match="use a discount below 1, or a finite life"):
        am.solve(model)
    assert am.solve(am.lifetime(model, 6)).stopped == "closed"


def test_discount_0_is_refused():
    with pytest.raises(ModelError, match="discount is 0"):
        tiger().replace(discount=0.0)


def belief(*probabilities):
    states = np.flatnonzero(probabilities)
    return am.Belief(states, np.array(probabilities)[states])


@pytest.mark.parametrize(
    "other",
    [
        am.Belief.at(7), am.Belief.at(2), belief(0.5, 0, 0.5), belief(0.2, 0.3, 0.2, 0.3), None, [0.5, 0.5], belief(1.5, -0.5),
        belief(0.5, 0.9), belief(np.nan, 1.0), am.Belief(np.array([1, 0]), np.array([0.5, 0.5])),
        am.Belief(np.array([-1]), np.ones(1)), am.Belief(np.array([0, 1]), np.ones(1)),
        am.Belief(np.array([], dtype=np.int64), np.array([])),
    ],
)  # fmt: skip
def test_a_belief_of_another_model_or_of_an_episode_that_is_over_is_refused(other):
    P = np.zeros((3, 1, 3))
    P[:, 0] = [0.3, 0.3, 0.4]
    look = am.Measurement.noisy("look", 0.1, probabilities=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    model = am.Model.from_arrays(
        P, [[1], [2], [0]], measurements=[look], discount=0.9, initial=[0.5, 0.5, 0], terminal=[0, 0, 1]
    )
    for policy in (am.solve(model).policy, am.solve(model, "atm").policy):
        with pytest.raises(PlanError, match="running episode"):
            policy.decide_at(other)
        with pytest.raises(PlanError, match="running episode"):
            policy.start(other)
    if isinstance(other, am.Belief):
        with pytest.raises(PlanError, match="running episode"):
            am.solve(model).explain(other)
    with pytest.raises(PlanError, match="running episode"):
        am.solve(am.lifetime(model, 1)).policy.decide_at(other)


def test_a_belief_that_mixes_what_is_always_known_still_gets_a_decision():
    """Whether there is snow is shown at every step; the belief mixes it."""
    P = np.full((4, 2, 4), 0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)
        model = am.Model.from_arrays(
            P, np.arange(8.0).reshape(4, 2), passive=am.Measurement.partial("snow", shows=[0, 0, 1, 1]), discount=0.5, initial=0,
            measurements=[am.Measurement.partial("both", 0.1, shows=[0, 1, 2, 3])],
        )  # fmt: skip
    search = searched(model, 1e-6)
    assert search.made.n_slices == 2
    assert search.decide_at(belief(0.25, 0.25, 0.25, 0.25)).action == 1
