"""Policy graphs: bad input, exact evaluation against a dense product chain and simulation, simpler graphs, words and files."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, models, random_schedule

import actmeasure as am
from actmeasure import markov
from actmeasure.policy import SchedulePolicy

FIGURES = (
    "discounted_return", "discounted_reward", "discounted_measurements", "scalarized_return", "reward", "measurements", "steps",
    "ending_probability",
)  # fmt: skip
AVERAGES = ("average_return", "average_reward", "average_measurements")

pytestmark = pytest.mark.filterwarnings("ignore::actmeasure.ModelWarning")  # outcomes that no state can produce

WAIT, REPAIR = range(2)
MISS, HIT = range(2)


def unit(**changes):
    """A unit that wears: sound, small crack, large crack, failed; wait or repair; visual inspection or opening."""
    P = np.zeros((4, 2, 4))
    P[0, 0], P[1, 0], P[2, 0], P[3, 0] = [0.8, 0.2, 0, 0], [0, 0.7, 0.3, 0], [0, 0, 0.8, 0.2], [0, 0, 0, 1]
    P[:, 1, 0] = 1
    R = np.array([[0, -20.0], [0, -20], [0, -20], [-100, -120]])
    visual = am.Measurement.detection("visual", cost=1.0, pod=[0.02, 0.2, 0.6, 0.95])
    opening = am.Measurement.exact("opening", cost=8.0, with_actions=("wait",))
    settings = {
        "measurements": [visual, opening], "state_names": ["sound", "small", "large", "failed"],
        "action_names": ["wait", "repair"], **changes,
    }  # fmt: skip
    return am.Model.from_arrays(P, R, **settings)


UNIT = unit()
#: Wait three years, then a visual inspection; after a hit open it, and repair large cracks.
RULE = am.PolicyGraph(
    [am.Decision(0), am.Decision(0), am.Decision(0), am.Decision(0, 1), am.Decision(0, 2), am.Decision(1)],
    [{None: 1}, {None: 2}, {None: 3}, {"hit": 4, None: 0}, {"large": 5, "failed": 5, None: 0}, {None: 0}],
)


# Random models and graphs


@st.composite
def general_models(draw, discounts=(0.5, 0.9, 0.99)):
    """Models with noisy, partial and exact measurements, some by action or with some actions only, and passive outcomes."""
    base = draw(models(max_states=5, discounts=discounts))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, A = base.n_states, base.n_actions

    def law(by_action):
        n_outcomes = int(rng.integers(1, 4))
        Z = rng.dirichlet(np.ones(n_outcomes), size=(A, S) if by_action else S)
        Z[rng.random(Z.shape) < 0.3] = 0.0
        Z[..., 0] += Z.sum(axis=-1) == 0
        return Z / Z.sum(axis=-1, keepdims=True)

    def measurement(name):
        some = None if rng.random() < 0.6 else [int(a) for a in range(A) if a == 0 or rng.random() < 0.5]
        cost = float(rng.random()) if rng.random() < 0.7 else rng.random((S, A))
        match int(rng.integers(4)):
            case 0:
                return am.Measurement.exact(name, cost=cost, with_actions=some)
            case 1:
                shows = [f"label {int(rng.integers(2))}" for _ in range(S)]
                return am.Measurement.partial(name, cost=cost, shows=shows, with_actions=some)
            case kind:
                return am.Measurement.noisy(name, cost=cost, probabilities=law(kind == 3), with_actions=some)

    passive = None if draw(st.booleans()) else am.Measurement.noisy("alarm", probabilities=law(bool(rng.integers(2))))
    measurements = [measurement(f"m{k}") for k in range(draw(st.integers(0 if passive is not None else 1, 3)))]
    return base.replace(measurements=measurements, passive=passive)


def random_graph(model, rng, n_nodes):
    """Random decisions that are allowed; edges by number or name, some of them left to the edge None."""
    allowed = np.argwhere(model.allowed_decisions)
    decisions = [am.Decision(*(int(i) for i in allowed[rng.integers(len(allowed))])) for _ in range(n_nodes)]
    edges = []
    for decision in decisions:
        own = {None: int(rng.integers(n_nodes))}
        for outcome in range(model.n_outcomes(decision.measurement)):
            if rng.random() < 0.7:
                named = rng.random() < 0.3 and model.state_names is None
                key = model.outcome_name(decision.measurement, outcome) if named else outcome
                own[key] = int(rng.integers(n_nodes))
        edges.append(own)
    start = int(rng.integers(n_nodes))
    if model.start_is_known and rng.random() < 0.5:
        start = {int(state): int(rng.integers(n_nodes)) for state in model.initial_states}
    return am.PolicyGraph(decisions, edges, start)


class Dense:
    """An independent implementation: the chain over all pairs of node and state as a dense matrix, pair by pair."""

    def __init__(self, model, graph):
        self.model, self.graph = model, graph
        S, N, k = model.n_states, len(graph), len(model.measurements)
        self.moves = np.zeros((N, S, N, S))
        self.rewards = np.zeros((N, S, 3 + k))  # return, reward, steps, looks of each kind
        P = model.transitions.dense()
        for n, (action, measurement) in enumerate(graph.decisions):
            for s in np.flatnonzero(~model.terminal):
                price = 0.0 if measurement == 0 else model.measurements[measurement - 1].of(s, action)
                self.rewards[n, s, :3] = model.rewards[s, action] - price, model.rewards[s, action], 1.0
                if measurement:
                    self.rewards[n, s, 2 + measurement] = 1.0
                for t in np.flatnonzero(~model.terminal & (P[s, action] > 0)):
                    for outcome, chance in self.outcomes(t, action, measurement):
                        self.moves[n, s, self.follow(n, outcome), t] += P[s, action, t] * chance
        size = N * S
        self.moves, self.rewards = self.moves.reshape(size, size), self.rewards.reshape(size, -1)
        self.start = np.zeros(size)
        for s, chance in zip(model.initial_states, model.initial_probabilities, strict=True):
            node = graph.start if isinstance(graph.start, int) else graph.start[int(s)]
            self.start[node * S + s] += chance

    def outcomes(self, state, action, measurement):
        shows = self.model.shown_by(measurement)
        if shows is None:
            return [(None, 1.0)]
        if shows.law is None:
            return [(int(state), 1.0)]
        row = shows.law.of_action(action, self.model.n_states).toarray()[state]
        return [(o, p) for o, p in enumerate(row) if p > 0]

    def follow(self, node, outcome):
        edges = self.graph.edges[node]
        name = None if outcome is None else self.model.outcome_name(self.graph.decisions[node].measurement, outcome)
        return edges.get(outcome, edges.get(name, edges[None])) if outcome is not None else edges[None]

    def discounted(self):
        size = len(self.start)
        return np.linalg.solve(np.eye(size) - self.model.discount * self.moves, self.rewards)

    def over(self, horizon):
        sums, where = np.zeros(self.rewards.shape[1]), self.start
        for _ in range(horizon):
            sums, where = sums + where @ self.rewards, where @ self.moves
        return sums


@given(general_models(), st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_random_graphs_against_a_dense_implementation(model, n_nodes, seed, horizon):
    graph = random_graph(model, np.random.default_rng(seed), n_nodes)
    result, dense = am.evaluate(model, graph, horizon=horizon), Dense(model, graph)
    values = dense.discounted()
    first, sums = dense.start @ values, dense.over(horizon)
    scale = 1 + np.abs(values).max()
    assert result.discounted_return == pytest.approx(first[0], abs=1e-10 * scale)
    assert result.discounted_reward == pytest.approx(first[1], abs=1e-10 * scale)
    np.testing.assert_allclose(result.discounted_looks, first[3:], atol=1e-10 * scale)
    assert result.discounted_measurements == pytest.approx(first[3:].sum(), abs=1e-10 * scale)
    figures = (result.scalarized_return, result.reward, result.steps, *result.looks)
    np.testing.assert_allclose(figures, sums, atol=1e-10 * (1 + np.abs(sums).max()))
    assert result.measurements == pytest.approx(sums[3:].sum(), abs=1e-10 * (1 + horizon))
    assert abs(result.discounted_return - first[0]) <= 2 * result.discounted_error + 1e-12 * scale
    reached = ~np.isnan(result.node_values)
    np.testing.assert_allclose(
        result.node_values[reached], values[:, 0].reshape(reached.shape)[reached], atol=1e-10 * scale
    )
    visits = np.linalg.matrix_power(np.eye(len(dense.start)) + dense.moves, len(dense.start))
    np.testing.assert_array_equal(reached.ravel(), dense.start @ (visits > 0) > 0)
    if result.average_looks is not None:
        assert result.average_measurements == pytest.approx(result.average_looks.sum(), abs=1e-12)


@given(general_models(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_simpler_graphs_have_the_same_value(model, n_nodes, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(model, rng, n_nodes)
    # The same graph twice, with edges that lead to either copy: the copies are equivalent.
    twice = am.PolicyGraph(
        graph.decisions * 2,
        [{key: node + n_nodes * int(rng.integers(2)) for key, node in edges.items()} for edges in graph.edges * 2],
        graph.start,
    )
    expected = am.evaluate(model, graph, horizon=20)
    for simple in (twice.simplified(), twice.simplified(model), graph.simplified(model)):
        assert len(simple) <= n_nodes
        found = am.evaluate(model, simple, horizon=20)
        for name in FIGURES:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-10, rel=1e-10)
        assert simple.simplified() == simple
    assert twice.simplified(model).simplified(model) == twice.simplified(model)


class TestSimplified:
    def test_unreachable_nodes_go_and_edges_that_none_replaces(self):
        graph = am.PolicyGraph(
            [am.Decision(0), am.Decision(1), am.Decision(0, 1)], [{None: 2}, {None: 0}, {"hit": 2, None: 2}], start=2
        )
        assert graph.simplified() == am.PolicyGraph([am.Decision(0, 1)], [{None: 0}])

    def test_outcomes_that_cannot_occur(self):
        fresh = unit(measurements=[am.Measurement.exact("opening")], initial=0)
        graph = am.PolicyGraph(
            [am.Decision(1, 1), am.Decision(0), am.Decision(0, 1)],
            [{"sound": 1, "failed": 0, None: 2}, {None: 0}, {None: 0}],
        )
        assert graph.simplified() == graph
        assert graph.simplified(fresh) == am.PolicyGraph(graph.decisions[:2], [{"sound": 1}, {None: 0}])

    def test_nodes_with_different_edges_stay_apart(self):
        assert len(RULE.simplified(UNIT)) == len(RULE)


def simulated(model, graph, episodes, horizon, seed):
    """Return, reward, steps and looks of each kind of simulated episodes: a plain loop over names and arrays of the model."""
    rng = np.random.default_rng(seed)
    P, dense = model.transitions.dense(), Dense(model, graph)
    found = np.zeros((episodes, 3 + len(model.measurements)))
    for episode in range(episodes):
        state = int(rng.choice(model.initial_states, p=model.initial_probabilities))
        node = graph.start if isinstance(graph.start, int) else graph.start[state]
        for _ in range(horizon):
            action, measurement = graph.decisions[node]
            found[episode] += dense.rewards[node * model.n_states + state]
            state = int(rng.choice(model.n_states, p=P[state, action]))
            if model.terminal[state]:
                break
            outcomes = dense.outcomes(state, action, measurement)
            chances = np.array([chance for _, chance in outcomes])
            node = dense.follow(node, outcomes[int(rng.choice(len(outcomes), p=chances / chances.sum()))][0])
    return found


@examples(18)
@given(general_models(), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_random_graphs_against_simulation(model, n_nodes, seed):
    graph = random_graph(model, np.random.default_rng(seed), n_nodes)
    exact = am.evaluate(model, graph, horizon=12)
    found = simulated(model, graph, 400, 12, seed)
    expected = np.array([exact.scalarized_return, exact.reward, exact.steps, *exact.looks])
    deviation = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - expected) <= 5 * deviation + 0.02 * (1 + np.abs(expected))).all()


class TestEvaluation:
    def test_discount_1_where_the_episode_surely_ends(self):
        """Repair with a chance of 1/2 until it is noticed; the price is paid also with the step that ends the episode."""
        P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
        check = am.Measurement.detection("check", cost=0.25, pod=[0.5, 0.0])
        model = am.Model.from_arrays(
            P, [[-1.0, -3.0], [0.0, 0.0]], measurements=[check], discount=1.0, terminal=[False, True]
        )
        graph = am.PolicyGraph([am.Decision(0, 1), am.Decision(0)], [{"hit": 1, None: 0}, {None: 1}])
        result = am.evaluate(model, graph)
        # Steps are geometric with mean 2; a step is measured while no hit was seen, each time with a chance of 1/4 to go on so.
        assert result.steps == pytest.approx(2.0)
        assert result.looks == pytest.approx([1 / (1 - 1 / 4)])
        assert result.discounted_return == pytest.approx(-2.0 - 0.25 * 4 / 3)
        assert result.scalarized_return == pytest.approx(result.discounted_return)
        assert (result.ending_probability, result.average_looks) == (1.0, None)

    def test_long_run_averages_of_the_present_rule(self):
        result = am.evaluate(UNIT, RULE, horizon=100_000)
        assert result.average_return == pytest.approx(result.scalarized_return / 100_000, rel=1e-3)
        np.testing.assert_allclose(result.average_looks, result.looks / 100_000, rtol=1e-3)
        assert np.isinf(am.evaluate(UNIT, RULE).looks).all()

    def test_values_are_those_of_the_start_nodes(self):
        result = am.evaluate(UNIT, RULE)
        assert result.values[0] == result.discounted_return == result.node_values[0, 0]
        assert np.isnan(result.values[1:]).all()
        assert np.isnan(result.node_values[5, 0])  # a repair is never decided where the unit is sound
        lake = am.problems.frozen_lake(4)
        of_schedule = am.evaluate(lake, am.solve(lake, method="never").schedule)
        with pytest.raises(am.ScheduleError, match="evaluation of a schedule; use values"):
            _ = of_schedule.node_values

    def test_looks_of_schedules(self):
        lake = am.problems.frozen_lake(4)
        result = am.evaluate(lake, am.solve(lake).schedule, horizon=20)
        assert (result.looks.tolist(), result.discounted_looks.tolist()) == (
            [result.measurements], [result.discounted_measurements],
        )  # fmt: skip
        assert result.average_looks is None

    def test_its_policy_is_evaluated_as_the_graph(self):
        assert repr(am.evaluate(UNIT, RULE.policy(UNIT), horizon=9)) == repr(am.evaluate(UNIT, RULE, horizon=9))

    def test_schedules_and_belief_functions_need_exact_looks(self):
        with pytest.raises(am.ModelError, match=r"evaluation of a Schedule needs .* this model has 2; write the rule"):
            am.evaluate(UNIT, am.Schedule({0: am.BlindPlan((0,))}, 4))
        with pytest.raises(am.ModelError, match=r"evaluation of a policy, which is unrolled .*PolicyGraph"):
            am.evaluate(UNIT, lambda belief: am.Decision(0))

    def test_large_graphs_by_a_krylov_method(self, monkeypatch):
        """The same figures as by factoring, on a chain in which few sweeps are not enough."""
        rng = np.random.default_rng(0)
        size = 60
        P = sparse.lil_array((size, size))
        for state in range(size):
            for step in range(3):
                P[state, (state + step) % size] += rng.random() / 2
            P[state, 0] += 0.1
        rows = sparse.csr_array(sparse.diags_array(1 / P.sum(axis=1)) @ P)
        noisy = am.Measurement.noisy("test", cost=0.1, probabilities=rng.dirichlet(np.ones(3), size=size))
        R = rng.normal(size=(size, 2))
        model = am.Model.from_arrays([rows, rows], R, measurements=[noisy], discount=0.999)
        graph = random_graph(model, rng, 4)
        expected = am.evaluate(model, graph, horizon=50)
        monkeypatch.setattr(markov, "LARGE", 10)
        solved = []
        by_krylov = markov._solve_by_krylov
        monkeypatch.setattr(markov, "_solve_by_krylov", lambda *a: solved.append(by_krylov(*a)) or solved[-1])
        found = am.evaluate(model, graph, horizon=50)
        assert len(solved) >= 3
        assert all(one is not None for one in solved)
        for name in (*FIGURES, *AVERAGES):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10, abs=1e-10)
        assert found.discounted_error < 10 * expected.discounted_error


class TestSchedules:
    @pytest.mark.parametrize("method", ["always", "every-3", "never"])
    @pytest.mark.parametrize(
        "name",
        ["chain", "frozen_lake", "inventory", "maintenance", "measuring_value", "most_likely_successor", "sewer", "snake_maze",
         "tight_bound", "two_state_belief"],
    )  # fmt: skip
    def test_every_problem_has_the_same_figures_as_a_graph(self, name, method):
        model = getattr(am.problems, name)()
        self.compare(model, am.solve(model, method=method, time_limit=1).schedule)

    @given(models(), st.integers(0, 2**32 - 1))
    def test_random_models(self, model, seed):
        self.compare(model, random_schedule(model, np.random.default_rng(seed)))

    def compare(self, model, schedule):
        graph = schedule.policy_graph(model)
        expected = am.evaluate(model, schedule, horizon=30)
        for one in (graph, graph.simplified(model)):
            found = am.evaluate(model, one, horizon=30)
            for name in (*FIGURES, *AVERAGES):
                want = getattr(expected, name)
                assert getattr(found, name) == (None if want is None else pytest.approx(want, rel=1e-12, abs=1e-12))
            np.testing.assert_allclose(found.looks, expected.looks, rtol=1e-12, atol=1e-12)

    def test_its_policy_decides_as_the_schedule_does(self):
        lake = am.problems.frozen_lake(4)
        schedule = am.solve(lake).schedule
        graph = schedule.policy_graph(lake)
        am.testing.check_policy(graph.policy(lake), lake)
        one, other = SchedulePolicy(schedule, lake), graph.policy(lake)
        for policy in (one, other):
            policy.start(am.Belief.at(0))
        for outcome in (1, 1, 2):
            assert one.decide() == other.decide()
            one.observe(outcome)
            other.observe(outcome)

    def test_models_without_exact_looks(self):
        with pytest.raises(
            am.ModelError, match=r"a Schedule needs one exact measurement .* write the rule as a PolicyGraph"
        ):
            am.Schedule({0: am.BlindPlan((0,))}, 4).policy_graph(UNIT)

    def test_a_known_state_without_a_plan(self):
        model = am.problems.measuring_value()
        schedule = am.Schedule({0: am.BlindPlan((0,), then="known"), 2: am.BlindPlan((0,), then="known")}, 4)
        assert am.evaluate(model, schedule.policy_graph(model), horizon=3).measurements == 0
        with pytest.raises(am.ScheduleError, match=r"comes to know state 0 .* but has no plan for it"):
            am.Schedule({2: am.BlindPlan((0,), then="known")}, 4).policy_graph(model)


class TestPolicy:
    def test_it_keeps_the_contract(self):
        policy = RULE.policy(UNIT)
        assert isinstance(policy, am.Policy)
        am.testing.check_policy(policy, UNIT)

    @given(general_models(), st.integers(1, 4), st.integers(0, 2**32 - 1))
    def test_random_graphs_keep_the_contract(self, model, n_nodes, seed):
        graph = random_graph(model, np.random.default_rng(seed), n_nodes)
        am.testing.check_policy(graph.policy(model), model, episodes=3, max_steps=10)

    def test_along_the_edges(self):
        policy = RULE.policy(UNIT)
        policy.start(am.Belief.at(0))
        decisions = []
        for outcome in (None, None, None, HIT, 2, None, None):
            decisions.append(tuple(policy.decide()))
            policy.observe(outcome)
        assert decisions == [(0, 0), (0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (0, 0)]
        assert policy.node == 1

    def test_what_cannot_be_observed(self):
        policy = RULE.policy(UNIT)
        with pytest.raises(am.ScheduleError, match=r"call start\(belief\) first"):
            policy.decide()
        policy.start(am.Belief.start(UNIT))
        with pytest.raises(am.ScheduleError, match=r"the outcome is 1, but node 0 makes no measurement.*pass None"):
            policy.observe(1)
        look = am.PolicyGraph([am.Decision(0, 1)], [{"hit": 0}]).policy(UNIT)
        look.start(am.Belief.at(0))
        with pytest.raises(am.ScheduleError, match="the outcome of 'visual' is 2, expected a whole number from 0 to 1"):
            look.observe(2)
        with pytest.raises(am.ScheduleError, match="node 0 has no edge for the outcome 'miss', which came up; add one"):
            look.observe(MISS)
        with pytest.raises(am.ScheduleError, match="node 0 has no edge for nothing seen"):
            look.observe(None)

    def test_a_start_by_state(self):
        shown = unit(reveal_start=True, initial=[0.5, 0.5, 0, 0])
        graph = am.PolicyGraph([am.Decision(0), am.Decision(1)], [{None: 0}, {None: 0}], start={"sound": 0, 1: 1})
        policy = graph.policy(shown)
        policy.start(am.Belief.at(1))
        assert policy.decide() == am.Decision(1)
        am.testing.check_policy(policy, shown)
        with pytest.raises(am.ScheduleError, match="has no start node for it"):
            policy.start(am.Belief.at(2))
        assert am.evaluate(shown, graph).values[1] == pytest.approx(-20 + 0.95 * am.evaluate(shown, graph).values[0])


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "decisions are .* expected a list with a Decision for every node, at least one"),
        ((am.Decision(0), [{}]), "expected a list with a Decision"),
        (([0], [{}]), "the decision of node 0 is 0, expected a Decision"),
        (([am.Decision("wait")], [{}]), "the decision of node 0 is .*'wait'.* expected a Decision with the number"),
        (([am.Decision(-1)], [{}]), "action=-1"),
        (([am.Decision(0)], {None: 0}), "expected a list with a mapping for every node"),
        (([am.Decision(0)], [{}, {}]), "there are 1 decisions, but edges of 2 nodes"),
        (([am.Decision(0)], [3]), "the edges of node 0 are 3, expected a mapping"),
        (
            ([am.Decision(0)], [{None: 1}]),
            "the edge of node 0 for None is 1, expected the number of a node, from 0 to 0",
        ),
        (([am.Decision(0)], [{"hit": -1}]), "the edge of node 0 for 'hit' is -1"),
        (([am.Decision(0)], [{-1: 0}]), "an outcome of node 0 is -1, expected a name, None, or a whole number"),
        (([am.Decision(0)], [{True: 0}]), "an outcome of node 0 is True"),
        (([am.Decision(0)], [{}], 1), "start is 1, expected a mapping from state to node, or a node from 0 to 0"),
        (([am.Decision(0)], [{}], {}), "start is an empty mapping"),
        (([am.Decision(0)], [{}], {0.5: 0}), "a state of start is 0.5"),
        (([am.Decision(0)], [{}], {"a": 2}), "the start in state 'a' is 2, expected the number of a node"),
    ],
)
def test_graphs_that_are_not_valid(arguments, message):
    with pytest.raises(am.ScheduleError, match=message):
        am.PolicyGraph(*arguments)


ALARM = unit(passive=am.Measurement.partial("alarm", shows=["quiet", "quiet", "quiet", "rings"]))


@pytest.mark.parametrize(
    ("model", "graph", "message"),
    [
        (UNIT, am.PolicyGraph([am.Decision(2)], [{None: 0}]), "the decision of node 0 is .* an action from 0 to 1"),
        (UNIT, am.PolicyGraph([am.Decision(0, 3)], [{None: 0}]), "a measurement from 0 .none. to 2"),
        (UNIT, am.PolicyGraph([am.Decision(1, 2)], [{None: 0}]),
         "node 0 makes the measurement 'opening' with action 'repair', but it can only be made with 'wait'"),
        (UNIT, am.PolicyGraph([am.Decision(0, 1)], [{"hitt": 0}]), "node 0: unknown outcome of 'visual' 'hitt'; did you"),
        (UNIT, am.PolicyGraph([am.Decision(0, 1)], [{2: 0}]), "edges of node 0 is 2.* of 'visual', from 0 to 1"),
        (UNIT, am.PolicyGraph([am.Decision(0, 1)], [{"hit": 0, 1: 0}]), "two edges for one outcome, as 'hit' and as 1"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{0: 0}]), "node 0 has an edge for the outcome 0, but its decision makes no"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{}]),
         r"node 0 has no edge for nothing seen, which can come up after action 'wait' in state 0 \('sound'\) leads to state 0"),
        (UNIT, am.PolicyGraph([am.Decision(0, 1)], [{"miss": 0}]), "node 0 has no edge for the outcome 'hit', which can"),
        (UNIT, am.PolicyGraph([am.Decision(0, 2)], [{"sound": 0}]), r"no edge for the outcome 'small', .* leads to state 1"),
        (ALARM, am.PolicyGraph([am.Decision(0)], [{"quiet": 0}]), "node 0 has no edge for the outcome 'rings'"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{None: 0}], {0: 0, 1: 0}).simplified(), None),
        (unit(initial=[0.5, 0.5, 0, 0]), am.PolicyGraph([am.Decision(0)], [{None: 0}], {0: 0}), "is not shown; give one"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{None: 0}], {1: 0}), r"start has no node for state 0 \('sound'\)"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{None: 0}], {"good": 0}), "start: unknown state 'good'"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{None: 0}], {7: 0}), "start has state 7, expected states from 0 to 3"),
        (UNIT, am.PolicyGraph([am.Decision(0)], [{None: 0}], {"sound": 0, 0: 0}), "twice, by name and by number"),
        (3, RULE, "the model is 3, expected a Model"),
    ],
)  # fmt: skip
def test_graphs_that_do_not_fit_the_model(model, graph, message):
    if message is None:
        am.evaluate(model, graph)
        return
    with pytest.raises((am.ScheduleError, am.ModelError), match=message):
        am.evaluate(model, graph)


# Words, tables, pictures, files


class TestShown:
    def test_in_words(self):
        assert RULE.describe(UNIT, period="year").splitlines() == [
            "1. wait for 3 years. Then go to 2.",
            "2. wait, with visual. If 'hit': go to 3. Otherwise: go to 1.",
            "3. wait, with opening. If 'large' or 'failed': go to 4. Otherwise: go to 1.",
            "4. repair. Then go to 1.",
        ]
        with pytest.raises(am.ScheduleError, match="period is 3, expected a word"):
            RULE.describe(UNIT, period=3)

    def test_steps_that_repeat_or_end(self):
        forever = am.PolicyGraph([am.Decision(0), am.Decision(0, 1)], [{None: 0}, {None: 0}], start=1)
        assert forever.describe(UNIT).splitlines() == [
            "1. wait, with visual. Whatever is seen, go to 2.",
            "2. wait. Then repeat this step.",
        ]
        circle = am.PolicyGraph([am.Decision(0)] * 3, [{None: 1}, {None: 2}, {None: 1}])
        assert circle.describe(UNIT).splitlines() == ["1. wait. Then go to 2.", "2. wait for 2 periods. Then go to 2."]
        assert "alarm" not in (text := am.PolicyGraph([am.Decision(0)], [{"rings": 0, None: 0}]).describe(ALARM))
        assert text == "1. wait. Whatever is seen, repeat this step."

    def test_a_start_by_state(self):
        graph = am.PolicyGraph([am.Decision(0), am.Decision(1)], [{None: 0}, {None: 0}], start={"sound": 0, 1: 1, 2: 1})
        lines = graph.describe(unit(reveal_start=True)).splitlines()
        assert lines[:3] == ["At the start, by the first state:", "- 'sound': go to 1.", "- 'small', 'large': go to 2."]

    def test_control_characters_are_escaped(self):
        test = am.Measurement.detection("te\x1b[31mst", pod=[0, 0.5, 1, 1], outcomes=("no\n", "y\u202ees"))
        model = unit(measurements=[test], action_names=["w\rait", "repair"])
        graph = am.PolicyGraph([am.Decision(0, 1)] * 2, [{"y\u202ees": 1, None: 0}, {None: 0}])
        text = graph.describe(model) + graph.to_pandas(model).to_string()
        assert text.replace("\n", "").isprintable()
        assert "y\\u202ees" in text

    def test_as_a_table(self):
        table = RULE.to_pandas(UNIT)
        assert table.columns.tolist() == ["node", "action", "measurement", "outcome", "next_node"]
        assert table.iloc[3].tolist() == [3, "wait", "visual", "hit", 4]
        assert table.iloc[0].tolist() == [0, "wait", None, None, 1]
        plain = am.PolicyGraph([am.Decision(0, 1), am.Decision(1)], [{1: 1, None: 0}, {}]).to_pandas()
        assert plain["outcome"].tolist() == [1, None, None]
        assert plain["next_node"].isna().tolist() == [False, False, True]
        assert plain["measurement"].tolist() == [1, 1, 0]

    def test_as_a_picture(self, tmp_path):
        figure = RULE.plot(UNIT, tmp_path / "rule.png")
        texts = [text.get_text() for text in figure.axes[0].texts]
        assert {"1. wait (3x)", "2. wait, with visual", "hit", "otherwise", "large or failed", "start"} <= set(texts)
        assert (tmp_path / "rule.png").stat().st_size > 5_000
        with pytest.raises(am.PlanError, match="no ending that can be drawn"):
            RULE.plot(UNIT, tmp_path / "rule.doc")
        tangle = random_graph(UNIT, np.random.default_rng(1), 20)
        boxes = [patch.get_bbox() for patch in tangle.plot(UNIT).axes[0].patches if hasattr(patch, "get_boxstyle")]
        apart = [not one.padded(-0.01).overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i]]
        assert len(boxes) > 5
        assert all(apart)

    def test_as_a_value(self):
        assert repr(RULE) == "PolicyGraph(6 nodes, 9 edges, start 0)"
        assert len(RULE) == RULE.n_nodes == 6
        assert pickle.loads(pickle.dumps(RULE)) == RULE
        assert am.PolicyGraph(RULE.decisions, RULE.edges, 1) != RULE
        assert RULE != 3
        with pytest.raises(TypeError):
            RULE.edges[0][None] = 3


class TestFiles:
    @pytest.mark.parametrize(
        "graph",
        [
            RULE,
            am.PolicyGraph([am.Decision(0, 1)], [{"1": 0, 1: 0, "\ud800\x00ü": 0}], start={"a": 0, 3: 0}),
            am.PolicyGraph([(1, 0)], [{}]),
        ],
    )  # fmt: skip
    def test_round_trip(self, graph, tmp_path):
        graph.save(tmp_path / "rule.json")
        assert am.PolicyGraph.load(tmp_path / "rule.json") == graph

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[]", "it is not a policy graph of actmeasure"),
            ('{"format": "actmeasure model"}', "it is not a policy graph of actmeasure; use a file that PolicyGraph.save"),
            ('{"format": "actmeasure policy graph", "version": 2}', "format version 2, and this actmeasure reads .* up to 1"),
            ('{"format": "actmeasure policy graph"', "line 1, column .* is not valid JSON"),
            ('{"format": "actmeasure policy graph"}', "it has no 'nodes'"),
            ('{"format": "actmeasure policy graph", "nodes": [], "stat": 0}', "unknown key 'stat'; did you mean 'start'"),
            ('{"format": "actmeasure policy graph", "nodes": []}', "at least one"),
            ('{"format": "actmeasure policy graph", "nodes": [{"action": -1, "edges": []}]}', r"nodes\[0\]: 'action' is -1"),
            ('{"format": "actmeasure policy graph", "nodes": [{"action": 0}]}', r"nodes\[0\] has no 'edges'"),
            ('{"format": "actmeasure policy graph", "nodes": [{"action": 0, "edges": [{"outcome": 0.5, "to": 0}]}]}',
             r"nodes\[0\], edges\[0\]: 'outcome' is 0.5"),
            ('{"format": "actmeasure policy graph", "nodes": [{"action": 0, "edges": [{"outcome": 1, "to": 7}]}]}',
             "the edge of node 0 for 1 is 7"),
            ('{"format": "actmeasure policy graph", "nodes": [{"action": 0, "edges": '
             '[{"outcome": 1, "to": 0}, {"outcome": 1, "to": 0}]}]}',
             r"nodes\[0\] has two edges for the outcome 1"),
            ('{"format": "actmeasure policy graph", "start": [{"state": 1, "to": 0}, {"state": 1, "to": 0}], "nodes": []}',
             "the state 1 is given twice"),
        ],
    )  # fmt: skip
    def test_files_that_are_not_valid(self, text, message, tmp_path):
        place = tmp_path / "rule.json"
        place.write_text(text)
        with pytest.raises(am.ScheduleError, match=message) as raised:
            am.PolicyGraph.load(place)
        assert str(raised.value).startswith(str(place))

    def test_paths(self, tmp_path):
        (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
        with pytest.raises(am.ScheduleError, match="byte 0 is not UTF-8 text"):
            am.PolicyGraph.load(tmp_path / "bytes.json")
        with pytest.raises(am.ScheduleError, match="there is no such file"):
            am.PolicyGraph.load(tmp_path / "none.json")
        for path in ("rule.pickle", 3, "a\0.json"):
            with pytest.raises(am.ScheduleError, match=r"the name of a file that ends in \.json"):
                RULE.save(path)
        with pytest.raises(am.ScheduleError, match="its folder does not exist"):
            RULE.save(tmp_path / "none" / "rule.json")
